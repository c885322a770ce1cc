# Clean training pairs → sub-words (a joint BPE, or sentencepiece), fairseq's binary data; parses → sub-words' annotations.

BINARY = [
    *each("{split}.{source}-{target}.{side}.{kind}", split=TRAINING_SPLITS, side=SIDES, kind=("bin", "idx")),
    *each("dict.{side}.txt", side=SIDES),
]


rule subwords:
    input:
        train=each(PAIR / "clean/train.{side}", side=SIDES),
        others=each(PAIR / "tokens/{split}.{side}", split=SCORED_SPLITS, side=SIDES),
    output:
        each(PAIR / "bpe/{split}.{side}", split=SPLITS, side=SIDES),
        each(PAIR / "bpe/vocabulary.{side}", side=SIDES),
        data=each(PAIR / "bin/{name}", name=BINARY),
        codes=PAIR / "bpe/codes",
    log:
        PAIR / "logs/subwords.{source}-{target}.log",
    group:
        "text"
    threads: lambda w: job(w).resources.threads
    resources:
        runtime=by_attempt(lambda w: job(w).minutes(pairs_per_minute=10_000)),
        mem_mb=by_attempt(lambda w: job(w).megabytes(least=1200)),
    params:
        code=code("subwords"),
        settings=lambda w: job(w).subword_options(),
        folder=subpath(input[0], ancestor=2),
    shell:
        "synmask subwords --input {params.folder:q} --source {wildcards.source} --target {wildcards.target}"
        " {params.settings} --output {params.folder:q} --threads {threads} 2> {log:q}"


rule annotate:
    input:
        unpack(lambda w: JOBS.data.parses(w.corpus, w.split, w.source)),
        subwords=PAIR / "bpe/{split}.{source}",
        codes=lambda w: [PAIR / "bpe/codes"] if job(w).corpus.sentencepiece else [],
        kept=lambda w: [PAIR / "clean/kept.{source}-{target}"] if w.split == "train" else [],
    output:
        annotations=PAIR / "bin/syntax.{split}.{source}.npy",
        counts=PAIR / "bin/syntax.{split}.{source}.json",
    log:
        PAIR / "logs/annotate.{split}.{source}-{target}.log",
    # Not of the group "text", whose tokens CoreNLP parses in between.
    group:
        "annotate"
    resources:
        runtime=by_attempt(lambda w: job(w).minutes(pairs_per_minute=20_000)),
        mem_mb=by_attempt(lambda w: job(w).megabytes(least=600)),
    params:
        code=code("annotate"),
        inputs_checksum=lambda w: job(w).inputs_checksum(
            JOBS.data.parses(w.corpus, w.split, w.source).values()
        ),
        files=lambda wildcards, input: as_options(
            **{name: input.get(name) for name in ("trees", "heads", "kept", "codes")}
        ),
        tokeniser=lambda w: job(w).corpus.text.tokeniser_of(w.source),
    shell:
        "synmask annotate --subwords {input.subwords:q} {params.files} --language {wildcards.source}"
        " --tokeniser {params.tokeniser} --output {output.annotations:q} 2> {log:q}"

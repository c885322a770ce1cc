# Clean training pairs → sub-words (a joint BPE, or sentencepiece), fairseq's binary data; parses → sub-words' annotations.

BINARY = [
    *each("{split}.{source}-{target}.{side}.{kind}", split=TRAINING_SPLITS, side=SIDES, kind=("bin", "idx")),
    *each("dict.{side}.txt", side=SIDES),
]
WITH_PIECES = CONFIG.entries_with("corpora", "sentencepiece")


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
    wildcard_constraints:
        corpus=any_of(name for name in CONFIG.corpora if name not in WITH_PIECES),
    group:
        "text"
    threads: lambda w: job(w).resources.threads
    resources:
        runtime=by_attempt(lambda w: job(w).minutes(pairs_per_minute=10_000)),
        mem_mb=by_attempt(lambda w: job(w).megabytes(least=1200)),
    params:
        code=code("subwords"),
        merges=lambda w: job(w).corpus.bpe.merges,
        threshold=lambda w: job(w).corpus.bpe.vocabulary_threshold,
        folder=subpath(input[0], ancestor=2),
    shell:
        "synmask subwords --input {params.folder:q} --source {wildcards.source} --target {wildcards.target}"
        " --merges {params.merges} --vocabulary-threshold {params.threshold}"
        " --output {params.folder:q} --threads {threads} 2> {log:q}"


rule sentencepiece:
    input:
        train=rules.subwords.input.train,
        others=rules.subwords.input.others,
    output:
        each(PAIR / "bpe/{split}.{side}", split=SPLITS, side=SIDES),
        each(PAIR / "bpe/vocabulary.{side}", side=SIDES),
        each(PAIR / "spelled/{split}.{source}", split=SPLITS),
        data=each(PAIR / "bin/{name}", name=BINARY),
        codes=PAIR / "bpe/codes",
    log:
        PAIR / "logs/sentencepiece.{source}-{target}.log",
    wildcard_constraints:
        corpus=any_of(WITH_PIECES),
    group:
        "text"
    threads: lambda w: job(w).resources.threads
    resources:
        runtime=by_attempt(lambda w: job(w).minutes(pairs_per_minute=20_000)),
        mem_mb=by_attempt(lambda w: job(w).megabytes(least=600)),
    params:
        code=code("sentencepiece"),
        settings=lambda w: as_json(job(w).corpus.sentencepiece),
        tokenisers=lambda w: as_options(
            tokenisers=[*map(job(w).corpus.text.tokeniser_of, (w.source, w.target))]
        ),
        folder=subpath(input[0], ancestor=2),
    shell:
        "synmask sentencepiece --input {params.folder:q} --source {wildcards.source} --target {wildcards.target}"
        " --settings {params.settings:q} {params.tokenisers}"
        " --output {params.folder:q} --threads {threads} 2> {log:q}"


rule annotate:
    input:
        unpack(lambda w: JOBS.data.parses(w.corpus, w.split, w.source)),
        subwords=lambda w: PAIR / ("spelled" if job(w).corpus.sentencepiece else "bpe") / "{split}.{source}",
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
        trees=lambda wildcards, input: as_options(trees=input.get("trees")),
        heads=lambda wildcards, input: as_options(heads=input.get("heads")),
        kept=lambda wildcards, input: as_options(kept=input.kept),
    shell:
        "synmask annotate --subwords {input.subwords:q} {params.trees} {params.heads} {params.kept}"
        " --output {output.annotations:q} 2> {log:q}"

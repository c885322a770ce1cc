# Plain text → tokens → clean training pairs → sub-words → fairseq's binary data; parses → sub-words' annotations.


rule tokenise:
    input:
        text=PAIR / "text/{split}.{language}",
        jars=JOBS.tokeniser_jars,
    output:
        PAIR / "tokens/{split}.{language}",
    log:
        PAIR / "logs/tokenise.{split}.{language}.log",
    group:
        "text"
    threads: given(JOBS.resource, "threads")
    resources:
        **preparing("tokenise"),
    params:
        code=given(JOBS.code, "tokenise"),
        settings=given(JOBS.section, "text", include={"tokeniser", "lowercase"}),
        language="{language}",
    shell:
        "synmask tokenise --input {input.text:q} --output {output:q} --language {params.language}"
        " --settings {params.settings:q} --threads {threads} --jars {input.jars:q} 2> {log:q}"


rule clean:
    input:
        source=PAIR / "tokens/train.{source}",
        target=PAIR / "tokens/train.{target}",
    output:
        source=PAIR / "clean/train.{source}",
        target=PAIR / "clean/train.{target}",
        kept=PAIR / "clean/kept.{source}-{target}",
    log:
        PAIR / "logs/clean.{source}-{target}.log",
    group:
        "text"
    resources:
        **preparing("clean"),
    params:
        code=given(JOBS.code, "clean"),
        settings=given(JOBS.section, "text", exclude={"tokeniser", "lowercase"}),
    shell:
        "synmask clean --source-in {input.source:q} --target-in {input.target:q} --source-out {output.source:q}"
        " --target-out {output.target:q} --kept {output.kept:q} --settings {params.settings:q} 2> {log:q}"


rule learn_bpe:
    input:
        text=each(PAIR / "clean/train.{side}", side=SIDES),
    output:
        codes=PAIR / "bpe/codes",
        vocabularies=each(PAIR / "bpe/vocabulary.{side}", side=SIDES),
    log:
        PAIR / "logs/learn_bpe.log",
    group:
        "text"
    resources:
        **preparing("learn_bpe"),
    params:
        code=given(JOBS.code, "learn-bpe"),
        merges=lambda wildcards: JOBS.corpus(wildcards).bpe.merges,
    shell:
        "synmask learn-bpe --inputs {input.text:q} --codes {output.codes:q} --vocabularies {output.vocabularies:q}"
        " --merges {params.merges} 2> {log:q}"


rule apply_bpe:
    input:
        text=JOBS.clean_tokens,
        codes=PAIR / "bpe/codes",
        vocabulary=PAIR / "bpe/vocabulary.{language}",
    output:
        PAIR / "bpe/{split}.{language}",
    log:
        PAIR / "logs/apply_bpe.{split}.{language}.log",
    # Before trainings: what is too long to be translated stops the run at once.
    priority: 1
    group:
        "text"
    threads: given(JOBS.resource, "threads")
    resources:
        **preparing("apply_bpe"),
    params:
        code=given(JOBS.code, "apply-bpe"),
        threshold=lambda wildcards: JOBS.corpus(wildcards).bpe.vocabulary_threshold,
        most=lambda wildcards: option("most", JOBS.most_subwords(wildcards)),
    shell:
        "synmask apply-bpe --input {input.text:q} --output {output:q} --codes {input.codes:q}"
        " --vocabulary {input.vocabulary:q} --vocabulary-threshold {params.threshold} {params.most} --threads {threads} 2> {log:q}"


BINARY = [
    *expand(
        "{split}.{pair}.{side}.{kind}",
        split=TRAINED,
        pair="{source}-{target}",
        side=SIDES,
        kind=("bin", "idx"),
    ),
    *each("dict.{side}.txt", side=SIDES),
]


rule binarise:
    input:
        text=each(PAIR / "bpe/{split}.{side}", split=TRAINED, side=SIDES),
    output:
        each(PAIR / "bin/{name}", name=BINARY),
    log:
        PAIR / "logs/binarise.{source}-{target}.log",
    group:
        "text"
    resources:
        **preparing("binarise"),
    params:
        code=given(JOBS.code, "binarise"),
        text=folder_of("input"),
        output=folder_of("output"),
    shell:
        "synmask binarise --text {params.text:q} --output {params.output:q} --source {wildcards.source}"
        " --target {wildcards.target} 2> {log:q}"


rule annotate:
    input:
        unpack(lambda wildcards: JOBS.data.parses(wildcards.corpus, wildcards.split, wildcards.source)),
        subwords=PAIR / "bpe/{split}.{source}",
        kept=JOBS.kept_lines,
    output:
        annotations=PAIR / "bin/syntax.{split}.{source}.npy",
        counts=PAIR / "bin/syntax.{split}.{source}.json",
    log:
        PAIR / "logs/annotate.{split}.{source}-{target}.log",
    # Not of the group "text", whose tokens CoreNLP parses in between.
    group:
        "annotate"
    resources:
        **preparing("annotate"),
    params:
        code=given(JOBS.code, "annotate"),
        trees=lambda wildcards, input: option("trees", input.get("trees")),
        heads=lambda wildcards, input: option("heads", input.get("heads")),
        kept=lambda wildcards, input: option("kept", input.kept or None),
    shell:
        "synmask annotate --subwords {input.subwords:q} {params.trees} {params.heads} {params.kept}"
        " --output {output.annotations:q} 2> {log:q}"

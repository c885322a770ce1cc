# Plain text → tokens → clean training pairs → sub-words → fairseq's binary data; parses → sub-words' annotations.


rule tokenise:
    input:
        text=of_pair("text/{split}.{language}"),
        jars=tokeniser_jars,
        code=code("text/tokenise", "text/segment", "text/parallel"),
    output:
        of_pair("tokens/{split}.{language}"),
    log:
        of_pair("logs/tokenise.{split}.{language}.log"),
    benchmark:
        of_pair("benchmarks/tokenise.{split}.{language}.tsv")
    group:
        "text"
    conda:
        "../envs/synmask.yaml"
    threads: 2
    resources:
        mem_mb=lambda w: 6000 if CONFIG.tokeniser(w.corpus, w.language) == "stanford" else 2000,
    params:
        settings=section("text", include={"tokeniser", "lowercase"}),
    shell:
        "synmask tokenise --input {input.text:q} --output {output:q} --language {wildcards.language}"
        " --settings {params.settings:q} --threads {threads} --jars {input.jars:q} 2> {log:q}"


rule clean:
    input:
        source=of_pair("tokens/train.{source}"),
        target=of_pair("tokens/train.{target}"),
        code=code("text/clean"),
    output:
        source=of_pair("clean/train.{source}"),
        target=of_pair("clean/train.{target}"),
        kept=of_pair("clean/kept.{source}-{target}"),
    log:
        of_pair("logs/clean.{source}-{target}.log"),
    benchmark:
        of_pair("benchmarks/clean.{source}-{target}.tsv")
    group:
        "text"
    conda:
        "../envs/synmask.yaml"
    params:
        settings=section("text", exclude={"tokeniser", "lowercase"}),
    shell:
        "synmask clean --source-in {input.source:q} --target-in {input.target:q} --source-out {output.source:q}"
        " --target-out {output.target:q} --kept {output.kept:q} --settings {params.settings:q} 2> {log:q}"


rule learn_bpe:
    input:
        text=[of_pair("clean/train.{source}"), of_pair("clean/train.{target}")],
        code=code("text/bpe", "text/parallel"),
    output:
        codes=of_pair("bpe/codes"),
        vocabularies=[of_pair("bpe/vocabulary.{source}"), of_pair("bpe/vocabulary.{target}")],
    log:
        of_pair("logs/learn_bpe.log"),
    benchmark:
        of_pair("benchmarks/learn_bpe.tsv")
    group:
        "text"
    conda:
        "../envs/synmask.yaml"
    params:
        merges=lambda wildcards: corpus_of(wildcards).bpe.merges,
    shell:
        "synmask learn-bpe --inputs {input.text:q} --codes {output.codes:q} --vocabularies {output.vocabularies:q}"
        " --merges {params.merges} 2> {log:q}"


rule apply_bpe:
    input:
        text=lambda w: of_pair(f"{'clean' if w.split == 'train' else 'tokens'}/{{split}}.{{language}}"),
        codes=of_pair("bpe/codes"),
        vocabulary=of_pair("bpe/vocabulary.{language}"),
        code=code("text/bpe", "text/parallel"),
    output:
        of_pair("bpe/{split}.{language}"),
    log:
        of_pair("logs/apply_bpe.{split}.{language}.log"),
    benchmark:
        of_pair("benchmarks/apply_bpe.{split}.{language}.tsv")
    group:
        "text"
    conda:
        "../envs/synmask.yaml"
    threads: 2
    params:
        threshold=lambda wildcards: corpus_of(wildcards).bpe.vocabulary_threshold,
    shell:
        "synmask apply-bpe --input {input.text:q} --output {output:q} --codes {input.codes:q}"
        " --vocabulary {input.vocabulary:q} --vocabulary-threshold {params.threshold} --threads {threads} 2> {log:q}"


rule binarise:
    input:
        text=[f"{PAIR}/bpe/{split}.{side}" for split in TRAINED for side in ("{source}", "{target}")],
        code=code("engine/binarise", "engine/compat"),
    output:
        [
            f"{PAIR}/bin/{split}.{{source}}-{{target}}.{side}.{kind}"
            for split in TRAINED
            for side in ("{source}", "{target}")
            for kind in ("bin", "idx")
        ],
        [f"{PAIR}/bin/dict.{side}.txt" for side in ("{source}", "{target}")],
    log:
        of_pair("logs/binarise.{source}-{target}.log"),
    benchmark:
        of_pair("benchmarks/binarise.{source}-{target}.tsv")
    group:
        "text"
    conda:
        "../envs/synmask.yaml"
    params:
        text=folder_of("input"),
        output=folder_of("output"),
    shell:
        "synmask binarise --text {params.text:q} --output {params.output:q} --source {wildcards.source}"
        " --target {wildcards.target} 2> {log:q}"


rule annotate:
    input:
        unpack(lambda wildcards: CONFIG.parses(wildcards.corpus, wildcards.split, wildcards.source)),
        subwords=of_pair("bpe/{split}.{source}"),
        kept=lambda wildcards: of_pair("clean/kept.{source}-{target}") if wildcards.split == "train" else [],
        code=code("syntax/annotations", "syntax/tree", "syntax/treebank"),
    output:
        annotations=of_pair("bin/syntax.{split}.{source}.npy"),
        counts=of_pair("bin/syntax.{split}.{source}.json"),
    log:
        of_pair("logs/annotate.{split}.{source}-{target}.log"),
    benchmark:
        of_pair("benchmarks/annotate.{split}.{source}-{target}.tsv")
    # Not of the group "text", whose tokens CoreNLP parses in between.
    group:
        "annotate"
    conda:
        "../envs/synmask.yaml"
    params:
        trees=lambda wildcards, input: option("trees", input.get("trees")),
        heads=lambda wildcards, input: option("heads", input.get("heads")),
        kept=lambda wildcards, input: option("kept", input.kept or None),
    shell:
        "synmask annotate --subwords {input.subwords:q} {params.trees} {params.heads} {params.kept}"
        " --output {output.annotations:q} 2> {log:q}"

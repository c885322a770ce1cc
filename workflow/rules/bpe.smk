# Plain text → tokens → clean training pairs → sub-words → fairseq's binary data; parses → sub-words' annotations.


rule tokenise:
    input:
        text="results/{corpus}/{source}-{target}/text/{split}.{language}",
        jars=JOBS.tokeniser_jars,
    output:
        "results/{corpus}/{source}-{target}/tokens/{split}.{language}",
    log:
        "results/{corpus}/{source}-{target}/logs/tokenise.{split}.{language}.log",
    benchmark:
        "results/{corpus}/{source}-{target}/benchmarks/tokenise.{split}.{language}.tsv"
    group:
        "text"
    conda:
        "../envs/synmask.yaml"
    threads: 2
    resources:
        **JOBS.preparing("tokenise"),
    params:
        code=JOBS.code("tokenise"),
        settings=JOBS.section("text", include={"tokeniser", "lowercase"}),
        language="{language}",
    shell:
        "synmask tokenise --input {input.text:q} --output {output:q} --language {params.language}"
        " --settings {params.settings:q} --threads {threads} --jars {input.jars:q} 2> {log:q}"


rule clean:
    input:
        source="results/{corpus}/{source}-{target}/tokens/train.{source}",
        target="results/{corpus}/{source}-{target}/tokens/train.{target}",
    output:
        source="results/{corpus}/{source}-{target}/clean/train.{source}",
        target="results/{corpus}/{source}-{target}/clean/train.{target}",
        kept="results/{corpus}/{source}-{target}/clean/kept.{source}-{target}",
    log:
        "results/{corpus}/{source}-{target}/logs/clean.{source}-{target}.log",
    benchmark:
        "results/{corpus}/{source}-{target}/benchmarks/clean.{source}-{target}.tsv"
    group:
        "text"
    conda:
        "../envs/synmask.yaml"
    resources:
        **JOBS.preparing("clean"),
    params:
        code=JOBS.code("clean"),
        settings=JOBS.section("text", exclude={"tokeniser", "lowercase"}),
    shell:
        "synmask clean --source-in {input.source:q} --target-in {input.target:q} --source-out {output.source:q}"
        " --target-out {output.target:q} --kept {output.kept:q} --settings {params.settings:q} 2> {log:q}"


rule learn_bpe:
    input:
        text=[
            "results/{corpus}/{source}-{target}/clean/train.{source}",
            "results/{corpus}/{source}-{target}/clean/train.{target}",
        ],
    output:
        codes="results/{corpus}/{source}-{target}/bpe/codes",
        vocabularies=[
            "results/{corpus}/{source}-{target}/bpe/vocabulary.{source}",
            "results/{corpus}/{source}-{target}/bpe/vocabulary.{target}",
        ],
    log:
        "results/{corpus}/{source}-{target}/logs/learn_bpe.log",
    benchmark:
        "results/{corpus}/{source}-{target}/benchmarks/learn_bpe.tsv"
    group:
        "text"
    conda:
        "../envs/synmask.yaml"
    resources:
        **JOBS.preparing("learn_bpe"),
    params:
        code=JOBS.code("learn-bpe"),
        merges=lambda wildcards: JOBS.corpus(wildcards).bpe.merges,
    shell:
        "synmask learn-bpe --inputs {input.text:q} --codes {output.codes:q} --vocabularies {output.vocabularies:q}"
        " --merges {params.merges} 2> {log:q}"


rule apply_bpe:
    input:
        text=JOBS.clean_tokens,
        codes="results/{corpus}/{source}-{target}/bpe/codes",
        vocabulary="results/{corpus}/{source}-{target}/bpe/vocabulary.{language}",
    output:
        "results/{corpus}/{source}-{target}/bpe/{split}.{language}",
    log:
        "results/{corpus}/{source}-{target}/logs/apply_bpe.{split}.{language}.log",
    benchmark:
        "results/{corpus}/{source}-{target}/benchmarks/apply_bpe.{split}.{language}.tsv"
    # Before trainings: what is too long to be translated stops the run at once.
    priority: 1
    group:
        "text"
    conda:
        "../envs/synmask.yaml"
    threads: 2
    resources:
        **JOBS.preparing("apply_bpe"),
    params:
        code=JOBS.code("apply-bpe"),
        threshold=lambda wildcards: JOBS.corpus(wildcards).bpe.vocabulary_threshold,
        most=lambda wildcards: option("most", JOBS.most_subwords(wildcards)),
    shell:
        "synmask apply-bpe --input {input.text:q} --output {output:q} --codes {input.codes:q}"
        " --vocabulary {input.vocabulary:q} --vocabulary-threshold {params.threshold} {params.most} --threads {threads} 2> {log:q}"


rule binarise:
    input:
        text=[
            f"results/{{corpus}}/{{source}}-{{target}}/bpe/{split}.{side}"
            for split in TRAINED
            for side in ("{source}", "{target}")
        ],
    output:
        [
            f"results/{{corpus}}/{{source}}-{{target}}/bin/{split}.{{source}}-{{target}}.{side}.{kind}"
            for split in TRAINED
            for side in ("{source}", "{target}")
            for kind in ("bin", "idx")
        ],
        [f"results/{{corpus}}/{{source}}-{{target}}/bin/dict.{side}.txt" for side in ("{source}", "{target}")],
    log:
        "results/{corpus}/{source}-{target}/logs/binarise.{source}-{target}.log",
    benchmark:
        "results/{corpus}/{source}-{target}/benchmarks/binarise.{source}-{target}.tsv"
    group:
        "text"
    conda:
        "../envs/synmask.yaml"
    resources:
        **JOBS.preparing("binarise"),
    params:
        code=JOBS.code("binarise"),
        text=folder_of("input"),
        output=folder_of("output"),
    shell:
        "synmask binarise --text {params.text:q} --output {params.output:q} --source {wildcards.source}"
        " --target {wildcards.target} 2> {log:q}"


rule annotate:
    input:
        unpack(lambda wildcards: CONFIG.parses(wildcards.corpus, wildcards.split, wildcards.source)),
        subwords="results/{corpus}/{source}-{target}/bpe/{split}.{source}",
        kept=JOBS.kept_lines,
    output:
        annotations="results/{corpus}/{source}-{target}/bin/syntax.{split}.{source}.npy",
        counts="results/{corpus}/{source}-{target}/bin/syntax.{split}.{source}.json",
    log:
        "results/{corpus}/{source}-{target}/logs/annotate.{split}.{source}-{target}.log",
    benchmark:
        "results/{corpus}/{source}-{target}/benchmarks/annotate.{split}.{source}-{target}.tsv"
    # Not of the group "text", whose tokens CoreNLP parses in between.
    group:
        "annotate"
    conda:
        "../envs/synmask.yaml"
    resources:
        **JOBS.preparing("annotate"),
    params:
        code=JOBS.code("annotate"),
        trees=lambda wildcards, input: option("trees", input.get("trees")),
        heads=lambda wildcards, input: option("heads", input.get("heads")),
        kept=lambda wildcards, input: option("kept", input.kept or None),
    shell:
        "synmask annotate --subwords {input.subwords:q} {params.trees} {params.heads} {params.kept}"
        " --output {output.annotations:q} 2> {log:q}"

# Plain text → tokens → clean training pairs → sub-words → fairseq's binary data.


rule tokenise:
    input:
        text=PAIR + "/text/{split}.{language}",
        code=code("text/tokenise", "text/parallel"),
    output:
        PAIR + "/tokens/{split}.{language}",
    log:
        PAIR + "/logs/tokenise.{split}.{language}.log",
    benchmark:
        PAIR + "/benchmarks/tokenise.{split}.{language}.tsv"
    group:
        "text"
    conda:
        "../envs/synmask.yaml"
    threads: 2
    params:
        settings=section("text", include={"tokenise", "lowercase"}),
    shell:
        "synmask tokenise --input {input.text:q} --output {output:q} --language {wildcards.language}"
        " --settings {params.settings:q} --threads {threads} 2> {log:q}"


rule clean:
    input:
        source=PAIR + "/tokens/train.{source}",
        target=PAIR + "/tokens/train.{target}",
        code=code("text/clean"),
    output:
        source=PAIR + "/clean/train.{source}",
        target=PAIR + "/clean/train.{target}",
    log:
        PAIR + "/logs/clean.{source}-{target}.log",
    benchmark:
        PAIR + "/benchmarks/clean.{source}-{target}.tsv"
    group:
        "text"
    conda:
        "../envs/synmask.yaml"
    params:
        settings=section("text", exclude={"tokenise", "lowercase"}),
    shell:
        "synmask clean --source-in {input.source:q} --target-in {input.target:q} --source-out {output.source:q}"
        " --target-out {output.target:q} --settings {params.settings:q} 2> {log:q}"


rule learn_bpe:
    input:
        text=[PAIR + "/clean/train.{source}", PAIR + "/clean/train.{target}"],
        code=code("text/bpe"),
    output:
        codes=PAIR + "/bpe/codes",
        vocabularies=[PAIR + "/bpe/vocabulary.{source}", PAIR + "/bpe/vocabulary.{target}"],
    log:
        PAIR + "/logs/learn_bpe.log",
    benchmark:
        PAIR + "/benchmarks/learn_bpe.tsv"
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
        text=lambda w: PAIR + ("/clean/" if w.split == "train" else "/tokens/") + "{split}.{language}",
        codes=PAIR + "/bpe/codes",
        vocabulary=PAIR + "/bpe/vocabulary.{language}",
        code=code("text/bpe", "text/parallel"),
    output:
        PAIR + "/bpe/{split}.{language}",
    log:
        PAIR + "/logs/apply_bpe.{split}.{language}.log",
    benchmark:
        PAIR + "/benchmarks/apply_bpe.{split}.{language}.tsv"
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
        text=[f"{PAIR}/bpe/{split}.{side}" for split in settings.SPLITS for side in ("{source}", "{target}")],
        code=code("engine/binarise", "engine/compat"),
    output:
        [
            f"{PAIR}/bin/{split}.{{source}}-{{target}}.{side}.{kind}"
            for split in settings.SPLITS
            for side in ("{source}", "{target}")
            for kind in ("bin", "idx")
        ],
        [f"{PAIR}/bin/dict.{side}.txt" for side in ("{source}", "{target}")],
    log:
        PAIR + "/logs/binarise.{source}-{target}.log",
    benchmark:
        PAIR + "/benchmarks/binarise.{source}-{target}.tsv"
    group:
        "text"
    conda:
        "../envs/synmask.yaml"
    params:
        text=PAIR + "/bpe",
        output=PAIR + "/bin",
    shell:
        "synmask binarise --text {params.text:q} --output {params.output:q} --source {wildcards.source}"
        " --target {wildcards.target} 2> {log:q}"

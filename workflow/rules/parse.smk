# The syntax that a system induces on the validation set, and its score against gold trees.


rule parse:
    input:
        model=of_run("average.pt"),
        source=of_pair("bpe/valid.{source}"),
        code=engine_code("engine/decode", "engine/average", "engine/binarise"),
    output:
        trees=of_run("trees.jsonl"),
        distribution=of_run("distribution.json"),
    log:
        of_run("logs/parse.{source}-{target}.log"),
    benchmark:
        of_run("benchmarks/parse.{source}-{target}.tsv")
    group:
        "evaluate"
    conda:
        "../envs/synmask.yaml"
    threads: need("threads")
    resources:
        cpus_per_task=need("threads"),
        mem_mb=need("mem_mb"),
        gpu=lambda wildcards: min(1, corpus_of(wildcards).resources.gpus),
    params:
        sentence=lambda wildcards: option("sentence", corpus_of(wildcards).sentence),
    shell:
        "synmask parse --model {input.model:q} --input {input.source:q} --output {output.trees:q}"
        " --distribution {output.distribution:q} {params.sentence} --threads {resources.cpus_per_task} --gpus {resources.gpu} 2> {log:q}"


rule parseval:
    input:
        gold=lambda wildcards: CONFIG.gold_trees(wildcards.corpus, "valid", wildcards.source),
        trees=of_run("trees.jsonl"),
        code=code("evaluation/parseval", "syntax/tree", "syntax/treebank"),
    output:
        of_run("parse.json"),
    log:
        of_run("logs/parseval.{source}-{target}.log"),
    benchmark:
        of_run("benchmarks/parseval.{source}-{target}.tsv")
    group:
        "evaluate"
    conda:
        "../envs/synmask.yaml"
    params:
        run=lambda wildcards: run_name(wildcards),
    shell:
        "synmask parseval --gold {input.gold:q} --predicted {input.trees:q} --run {params.run:q}"
        " --output {output:q} 2> {log:q}"

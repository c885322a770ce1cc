# The syntax that a system induces on the validation set, and its score against gold trees.


rule parse:
    input:
        model=RUN + "/average.pt",
        source=PAIR + "/bpe/valid.{source}",
        code=engine_code("decode", "average"),
    output:
        trees=RUN + "/trees.jsonl",
        distribution=RUN + "/distribution.json",
    log:
        RUN + "/logs/parse.{source}-{target}.log",
    benchmark:
        RUN + "/benchmarks/parse.{source}-{target}.tsv"
    group:
        "evaluate"
    conda:
        "../envs/synmask.yaml"
    threads: need("threads")
    resources:
        mem_mb=need("mem_mb"),
        gpu=lambda wildcards: min(1, corpus_of(wildcards).resources.gpus),
    params:
        sentence=lambda wildcards: option("sentence", corpus_of(wildcards).sentence),
    shell:
        "synmask parse --model {input.model:q} --input {input.source:q} --output {output.trees:q}"
        " --distribution {output.distribution:q} {params.sentence} --threads {threads} 2> {log:q}"


rule parseval:
    input:
        gold=lambda wildcards: CONFIG.gold_trees(wildcards.corpus, "valid", wildcards.source),
        trees=RUN + "/trees.jsonl",
        code=code("evaluation/parseval", "syntax/tree", "syntax/treebank"),
    output:
        RUN + "/parse.json",
    log:
        RUN + "/logs/parseval.{source}-{target}.log",
    benchmark:
        RUN + "/benchmarks/parseval.{source}-{target}.tsv"
    group:
        "evaluate"
    conda:
        "../envs/synmask.yaml"
    params:
        run=run_name,
    shell:
        "synmask parseval --gold {input.gold:q} --predicted {input.trees:q} --run {params.run:q}"
        " --output {output:q} 2> {log:q}"

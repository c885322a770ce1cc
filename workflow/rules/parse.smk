# The syntax that a system induces on the validation set, and its score against gold trees.


rule parse:
    input:
        model="results/{corpus}/{source}-{target}/{system}/seed{seed}/average.pt",
        source="results/{corpus}/{source}-{target}/bpe/valid.{source}",
    output:
        trees="results/{corpus}/{source}-{target}/{system}/seed{seed}/trees.jsonl",
        distribution="results/{corpus}/{source}-{target}/{system}/seed{seed}/distribution.json",
    log:
        "results/{corpus}/{source}-{target}/{system}/seed{seed}/logs/parse.{source}-{target}.log",
    benchmark:
        "results/{corpus}/{source}-{target}/{system}/seed{seed}/benchmarks/parse.{source}-{target}.tsv"
    wildcard_constraints:
        system=any_of(CONFIG.inducing(CONFIG.systems)),
    group:
        "evaluate"
    conda:
        "../envs/synmask.yaml"
    threads: JOBS.need("threads")
    resources:
        **USING,
    params:
        code=JOBS.code("parse"),
        identity=JOBS.parsed_run,
        sentence=lambda wildcards: option("sentence", JOBS.corpus(wildcards).sentence),
    shell:
        "synmask parse --model {input.model:q} --input {input.source:q} --output {output.trees:q}"
        " --distribution {output.distribution:q} {params.sentence} --identity {params.identity:q}"
        " --threads {resources.cpus_per_task} --gpus {resources.gpu} 2> {log:q}"


rule parseval:
    input:
        unpack(JOBS.gold),
        trees="results/{corpus}/{source}-{target}/{system}/seed{seed}/trees.jsonl",
    output:
        scores="results/{corpus}/{source}-{target}/{system}/seed{seed}/parse.json",
        counts="results/{corpus}/{source}-{target}/{system}/seed{seed}/parse_counts.json",
    log:
        "results/{corpus}/{source}-{target}/{system}/seed{seed}/logs/parseval.{source}-{target}.log",
    benchmark:
        "results/{corpus}/{source}-{target}/{system}/seed{seed}/benchmarks/parseval.{source}-{target}.tsv"
    wildcard_constraints:
        system=any_of(CONFIG.inducing(CONFIG.systems)),
    group:
        "evaluate"
    conda:
        "../envs/synmask.yaml"
    params:
        code=JOBS.code("parseval"),
        own=JOBS.own("gold", "heads"),
        run=JOBS.parsed_run,
        heads=lambda wildcards, input: option("heads", input.get("heads")),
    shell:
        "synmask parseval --gold {input.gold:q} {params.heads} --predicted {input.trees:q} --run {params.run:q}"
        " --output {output.scores:q} --counts {output.counts:q} 2> {log:q}"


rule tree_page:
    input:
        gold=lambda wildcards: TARGETS.gold_trees(wildcards.experiment, wildcards.direction),
        trees=first_runs("trees.jsonl", TARGETS.inducing),
    output:
        report(
            "results/figures/{experiment}-{direction}-trees.html",
            caption="../report/tree_page.rst",
            category="Figures",
            subcategory="{experiment}",
            labels={"figure": "20 sentences, {direction}"},
        ),
    log:
        "results/logs/tree_page.{experiment}.{direction}.log",
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        code=JOBS.code("tree-page"),
        own=JOBS.own("gold"),
        labels=lambda wildcards: [*map(CONFIG.label, TARGETS.inducing(wildcards.experiment))],
        title=lambda wildcards: f"{TARGETS.entry(wildcards.experiment).title}, {wildcards.direction}: trees",
    shell:
        "synmask tree-page --gold {input.gold:q} --trees {input.trees:q} --labels {params.labels:q}"
        " --title {params.title:q} --output {output:q} 2> {log:q}"

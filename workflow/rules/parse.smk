# The syntax that a system induces on the validation set, and its score against gold trees.


rule parse:
    input:
        model=of_run("average.pt"),
        source=of_pair("bpe/valid.{source}"),
        code=engine_code("engine/decode", "engine/average"),
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
        unpack(lambda wildcards: gold(wildcards.corpus, "valid", wildcards.source)),
        trees=of_run("trees.jsonl"),
        code=code(
            "evaluation/parseval",
            "evaluation/protocols",
            "evaluation/attachment",
            "syntax/parses",
            "syntax/tree",
            "syntax/treebank",
        ),
    output:
        scores=of_run("parse.json"),
        counts=of_run("parse_counts.json"),
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
        heads=lambda wildcards, input: option("heads", input.get("heads")),
    shell:
        "synmask parseval --gold {input.gold:q} {params.heads} --predicted {input.trees:q} --run {params.run:q}"
        " --output {output.scores:q} --counts {output.counts:q} 2> {log:q}"


rule tree_figure:
    input:
        gold=gold_of_experiment,
        trees=first_runs("trees.jsonl", inducing),
        distribution=first_runs("distribution.json", lambda experiment: inducing(experiment)[:1]),
        code=code(
            "evaluation/protocols",
            "reporting/style",
            "reporting/tree_figure",
            "reporting/tree_nodes",
            "syntax/parses",
            "syntax/tree",
            "syntax/treebank",
        ),
    output:
        **captioned(of_figure("{direction}-tree"), "tree", {"figure": "trees, {direction}"}),
    log:
        "results/logs/tree_figure.{experiment}.{direction}.log",
    benchmark:
        "results/benchmarks/tree_figure.{experiment}.{direction}.tsv"
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        labels=inducing_labels,
        output=of_figure("{direction}-tree"),
    shell:
        "synmask tree-figure --gold {input.gold:q} --trees {input.trees:q} --labels {params.labels:q}"
        " --distribution {input.distribution:q} --output {params.output:q} 2> {log:q}"


rule tree_page:
    input:
        gold=gold_of_experiment,
        trees=first_runs("trees.jsonl", inducing),
        code=code(
            "evaluation/protocols",
            "reporting/html",
            "reporting/tree_nodes",
            "reporting/tree_page",
            "syntax/parses",
            "syntax/tree",
            "syntax/treebank",
        ),
        page=[f"{SRC}/reporting/page/tree_page.css", f"{SRC}/reporting/page/tree_page.js"],
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
    benchmark:
        "results/benchmarks/tree_page.{experiment}.{direction}.tsv"
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        labels=inducing_labels,
        title=lambda wildcards: f"{CONFIG.plain_experiments[wildcards.experiment].title}, {wildcards.direction}: trees",
    shell:
        "synmask tree-page --gold {input.gold:q} --trees {input.trees:q} --labels {params.labels:q}"
        " --title {params.title:q} --output {output:q} 2> {log:q}"

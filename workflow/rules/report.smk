# Scores → figures, and the parsing table. All local: each takes a second.


rule parse_table:
    input:
        scores=lambda wildcards: run_files(wildcards.experiment, "parse.json", inducing(wildcards.experiment)),
        code=code("reporting/parse_tables", "reporting/layout"),
    output:
        md=report(
            "results/tables/{experiment}-parsing.md",
            caption="../report/parse_table.rst",
            category="Tables",
            subcategory="{experiment}",
            labels={"table": "parsing"},
        ),
        csv="results/tables/{experiment}-parsing.csv",
        tex="results/tables/{experiment}-parsing.tex",
    log:
        "results/logs/parse_table.{experiment}.log",
    benchmark:
        "results/benchmarks/parse_table.{experiment}.tsv"
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        title=lambda wildcards: f"{CONFIG.plain_experiments[wildcards.experiment].title}: parsing",
        labels=lambda wildcards: labels(inducing(wildcards.experiment)),
        directions=lambda wildcards: CONFIG.plain_experiments[wildcards.experiment].directions,
        output="results/tables/{experiment}-parsing",
    shell:
        "synmask parse-table --inputs {input.scores:q} --output {params.output:q} --title {params.title:q}"
        " --labels {params.labels:q} --directions {params.directions:q} 2> {log:q}"


rule curves:
    input:
        histories=lambda wildcards: run_files(
            wildcards.experiment, "history.csv", direction=wildcards.direction
        ),
        code=code("reporting/figures"),
    output:
        **captioned(of_figure("{direction}-curves"), "curves", {"figure": "training curves, {direction}"}),
    log:
        "results/logs/curves.{experiment}.{direction}.log",
    benchmark:
        "results/benchmarks/curves.{experiment}.{direction}.tsv"
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        runs=lambda wildcards: settings.as_json(
            [
                [CONFIG.label(system), seed]
                for system in CONFIG.plain_experiments[wildcards.experiment].systems
                for seed in CONFIG.experiment_seeds(wildcards.experiment)
            ]
        ),
        output=of_figure("{direction}-curves"),
    shell:
        "synmask curves --inputs {input.histories:q} --runs {params.runs:q} --output {params.output:q} 2> {log:q}"


rule bleu_figure:
    input:
        scores=lambda wildcards: run_files(wildcards.experiment, "scores.json"),
        code=code("reporting/figures"),
    output:
        **captioned(of_figure("bleu"), "bleu", {"figure": "BLEU"}),
    log:
        "results/logs/bleu_figure.{experiment}.log",
    benchmark:
        "results/benchmarks/bleu_figure.{experiment}.tsv"
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        labels=system_labels,
        output=of_figure("bleu"),
    shell:
        "synmask bleu-figure --inputs {input.scores:q} --labels {params.labels:q} --output {params.output:q} 2> {log:q}"


rule tree_figure:
    input:
        gold=lambda wildcards: CONFIG.gold_trees(
            CONFIG.plain_experiments[wildcards.experiment].corpus, "valid", wildcards.direction.split("-")[0]
        ),
        trees=first_runs("trees.jsonl", inducing),
        distribution=first_runs("distribution.json", lambda experiment: inducing(experiment)[:1]),
        code=code("reporting/figures", "syntax/tree", "syntax/treebank"),
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
        labels=lambda wildcards: [*map(CONFIG.label, inducing(wildcards.experiment))],
        output=of_figure("{direction}-tree"),
    shell:
        "synmask tree-figure --gold {input.gold:q} --trees {input.trees:q} --labels {params.labels:q}"
        " --distribution {input.distribution:q} --output {params.output:q} 2> {log:q}"


rule distribution_figure:
    input:
        distribution=first_runs("distribution.json", lambda experiment: inducing(experiment)[-1:]),
        code=code("reporting/figures"),
    output:
        **captioned(of_figure("{direction}-distribution"), "distribution", {"figure": "P_D, {direction}"}),
    log:
        "results/logs/distribution_figure.{experiment}.{direction}.log",
    benchmark:
        "results/benchmarks/distribution_figure.{experiment}.{direction}.tsv"
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        title=lambda wildcards: CONFIG.label(inducing(wildcards.experiment)[-1]),
        output=of_figure("{direction}-distribution"),
    shell:
        "synmask distribution-figure --distribution {input.distribution:q} --title {params.title:q}"
        " --output {params.output:q} 2> {log:q}"

# Scores → figures and the page. All but `speed` are local: each takes a second.


FIGURE_CODE = code(
    "evaluation/bleu",
    "evaluation/sentences",
    "reporting/bleu_figures",
    "reporting/layout",
    "reporting/runs",
    "reporting/style",
)


rule curves:
    input:
        histories=lambda wildcards: run_files(
            wildcards.experiment, "history.csv", direction=wildcards.direction
        ),
        code=code("reporting/figures", "reporting/style"),
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
                [system, seed]
                for system in CONFIG.plain_experiments[wildcards.experiment].systems
                for seed in CONFIG.experiment_seeds(wildcards.experiment)
            ]
        ),
        labels=system_labels,
        output=of_figure("{direction}-curves"),
    shell:
        "synmask curves --inputs {input.histories:q} --runs {params.runs:q} --labels {params.labels:q} --output {params.output:q} 2> {log:q}"


rule bleu_figure:
    input:
        sentences=lambda wildcards: run_files(wildcards.experiment, "sentences.csv"),
        code=FIGURE_CODE,
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
        runs=lambda wildcards: run_triples(wildcards.experiment),
        labels=system_labels,
        output=of_figure("bleu"),
    shell:
        "synmask bleu-figure --inputs {input.sentences:q} --runs {params.runs:q} --labels {params.labels:q}"
        " --output {params.output:q} 2> {log:q}"


rule source_figure:
    input:
        sentences=lambda wildcards: run_files(
            wildcards.experiment, "sentences.csv", direction=wildcards.direction
        ),
        code=FIGURE_CODE,
    output:
        **captioned(of_figure("{direction}-source"), "source", {"figure": "BLEU by source, {direction}"}),
    log:
        "results/logs/source_figure.{experiment}.{direction}.log",
    benchmark:
        "results/benchmarks/source_figure.{experiment}.{direction}.tsv"
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        runs=lambda wildcards: run_triples(wildcards.experiment, wildcards.direction),
        labels=system_labels,
        output=of_figure("{direction}-source"),
    shell:
        "synmask source-figure --inputs {input.sentences:q} --runs {params.runs:q} --labels {params.labels:q}"
        " --output {params.output:q} 2> {log:q}"


rule task_figure:
    input:
        table=["results/tables/{table}.csv", "results/tables/{table}.runs.csv"],
        code=code("reporting/task_figures", "reporting/style"),
    output:
        **captioned("results/figures/{table}-tasks", "tasks", {"figure": "tasks"}, "{table}"),
    log:
        "results/logs/task_figure.{table}.log",
    benchmark:
        "results/benchmarks/task_figure.{table}.tsv"
    wildcard_constraints:
        table=any_of(BENCHMARK_TABLES),
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        table=lambda wildcards, input: os.path.splitext(input.table[0])[0],
        output=lambda wildcards, output: os.path.splitext(output.svg)[0],
    shell:
        "synmask task-figure --table {params.table:q} --output {params.output:q} 2> {log:q}"


rule sweep_figure:
    input:
        scores=lambda wildcards: run_files(wildcards.experiment, "scores.json"),
        code=FIGURE_CODE,
    output:
        **captioned(of_figure("sweep"), "sweep", {"figure": "sweep"}),
    log:
        "results/logs/sweep_figure.{experiment}.log",
    benchmark:
        "results/benchmarks/sweep_figure.{experiment}.tsv"
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        setting=lambda wildcards: CONFIG.swept_setting(wildcards.experiment),
        output=of_figure("sweep"),
    shell:
        "synmask sweep-figure --inputs {input.scores:q} --setting {params.setting:q} --output {params.output:q} 2> {log:q}"


rule speed:
    input:
        models=first_runs("average.pt", lambda experiment: CONFIG.plain_experiments[experiment].systems),
        code=lambda wildcards: measured_code(CONFIG.plain_experiments[wildcards.experiment].systems),
    output:
        "results/speed/{experiment}.{direction}.json",
    log:
        "results/logs/speed.{experiment}.{direction}.log",
    benchmark:
        "results/benchmarks/speed.{experiment}.{direction}.tsv"
    conda:
        "../envs/synmask.yaml"
    threads: of_experiment("threads")
    resources:
        cpus_per_task=of_experiment("threads"),
        mem_mb=of_experiment("mem_mb"),
        gpu=lambda wildcards: min(1, of_experiment("gpus")(wildcards)),
    params:
        systems=lambda wildcards: CONFIG.plain_experiments[wildcards.experiment].systems,
    shell:
        "synmask speed --models {input.models:q} --labels {params.systems} --output {output:q}"
        " --threads {resources.cpus_per_task} --gpus {resources.gpu} 2> {log:q}"


rule speed_figure:
    input:
        costs=rules.speed.output,
        code=code("reporting/figures", "reporting/style"),
    output:
        **captioned(of_figure("{direction}-speed"), "speed", {"figure": "time and memory, {direction}"}),
    log:
        "results/logs/speed_figure.{experiment}.{direction}.log",
    benchmark:
        "results/benchmarks/speed_figure.{experiment}.{direction}.tsv"
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        labels=system_labels,
        output=of_figure("{direction}-speed"),
    shell:
        "synmask speed-figure --input {input.costs:q} --labels {params.labels:q} --output {params.output:q} 2> {log:q}"


rule diagram:
    input:
        code=code(
            "reporting/diagram",
            "reporting/style",
            "induction/distribution",
            "induction/kernel.cpp",
            "text/labels",
        ),
    output:
        **captioned("results/figures/method", "method", {"figure": "the method"}, "Method"),
    log:
        "results/logs/diagram.log",
    benchmark:
        "results/benchmarks/diagram.tsv"
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        output=lambda wildcards, output: os.path.splitext(output.svg)[0],
    shell:
        "synmask diagram --output {params.output:q} 2> {log:q}"


rule distribution_figure:
    input:
        distribution=first_runs("distribution.json", lambda experiment: inducing(experiment, "heads")[-1:]),
        code=code("reporting/figures", "reporting/style"),
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
        title=lambda wildcards: CONFIG.label(inducing(wildcards.experiment, "heads")[-1]),
        output=of_figure("{direction}-distribution"),
    shell:
        "synmask distribution-figure --distribution {input.distribution:q} --title {params.title:q}"
        " --output {params.output:q} 2> {log:q}"


rule page:
    input:
        files=page_files,
        captions=sorted(glob.glob("workflow/report/*.rst")),
        template=expand("{src}/reporting/page/page.{kind}", src=SRC, kind=["html", "css", "js"]),
        trees=f"{SRC}/reporting/page/tree_page.js",
        code=code(
            "reporting/entries",
            "reporting/examples",
            "reporting/html",
            "reporting/layout",
            "reporting/report",
            "evaluation/nlu",
            "corpora/tasks",
        ),
    output:
        "results/{page}.html",
    log:
        "results/logs/{page}.log",
    benchmark:
        "results/benchmarks/{page}.tsv"
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        plan=page_plan,
        captions=lambda wildcards, input: os.path.dirname(input.captions[0]),
    shell:
        "synmask report --plan {params.plan:q} --captions {params.captions:q} --output {output:q} 2> {log:q}"

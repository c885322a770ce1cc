# Scores → figures and the page. All but `speed` are local: each takes a second.


rule curves:
    input:
        histories=run_files("history.csv"),
    output:
        **captioned("curves", "training curves, {direction}"),
    log:
        "results/logs/curves.{experiment}.{direction}.log",
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        code=JOBS.code("curves"),
        runs=lambda wildcards: as_json([run[1:] for run in runs(wildcards)]),
        labels=system_labels,
        output=stem,
    shell:
        "synmask curves --inputs {input.histories:q} --runs {params.runs:q} --labels {params.labels:q} --output {params.output:q} 2> {log:q}"


rule bleu_figure:
    input:
        sentences=run_files("sentences.csv"),
    output:
        **captioned("bleu", "BLEU", of="{experiment}"),
    log:
        "results/logs/bleu_figure.{experiment}.log",
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        code=JOBS.code("bleu-figure"),
        runs=lambda wildcards: as_json(runs(wildcards)),
        labels=system_labels,
        output=stem,
    shell:
        "synmask bleu-figure --inputs {input.sentences:q} --runs {params.runs:q} --labels {params.labels:q}"
        " --output {params.output:q} 2> {log:q}"


rule source_figure:
    input:
        sentences=run_files("sentences.csv"),
    output:
        **captioned("source", "BLEU by source, {direction}"),
    log:
        "results/logs/source_figure.{experiment}.{direction}.log",
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        code=JOBS.code("source-figure"),
        runs=lambda wildcards: as_json(runs(wildcards)),
        labels=system_labels,
        output=stem,
    shell:
        "synmask source-figure --inputs {input.sentences:q} --runs {params.runs:q} --labels {params.labels:q}"
        " --output {params.output:q} 2> {log:q}"


rule task_figure:
    input:
        table=["results/tables/{table}.csv", "results/tables/{table}.runs.csv"],
    output:
        **captioned("tasks", "tasks", of="{table}"),
    log:
        "results/logs/task_figure.{table}.log",
    wildcard_constraints:
        table=any_of(TARGETS.benchmark_tables),
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        code=JOBS.code("task-figure"),
        table=lambda wildcards, input: os.path.splitext(input.table[0])[0],
        output=stem,
    shell:
        "synmask task-figure --table {params.table:q} --output {params.output:q} 2> {log:q}"


rule sweep_figure:
    input:
        scores=run_files("scores.json"),
    output:
        **captioned("sweep", "sweep", of="{experiment}"),
    log:
        "results/logs/sweep_figure.{experiment}.log",
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        code=JOBS.code("sweep-figure"),
        setting=lambda wildcards: CONFIG.swept_setting(wildcards.experiment),
        output=stem,
    shell:
        "synmask sweep-figure --inputs {input.scores:q} --setting {params.setting:q} --output {params.output:q} 2> {log:q}"


rule speed:
    input:
        models=first_runs("average.pt", lambda experiment: TARGETS.entry(experiment).systems),
    output:
        "results/speed/{experiment}.{direction}.json",
    log:
        "results/logs/speed.{experiment}.{direction}.log",
    benchmark:
        "results/benchmarks/speed.{experiment}.{direction}.tsv"
    conda:
        "../envs/synmask.yaml"
    threads: JOBS.need("threads")
    resources:
        **USING,
    params:
        code=JOBS.code("speed"),
        systems=lambda wildcards: TARGETS.entry(wildcards.experiment).systems,
        identity=lambda w: as_json({"corpus": TARGETS.entry(w.experiment).corpus, "direction": w.direction}),
    shell:
        "synmask speed --models {input.models:q} --labels {params.systems} --output {output:q}"
        " --identity {params.identity:q}"
        " --threads {resources.cpus_per_task} --gpus {resources.gpu} 2> {log:q}"


rule speed_figure:
    input:
        costs=rules.speed.output,
    output:
        **captioned("speed", "time and memory, {direction}"),
    log:
        "results/logs/speed_figure.{experiment}.{direction}.log",
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        code=JOBS.code("speed-figure"),
        labels=system_labels,
        output=stem,
    shell:
        "synmask speed-figure --input {input.costs:q} --labels {params.labels:q} --output {params.output:q} 2> {log:q}"


rule diagram:
    output:
        **captioned("method", "the method", of=""),
    log:
        "results/logs/diagram.log",
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        code=JOBS.code("diagram"),
        output=stem,
    shell:
        "synmask diagram --output {params.output:q} 2> {log:q}"


rule distribution_figure:
    input:
        distribution=first_runs(
            "distribution.json", lambda experiment: TARGETS.inducing(experiment, "heads")[-1:]
        ),
    output:
        **captioned("distribution", "P_D, {direction}"),
    log:
        "results/logs/distribution_figure.{experiment}.{direction}.log",
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        code=JOBS.code("distribution-figure"),
        title=lambda wildcards: CONFIG.label(TARGETS.inducing(wildcards.experiment, "heads")[-1]),
        output=stem,
    shell:
        "synmask distribution-figure --distribution {input.distribution:q} --title {params.title:q}"
        " --output {params.output:q} 2> {log:q}"


rule page:
    input:
        files=lambda wildcards: TARGETS.page_files(wildcards.page),
        captions=sorted(glob.glob("workflow/report/*.rst")),
    output:
        "results/{page}.html",
    log:
        "results/logs/{page}.log",
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        code=JOBS.code("report"),
        plan=lambda wildcards: TARGETS.page_plan(wildcards.page),
        captions=lambda wildcards, input: os.path.dirname(input.captions[0]),
    shell:
        "synmask report --plan {params.plan:q} --captions {params.captions:q} --output {output:q} 2> {log:q}"

# Scores → figures and the page. All are local: each takes a second.


rule curves:
    input:
        histories=run_files("history.csv"),
        trainings=run_files("train.json"),
    output:
        **captioned("curves", "training curves, {direction}"),
    log:
        LOGS / "curves.{experiment}.{direction}.log",
    localrule: True
    params:
        code=given(JOBS.code, "curves"),
        runs=lambda wildcards: as_json([[run.system, run.seed] for run in runs(wildcards)]),
        labels=system_labels,
        output=stem,
    shell:
        "synmask curves --inputs {input.histories:q} --runs {params.runs:q} --labels {params.labels:q} --output {params.output:q} 2> {log:q}"


rule sweep_figure:
    input:
        scores=run_files("scores.json"),
    output:
        **captioned("sweep", "sweep", of="{experiment}"),
    log:
        LOGS / "sweep_figure.{experiment}.log",
    localrule: True
    params:
        code=given(JOBS.code, "sweep-figure"),
        setting=lambda wildcards: CONFIG.swept_setting(wildcards.experiment),
        output=stem,
    shell:
        "synmask sweep-figure --inputs {input.scores:q} --setting {params.setting:q} --output {params.output:q} 2> {log:q}"


rule distribution_figure:
    input:
        distribution=lambda wildcards: last_with_heads(wildcards).file("distribution.json"),
    output:
        **captioned("distribution", "P_D, {direction}"),
    log:
        LOGS / "distribution_figure.{experiment}.{direction}.log",
    localrule: True
    params:
        code=given(JOBS.code, "distribution-figure"),
        title=lambda wildcards: CONFIG.label(last_with_heads(wildcards).system),
        output=stem,
    shell:
        "synmask distribution-figure --distribution {input.distribution:q} --title {params.title:q}"
        " --output {params.output:q} 2> {log:q}"


rule page:
    input:
        files=lambda wildcards: TARGETS.page_files(wildcards.page),
        captions=sorted(glob.glob("workflow/report/*.rst")),
    output:
        RESULTS / "{page}.html",
    log:
        LOGS / "{page}.log",
    localrule: True
    params:
        code=given(JOBS.code, "report"),
        spec=lambda wildcards: TARGETS.page_spec(wildcards.page),
        captions=lambda wildcards, input: os.path.dirname(input.captions[0]),
    shell:
        "synmask report --spec {params.spec:q} --captions {params.captions:q} --output {output:q} 2> {log:q}"

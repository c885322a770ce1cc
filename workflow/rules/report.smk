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
        code=code("curves"),
        runs=lambda w: as_json([[run.system, run.seed] for run in runs(w)]),
        labels=lambda w: as_json(TARGETS.labels(run.system for run in runs(w))),
        output=subpath(output[0], strip_suffix=".svg"),
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
        code=code("sweep-figure"),
        setting=lambda w: CONFIG.swept_setting(w.experiment),
        output=subpath(output[0], strip_suffix=".svg"),
    shell:
        "synmask sweep-figure --inputs {input.scores:q} --setting {params.setting:q} --output {params.output:q} 2> {log:q}"


rule distribution_figure:
    input:
        distribution=lambda w: first_runs(w, "heads")[-1].file("distribution.json"),
    output:
        **captioned("distribution", "P_D, {direction}"),
    log:
        LOGS / "distribution_figure.{experiment}.{direction}.log",
    localrule: True
    params:
        code=code("distribution-figure"),
        title=lambda w: CONFIG.label(first_runs(w, "heads")[-1].system),
        output=subpath(output[0], strip_suffix=".svg"),
    shell:
        "synmask distribution-figure --distribution {input.distribution:q} --title {params.title:q}"
        " --output {params.output:q} 2> {log:q}"


rule page:
    input:
        files=lambda w: TARGETS.page_files(w.page),
        captions=sorted(glob.glob("workflow/report/*.rst")),
    output:
        RESULTS / "{page}.html",
    log:
        LOGS / "{page}.log",
    localrule: True
    params:
        code=code("report"),
        spec=lambda w: TARGETS.page_spec(w.page),
        captions=lambda wildcards, input: os.path.dirname(input.captions[0]),
    shell:
        "synmask report --spec {params.spec:q} --captions {params.captions:q} --output {output:q} 2> {log:q}"

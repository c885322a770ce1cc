# Scores → figures and the page. All are local: each takes a second.


rule curves:
    input:
        histories=lambda w: TARGETS.files(TARGETS.runs(w.experiment, w.direction), "history.csv"),
        trainings=lambda w: TARGETS.files(TARGETS.runs(w.experiment, w.direction), "train.json"),
    output:
        reported(
            FIGURES / "{experiment}-{direction}-curves.svg", "curves", figure="training curves, {direction}"
        ),
        multiext(FIGURES / "{experiment}-{direction}-curves", ".pdf", ".csv"),
    log:
        LOGS / "curves.{experiment}.{direction}.log",
    localrule: True
    params:
        code=code("curves"),
        labels=lambda w: as_json(
            TARGETS.labels(run.system for run in TARGETS.runs(w.experiment, w.direction))
        ),
        output=subpath(output[0], strip_suffix=".svg"),
    shell:
        "synmask curves --inputs {input.histories:q} --labels {params.labels:q} --output {params.output:q} 2> {log:q}"


rule sweep_figure:
    input:
        scores=lambda w: TARGETS.files(TARGETS.runs(w.experiment), "scores.json"),
    output:
        reported(FIGURES / "{experiment}-sweep.svg", "sweep", figure="sweep"),
        multiext(FIGURES / "{experiment}-sweep", ".pdf", ".csv"),
    log:
        LOGS / "sweep_figure.{experiment}.log",
    wildcard_constraints:
        experiment=any_of(filter(CONFIG.swept_setting, CONFIG.plain_experiments)),
    localrule: True
    params:
        code=code("sweep-figure"),
        setting=lambda w: CONFIG.swept_setting(w.experiment),
        output=subpath(output[0], strip_suffix=".svg"),
    shell:
        "synmask sweep-figure --inputs {input.scores:q} --setting {params.setting:q} --output {params.output:q} 2> {log:q}"


rule distribution_figure:
    input:
        distribution=lambda w: TARGETS.files(
            TARGETS.first_runs(w.experiment, w.direction, "heads")[-1:], "distribution.json"
        ),
    output:
        reported(
            FIGURES / "{experiment}-{direction}-distribution.svg", "distribution", figure="P_D, {direction}"
        ),
        multiext(FIGURES / "{experiment}-{direction}-distribution", ".pdf", ".csv"),
    log:
        LOGS / "distribution_figure.{experiment}.{direction}.log",
    wildcard_constraints:
        experiment=any_of(name for name in CONFIG.plain_experiments if TARGETS.runs(name, induced="heads")),
    localrule: True
    params:
        code=code("distribution-figure"),
        title=lambda w: CONFIG.label(TARGETS.first_runs(w.experiment, w.direction, "heads")[-1].system),
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

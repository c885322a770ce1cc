# One training per system and seed, then the average of its last epochs, or its best one.


rule train:
    input:
        data=rules.subwords.output.data,
        annotations=lambda w: job(w).annotations(*TRAINING_SPLITS, training=True),
        templates=lambda w: job(w).if_templated(
            TEMPLATES / "train.{target}", PREDICTOR / "valid.{target}", TEMPLATES / "bin/dict.{target}.txt"
        ),
        records=lambda w: job(w).if_templated(
            TEMPLATES / "train.{target}.json", PREDICTOR / "valid.{target}.json"
        ),
    # The checkpoints lie in a folder that is no output: Snakemake leaves it alone when a training fails,
    # so that the next attempt resumes.
    output:
        summary=RUN / "train.json",
        history=RUN / "history.csv",
    log:
        RUN / "train.log",
    threads: lambda w: job(w).resources.threads
    resources:
        **TRAINING_RESOURCES,
        again=PLANNED.again("train"),
    params:
        code=code("train"),
        settings=settings("train"),
        keep=lambda w: job(w).training.kept,
        data=subpath(input[0], parent=True),
        run=subpath(output[0], parent=True),
    shell:
        train_command(
            "synmask train --data {params.data:q} --run {params.run:q} --source {wildcards.source}"
            " --target {wildcards.target} --settings {params.settings:q} --seed {wildcards.seed} --keep {params.keep}"
            " --templates {input.templates:q}"
        )


rule average:
    input:
        trained=RUN / "train.json",
        dictionaries=each(PAIR / "bin/dict.{side}.txt", side=SIDES),
        codes=PAIR / "bpe/codes",
        vocabulary=PAIR / "bpe/vocabulary.{source}",
        template_model=lambda w: job(w).if_templated(PREDICTOR / "average.pt"),
    output:
        RUN / "average.pt",
    log:
        RUN / "logs/average.{source}-{target}.log",
    group:
        "evaluate"
    resources:
        mem_mb=by_attempt(4000),
        keep_checkpoints=lambda w: int(job(w).resources.keep_checkpoints),
    params:
        code=code("average"),
        text=lambda w: job(w).text_options(),
        template_model=lambda wildcards, input: as_options(template_model=input.template_model),
        data=lambda wildcards, input: os.path.dirname(input.dictionaries[0]),
        run=subpath(output[0], parent=True),
    shell:
        "synmask average --run {params.run:q} --data {params.data:q} --codes {input.codes:q}"
        " --vocabulary {input.vocabulary:q} {params.text}"
        " --output {output:q} {params.template_model} --keep-checkpoints {resources.keep_checkpoints} 2> {log:q}"

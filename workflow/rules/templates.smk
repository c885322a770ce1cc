# ST-NMT: templates of the target, and the model that predicts them. A run's own model reads its best ones.


rule templates:
    input:
        subwords=each(PAIR / "bpe/{split}.{side}", split=TRAINING_SPLITS, side=SIDES),
        kept=PAIR / "clean/kept.{source}-{target}",
        trees=lambda w: job(w).target_trees(*TRAINING_SPLITS),
    output:
        each(TEMPLATES / "{split}.{target}{ending}", split=TRAINING_SPLITS, ending=("", ".json")),
        each(TEMPLATES / "bpe/{split}.{side}", split=TRAINING_SPLITS, side=SIDES),
        data=each(TEMPLATES / "bin/{name}", name=BINARY),
    log:
        TEMPLATES / "logs/templates.{source}-{target}.log",
    wildcard_constraints:
        system=any_of(name for name, system in CONFIG.systems.items() if system.templated),
    # Not of the group "text", whose tokens CoreNLP parses in between.
    group:
        "annotate"
    resources:
        runtime=by_attempt(lambda w: job(w).minutes(pairs_per_minute=20_000)),
        mem_mb=by_attempt(lambda w: job(w).megabytes(least=1200)),
    params:
        code=code("templates"),
        inputs_checksum=lambda w: job(w).inputs_checksum(job(w).target_trees(*TRAINING_SPLITS)),
        settings=lambda w: as_json(CONFIG.template_cut(w.corpus, f"{w.source}-{w.target}", w.system)),
        folder=subpath(input[0], ancestor=2),
        output=subpath(output[0], parent=True),
    shell:
        "synmask templates --input {params.folder:q} --source {wildcards.source} --target {wildcards.target}"
        " --train-trees {input.trees[0]:q} --valid-trees {input.trees[1]:q} --settings {params.settings:q}"
        " --output {params.output:q} 2> {log:q}"


use rule train as train_templates with:
    input:
        data=rules.templates.output.data,
        templates=[],
        records=[],
    output:
        summary=PREDICTOR / "train.json",
        history=PREDICTOR / "history.csv",
    log:
        PREDICTOR / "train.log",
    resources:
        **TRAINING_RESOURCES,
        again=PLANNED.again("train_templates"),
    params:
        code=code("train", guided=False),
        settings=settings("train_templates"),


use rule average as average_templates with:
    input:
        trained=PREDICTOR / "train.json",
        dictionaries=each(TEMPLATES / "bin/dict.{side}.txt", side=SIDES),
        codes=PAIR / "bpe/codes",
        vocabulary=PAIR / "bpe/vocabulary.{source}",
        template_model=[],
    output:
        PREDICTOR / "average.pt",
    log:
        PREDICTOR / "logs/average.{source}-{target}.log",
    # Not of the group "evaluate", for the run's own training comes in between; nor are the rules after it of its group,
    # whose two predictions would ask for a GPU each.
    group:
        "template"
    params:
        code=code("average", guided=False),
        text=lambda w: job(w).text_options(target="none"),


rule predict_templates:
    input:
        model=PREDICTOR / "average.pt",
        record=PREDICTOR / "train.json",
        source=PAIR / "bpe/{split}.{source}",
    output:
        templates=PREDICTOR / "{split}.{target}",
        record=PREDICTOR / "{split}.{target}.json",
    log:
        PREDICTOR / "logs/predict.{split}.{source}-{target}.log",
    threads: lambda w: job(w).resources.threads
    resources:
        **INFERENCE_RESOURCES,
        runtime=by_attempt(60),
    params:
        code=code("predict-templates", guided=False),
        decoding=lambda w: as_options(**job(w).corpus.decoding.plain()),
    shell:
        "synmask predict-templates --model {input.model:q} --input {input.source:q} --output {output.templates:q}"
        " {params.decoding} --threads {resources.cpus_per_task} --gpus {resources.gpu} 2> {log:q}"

# ST-NMT: templates of the target, and the model that predicts them. A run's own model reads its best ones.


rule templates:
    input:
        trees=lambda wildcards: CONFIG.parses(wildcards.corpus, wildcards.split, wildcards.target)["trees"],
        source="results/{corpus}/{source}-{target}/bpe/{split}.{source}",
        target="results/{corpus}/{source}-{target}/bpe/{split}.{target}",
        kept=JOBS.kept_lines,
    output:
        templates="results/{corpus}/{source}-{target}/{system}/templates/{split}.{target}",
        counts="results/{corpus}/{source}-{target}/{system}/templates/{split}.{target}.json",
        source="results/{corpus}/{source}-{target}/{system}/templates/bpe/{split}.{source}",
        target="results/{corpus}/{source}-{target}/{system}/templates/bpe/{split}.{target}",
    log:
        "results/{corpus}/{source}-{target}/{system}/templates/logs/templates.{split}.{source}-{target}.log",
    benchmark:
        "results/{corpus}/{source}-{target}/{system}/templates/benchmarks/templates.{split}.{source}-{target}.tsv"
    # Not of the group "text", whose tokens CoreNLP parses in between.
    group:
        "annotate"
    conda:
        "../envs/synmask.yaml"
    params:
        code=JOBS.code("templates"),
        settings=JOBS.template_cut,
        kept=lambda wildcards, input: option("kept", input.kept or None),
    shell:
        "synmask templates --source {input.source:q} --target {input.target:q} --trees {input.trees:q} {params.kept}"
        " --settings {params.settings:q} --output {output.templates:q} --source-out {output.source:q}"
        " --templates-out {output.target:q} 2> {log:q}"


use rule binarise as binarise_templates with:
    input:
        text=[
            f"results/{{corpus}}/{{source}}-{{target}}/{{system}}/templates/bpe/{split}.{side}"
            for split in TRAINED
            for side in ("{source}", "{target}")
        ],
    output:
        [path.replace("{target}/bin", "{target}/{system}/templates/bin") for path in rules.binarise.output],
    log:
        "results/{corpus}/{source}-{target}/{system}/templates/logs/binarise.{source}-{target}.log",
    benchmark:
        "results/{corpus}/{source}-{target}/{system}/templates/benchmarks/binarise.{source}-{target}.tsv"
    group:
        "annotate"


use rule train as train_templates with:
    input:
        data=rules.binarise_templates.output,
        templates=[],
    output:
        summary="results/{corpus}/{source}-{target}/{system}/seed{seed}/template/train.json",
        history="results/{corpus}/{source}-{target}/{system}/seed{seed}/template/history.csv",
    log:
        "results/{corpus}/{source}-{target}/{system}/seed{seed}/template/train.log",
    benchmark:
        "results/{corpus}/{source}-{target}/{system}/seed{seed}/template/benchmarks/train.{source}-{target}.tsv"
    params:
        code=JOBS.code("train", guided=False),
        settings=JOBS.template_settings,


use rule average as average_templates with:
    input:
        trained="results/{corpus}/{source}-{target}/{system}/seed{seed}/template/train.json",
        dictionaries=[
            "results/{corpus}/{source}-{target}/{system}/templates/bin/dict.{source}.txt",
            "results/{corpus}/{source}-{target}/{system}/templates/bin/dict.{target}.txt",
        ],
        codes="results/{corpus}/{source}-{target}/bpe/codes",
        vocabulary="results/{corpus}/{source}-{target}/bpe/vocabulary.{source}",
        template_model=[],
    output:
        "results/{corpus}/{source}-{target}/{system}/seed{seed}/template/average.pt",
    log:
        "results/{corpus}/{source}-{target}/{system}/seed{seed}/template/logs/average.{source}-{target}.log",
    benchmark:
        "results/{corpus}/{source}-{target}/{system}/seed{seed}/template/benchmarks/average.{source}-{target}.tsv"
    # Not of the group "evaluate", for the run's own training comes in between; nor are the rules after it of its group,
    # whose two predictions would ask for a GPU each.
    group:
        "template"
    params:
        code=JOBS.code("average", guided=False),
        settings=JOBS.template_settings,
        identity=JOBS.template_run,
        text=JOBS.template_text,


rule predict_templates:
    input:
        model="results/{corpus}/{source}-{target}/{system}/seed{seed}/template/average.pt",
        source="results/{corpus}/{source}-{target}/bpe/{split}.{source}",
    output:
        "results/{corpus}/{source}-{target}/{system}/seed{seed}/template/{split}.{target}",
    log:
        "results/{corpus}/{source}-{target}/{system}/seed{seed}/template/logs/predict.{split}.{source}-{target}.log",
    benchmark:
        "results/{corpus}/{source}-{target}/{system}/seed{seed}/template/benchmarks/predict.{split}.{source}-{target}.tsv"
    conda:
        "../envs/synmask.yaml"
    threads: JOBS.need("threads")
    resources:
        **USING,
    params:
        code=JOBS.code("predict-templates", guided=False),
        settings=JOBS.section("decoding"),
        identity=JOBS.template_run,
    shell:
        "synmask predict-templates --model {input.model:q} --input {input.source:q} --output {output:q}"
        " --settings {params.settings:q} --identity {params.identity:q} --threads {resources.cpus_per_task} --gpus {resources.gpu} 2> {log:q}"


rule score_templates:
    input:
        predicted=TEMPLATES,
        gold=[
            f"results/{{corpus}}/{{source}}-{{target}}/{{system}}/templates/{split}.{{target}}"
            for split in DECODED
        ],
        train="results/{corpus}/{source}-{target}/{system}/seed{seed}/template/train.json",
    output:
        "results/{corpus}/{source}-{target}/{system}/seed{seed}/template/scores.json",
    log:
        "results/{corpus}/{source}-{target}/{system}/seed{seed}/template/logs/score.{source}-{target}.log",
    benchmark:
        "results/{corpus}/{source}-{target}/{system}/seed{seed}/template/benchmarks/score.{source}-{target}.tsv"
    conda:
        "../envs/synmask.yaml"
    params:
        code=JOBS.code("score-templates"),
        run=JOBS.template_run,
        splits=DECODED,
    shell:
        "synmask score-templates --splits {params.splits} --predicted {input.predicted:q} --gold {input.gold:q}"
        " --run {params.run:q} --train {input.train:q} --output {output:q} 2> {log:q}"

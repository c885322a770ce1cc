# Language understanding: tasks → ids → fine-tuning → the best epoch's model → predictions → scores.


rule glue_task:
    input:
        sources=lambda w: job(w).task_sources(),
    output:
        TASK / "{part}.tsv",
    log:
        TASK / "logs/glue_task.{part}.log",
    localrule: True
    params:
        code=code("glue"),
        inputs_checksum=lambda w: job(w).inputs_checksum(job(w).task_sources()),
        rows=lambda w: (job(w).task.rows | job(w).task.test_rows)[w.part],
    shell:
        "synmask glue --task {wildcards.task} --part {wildcards.part} --sources {input.sources:q}"
        " --output {output:q} --rows {params.rows} 2> {log:q}"


rule encode_task:
    input:
        tsv=TASK / "{part}.tsv",
        vocabulary=lambda w: job(w).vocabulary_files(),
    output:
        TASK / "ids/{part}.npz",
    log:
        TASK / "logs/encode_task.{part}.log",
    localrule: True
    params:
        code=code("encode-task"),
        weights=lambda w: job(w).weights_folder(),
        most=lambda w: job(w).task.max_tokens,
    shell:
        "synmask encode-task --task {wildcards.task} --input {input.tsv:q} --weights {params.weights:q}"
        " --max-tokens {params.most} --output {output:q} 2> {log:q}"


rule finetune:
    input:
        train=TASK / "ids/train.npz",
        valid=lambda w: f"{TASK}/ids/{job(w).task.parts[0]}.npz",
        syntax=lambda w: job(w).task_syntax("train", "valid"),
        weights=lambda w: job(w).weights_files(),
    output:
        summary=TUNED / "train.json",
        history=TUNED / "history.csv",
        model=TUNED / "best.pt",
    log:
        TUNED / "train.log",
    threads: lambda w: job(w).resources.threads
    resources:
        **TRAINING_RESOURCES,
        again=PLANNED.again("finetune"),
        keep_checkpoints=lambda w: int(job(w).resources.keep_checkpoints),
    params:
        code=code("finetune"),
        settings=settings("finetune"),
        data=lambda w, input: as_options(data=os.path.dirname(input.train), valid=job(w).task.parts[0]),
        weights=lambda w: job(w).weights_folder(),
        run=subpath(output[0], parent=True),
    shell:
        train_command(
            "synmask finetune {params.data} --weights {params.weights:q}"
            " --run {params.run:q} --settings {params.settings:q}"
            " --seed {wildcards.seed} --keep-checkpoints {resources.keep_checkpoints}"
        )


rule predict:
    input:
        model=TUNED / "best.pt",
        record=TUNED / "train.json",
        data=TASK / "ids/{part}.npz",
        syntax=lambda w: job(w).task_syntax("{part}"),
        weights=lambda w: job(w).weights_files(),
    output:
        answers=TUNED / "predictions.{part}.txt",
        record=TUNED / "predictions.{part}.json",
    log:
        TUNED / "logs/predict.{part}.log",
    group:
        "nlu-evaluate"
    threads: lambda w: job(w).resources.threads
    resources:
        **INFERENCE_RESOURCES,
        runtime=by_attempt(60),
    params:
        code=code("predict"),
        weights=lambda w: job(w).weights_folder(),
    shell:
        "synmask predict --model {input.model:q} --weights {params.weights:q} --data {input.data:q}"
        " --output {output.answers:q} --threads {resources.cpus_per_task} --gpus {resources.gpu} 2> {log:q}"


rule glue_submission:
    input:
        lambda w: job(w).submission_inputs(),
    output:
        packed=BENCHMARK / "submission/{system}.zip",
        summary=BENCHMARK / "submission/{system}.json",
    log:
        BENCHMARK / "logs/glue_submission.{system}.log",
    localrule: True
    params:
        code=code("glue-submission"),
        benchmark=BENCHMARK,
        seeds=lambda w: runs.tuning_seeds(CONFIG, w.benchmark),
        rows=lambda w: job(w).submission_rows(),
    shell:
        "synmask glue-submission --benchmark {params.benchmark:q} --system {wildcards.system} --seeds {params.seeds}"
        " --rows {params.rows} --output {output.packed:q} --summary {output.summary:q} 2> {log:q}"


rule nlu_score:
    input:
        gold=lambda w: each(TASK / "{part}.tsv", part=job(w).task.parts),
        predicted=lambda w: each(TUNED / "predictions.{part}.txt", part=job(w).task.parts),
        records=lambda w: each(TUNED / "predictions.{part}.json", part=job(w).task.parts),
        record=TUNED / "train.json",
    output:
        TUNED / "scores.json",
        TUNED / "examples.csv",
    log:
        TUNED / "logs/nlu_score.log",
    group:
        "nlu-evaluate"
    params:
        code=code("nlu-score"),
        parts=lambda w: job(w).task.parts,
        run=subpath(output[0], parent=True),
    shell:
        "synmask nlu-score --run {params.run:q} --task {wildcards.task} --parts {params.parts}"
        " --gold {input.gold:q} 2> {log:q}"


rule nlu_baselines:
    input:
        train=TASK / "train.tsv",
        gold=lambda w: each(TASK / "{part}.tsv", part=job(w).task.parts),
    output:
        TASK / "baselines.json",
    log:
        TASK / "logs/nlu_baselines.log",
    localrule: True
    params:
        code=code("nlu-baselines"),
        parts=lambda w: job(w).task.parts,
    shell:
        "synmask nlu-baselines --task {wildcards.task} --train {input.train:q} --parts {params.parts}"
        " --gold {input.gold:q} --corpus {wildcards.benchmark} --output {output:q} 2> {log:q}"

# Language understanding: tasks → ids → fine-tuning → the best epoch's model → predictions → scores.


rule demo_task:
    output:
        tsv="results/{benchmark}/{task}/{part}.tsv",
        parses=expand("results/{benchmark}/{task}/syntax/{part}.{kind}", kind=PARSES, allow_missing=True),
    log:
        "results/{benchmark}/{task}/logs/demo_task.{part}.log",
    wildcard_constraints:
        benchmark=any_of(JOBS.benchmarks_from(generated=True)),
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        code=JOBS.code("demo-task"),
        settings=JOBS.task_sizes,
        parses=lambda wildcards, output: os.path.splitext(output.parses[0])[0],
    shell:
        "synmask demo-task --task {wildcards.task} --part {wildcards.part} --settings {params.settings:q}"
        " --output {output.tsv:q} --parses {params.parses:q} 2> {log:q}"


rule glue_task:
    input:
        sources=JOBS.task_sources,
    output:
        "results/{benchmark}/{task}/{part}.tsv",
    log:
        "results/{benchmark}/{task}/logs/glue_task.{part}.log",
    wildcard_constraints:
        benchmark=any_of(JOBS.benchmarks_from(generated=False)),
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        code=JOBS.code("glue"),
        own=JOBS.own("sources"),
        rows=JOBS.part_rows,
    shell:
        "synmask glue --task {wildcards.task} --part {wildcards.part} --sources {input.sources:q}"
        " --output {output:q} --rows {params.rows} 2> {log:q}"


rule encode_task:
    input:
        tsv="results/{benchmark}/{task}/{part}.tsv",
        vocabulary=lambda wildcards: JOBS.weights_files(wildcards)[1:],
    output:
        "results/{benchmark}/{task}/ids/{part}.npz",
    log:
        "results/{benchmark}/{task}/logs/encode_task.{part}.log",
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        code=JOBS.code("encode-task"),
        weights=JOBS.weights_folder,
        most=lambda wildcards: JOBS.task(wildcards).max_tokens,
    shell:
        "synmask encode-task --task {wildcards.task} --input {input.tsv:q} --weights {params.weights:q}"
        " --max-tokens {params.most} --output {output:q} 2> {log:q}"


rule finetune:
    input:
        train="results/{benchmark}/{task}/ids/train.npz",
        valid=lambda w: f"results/{w.benchmark}/{w.task}/ids/{JOBS.task(w).parts[0]}.npz",
        syntax=JOBS.task_syntax("train", "valid"),
        weights=JOBS.weights_files,
    output:
        summary="results/{benchmark}/{task}/{system}/seed{seed}/train.json",
        history="results/{benchmark}/{task}/{system}/seed{seed}/history.csv",
        model="results/{benchmark}/{task}/{system}/seed{seed}/best.pt",
    log:
        "results/{benchmark}/{task}/{system}/seed{seed}/train.log",
    benchmark:
        "results/{benchmark}/{task}/{system}/seed{seed}/benchmarks/finetune.tsv"
    conda:
        "../envs/synmask.yaml"
    threads: JOBS.need("threads")
    resources:
        **TRAINING,
        keep_checkpoints=JOBS.need("keep_checkpoints"),
    params:
        code=JOBS.code("finetune"),
        identity=JOBS.tuned_model,
        settings=JOBS.finetuning_settings,
        data=lambda wildcards, input: os.path.dirname(input.train),
        valid=lambda wildcards: JOBS.task(wildcards).parts[0],
        weights=JOBS.weights_folder,
        run=folder_of("output"),
    shell:
        "trap : TERM HUP; synmask finetune --data {params.data:q} --valid {params.valid} --weights {params.weights:q}"
        " --run {params.run:q} --settings {params.settings:q} --identity {params.identity:q}"
        " --seed {wildcards.seed} --code {params.code}"
        " --threads {resources.cpus_per_task} --gpus {resources.gpu} --keep-checkpoints {resources.keep_checkpoints}"
        " --checkpoint-minutes {resources.checkpoint_minutes}"
        " --tensorboard {resources.tensorboard} --restart >> {log:q} 2>&1"


rule predict:
    input:
        model="results/{benchmark}/{task}/{system}/seed{seed}/best.pt",
        data="results/{benchmark}/{task}/ids/{part}.npz",
        syntax=JOBS.task_syntax("{part}"),
        weights=JOBS.weights_files,
    output:
        "results/{benchmark}/{task}/{system}/seed{seed}/predictions.{part}.txt",
    log:
        "results/{benchmark}/{task}/{system}/seed{seed}/logs/predict.{part}.log",
    benchmark:
        "results/{benchmark}/{task}/{system}/seed{seed}/benchmarks/predict.{part}.tsv"
    group:
        "nlu-evaluate"
    conda:
        "../envs/synmask.yaml"
    threads: JOBS.need("threads")
    resources:
        **USING,
    params:
        code=JOBS.code("predict"),
        identity=JOBS.tuned_model,
        weights=JOBS.weights_folder,
    shell:
        "synmask predict --model {input.model:q} --weights {params.weights:q} --data {input.data:q}"
        " --output {output:q} --identity {params.identity:q} --threads {resources.cpus_per_task}"
        " --gpus {resources.gpu} 2> {log:q}"


rule predict_test:
    input:
        models=JOBS.of_seeds("best.pt"),
        scores=JOBS.of_seeds("scores.json"),
        data="results/{benchmark}/{task}/ids/{part}.npz",
        syntax=JOBS.task_syntax("{part}"),
        weights=JOBS.weights_files,
    output:
        answers="results/{benchmark}/{task}/{system}/test/{part}.txt",
        chosen="results/{benchmark}/{task}/{system}/test/{part}.json",
    log:
        "results/{benchmark}/{task}/{system}/logs/predict_test.{part}.log",
    benchmark:
        "results/{benchmark}/{task}/{system}/benchmarks/predict_test.{part}.tsv"
    conda:
        "../envs/synmask.yaml"
    threads: JOBS.need("threads")
    resources:
        **USING,
    params:
        code=JOBS.code("predict-test"),
        identity=JOBS.tuned_model,
        valid=lambda wildcards: JOBS.task(wildcards).parts[0],
        weights=JOBS.weights_folder,
    shell:
        "synmask predict-test --task {wildcards.task} --valid {params.valid} --models {input.models:q}"
        " --scores {input.scores:q} --weights {params.weights:q} --data {input.data:q} --output {output.answers:q}"
        " --chosen {output.chosen:q} --identity {params.identity:q} --threads {resources.cpus_per_task} --gpus {resources.gpu} 2> {log:q}"


rule glue_submission:
    input:
        answers=JOBS.submitted("txt"),
        chosen=JOBS.submitted("json"),
    output:
        packed="results/{benchmark}/submission/{system}.zip",
        summary="results/{benchmark}/submission/{system}.json",
    log:
        "results/{benchmark}/logs/glue_submission.{system}.log",
    benchmark:
        "results/{benchmark}/benchmarks/glue_submission.{system}.tsv"
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        code=JOBS.code("glue-submission"),
        files=list(SUBMISSION),
        rows=JOBS.submitted_rows,
        run=lambda wildcards: as_json({"corpus": wildcards.benchmark, "system": wildcards.system}),
    shell:
        "synmask glue-submission --files {params.files} --rows {params.rows} --predicted {input.answers:q}"
        " --chosen {input.chosen:q} --run {params.run:q} --output {output.packed:q} --summary {output.summary:q}"
        " 2> {log:q}"


rule nlu_score:
    input:
        gold=JOBS.of_parts("results/{benchmark}/{task}/{part}.tsv"),
        predicted=JOBS.of_parts("results/{benchmark}/{task}/{system}/seed{seed}/predictions.{part}.txt"),
        train="results/{benchmark}/{task}/{system}/seed{seed}/train.json",
    output:
        scores="results/{benchmark}/{task}/{system}/seed{seed}/scores.json",
        examples="results/{benchmark}/{task}/{system}/seed{seed}/examples.csv",
    log:
        "results/{benchmark}/{task}/{system}/seed{seed}/logs/nlu_score.log",
    benchmark:
        "results/{benchmark}/{task}/{system}/seed{seed}/benchmarks/nlu_score.tsv"
    group:
        "nlu-evaluate"
    conda:
        "../envs/synmask.yaml"
    params:
        code=JOBS.code("nlu-score"),
        parts=lambda wildcards: JOBS.task(wildcards).parts,
        run=JOBS.finetuned_run,
    shell:
        "synmask nlu-score --task {wildcards.task} --parts {params.parts} --gold {input.gold:q}"
        " --predicted {input.predicted:q} --run {params.run:q} --train {input.train:q} --output {output.scores:q}"
        " --examples {output.examples:q} 2> {log:q}"


rule nlu_baselines:
    input:
        train="results/{benchmark}/{task}/train.tsv",
        gold=JOBS.of_parts("results/{benchmark}/{task}/{part}.tsv"),
    output:
        "results/{benchmark}/{task}/baselines.json",
    log:
        "results/{benchmark}/{task}/logs/nlu_baselines.log",
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        code=JOBS.code("nlu-baselines"),
        parts=lambda wildcards: JOBS.task(wildcards).parts,
        run=lambda wildcards: as_json({"corpus": wildcards.benchmark}),
    shell:
        "synmask nlu-baselines --task {wildcards.task} --train {input.train:q} --parts {params.parts}"
        " --gold {input.gold:q} --run {params.run:q} --output {output:q} 2> {log:q}"

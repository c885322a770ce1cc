# Language understanding: tasks → ids → fine-tuning → the best epoch's model → predictions → scores.


rule demo_task:
    input:
        code=code(
            "corpora/demo/abstract",
            "corpora/demo/english",
            "corpora/demo/entailment",
            "corpora/demo/faults",
            "corpora/demo/grammar",
            "corpora/demo/lexicon",
            "corpora/demo/meaning",
            "corpora/demo/phrases",
            "corpora/demo/tasks",
            "corpora/demo/variants",
            "corpora/tasks",
            "syntax/treebank",
        ),
    output:
        tsv=of_task("{part}.tsv"),
        parses=expand(of_task("syntax/{part}.{kind}"), kind=PARSES, allow_missing=True),
    log:
        of_task("logs/demo_task.{part}.log"),
    benchmark:
        of_task("benchmarks/demo_task.{part}.tsv")
    wildcard_constraints:
        benchmark=any_of(name for name, entry in CONFIG.benchmarks.items() if entry.generate is not None),
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        settings=lambda wildcards: settings.as_json(
            {"seed": benchmark_of(wildcards).generate, **task_of(wildcards).rows}
        ),
        parses=lambda wildcards, output: os.path.splitext(output.parses[0])[0],
    shell:
        "synmask demo-task --task {wildcards.task} --part {wildcards.part} --settings {params.settings:q}"
        " --output {output.tsv:q} --parses {params.parses:q} 2> {log:q}"


rule glue_task:
    input:
        sources=lambda wildcards: CONFIG.task_sources(wildcards.benchmark, wildcards.task),
        code=code("corpora/archive", "corpora/glue", "corpora/tasks"),
    output:
        of_task("{part}.tsv"),
    log:
        of_task("logs/glue_task.{part}.log"),
    benchmark:
        of_task("benchmarks/glue_task.{part}.tsv")
    wildcard_constraints:
        benchmark=any_of(name for name, entry in CONFIG.benchmarks.items() if entry.generate is None),
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        rows=lambda wildcards: task_of(wildcards).rows[wildcards.part],
    shell:
        "synmask glue --task {wildcards.task} --part {wildcards.part} --sources {input.sources:q}"
        " --output {output:q} --rows {params.rows} 2> {log:q}"


rule encode_task:
    input:
        tsv=of_task("{part}.tsv"),
        weights=weights_files,
        code=code(
            "corpora/tasks",
            "engine/compat",
            "engine/finetune",
            "engine/sentences",
            "engine/weights",
            "text/gpt2",
        ),
    output:
        of_task("ids/{part}.npz"),
    log:
        of_task("logs/encode_task.{part}.log"),
    benchmark:
        of_task("benchmarks/encode_task.{part}.tsv")
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        weights=weights_folder,
        most=lambda wildcards: task_of(wildcards).max_tokens,
    shell:
        "synmask encode-task --task {wildcards.task} --input {input.tsv:q} --weights {params.weights:q}"
        " --max-tokens {params.most} --output {output:q} 2> {log:q}"


rule finetune:
    input:
        train=of_task("ids/train.npz"),
        valid=lambda wildcards: of_parts(of_task("ids/{part}.npz"))(wildcards)[0],
        syntax=task_syntax(lambda wildcards: ["train", task_of(wildcards).parts[0]]),
        weights=weights_files,
        code=roberta_code(
            "corpora/tasks",
            "engine/checkpoints",
            "engine/finetune",
            "engine/loop",
            "engine/stage",
            "evaluation/nlu",
        ),
    output:
        summary=f"{FINETUNING}/train.json",
        history=f"{FINETUNING}/history.csv",
        model=f"{FINETUNING}/best.pt",
    log:
        f"{FINETUNING}/train.log",
    benchmark:
        f"{FINETUNING}/benchmarks/finetune.tsv"
    conda:
        "../envs/synmask.yaml"
    threads: finetuning_need("threads")
    resources:
        cpus_per_task=finetuning_need("threads"),
        mem_mb=finetuning_need("mem_mb"),
        runtime=finetuning_need("runtime"),
        gpu=finetuning_need("gpus"),
        checkpoint_minutes=finetuning_need("checkpoint_minutes"),
        keep_checkpoints=lambda wildcards: int(benchmark_of(wildcards).resources.keep_checkpoints),
    params:
        settings=finetuning_settings,
        data=lambda wildcards, input: os.path.dirname(input.train),
        valid=lambda wildcards: task_of(wildcards).parts[0],
        weights=weights_folder,
        run=folder_of("output"),
    shell:
        "trap : TERM; synmask finetune --data {params.data:q} --valid {params.valid} --weights {params.weights:q}"
        " --run {params.run:q} --settings {params.settings:q} --seed {wildcards.seed} --code {input.code:q}"
        " --threads {resources.cpus_per_task} --gpus {resources.gpu} --keep-checkpoints {resources.keep_checkpoints}"
        " --checkpoint-minutes {resources.checkpoint_minutes} --restart 2>&1 | (trap '' TERM; exec tee {log:q} >&2)"


rule predict:
    input:
        model=f"{FINETUNING}/best.pt",
        data=of_task("ids/{part}.npz"),
        syntax=task_syntax(lambda wildcards: [wildcards.part]),
        weights=weights_files,
        code=roberta_code("corpora/tasks", "engine/finetune"),
    output:
        f"{FINETUNING}/predictions.{{part}}.txt",
    log:
        f"{FINETUNING}/logs/predict.{{part}}.log",
    benchmark:
        f"{FINETUNING}/benchmarks/predict.{{part}}.tsv"
    group:
        "nlu-evaluate"
    conda:
        "../envs/synmask.yaml"
    threads: finetuning_need("threads")
    resources:
        cpus_per_task=finetuning_need("threads"),
        mem_mb=finetuning_need("mem_mb"),
        gpu=finetuning_need("gpus"),
    params:
        weights=weights_folder,
    shell:
        "synmask predict --model {input.model:q} --weights {params.weights:q} --data {input.data:q}"
        " --output {output:q} --threads {resources.cpus_per_task} --gpus {resources.gpu} 2> {log:q}"


rule nlu_score:
    input:
        gold=of_parts(of_task("{part}.tsv")),
        predicted=of_parts(f"{FINETUNING}/predictions.{{part}}.txt"),
        train=f"{FINETUNING}/train.json",
        code=code("corpora/tasks", "evaluation/nlu"),
    output:
        f"{FINETUNING}/scores.json",
    log:
        f"{FINETUNING}/logs/nlu_score.log",
    benchmark:
        f"{FINETUNING}/benchmarks/nlu_score.tsv"
    group:
        "nlu-evaluate"
    conda:
        "../envs/synmask.yaml"
    params:
        parts=lambda wildcards: task_of(wildcards).parts,
        run=lambda wildcards: settings.as_json(
            {
                "corpus": wildcards.benchmark,
                "task": wildcards.task,
                "system": wildcards.system,
                "seed": int(wildcards.seed),
                "settings": json.loads(finetuning_settings(wildcards)),
                "weights": benchmark_of(wildcards).weights,
            }
        ),
    shell:
        "synmask nlu-score --task {wildcards.task} --parts {params.parts} --gold {input.gold:q}"
        " --predicted {input.predicted:q} --run {params.run:q} --train {input.train:q} --output {output:q} 2> {log:q}"


rule nlu_baselines:
    input:
        train=of_task("train.tsv"),
        gold=of_parts(of_task("{part}.tsv")),
        code=code("corpora/tasks", "evaluation/nlu"),
    output:
        of_task("baselines.json"),
    log:
        of_task("logs/nlu_baselines.log"),
    benchmark:
        of_task("benchmarks/nlu_baselines.tsv")
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        parts=lambda wildcards: task_of(wildcards).parts,
        run=lambda wildcards: settings.as_json({"corpus": wildcards.benchmark}),
    shell:
        "synmask nlu-baselines --task {wildcards.task} --train {input.train:q} --parts {params.parts}"
        " --gold {input.gold:q} --run {params.run:q} --output {output:q} 2> {log:q}"

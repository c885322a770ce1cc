# One training a system and seed, then the average of its last epochs, or its best one.


rule train:
    input:
        data=rules.binarise.output,
        annotations=annotations(*TRAINED),
        code=engine_code("engine/train", "engine/loop", "engine/stage", "engine/checkpoints"),
    # The checkpoints lie in a folder that is no output: Snakemake leaves it alone when a training fails,
    # so that the next attempt goes on from there. `synmask train` itself moves stale checkpoints aside.
    # On SIGTERM, which a scheduler sends to every process of a job, it saves and exits with 75: bash and tee wait.
    # Snakemake cuts `threads` down to the cores at hand; the process takes `cpus_per_task`, which stays as it is,
    # since another number of threads gives other bytes.
    output:
        summary=of_run("train.json"),
        history=of_run("history.csv"),
    log:
        of_run("train.log"),
    benchmark:
        of_run("benchmarks/train.{source}-{target}.tsv")
    conda:
        "../envs/synmask.yaml"
    threads: need("threads")
    resources:
        cpus_per_task=need("threads"),
        mem_mb=need("mem_mb"),
        runtime=need("runtime"),
        gpu=need("gpus"),
        # here, not in params: how often is saved must not rerun what depends on it
        checkpoint_minutes=need("checkpoint_minutes"),
    params:
        settings=run_settings,
        keep=lambda wildcards: CONFIG.training_of(wildcards.corpus, wildcards.system).kept,
        data=lambda wildcards, input: os.path.dirname(input.data[0]),
        run=folder_of("output"),
    shell:
        "trap : TERM; synmask train --data {params.data:q} --run {params.run:q} --source {wildcards.source}"
        " --target {wildcards.target} --settings {params.settings:q} --seed {wildcards.seed} --keep {params.keep}"
        " --code {input.code:q} --threads {resources.cpus_per_task} --gpus {resources.gpu}"
        " --checkpoint-minutes {resources.checkpoint_minutes} --restart 2>&1 | (trap '' TERM; exec tee {log:q} >&2)"


rule average:
    input:
        trained=of_run("train.json"),
        data=rules.binarise.output,
        codes=of_pair("bpe/codes"),
        vocabulary=of_pair("bpe/vocabulary.{source}"),
        code=engine_code("engine/average", "engine/checkpoints", "engine/train", "text/bpe", "text/parallel"),
    output:
        of_run("average.pt"),
    log:
        of_run("logs/average.{source}-{target}.log"),
    benchmark:
        of_run("benchmarks/average.{source}-{target}.tsv")
    group:
        "evaluate"
    conda:
        "../envs/synmask.yaml"
    resources:
        keep_checkpoints=lambda wildcards: int(corpus_of(wildcards).resources.keep_checkpoints),
    params:
        settings=run_settings,
        text=section("text", include={"tokeniser", "lowercase"}),
        threshold=lambda wildcards: corpus_of(wildcards).bpe.vocabulary_threshold,
        last=lambda wildcards: CONFIG.training_of(wildcards.corpus, wildcards.system).kept,
        data=lambda wildcards, input: os.path.dirname(input.data[0]),
        run=folder_of("output"),
    shell:
        "synmask average --run {params.run:q} --last {params.last} --data {params.data:q} --codes {input.codes:q}"
        " --vocabulary {input.vocabulary:q} --vocabulary-threshold {params.threshold}"
        " --source {wildcards.source} --target {wildcards.target} --text {params.text:q}"
        " --settings {params.settings:q} --output {output:q}"
        " --keep-checkpoints {resources.keep_checkpoints} 2> {log:q}"

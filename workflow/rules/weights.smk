# RoBERTa's weights: from fairseq's archive, from Hugging Face's format, or pre-trained here.


rule roberta_archive:
    input:
        files=lambda wildcards: CONFIG.weights_sources(wildcards.weights),
        code=code("corpora/archive", "engine/checkpoints", "engine/compat", "engine/weights", "text/gpt2"),
    output:
        MODEL,
    log:
        f"{WEIGHTS}/logs/roberta_archive.log",
    benchmark:
        f"{WEIGHTS}/benchmarks/roberta_archive.tsv"
    wildcard_constraints:
        weights=weights_of("archive"),
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        output=folder_of("output"),
    shell:
        "synmask roberta-weights --archive {input.files[0]:q} --encoder-json {input.files[1]:q}"
        " --vocab {input.files[2]:q} --output {params.output:q} 2> {log:q}"


rule convert_roberta:
    input:
        folder=lambda wildcards: CONFIG.weights[wildcards.weights].huggingface,
        code=code("engine/checkpoints", "engine/compat", "engine/huggingface", "engine/weights", "text/gpt2"),
    output:
        MODEL,
    log:
        f"{WEIGHTS}/logs/convert_roberta.log",
    benchmark:
        f"{WEIGHTS}/benchmarks/convert_roberta.tsv"
    wildcard_constraints:
        weights=weights_of("huggingface"),
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        output=folder_of("output"),
    shell:
        "synmask convert-roberta --input {input.folder:q} --output {params.output:q} 2> {log:q}"


rule learn_gpt2_bpe:
    input:
        text=lambda wildcards: pretraining(wildcards).text["train"],
        code=code("text/gpt2"),
    output:
        VOCABULARY,
    log:
        f"{WEIGHTS}/logs/learn_gpt2_bpe.log",
    benchmark:
        f"{WEIGHTS}/benchmarks/learn_gpt2_bpe.tsv"
    wildcard_constraints:
        weights=weights_of("pretrain"),
    group:
        "pretraining-text"
    conda:
        "../envs/synmask.yaml"
    params:
        merges=lambda wildcards: pretraining(wildcards).merges,
        output=folder_of("output"),
    shell:
        "synmask learn-gpt2-bpe --text {input.text:q} --merges {params.merges} --output {params.output:q} 2> {log:q}"


rule encode_text:
    input:
        train=lambda wildcards: pretraining(wildcards).text["train"],
        valid=lambda wildcards: pretraining(wildcards).text["valid"],
        vocabulary=rules.learn_gpt2_bpe.output,
        code=code("engine/binarise", "engine/compat", "engine/pretrain", "text/gpt2"),
    output:
        expand(
            f"{WEIGHTS}/text/{{split}}.{{kind}}",
            split=("train", "valid"),
            kind=("bin", "idx"),
            allow_missing=True,
        ),
    log:
        f"{WEIGHTS}/logs/encode_text.log",
    benchmark:
        f"{WEIGHTS}/benchmarks/encode_text.tsv"
    wildcard_constraints:
        weights=weights_of("pretrain"),
    group:
        "pretraining-text"
    conda:
        "../envs/synmask.yaml"
    params:
        weights=lambda wildcards, input: os.path.dirname(input.vocabulary[0]),
        output=folder_of("output"),
    shell:
        "synmask encode-text --train {input.train:q} --valid {input.valid:q} --weights {params.weights:q}"
        " --output {params.output:q} 2> {log:q}"


rule pretrain:
    input:
        text=rules.encode_text.output,
        vocabulary=rules.learn_gpt2_bpe.output,
        code=roberta_code("engine/checkpoints", "engine/loop", "engine/stage", "engine/pretrain"),
    output:
        model=f"{WEIGHTS}/model.pt",
        summary=f"{WEIGHTS}/train.json",
        history=f"{WEIGHTS}/history.csv",
    log:
        f"{WEIGHTS}/train.log",
    benchmark:
        f"{WEIGHTS}/benchmarks/pretrain.tsv"
    wildcard_constraints:
        weights=weights_of("pretrain"),
    conda:
        "../envs/synmask.yaml"
    threads: pretraining_need("threads")
    resources:
        cpus_per_task=pretraining_need("threads"),
        mem_mb=pretraining_need("mem_mb"),
        runtime=pretraining_need("runtime"),
        gpu=pretraining_need("gpus"),
        checkpoint_minutes=pretraining_need("checkpoint_minutes"),
    params:
        settings=lambda wildcards: settings.as_json(
            pretraining(wildcards).model_dump(mode="json", include={"model", "training"})
        ),
        seed=lambda wildcards: pretraining(wildcards).seed,
        data=lambda wildcards, input: os.path.dirname(input.text[0]),
        weights=folder_of("output"),
    shell:
        "trap : TERM; synmask pretrain --data {params.data:q} --weights {params.weights:q} --run {params.weights:q}"
        " --settings {params.settings:q} --seed {params.seed} --code {input.code:q}"
        " --threads {resources.cpus_per_task} --gpus {resources.gpu}"
        " --checkpoint-minutes {resources.checkpoint_minutes} --restart 2>&1 | (trap '' TERM; exec tee {log:q} >&2)"

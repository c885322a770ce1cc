# RoBERTa's weights: in Hugging Face's format, pre-trained here, or pre-trained further.


rule convert_roberta:
    input:
        files=JOBS.fetched_weights,
    output:
        MODEL,
    log:
        WEIGHTS / "logs/convert_roberta.log",
    wildcard_constraints:
        weights=any_of(CONFIG.entries_with("weights", "huggingface", "url")),
    localrule: True
    params:
        code=given(JOBS.code, "convert-roberta"),
        inputs_checksum=given(JOBS.inputs_checksum, JOBS.fetched_weights),
        folder=lambda wildcards: CONFIG.weights[wildcards.weights].huggingface
        or f"{CONFIG.data_dir}/{wildcards.weights}",
        output=folder_of("output"),
    shell:
        "synmask convert-roberta --input {params.folder:q} --output {params.output:q} 2> {log:q}"


rule demo_text:
    output:
        WEIGHTS / "generated/{split}.txt",
    log:
        WEIGHTS / "logs/demo_text.{split}.log",
    wildcard_constraints:
        weights=any_of(CONFIG.entries_with("weights", "pretrain")),
        split=any_of(TRAINED),
    localrule: True
    params:
        code=given(JOBS.code, "demo-text"),
        settings=lambda wildcards: as_json(JOBS.pretraining(wildcards).generate),
    shell:
        "synmask demo-text --split {wildcards.split} --settings {params.settings:q} --output {output:q} 2> {log:q}"


rule pretraining_text:
    input:
        train=given(JOBS.pretraining_text, "train"),
        valid=given(JOBS.pretraining_text, "valid"),
    output:
        vocabulary=VOCABULARY,
        text=each(WEIGHTS / "text/{split}.{kind}", split=TRAINED, kind=("bin", "idx")),
    log:
        WEIGHTS / "logs/pretraining_text.log",
    wildcard_constraints:
        weights=any_of(CONFIG.entries_with("weights", "pretrain")),
    group:
        "pretraining-text"
    params:
        code=given(JOBS.code, "pretraining-text"),
        inputs_checksum=given(
            JOBS.inputs_checksum,
            given(JOBS.pretraining_text, "train"),
            given(JOBS.pretraining_text, "valid"),
        ),
        merges=lambda wildcards: JOBS.pretraining(wildcards).merges,
        weights=lambda wildcards, output: os.path.dirname(output.vocabulary[0]),
        text=lambda wildcards, output: os.path.dirname(output.text[0]),
    shell:
        "synmask pretraining-text --train {input.train:q} --valid {input.valid:q} --merges {params.merges}"
        " --weights {params.weights:q} --output {params.text:q} 2> {log:q}"


rule pretrain:
    input:
        text=rules.pretraining_text.output.text,
        vocabulary=rules.pretraining_text.output.vocabulary,
    output:
        model=WEIGHTS / "model.pt",
        summary=WEIGHTS / "train.json",
        history=WEIGHTS / "history.csv",
    log:
        WEIGHTS / "train.log",
    wildcard_constraints:
        weights=any_of(CONFIG.entries_with("weights", "pretrain")),
    threads: given(JOBS.resource, "threads")
    resources:
        **TRAINING,
        again=PLANNED.again("pretrain"),
    params:
        code=given(JOBS.code, "pretrain"),
        settings=JOBS.pretraining_settings,
        seed=lambda wildcards: JOBS.pretraining(wildcards).seed,
        data=lambda wildcards, input: os.path.dirname(input.text[0]),
        weights=folder_of("output"),
    shell:
        training(
            "synmask pretrain --data {params.data:q} --weights {params.weights:q} --run {params.weights:q}"
            " --settings {params.settings:q} --seed {params.seed}"
        )


rule encode_parses:
    input:
        parses=JOBS.continued_parses,
        vocabulary=JOBS.vocabulary_files,
    output:
        data=WEIGHTS / "ids/{split}.npz",
        syntax=WEIGHTS / "ids/syntax.{split}.npy",
        counts=WEIGHTS / "ids/syntax.{split}.json",
    log:
        WEIGHTS / "logs/encode_parses.{split}.log",
    wildcard_constraints:
        weights=any_of(CONFIG.entries_with("weights", "continued")),
        split=any_of(TRAINED),
    localrule: True
    params:
        code=given(JOBS.code, "encode-parses"),
        inputs_checksum=given(JOBS.inputs_checksum, JOBS.continued_parses),
        prefixes=lambda wildcards: JOBS.pretraining(wildcards).parses[wildcards.split],
        weights=JOBS.weights_folder,
        most=lambda wildcards: JOBS.pretraining(wildcards).max_tokens,
    shell:
        "synmask encode-parses --parses {params.prefixes:q} --weights {params.weights:q} --max-tokens {params.most}"
        " --output {output.data:q} 2> {log:q}"


rule continue_pretraining:
    input:
        data=each(WEIGHTS / "ids/{split}.npz", split=TRAINED),
        syntax=each(WEIGHTS / "ids/syntax.{split}.npy", split=TRAINED),
        weights=JOBS.weights_files,
    output:
        MODEL,
        summary=WEIGHTS / "train.json",
        history=WEIGHTS / "history.csv",
    log:
        WEIGHTS / "train.log",
    wildcard_constraints:
        weights=any_of(CONFIG.entries_with("weights", "continued")),
    threads: given(JOBS.resource, "threads")
    resources:
        **TRAINING,
        again=PLANNED.again("continue_pretraining"),
    params:
        code=given(JOBS.code, "continue-pretraining"),
        settings=JOBS.pretraining_settings,
        seed=lambda wildcards: JOBS.pretraining(wildcards).seed,
        data=lambda wildcards, input: os.path.dirname(input.data[0]),
        weights=JOBS.weights_folder,
        run=lambda wildcards, output: os.path.dirname(output.summary),
    shell:
        training(
            "synmask continue-pretraining --data {params.data:q} --weights {params.weights:q}"
            " --run {params.run:q} --settings {params.settings:q} --seed {params.seed}"
        )

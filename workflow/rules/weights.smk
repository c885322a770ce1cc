# RoBERTa's weights: in Hugging Face's format, pre-trained here, or pre-trained further.


rule convert_roberta:
    input:
        files=lambda w: JOBS.data.weights_sources(w.weights),
    output:
        MODEL,
    log:
        WEIGHTS / "logs/convert_roberta.log",
    wildcard_constraints:
        weights=any_of(CONFIG.entries_with("weights", "huggingface", "url")),
    localrule: True
    params:
        code=code("convert-roberta"),
        inputs_checksum=lambda w: job(w).inputs_checksum(JOBS.data.weights_sources(w.weights)),
        folder=lambda w: CONFIG.weights[w.weights].huggingface or f"{CONFIG.data_dir}/{w.weights}",
        output=subpath(output[0], parent=True),
    shell:
        "synmask convert-roberta --input {params.folder:q} --output {params.output:q} 2> {log:q}"


rule pretraining_text:
    input:
        train=lambda w: job(w).pretraining.text["train"],
        valid=lambda w: job(w).pretraining.text["valid"],
    output:
        vocabulary=VOCABULARY,
        text=each(WEIGHTS / "text/{split}.{kind}", split=TRAINING_SPLITS, kind=("bin", "idx")),
    log:
        WEIGHTS / "logs/pretraining_text.log",
    wildcard_constraints:
        weights=any_of(CONFIG.entries_with("weights", "pretrain")),
    group:
        "pretraining-text"
    resources:
        runtime=by_attempt(240),
        mem_mb=by_attempt(4000),
    params:
        code=code("pretraining-text"),
        inputs_checksum=lambda w: job(w).inputs_checksum(*map(job(w).pretraining.text.get, TRAINING_SPLITS)),
        merges=lambda w: job(w).pretraining.merges,
        weights=subpath(output[0], parent=True),
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
    threads: lambda w: job(w).resources.threads
    resources:
        **TRAINING_RESOURCES,
        again=PLANNED.again("pretrain"),
    params:
        code=code("pretrain"),
        settings=settings("pretrain"),
        seed=lambda w: job(w).pretraining.seed,
        data=subpath(input[0], parent=True),
        weights=subpath(output[0], parent=True),
    shell:
        train_command(
            "synmask pretrain --data {params.data:q} --weights {params.weights:q} --run {params.weights:q}"
            " --settings {params.settings:q} --seed {params.seed}"
        )


rule encode_parses:
    input:
        parses=lambda w: job(w).continued_parses(),
        vocabulary=lambda w: job(w).vocabulary_files(),
    output:
        data=WEIGHTS / "ids/{split}.npz",
        syntax=WEIGHTS / "ids/syntax.{split}.npy",
        counts=WEIGHTS / "ids/syntax.{split}.json",
    log:
        WEIGHTS / "logs/encode_parses.{split}.log",
    wildcard_constraints:
        weights=any_of(CONFIG.entries_with("weights", "continued")),
        split=any_of(TRAINING_SPLITS),
    localrule: True
    params:
        code=code("encode-parses"),
        inputs_checksum=lambda w: job(w).inputs_checksum(job(w).continued_parses()),
        prefixes=lambda w: job(w).pretraining.parses[w.split],
        weights=lambda w: job(w).weights_folder(),
        most=lambda w: job(w).pretraining.max_tokens,
    shell:
        "synmask encode-parses --parses {params.prefixes:q} --weights {params.weights:q} --max-tokens {params.most}"
        " --output {output.data:q} 2> {log:q}"


rule continue_pretraining:
    input:
        data=each(WEIGHTS / "ids/{split}.npz", split=TRAINING_SPLITS),
        syntax=each(WEIGHTS / "ids/syntax.{split}.npy", split=TRAINING_SPLITS),
        weights=lambda w: job(w).weights_files(),
    output:
        MODEL,
        summary=WEIGHTS / "train.json",
        history=WEIGHTS / "history.csv",
    log:
        WEIGHTS / "train.log",
    wildcard_constraints:
        weights=any_of(CONFIG.entries_with("weights", "continued")),
    threads: lambda w: job(w).resources.threads
    resources:
        **TRAINING_RESOURCES,
        again=PLANNED.again("continue_pretraining"),
    params:
        code=code("continue-pretraining"),
        settings=settings("continue_pretraining"),
        seed=lambda w: job(w).pretraining.seed,
        weights=lambda w: job(w).weights_folder(),
        run=subpath(output.summary, parent=True),
    shell:
        train_command(
            "synmask continue-pretraining --data {params.run:q}/ids --weights {params.weights:q}"
            " --run {params.run:q} --settings {params.settings:q} --seed {params.seed}"
        )

# Translations of the validation and the test set, and their scores.

PREDICTED = each(PREDICTOR / "{split}.{target}", split=SCORED_SPLITS)


rule decode:
    input:
        model=RUN / "average.pt",
        record=RUN / "train.json",
        sources=each(PAIR / "bpe/{split}.{source}", split=SCORED_SPLITS),
        references=each(PAIR / "bpe/{split}.{target}", split=SCORED_SPLITS),
        annotations=lambda w: job(w).annotations(*SCORED_SPLITS),
        templates=lambda w: job(w).if_templated(*PREDICTED),
        records=lambda w: job(w).if_templated(*each("{path}.json", path=PREDICTED)),
    output:
        each(
            RUN / "hypothesis.{split}.{kind}", split=SCORED_SPLITS, kind=("txt", "tok", "json", "forced.csv")
        ),
    log:
        RUN / "logs/decode.{source}-{target}.log",
    group:
        "evaluate"
    threads: lambda w: job(w).resources.threads
    resources:
        **INFERENCE_RESOURCES,
        runtime=by_attempt(60),
    params:
        code=code("decode"),
        decoding=lambda w: as_options(**job(w).corpus.decoding.plain()),
        outputs=lambda wildcards, output: [path[:-4] for path in output if path.endswith(".txt")],
    shell:
        "synmask decode --model {input.model:q} --inputs {input.sources:q} --outputs {params.outputs:q}"
        " --references {input.references:q} --annotations {input.annotations:q} --templates {input.templates:q}"
        " {params.decoding} --threads {resources.cpus_per_task} --gpus {resources.gpu} 2> {log:q}"


rule score:
    input:
        hypotheses=rules.decode.output,
        record=RUN / "train.json",
        references=each(PAIR / "text/{split}.{target}", split=SCORED_SPLITS),
        reference_tokens=each(PAIR / "tokens/{split}.{target}", split=SCORED_SPLITS),
        sets=lambda w: job(w).test_set_files(),
        pairs=PAIR / "pairs.json",
    output:
        RUN / "scores.json",
        RUN / "sentences.csv",
    log:
        RUN / "logs/score.{source}-{target}.log",
    group:
        "evaluate"
    params:
        code=code("score-run"),
        run=subpath(output[0], parent=True),
        lowercase=lambda w: as_options(lowercase=job(w).corpus.text.lowercase),
        splits=SCORED_SPLITS,
        sets=lambda w, input: as_options(sets=job(w).corpus.test_sets, set_files=input.sets),
    shell:
        "synmask score-run --run {params.run:q} --splits {params.splits} --references {input.references:q}"
        " --reference-tokens {input.reference_tokens:q} {params.sets} {params.lowercase}"
        " --pairs {input.pairs:q} 2> {log:q}"


rule measure:
    input:
        hypotheses=rules.decode.output,
        record=RUN / "train.json",
        sources=PAIR / "text/test.{source}",
        references=PAIR / "text/test.{target}",
    output:
        RUN / "metric.{metric}.json",
    log:
        RUN / "logs/measure.{metric}.{source}-{target}.log",
    group:
        "evaluate"
    threads: lambda w: job(w).resources.threads
    resources:
        **INFERENCE_RESOURCES,
    params:
        code=code("measure"),
        function=lambda w: sources.digest_of_function(w.metric),
        run=subpath(output[0], parent=True),
        lowercase=lambda w: as_options(lowercase=job(w).corpus.text.lowercase),
    shell:
        "synmask measure --run {params.run:q} --metric {wildcards.metric} --sources {input.sources:q}"
        " --references {input.references:q} {params.lowercase} --gpus {resources.gpu} 2> {log:q}"

# Translations of the validation and the test set, and their scores.

HYPOTHESES = [of_run(f"hypothesis.{split}") for split in DECODED]


rule decode:
    input:
        model=of_run("average.pt"),
        sources=[of_pair(f"bpe/{split}.{{source}}") for split in DECODED],
        annotations=annotations(*DECODED),
        code=engine_code(
            "engine/decode", "engine/average", "text/bpe", "text/parallel", "text/segment", "text/tokenise"
        ),
    output:
        [f"{hypothesis}.{kind}" for hypothesis in HYPOTHESES for kind in ("txt", "tok", "json")],
    log:
        of_run("logs/decode.{source}-{target}.log"),
    benchmark:
        of_run("benchmarks/decode.{source}-{target}.tsv")
    group:
        "evaluate"
    conda:
        "../envs/synmask.yaml"
    threads: need("threads")
    resources:
        cpus_per_task=need("threads"),
        mem_mb=need("mem_mb"),
        gpu=lambda wildcards: min(1, corpus_of(wildcards).resources.gpus),
    params:
        settings=section("decoding"),
        outputs=HYPOTHESES,
    shell:
        "synmask decode --model {input.model:q} --inputs {input.sources:q} --outputs {params.outputs:q}"
        " --annotations {input.annotations:q} --settings {params.settings:q} --threads {resources.cpus_per_task} --gpus {resources.gpu} 2> {log:q}"


rule score:
    input:
        hypotheses=rules.decode.output,
        train=of_run("train.json"),
        references=[of_pair(f"text/{split}.{{target}}") for split in DECODED],
        reference_tokens=[of_pair(f"tokens/{split}.{{target}}") for split in DECODED],
        code=code("evaluation/bleu"),
    output:
        of_run("scores.json"),
    log:
        of_run("logs/score.{source}-{target}.log"),
    benchmark:
        of_run("benchmarks/score.{source}-{target}.tsv")
    group:
        "evaluate"
    conda:
        "../envs/synmask.yaml"
    params:
        run=lambda w: run_name(w, decoding=corpus_of(w).decoding.model_dump(mode="json")),
        lowercase=lambda wildcards: "--lowercase" if corpus_of(wildcards).text.lowercase else "",
        splits=DECODED,
        hypotheses=HYPOTHESES,
    shell:
        "synmask score --splits {params.splits} --hypotheses {params.hypotheses:q} --references {input.references:q}"
        " --reference-tokens {input.reference_tokens:q} {params.lowercase} --run {params.run:q}"
        " --train {input.train:q} --output {output:q} 2> {log:q}"


rule sentences:
    input:
        hypothesis=of_run("hypothesis.test.txt"),
        reference=of_pair("text/test.{target}"),
        source=of_pair("bpe/test.{source}"),
        code=code("evaluation/sentences", "evaluation/bleu"),
    output:
        of_run("sentences.csv"),
    log:
        of_run("logs/sentences.{source}-{target}.log"),
    benchmark:
        of_run("benchmarks/sentences.{source}-{target}.tsv")
    group:
        "evaluate"
    conda:
        "../envs/synmask.yaml"
    params:
        lowercase=lambda wildcards: "--lowercase" if corpus_of(wildcards).text.lowercase else "",
    shell:
        "synmask sentences --hypothesis {input.hypothesis:q} --reference {input.reference:q} --source {input.source:q}"
        " --language {wildcards.target} {params.lowercase} --output {output:q} 2> {log:q}"

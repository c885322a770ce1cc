# Translations of the validation and the test set, and their scores.

HYPOTHESES = [
    f"results/{{corpus}}/{{source}}-{{target}}/{{system}}/seed{{seed}}/hypothesis.{split}"
    for split in DECODED
]
TEMPLATES = [
    f"results/{{corpus}}/{{source}}-{{target}}/{{system}}/seed{{seed}}/template/{split}.{{target}}"
    for split in DECODED
]


rule decode:
    input:
        model="results/{corpus}/{source}-{target}/{system}/seed{seed}/average.pt",
        sources=[f"results/{{corpus}}/{{source}}-{{target}}/bpe/{split}.{{source}}" for split in DECODED],
        references=[f"results/{{corpus}}/{{source}}-{{target}}/bpe/{split}.{{target}}" for split in DECODED],
        annotations=JOBS.annotations(*DECODED),
        templates=JOBS.if_templated(*TEMPLATES),
    output:
        [f"{hypothesis}.{kind}" for hypothesis in HYPOTHESES for kind in ("txt", "tok", "json", "forced.csv")],
    log:
        "results/{corpus}/{source}-{target}/{system}/seed{seed}/logs/decode.{source}-{target}.log",
    benchmark:
        "results/{corpus}/{source}-{target}/{system}/seed{seed}/benchmarks/decode.{source}-{target}.tsv"
    group:
        "evaluate"
    conda:
        "../envs/synmask.yaml"
    threads: JOBS.need("threads")
    resources:
        **USING,
    params:
        code=JOBS.code("decode"),
        settings=JOBS.section("decoding"),
        identity=JOBS.parsed_run,
        outputs=HYPOTHESES,
    shell:
        "synmask decode --model {input.model:q} --inputs {input.sources:q} --outputs {params.outputs:q}"
        " --references {input.references:q} --annotations {input.annotations:q} --templates {input.templates:q} --settings {params.settings:q}"
        " --identity {params.identity:q} --threads {resources.cpus_per_task} --gpus {resources.gpu} 2> {log:q}"


rule score:
    input:
        hypotheses=rules.decode.output,
        train="results/{corpus}/{source}-{target}/{system}/seed{seed}/train.json",
        references=[f"results/{{corpus}}/{{source}}-{{target}}/text/{split}.{{target}}" for split in DECODED],
        reference_tokens=[
            f"results/{{corpus}}/{{source}}-{{target}}/tokens/{split}.{{target}}" for split in DECODED
        ],
        sets=JOBS.test_set_files,
        prepared=[
            f"results/{{corpus}}/{{source}}-{{target}}/{folder}/{split}.{side}"
            for folder, split in [("clean", "train"), *(("tokens", split) for split in DECODED)]
            for side in ("{source}", "{target}")
        ],
    output:
        scores="results/{corpus}/{source}-{target}/{system}/seed{seed}/scores.json",
        sentences="results/{corpus}/{source}-{target}/{system}/seed{seed}/sentences.csv",
    log:
        "results/{corpus}/{source}-{target}/{system}/seed{seed}/logs/score.{source}-{target}.log",
    benchmark:
        "results/{corpus}/{source}-{target}/{system}/seed{seed}/benchmarks/score.{source}-{target}.tsv"
    group:
        "evaluate"
    conda:
        "../envs/synmask.yaml"
    params:
        code=JOBS.code("score-run"),
        run=JOBS.decoded_run,
        lowercase=lowercase,
        splits=DECODED,
        sets=named_sets,
        hypotheses=HYPOTHESES,
    shell:
        "synmask score-run --splits {params.splits} --hypotheses {params.hypotheses:q}"
        " --references {input.references:q} --reference-tokens {input.reference_tokens:q}"
        " {params.sets} {params.lowercase} --run {params.run:q} --train {input.train:q} --output {output.scores:q}"
        " --sentences {output.sentences:q} --prepared {input.prepared:q} 2> {log:q}"

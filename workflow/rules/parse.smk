# The syntax that a system induces on the validation set, and its score against gold trees.


rule parse:
    input:
        model=RUN / "average.pt",
        record=RUN / "train.json",
        source=PAIR / "bpe/valid.{source}",
    output:
        trees=RUN / "trees.jsonl",
        record=RUN / "trees.json",
        distribution=RUN / "distribution.json",
    log:
        RUN / "logs/parse.{source}-{target}.log",
    wildcard_constraints:
        system=any_of(name for name, system in CONFIG.systems.items() if system.options_class.induces),
    group:
        "evaluate"
    threads: lambda w: job(w).resources.threads
    resources:
        **INFERENCE_RESOURCES | {"mem_mb": by_attempt(4000)},
    params:
        code=code("parse"),
        sentence=lambda w: as_options(sentence=job(w).corpus.sentence),
    shell:
        "synmask parse --model {input.model:q} --subwords {input.source:q} --output {output.trees:q}"
        " --distribution {output.distribution:q} {params.sentence}"
        " --threads {resources.cpus_per_task} --gpus {resources.gpu} 2> {log:q}"


rule parseval:
    input:
        unpack(gold),
        trees=RUN / "trees.jsonl",
        records=[RUN / "trees.json", RUN / "train.json"],
    output:
        scores=RUN / "parse.json",
        counts=RUN / "parse_counts.json",
    log:
        RUN / "logs/parseval.{source}-{target}.log",
    group:
        "evaluate"
    params:
        code=code("parseval"),
        inputs_checksum=lambda w: job(w).inputs_checksum(gold(w).values()),
        heads=lambda wildcards, input: as_options(heads=input.get("heads")),
    shell:
        "synmask parseval --gold {input.gold:q} {params.heads} --predicted {input.trees:q}"
        " --output {output.scores:q} --counts {output.counts:q} 2> {log:q}"


rule tree_page:
    input:
        gold=lambda w: job(w).page_gold(),
        trees=lambda w: TARGETS.files(TARGETS.first_runs(w.experiment, w.direction), "trees.jsonl"),
        records=lambda w: TARGETS.files(TARGETS.first_runs(w.experiment, w.direction), "trees.json"),
    output:
        reported(
            FIGURES / "{experiment}-{direction}-trees.html", "tree_page", figure="20 sentences, {direction}"
        ),
    log:
        LOGS / "tree_page.{experiment}.{direction}.log",
    localrule: True
    params:
        code=code("tree-page"),
        inputs_checksum=lambda w: job(w).inputs_checksum(job(w).page_gold()),
        labels=lambda w: [CONFIG.label(run.system) for run in TARGETS.first_runs(w.experiment, w.direction)],
        title=lambda w: f"{TARGETS.entry(w.experiment).title}, {w.direction}: trees",
    shell:
        "synmask tree-page --gold {input.gold:q} --trees {input.trees:q} --labels {params.labels:q}"
        " --title {params.title:q} --output {output:q} 2> {log:q}"

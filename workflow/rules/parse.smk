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
        system=any_of(name for name, system in CONFIG.systems.items() if system.kind.induces),
    group:
        "evaluate"
    threads: given(JOBS.resource, "threads")
    resources:
        **USING,
    params:
        code=given(JOBS.code, "parse"),
        sentence=lambda wildcards: option("sentence", JOBS.corpus(wildcards).sentence),
    shell:
        "synmask parse --model {input.model:q} --subwords {input.source:q} --output {output.trees:q}"
        " --distribution {output.distribution:q} {params.sentence}"
        " --threads {resources.cpus_per_task} --gpus {resources.gpu} 2> {log:q}"


rule parseval:
    input:
        unpack(JOBS.gold),
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
        code=given(JOBS.code, "parseval"),
        inputs_checksum=given(JOBS.inputs_checksum, lambda wildcards: JOBS.gold(wildcards).values()),
        heads=lambda wildcards, input: option("heads", input.get("heads")),
    shell:
        "synmask parseval --gold {input.gold:q} {params.heads} --predicted {input.trees:q}"
        " --output {output.scores:q} --counts {output.counts:q} 2> {log:q}"


TREES = FIGURES / "{experiment}-{direction}-trees.html"


rule tree_page:
    input:
        gold=gold_trees,
        trees=lambda wildcards: [run.file("trees.jsonl") for run in first_runs(wildcards)],
        records=lambda wildcards: [run.file("trees.json") for run in first_runs(wildcards)],
    output:
        shown(TREES, "tree_page", "Figures", "{experiment}", figure="20 sentences, {direction}"),
    log:
        LOGS / "tree_page.{experiment}.{direction}.log",
    localrule: True
    params:
        code=given(JOBS.code, "tree-page"),
        inputs_checksum=given(JOBS.inputs_checksum, gold_trees),
        labels=lambda wildcards: [CONFIG.label(run.system) for run in first_runs(wildcards)],
        title=lambda wildcards: f"{TARGETS.entry(wildcards.experiment).title}, {wildcards.direction}: trees",
    shell:
        "synmask tree-page --gold {input.gold:q} --trees {input.trees:q} --labels {params.labels:q}"
        " --title {params.title:q} --output {output:q} 2> {log:q}"

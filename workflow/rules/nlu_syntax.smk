# Parses of RoBERTa's tasks, for systems that read them: distinct sentences → tokens → CoreNLP → words and heads of sub-words.


rule task_sentences:
    input:
        parts=lambda wildcards: [
            of_task("{part}.tsv").format(**wildcards, part=part) for part in task_of(wildcards).rows
        ],
        code=code("corpora/tasks"),
    output:
        f"{SENTENCES}.text",
    log:
        of_task("logs/task_sentences.{number}.log"),
    benchmark:
        of_task("benchmarks/task_sentences.{number}.tsv")
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        files=lambda wildcards: len(CONFIG.task_parses(wildcards.benchmark, wildcards.task, "train")),
    shell:
        "synmask task-sentences --task {wildcards.task} --inputs {input.parts:q} --output {output:q}"
        " --number {wildcards.number} --files {params.files} 2> {log:q}"


rule tokenise_sentences:
    input:
        text=f"{SENTENCES}.text",
        code=code("text/tokenise", "text/segment", "text/parallel"),
    output:
        f"{SENTENCES}.tokens",
    log:
        of_task("logs/tokenise_sentences.{number}.log"),
    benchmark:
        of_task("benchmarks/tokenise_sentences.{number}.tsv")
    group:
        "task-text"
    conda:
        "../envs/synmask.yaml"
    threads: 2
    params:
        settings=settings.as_json({"tokeniser": "moses"}),
    shell:
        "synmask tokenise --input {input.text:q} --output {output:q} --language en"
        " --settings {params.settings:q} --threads {threads} 2> {log:q}"


rule parse_sentences:
    input:
        tokens=f"{SENTENCES}.tokens",
        jars=lambda wildcards: list(CONFIG.corenlp_jars("en")),
        code=[*code("syntax/corenlp", "syntax/jvm", "syntax/treebank"), f"{SRC}/syntax/Parse.java"],
    output:
        trees=f"{SENTENCES}.trees",
        heads=f"{SENTENCES}.heads",
        report=f"{SENTENCES}.json",
    log:
        of_task("logs/parse_sentences.{number}.log"),
    benchmark:
        of_task("benchmarks/parse_sentences.{number}.tsv")
    conda:
        "../envs/corenlp.yaml"
    threads: CONFIG.corenlp.threads
    resources:
        cpus_per_task=CONFIG.corenlp.threads,
        mem_mb=CONFIG.corenlp.mem_mb,
        runtime=CONFIG.corenlp.runtime,
    params:
        settings=lambda wildcards: CONFIG.corenlp_settings("en"),
        prefix=lambda wildcards, output: output.trees.removesuffix(".trees"),
    shell:
        "synmask constituency --input {input.tokens:q} --tokens {input.tokens:q} --output {params.prefix:q}"
        " --language en --settings {params.settings:q} --jars {input.jars:q}"
        " --threads {resources.cpus_per_task} --memory {resources.mem_mb} 2> {log:q}"


rule annotate_task:
    input:
        tsv=of_task("{part}.tsv"),
        data=of_task("ids/{part}.npz"),
        vocabulary=lambda wildcards: weights_files(wildcards)[1:],
        parses=lambda wildcards: [f"{prefix}.{kind}" for prefix in task_parses(wildcards) for kind in PARSES],
        code=code(
            "corpora/tasks",
            "engine/sentences",
            "engine/task_syntax",
            "syntax/corenlp",
            "syntax/jvm",
            "syntax/treebank",
            "syntax/pieces",
            "text/gpt2",
        ),
    output:
        syntax=of_task("ids/syntax.{part}.npy"),
        counts=of_task("ids/syntax.{part}.json"),
    log:
        of_task("logs/annotate_task.{part}.log"),
    benchmark:
        of_task("benchmarks/annotate_task.{part}.tsv")
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        weights=weights_folder,
        parses=task_parses,
    shell:
        "synmask annotate-task --task {wildcards.task} --input {input.tsv:q} --data {input.data:q}"
        " --weights {params.weights:q} --parses {params.parses:q} 2> {log:q}"

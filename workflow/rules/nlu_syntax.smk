# Parses of RoBERTa's tasks, for systems that read them: distinct sentences → tokens → CoreNLP → words and heads of sub-words.


rule task_sentences:
    input:
        parts=JOBS.task_rows,
    output:
        "results/{benchmark}/{task}/syntax/{number}.text",
    log:
        "results/{benchmark}/{task}/logs/task_sentences.{number}.log",
    benchmark:
        "results/{benchmark}/{task}/benchmarks/task_sentences.{number}.tsv"
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        code=JOBS.code("task-sentences"),
        number=lambda wildcards: wildcards.number.removeprefix("test-"),
        files=JOBS.sentence_files,
    shell:
        "synmask task-sentences --task {wildcards.task} --inputs {input.parts:q} --output {output:q}"
        " --number {params.number} --files {params.files} 2> {log:q}"


rule tokenise_sentences:
    input:
        text="results/{benchmark}/{task}/syntax/{number}.text",
    output:
        "results/{benchmark}/{task}/syntax/{number}.tokens",
    log:
        "results/{benchmark}/{task}/logs/tokenise_sentences.{number}.log",
    benchmark:
        "results/{benchmark}/{task}/benchmarks/tokenise_sentences.{number}.tsv"
    group:
        "task-text"
    conda:
        "../envs/synmask.yaml"
    threads: 2
    params:
        code=JOBS.code("tokenise"),
        settings=as_json({"tokeniser": "moses"}),
    shell:
        "synmask tokenise --input {input.text:q} --output {output:q} --language en"
        " --settings {params.settings:q} --threads {threads} 2> {log:q}"


rule parse_sentences:
    input:
        tokens="results/{benchmark}/{task}/syntax/{number}.tokens",
        jars=lambda wildcards: list(CONFIG.corenlp_jars("en")),
    output:
        trees="results/{benchmark}/{task}/syntax/{number}.trees",
        heads="results/{benchmark}/{task}/syntax/{number}.heads",
        report="results/{benchmark}/{task}/syntax/{number}.json",
    log:
        "results/{benchmark}/{task}/logs/parse_sentences.{number}.log",
    benchmark:
        "results/{benchmark}/{task}/benchmarks/parse_sentences.{number}.tsv"
    conda:
        "../envs/corenlp.yaml"
    threads: CONFIG.corenlp.threads
    resources:
        cpus_per_task=CONFIG.corenlp.threads,
        mem_mb=CONFIG.corenlp.mem_mb,
        runtime=CONFIG.corenlp.runtime,
    params:
        code=JOBS.code("constituency"),
        settings=lambda wildcards: CONFIG.corenlp_settings("en"),
        prefix=lambda wildcards, output: output.trees.removesuffix(".trees"),
    shell:
        "synmask constituency --input {input.tokens:q} --tokens {input.tokens:q} --output {params.prefix:q}"
        " --language en --settings {params.settings:q} --jars {input.jars:q}"
        " --threads {resources.cpus_per_task} --memory {resources.mem_mb} 2> {log:q}"


rule annotate_task:
    input:
        tsv="results/{benchmark}/{task}/{part}.tsv",
        data="results/{benchmark}/{task}/ids/{part}.npz",
        vocabulary=lambda wildcards: JOBS.weights_files(wildcards)[1:],
        parses=JOBS.parse_files,
    output:
        syntax="results/{benchmark}/{task}/ids/syntax.{part}.npy",
        counts="results/{benchmark}/{task}/ids/syntax.{part}.json",
    log:
        "results/{benchmark}/{task}/logs/annotate_task.{part}.log",
    benchmark:
        "results/{benchmark}/{task}/benchmarks/annotate_task.{part}.tsv"
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        code=JOBS.code("annotate-task"),
        weights=JOBS.weights_folder,
        parses=JOBS.task_parses,
    shell:
        "synmask annotate-task --task {wildcards.task} --input {input.tsv:q} --data {input.data:q}"
        " --weights {params.weights:q} --parses {params.parses:q} 2> {log:q}"

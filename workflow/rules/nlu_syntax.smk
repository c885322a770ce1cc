# Parses of RoBERTa's tasks, for systems that read them: distinct sentences → tokens → CoreNLP → words and heads of sub-words.


rule task_sentences:
    input:
        parts=JOBS.task_rows,
    output:
        "results/{benchmark}/{task}/syntax/{number}.text",
    log:
        "results/{benchmark}/{task}/logs/task_sentences.{number}.log",
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


use rule tokenise as tokenise_sentences with:
    input:
        text="results/{benchmark}/{task}/syntax/{number}.text",
        jars=[],
    output:
        "results/{benchmark}/{task}/syntax/{number}.tokens",
    log:
        "results/{benchmark}/{task}/logs/tokenise_sentences.{number}.log",
    benchmark:
        "results/{benchmark}/{task}/benchmarks/tokenise_sentences.{number}.tsv"
    group:
        "task-text"
    resources:
        mem_mb=2000,
    params:
        settings=as_json({"tokeniser": "moses"}),
        language="en",


use rule constituency as parse_sentences with:
    input:
        cased="results/{benchmark}/{task}/syntax/{number}.tokens",
        tokens="results/{benchmark}/{task}/syntax/{number}.tokens",
        jars=lambda wildcards: CONFIG.corenlp_jars("en"),
    output:
        trees="results/{benchmark}/{task}/syntax/{number}.trees",
        heads="results/{benchmark}/{task}/syntax/{number}.heads",
        report="results/{benchmark}/{task}/syntax/{number}.json",
    log:
        "results/{benchmark}/{task}/logs/parse_sentences.{number}.log",
    benchmark:
        "results/{benchmark}/{task}/benchmarks/parse_sentences.{number}.tsv"
    params:
        settings=lambda wildcards: as_json(CONFIG.corenlp_settings("en")),
        language="en",


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

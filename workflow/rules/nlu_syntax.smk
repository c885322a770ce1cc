# Parses of RoBERTa's tasks, for systems that read them: distinct sentences → tokens → CoreNLP → words and heads of sub-words.


rule task_sentences:
    input:
        parts=lambda w: each(TASK / "{part}.tsv", part=job(w).parsed_parts()),
    output:
        text=TASK / "syntax/{number}.text",
        tokens=TASK / "syntax/{number}.tokens",
    log:
        TASK / "logs/task_sentences.{number}.log",
    localrule: True
    params:
        code=code("task-sentences"),
        number=lambda w: w.number.rpartition("-")[2],
        files=lambda w: job(w).sentence_files(),
    shell:
        "synmask task-sentences --task {wildcards.task} --inputs {input.parts:q} --output {output.text:q}"
        " --tokens {output.tokens:q} --number {params.number} --files {params.files} 2> {log:q}"


use rule constituency as parse_sentences with:
    input:
        cased=TASK / "syntax/{number}.tokens",
        tokens=TASK / "syntax/{number}.tokens",
        jars=lambda w: JOBS.data.corenlp_jars("en"),
    output:
        trees=TASK / "syntax/{number}.trees",
        heads=TASK / "syntax/{number}.heads",
        report=TASK / "syntax/{number}.json",
    log:
        TASK / "logs/parse_sentences.{number}.log",
    params:
        settings=lambda w: as_json(JOBS.data.corenlp_settings("en")),
        language="en",
        tokeniser="",


rule annotate_task:
    input:
        tsv=TASK / "{part}.tsv",
        data=TASK / "ids/{part}.npz",
        vocabulary=lambda w: job(w).vocabulary_files(),
        parses=lambda w: job(w).parse_files(),
    output:
        syntax=TASK / "ids/syntax.{part}.npy",
        counts=TASK / "ids/syntax.{part}.json",
    log:
        TASK / "logs/annotate_task.{part}.log",
    localrule: True
    params:
        code=code("annotate-task"),
        inputs_checksum=lambda w: job(w).inputs_checksum(job(w).parse_files()),
        weights=lambda w: job(w).weights_folder(),
        parses=lambda w: job(w).task_parses(),
    shell:
        "synmask annotate-task --task {wildcards.task} --input {input.tsv:q} --data {input.data:q}"
        " --weights {params.weights:q} --parses {params.parses:q} 2> {log:q}"

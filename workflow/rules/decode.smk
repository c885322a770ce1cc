# Test hypotheses and their scores.


rule decode:
    input:
        model=of_run("average.pt"),
        source=of_pair("bpe/test.{source}"),
        annotations=annotations("test"),
        code=engine_code("engine/decode", "engine/average", "engine/binarise", "text/bpe", "text/tokenise"),
    output:
        text=of_run("hypothesis.txt"),
        tokens=of_run("hypothesis.tok"),
        time=of_run("hypothesis.json"),
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
        annotations=lambda wildcards, input: option("annotations", input.annotations or None),
        output=lambda wildcards, output: os.path.splitext(output.text)[0],
    shell:
        "synmask decode --model {input.model:q} --input {input.source:q} --output {params.output:q} {params.annotations}"
        " --settings {params.settings:q} --threads {resources.cpus_per_task} --gpus {resources.gpu} 2> {log:q}"


rule score:
    input:
        text=of_run("hypothesis.txt"),
        tokens=of_run("hypothesis.tok"),
        time=of_run("hypothesis.json"),
        train=of_run("train.json"),
        reference=of_pair("text/test.{target}"),
        reference_tokens=of_pair("tokens/test.{target}"),
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
        hypothesis=lambda wildcards, input: os.path.splitext(input.text)[0],
    shell:
        "synmask score --hypothesis {params.hypothesis:q} --reference {input.reference:q}"
        " --reference-tokens {input.reference_tokens:q} {params.lowercase} --run {params.run:q}"
        " --train {input.train:q} --output {output:q} 2> {log:q}"


rule sentences:
    input:
        hypothesis=of_run("hypothesis.txt"),
        reference=of_pair("text/test.{target}"),
        source=of_pair("bpe/test.{source}"),
        code=code("evaluation/sentences"),
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
        " {params.lowercase} --output {output:q} 2> {log:q}"

# Test hypotheses and their scores.


rule decode:
    input:
        model=RUN + "/average.pt",
        source=PAIR + "/bpe/test.{source}",
        code=engine_code("decode", "average"),
    output:
        text=RUN + "/hypothesis.txt",
        tokens=RUN + "/hypothesis.tok",
        time=RUN + "/hypothesis.json",
    log:
        RUN + "/logs/decode.{source}-{target}.log",
    benchmark:
        RUN + "/benchmarks/decode.{source}-{target}.tsv"
    group:
        "evaluate"
    conda:
        "../envs/synmask.yaml"
    threads: need("threads")
    resources:
        mem_mb=need("mem_mb"),
        gpu=lambda wildcards: min(1, corpus_of(wildcards).resources.gpus),
    params:
        settings=section("decoding"),
        output=RUN + "/hypothesis",
    shell:
        "synmask decode --model {input.model:q} --input {input.source:q} --output {params.output:q}"
        " --settings {params.settings:q} --threads {threads} 2> {log:q}"


rule score:
    input:
        text=RUN + "/hypothesis.txt",
        tokens=RUN + "/hypothesis.tok",
        time=RUN + "/hypothesis.json",
        train=RUN + "/train.json",
        reference=PAIR + "/text/test.{target}",
        reference_tokens=PAIR + "/tokens/test.{target}",
        code=code("evaluation/bleu"),
    output:
        RUN + "/scores.json",
    log:
        RUN + "/logs/score.{source}-{target}.log",
    benchmark:
        RUN + "/benchmarks/score.{source}-{target}.tsv"
    group:
        "evaluate"
    conda:
        "../envs/synmask.yaml"
    params:
        run=run_name,
        lowercase=lambda wildcards: "--lowercase" if corpus_of(wildcards).text.lowercase else "",
        hypothesis=RUN + "/hypothesis",
    shell:
        "synmask score --hypothesis {params.hypothesis:q} --reference {input.reference:q}"
        " --reference-tokens {input.reference_tokens:q} {params.lowercase} --run {params.run:q}"
        " --train {input.train:q} --output {output:q} 2> {log:q}"

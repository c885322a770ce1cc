# Trees and heads by Stanford CoreNLP: to score induced trees, and for systems that read a parser's.


rule constituency:
    input:
        cased=JOBS.cased,
        tokens=PAIR / "tokens/{split}.{language}",
        jars=JOBS.parser_jars,
    output:
        trees=PAIR / "syntax/{split}.{language}.trees",
        heads=PAIR / "syntax/{split}.{language}.heads",
        report=PAIR / "syntax/{split}.{language}.json",
    log:
        PAIR / "logs/constituency.{split}.{language}.log",
    wildcard_constraints:
        language=any_of(filter(JOBS.data.parser_code, CONFIG.languages)),
    conda:
        "../envs/corenlp.yaml"
    threads: CONFIG.corenlp.threads
    resources:
        cpus_per_task=CONFIG.corenlp.threads,
        mem_mb=CONFIG.corenlp.mem_mb,
        runtime=CONFIG.corenlp.runtime,
    params:
        code=given(JOBS.code, "constituency"),
        settings=lambda wildcards: as_json(JOBS.data.corenlp_settings(wildcards.language)),
        language="{language}",
        tokeniser=lambda wildcards: option("tokeniser", JOBS.cased_tokeniser(wildcards)),
        prefix=stem,
    shell:
        "synmask constituency --input {input.cased:q} --tokens {input.tokens:q} --output {params.prefix:q}"
        " --language {params.language} {params.tokeniser} --settings {params.settings:q} --jars {input.jars:q}"
        " --threads {resources.cpus_per_task} --memory {resources.mem_mb} 2> {log:q}"

# Trees and heads by Stanford CoreNLP: to score induced trees, and for systems that read a parser's.


rule constituency:
    input:
        cased=lambda w: job(w).cased(),
        tokens=PAIR / "tokens/{split}.{language}",
        jars=lambda w: job(w).parser_jars(),
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
        code=code("constituency"),
        settings=lambda w: as_json(JOBS.data.corenlp_settings(w.language)),
        language="{language}",
        tokeniser=lambda w: as_options(tokeniser=job(w).cased_tokeniser()),
        prefix=subpath(output[0], strip_suffix=".trees"),
    shell:
        "synmask constituency --input {input.cased:q} --tokens {input.tokens:q} --output {params.prefix:q}"
        " --language {params.language} {params.tokeniser} --settings {params.settings:q} --jars {input.jars:q}"
        " --threads {resources.cpus_per_task} --memory {resources.mem_mb} 2> {log:q}"

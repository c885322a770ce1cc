# Trees and heads by Stanford CoreNLP: to score induced trees, and for systems that read a parser's.


# The parser needs upper case: of a lower-cased corpus the text is tokenised once more.
use rule tokenise as tokenise_cased with:
    output:
        PAIR / "syntax/{split}.{language}.cased",
    log:
        PAIR / "logs/tokenise_cased.{split}.{language}.log",
    params:
        settings=given(JOBS.section, "text", include={"tokeniser"}),


rule constituency:
    input:
        cased=JOBS.cased_tokens,
        tokens=PAIR / "tokens/{split}.{language}",
        jars=lambda wildcards: JOBS.data.corenlp_jars(wildcards.language),
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
        prefix=stem,
    shell:
        "synmask constituency --input {input.cased:q} --tokens {input.tokens:q} --output {params.prefix:q}"
        " --language {params.language} --settings {params.settings:q} --jars {input.jars:q}"
        " --threads {resources.cpus_per_task} --memory {resources.mem_mb} 2> {log:q}"

# Trees and heads by Stanford CoreNLP: to score induced trees, and for systems that read a parser's.


# The parser needs upper case: of a lower-cased corpus the text is tokenised once more.
use rule tokenise as tokenise_cased with:
    output:
        "results/{corpus}/{source}-{target}/syntax/{split}.{language}.cased",
    log:
        "results/{corpus}/{source}-{target}/logs/tokenise_cased.{split}.{language}.log",
    benchmark:
        "results/{corpus}/{source}-{target}/benchmarks/tokenise_cased.{split}.{language}.tsv"
    params:
        settings=JOBS.section("text", include={"tokeniser"}),


rule constituency:
    input:
        cased=JOBS.cased_tokens,
        tokens="results/{corpus}/{source}-{target}/tokens/{split}.{language}",
        jars=lambda wildcards: CONFIG.corenlp_jars(wildcards.language),
    output:
        trees="results/{corpus}/{source}-{target}/syntax/{split}.{language}.trees",
        heads="results/{corpus}/{source}-{target}/syntax/{split}.{language}.heads",
        report="results/{corpus}/{source}-{target}/syntax/{split}.{language}.json",
    log:
        "results/{corpus}/{source}-{target}/logs/constituency.{split}.{language}.log",
    benchmark:
        "results/{corpus}/{source}-{target}/benchmarks/constituency.{split}.{language}.tsv"
    wildcard_constraints:
        language=any_of(filter(CONFIG.parser_code, CONFIG.languages)),
    conda:
        "../envs/corenlp.yaml"
    threads: CONFIG.corenlp.threads
    resources:
        cpus_per_task=CONFIG.corenlp.threads,
        mem_mb=CONFIG.corenlp.mem_mb,
        runtime=CONFIG.corenlp.runtime,
    params:
        code=JOBS.code("constituency"),
        settings=lambda wildcards: as_json(CONFIG.corenlp_settings(wildcards.language)),
        language="{language}",
        prefix=stem,
    shell:
        "synmask constituency --input {input.cased:q} --tokens {input.tokens:q} --output {params.prefix:q}"
        " --language {params.language} --settings {params.settings:q} --jars {input.jars:q}"
        " --threads {resources.cpus_per_task} --memory {resources.mem_mb} 2> {log:q}"

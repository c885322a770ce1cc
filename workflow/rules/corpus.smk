# Raw text: generated, downloaded or the user's own, then checked and written as plain text.


rule demo_corpus:
    input:
        code=code(
            "corpora/demo/__init__",
            "corpora/demo/abstract",
            "corpora/demo/english",
            "corpora/demo/german",
            "corpora/demo/grammar",
            "corpora/demo/lexicon",
            "corpora/demo/phrases",
            "syntax/treebank",
        ),
    output:
        expand(
            "results/{{corpus}}/raw/{split}.{language}{kind}",
            split=settings.SPLITS,
            language=("de", "en"),
            kind=("", ".trees", ".heads"),
        ),
    log:
        "results/{corpus}/logs/demo_corpus.log",
    benchmark:
        "results/{corpus}/benchmarks/demo_corpus.tsv"
    wildcard_constraints:
        corpus=any_of(GENERATED),
    group:
        "text"
    conda:
        "../envs/synmask.yaml"
    params:
        settings=section("generate"),
        folder=folder_of("output"),
    shell:
        "synmask demo-corpus --output {params.folder} --settings {params.settings:q} 2> {log:q}"


rule download_file:
    output:
        f"{CONFIG.data_dir}/{{download}}/{{file}}",
    log:
        "results/logs/download/{download}/{file}.log",
    benchmark:
        "results/benchmarks/download/{download}/{file}.tsv"
    wildcard_constraints:
        download=any_of(DOWNLOADED),
        file="[^/]+",
    # on the machine where Snakemake runs, since compute nodes often have no network
    localrule: True
    conda:
        "../envs/synmask.yaml"
    resources:
        # not in params: taking the same file from elsewhere must not rerun what depends on it
        mirror=lambda wildcards: option("mirror", CONFIG.mirrors.get(wildcards.download)),
    params:
        url=lambda wildcards: f"{DOWNLOADED[wildcards.download].url}/{wildcards.file}",
        sha256=lambda wildcards: option("sha256", DOWNLOADED[wildcards.download].sha256.get(wildcards.file)),
    shell:
        "synmask download --name {wildcards.download} --url {params.url:q} --output {output:q} {params.sha256} {resources.mirror} 2> {log:q}"


rule text:
    input:
        source=lambda w: CONFIG.raw_file(w.corpus, w.split, w.source),
        target=lambda w: CONFIG.raw_file(w.corpus, w.split, w.target),
        code=code("corpora/plain"),
    output:
        source=of_pair("text/{split}.{source}"),
        target=of_pair("text/{split}.{target}"),
    log:
        of_pair("logs/text.{split}.{source}-{target}.log"),
    benchmark:
        of_pair("benchmarks/text.{split}.{source}-{target}.tsv")
    group:
        "text"
    conda:
        "../envs/synmask.yaml"
    shell:
        "synmask text --name {wildcards.corpus} --source-in {input.source:q} --target-in {input.target:q}"
        " --source-out {output.source:q} --target-out {output.target:q} 2> {log:q}"

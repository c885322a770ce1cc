# Raw text: downloaded or the user's own, taken out of archives, checked and written as plain text.


rule download_file:
    output:
        f"{CONFIG.data_dir}/{{download}}/{{file}}",
    log:
        LOGS / "download/{download}/{file}.log",
    wildcard_constraints:
        download=any_of(JOBS.data.origins),
        file=any_of(file for files in JOBS.data.origins.values() for file in files),
    # on the machine where Snakemake runs, since compute nodes often have no network
    localrule: True
    resources:
        # not in params: taking the same file from elsewhere must not rerun what depends on it
        mirror=lambda w: as_options(mirror=CONFIG.mirrors.get(w.download)),
    params:
        url=lambda w: as_options(url=JOBS.data.origin(w.download, w.file)[0]),
        sha256=lambda w: as_options(sha256=JOBS.data.origin(w.download, w.file)[1]),
    shell:
        "synmask download --name {wildcards.download} {params.url} --output {output:q} {params.sha256} {resources.mirror} 2> {log:q}"


rule prepare:
    input:
        archives=lambda w: JOBS.data.corpus_sources(w.corpus),
    output:
        each(CORPUS / "raw/{first}-{second}/{split}.{side}", split=SPLITS, side=("{first}", "{second}")),
    log:
        CORPUS / "logs/prepare.{first}-{second}.log",
    wildcard_constraints:
        corpus=any_of(CONFIG.entries_with("corpora", "format")),
    threads: lambda w: job(w).resources.threads
    resources:
        mem_mb=by_attempt(8000),
        runtime=by_attempt(240),
    params:
        code=code("prepare"),
        format=lambda w: job(w).corpus.format,
        pairs=lambda w: as_json(job(w).corpus.pairs),
        folder=subpath(output[0], parent=True),
    shell:
        "synmask prepare --name {wildcards.corpus} --format {params.format} --archives {input.archives:q}"
        " --output {params.folder} --pairs {params.pairs:q} --threads {threads} 2> {log:q}"


rule text:
    input:
        sources=lambda w: job(w).raw_text("source"),
        targets=lambda w: job(w).raw_text("target"),
        jars=lambda w: job(w).tokeniser_jars(),
    output:
        each(PAIR / "text/{split}.{side}", split=SPLITS, side=SIDES),
        each(PAIR / "tokens/{split}.{side}", split=SPLITS, side=SIDES),
        each(PAIR / "clean/train.{side}", side=SIDES),
        kept=PAIR / "clean/kept.{source}-{target}",
        pairs=PAIR / "pairs.json",
    log:
        PAIR / "logs/text.{source}-{target}.log",
    group:
        "text"
    threads: lambda w: job(w).resources.threads
    resources:
        runtime=by_attempt(lambda w: job(w).minutes(pairs_per_minute=20_000)),
        mem_mb=by_attempt(
            lambda w: job(w).megabytes(least=6000 if "stanford" in job(w).tokenisers() else 600)
        ),
    params:
        code=code("text"),
        inputs_checksum=lambda w: job(w).inputs_checksum(job(w).raw_text("source"), job(w).raw_text("target")),
        splits=lambda w: job(w).raw_splits(),
        settings=lambda w: as_options(
            settings=as_json(job(w).corpus.text), pairs=as_json(job(w).corpus.pairs)
        ),
        folder=subpath(output.pairs, parent=True),
    shell:
        "synmask text --name {wildcards.corpus} --source {wildcards.source} --target {wildcards.target}"
        " --splits {params.splits} --source-in {input.sources:q} --target-in {input.targets:q}"
        " --output {params.folder:q} {params.settings} --threads {threads} --jars {input.jars:q} 2> {log:q}"

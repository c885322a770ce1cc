# Scores → tests against a baseline → tables.


rule significance:
    input:
        hypothesis=[
            "results/{corpus}/{source}-{target}/{system}/seed{seed}/hypothesis.test.txt",
            "results/{corpus}/{source}-{target}/{system}/seed{seed}/hypothesis.test.tok",
        ],
        baseline=[
            "results/{corpus}/{source}-{target}/{baseline}/seed{seed}/hypothesis.test.txt",
            "results/{corpus}/{source}-{target}/{baseline}/seed{seed}/hypothesis.test.tok",
        ],
        reference="results/{corpus}/{source}-{target}/text/test.{target}",
        reference_tokens="results/{corpus}/{source}-{target}/tokens/test.{target}",
    output:
        "results/{corpus}/{source}-{target}/{system}/seed{seed}/significance-{baseline}.json",
    log:
        "results/{corpus}/{source}-{target}/{system}/seed{seed}/logs/significance-{baseline}.{source}-{target}.log",
    benchmark:
        "results/{corpus}/{source}-{target}/{system}/seed{seed}/benchmarks/significance-{baseline}.{source}-{target}.tsv"
    group:
        "significance"
    conda:
        "../envs/synmask.yaml"
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        code=JOBS.code("significance"),
        run=JOBS.compared_run,
        lowercase=lowercase,
        hypothesis=lambda wildcards, input: os.path.splitext(input.hypothesis[0])[0],
        baseline=lambda wildcards, input: os.path.splitext(input.baseline[0])[0],
    shell:
        "synmask significance --hypothesis {params.hypothesis:q} --baseline {params.baseline:q}"
        " --reference {input.reference:q} --reference-tokens {input.reference_tokens:q} {params.lowercase}"
        " --run {params.run:q} --output {output:q} 2> {log:q}"


rule table:
    input:
        scores=lambda wildcards: TARGETS.table_runs(wildcards.table, "scores.json"),
        parses=lambda wildcards: TARGETS.table_runs(wildcards.table, "parse.json"),
        tasks=lambda wildcards: TARGETS.table_tasks(wildcards.table),
        comparisons=lambda wildcards: TARGETS.table_comparisons(wildcards.table),
        published=local(CONFIG.published),
    output:
        md=report(
            "results/tables/{table}.md",
            caption="../report/table.rst",
            category="Tables",
            subcategory="{table}",
            labels={"table": "{table}"},
        ),
        csv="results/tables/{table}.csv",
        runs="results/tables/{table}.runs.csv",
        tex="results/tables/{table}.tex",
        json="results/tables/{table}.json",
    log:
        "results/logs/table.{table}.log",
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        code=JOBS.code("table"),
        plan=lambda wildcards: as_json(TARGETS.plan(wildcards.table)),
        output=stem,
    shell:
        "synmask table --plan {params.plan:q} --published {input.published:q} --scores {input.scores:q}"
        " --parses {input.parses:q} --tasks {input.tasks:q} --comparisons {input.comparisons:q} --output {params.output:q} 2> {log:q}"


rule tables:
    input:
        [path for target in CONFIG.targets for path in TARGETS.target_tables(target)],
    localrule: True


rule parse_table:
    input:
        scores=lambda wildcards: TARGETS.parsed_files(wildcards.experiment, "parse.json"),
        counts=lambda wildcards: TARGETS.parsed_files(wildcards.experiment, "parse_counts.json"),
    output:
        md=report(
            "results/tables/{experiment}-parsing.md",
            caption="../report/parse_table.rst",
            category="Tables",
            subcategory="{experiment}",
            labels={"table": "parsing"},
        ),
        csv="results/tables/{experiment}-parsing.csv",
        tex="results/tables/{experiment}-parsing.tex",
        json="results/tables/{experiment}-parsing.json",
    log:
        "results/logs/parse_table.{experiment}.log",
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        code=JOBS.code("parse-table"),
        title=lambda wildcards: f"{TARGETS.entry(wildcards.experiment).title}: parsing",
        labels=lambda wildcards: as_json(TARGETS.labels(TARGETS.inducing(wildcards.experiment))),
        directions=lambda wildcards: TARGETS.entry(wildcards.experiment).directions,
        output=stem,
    shell:
        "synmask parse-table --inputs {input.scores:q} --counts {input.counts:q} --output {params.output:q}"
        " --title {params.title:q} --labels {params.labels:q} --directions {params.directions:q} 2> {log:q}"


rule claims:
    input:
        runs=claimed,
        claims=CONFIG.claims or [],
    output:
        multiext("results/claims/verdict", ".md", ".csv", ".runs.csv", ".svg", ".pdf"),
    log:
        "results/logs/claims.log",
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        code=JOBS.code("verdict"),
        scores=lambda wildcards, input: [
            path for path in input.runs if os.path.basename(path) == "scores.json"
        ],
    shell:
        "synmask verdict --claims {input.claims:q} --results results --scores {params.scores:q}"
        " --output results/claims/verdict 2> {log:q}"

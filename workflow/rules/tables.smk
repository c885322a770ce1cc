# Scores → tests against a baseline → tables.


rule significance:
    input:
        hypothesis=[of_run("hypothesis.test.txt"), of_run("hypothesis.test.tok")],
        baseline=[f"{PAIR}/{{baseline}}/seed{{seed}}/hypothesis.test.{kind}" for kind in ("txt", "tok")],
        reference=of_pair("text/test.{target}"),
        reference_tokens=of_pair("tokens/test.{target}"),
        code=code("evaluation/significance", "evaluation/bleu"),
    output:
        of_run("significance-{baseline}.json"),
    log:
        of_run("logs/significance-{baseline}.{source}-{target}.log"),
    benchmark:
        of_run("benchmarks/significance-{baseline}.{source}-{target}.tsv")
    group:
        "significance"
    conda:
        "../envs/synmask.yaml"
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        run=lambda w: settings.as_json(
            {
                "corpus": w.corpus,
                "direction": f"{w.source}-{w.target}",
                "system": w.system,
                "seed": int(w.seed),
                "baseline": w.baseline,
            }
        ),
        lowercase=lambda wildcards: "--lowercase" if corpus_of(wildcards).text.lowercase else "",
        hypothesis=lambda wildcards, input: os.path.splitext(input.hypothesis[0])[0],
        baseline=lambda wildcards, input: os.path.splitext(input.baseline[0])[0],
    shell:
        "synmask significance --hypothesis {params.hypothesis:q} --baseline {params.baseline:q}"
        " --reference {input.reference:q} --reference-tokens {input.reference_tokens:q} {params.lowercase}"
        " --run {params.run:q} --output {output:q} 2> {log:q}"


rule table:
    input:
        scores=table_runs("scores.json"),
        parses=table_runs("parse.json"),
        tasks=table_tasks,
        comparisons=table_comparisons,
        published=CONFIG.published,
        code=code(
            *(f"reporting/{name}" for name in ("cells", "layout", "notes", "runs", "tables")),
            "evaluation/significance",
            "config/published",
            "evaluation/nlu",
            "corpora/tasks",
        ),
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
    log:
        "results/logs/table.{table}.log",
    benchmark:
        "results/benchmarks/table.{table}.tsv"
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        plan=lambda wildcards: settings.as_json(TABLES[wildcards.table]),
        output="results/tables/{table}",
    shell:
        "synmask table --plan {params.plan:q} --published {input.published:q} --scores {input.scores:q}"
        " --parses {input.parses:q} --tasks {input.tasks:q} --comparisons {input.comparisons:q} --output {params.output:q} 2> {log:q}"


rule tables:
    input:
        [path for target in CONFIG.targets for path in target_tables(target)],
    localrule: True


rule parse_table:
    input:
        scores=lambda wildcards: run_files(wildcards.experiment, "parse.json", inducing(wildcards.experiment)),
        counts=lambda wildcards: run_files(
            wildcards.experiment, "parse_counts.json", inducing(wildcards.experiment)
        ),
        code=code("reporting/parse_tables", "reporting/layout", "evaluation/parse_significance"),
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
    log:
        "results/logs/parse_table.{experiment}.log",
    benchmark:
        "results/benchmarks/parse_table.{experiment}.tsv"
    localrule: True
    conda:
        "../envs/synmask.yaml"
    params:
        title=lambda wildcards: f"{CONFIG.plain_experiments[wildcards.experiment].title}: parsing",
        labels=lambda wildcards: labels(inducing(wildcards.experiment)),
        directions=lambda wildcards: CONFIG.plain_experiments[wildcards.experiment].directions,
        output="results/tables/{experiment}-parsing",
    shell:
        "synmask parse-table --inputs {input.scores:q} --counts {input.counts:q} --output {params.output:q}"
        " --title {params.title:q} --labels {params.labels:q} --directions {params.directions:q} 2> {log:q}"

# Scores and counts by sentence → tables with tests against a baseline.


rule table:
    input:
        scores=lambda wildcards: TARGETS.table_runs(wildcards.table, "scores.json"),
        parses=lambda wildcards: TARGETS.table_runs(wildcards.table, "parse.json"),
        tasks=lambda wildcards: TARGETS.table_tasks(wildcards.table),
        sentences=lambda wildcards: TARGETS.table_runs(wildcards.table, "sentences.csv"),
        published=local(CONFIG.published),
    output:
        shown(TABLES / "{table}.md", "table", "Tables", "{table}", table="{table}"),
        multiext(TABLES / "{table}", ".csv", ".runs.csv", ".tex", ".json"),
    log:
        LOGS / "table.{table}.log",
    localrule: True
    params:
        code=given(JOBS.code, "table"),
        spec=lambda wildcards: as_json(TARGETS.table_spec(wildcards.table)),
        tasks=lambda wildcards, input: [path for path in input.tasks if path.endswith(".json")],
        output=stem,
    shell:
        "synmask table --spec {params.spec:q} --published {input.published:q} --scores {input.scores:q}"
        " --parses {input.parses:q} --tasks {params.tasks:q} --output {params.output:q} 2> {log:q}"


rule tables:
    input:
        [path for target in CONFIG.targets for path in TARGETS.target_tables(target)],
    localrule: True


rule parse_table:
    input:
        scores=run_files("parse.json", induced="distances"),
        counts=run_files("parse_counts.json", induced="distances"),
    output:
        shown(TABLES / "{experiment}-parsing.md", "parse_table", "Tables", "{experiment}", table="parsing"),
        multiext(TABLES / "{experiment}-parsing", ".csv", ".tex", ".json"),
    log:
        LOGS / "parse_table.{experiment}.log",
    localrule: True
    params:
        code=given(JOBS.code, "parse-table"),
        title=lambda wildcards: f"{TARGETS.entry(wildcards.experiment).title}: parsing",
        labels=lambda wildcards: system_labels(wildcards, "distances"),
        directions=lambda wildcards: TARGETS.entry(wildcards.experiment).directions,
        output=stem,
    shell:
        "synmask parse-table --inputs {input.scores:q} --counts {input.counts:q} --output {params.output:q}"
        " --title {params.title:q} --labels {params.labels:q} --directions {params.directions:q} 2> {log:q}"

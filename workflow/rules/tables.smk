# Scores and counts by sentence → tables with tests against a baseline.


rule table:
    input:
        unpack(lambda w: TARGETS.table_files(w.table)),
        published=local(CONFIG.published),
    output:
        reported(TABLES / "{table}.md", "table", "{table}", table="{table}"),
        multiext(TABLES / "{table}", ".csv", ".runs.csv", ".tex", ".json"),
    log:
        LOGS / "table.{table}.log",
    localrule: True
    params:
        code=code("table"),
        options=lambda w: as_options(**TARGETS.table_options(w.table)),
        output=subpath(output[0], strip_suffix=".md"),
    shell:
        "synmask table {params.options} --published {input.published:q} --scores {input.scores:q}"
        " --parses {input.parses:q} --tasks {input.tasks:q} --output {params.output:q} 2> {log:q}"


rule parse_table:
    input:
        scores=lambda w: TARGETS.files(TARGETS.runs(w.experiment, induced="distances"), "parse.json"),
        counts=lambda w: TARGETS.files(TARGETS.runs(w.experiment, induced="distances"), "parse_counts.json"),
    output:
        reported(TABLES / "{experiment}-parsing.md", "parse_table", table="parsing"),
        multiext(TABLES / "{experiment}-parsing", ".csv", ".tex", ".json"),
    log:
        LOGS / "parse_table.{experiment}.log",
    localrule: True
    params:
        code=code("parse-table"),
        options=lambda w: as_options(**TARGETS.parse_table_options(w.experiment)),
        output=subpath(output[0], strip_suffix=".md"),
    shell:
        "synmask parse-table {params.options} --inputs {input.scores:q} --output {params.output:q} 2> {log:q}"

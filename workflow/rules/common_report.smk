# What tables and pages consist of.


def table_runs(name):
    """A file of every run of a table, where the table reads it."""

    def files(wildcards):
        plan = TABLES[wildcards.table]
        runs = tables.asked_runs(plan) if name in plan["files"] else []
        return available([run_file(run, name) for run in runs])

    return files


def table_comparisons(wildcards):
    """The tests of a table's runs against its baseline."""
    return [
        run_file(run, f"significance-{baseline['system']}.json")
        for run, baseline in tables.compared(TABLES[wildcards.table])
        if len(available([run_file(run, "scores.json"), run_file(baseline, "scores.json")])) == 2
    ]


def table_tasks(wildcards):
    """What a benchmark's table reads: the scores of its runs, and its baselines'."""
    plan = TABLES[wildcards.table]
    return available(tables.task_files(plan)) if "glue" in plan["metrics"] else []


def page_target(wildcards):
    """The experiments on a page: results/report.html has those of `targets`, report-NAME.html those of NAME."""
    names = [wildcards.page.removeprefix("report-")] if wildcards.page != "report" else CONFIG.targets
    return list(dict.fromkeys(experiment for name in names for experiment in CONFIG.own_experiments(name)))


def page_benchmarks(wildcards):
    """The tables of benchmarks on a page: results/report.html has those of `targets` and what was built before."""
    if wildcards.page != "report":
        name = wildcards.page.removeprefix("report-")
        return [table for table in [name, *CONFIG.tables_of(name)] if table in BENCHMARK_TABLES]
    listed = {table for name in CONFIG.targets for table in [name, *CONFIG.tables_of(name)]}
    whole = [name for name in BENCHMARK_TABLES if name in CONFIG.tables]
    return [name for name in whole if name in listed or os.path.exists(table_path(name))]


def benchmark_entry(name):
    """The part of a page that shows a benchmark's table."""
    table = CONFIG.all_tables[name]
    chosen = CONFIG.tasks_of(table)
    parts = list(dict.fromkeys(part for task in chosen.values() for part in task.parts))
    return {
        "name": name,
        "title": table.title,
        "corpus": table.benchmark,
        "directions": list(chosen),
        "systems": [[system, CONFIG.label(system)] for system in table.systems if system in CONFIG.systems],
        "seeds": CONFIG.benchmark_seeds(table.benchmark),
        "tables": [table_path(name)],
        "figures": [task_figure(name)],
        "columns": {column: name for name, task in chosen.items() for column in task.columns},
        "metrics": {part: part.replace("_", ", ") for part in parts},
    }


def page_files(wildcards):
    """What a page shows; with `partial`, it takes figures as they are."""
    return [
        METHOD,
        *map(table_path, page_benchmarks(wildcards)),
        *([] if CONFIG.partial else map(task_figure, page_benchmarks(wildcards))),
        *(
            path
            for experiment in page_target(wildcards)
            for path in [
                *experiment_tables(experiment),
                *(path for name in SHOWN for path in run_files(experiment, name)),
                *([] if CONFIG.partial else experiment_figures(experiment)),
                *([] if CONFIG.partial else [path for _, path in experiment_pages(experiment)]),
            ]
        ),
    ]


def page_plan(wildcards):
    """What a page consists of, as JSON."""
    experiments = [
        {
            "name": name,
            "title": entry.title,
            "corpus": entry.corpus,
            "directions": entry.directions,
            "systems": [[system, CONFIG.label(system)] for system in entry.systems],
            "seeds": CONFIG.experiment_seeds(name),
            "tables": experiment_tables(name),
            "figures": experiment_figures(name),
            "pages": experiment_pages(name),
        }
        for name, entry in ((name, CONFIG.plain_experiments[name]) for name in page_target(wildcards))
    ]
    experiments += map(benchmark_entry, page_benchmarks(wildcards))
    title = "Report: " + " · ".join(entry["title"] for entry in experiments)
    return settings.as_json({"title": title, "figures": [METHOD], "experiments": experiments})


def system_labels(wildcards):
    return labels(CONFIG.plain_experiments[wildcards.experiment].systems)

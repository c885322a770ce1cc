# The configuration, where things lie, and what each target consists of. Everything else is in the library.
import glob
import itertools
import json
import os
import re
import shlex
import sys

from synmask import config as settings
from synmask.config import tables
from synmask.files import UserError

os.environ.setdefault("PYTHONUNBUFFERED", "1")  # progress lines reach the logs at once

# Each laid over those before it; Snakemake lists config.yaml behind the files of the command line.
OVERLAYS = workflow.overwrite_configfiles
FILES = [path for path in workflow.configfiles if path not in OVERLAYS] + OVERLAYS
FILES = [str(path).removeprefix(f"{os.getcwd()}/") for path in FILES]

try:
    CONFIG = settings.load(config, FILES)
    PUBLISHED = settings.read_published(CONFIG.published)
    if (
        workflow.is_main_process and not CONFIG.partial
    ):  # what runs a job may have other folders, or less disk
        settings.check_machine(CONFIG, sys.argv[1:])
except settings.Fault as found:
    sys.exit(str(settings.fault(found.path, str(found), config, FILES)))
except UserError as error:
    sys.exit(str(error))

ARCHIVED = [name for name, corpus in CONFIG.corpora.items() if corpus.format]
GENERATED = [name for name, corpus in CONFIG.corpora.items() if corpus.generate]
DOWNLOADED = {corpus.download for corpus in CONFIG.corpora.values() if corpus.url or corpus.format}
DOWNLOADED |= {*CONFIG.downloaded_nlu}
BENCHMARK_TABLES = [name for name, table in CONFIG.all_tables.items() if table.benchmark]
TABLES = {name: tables.plan(CONFIG, PUBLISHED, name) for name in tables.table_names(CONFIG)}
PAIR = "results/{corpus}/{source}-{target}"
RUN = f"{PAIR}/{{system}}/seed{{seed}}"
METHOD = "results/figures/method.svg"
TRAINED = ("train", "valid")  # the splits that training reads
DECODED = ("valid", "test")  # those that are translated and scored
SHOWN = ("scores.json", "train.json", "hypothesis.test.txt")  # what a page reads of each run
SRC = "src/synmask"


def check_free(target):
    """Stop when a rule has the name of an experiment or table."""
    if workflow.is_rule(target):
        section = "experiments" if target in CONFIG.experiments else "tables"
        sys.exit(str(settings.fault((section, target), "a rule has this name; take another", config, FILES)))


def of_pair(path):
    """A file that all systems of a direction share."""
    return f"{PAIR}/{path}"


def of_run(path):
    """A file of one training."""
    return f"{RUN}/{path}"


def of_figure(name):
    return f"results/figures/{{experiment}}-{name}"


def captioned(stem, caption, labels, subcategory="{experiment}"):
    """The three files of a figure; the SVG stands in Snakemake's report."""
    return {
        "svg": report(
            f"{stem}.svg",
            caption=f"../report/{caption}.rst",
            category="Figures",
            subcategory=subcategory,
            labels=labels,
        ),
        "pdf": f"{stem}.pdf",
        "csv": f"{stem}.csv",
    }


def folder_of(kind):
    """The folder of a job's first input or output file, for `params`."""
    if kind == "input":
        return lambda wildcards, input: os.path.dirname(input[0])
    return lambda wildcards, output: os.path.dirname(output[0])


def any_of(names):
    return "|".join(map(re.escape, names)) or "(?!)"  # nothing matches the second


wildcard_constraints:
    corpus=any_of(CONFIG.corpora),
    source="[a-z]{2,3}",
    target="[a-z]{2,3}",
    first="[a-z]{2,3}",
    second="[a-z]{2,3}",
    language="[a-z]{2,3}",
    split="train|valid|test",
    system=any_of(CONFIG.systems),
    seed=r"\d+",
    baseline=any_of(CONFIG.systems),
    experiment=any_of(CONFIG.plain_experiments),
    table=any_of(TABLES),
    direction="[a-z]{2,3}-[a-z]{2,3}",
    page=f"report|report-({any_of([*CONFIG.experiments, *BENCHMARK_TABLES])})",


def code(*paths):
    """Source files of a stage: a change in them reruns it."""
    return [f"{SRC}/{path}" if path.endswith(".cpp") else f"{SRC}/{path}.py" for path in paths]


def option(flag, value):
    """An option of the command line, quoted; nothing where there is no value."""
    return f"--{flag} {shlex.quote(str(value))}" if value is not None else ""


def corpus_of(wildcards):
    return CONFIG.corpora[wildcards.corpus]


def section(name, **how):
    """One section of a corpus' settings as JSON, for `params`."""
    return lambda wildcards: settings.as_json(
        getattr(corpus_of(wildcards), name).model_dump(mode="json", **how)
    )


def run_settings(wildcards):
    return CONFIG.run_settings(wildcards.corpus, f"{wildcards.source}-{wildcards.target}", wildcards.system)


def run_name(wildcards, **more):
    """What was run, for score files."""
    return settings.as_json(
        {
            "corpus": wildcards.corpus,
            "direction": f"{wildcards.source}-{wildcards.target}",
            "system": wildcards.system,
            "seed": int(wildcards.seed),
            "settings": json.loads(run_settings(wildcards)),
            **more,
        }
    )


def need(name):
    """What a corpus' trainings ask of the machine."""
    return lambda wildcards: getattr(corpus_of(wildcards).resources, name)


def guide_of(system):
    """What is known of a system's guide: what it reads and induces, its source files."""
    return settings.GUIDES[CONFIG.systems[system].guide]


def annotations(*splits):
    """The annotations that a system reads of these splits: none, or a file each."""

    def files(wildcards):
        reads = guide_of(wildcards.system).reads
        return [of_pair(f"bin/syntax.{split}.{{source}}.npy") for split in splits] if reads else []

    return files


def of_experiment(name):
    """What the trainings of an experiment ask of the machine."""
    return lambda wildcards: getattr(
        CONFIG.corpora[CONFIG.plain_experiments[wildcards.experiment].corpus].resources, name
    )


def engine_code(*stage):
    """Source files behind a system's model and a stage: the guide's own only for the systems that have it."""

    def files(wildcards):
        names = ("binarise", "compat", "criterion", "dataset", "layers", "model", "task", "trainer")
        engine = [f"engine/{name}" for name in names]
        data = ["syntax/annotations", "syntax/tree", "syntax/treebank", "text/labels"]
        return code(*engine, *data, "guides/__init__", *guide_of(wildcards.system).code, *stage)

    return files


def measured_code(systems):
    """Source files behind the encoders of several systems."""
    guides = {name for system in systems for name in guide_of(system).code}
    engine = ("average", "binarise", "compat", "dataset", "layers", "model", "speed", "task")
    syntax = ("syntax/annotations", "syntax/tree", "syntax/treebank", "text/labels")
    return code(*(f"engine/{name}" for name in engine), *syntax, "guides/__init__", *sorted(guides))


def available(paths):
    """With `partial`, the files that are there; else all of them."""
    return [path for path in paths if os.path.exists(path)] if CONFIG.partial else paths


def run_files(experiment, name, systems=None, direction=None):
    """A file of every run of an experiment (of some systems, of one direction), in the order direction, system, seed."""
    entry = CONFIG.plain_experiments[experiment]
    return available(
        expand(
            f"results/{entry.corpus}/{{direction}}/{{system}}/seed{{seed}}/{name}",
            direction=direction or entry.directions,
            system=entry.systems if systems is None else systems,
            seed=CONFIG.experiment_seeds(experiment),
        )
    )


def run_file(run, name):
    """A file of a run that is given by corpus, direction, system and seed."""
    return "results/{corpus}/{direction}/{system}/seed{seed}/".format(**run) + name


def task_figure(name):
    """The figure of a benchmark's table."""
    return f"results/figures/{name}-tasks.svg"


def table_path(name):
    return f"results/tables/{name}.md"


def run_triples(experiment, direction=None):
    """Direction, system and seed of the runs of `run_files`, in its order, as JSON."""
    entry = CONFIG.plain_experiments[experiment]
    directions = [direction] if direction else entry.directions
    return settings.as_json(
        [*itertools.product(directions, entry.systems, CONFIG.experiment_seeds(experiment))]
    )


def inducing(experiment, what="distances"):
    """The systems of an experiment that induce `what`: distances (trees), or heads, too (P_D)."""
    return [name for name in CONFIG.plain_experiments[experiment].systems if what in guide_of(name).induces]


def inducing_labels(wildcards):
    return [*map(CONFIG.label, inducing(wildcards.experiment))]


def gold_of_experiment(wildcards):
    """The gold trees of the validation set's source side."""
    corpus = CONFIG.plain_experiments[wildcards.experiment].corpus
    return CONFIG.gold_trees(corpus, "valid", wildcards.direction.split("-")[0])


def labels(systems):
    """Systems and their labels as JSON pairs, in the order of the table's rows."""
    return settings.as_json([[name, CONFIG.label(name)] for name in systems])


def downloaded_files(target):
    """What a target needs from the network: files of its corpora, CoreNLP's jars that tokenise and parse them, of
    benchmarks the tasks and RoBERTa's weights."""
    files = set()
    for table in (CONFIG.all_tables[name] for name in CONFIG.tables_of(target)):
        if table.benchmark:
            benchmark = CONFIG.benchmarks[table.benchmark]
            files.update(CONFIG.weights_sources(benchmark.weights))
            if benchmark.generate is None and CONFIG.reads_words(table):
                files.update(CONFIG.corenlp_jars("en"))
            if benchmark.folder is None:
                files.update(*(CONFIG.task_sources(table.benchmark, task) for task in CONFIG.tasks_of(table)))
    for entry in map(CONFIG.plain_experiments.get, CONFIG.members(target)):
        languages = {language for direction in entry.directions for language in direction.split("-")}
        for source in {direction.split("-")[0] for direction in entry.directions}:
            if pair := CONFIG.parsed_pair(entry.corpus, source):
                files.update(CONFIG.corenlp_jars(source))
                languages.update(pair.split("-"))
        files.update(CONFIG.downloads(entry.corpus, languages))
        for language in languages:
            files.update(CONFIG.tokeniser_jars(CONFIG.tokeniser(entry.corpus, language)))
    return sorted(files)


def tokeniser_jars(wildcards):
    return CONFIG.tokeniser_jars(CONFIG.tokeniser(wildcards.corpus, wildcards.language))


def cased_tokens(wildcards):
    """Tokens in their true case: those of the corpus, unless they are lower-cased."""
    lowercase = corpus_of(wildcards).text.lowercase
    return of_pair("syntax/{split}.{language}.cased" if lowercase else "tokens/{split}.{language}")


def pair_counts(wildcards):
    """How many pairs a split should have, as an option."""
    expected = corpus_of(wildcards).pairs.get(wildcards.split)
    return option("pairs", None if expected is None else settings.as_json(expected))


def gold(corpus, split, language):
    """The gold trees of a split and, where there are some, its gold heads."""
    files = {
        "gold": CONFIG.gold_trees(corpus, split, language),
        "heads": CONFIG.gold_heads(corpus, split, language),
    }
    return {name: path for name, path in files.items() if path}


def target_files(target):
    """The tables, figures and models of a target; with `partial`, its tables."""
    if CONFIG.partial:
        return target_tables(target)
    whole = (
        path
        for experiment in CONFIG.own_experiments(target)
        for path in [
            *experiment_figures(experiment),
            *(path for _, path in experiment_pages(experiment)),
            *run_files(experiment, "average.pt"),
        ]
    )
    drawn = [task_figure(name) for name in CONFIG.tables_of(target) if name in BENCHMARK_TABLES]
    return [*target_tables(target), *drawn, *whole]


def target_page(target):
    """The page of a target; `partial` makes it when asked for by its name."""
    paged = target in CONFIG.experiments or target in BENCHMARK_TABLES
    return [f"results/report-{target}.html"] if paged and not CONFIG.partial else []


def target_tables(target):
    """The tables of a target alone."""
    own = [path for experiment in CONFIG.own_experiments(target) for path in experiment_tables(experiment)]
    return list(dict.fromkeys([*own, *map(table_path, CONFIG.tables_of(target))]))


def experiment_tables(experiment):
    """The tables of one experiment."""
    chosen = CONFIG.plain_experiments[experiment].tables
    parsed = "parsing" in chosen and run_files(experiment, "parse.json", inducing(experiment))
    return [
        *([table_path(experiment)] if "translation" in chosen else []),
        *([table_path(f"{experiment}-parsing")] if parsed else []),
        *map(table_path, CONFIG.tables_of(experiment)),
    ]


def experiment_figures(experiment):
    entry, stem = CONFIG.plain_experiments[experiment], f"results/figures/{experiment}"
    files = [f"{stem}-bleu.svg"]
    if CONFIG.swept_setting(experiment):
        files.append(f"{stem}-sweep.svg")
    for direction in entry.directions:
        files += [f"{stem}-{direction}-{name}.svg" for name in ("source", "curves", "speed")]
        if inducing(experiment, "heads"):
            files.append(f"{stem}-{direction}-distribution.svg")
        if inducing(experiment):
            if CONFIG.gold_trees(entry.corpus, "valid", direction.split("-")[0]):
                files.append(f"{stem}-{direction}-tree.svg")
    return files


def experiment_pages(experiment):
    """Heading and path of the pages of an experiment that its part of the report shows."""
    entry = CONFIG.plain_experiments[experiment]
    return [
        (
            "Trees, " + "→".join(map(str.capitalize, direction.split("-"))),
            f"results/figures/{experiment}-{direction}-trees.html",
        )
        for direction in entry.directions
        if inducing(experiment) and CONFIG.gold_trees(entry.corpus, "valid", direction.split("-")[0])
    ]


def first_runs(name, systems):
    """A file of the first seed of each of `systems`, in one direction of an experiment."""

    def files(wildcards):
        entry = CONFIG.plain_experiments[wildcards.experiment]
        seed = CONFIG.experiment_seeds(wildcards.experiment)[0]
        return [
            f"results/{entry.corpus}/{wildcards.direction}/{system}/seed{seed}/{name}"
            for system in systems(wildcards.experiment)
        ]

    return files

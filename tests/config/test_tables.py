"""What a table consists of, by config.yaml and published.yaml."""

import copy
from pathlib import Path

import pytest

from synmask.config import load, read_published, read_yaml
from synmask.config.tables import asked_runs, compared, plan, table_names, task_files
from synmask.files import UserError

ROOT = Path(__file__).parents[2]
PATH = ROOT / "config.yaml"


@pytest.fixture
def values():
    return copy.deepcopy(read_yaml(PATH)) | {"published": str(ROOT / "workflow/published.yaml")}


@pytest.fixture
def planned(values):
    def make(name):
        config = load(values, [PATH])
        return plan(config, read_published(config.published), name)

    return make


def test_the_papers_eight_tables_and_ours_are_there(values):
    config = load(values, [PATH])
    names = set(table_names(config))
    assert {"iwslt14", "nc11", "aspec", "bpe-labels", "parsing", "glue", "mlm", "glue-mlm"} <= names
    assert {
        "controls",
        "cost",
        "sweep-mlm-weight",
        "sweep-bpe-dim",
        "sweep-layers",
        "sweep-bpe-labels",
    } <= names
    for name in names:
        plan(config, read_published(config.published), name)


def test_every_published_number_is_in_a_table(values):
    config = load(values, [PATH])
    published = read_published(config.published)
    shown = set()
    for name in table_names(config):
        table = plan(config, published, name)
        shown |= {
            (column["corpus"], column["column"], metric, system)
            for column in table["columns"]
            for metric in table["metrics"]
            for system, _ in table["rows"]
        }
    assert set(published.numbers) <= shown


def test_an_experiments_table(planned):
    table = planned("iwslt14")
    assert table["baseline"] == "transformer"
    names = [system for system, _ in table["rows"]]
    assert names[:3] == ["transformer", "st-nmt", "transformer-mask"]
    assert dict(table["rows"])["st-nmt"] == "ST-NMT"
    assert [column["column"] for column in table["columns"]] == ["de-en", "en-de"]
    assert table["columns"][0]["runs"]["grammar"] == [1, 2, 3, 4, 5]
    assert table["columns"][0]["runs"]["lisa"] == [1, 2, 3, 4, 5]  # measured, beside what the paper quotes
    assert "st-nmt" not in table["columns"][0]["runs"]
    assert table["files"] == ["scores.json"]


def test_a_table_of_several_experiments(planned):
    table = planned("bpe-labels")
    assert [(c["group"], c["column"]) for c in table["columns"]][4:] == [
        ("ASPEC", "zh-ja"),
        ("ASPEC", "ja-zh"),
    ]
    assert len(asked_runs(table)) == 2 * 6 * 5
    run, baseline = compared(table)[0]
    assert (run["system"], baseline["system"]) == ("grammar", "grammar-nobpe")
    assert run | {"system": ""} == baseline | {"system": ""}
    assert len(compared(table)) == 6 * 5


def test_parsing_needs_gold_trees(values, planned):
    table = planned("parsing")
    assert len(asked_runs(table)) == 2 * 2 * 5
    assert table["files"] == ["parse.json"]
    assert compared(table) == []
    values["corpora"]["iwslt14"].pop("trees")
    values["experiments"]["iwslt14"].update(tables=["translation"], systems=["transformer", "grammar"])
    table = planned("parsing")
    assert asked_runs(table) == []
    assert table["notes"] == ["No runs here: corpora.iwslt14 has no `trees` to compare with."]


def test_a_benchmark_has_the_published_columns(values, planned):
    table = planned("glue")
    published = read_published(values["published"])
    assert [column["column"] for column in table["columns"]] == published.columns("glue")
    assert len(asked_runs(table)) == 9 * (2 * 5 + 2)  # the systems that we train, and the trivial baselines
    assert table["baseline"] == "roberta"
    assert compared(table) == []
    files = task_files(table)
    assert len(files) == 8 * (2 * 5 + 1)
    assert {"results/glue/mnli/roberta/seed5/scores.json", "results/glue/mnli/baselines.json"} <= {*files}


def test_a_task_has_a_table_of_its_own(planned):
    table = planned("glue-mnli")
    assert [(c["column"], c["part"]) for c in table["columns"]] == [
        ("MNLI-m", "dev_matched"),
        ("MNLI-mm", "dev_mismatched"),
    ]
    assert table["title"] == "GLUE: MNLI"
    assert len(task_files(table)) == 2 * 5 + 1


def test_seeds_of_experiments_on_one_corpus_are_united(values, planned):
    values["experiments"]["more"] = dict(
        values["experiments"]["demo"], seeds=[2, 3], systems=["grammar"], tables=["translation"]
    )
    values["tables"]["both"] = {
        "title": "Both",
        "experiments": ["demo", "more"],
        "systems": ["transformer", "grammar"],
    }
    (column,) = planned("both")["columns"]
    assert column["runs"] == {"transformer": [1, 2], "grammar": [1, 2, 3]}
    assert [run["seed"] for run, _ in compared(planned("both"))] == [1, 2]


def test_targets_build_tables(values):
    config = load(values, [PATH])
    assert config.tables_of("demo") == ["demo-cost"]
    assert config.tables_of("iwslt14") == ["parsing"]
    assert {"bpe-labels", "glue", "controls", "cost"} <= set(config.tables_of("paper"))
    assert config.tables_of("glue") == ["glue"]
    assert config.tables_of("glue-rte") == ["glue-rte"]
    assert config.own_experiments("glue") == []
    assert config.own_experiments("paper") == ["iwslt14", "nc11", "aspec"]
    assert config.members("bpe-labels") == ["iwslt14", "nc11", "aspec"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda v: v["tables"]["mlm"].update(systems=["gramar"]), "tables.mlm.systems: unknown system 'gramar'; did you mean 'grammar'?"),
        (lambda v: v["tables"]["mlm"].update(experiments=["iwslt"]), "tables.mlm.experiments: unknown experiment 'iwslt'; did you mean 'iwslt14'?"),
        (lambda v: v["tables"]["mlm"].update(experiments=["paper"]), "tables.mlm.experiments: unknown experiment 'paper'"),
        (lambda v: v["tables"]["glue"].update(benchmark="glu"), "tables.glue.benchmark: unknown benchmark 'glu'; did you mean 'glue'?"),
        (lambda v: v["tables"]["glue"].update(tasks=["rt"]), "tables.glue.tasks: unknown task 'rt'; did you mean 'rte'?"),
        (lambda v: v["tables"]["mlm"].update(tasks=["rte"]), "tables.mlm: tasks need a benchmark"),
        (lambda v: v["tables"]["glue"].update(systems=["grammar"]), "tables.glue.systems: system 'grammar' cannot be a RoBERTa, which takes guide `none` or `grammar` with bpe: none"),
        (lambda v: v["systems"]["roberta-mlm"].update(mlm_weight="corpus"), "tables.glue-mlm.systems: system 'roberta-mlm' has mlm_weight: corpus; a benchmark has none, give a number"),
        (lambda v: v["tables"]["glue"].update(experiments=["demo"]), "tables.glue: give either `experiments` or `benchmark`"),
        (lambda v: v["tables"]["mlm"].update(metric=["chrf"]), "tables.mlm.metric: unknown key 'metric'; did you mean 'metrics'?"),
        (lambda v: v["tables"].update(demo=v["tables"]["mlm"]), "tables.demo: unknown table (an experiment has this name) 'demo'"),
        (lambda v: v["tables"].update({"demo-parsing": v["tables"]["mlm"]}), "tables.demo-parsing: unknown table (an experiment has this name)"),
        (lambda v: v["experiments"]["iwslt14"].update(peers=["pascl"]), "experiments.iwslt14.peers: unknown published system 'pascl'; did you mean 'pascal'?"),
        (lambda v: v["experiments"]["iwslt14"].update(peers=["grammar"]), "experiments.iwslt14.peers: unknown published system (it is among the systems) 'grammar'"),
        (lambda v: v["experiments"]["paper"].append("gleu"), "experiments.paper: unknown experiment 'gleu'; did you mean 'glue'?"),
        (lambda v: v.update(published="nowhere.yaml"), "nowhere.yaml: No such file or directory"),
        (lambda v: v.update(partial="maybe"), "partial: Input should be a valid boolean"),
    ],
)  # fmt: skip
def test_faults_are_one_line(values, change, said):
    change(values)
    with pytest.raises(UserError) as error:
        load(values, [PATH])
    assert said in str(error.value)
    assert "\n" not in str(error.value)

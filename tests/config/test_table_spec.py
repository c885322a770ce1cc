"""The parts of a table, by config.yaml and published.yaml."""

import copy
import itertools
from pathlib import Path

import pytest

from synmask.pipeline.config.loading import load, project_files, read_all, read_published
from synmask.pipeline.config.table_spec import expected_runs, table_names, table_spec, task_files
from synmask.pipeline.files import UserError

ROOT = Path(__file__).parents[2]
FILES = project_files(ROOT)


@pytest.fixture
def values():
    return copy.deepcopy(read_all(FILES)) | {"published": str(ROOT / "workflow/published.yaml")}


@pytest.fixture
def spec_of(values):
    def make(name):
        config = load(values, FILES)
        return table_spec(config, read_published(config.published), name)

    return make


def test_the_papers_eight_tables_and_ours_are_there(values):
    config = load(values, FILES)
    names = set(table_names(config))
    assert {"iwslt14", "nc11", "aspec", "bpe-labels", "parsing", "glue", "mlm", "glue-mlm"} <= names
    assert {
        "controls",
        "cost",
        "sweep-mlm-weight-iwslt14",
        "sweep-mlm-weight-nc11",
        "sweep-mlm-weight-aspec",
        "sweep-bpe-dim",
        "sweep-layers",
        "sweep-bpe-labels",
    } <= names
    for name in names:
        table_spec(config, read_published(config.published), name)


def test_every_published_number_is_in_a_table(values):
    config = load(values, FILES)
    published = read_published(config.published)
    shown = set()
    for name in table_names(config):
        table = table_spec(config, published, name)
        shown |= {
            (column["corpus"], column["column"], metric, system)
            for column in table["columns"]
            for metric in table["metrics"]
            for system, _ in table["rows"]
        }
    assert set(published.numbers) <= shown


def test_an_experiments_table(spec_of):
    core = spec_of("iwslt14-core")
    assert [system for system, _ in core["rows"]][:4] == ["transformer", "pascal", "lisa", "st-nmt"]
    assert dict(core["rows"])["st-nmt"] == "ST-NMT"
    assert "st-nmt" not in core["columns"][0]["runs"]  # what the paper quotes alone
    table = spec_of("iwslt14")
    assert table["baseline"] == "transformer"
    assert [column["column"] for column in table["columns"]] == ["de-en", "en-de"]
    assert table["columns"][0]["runs"]["grammar"] == [1, 2, 3, 4, 5]
    assert table["columns"][0]["runs"]["lisa"] == [1, 2, 3, 4, 5]  # measured, beside what the paper quotes
    assert table["columns"][0]["runs"]["st-nmt"] == [1, 2, 3, 4, 5]
    assert table["files"] == ["scores.json", "sentences.csv"]


def test_a_sweeps_table_has_the_validation_set_beside_the_test_set(spec_of):
    table = spec_of("sweep-mlm-weight-aspec")
    assert table["sweep"]
    assert table["metrics"] == ["valid_bleu_tokenised", "bleu_tokenised", "valid_sacrebleu", "sacrebleu"]
    assert [column["column"] for column in table["columns"]] == ["zh-ja", "ja-zh"]
    assert {"grammar", "grammar-mask", "grammar-mlm-weight-0.9"} <= table["columns"][0]["runs"].keys()
    assert table["files"] == ["scores.json", "sentences.csv"]  # with the counts for tests
    assert not spec_of("aspec")["sweep"]


def test_the_mlm_weight_is_searched_in_each_direction(values):
    config = load(values, FILES)
    for corpus, weights_of_corpus in (("iwslt14", {0.47}), ("nc11", {0.35}), ("aspec", {0.30, 0.45})):
        for direction in config.plain_experiments[corpus].directions:
            runs = config.varied(f"sweep-mlm-weight-{corpus}", direction).values()
            weights = sorted(run["system.mlm_weight"] for run in runs)
            assert (weights[0], weights[-1]) == (0.0, 0.9)
            assert max(b - a for a, b in itertools.pairwise(weights)) <= 0.150001
            assert weights_of_corpus & {*weights}


def test_a_table_of_several_experiments(spec_of):
    table = spec_of("bpe-labels")
    assert [(c["group"], c["column"]) for c in table["columns"]][4:] == [
        ("ASPEC", "zh-ja"),
        ("ASPEC", "ja-zh"),
    ]
    assert len(expected_runs(table)) == 3 * 6 * 5


def test_the_papers_tables_have_its_transformer_as_baseline(spec_of):
    assert [system for system, _ in spec_of("mlm")["rows"]] == [
        "transformer",
        "grammar-nomlm",
        "grammar-mask",  # as likely what the paper calls −MLM
        "grammar",
    ]
    for name in ("bpe-labels", "mlm", "controls"):
        assert spec_of(name)["baseline"] == "transformer"
        trained = {run["system"] for run in expected_runs(spec_of(name))}
        assert trained == {system for system, _ in spec_of(name)["rows"]}  # no row is without runs


def test_parsing_needs_gold_trees(values, spec_of):
    table = spec_of("parsing")
    assert len(expected_runs(table)) == 2 * 2 * 5
    assert table["files"] == ["parse.json"]
    values["corpora"]["iwslt14"].pop("trees")
    values["experiments"].pop("distance-training")  # its system reads them
    values["experiments"]["iwslt14-core"].update(tables=["translation"])
    values["experiments"]["iwslt14"].update(tables=["translation"], systems=["transformer", "grammar"])
    table = spec_of("parsing")
    assert expected_runs(table) == []
    assert table["notes"] == ["No runs here: corpora.iwslt14 has no `trees` to compare with."]


def test_a_benchmark_has_the_published_columns(values, spec_of):
    table = spec_of("glue")
    published = read_published(values["published"])
    assert [column["column"] for column in table["columns"]] == published.columns("glue")
    assert len(expected_runs(table)) == 9 * (
        5 * 5 + 2
    )  # the systems that we train, and the trivial baselines
    assert table["baseline"] == "roberta"
    assert table["files"] == []
    files = task_files(table)
    assert len(files) == 8 * (2 * 5 * 5 + 1)
    run = "results/glue/mnli/roberta/seed5/"
    assert {f"{run}scores.json", f"{run}examples.csv", "results/glue/mnli/baselines.json"} <= {*files}


def test_a_task_has_a_table_of_its_own(spec_of):
    table = spec_of("glue-mnli")
    assert [(c["column"], c["part"]) for c in table["columns"]] == [
        ("MNLI-m", "dev_matched"),
        ("MNLI-mm", "dev_mismatched"),
    ]
    assert table["title"] == "GLUE: MNLI"
    assert len(task_files(table)) == 2 * 5 * 5 + 1


def test_seeds_of_experiments_on_one_corpus_are_united(values, spec_of):
    values["experiments"]["more"] = dict(
        values["experiments"]["demo"], seeds=[2, 3], systems=["grammar"], tables=["translation"]
    )
    values["tables"]["both"] = {
        "title": "Both",
        "experiments": ["demo", "more"],
        "systems": ["transformer", "grammar"],
    }
    (column,) = spec_of("both")["columns"]
    assert column["runs"] == {"transformer": [1, 2], "grammar": [1, 2, 3]}


def test_targets_build_tables(values):
    config = load(values, FILES)
    assert config.tables_of("demo") == ["demo-cost"]
    assert config.tables_of("iwslt14") == ["parsing"]
    assert {"bpe-labels", "glue", "controls", "cost"} <= set(config.tables_of("paper"))
    assert config.tables_of("glue") == ["glue"]
    assert config.tables_of("glue-rte") == ["glue-rte"]
    assert config.own_experiments("glue") == []
    assert config.own_experiments("paper") == ["iwslt14", "nc11", "aspec", "aspec-parsed"]
    assert config.members("bpe-labels") == ["iwslt14", "nc11", "aspec"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v["tables"]["mlm"].update(systems=["gramar"]), "tables.mlm.systems: unknown system 'gramar'; did you mean 'grammar'?"),
        (lambda v: v["tables"]["mlm"].update(experiments=["iwslt"]), "tables.mlm.experiments: unknown experiment 'iwslt'; did you mean 'iwslt14'?"),
        (lambda v: v["tables"]["mlm"].update(experiments=["paper"]), "tables.mlm.experiments: unknown experiment 'paper'"),
        (lambda v: v["tables"]["glue"].update(benchmark="glu"), "tables.glue.benchmark: unknown benchmark 'glu'; did you mean 'glue'?"),
        (lambda v: v["tables"]["glue"].update(tasks=["rt"]), "tables.glue.tasks: unknown task 'rt'; did you mean 'rte'?"),
        (lambda v: v["tables"]["mlm"].update(tasks=["rte"]), "tables.mlm: tasks need a benchmark"),
        (lambda v: v["tables"]["glue"].update(systems=["grammar"]), "tables.glue.systems: system 'grammar' cannot be a RoBERTa, which takes guide `none`, `sla`, `syntax`, or `grammar` with bpe: none"),
        (lambda v: v["experiments"]["demo"].update(systems=["sla"]), "experiments.demo.systems: system 'sla' cannot translate, guide `sla` is made for RoBERTa; leave it out"),
        (lambda v: v["systems"]["roberta-mlm"].update(mlm_weight="corpus"), "tables.glue-mlm.systems: system 'roberta-mlm' has mlm_weight: corpus; a benchmark has none, give a number"),
        (lambda v: v["tables"]["glue"].update(experiments=["demo"]), "tables.glue: give either `experiments` or `benchmark`"),
        (lambda v: v["tables"]["mlm"].update(metric=["chrf"]), "tables.mlm.metric: unknown key 'metric'; did you mean 'metrics'?"),
        (lambda v: v["tables"].update(demo=v["tables"]["mlm"]), "tables.demo: another target, or the table"),
        (lambda v: v["tables"].update({"demo-parsing": v["tables"]["mlm"]}), "tables.demo-parsing: another target, or the table of its trees"),
        (lambda v: v["experiments"]["iwslt14"].update(peers=["pascl"]), "experiments.iwslt14.peers: unknown published system 'pascl'; did you mean 'pascal'?"),
        (lambda v: v["experiments"]["iwslt14"].update(peers=["grammar"]), "experiments.iwslt14.peers: 'grammar' is among the systems; leave it out of one"),
        (lambda v: v["experiments"]["paper"].append("gleu"), "experiments.paper: unknown experiment 'gleu'; did you mean 'glue'?"),
        (lambda v: v.update(published="nowhere.yaml"), "published: nowhere.yaml: no such file"),
        (lambda v: v.update(partial="maybe"), "partial: must be true or false"),
    ],
)  # fmt: skip
def test_faults_are_one_line(values, change, message):
    change(values)
    with pytest.raises(UserError) as error:
        load(values, FILES)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_systems_that_read_words_need_a_parser_of_english(values):
    del values["corenlp"]["languages"]["en"]
    values["experiments"] = {"demo": values["experiments"]["demo"]}
    values["tables"] = {"glue-mlm": values["tables"]["glue-mlm"], "nlu-demo": values["tables"]["nlu-demo"]}
    load(values, FILES)  # generated tasks have gold parses
    values["tables"]["glue-mlm"]["systems"] = ["roberta", "sla"]
    message = (
        r"tables\.glue-mlm\.systems: a system here reads a parser's words, and corenlp\.languages has no 'en'"
    )
    with pytest.raises(UserError, match=message):
        load(values, FILES)

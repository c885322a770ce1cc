"""The list of runs: those of targets, experiments and tables."""

import copy
import itertools
from pathlib import Path

import pytest

from synmask.pipeline.config.loading import load, project_files, read_all
from synmask.pipeline.runs import TRAININGS, of_columns, parts, training, trainings
from synmask.pipeline.verbs import STEPS
from synmask.pipeline.workflow.targets import Targets

ROOT = Path(__file__).parents[1]
FILES = project_files(ROOT)


@pytest.fixture
def values():
    return copy.deepcopy(read_all(FILES)) | {"published": str(ROOT / "workflow/published.yaml")}


@pytest.fixture
def targets(values):
    """The targets of `values`, as they are when it is called."""

    def targets():
        config = load(values)
        return Targets(config)

    return targets


@pytest.fixture
def spec_of(targets):
    return lambda name: targets().table_options(name)


def test_the_papers_eight_tables_and_ours_are_there(targets):
    ours = targets()
    names = {*ours.tables}
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
        assert ours.table_options(name)["columns"]


def test_every_published_number_is_in_a_table(targets):
    ours = targets()
    shown = set()
    for name in ours.tables:
        table = ours.table_options(name)
        shown |= {
            (column["corpus"], column["column"], metric, system)
            for column in table["columns"]
            for metric in table["metrics"]
            for system, _ in table["labels"]
        }
    assert set(ours.published.numbers) <= shown


def test_an_experiments_table(spec_of):
    core = spec_of("iwslt14-core")
    assert [system for system, _ in core["labels"]][:4] == ["transformer", "pascal", "lisa", "st-nmt"]
    assert dict(core["labels"])["st-nmt"] == "ST-NMT"
    assert "st-nmt" not in core["columns"][0]["runs"]  # what the paper quotes alone
    table = spec_of("iwslt14")
    assert table["labels"][0][0] == "transformer"
    assert [column["column"] for column in table["columns"]] == ["de-en", "en-de"]
    assert table["columns"][0]["runs"]["grammar"] == [1, 2, 3, 4, 5]
    assert table["columns"][0]["runs"]["lisa"] == [1, 2, 3, 4, 5]  # measured, beside what the paper quotes
    assert table["columns"][0]["runs"]["st-nmt"] == [1, 2, 3, 4, 5]


def test_a_sweeps_table_has_the_validation_set_beside_the_test_set(spec_of):
    table = spec_of("sweep-mlm-weight-aspec")
    assert table["sweep"]
    assert table["metrics"] == ["valid_bleu_tokenised", "bleu_tokenised", "valid_sacrebleu", "sacrebleu"]
    assert [column["column"] for column in table["columns"]] == ["zh-ja", "ja-zh"]
    assert {"grammar", "grammar-mask", "grammar-mlm-weight-0.9"} <= table["columns"][0]["runs"].keys()
    assert not spec_of("aspec")["sweep"]


def test_the_mlm_weight_is_searched_in_each_direction(values):
    config = load(values)
    for corpus, weights_of_corpus in (("iwslt14", {0.47}), ("nc11", {0.35}), ("aspec", {0.30, 0.45})):
        systems = config.plain_experiments[f"sweep-mlm-weight-{corpus}"].systems
        for direction in config.plain_experiments[corpus].directions:
            runs = (config.run_settings(corpus, direction, name) for name in systems)
            weights = sorted(run.system.mlm_weight for run in runs)
            assert (weights[0], weights[-1]) == (0.0, 0.9)
            assert max(b - a for a, b in itertools.pairwise(weights)) <= 0.150001
            assert weights_of_corpus & {*weights}


def test_a_table_of_several_experiments(spec_of):
    table = spec_of("bpe-labels")
    assert [(c["group"], c["column"]) for c in table["columns"]][4:] == [
        ("ASPEC", "zh-ja"),
        ("ASPEC", "ja-zh"),
    ]
    assert len(of_columns(table["columns"])) == 3 * 6 * 5


def test_the_papers_tables_have_its_transformer_as_baseline(spec_of):
    assert [system for system, _ in spec_of("mlm")["labels"]] == [
        "transformer",
        "grammar-nomlm",
        "grammar-mask",  # as likely what the paper calls −MLM
        "grammar",
    ]
    for name in ("bpe-labels", "mlm", "controls"):
        assert spec_of(name)["labels"][0][0] == "transformer"
        trained = {run.system for run in of_columns(spec_of(name)["columns"])}
        assert trained == {system for system, _ in spec_of(name)["labels"]}  # no row is without runs


def test_parsing_needs_gold_trees(values, spec_of):
    table = spec_of("parsing")
    assert len(of_columns(table["columns"])) == 2 * 2 * 5
    values["corpora"]["iwslt14"].pop("trees")
    values["experiments"].pop("distance-training")  # its system reads them
    values["experiments"]["iwslt14-core"].update(tables=["translation"])
    values["experiments"]["iwslt14"].update(tables=["translation"], systems=["transformer", "grammar"])
    table = spec_of("parsing")
    assert of_columns(table["columns"]) == []
    assert table["notes"] == ["No runs here: corpora.iwslt14 has no `trees` to compare with."]


def test_a_benchmark_has_the_published_columns(targets):
    ours = targets()
    table = ours.table_options("glue")
    assert [column["column"] for column in table["columns"]] == ours.published.columns("glue")
    systems = 5  # that we train, and the trivial baselines
    assert [len(column["runs"]) for column in table["columns"]] == [systems + 2] * 9 + [0]
    assert len(of_columns(table["columns"])) == 8 * systems * 5
    assert table["labels"][0][0] == "roberta"
    files = ours.table_files("glue")
    assert (len(files["tasks"]), len(files["counts"])) == (8 * (systems * 5 + 1), 8 * systems * 5)
    run = "results/glue/mnli/roberta/seed5"
    assert {f"{run}/scores.json", "results/glue/mnli/baselines.json"} <= {*files["tasks"]}
    assert f"{run}/examples.csv" in files["counts"]


def test_a_task_has_a_table_of_its_own(targets, spec_of):
    table = spec_of("glue-mnli")
    assert [(c["column"], c["part"]) for c in table["columns"]] == [
        ("MNLI-m", "dev_matched"),
        ("MNLI-mm", "dev_mismatched"),
    ]
    assert table["title"] == "GLUE: MNLI"
    assert len(targets().table_files("glue-mnli")["tasks"]) == 5 * 5 + 1


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
    config = load(values)
    assert parts(config, "demo") == (["demo"], ["demo-cost"])
    assert parts(config, "iwslt14") == (["iwslt14"], ["parsing"])
    assert parts(config, "glue") == ([], ["glue"])
    assert parts(config, "glue-rte") == ([], ["glue-rte"])
    experiments, listed = parts(config, "paper")
    assert experiments == ["iwslt14", "nc11", "aspec", "aspec-parsed"]
    assert {"bpe-labels", "glue", "controls", "cost"} <= {*listed}


def test_trainings_come_once_and_after_those_they_start_from(values):
    config = load(values)
    jobs = trainings(config, ["glue", "multi30k-small-all", "nlu-demo-all"])
    assert len(jobs) == len({job.folder for job in jobs})
    place = {job.folder: number for number, job in enumerate(jobs)}
    run = "results/multi30k-small/de-en/st-nmt/seed1"
    assert place[f"{run}/template"] < place[run]
    assert place["results/weights/roberta-demo"] < place["results/weights/roberta-demo-synclm"]
    tuned = [place[folder] for folder in place if folder.startswith("results/nlu-demo/")]
    assert place["results/weights/roberta-demo-synclm"] < max(tuned)


def test_the_training_of_a_job_has_its_folder(values):
    for job in trainings(load(values), ["multi30k-small-all", "nlu-demo-all"]):
        assert TRAININGS[job.rule] is type(job)
        assert training(job.rule, job.wildcards) == job
    assert {kind.verb for kind in TRAININGS.values()} == {*STEPS["Training"]}

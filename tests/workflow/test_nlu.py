"""`nlu-demo`, small: from the demo's text to a table and a page, and what runs again."""

import json

import pytest

pytestmark = pytest.mark.xdist_group("nlu")
TASK = "results/nlu-demo/acceptability"


@pytest.fixture(scope="module")
def understood(new_project):
    """A project whose nlu-demo has run, with one tiny task."""
    project = new_project("nlu")
    pretrain = project.config["weights"]["roberta-demo"]["pretrain"]
    pretrain["merges"] = 80
    pretrain["model"].update(layers=2, embed_dim=16, ffn_dim=16, heads=2)
    pretrain["training"].update(max_epochs=1)
    pretrain["resources"]["threads"] = 1
    benchmark = project.config["benchmarks"]["nlu-demo"]
    benchmark["finetuning"].update(max_epochs=2, total_updates=8, warmup_updates=1, sentences=16)
    task = benchmark["tasks"]["acceptability"] | {"rows": {"train": 48, "dev": 20}}
    benchmark["tasks"] = {"acceptability": task}
    project.snakemake("nlu-demo")
    return project


def test_the_table_has_the_systems_beside_trivial_answers(understood):
    table = (understood.folder / "results/tables/nlu-demo.md").read_text()
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")]
    assert rows == ["System", "RoBERTa", "RoBERTa + grammar", "Majority", "Bag of words"]
    assert "Missing" not in table


def test_scores_say_what_was_run(understood):
    scores = json.loads((understood.folder / f"{TASK}/roberta-grammar/seed1/scores.json").read_text())
    assert scores["task"] == "acceptability"
    assert scores["settings"]["system"]["guide"] == "grammar"
    assert scores["weights"] == "roberta-demo"
    assert {"scikit-learn", "fairseq", "synmask"} <= scores["versions"].keys()
    assert {"matthews"} == scores["scores"]["dev"].keys()
    history = (understood.folder / f"{TASK}/roberta-grammar/seed1/history.csv").read_text().splitlines()
    best = max(float(line.split(",")[5]) for line in history[1:])
    assert scores["scores"]["dev"]["matthews"] == pytest.approx(best, abs=1e-3)
    answers = (understood.folder / f"{TASK}/roberta/seed1/predictions.dev.txt").read_text().split()
    assert len(answers) == 20


def test_the_page_shows_them_and_so_does_the_report_from_then_on(understood):
    page = (understood.folder / "results/report-nlu-demo.html").read_text()
    assert f"{TASK.removeprefix('results/')}/roberta/seed1/history.csv" in page
    assert "Demo: language understanding" in page
    planned = understood.planned("results/report.html", "-p")
    assert planned  # of the demo, which has not run here
    said = understood.snakemake("-np", "results/report.html").output
    assert '"name": "nlu-demo"' in said


def test_what_runs_again(understood):
    def rules(*words):
        return {rule for rule, _ in understood.planned("nlu-demo", *words)}

    assert rules() <= {"nlu-demo"}
    understood.config["benchmarks"]["nlu-demo"]["resources"]["runtime"] = 31
    assert rules() <= {"nlu-demo"}
    understood.config["systems"]["roberta-grammar"]["options"]["conv_kernel"] = 3
    again = understood.planned("nlu-demo")
    assert {rule for rule, _ in again} >= {"finetune", "predict", "nlu_score", "table"}
    assert all("/roberta-grammar/" in output for rule, output in again if rule in ("finetune", "predict"))
    assert "pretrain" not in {rule for rule, _ in again}

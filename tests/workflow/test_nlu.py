"""`nlu-demo`, small: from the demo's text to a table and a page, and what runs again."""

import json
import shutil

import pytest
from transformers import RobertaConfig, RobertaForMaskedLM

from synmask.pipeline.evaluation.task_scores import counts_of_examples, of_sums

pytestmark = pytest.mark.xdist_group("nlu")
TASK = "results/nlu-demo/acceptability"


@pytest.fixture(scope="module")
def understood(new_project, small_nlu):
    """A project whose nlu-demo has run, with one tiny task."""
    project = new_project("nlu")
    project.record()
    pretrain = project.config["weights"]["roberta-demo"]["pretrain"]
    pretrain["merges"] = 80
    pretrain["model"].update(layers=3, embed_dim=16, ffn_dim=16, heads=2)
    pretrain["training"].update(max_epochs=1)
    pretrain["resources"]["threads"] = 1
    finetuning = project.config["benchmarks"]["nlu-demo"]["finetuning"]
    finetuning.update(max_epochs=2, total_updates=8, warmup_updates=1, sentences=16)
    small_nlu(project)
    tables = project.config["tables"]
    tables["nlu-demo"]["systems"] = ["roberta", "sla", "syntax-roberta", "synclm", "roberta-grammar"]
    del tables["nlu-demo-all"], tables["nlu-demo-attention"]  # other systems, another task
    project.snakemake("nlu-demo")
    return project


def test_the_table_has_the_systems_beside_trivial_answers(understood):
    table = (understood.folder / "results/tables/nlu-demo.md").read_text()
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")]
    assert rows == [
        "System",
        "RoBERTa",
        "SLA",
        "Syntax-RoBERTa",
        "SynCLM",
        "RoBERTa + grammar",
        "Majority",
        "Bag of words",
    ]
    assert "Missing" not in table


def test_scores_say_what_was_run(understood):
    scores = json.loads((understood.folder / f"{TASK}/roberta-grammar/seed1/scores.json").read_text())
    assert scores["task"] == "acceptability"
    assert scores["settings"]["system"]["guide"] == "grammar"
    assert scores["start"]["weights"] == "roberta-demo"
    assert {"scikit-learn", "fairseq", "synmask"} <= scores["versions"].keys()
    assert {"matthews"} == scores["scores"]["dev"].keys()
    history = (understood.folder / f"{TASK}/roberta-grammar/seed1/history.csv").read_text().splitlines()
    best = max(float(line.split(",")[5]) for line in history[1:])
    assert scores["scores"]["dev"]["matthews"] == pytest.approx(best, abs=1e-3)
    answers = (understood.folder / f"{TASK}/roberta/seed1/predictions.dev.txt").read_text().split()
    assert len(answers) == 20


@pytest.mark.parametrize("system", ["roberta", "synclm"])
def test_the_record_of_a_fine_tuning_says_what_it_is(understood, system):
    run = understood.folder / TASK / system / "seed1"
    record, scores = (json.loads((run / name).read_text()) for name in ("train.json", "scores.json"))
    whose = {"corpus": "nlu-demo", "task": "acceptability", "system": system, "seed": 1}
    assert record | whose | {"settings": scores["settings"], "start": scores["start"]} == record
    assert {"code", "data"} <= record.keys()


def test_synclm_starts_from_weights_that_were_trained_further(understood):
    scores = json.loads((understood.folder / f"{TASK}/synclm/seed1/scores.json").read_text())
    assert scores["start"]["weights"] == "roberta-demo-synclm"
    assert scores["start"]["start"]["weights"] == "roberta-demo"
    folder = understood.folder / "results/weights"
    assert "phrase_loss" in (folder / "roberta-demo-synclm/history.csv").read_text().splitlines()[0]
    for name in ("dict.txt", "encoder.json", "vocab.bpe"):
        assert (folder / f"roberta-demo-synclm/{name}").read_bytes() == (
            folder / f"roberta-demo/{name}"
        ).read_bytes()


def test_answers_are_tested_against_the_baseline(understood):
    scores = json.loads((understood.folder / f"{TASK}/sla/seed1/scores.json").read_text())["scores"]
    counts = counts_of_examples(understood.folder / f"{TASK}/sla/seed1/examples.csv", "acceptability", "dev")
    sums = counts.sum(axis=0)
    assert of_sums("acceptability", sums) == pytest.approx(scores["dev"]["matthews"])
    cells = (understood.folder / "results/tables/nlu-demo.csv").read_text().splitlines()
    place = cells[0].split(",").index("p_test_set")
    (row,) = (line for line in cells if ",acceptability,glue,sla," in line)
    assert 0 < float(row.split(",")[place]) <= 1
    assert "over examples" in (understood.folder / "results/tables/nlu-demo.md").read_text()


def test_the_page_shows_them_and_so_does_the_report_from_then_on(understood):
    page = (understood.folder / "results/report-nlu-demo.html").read_text()
    assert f"{TASK.removeprefix('results/')}/roberta/seed1/history.csv" in page
    assert "Demo: language understanding" in page
    printed = understood.snakemake("-np", "results/report.html").output
    assert understood.listed(printed)  # of the demo, which has not run here
    assert '"name": "nlu-demo"' in printed


def test_a_hugging_face_folder_is_converted(understood):
    """One of the user's own, or downloaded."""
    folder = understood.folder / "published"
    ours = understood.folder / "results/weights/roberta-demo"
    tokens = sorted(json.loads((ours / "encoder.json").read_text()))
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *tokens, "madeupword0000", "<mask>"]
    sizes = {"num_hidden_layers": 2, "hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2}
    config = RobertaConfig(vocab_size=len(tokens), max_position_embeddings=98, layer_norm_eps=1e-5, **sizes)
    RobertaForMaskedLM(config).save_pretrained(folder)
    (folder / "vocab.json").write_text(json.dumps({token: number for number, token in enumerate(tokens)}))
    shutil.copy(ours / "vocab.bpe", folder / "merges.txt")
    understood.config["weights"]["converted"] = {"huggingface": "published"}
    understood.config["weights"]["fetched"] = {"url": "https://localhost"}
    understood.config["mirrors"] = {"fetched": "published"}
    made = understood.folder / "results/weights"
    understood.snakemake("-c1", *(f"results/weights/{name}/model.pt" for name in ("converted", "fetched")))
    names = {path.name for path in (made / "converted").iterdir()}
    assert names == {"model.pt", "encoder.json", "vocab.bpe", "dict.txt", "logs"}
    assert (made / "converted/model.pt").read_bytes() == (made / "fetched/model.pt").read_bytes()


def test_the_steps_enter_their_sources_alone(understood, check_loaded):
    assert check_loaded(understood) >= {
        "glue", "pretraining-text", "pretrain", "encode-parses",
        "continue-pretraining", "encode-task", "annotate-task", "finetune", "predict", "nlu-score",
        "nlu-baselines", "table",
    }  # fmt: skip


def test_the_steps_read_what_their_rules_name(understood, check_read):
    assert check_read(understood, "nlu-demo") >= {
        "encode-task",
        "annotate-task",
        "finetune",
        "predict",
        "nlu-score",
    }


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

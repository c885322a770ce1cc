"""GLUE's test sets from archives to the zip that its server takes, with models whose answers are random."""

import csv
import io
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from synmask.pipeline.arguments import TrainingOptions
from synmask.pipeline.cli import main
from synmask.pipeline.config.benchmarks import FinetuningSettings
from synmask.pipeline.corpora.tasks import write_task
from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation.submission import best_run
from synmask.pipeline.files import read_lines, read_object, write_json
from synmask.pipeline.roberta.examples import read_encoded
from synmask.pipeline.roberta.finetune import finetune
from synmask.pipeline.roberta.weights import RobertaShape
from synmask.pipeline.tasks import SUBMISSION, TASKS

SHAPE = RobertaShape(layers=1, embed_dim=16, ffn_dim=16, heads=2, max_positions=66)
ROWS = {name: 3 + number for number, name in enumerate(SUBMISSION)}
WANTED = {  # gluebenchmark.com: "index" and "prediction", and what stands in the second column
    "CoLA.tsv": {"0", "1"},
    "SST-2.tsv": {"0", "1"},
    "MRPC.tsv": {"0", "1"},
    "STS-B.tsv": None,
    "QQP.tsv": {"0", "1"},
    "MNLI-m.tsv": {"entailment", "neutral", "contradiction"},
    "MNLI-mm.tsv": {"entailment", "neutral", "contradiction"},
    "QNLI.tsv": {"entailment", "not_entailment"},
    "RTE.tsv": {"entailment", "not_entailment"},
    "WNLI.tsv": {"0", "1"},
    "AX.tsv": {"entailment", "neutral", "contradiction"},
}


def answer(folder, weights, lines, name, tuned):
    """Let the models of two seeds answer one test set; the second seed has the better score."""
    task, part = SUBMISSION[name]
    texts = [row.split("\t") for row in lines[: ROWS[name]]]
    place = folder / task
    place.mkdir(parents=True, exist_ok=True)
    write_task(task, [row[: TASKS[task].sentences] for row in texts], place / f"{part}.tsv", labelled=False)
    main(f"encode-task --task {task} --input {place}/{part}.tsv --weights {weights} --max-tokens 60"
         f" --output {place}/{part}.npz".split())  # fmt: skip
    for seed, value in ((1, 60.5), (2, 71.5)):
        run = place / f"roberta/seed{seed}"
        write_run(run, task, seed, {"dev": {TASKS[task].metrics[0]: value}})
        tuned(run / "best.pt", task, weights, seed, read_object(run / "train.json"))
        main(f"predict --model {run}/best.pt --weights {weights} --data {place}/{part}.npz"
             f" --output {run}/predictions.{part}.txt".split())  # fmt: skip


def write_run(run, task, seed, scores):
    run.mkdir(parents=True, exist_ok=True)
    record = {"corpus": "glue", "task": task, "system": "roberta", "seed": seed, "settings": {}}
    write_json(run / "train.json", record)
    write_json(run / "scores.json", record | {"scores": scores})


@pytest.fixture(scope="module")
def answered(small_roberta, small_tuned, demo_lines, tmp_path_factory):
    """Weights, and a benchmark's folder with the answers to each test set."""
    weights, folder = small_roberta(SHAPE, demo_lines, 150, std=0.3), tmp_path_factory.mktemp("answered")
    for name in SUBMISSION:
        answer(folder / "results/glue", weights, demo_lines, name, small_tuned)
    return weights, folder / "results/glue"


@pytest.fixture
def benchmark(answered, tmp_path):
    """A copy of this folder, to change."""
    return Path(shutil.copytree(answered[1], tmp_path / "results/glue"))


def answers(benchmark, name, seed=2):
    task, part = SUBMISSION[name]
    return benchmark / f"{task}/roberta/seed{seed}/predictions.{part}.txt"


def words(benchmark, output, rows=None, seeds=(1, 2)):
    return [
        "glue-submission", "--benchmark", str(benchmark), "--system", "roberta",
        "--rows", *map(str, rows or ROWS.values()), "--seeds", *map(str, seeds),
        "--output", str(output), "--summary", str(output.with_suffix(".json")),
    ]  # fmt: skip


def test_the_zip_holds_every_file_column_by_column(answered, tmp_path):
    _, benchmark = answered
    main(words(benchmark, tmp_path / "roberta.zip"))
    with zipfile.ZipFile(tmp_path / "roberta.zip") as archive:
        assert sorted(archive.namelist()) == sorted(WANTED)
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    for name, text in texts.items():
        rows = list(csv.DictReader(io.StringIO(text), delimiter="\t"))
        assert text.startswith("index\tprediction\n0\t")
        assert text.endswith("\n")
        assert [row["index"] for row in rows] == [
            str(n) for n in range(146 if name == "WNLI.tsv" else ROWS[name])
        ]
        predictions = [row["prediction"] for row in rows]
        if WANTED[name]:
            assert {*predictions} <= WANTED[name]
        else:
            assert all(0 <= float(answer) <= 5 for answer in predictions)
        if name != "WNLI.tsv" and WANTED[name]:
            assert predictions == list(read_lines(answers(benchmark, name)))
    assert {row.split("\t")[1] for row in texts["WNLI.tsv"].splitlines()[1:]} == {"0"}
    content = json.loads((tmp_path / "roberta.json").read_text())
    assert content["system"] == "roberta"
    assert {name: entry["seed"] for name, entry in content["files"].items()} == {
        name: None if name == "WNLI.tsv" else 2 for name in WANTED
    }
    assert content["files"]["CoLA.tsv"]["scores"] == {"1": 60.5, "2": 71.5}
    main(words(benchmark, tmp_path / "again.zip"))
    assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "roberta.zip").read_bytes()


def test_similarities_are_moved_into_the_servers_range(benchmark, tmp_path):
    path = answers(benchmark, "STS-B.tsv")
    path.write_text("-0.5\n5.3\n2.25\n" + "1.0\n" * (ROWS["STS-B.tsv"] - 3))
    path.with_suffix(".json").unlink()
    main(words(benchmark, tmp_path / "r.zip"))
    with zipfile.ZipFile(tmp_path / "r.zip") as archive:
        lines = archive.read("STS-B.tsv").decode().splitlines()
    assert lines[1:4] == ["0\t0.0000", "1\t5.0000", "2\t2.2500"]


def test_a_test_set_is_no_data_to_train_on(answered, tmp_path):
    weights, benchmark = answered
    data = benchmark / "rte/test.npz"
    assert np.isnan(read_encoded(data).targets).all()
    (tmp_path / "train.npz").write_bytes(data.read_bytes())
    (tmp_path / "dev.npz").write_bytes(data.read_bytes())
    settings = FinetuningSettings.model_validate({
        "task": "rte", "training": {"total_updates": 9, "warmup_updates": 1},
        "system": {"guide": "none", "options": {}, "mask_rate": 0.0, "mlm_weight": 0.0},
    })  # fmt: skip
    with pytest.raises(UserError, match=r"train\.npz: a test set, without labels"):
        finetune(
            data=tmp_path,
            valid="dev",
            run=tmp_path / "run",
            weights=weights,
            settings=settings,
            options=TrainingOptions(seed=1),
        )
    assert not (tmp_path / "run").exists()


def rewrite(path, **values):
    write_json(path, read_object(path) | values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: {"rows": [3]}, "--rows: 1 given for CoLA.tsv, SST-2.tsv,"),
        (lambda folder: {"rows": [9] * len(ROWS)}, "predictions.test.txt: 3 predictions for 9 examples"),
        (lambda folder: {"seeds": [1, 3]}, "cola/roberta/seed3/train.json: no such file"),
        (lambda folder: answers(folder, "AX.tsv").unlink(), "seed2/predictions.ax.txt: no such file"),
        (lambda folder: answers(folder, "AX.tsv").write_text("entailment\n"), "ax.txt: not what predictions.ax.json was written with"),
        (lambda folder: shutil.copy(answers(folder, "RTE.tsv", 1).with_suffix(".json"), answers(folder, "RTE.tsv").with_suffix(".json")), "of another run (seed 1, here 2)"),
        (lambda folder: rewrite(folder / "rte/roberta/seed1/scores.json", seed=7), "rte/roberta/seed1/scores.json: of another run (seed 7, here 1)"),
        (lambda folder: rewrite(folder / "rte/roberta/seed1/scores.json", scores={}), "rte/roberta/seed1/scores.json: no accuracy in it; score this run again"),
    ],
)  # fmt: skip
def test_what_is_missing_is_one_line_and_no_zip(benchmark, tmp_path, change, message, capsys):
    changed = change(benchmark)
    with pytest.raises(SystemExit):
        main(words(benchmark, tmp_path / "r.zip", **(changed if isinstance(changed, dict) else {})))
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["results"]


def test_the_best_run_is_the_first_with_the_best_score(tmp_path):
    runs = []
    for seed, value in ((3, 50.0), (1, 70.0), (2, 70.0)):
        runs.append(tmp_path / f"results/glue/mnli/roberta/seed{seed}")
        scores = {"dev_matched": {"accuracy": value}, "dev_mismatched": {"accuracy": 100 - value}}
        write_run(runs[-1], "mnli", seed, scores)
    assert best_run(runs) == (
        runs[1],
        {"task": "mnli", "seed": 1, "metric": "accuracy", "scores": {3: 50.0, 1: 70.0, 2: 70.0}},
    )

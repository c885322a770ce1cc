"""GLUE's test sets from archives to the zip that its server takes, with models whose answers are random."""

import csv
import io
import json
import zipfile

import numpy as np
import pytest

from synmask.pipeline.arguments import TrainingOptions
from synmask.pipeline.cli import main
from synmask.pipeline.config.benchmarks import FinetuningSettings
from synmask.pipeline.corpora.tasks import write_task
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_lines, write_json
from synmask.pipeline.roberta.encoded import read_encoded
from synmask.pipeline.roberta.finetune import finetune
from synmask.pipeline.roberta.predict import best_seed
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


def predicted(folder, weights, lines, name, tuned):
    """Let the verbs answer one test set with the better of two seeds."""
    task, part = SUBMISSION[name]
    texts = [row.split("\t") for row in lines[: ROWS[name]]]
    place = folder / task / part
    place.mkdir(parents=True)
    write_task(task, [row[: TASKS[task].sentences] for row in texts], place / f"{part}.tsv", labelled=False)
    main(f"encode-task --task {task} --input {place}/{part}.tsv --weights {weights} --max-tokens 60"
         f" --output {place}/{part}.npz".split())  # fmt: skip
    for seed, value in ((1, 60.5), (2, 71.5)):
        tuned(place / f"{seed}.pt", task, weights, seed)
        scores = {"dev": {TASKS[task].metrics[0]: value}}
        write_json(place / f"{seed}.json", {"task": task, "seed": seed, "scores": scores})
    main(f"predict --valid dev --model {place}/1.pt {place}/2.pt --scores {place}/1.json"
         f" {place}/2.json --weights {weights} --data {place}/{part}.npz --output {place}/answers.txt"
         f" --chosen {place}/chosen.json".split())  # fmt: skip
    return place


@pytest.fixture(scope="module")
def answered(small_roberta, small_tuned, demo_lines, tmp_path_factory):
    """Weights, and a folder with the answers to each test set."""
    weights, folder = small_roberta(SHAPE, demo_lines, 150, std=0.3), tmp_path_factory.mktemp("answered")
    return weights, {name: predicted(folder, weights, demo_lines, name, small_tuned) for name in SUBMISSION}


def words(places, output, **changed):
    lists = {
        "rows": [ROWS[name] for name in places],
        "predicted": [place / "answers.txt" for place in places.values()],
        "chosen": [place / "chosen.json" for place in places.values()],
    } | changed
    return [
        "glue-submission", "--corpus", "glue", "--system", "roberta", "--output", str(output), "--summary", str(output.with_suffix(".json")),
        *(str(word) for name, values in lists.items() for word in (f"--{name}", *values)),
    ]  # fmt: skip


def test_the_zip_holds_every_file_column_by_column(answered, tmp_path):
    _, places = answered
    main(words(places, tmp_path / "roberta.zip"))
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
        answers = [row["prediction"] for row in rows]
        if WANTED[name]:
            assert {*answers} <= WANTED[name]
        else:
            assert all(0 <= float(answer) <= 5 for answer in answers)
        if name != "WNLI.tsv" and WANTED[name]:
            assert answers == list(read_lines(places[name] / "answers.txt"))
    assert {row.split("\t")[1] for row in texts["WNLI.tsv"].splitlines()[1:]} == {"0"}
    content = json.loads((tmp_path / "roberta.json").read_text())
    assert content["system"] == "roberta"
    assert {name: entry["seed"] for name, entry in content["files"].items()} == {
        name: None if name == "WNLI.tsv" else 2 for name in WANTED
    }
    assert content["files"]["CoLA.tsv"]["scores"] == {"1": 60.5, "2": 71.5}
    main(words(places, tmp_path / "again.zip"))
    assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "roberta.zip").read_bytes()


def test_similarities_are_moved_into_the_servers_range(answered, tmp_path):
    _, places = answered
    (tmp_path / "answers.txt").write_text("-0.5\n5.3\n2.25\n" + "1.0\n" * (ROWS["STS-B.tsv"] - 3))
    given = [
        tmp_path / "answers.txt" if name == "STS-B.tsv" else place / "answers.txt"
        for name, place in places.items()
    ]
    main(words(places, tmp_path / "r.zip", predicted=given))
    with zipfile.ZipFile(tmp_path / "r.zip") as archive:
        lines = archive.read("STS-B.tsv").decode().splitlines()
    assert lines[1:4] == ["0\t0.0000", "1\t5.0000", "2\t2.2500"]


def test_the_answers_are_those_of_the_chosen_seeds_model(answered):
    weights, places = answered
    place = places["STS-B.tsv"]
    main(f"predict --model {place}/2.pt --weights {weights} --data {place}/test.npz"
         f" --output {place}/second.txt".split())  # fmt: skip
    main(f"predict --model {place}/1.pt --weights {weights} --data {place}/test.npz"
         f" --output {place}/first.txt".split())  # fmt: skip
    answers = (place / "answers.txt").read_bytes()
    assert answers == (place / "second.txt").read_bytes()
    assert answers != (place / "first.txt").read_bytes()


def test_a_test_set_is_no_data_to_train_on(answered, tmp_path):
    weights, places = answered
    data = places["RTE.tsv"] / "test.npz"
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
            training=TrainingOptions(seed=1),
        )
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            lambda p: {
                "rows": [3],
                "predicted": [next(iter(p.values())) / "answers.txt"],
                "chosen": [next(iter(p.values())) / "chosen.json"],
            },
            "GLUE's server wants CoLA.tsv, SST-2.tsv,",
        ),
        (lambda p: {"rows": [9] * len(p)}, "answers.txt: 3 predictions for 9 examples"),
        (lambda p: {"predicted": [place / "1.json" for place in p.values()]}, "predictions for"),
        (lambda p: {"chosen": ["nowhere.json"] * len(p)}, "nowhere.json: no such file"),
        (lambda p: {"rows": [9]}, "these options need equally many values: --rows 1, --predicted 10"),
    ],
)
def test_what_is_missing_is_one_line_and_no_zip(answered, tmp_path, changed, message, capsys):
    _, places = answered
    with pytest.raises(SystemExit):
        main(words(places, tmp_path / "r.zip", **changed(places)))
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_the_best_seed_is_the_first_with_the_best_score(tmp_path):
    runs = []
    for seed, value in ((3, 50.0), (1, 70.0), (2, 70.0)):
        runs.append((tmp_path / f"{seed}.pt", tmp_path / f"{seed}.json"))
        scores = {"dev_matched": {"accuracy": value}, "dev_mismatched": {"accuracy": 100 - value}}
        write_json(runs[-1][1], {"task": "mnli", "seed": seed, "scores": scores})
    assert best_seed("dev_matched", runs) == (
        tmp_path / "1.pt",
        {"task": "mnli", "seed": 1, "metric": "accuracy", "scores": {3: 50.0, 1: 70.0, 2: 70.0}},
    )
    assert best_seed("dev_mismatched", runs)[0] == tmp_path / "3.pt"
    with pytest.raises(UserError, match=r"3\.json: no seed with a score of its task's dev; score it again"):
        best_seed("dev", runs)
    for damaged in (
        {},
        {"task": "mnli", "seed": 1, "scores": {"dev_matched": {}}},
        {"task": "mnli", "seed": "x"},
    ):
        write_json(runs[1][1], damaged)
        with pytest.raises(UserError, match=r"1\.json: no seed with a score of its task's dev_matched"):
            best_seed("dev_matched", runs)
    write_json(runs[1][1], {"task": "rte", "seed": 1, "scores": {"dev_matched": {"accuracy": 1}}})
    with pytest.raises(UserError, match=r"1\.json: scores of rte, not of mnli"):
        best_seed("dev_matched", runs)


def test_seeds_without_their_scores_or_with_those_of_another_task_are_refused(answered, tmp_path, capsys):
    weights, places = answered
    place, other = places["RTE.tsv"], places["QNLI.tsv"]
    call = f"predict --model {place}/1.pt {place}/2.pt --weights {weights} --data {place}/test.npz --output {tmp_path}/a"
    for options, message in (
        ("", "these options need equally many values: --model 2, --scores 0"),
        (f"--scores {other}/1.json {other}/2.json", "2.pt: a model of rte, --scores are of qnli"),
    ):
        with pytest.raises(SystemExit):
            main([*call.split(), *options.split()])
        assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())

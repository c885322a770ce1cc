"""No part of another run is scored or shown beside a run, whichever file was copied."""

import json
import re
from functools import partial
from pathlib import Path

import pytest

from synmask.pipeline.cli import main
from synmask.pipeline.corpora.tasks import write_task
from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation.bleu import COUNTS
from synmask.pipeline.export.card import model_card
from synmask.pipeline.files import json_text, writing
from synmask.pipeline.guidance import Guidance
from synmask.pipeline.record import checksums, new_record, run_names
from synmask.pipeline.reporting.contrasts import Contrast, compare_all, read_results
from synmask.pipeline.reporting.results import read_counts
from synmask.pipeline.reporting.training_runs import read_runs

RUN = {"corpus": "c", "direction": "de-en", "system": "grammar", "seed": 1}
TUNED = {"corpus": "glue", "task": "cola", "system": "grammar", "seed": 1}
FOLDER = "results/c/de-en/grammar/seed1"
TREE = '{"tokens": ["a", "b", "c"], "distances": [1.0, 2.0], "eos_distance": 3.0}\n'
FACTS = {"parameters": 5, "commit": "c", "epochs": 1, "updates": 1, "train_seconds": 1.0, "device": "CPU"}


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def with_record(path: Path, text: str, run: dict, training: str = "this") -> Path:
    """A file, and beside it the record of the step that wrote it."""
    beside = path.with_suffix(".json")
    written(beside, json_text(new_record(beside, run, training, {path: text})))
    return written(path, text)


def trained(run: dict, training: str = "this") -> str:
    """The text of a run's train.json."""
    return json_text(run | {"settings": {}, "training": training})


def scored(folder: Path, run: dict, **parts: str) -> Path:
    """A run's scores.json and the files that belong to it."""
    texts = {folder / name.replace("_", ".", name.count("_")): text for name, text in parts.items()}
    for path, text in texts.items():
        written(path, text)
    found = {"sacrebleu": 1.0, "bleu_tokenised": 1.0, "chrf": 1.0}
    scores = {"dev": {"matthews": 1.0}} if "task" in run else {"valid": found, "test": found}
    rest = {"scores": scores, "signatures": dict.fromkeys(found, "s"), **FACTS}
    path = folder / "scores.json"
    return written(path, json_text(run | rest | {"sha256": checksums(path, texts)}))


def refused(path: Path, said: str, call, *given, **named_):
    with pytest.raises((UserError, SystemExit)) as error:
        call(*given, **named_)
    if isinstance(error.value, UserError):
        assert re.search(f"{re.escape(str(path))}: {said}", str(error.value))


@pytest.fixture
def scoring(tmp_path):
    """The call that scores predictions for a task."""
    write_task("cola", [("Dogs sleep.", "1"), ("Sleep dogs.", "0")], tmp_path / "dev.tsv")
    written(tmp_path / "train.json", trained(TUNED))
    with_record(tmp_path / "predictions.dev.txt", "1\n0\n", TUNED)
    return ["nlu-score", "--run", ".", "--task", "cola", "--parts", "dev", "--gold", "dev.tsv"]


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("predictions.dev.txt", "0\n0\n"),
        ("predictions.dev.json", json_text({"run": TUNED | {"seed": 2}})),
        ("predictions.dev.json", json_text({"run": TUNED | {"task": "rte"}})),
        ("train.json", trained(TUNED, "other")),
    ],
)
def test_predictions_of_another_run_are_not_scored(scoring, tmp_path, monkeypatch, capsys, path, content):
    monkeypatch.chdir(tmp_path)
    before = Path(path).read_text()
    Path(path).write_text(content)
    with pytest.raises(SystemExit):
        main(scoring)
    assert re.search(rf": {re.escape(path)}: (of another|not what)", capsys.readouterr().err)
    assert not Path("scores.json").exists()
    Path(path).write_text(before)
    main(scoring)
    scores = json.loads(Path("scores.json").read_text())
    assert scores["sha256"].keys() == {"examples.csv"}


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("trees.jsonl", TREE.replace("2.0", "0.5")),
        ("trees.json", json_text({"run": RUN | {"system": "structformer"}})),
        ("train.json", trained(RUN, "other")),
    ],
)
def test_trees_of_another_run_are_neither_scored_nor_shown(tmp_path, monkeypatch, capsys, path, content):
    folder = tmp_path / FOLDER
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    Path("gold").write_text("(S (X a) (X (X b) (X c)))\n")
    written(folder / "train.json", trained(RUN))
    trees = Path(FOLDER) / "trees.jsonl"
    with_record(trees, TREE, RUN)
    calls = [
        f"parseval gold {trees} --output parse.json --counts parse_counts.json".split(),
        f"tree-page --gold gold --trees {trees} --labels A --title T --output page.html".split(),
    ]
    (folder / path).write_text(content)
    for call in calls[: 1 if path == "train.json" else 2]:
        with pytest.raises(SystemExit):
            main(call)
        assert re.search(rf"/{re.escape(path)}: (of another|not what)", capsys.readouterr().err)
    assert not {"parse.json", "page.html"} & {one.name for one in tmp_path.iterdir()}
    with_record(trees, TREE, RUN)
    written(folder / "train.json", trained(RUN))
    for call in calls:
        main(call)
    assert json.loads(Path("parse.json").read_text())["sha256"].keys() == {"parse_counts.json"}


def test_packed_trees_belong_to_the_record_of_their_text(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("gold").write_text("(S (X a) (X (X b) (X c)))\n")
    trees, beside = Path("trees.jsonl.gz"), Path("trees.jsonl.json")
    beside.write_text(json_text(new_record(beside, RUN, "this", {trees: TREE})))
    call = ["parseval", "gold", str(trees), "--output", "o.json", "--counts", "c.json"]
    for text in (TREE.replace("2.0", "0.5"), TREE):
        with writing(trees) as handle:
            handle.write(text)
        if text == TREE:
            main(call)
            continue
        with pytest.raises(SystemExit):
            main(call)
        assert ": trees.jsonl.gz: not what trees.jsonl.json" in capsys.readouterr().err


def test_a_distribution_of_another_run_is_not_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found = {"sentence": 1, "tokens": ["a", "</s>"], "distribution": [[0.5, 0.5]] * 2, "run": RUN}
    for folder in (FOLDER, FOLDER.replace("seed1", "seed2")):
        written(Path(folder) / "p.json", json.dumps(found))
    call = ["distribution-figure", "--title", "T", "--output", "f", "--distribution"]
    with pytest.raises(SystemExit):
        main([*call, f"{folder}/p.json"])
    assert "seed2/p.json: of another run (seed 1, here 2)" in capsys.readouterr().err
    main([*call, f"{FOLDER}/p.json"])


def test_a_history_of_another_training_is_not_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    history, path = "epoch,train_loss,valid_loss\n1,5,5\n", tmp_path / "history.csv"
    sums = {"settings": {}, "sha256": checksums(Path("train.json"), {path: history})}
    written(tmp_path / "train.json", json_text(RUN | sums))
    call = ["curves", "--inputs", "history.csv", "--labels", '[["grammar", "A"]]']
    path.write_text(history.replace("5", "4"))
    with pytest.raises(SystemExit):
        main([*call, "--output", "f"])
    assert ": history.csv: not what train.json was written with" in capsys.readouterr().err
    path.write_text(history)
    main([*call, "--output", "f"])


def against_itself(metric):
    return Contrast(system="grammar", rival="grammar", metric=metric)


def test_counts_of_another_run_are_not_tested(tmp_path):
    folder = tmp_path / "c/de-en/grammar/seed1"
    head = f"{','.join(COUNTS)}\n{','.join('1' * len(COUNTS))}\n"
    path = scored(folder, RUN, sentences_csv=head)
    counts = path.with_name("sentences.csv")
    assert read_counts(counts, "sacrebleu").shape == (1, len(COUNTS))
    counts.write_text(head.replace("1", "2"))
    refused(counts, "not what scores.json", read_counts, counts, "sacrebleu")
    refused(
        counts,
        "not what scores.json",
        compare_all,
        [against_itself("sacrebleu")],
        partial(read_results, [folder]),
    )
    answers = scored(tmp_path / "cola", TUNED, examples_csv="part,answer,gold\n").with_name("examples.csv")
    answers.write_text("part,answer,gold\ndev,1,1\n")
    refused(answers, "not what scores.json", read_counts, answers, "matthews", "cola", "dev")
    counted = folder / "parse_counts.json"
    text = json.dumps(RUN | {"counts": {}})
    f1 = dict.fromkeys(("precision", "recall", "f1", "sentence_f1"), 1.0)
    parses = RUN | {"protocols": {"words": {"sentences": 1, "rows": {"induced": f1}}}}
    written(
        folder / "parse.json",
        json_text(parses | {"sha256": checksums(folder / "parse.json", {counted: text})}),
    )
    counted.write_text(text.replace("1", "2"))
    refused(
        counted,
        "not what parse.json",
        compare_all,
        [against_itself("f1_words")],
        partial(read_results, [folder]),
    )


def test_a_page_shows_no_part_of_another_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    column = {"corpus": "c", "column": "de-en", "group": "", "runs": {"grammar": [1]}}
    spec = {"systems": [("grammar", "G")], "columns": [column]}
    folder = Path("results/c/de-en/grammar/seed1")
    path = scored(folder, RUN, hypothesis_test_txt="a\n")
    assert read_runs(spec)[0].scores
    (folder / "hypothesis.test.txt").write_text("b\n")
    refused(folder / "hypothesis.test.txt", "not what scores.json", read_runs, spec)
    scored(folder, RUN | {"training": "this"})
    train = written(folder / "train.json", '{"training": "other"}')
    refused(train, "of another training than .*scores.json", read_runs, spec)
    tuned = scored(Path("results/glue/cola/grammar/seed1"), TUNED | {"training": "this"})
    written(tuned.with_name("train.json"), '{"training": "other"}')  # no input of a page of tasks
    task = column | {"corpus": "glue", "column": "CoLA", "task": "cola", "part": "dev"}
    assert read_runs(spec | {"columns": [task]})[0].scores
    written(train, '{"training": "this"}')
    assert read_runs(spec)[0].scores
    for part, other in (("system", "transformer"), ("seed", 2), ("direction", "en-de")):
        scored(folder, RUN | {part: other})
        refused(path, f"of another run .{part} {other}, here", read_runs, spec)


def test_a_card_shows_no_part_of_another_run(tmp_path):
    folder, history = tmp_path / "grammar/seed1", "epoch,valid_ppl\n1,4.5\n"
    scored(folder, RUN | {"training": "this"}, sentences_csv=f"{','.join(COUNTS)}\n")
    path, train = written(folder / "history.csv", history), folder / "train.json"
    trained = {"training": "this", "sha256": checksums(train, {path: history})}
    written(train, json_text(trained))

    def card():
        return re.sub(" +", " ", model_card(folder / "average.pt", {}, Guidance(), "", [], RUN))

    assert "| test | sacrebleu | 1.00 | 1.00 | 1 |" in card()
    scored(tmp_path / "grammar/seed2", RUN)  # a copy of seed 1's
    assert "| test | sacrebleu | 1.00 | 1.00 | 1 |" in card()
    scored(tmp_path / "grammar/seed2", RUN | {"seed": 2})
    assert "| test | sacrebleu | 1.00 | 1.00 ± 0.00 | 2 |" in card()
    for name, other in (("history.csv", "train.json"), ("sentences.csv", "scores.json")):
        before = (folder / name).read_text()
        (folder / name).write_text("another\n")
        refused(folder / name, f"not what {other}", card)
        (folder / name).write_text(before)
    written(train, json_text(trained | {"training": "other"}))  # copied with its history.csv
    refused(train, "of another training than .*scores.json", card)


def test_what_names_a_run():
    assert run_names(RUN | {"settings": {}, "start": {}}) == RUN

"""The steps of a run refuse the model of another one, whichever file was copied."""

import base64
import json
import shutil

import pytest

from synmask.pipeline.cli import main
from synmask.pipeline.config.sections import SentencePiece
from synmask.pipeline.disk import sha256
from synmask.pipeline.files import read_object, write_json
from synmask.pipeline.training.sentencepiece import _train_model
from synmask.pipeline.translation.model_file import load_model

RUN = {"corpus": "c", "direction": "de-en", "system": "grammar", "seed": 1}
DECODING = ("--beam", 2, "--max-tokens", 60)


def call(verb, *words):
    main([verb, *map(str, words)])


@pytest.fixture
def project(corpus, models, tmp_path):
    """A folder with seed 1's run in results/, and a function that averages a run."""
    (tmp_path / "codes").write_text("#version: 0.2\nb b</w>\n")
    (tmp_path / "vocabulary").write_text("a 5\n")
    run = tmp_path / "results/c/de-en/grammar/seed1"
    shutil.copytree(models / "grammar", run)
    write_json(run / "train.json", read_object(run / "train.json") | RUN)

    def average(run):
        call(
            "average", "--run", run, "--data", corpus / "bin", "--codes", tmp_path / "codes",
            "--vocabulary", tmp_path / "vocabulary", "--vocabulary-threshold", 0, "--tokenisers", "none", "none",
            "--output", run / "average.pt",
        )  # fmt: skip

    average(run)
    return run, average


@pytest.fixture
def copied(project):
    """A copy of the run's folder with the name of another seed."""
    run, _ = project
    return shutil.copytree(run, run.with_name("seed2"))


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ("a b c", "codes: not a list of BPE merges; remove it and learn it again"),
        ("{}", "codes: no sentencepiece model of de ('sentencepiece'); remove it"),
        ("a model", "codes: a model of another corpus: it lacks 'a' of "),
    ],
)
def test_codes_of_another_corpus_are_refused(project, codes, message, capsys, tmp_path):
    run, average = project
    if codes == "a model":
        model = base64.b64encode(_train_model(["xyz xy yz"] * 9, "x", SentencePiece(vocab_size=6))).decode()
        codes = json.dumps({"sentencepiece": {"de": model, "en": model}})
    (tmp_path / "codes").write_text(codes)
    with pytest.raises(SystemExit):
        average(run)
    assert message in capsys.readouterr().err


def as_seed_2(run):
    write_json(run / "train.json", read_object(run / "train.json") | {"seed": 2})


def steps(run, corpus, output):
    """The calls that read the model of a run."""
    model, source = run / "average.pt", corpus / "bpe/test.de"
    yield "decode", "--model", model, "--inputs", source, "--outputs", output / "hypothesis", *DECODING
    yield (
        "predict-templates",
        "--model",
        model,
        "--input",
        source,
        "--output",
        output / "templates",
        *DECODING,
    )
    trees = ("--output", output / "trees", "--distribution", output / "p")
    yield "parse", "--model", model, "--subwords", source, *trees


def test_another_seeds_model_is_refused_and_nothing_written(copied, corpus, capsys, tmp_path):
    """The folder was copied whole, or its average alone."""
    output = tmp_path / "output"
    output.mkdir()
    for path in ("train.json", "average.pt"):
        for words in steps(copied, corpus, output):
            with pytest.raises(SystemExit):
                call(*words)
            assert f"{path}: of another run (seed 1, here 2); move it away" in capsys.readouterr().err
        assert not any(output.iterdir())
        as_seed_2(copied)
    load_model(copied / "average.pt")  # by hand any model is fine


def test_the_model_of_another_training_of_the_run_is_refused(project, corpus, capsys, tmp_path):
    """Such as one on other data: its train.json came back with an older date, so nothing is planned."""
    run, _ = project
    write_json(run / "train.json", read_object(run / "train.json") | {"training": "other"})
    for words in steps(run, corpus, tmp_path):
        with pytest.raises(SystemExit):
            call(*words)
        assert "train.json: of another training than" in capsys.readouterr().err


def test_files_say_whose_they_are(project, corpus):
    run, _ = project
    call(*next(steps(run, corpus, run)))
    content, trained = read_object(run / "hypothesis.json"), read_object(run / "train.json")
    assert content["run"] == RUN
    assert content["training"] == trained["training"]
    for kind in ("txt", "tok"):
        assert content["sha256"][kind] == sha256(run / f"hypothesis.{kind}")
    assert content["decoding"] == {"beam": 2, "length_penalty": 1.0, "max_tokens": 60, "precision": "fp32"}


def test_an_average_of_another_seeds_checkpoints_is_refused(project, copied, capsys):
    """The folder was copied whole, or its checkpoints alone."""
    _, average = project
    (copied / "average.pt").unlink()
    for message in ("train.json: of another run (seed 1, here 2)", "stamp.json: of another training than"):
        with pytest.raises(SystemExit):
            average(copied)
        assert message in capsys.readouterr().err
        assert not (copied / "average.pt").exists()
        as_seed_2(copied)
        write_json(copied / "train.json", read_object(copied / "train.json") | {"training": "seed 2's"})


def test_hypotheses_of_another_seed_are_not_scored(project, copied, corpus, capsys):
    """The folder was copied whole, or its hypotheses alone."""
    run, _ = project
    gold = corpus / "bpe/test.en"
    sides = ("--references", gold, "--reference-tokens", gold)
    words = ("--inputs", corpus / "bpe/test.de", "--references", gold, *DECODING)
    call("decode", "--model", run / "average.pt", "--outputs", run / "hypothesis.test", *words)
    for path in run.glob("hypothesis.test.*"):
        shutil.copy(path, copied)
    for name in ("train.json", "hypothesis.test.json"):
        with pytest.raises(SystemExit):
            call("score-run", "--run", copied, "--splits", "test", *sides)
        assert f"{name}: of another run (seed 1, here 2)" in capsys.readouterr().err
        assert not (copied / "scores.json").exists()
        as_seed_2(copied)
    call("score-run", "--run", run, "--splits", "test", *sides)
    scores = json.loads((run / "scores.json").read_text())
    assert len(scores["model"]["test"]) == len(scores["hypotheses"]["test"]) == 16
    assert RUN.items() <= scores.items()
    assert scores["decoding"]["beam"] == 2

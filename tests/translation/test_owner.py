"""The steps of a run refuse the model of another seed, whichever file was copied."""

import json
import shutil

import pytest

from small_models import typed
from synmask.pipeline.cli import main
from synmask.pipeline.files import sha256
from synmask.pipeline.translation.model_file import load_model

TOKENS = '{"tokeniser": "none"}'
DECODING = '{"beam": 2, "length_penalty": 1.0, "max_tokens": 60, "precision": "fp32"}'


@pytest.fixture(scope="module")
def made(corpus, models, all_settings, tmp_path_factory):
    """A folder with the model of seed 1, and functions that call a verb for a run of a seed."""
    folder = tmp_path_factory.mktemp("owner")
    (folder / "codes").write_text("#version: 0.2\nb b</w>\n")
    (folder / "vocabulary").write_text("a 5\n")
    settings = typed(all_settings["grammar"])
    shutil.copytree(models / "grammar", folder / "run")

    def call(verb, seed, *words):
        run = {"corpus": "c", "direction": "de-en", "system": "grammar", "seed": seed}
        main([verb, *map(str, words), "--identity", json.dumps(run | {"settings": settings.plain()})])

    def average(seed, run, output):
        call(
            "average", seed, "--run", run, "--last", 1, "--data", corpus / "bin", "--codes", folder / "codes",
            "--vocabulary", folder / "vocabulary", "--vocabulary-threshold", 0, "--source", "de", "--target", "en",
            "--text", TOKENS, "--settings", json.dumps(settings.plain()), "--output", output,
        )  # fmt: skip

    average(1, folder / "run", folder / "average.pt")
    return folder, call, average


def test_decoding_and_parsing_for_another_seed_stop_and_write_nothing(made, corpus, capsys, tmp_path):
    folder, call, _ = made
    source, output, model = corpus / "bpe/test.de", tmp_path / "hypothesis", folder / "average.pt"
    decode = ("--model", model, "--inputs", source, "--outputs", output, "--settings", DECODING)
    trees = ("--output", tmp_path / "trees", "--distribution", tmp_path / "p")
    for verb, words in (("decode", decode), ("parse", ("--model", model, "--subwords", source, *trees))):
        with pytest.raises(SystemExit):
            call(verb, 2, *words)
        assert "average.pt: of another run (seed 1, here 2); move it away" in capsys.readouterr().err
        assert not any(tmp_path.iterdir())
    call("decode", 1, *decode)
    content = json.loads((tmp_path / "hypothesis.json").read_text())
    assert content["run"] == {"corpus": "c", "direction": "de-en", "system": "grammar", "seed": 1}
    for kind in ("txt", "tok"):
        assert content["sha256"][kind] == sha256(tmp_path / f"hypothesis.{kind}")
    assert content["training"] == json.loads((folder / "run/train.json").read_text())["training"]
    load_model(model)  # by hand any model is fine


def test_an_average_of_another_seeds_checkpoints_is_refused(made, capsys, tmp_path):
    folder, _, average = made
    with pytest.raises(SystemExit):
        average(2, folder / "run", tmp_path / "average.pt")
    assert "stamp.json: of another run (seed 1, here 2)" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


def test_hypotheses_of_another_seed_are_not_scored(made, corpus, capsys, tmp_path):
    _, call, _ = made
    folder, source = made[0], corpus / "bpe/test.de"
    gold = corpus / "bpe/test.en"
    call("decode", 1, "--model", folder / "average.pt", "--inputs", source, "--outputs", tmp_path / "h", "--references", gold,
         "--settings", DECODING)  # fmt: skip
    (tmp_path / "train.json").write_text("{}")
    for seed in (2, 1):
        run = {"corpus": "c", "direction": "de-en", "system": "grammar", "seed": seed}
        words = ["--splits", "test", "--hypotheses", tmp_path / "h", "--references", gold]
        words += ["--reference-tokens", gold, "--run", json.dumps(run)]
        words += ["--train", tmp_path / "train.json", "--output", tmp_path / "scores.json"]
        words += ["--sentences", tmp_path / "sentences.csv"]
        if seed == 1:
            main(["score-run", *map(str, words)])
            continue
        with pytest.raises(SystemExit):
            main(["score-run", *map(str, words)])
        assert "h.json: of another run (seed 1, here 2)" in capsys.readouterr().err
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert len(scores["model"]["test"]) == len(scores["hypotheses"]["test"]) == 16
    assert scores["seed"] == 1

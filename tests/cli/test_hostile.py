"""Every verb, called wrongly: one line on stderr, nothing half-written, no temporary file.

`make fuzz` tries thousands of calls: FUZZ is how many per verb, FUZZ_SEED draws others.
"""

import json
import os
import random
import shutil
import signal
import sys
import traceback
from pathlib import Path

import pytest
import torch

from synmask.pipeline.cli import main

sys.path.insert(0, str(Path(__file__).parent))
from calls import (
    CALLS,
    JSONS,
    RUN,
    TELLING_VERBS,
    TRAINING_VERBS,
    TUNED,
    UNABLE,
    calls,
    mutations,
    placed,
    prepare,
    spoil,
)

pytestmark = pytest.mark.xdist_group("hostile")  # `made` takes long, and once is enough
ROOT = Path(__file__).parents[2]
TRIED = int(os.environ.get("FUZZ", 3))
SEED = int(os.environ.get("FUZZ_SEED", 1))
SECONDS = 60
WEIGHT = "encoder.layers.0.fc1.weight"
PARTLESS = [{key: value for key, value in JSONS["task_columns"][0].items() if key != "part"}]
VERBS = {words[0]: words for words in calls(CALLS) + calls(UNABLE)}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with what the valid calls make."""
    folder = tmp_path_factory.mktemp("made")
    prepare(folder)
    before = os.dup(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # `translate` reads it
    os.chdir(ROOT)
    for words in calls(CALLS):
        main(placed(words, folder, folder))
    yield folder
    os.dup2(before, 0)


def files(*folders):
    """Path → size and time of all files."""
    found = {path: path.stat() for folder in folders for path in folder.rglob("*") if path.is_file()}
    return {path: (is_.st_size, is_.st_mtime_ns) for path, is_ in found.items()}


def damaged(words, folder):
    """The words, with copies of the files that are to be cut or zeroed."""
    for word in words:
        kind, _, path = word.partition("/")
        if kind in ("CUT", "ZERO"):
            copy = folder / kind / Path(path).name
            copy.parent.mkdir(exist_ok=True)
            if Path(path).is_file():
                whole = Path(path).read_bytes()
                copy.write_bytes(whole[: len(whole) // 2] if kind == "CUT" else bytes(len(whole)))
            word = str(copy)
        yield word


class TooSlow(BaseException):
    """Nothing that `main` would make a line of."""


def too_slow(*_):
    raise TooSlow(f"longer than {SECONDS} s")


@pytest.fixture
def refused(made, tmp_path, monkeypatch, capfd):
    """Call the verb; if it fails, it says one line, and neither its folder nor `made` has changed."""
    signal.signal(signal.SIGALRM, too_slow)

    def call(words):
        """Its message, None if it did not fail."""
        folder = tmp_path / "called"  # it writes and is called here; it does not see what others left
        folder.mkdir()
        spoil(folder)
        for name in ("config.yaml", "config", "workflow"):
            (folder / name).symlink_to(ROOT / name)
        monkeypatch.chdir(folder)
        words = [*damaged(placed(words, made, folder), tmp_path)]
        message = " ".join(word if len(word) < 300 else f"{word[:300]}…" for word in words)
        before = files(made, tmp_path)
        capfd.readouterr()
        signal.alarm(SECONDS)
        code = 0
        try:
            main(words)
        except SystemExit as left:
            code = left.code
        except BaseException as error:
            raise AssertionError(f"synmask {message}") from error
        finally:
            signal.alarm(0)
            lines, after = capfd.readouterr().err.splitlines(), files(made, tmp_path)
            shutil.rmtree(folder)
        assert not [path for path in after if path.suffix == ".tmp"], message
        if not code:
            return None
        training, tells = (words[:1] and words[0] in verbs for verbs in (TRAINING_VERBS, TELLING_VERBS))
        assert lines, message
        assert lines[-1].startswith("synmask"), (message, lines)
        assert len(lines) == 1 or training or tells, (message, lines)
        assert after == before or training, message
        return lines[-1]

    return call


@pytest.mark.parametrize("verb", VERBS)
def test_wrong_calls(verb, made, refused, tmp_path):
    draw, words = random.Random(f"{verb} {SEED}"), VERBS[verb]
    if verb == "pretrain":  # it writes into the folder of weights that it reads
        words = elsewhere(words, "weights", shutil.copytree(made / "weights", tmp_path / "weights"))
    variants, faults = [*mutations(words, draw)], []
    for words in draw.sample(variants, min(TRIED, len(variants))):
        try:
            refused(words)
        except AssertionError as fault:  # the others are tried, too
            faults.append("".join(traceback.format_exception(fault, limit=-3)))
    assert not faults, f"{len(faults)} of {TRIED}\n" + "\n".join(faults)


@pytest.mark.parametrize(
    ("verb", "option", "value", "name"),
    [
        ("parse", "--output", "garbage/below", "garbage"),  # --distribution can be written
        ("pretraining-text", "--valid", "empty", "empty"),
        ("text", "--target-in", ("one", "more"), "--target-in"),
        ("subwords", "--merges", "5.5", "--merges"),
        ("table", "--columns", json.dumps(PARTLESS), "--columns: 0"),
        ("translate", "--threads", "1.5", "--threads"),
        ("average", "--codes", "folder", "folder"),
        ("score-run", "--run", "folder", "folder/train.json"),
        ("average", "--run", f"IN/{TUNED}", "train.json: no direction in it"),
        ("nlu-score", "--run", "nowhere", "nowhere/train.json"),
        ("distribution-figure", "--title", "x" * 1001, "--title"),
        ("predict-templates", "--beam", "0", "--beam"),
        ("curves", "--labels", '[["x", "X"]]', "--labels"),
        ("distribution-figure", "--distribution", "list.json", "list.json"),
        ("score-run", "--reference-tokens", "nowhere", "nowhere"),
    ],
)
def test_one_value_wrong(verb, option, value, name, refused):
    words = [*VERBS[verb]]
    place = words.index(option) + 1
    words[place : place + 1] = value if isinstance(value, tuple) else [value]
    assert name in refused(words)


def _without(*keys):
    def change(saved):
        inner = saved
        for key in keys[:-1]:
            inner = inner[key]
        del inner[keys[-1]]
        return saved

    return change


def _with(*keys, value):
    def change(saved):
        inner = saved
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value
        return saved

    return change


def _setting(name, value):
    def change(saved):
        setattr(saved["args"], name, value)
        return saved

    return change


MODELS = {
    "a tensor": lambda saved: torch.ones(2),
    "a number": lambda saved: 7,
    "nothing": lambda saved: {},
    "no settings": _without("settings"),
    "no source": _without("text", "source"),
    "codes that are a number": _with("text", "codes", value=7),
    "a garbled dictionary": _with("dictionaries", "source", value="ein\n\x00 x y\n"),
    "a short dictionary": _with("dictionaries", "target", value="ein 1\n"),
    "a weight more": _with("model", "more", value=torch.ones(2)),
    "a weight of another shape": _with("model", WEIGHT, value=torch.ones(2)),
    "a weight that is no tensor": _with("model", WEIGHT, value=7),
    "NaN": lambda saved: saved["model"][WEIGHT].fill_(torch.nan) is not None and saved,
    "a weight less": _without("model", WEIGHT),
}


@pytest.mark.parametrize("verb", ["decode", "parse", "tree"])
@pytest.mark.parametrize("kind", MODELS)
def test_wrong_models(verb, kind, made, refused, tmp_path):
    saved = torch.load(made / RUN / "average.pt", weights_only=True)
    torch.save(MODELS[kind](saved), tmp_path / "wrong.pt")
    words = [str(tmp_path / "wrong.pt") if word == f"IN/{RUN}/average.pt" else word for word in VERBS[verb]]
    assert f"{tmp_path}/wrong.pt: " in refused(words)


DAMAGES = {
    "missing": Path.unlink,
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "garbage": lambda path: path.write_bytes(bytes(range(256)) * 9),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}
# Folder of `made` → which of its files these verbs read; of pre-trained weights more in `test_wrong_weights`.
READERS = {
    "bin": ("*", "train", "average"),
    "ids": ("*", "pretrain"),
    "data": ("*.npz", "finetune"),
    "parsed": ("*.np*", "continue-pretraining"),
    "weights": ("*", "encode-task", "finetune"),
    RUN: ("train.json", "average", "decode", "parse", "score-run"),
}


def elsewhere(words, folder, copy):
    """The words of a call, with another folder in place of one of `made`."""
    return [word.replace(f"IN/{folder}/", f"{copy}/").replace(f"IN/{folder}", str(copy)) for word in words]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("folder", READERS)
def test_a_damaged_file_of_a_folder(folder, damage, made, refused, tmp_path):
    """Each file in turn: a verb that reads the folder names it, or the folder."""
    kind, *verbs = READERS[folder]
    for path in sorted((made / folder).glob(kind)):
        copy = tmp_path / folder
        shutil.copytree(made / folder, copy)
        DAMAGES[damage](copy / path.name)
        output = [refused(elsewhere(VERBS[verb], folder, copy)) for verb in verbs]
        assert any(line and str(copy) in line for line in output), (path.name, output)
        shutil.rmtree(copy)


EMBEDDINGS = "encoder.sentence_encoder.embed_tokens.weight"
INNER = "encoder.sentence_encoder.layers.0.fc1.weight"
WEIGHTS = {
    "a tensor": lambda saved: torch.ones(2),
    "nothing": lambda saved: {},
    "no model": _without("model"),
    "a model that is a list": _with("model", value=[1]),
    "no settings": _without("args"),
    "settings that are a number": _with("args", value=7),
    "layers that are not there": _setting("encoder_layers", 9),
    "more heads than fit": _setting("encoder_attention_heads", 3),
    "a width of its own": _setting("encoder_embed_dim", 16),
    "a name that is a number": _with("model", 7, value=torch.ones(2)),
    "a weight more": _with("model", "more", value=torch.ones(2)),
    "a weight less": _without("model", INNER),
    "a weight of another shape": _with("model", INNER, value=torch.ones(2)),
    "a weight that is no tensor": _with("model", INNER, value=7),
    "a weight of whole numbers": lambda saved: _with("model", INNER, value=saved["model"][INNER].long())(
        saved
    ),
    "other embeddings": _with("model", EMBEDDINGS, value=torch.ones(9, 8)),
    "NaN": lambda saved: saved["model"][INNER].fill_(torch.nan) is not None and saved,
}


@pytest.mark.parametrize(
    "change",
    [
        lambda saved: torch.ones(2),
        _without("settings"),
        _without("model"),
        _with("settings", value=7),
        _with("settings", "task", value="x"),
        _with("settings", "system", "guide", value="x"),
        _without("model", INNER),
        _with("model", INNER, value=torch.ones(2)),
        _with("model", INNER, value=7),
        lambda saved: saved["model"][INNER].fill_(torch.nan) is not None and saved,
    ],
)
def test_wrong_models_of_a_finetuning(change, made, refused, tmp_path):
    saved = torch.load(made / TUNED / "best.pt", weights_only=True)
    torch.save(change(saved), tmp_path / "wrong.pt")
    words = [str(tmp_path / "wrong.pt") if word.endswith("/best.pt") else word for word in VERBS["predict"]]
    assert f"{tmp_path}/wrong.pt: " in refused(words)


@pytest.mark.parametrize("verb", ["continue-pretraining", "finetune", "predict"])
@pytest.mark.parametrize("kind", WEIGHTS)
def test_wrong_weights(verb, kind, made, refused, tmp_path):
    copy = tmp_path / "weights"
    shutil.copytree(made / "weights", copy)
    saved = torch.load(copy / "model.pt", weights_only=False)
    torch.save(WEIGHTS[kind](saved), copy / "model.pt")
    output = refused(elsewhere(VERBS[verb], "weights", copy))
    assert f"{copy}: " in output or f"{copy}/model.pt: " in output

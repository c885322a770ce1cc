"""Every verb, called wrongly: one line on stderr, nothing half-written, no temporary file.

`make fuzz` tries thousands of calls: FUZZ is how many a verb, FUZZ_SEED draws others.
"""

import os
import random
import shutil
import signal
import sys
from pathlib import Path

import pytest

from synmask.cli import main

sys.path.insert(0, str(Path(__file__).parent))
from calls import CALLS, TRAINING_VERBS, UNABLE, calls, mutations, placed, prepare, spoil

ROOT = Path(__file__).parents[2]
TRIED = int(os.environ.get("FUZZ", 8))
SEED = int(os.environ.get("FUZZ_SEED", 1))
SECONDS = 60
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


def too_slow(*_):
    raise TimeoutError(f"longer than {SECONDS} s")


@pytest.mark.parametrize("verb", VERBS)
def test_wrong_calls(verb, made, tmp_path, monkeypatch, capfd):
    signal.signal(signal.SIGALRM, too_slow)
    draw = random.Random(f"{verb} {SEED}")
    variants = [*mutations(VERBS[verb], draw)]
    for words in draw.sample(variants, min(TRIED, len(variants))):
        output = tmp_path / "output"  # also where it is called; a call does not see what others left
        output.mkdir()
        spoil(output)
        for name in ("config.yaml", "workflow"):
            (output / name).symlink_to(ROOT / name)
        monkeypatch.chdir(output)
        words = [
            *damaged([word.replace("/IN/", f"/{made}/") for word in placed(words, made, output)], tmp_path)
        ]
        said = " ".join(word if len(word) < 300 else f"{word[:300]}…" for word in words)
        before = files(made, tmp_path)
        capfd.readouterr()
        signal.alarm(SECONDS)
        code = 0
        try:
            main(words)
        except SystemExit as left:
            code = left.code
        except BaseException as error:
            raise AssertionError(f"synmask {said}") from error
        finally:
            signal.alarm(0)
        if code:
            lines = capfd.readouterr().err.splitlines()
            assert lines[-1].startswith("synmask"), said
            assert len(lines) == 1 or verb in TRAINING_VERBS, said
            after = files(made, tmp_path)
            assert verb in TRAINING_VERBS or after == before, said
            assert not [path for path in after if path.suffix == ".tmp"], said
        shutil.rmtree(output)

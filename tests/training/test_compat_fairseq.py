"""fairseq still needs what training/compat_fairseq.py does for it; another version of it is left alone.

If one of these tests fails after an upgrade, that part of the file can go.
"""

import inspect
import subprocess
import sys

from fairseq.data import indexed_dataset, iterators

import synmask.pipeline.training  # noqa: F401 - makes fairseq importable

OTHER_VERSION = """
from importlib import metadata
known = metadata.version
metadata.version = lambda name: "0.13.0" if name == "fairseq" else known(name)
import synmask.pipeline.training.compat_fairseq
"""
SAVE_AND_LOAD = """
import argparse, sys, torch
torch.save({"args": argparse.Namespace()}, sys.argv[1])
torch.load(sys.argv[1])
"""


def last_lines(program, *words, python=sys.executable):
    done = subprocess.run([python, "-c", program, *words], capture_output=True, text=True, check=False)
    return done.stderr.splitlines()


def test_python_refuses_the_dataclasses_of_fairseq():
    assert last_lines("import fairseq")[-1].startswith("ValueError: mutable default <class 'fairseq.")


def test_torch_refuses_the_settings_in_checkpoints(tmp_path):
    assert "argparse.Namespace" in "".join(last_lines(SAVE_AND_LOAD, str(tmp_path / "checkpoint.pt")))
    assert not last_lines(
        f"import synmask.pipeline.training\n{SAVE_AND_LOAD}", str(tmp_path / "checkpoint.pt")
    )


def test_the_data_sets_have_destructors():
    assert inspect.getsource(indexed_dataset.MMapIndexedDataset).count("def __del__(self):") == 2


def test_no_call_ends_the_threads_that_prepare_batches():
    assert {name for name in vars(iterators.BackgroundConsumer) if not name.startswith("_")} == {"run"}


def test_another_version_is_named_and_left_alone():
    first, *_, last = last_lines(OTHER_VERSION)
    assert first.startswith("note: fairseq 0.13.0 has not been tried")
    assert last.startswith("ValueError: mutable default <class 'fairseq.")  # its own behaviour


def test_the_root_logger_is_left_alone():
    code = "import logging, synmask.pipeline.training; print(logging.getLogger().handlers)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed == "[]\n"

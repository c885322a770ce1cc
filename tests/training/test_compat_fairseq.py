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
LOAD_AND_IMPORT = """
import argparse, logging, sys, torch
torch.save({"args": argparse.Namespace()}, sys.argv[1])
try:
    torch.load(sys.argv[1])
except Exception as error:
    print("argparse.Namespace" in str(error))
import synmask.pipeline.training
print(torch.load(sys.argv[1])["args"], logging.getLogger().handlers)
"""


def test_torch_refuses_the_settings_in_checkpoints_and_the_root_logger_is_left_alone(tmp_path):
    command = [sys.executable, "-c", LOAD_AND_IMPORT, tmp_path / "checkpoint.pt"]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert printed == "True\nNamespace() []\n"


def test_the_data_sets_have_destructors():
    assert inspect.getsource(indexed_dataset.MMapIndexedDataset).count("def __del__(self):") == 2


def test_no_call_ends_the_threads_that_prepare_batches():
    assert {name for name in vars(iterators.BackgroundConsumer) if not name.startswith("_")} == {"run"}


def test_python_refuses_the_dataclasses_of_fairseq_and_another_version_is_named_and_left_alone():
    command = [sys.executable, "-c", OTHER_VERSION]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    first, *_, last = done.stderr.splitlines()
    assert first.startswith("note: fairseq 0.13.0 has not been tried")
    assert last.startswith("ValueError: mutable default <class 'fairseq.")

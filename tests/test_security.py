"""No code from data is run; files get the rights that the user's umask gives them."""

import ast
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch

from synmask.pipeline.errors import UserError
from synmask.pipeline.files import writing
from synmask.pipeline.training.torch_files import checkpoint_damage, load_checkpoint

SOURCES = sorted((Path(__file__).parents[1] / "src/synmask").rglob("*.py"))
FORBIDDEN = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "os.chmod", "os.umask"}
FORBIDDEN |= {"pickle.load", "pickle.loads", "yaml.unsafe_load", "yaml.full_load", "tempfile.mktemp"}


def calls(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), {word.arg: word.value for word in node.keywords}, node


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_call_runs_what_it_reads(path):
    for name, words, node in calls(path):
        where = f"{path}:{node.lineno}"
        assert name not in FORBIDDEN, where
        if name == "torch.load":
            assert getattr(words.get("weights_only"), "value", None) is True, where
        if name in ("np.load", "numpy.load"):
            assert "allow_pickle" not in words, where
        if name == "yaml.load":  # a loader of ours
            assert ast.unparse(node.args[1]) == "_Loader", where
        if name.startswith("subprocess."):
            assert "shell" not in words, where


def test_our_yaml_loader_makes_no_objects(tmp_path):
    from synmask.pipeline.config.yaml_source import read_yaml

    (tmp_path / "c.yaml").write_text("a: !!python/object/apply:os.system ['touch canary']\n")
    with pytest.raises(UserError, match="not YAML"):
        read_yaml(tmp_path / "c.yaml")


class Command:
    def __reduce__(self):
        return os.system, ("touch canary",)


def test_a_checkpoint_with_code_in_it_is_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"a": torch.zeros(2)}, "good.pt")
    with zipfile.ZipFile("good.pt") as good, zipfile.ZipFile("bad.pt", "w") as bad:
        for name in good.namelist():
            bad.writestr(name, pickle.dumps(Command(), 2) if name.endswith("data.pkl") else good.read(name))
    assert checkpoint_damage(Path("bad.pt")) == "UnpicklingError"
    with pytest.raises(UserError, match="damaged checkpoint"):
        load_checkpoint(Path("bad.pt"))
    # fairseq's own reader, which a resumed training uses
    code = (
        "import synmask.pipeline.training.compat_fairseq, pickle, fairseq.checkpoint_utils as c\n"
        "try: c.load_checkpoint_to_cpu('bad.pt')\n"
        "except pickle.UnpicklingError: print('refused')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "refused"
    assert not Path("canary").exists()


@pytest.mark.parametrize("umask", [0o077, 0o022, 0o002])
def test_files_obey_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        with writing(tmp_path / "folder/file") as handle:
            there = list((tmp_path / "folder").iterdir())
            assert [path.stat().st_mode & 0o777 for path in there] == [0o666 & ~umask]
            handle.write("x")
    finally:
        os.umask(before)
    assert (tmp_path / "folder/file").stat().st_mode & 0o777 == 0o666 & ~umask

"""The report on a GPU, in its small form on a CPU."""

import copy
import importlib
import operator
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import torch

from synmask.induction.operators import implementation
from synmask.pipeline.cpu.processor import CPU

pytestmark = pytest.mark.xdist_group("demo")
SCRIPT = Path(__file__).parents[2] / "benchmarks/gpu.py"
PARTS = [
    "The distribution P_D, forward and backward",
    "Training steps, demo, fp32",
    "Training steps, demo, bf16",
    "Training steps, demo, fp32, compiled",
    "The workflow on demo",
    "Beam search",
]


def test_every_part_runs_on_a_cpu_in_a_small_form(built, tmp_path):
    project = copy.copy(built)
    project.folder, project.loaded = tmp_path / "copy", None
    shutil.copytree(built.folder, project.folder, symlinks=True)
    done = subprocess.run(
        [sys.executable, SCRIPT, "--small", "--output", "gpu"],
        cwd=project.folder,
        env=project.environment(warm=True),
        check=False,
    )
    page = (project.folder / "gpu.md").read_text()
    assert done.returncode == 0, page
    assert re.findall("^## (.*)$", page, re.M) == PARTS
    rows = pd.read_csv(project.folder / "gpu.csv")
    assert [*rows["part"].unique()] == PARTS
    found = {part: rows[rows["part"] == part] for part in PARTS}
    assert [*found[PARTS[0]]["kind"]] == ["eager", "compiled"]
    for part in PARTS[1:3]:
        assert [*found[part]["system"]] == ["stock fairseq", "transformer", "grammar"]
    assert [*found[PARTS[3]]["system"]] == ["stock fairseq", "transformer"]
    assert [*found[PARTS[4]]["system"]] == ["transformer", "grammar"]
    assert (found[PARTS[4]]["sacrebleu"] >= 0).all()
    searches = found[PARTS[5]]
    ours, exported = ["fairseq"], ["CTranslate2", "CTranslate2, int8"]
    if CPU.bf16_pairs:
        ours.append("ours, bf16")
    assert [*searches["rival"]] == [*ours, *exported, *ours]
    exact = searches[searches["rival"] == "fairseq"]
    assert [*exact["same"]] == [*exact["sentences"]]


@pytest.fixture
def gpu(monkeypatch):
    """The script as a module."""
    monkeypatch.syspath_prepend(SCRIPT.parent)
    return importlib.import_module("gpu")


def test_a_part_that_fails_is_named_and_the_others_go_on(gpu, tmp_path, monkeypatch, capsys):
    parts = [("A", operator.truediv, (1, 0)), ("B", os._exit, (1,)), ("C", copy.copy, ([{"n": 1.23456}],))]
    monkeypatch.setattr(gpu, "parts", lambda *_: parts)
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--small", "--output", str(tmp_path / "gpu")])
    with pytest.raises(SystemExit) as error:
        gpu.main()
    assert error.value.code == 1
    page = (tmp_path / "gpu.md").read_text()
    assert "## A\n\nFailed: ZeroDivisionError: division by zero\n" in page
    assert "## B\n\nFailed: BrokenProcessPool: " in page
    assert "## C\n\n| n |\n| --- |\n| 1.235 |\n" in page
    assert (tmp_path / "gpu.csv").read_text() == "part,n\nC,1.23456\n"
    assert capsys.readouterr().err.startswith("A: ZeroDivisionError: division by zero, ")


def test_a_gpu_measures_the_kernels_of_triton_beside_pytorch(gpu, monkeypatch):
    monkeypatch.setattr(gpu, "DEVICE", "cuda")
    monkeypatch.setenv("SYNMASK_TRITON", "0")  # restored in the end
    monkeypatch.setattr(gpu, "measure", lambda n, *_: {"n": n, "by": implementation("cuda")})
    rows = gpu.distribution(gpu.Size(lengths=(64, 128), backend="eager"))
    assert [(row["n"], row["by"]) for row in rows if row["kind"] == "Triton"] == [(64, "Triton")]
    assert {row["by"] for row in rows if row["kind"] != "Triton"} == {"PyTorch"}

    monkeypatch.setattr(gpu, "costs_of_training", lambda *_, **__: steps.append(implementation("cuda")) or [])
    steps = []
    for title, function, arguments in gpu.parts(gpu.SMALL, None):
        if title.startswith("Training steps"):
            function(*arguments)
    assert steps == ["PyTorch", "PyTorch", "PyTorch", "Triton"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_the_full_form_needs_a_gpu(gpu, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--output", str(tmp_path / "gpu")])
    with pytest.raises(SystemExit, match="PyTorch sees no GPU here; --small tries everything on a CPU"):
        gpu.main()
    assert not list(tmp_path.iterdir())

"""P_D by Triton's kernels: in the interpreter and on a GPU (triton_kernels.py), compiled for one, and switched on."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import torch

from synmask.induction import operators

pytest.importorskip("triton")
from triton import compiler
from triton.backends.compiler import GPUTarget

from synmask.induction import in_triton


@pytest.mark.parametrize("place", ["interpreter", "GPU"])
def test_the_kernels(place, warm):
    """Triton, which `warm` has not imported, reads the variable when it is imported."""
    if place == "GPU" and not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    file = Path(__file__).with_name("triton_kernels.py")
    environment = os.environ | {"TRITON_INTERPRET": str(int(place == "interpreter"))}
    command = [warm.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0", file]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_switch(monkeypatch):
    assert operators.implementation("cuda") == "PyTorch"
    monkeypatch.setenv("SYNMASK_TRITON", "1")
    assert operators.implementation("cuda") == "Triton"
    assert {"Triton"}.isdisjoint(map(operators.implementation, ("cpu", "meta", "mps")))


@pytest.mark.parametrize("direction", ["_forward", "_backward"])
def test_the_kernels_compile_for_a_gpu(direction, tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    kernel = getattr(in_triton, direction)
    types = {"padding": "*u8", "n": "i32", "reach": "fp32", "N": "constexpr"}
    source = compiler.ASTSource(
        kernel, {name: types.get(name, "*fp32") for name in kernel.arg_names}, {"N": 16}
    )
    code = compiler.compile(source, GPUTarget("cuda", 90, 32), {"num_warps": 4}).asm
    assert code["cubin"]
    assert "mma" not in code["ptx"]  # of tensor cores, which multiply float32 in TF32
    assert "max.NaN.f32" in code["ptx"]  # the interpreter's maximum is NaN in any case
    assert not re.search(r"\b(atom|red)\.", code["ptx"])  # sums whose order differs between runs

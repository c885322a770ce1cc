"""Builds the C++ operator of P_D where PyTorch and a compiler are; without it P_D is computed in PyTorch."""

from hashlib import sha256
from pathlib import Path

from setuptools import Extension, setup

SOURCE = "src/synmask/induction/kernel.cpp"
FLAGS = [
    "-std=c++20",
    "-O3",
    "-fopenmp",  # of PyTorch's own library: nothing is linked
    "-ffp-contract=off",  # the same bytes with and without fused instructions
    "-fno-math-errno",
    "-fno-trapping-math",
    f'-DSOURCE="{sha256(Path(SOURCE).read_bytes()).hexdigest()}"',
]


def extensions() -> list[Extension]:
    try:
        from torch.utils.cpp_extension import CppExtension
    except ImportError:
        return []  # workflow/envs/corenlp.yaml has no PyTorch
    return [CppExtension("synmask.induction.kernel", [SOURCE], extra_compile_args=FLAGS, optional=True)]


setup(ext_modules=extensions())

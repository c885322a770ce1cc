"""Builds the C++ kernels where a compiler is; without them, PyTorch computes the same.

The method's needs nothing else. The pipeline's need PyTorch, and are built where the pipeline's packages are.
"""

from importlib.util import find_spec
from pathlib import Path
from runpy import run_path

from setuptools import Extension, setup

KERNELS = run_path("src/synmask/kernels.py")
METHOD = "src/synmask/induction/kernel.cpp"
PIPELINE = sorted(path.as_posix() for path in Path("src/synmask/pipeline").rglob("kernel.cpp"))


def extension(source: str, kind: type[Extension]) -> Extension:
    name = source.removeprefix("src/").removesuffix(".cpp").replace("/", ".")
    built_of = f'-DSOURCE="{KERNELS["source_checksum"](Path(source))}"'
    return kind(
        name, [source], extra_compile_args=[*KERNELS["FLAGS"], built_of], language="c++", optional=True
    )


def extensions() -> list[Extension]:
    kernels = [extension(METHOD, Extension)]
    if find_spec("torch") and find_spec("fairseq"):
        from torch.utils.cpp_extension import CppExtension

        kernels += [extension(source, CppExtension) for source in PIPELINE]
    return kernels


setup(ext_modules=extensions())

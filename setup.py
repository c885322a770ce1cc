"""Builds the C++ operators where PyTorch and a compiler are; without them, PyTorch computes the same."""

from hashlib import sha256
from pathlib import Path

from setuptools import Extension, setup

KERNELS = sorted(path.as_posix() for path in Path("src").rglob("kernel.cpp"))
FLAGS = [
    "-std=c++20",
    "-O3",
    "-fopenmp",  # of PyTorch's own library: nothing is linked
    "-ffp-contract=off",  # the same bytes with and without fused instructions
    "-fno-math-errno",
    "-fno-trapping-math",
]


def extensions() -> list[Extension]:
    try:
        from torch.utils.cpp_extension import CppExtension
    except ImportError:
        return []  # workflow/envs/corenlp.yaml has no PyTorch
    return [
        CppExtension(
            source.removeprefix("src/").removesuffix(".cpp").replace("/", "."),
            [source],
            extra_compile_args=[*FLAGS, f'-DSOURCE="{sha256(Path(source).read_bytes()).hexdigest()}"'],
            optional=True,
        )
        for source in KERNELS
    ]


setup(ext_modules=extensions())

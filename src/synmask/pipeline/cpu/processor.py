"""The choice of operators on a CPU, by the processor's capabilities.

It never depends on a timing, since the same machine must make the same bytes. PyTorch takes the place of
C++ operators that were not built (`kernels`). ATEN_CPU_CAPABILITY (avx2, default) hides a processor's vectors
from PyTorch, and so from this choice; ONEDNN_MAX_CPU_ISA hides its instructions for bf16 from both.
"""

import os
from dataclasses import dataclass
from typing import Literal

import torch

Capability = Literal[
    "AMX", "Intel's AVX-512", "AVX-512 with bf16", "AVX-512", "AVX2", "none of AVX2 and AVX-512"
]  # fmt: skip


@dataclass(frozen=True)
class Operators:
    """The implementation of each operator on a processor.

    Attributes:
        capability: the widest vectors that the processor has; ARM has none of these, Intel's alone AMX.
        linear: linear layers in training. On AMD's processors, MKL, to which PyTorch leaves products in
            float32, makes no use of AVX-512; with AVX2 it is faster than oneDNN and needs fewer copies.
            On Intel's, it does, and is faster there, too; PyTorch leaves bf16 to oneDNN.
            PyTorch takes weights of fewer than ONEDNN_WEIGHT numbers, too: oneDNN, measured on AMD's
            AVX-512, makes code for each new size, which costs more than it saves there.
        convolution: the parser's.
        lanes: the number of values that a decoder layer in C++ adds side by side; 0: no such layer.
        bf16_pairs: whether decoding may multiply pairs of bf16. On Intel's, that was slower than float32.
    """

    capability: Capability
    linear: Literal["oneDNN", "PyTorch"] = "PyTorch"
    convolution: Literal["oneDNN", "one product"] = "one product"
    lanes: Literal[0, 8, 16] = 0
    bf16_pairs: bool = False


CHOICES = {
    choice.capability: choice
    for choice in (
        Operators("AMX", convolution="oneDNN", lanes=16),
        Operators("Intel's AVX-512", convolution="oneDNN", lanes=16),
        Operators("AVX-512 with bf16", "oneDNN", "oneDNN", lanes=16, bf16_pairs=True),
        Operators("AVX-512", "oneDNN", "oneDNN", lanes=16),
        Operators("AVX2", lanes=8),
        Operators("none of AVX2 and AVX-512"),
    )
}


ONEDNN_WEIGHT = 1 << 16  # 256 x 256
# values of ONEDNN_MAX_CPU_ISA: AVX-512 without bf16, and without AMX
WITHOUT_BF16 = ("AVX512_CORE", "AVX512_CORE_VNNI")
WITHOUT_AMX = ("AVX512_CORE_BF16", "AVX512_CORE_FP16")


def capability() -> Capability:
    """The vectors that this processor has and PyTorch may use."""
    widest = torch.backends.cpu.get_cpu_capability()
    if widest != "AVX512":
        return "AVX2" if widest == "AVX2" else "none of AVX2 and AVX-512"
    has, mask = torch.cpu.get_capabilities(), os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper()
    bf16 = has["avx512_bf16"] and mask not in WITHOUT_BF16
    if not has["cpu_name"].startswith("Intel"):
        return "AVX-512 with bf16" if bf16 else "AVX-512"
    return "AMX" if bf16 and has["amx_tile"] and mask not in WITHOUT_AMX else "Intel's AVX-512"


CPU = CHOICES[capability()]

"""The choice of operators by what a processor has."""

import os
import subprocess
import sys

import pytest

from synmask.pipeline.cpu import processor
from synmask.pipeline.cpu.processor import CHOICES, CPU

WIDTHS = list(CHOICES)  # the widest first


def chosen(**environment):
    """The choice of another process."""
    command = [sys.executable, "-c", "from synmask.pipeline.cpu.processor import CPU; print(CPU)"]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("pytorchs", "name", "bf16", "amx", "mask", "capability"),
    [
        ("AVX512", "Intel Xeon", True, True, "", "AMX"),
        ("AVX512", "Intel Xeon", True, True, "avx512_core_amx", "AMX"),
        ("AVX512", "Intel Xeon", True, True, "AVX512_CORE_FP16", "Intel's AVX-512"),
        ("AVX512", "Intel Xeon", True, True, "AVX512_CORE_VNNI", "Intel's AVX-512"),
        ("AVX512", "Intel Xeon", True, False, "", "Intel's AVX-512"),
        ("AVX512", "Intel Xeon", False, False, "", "Intel's AVX-512"),
        ("AVX512", "AMD EPYC", True, False, "", "AVX-512 with bf16"),
        ("AVX512", "AMD EPYC", True, False, "AVX512_CORE_VNNI", "AVX-512"),
        ("AVX512", "AMD EPYC", False, False, "", "AVX-512"),
        ("AVX2", "Intel Xeon", True, True, "", "AVX2"),  # the others' instructions are there, but masked
        ("DEFAULT", "AMD Opteron", False, False, "", "none of AVX2 and AVX-512"),
        ("SVE256", "Neoverse V1", False, False, "", "none of AVX2 and AVX-512"),
    ],
)
def test_a_processor_is_known_by_its_maker_and_what_pytorch_may_use(
    monkeypatch, pytorchs, name, bf16, amx, mask, capability
):
    has = {"cpu_name": name, "avx512_bf16": bf16, "amx_tile": amx}
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", mask)
    monkeypatch.setattr(processor.torch.cpu, "get_capabilities", lambda: has)
    monkeypatch.setattr(processor.torch.backends.cpu, "get_cpu_capability", lambda: pytorchs)
    assert processor.capability() == capability
    assert CHOICES[capability].capability == capability


@pytest.mark.skipif(CPU.capability != "AVX-512 with bf16", reason="a processor without AVX-512's bf16")
def test_onednns_mask_hides_bf16():
    assert chosen(ONEDNN_MAX_CPU_ISA="AVX512_CORE_VNNI") == str(CHOICES["AVX-512"])
    assert chosen(ONEDNN_MAX_CPU_ISA="AVX512_CORE_BF16") == str(CPU)


@pytest.mark.parametrize(("mask", "capability"), [("avx2", "AVX2"), ("default", "none of AVX2 and AVX-512")])
def test_pytorchs_mask_changes_the_choice(mask, capability):
    if WIDTHS.index(CPU.capability) > WIDTHS.index(capability):
        pytest.skip(f"a processor without {capability}")
    assert chosen(ATEN_CPU_CAPABILITY=mask) == str(CHOICES[capability])

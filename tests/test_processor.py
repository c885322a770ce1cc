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
    ("pytorchs", "bf16", "amx", "mask", "capability"),
    [
        ("AVX512", True, True, "", "AMX"),
        ("AVX512", True, True, "avx512_core_amx", "AMX"),
        ("AVX512", True, True, "AVX512_CORE_FP16", "AVX-512 with bf16"),
        ("AVX512", True, True, "AVX512_CORE_VNNI", "AVX-512"),
        ("AVX512", True, False, "", "AVX-512 with bf16"),
        ("AVX512", False, False, "", "AVX-512"),
        ("AVX2", True, True, "", "AVX2"),  # the others' instructions are there, but masked
        ("DEFAULT", False, False, "", "none of AVX2 and AVX-512"),
        ("SVE256", False, False, "", "none of AVX2 and AVX-512"),
    ],
)
def test_a_processor_is_known_by_what_pytorch_may_use(monkeypatch, pytorchs, bf16, amx, mask, capability):
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", mask)
    monkeypatch.setattr(processor.torch.cpu, "_is_amx_tile_supported", lambda: amx)
    monkeypatch.setattr(processor.torch.backends.cpu, "get_cpu_capability", lambda: pytorchs)
    monkeypatch.setattr(processor.torch.cpu, "_is_avx512_bf16_supported", lambda: bf16)
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

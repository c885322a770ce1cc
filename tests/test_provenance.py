"""The description of the machine in a score file."""

import platform

import pytest

from synmask.pipeline import provenance

ZEN = "processor\t: {0}\nmodel name\t: AMD EPYC\nflags\t\t: fpu {1}\npower management:\n\n"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("sse2 avx avx2", "AMD EPYC, AVX2"),
        ("avx2 avx512f", "AMD EPYC, AVX-512"),
        ("avx2 avx512f avx512_bf16 amx_bf16", "AMD EPYC, AMX"),
        ("sse2", "AMD EPYC"),
    ],
)
def test_a_processor_has_its_name_and_its_widest_vectors(tmp_path, monkeypatch, flags, expected):
    path = tmp_path / "cpuinfo"
    path.write_text(ZEN.format(0, flags) + ZEN.format(1, flags))
    monkeypatch.setattr(provenance, "CPUS", path)
    assert provenance.processor() == expected


def test_where_linux_does_not_tell_python_may(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "CPUS", tmp_path / "none")
    monkeypatch.setattr(platform, "processor", lambda: "arm")
    assert provenance.processor() == "arm"
    monkeypatch.setattr(platform, "processor", lambda: "")
    assert provenance.processor() == "unknown processor"

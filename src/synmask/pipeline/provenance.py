"""Where a result comes from: versions, commit, machine."""

import platform
import re
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "synmask", "torch", "fairseq", "subword-nmt", "sacremoses", "sacrebleu", "scikit-learn", "scipy", "numpy",
)  # fmt: skip
CPUS = Path("/proc/cpuinfo")
INSTRUCTIONS = {  # from the widest
    "amx_bf16": "AMX", "avx512_bf16": "AVX-512 with bf16", "avx512f": "AVX-512", "avx2": "AVX2",
}  # fmt: skip


def versions() -> dict[str, str]:
    """The versions of Python and of every package that can change a result."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


def processor() -> str:
    """The name of the processor, and the widest vectors that it computes with, where Linux tells them.

    Libraries choose their loops by these instructions, and each rounds in its own way.
    """
    lines = CPUS.read_text().splitlines() if CPUS.exists() else []
    fields = dict(re.split(r"\s*:\s*", line, maxsplit=1) for line in reversed(lines) if ":" in line)
    name = fields.get("model name") or platform.processor() or "unknown processor"
    flags = fields.get("flags", "").split()
    return ", ".join([name, *[said for flag, said in INSTRUCTIONS.items() if flag in flags][:1]])


def commit() -> str:
    """The commit of the source tree, with "+" behind it when tracked files differ; "unknown" outside git."""
    folder = Path(__file__).parent

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True).stdout

    try:
        changed = git("status", "--porcelain", "--untracked-files=no").strip()
        return git("rev-parse", "--short=12", "HEAD").strip() + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"

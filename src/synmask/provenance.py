"""Where a result comes from: versions, commit, machine."""

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "synmask", "torch", "fairseq", "subword-nmt", "sacremoses", "sacrebleu", "scikit-learn", "scipy", "numpy",
)  # fmt: skip


def versions() -> dict[str, str]:
    """The versions of Python and of every package that can change a result."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


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

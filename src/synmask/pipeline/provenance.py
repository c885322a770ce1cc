"""Where a result comes from: versions, commit, machine."""

import filecmp
import os
import platform
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from synmask.pipeline.errors import UserError

VERSIONED_PACKAGES = (
    "synmask", "torch", "fairseq", "subword-nmt", "sacremoses", "sacrebleu", "scikit-learn", "scipy", "numpy",
    "regex", "tokenizers", "langdetect", "langcodes", "mecab-python3", "ipadic", "icu4py",
    "sentencepiece", "triton",
)  # fmt: skip
THIS_FILE = Path(__file__).resolve()
ARCHIVED_COMMIT = THIS_FILE.with_name("commit.txt")
GIT_REFUSALS = {  # part of git's message → why the commit is unknown
    "did not match any file": "git does not track this copy",
    "dubious ownership": "git does not trust this clone of another user's: docs/slurm.md",
}
CPUINFO = Path("/proc/cpuinfo")
INSTRUCTIONS = {  # from the widest
    "amx_bf16": "AMX", "avx512_bf16": "AVX-512 with bf16", "avx512f": "AVX-512", "avx2": "AVX2",
}  # fmt: skip


def versions() -> dict[str, str]:
    """The versions of Python and of every package that can change a result."""
    installed = {"python": platform.python_version()}
    for package in VERSIONED_PACKAGES:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            installed[package] = "unknown"
    return installed


def processor() -> str:
    """The processor's name and, if Linux lists them, its widest vector instructions.

    Libraries choose their loops by these instructions, and each rounds in its own way.
    """
    lines = CPUINFO.read_text().splitlines() if CPUINFO.exists() else []
    fields = dict(re.split(r"\s*:\s*", line, maxsplit=1) for line in reversed(lines) if ":" in line)
    name = fields.get("model name") or platform.processor() or "unknown processor"
    flags = fields.get("flags", "").split()
    return ", ".join([name, *[vectors for flag, vectors in INSTRUCTIONS.items() if flag in flags][:1]])


def check_code(source: Path) -> None:
    """Stop if the running code is not that of the clone whose rules run it.

    Results would record the digest of code that did not run. A copy of the same code (in an image) is fine.

    Args:
        source: src/synmask of the clone; if the job's node has none, nothing is compared.

    Raises:
        UserError: they differ.
    """
    running = THIS_FILE.parents[1]
    if not source.is_dir() or source.samefile(running):
        return
    files = [path.relative_to(source) for path in source.rglob("*.py")]
    _, other, missing = filecmp.cmpfiles(source, running, files, shallow=False)
    if other or missing:
        raise UserError(
            f"{running}: this synmask would run, and {(other + missing)[0]} differs from that in {source}; "
            "activate this clone's own environment (`make` builds .venv), and unset PYTHONPATH"
        )


def is_tried(package: str, tried: str) -> bool:
    """Whether the installed version of a package is the one that our changes to it were tried with.

    If not, a line on stderr says so, and the package is left unchanged.
    """
    installed = version(package)
    if installed != tried:
        left = f"it is used without our changes to {tried}"
        print(f"note: {package} {installed} has not been tried; {left}", file=sys.stderr)
    return installed == tried


def commit() -> str:
    """The commit of this copy, with "+" behind it when tracked files differ; "unknown" and, in brackets, why.

    Git is used only if it tracks this file: an unpacked archive may lie inside another repository.
    An archive that `git archive` made names its commit in commit.txt (.gitattributes).
    """
    root = next((folder for folder in THIS_FILE.parents if (folder / ".git").exists()), None)
    known = ARCHIVED_COMMIT.read_text().strip() if ARCHIVED_COMMIT.exists() else "$Format"
    why = "neither a clone nor an archive of git's"
    if root is not None:
        try:
            _git(root, "ls-files", "--error-unmatch", str(THIS_FILE))
            changed = _git(root, "status", "--porcelain", "--untracked-files=no")
            return _git(root, "rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
        except FileNotFoundError:
            why = "git is not installed"
        except subprocess.CalledProcessError as error:
            message = error.stderr.partition("\n")[0]
            why = next((reason for words, reason in GIT_REFUSALS.items() if words in message), message[:100])
    return f"unknown ({why})" if known.startswith("$Format") else known[:12]


def _git(root: Path, *words: str) -> str:
    """git's output for the repository at `root`.

    Git refuses another user's repository, whose settings may name programs. If this file belongs to that
    user, their code runs already: then the repository is named explicitly, which git accepts.
    """
    place = ["-C", root]
    if (root / ".git").stat().st_uid == THIS_FILE.stat().st_uid:
        place = [f"--git-dir={root / '.git'}", f"--work-tree={root}"]
    environment = os.environ | {"LC_ALL": "C"}
    done = subprocess.run(
        ["git", *place, *words], cwd=root, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()

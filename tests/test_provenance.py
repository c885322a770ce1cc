"""The description of the machine in a score file."""

import ast
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

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
    monkeypatch.setattr(provenance, "CPUINFO", path)
    assert provenance.processor() == expected


def test_where_linux_does_not_tell_python_may(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "CPUINFO", tmp_path / "none")
    monkeypatch.setattr(platform, "processor", lambda: "arm")
    assert provenance.processor() == "arm"
    monkeypatch.setattr(platform, "processor", lambda: "")
    assert provenance.processor() == "unknown processor"


def git(folder, *words):
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main")
    return subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True).stdout


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A repository with a copy of the file that asks, and the commit."""
    source, folder = Path(provenance.__file__), tmp_path / "clone/src/synmask/pipeline"
    folder.mkdir(parents=True)
    for name in ("provenance.py", "commit.txt", ".gitattributes"):
        shutil.copy(source.with_name(name), folder)
    for words in (("init",), ("add", "-A"), ("commit", "-m", "x")):
        git(tmp_path / "clone", *words)
    place(monkeypatch, folder)
    return tmp_path / "clone", git(tmp_path / "clone", "rev-parse", "--short=12", "HEAD").decode().strip()


def place(monkeypatch, folder):
    monkeypatch.setattr(provenance, "THIS_FILE", folder / "provenance.py")
    monkeypatch.setattr(provenance, "ARCHIVED_COMMIT", folder / "commit.txt")


def test_a_clone_has_its_commit_and_a_mark_when_a_file_differs(clone):
    folder, commit = clone
    assert provenance.commit() == commit
    (folder / "src/synmask/pipeline/.gitattributes").write_text("")
    assert provenance.commit() == f"{commit}+"


def test_an_archive_has_its_own_commit_inside_another_repository(clone, tmp_path, monkeypatch):
    folder, commit = clone
    other = tmp_path / "other"
    (other / "unpacked").mkdir(parents=True)
    git(other, "init")
    git(other, "commit", "--allow-empty", "-m", "another")
    packed = git(folder, "archive", "HEAD")
    subprocess.run(["tar", "-x", "-C", other / "unpacked"], input=packed, check=True)
    place(monkeypatch, other / "unpacked/src/synmask/pipeline")
    assert provenance.commit() == commit
    shutil.copy(
        folder / "src/synmask/pipeline/commit.txt", other / "unpacked/src/synmask/pipeline"
    )  # a copy without a commit
    assert provenance.commit() == "unknown (git does not track this copy)"
    shutil.rmtree(other / ".git")
    assert provenance.commit() == "unknown (neither a clone nor an archive of git's)"


def test_another_users_clone_has_its_commit_if_its_code_is_theirs_too(clone, monkeypatch):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")  # git's own switch
    with pytest.raises(subprocess.CalledProcessError):
        git(clone[0], "rev-parse", "HEAD")
    assert provenance.commit() == clone[1]
    monkeypatch.setattr(provenance, "THIS_FILE", Strange(provenance.THIS_FILE))
    assert provenance.commit().startswith("unknown (git does not trust this clone")


class Strange(type(Path())):
    """The path of a Python file that belongs to somebody else."""

    def stat(self, **kwargs):
        return SimpleNamespace(st_uid=-1) if self.suffix == ".py" else super().stat(**kwargs)


def test_without_git_it_is_reported(clone, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert provenance.commit() == "unknown (git is not installed)"


def test_the_repository_has_no_symbolic_links():
    """Archives are unpacked without them on some systems."""
    root = Path(provenance.__file__).parents[2]
    if (root / ".git").exists():
        assert not [line for line in git(root, "ls-files", "-s").splitlines() if line.startswith(b"120000")]


# Packages that the rooms below import and that change no number: they check, read, write, lock or report.
NO_NUMBERS = {
    "cyclopts", "ctranslate2", "filelock", "omegaconf", "pandas", "pydantic", "requests", "safetensors", "tensorboardX",
    "tqdm", "transformers", "urllib3", "yaml",
}  # fmt: skip
# package → its distribution
CALLED = {"MeCab": "mecab-python3", "sklearn": "scikit-learn", "subword_nmt": "subword-nmt"}


def test_every_package_that_can_change_a_result_is_named():
    root, rooms = (
        provenance.THIS_FILE.parents[1],
        ("corpora", "evaluation", "roberta", "search", "syntax", "text", "training", "translation"),
    )
    files = [
        *(root / "induction").glob("*.py"),
        *(root / "guides").glob("*.py"),
        root / "pipeline/languages.py",
    ]
    files += [path for room in rooms for path in (root / "pipeline" / room).rglob("*.py")]
    found = set()
    for node in (node for path in files for node in ast.walk(ast.parse(path.read_text()))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
        found |= {name.partition(".")[0] for name in names}
    found = {CALLED.get(name, name) for name in found - sys.stdlib_module_names - NO_NUMBERS}
    assert found <= {*provenance.VERSIONED_PACKAGES}
    assert "unknown" not in provenance.versions().values()

"""README's picture, numbers and entries to cite are those of studies/multi30k/verdict.csv and CITATION.cff."""

import csv
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_picture_is_that_of_the_verdict():
    drawn = subprocess.run(
        [sys.executable, ROOT / "studies/multi30k/summary.py"],
        env={"PYTHONUTF8": "1"},
        capture_output=True,
        check=True,
    )
    assert drawn.stdout == (ROOT / "studies/multi30k/summary.svg").read_bytes()


def test_the_verdicts_on_rivals():
    with (ROOT / "studies/multi30k/verdict.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["claim"] == "Better than other guided systems"]
    assert {row["rival"]: row["verdict"] for row in rows} == {
        "structformer": "does not hold",
        "pascal": "does not hold",
        "lpsi": "cannot tell",
        "lisa": "cannot tell",
    }
    assert "StructFormer and PASCAL do not hold here; for those over LPSI and LISA, we cannot tell" in README


def test_the_entries_to_cite():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    (paper,) = citation["references"]
    entries = README[README.index("```bibtex") :]
    names = [f"{author['family-names']}, {author['given-names']}" for author in paper["authors"]]
    for field in (
        paper["title"], paper["doi"], paper["url"], paper["collection-title"], f"{paper['start']}--{paper['end']}",
        " and ".join(names), str(paper["year"]), citation["title"], citation["version"], citation["authors"][0]["name"],
    ):  # fmt: skip
        assert f"{{{field}}}" in entries


def link(package, site, seen, extras=frozenset()):
    """Link an installed package and all that it needs, with these extras, into another folder of packages."""
    if package == "setuptools" or (package, extras) in seen:  # an empty environment has an old one, or none
        return
    seen.add((package, extras))
    there = distribution(package)
    for top in {path.parts[0] for path in there.files if path.parts[0] not in ("..", "__pycache__", "bin")}:
        if not (site / top).exists():
            (site / top).symlink_to(there.locate_file(top))
    for needed in map(Requirement, there.requires or []):
        if not needed.marker or any(needed.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            link(needed.name, site, seen, frozenset(needed.extras))


def test_the_method_installs_where_there_is_pytorch_but_no_compiler(tmp_path):
    line = re.search(r"^pip install \.", README, re.M)[0]
    code = re.search(r"```python\n(.*?)```", README, re.S)[1]
    clone, environment = tmp_path / "clone", tmp_path / "environment"
    clone.mkdir()
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "requirements", "src"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, clone / name)
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    (site,) = environment.glob("lib/python*/site-packages")
    link("torch", site, set())
    shell = os.environ | {
        "PATH": f"{environment / 'bin'}:{os.environ['PATH']}", "CC": "false", "CXX": "false",
    }  # fmt: skip
    # Without PIP_NO_DEPS, a package that was not linked would be written through the links into those of this process.
    subprocess.run(line, shell=True, cwd=clone, env=shell | {"PIP_NO_DEPS": "1"}, check=True)
    printed = subprocess.run(
        [environment / "bin/python", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert printed.stdout.startswith("torch.Size([2, 7, 64])")

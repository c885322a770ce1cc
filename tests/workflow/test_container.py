"""Checks of the Dockerfile that need no Docker; `.ci/run` lints it."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINES = (ROOT / "Dockerfile").read_text()


def test_what_is_copied_is_there_and_goes_into_the_build():
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert ignored[0] == "*"
    copied = [name for line in re.findall(r"^COPY (.+) \S+$", LINES, re.M) for name in line.split()]
    assert {"requirements.txt", "src"} < {*copied}
    assert {f"!{name}" for name in copied} == {line for line in ignored if line.startswith("!")}
    assert all((ROOT / name).exists() for name in copied)


def test_packages_are_installed_as_make_installs_them():
    made = re.findall(r"pip install --quiet (.+)", (ROOT / "Makefile").read_text())
    installed = re.findall(r"pip install --no-cache-dir (.+?)(?: \\)?$", LINES, re.M)
    assert [
        words.replace("-e .", ".") for words in made if "requirements" in words or "-e ." in words
    ] == installed

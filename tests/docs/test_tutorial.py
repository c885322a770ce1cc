"""docs/tutorial.md, run block by block in a copy of the project, as its reader does."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
FILE = re.compile(r"# ([\w./-]+\.(?:py|yaml))\n")
COMMANDS = {"python": ("python", "-c"), "bash": ("bash", "-euo", "pipefail", "-c")}


def copy_of_the_project(folder):
    for name in ("src/synmask", "config", "demo/de-en", "workflow", "profiles", "tests/guides"):
        shutil.copytree(ROOT / name, folder / name)
    for name in (
        "Snakefile",
        "config.yaml",
        "pyproject.toml",
        "tests/alone.py",
        "tests/browser.py",
        "tests/conftest.py",
        "tests/small_models.py",
        "tests/warm.py",
    ):
        shutil.copy(ROOT / name, folder / name)


def run(folder, programs, *command):
    """Run a command, which has to succeed, and return its stdout, or stderr if that is empty."""
    environment = os.environ | {"PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # saves 3 s of CPU time
    environment["PATH"] = f"{programs}:{Path(sys.executable).parent}:{environment['PATH']}"
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout or done.stderr


def test_the_tutorial(tmp_path, warm):
    copy_of_the_project(tmp_path)
    output, kinds = "", []
    for kind, block in BLOCK.findall((ROOT / "docs/tutorial.md").read_text(encoding="utf-8")):
        named = FILE.match(block)
        if kind == "text":
            assert output == block
        elif named:
            (tmp_path / named[1]).parent.mkdir(exist_ok=True)
            with (tmp_path / named[1]).open("a", encoding="utf-8") as file:
                file.write(f"\n\n{block}")
        else:
            output = run(tmp_path, warm.folder, *COMMANDS[kind], block)
        kinds.append("file" if named else kind)
    assert kinds.count("text") == 2
    assert kinds.count("file") == 4
    assert "near" in output  # the last dry run
    assert len(list(tmp_path.glob("results/tutorial/de-en/*/seed1/history.csv"))) == 2

"""A Python that finds some packages, what they need, and nothing else."""

import os
import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest


def needed(name, known):
    """The installed distributions that `name` needs without extras, itself included: name → distribution."""
    name = re.sub("[-_.]+", "-", name).lower()
    if name not in known:
        try:
            known[name] = distribution(name)
        except ModuleNotFoundError:  # of another machine
            return known
        for line in known[name].requires or []:
            if "extra ==" not in line:
                needed(re.match(r"[\w.-]+", line).group(), known)
    return known


@pytest.fixture(scope="session")
def alone(tmp_path_factory):
    """Run code where the named packages and those that they need are found, and nothing is fetched."""

    def run(code, *packages):
        folder = tmp_path_factory.getbasetemp() / f"only-{'-'.join(packages)}"
        if not folder.exists():
            folder.mkdir()
            found = {}
            for package in packages:
                needed(package, found)
            for one in found.values():
                for top in {
                    file.parts[0] for file in one.files if file.parts[0] not in ("..", "__pycache__")
                }:
                    if not (folder / top).exists():
                        (folder / top).symlink_to(Path(one.locate_file(top)))
        code = f"import sys\nsys.path.insert(0, {str(folder)!r})\n{code}"
        home = tmp_path_factory.getbasetemp() / "home"
        offline = {
            "HOME": str(home),
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": "1",
            "PATH": os.environ["PATH"],
        }
        return subprocess.run(
            [sys.executable, "-I", "-S", "-c", code], env=offline, capture_output=True, text=True, check=False
        )

    return run

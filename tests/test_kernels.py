"""C++ operators are used only if they were built from the present source."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from synmask import kernels


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "search/kernel.cpp"
    path.parent.mkdir()
    path.write_text("int main() {}\n")
    return path


def test_operators_of_another_source_are_not_used(monkeypatch, source):
    module = type("kernel", (), {"SOURCE": "another"})
    monkeypatch.setattr(kernels, "_module", lambda name: module)
    with pytest.warns(UserWarning, match="of synmask.search are out of date: build them anew with `make`"):
        assert not kernels.load("synmask.search", source)
    module.SOURCE = kernels.sha256(source.read_bytes()).hexdigest()
    assert kernels.load("synmask.search", source)


def test_without_operators_nothing_is_reported(monkeypatch, source, recwarn):
    def missing(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(kernels, "_module", missing)
    assert not kernels.load("synmask.search", source)
    assert not recwarn


def test_operators_of_an_image_are_found_behind_the_sources_of_a_clone(tmp_path):
    """The image installs them, and PYTHONPATH puts the mounted clone before it (Dockerfile)."""
    package = Path(kernels.__file__).parent
    built = [*package.glob("induction/kernel.*.so")]
    if not built:
        pytest.skip("no operators are built here")
    shutil.copytree(package, tmp_path / "clone/synmask", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    (tmp_path / "image/synmask/induction").mkdir(parents=True)
    program = "import torch; from synmask import kernels; print(kernels.load('synmask.induction', kernels.Path('SOURCE')), kernels.__file__)"
    program = program.replace("SOURCE", str(tmp_path / "clone/synmask/induction/kernel.cpp"))
    environment = {"PYTHONPATH": f"{tmp_path}/clone:{tmp_path}/image", "PATH": "/usr/bin:/bin"}

    def output_of():
        run = [sys.executable, "-c", program]
        return subprocess.run(run, env=environment, text=True, capture_output=True, check=True).stdout

    where = tmp_path / "clone/synmask/kernels.py"
    assert output_of().endswith(f"{where}\n")
    shutil.copy(built[0], tmp_path / "image/synmask/induction")
    assert output_of() == f"True {where}\n"


def test_each_kernel_is_shipped_with_its_source():
    """`load` compares the source with that of the build."""
    root = Path(__file__).parents[1]
    data = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    shipped = {
        path
        for package, patterns in data.items()
        for pattern in patterns
        for path in root.joinpath("src", *package.split(".")).glob(pattern)
    }
    assert {*root.glob("src/**/*.cpp")} <= shipped

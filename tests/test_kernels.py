"""C++ operators are used only if they were built from the present source."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch  # noqa: F401 - has the threads of kernels

from synmask import kernels

KERNEL = Path(kernels.__file__).parent / "induction/kernel.cpp"


def test_operators_of_another_source_or_other_flags_are_not_used(monkeypatch, tmp_path):
    (tmp_path / "synmask/induction").mkdir(parents=True)
    source = shutil.copy(KERNEL, tmp_path / "synmask/induction/kernel.cpp")
    for library in KERNEL.parent.glob("kernel.*.so"):
        shutil.copy(library, source.parent)
    assert kernels.load_kernel("synmask.induction", source)
    monkeypatch.setattr(kernels, "FLAGS", (*kernels.FLAGS, "-ffast-math"))
    with pytest.warns(UserWarning, match="of synmask.induction are out of date: build them anew with `make`"):
        assert kernels.load_kernel("synmask.induction", source) is None
    monkeypatch.undo()
    source.write_text(f"{source.read_text()}\n")
    with pytest.warns(UserWarning, match="are out of date"):
        assert kernels.load_kernel("synmask.induction", source) is None


def test_without_operators_nothing_is_reported(monkeypatch, recwarn):
    monkeypatch.setattr(kernels, "_library", lambda package, source: None)
    assert kernels.load_kernel("synmask.induction", KERNEL) is None
    assert not recwarn


def test_a_library_that_cannot_be_loaded_is_out_of_date(monkeypatch, tmp_path):
    (tmp_path / "kernel.so").write_bytes(b"of another machine")
    monkeypatch.setattr(kernels, "_library", lambda package, source: str(tmp_path / "kernel.so"))
    with pytest.warns(UserWarning, match="are out of date"):
        assert kernels.load_kernel("synmask.induction", KERNEL) is None


SUMS = """
extern "C" float sum(const float* x, int n) { float s = 0; for (int i = 0; i < n; ++i) s = s * x[0] + x[i] / 3; return s; }
"""


@pytest.mark.parametrize(
    "flags", ["-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-ffp-contract=fast"]
)
def test_the_compilers_environment_changes_no_bit(tmp_path, flags):
    """CXXFLAGS come before our flags. Machine code is compared: with the environment's flags, it is another."""
    (tmp_path / "sums.cpp").write_text(SUMS)

    def code(*words):
        command = ["g++", "-S", "-o", "-", *words, "-march=x86-64-v3", str(tmp_path / "sums.cpp")]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert code(flags, *kernels.FLAGS) == code(*kernels.FLAGS)
    assert code("-O3", flags) != code(*kernels.FLAGS)


def test_operators_of_an_image_are_found_behind_the_sources_of_a_clone(tmp_path):
    """The image installs them, and PYTHONPATH puts the mounted clone before it (Dockerfile)."""
    package = Path(kernels.__file__).parent
    built = [*package.glob("induction/kernel.*.so")]
    if not built:
        pytest.skip("no operators are built here")
    shutil.copytree(package, tmp_path / "clone/synmask", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    (tmp_path / "image/synmask/induction").mkdir(parents=True)
    program = "import torch; from synmask import kernels; print(bool(kernels.load_kernel('synmask.induction', kernels.Path('SOURCE'))), kernels.__file__)"
    program = program.replace("SOURCE", str(tmp_path / "clone/synmask/induction/kernel.cpp"))
    environment = {"PYTHONPATH": f"{tmp_path}/clone:{tmp_path}/image", "PATH": "/usr/bin:/bin"}

    def output_of():
        run = [sys.executable, "-c", program]
        return subprocess.run(run, env=environment, text=True, capture_output=True, check=True).stdout

    where = tmp_path / "clone/synmask/kernels.py"
    assert output_of().endswith(f"{where}\n")
    shutil.copy(built[0], tmp_path / "image/synmask/induction")
    assert output_of() == f"True {where}\n"


def test_each_kernel_is_shipped_with_its_source_and_the_demo_with_its_card():
    """`load` compares the source with that of the build."""
    root = Path(__file__).parents[1]
    data = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    shipped = {
        path
        for package, patterns in data.items()
        for pattern in patterns
        for path in root.joinpath("src", *package.split(".")).glob(pattern)
    }
    demo = root / "src/synmask/pipeline/translation/demo.pt"
    assert {*root.glob("src/**/*.cpp"), demo, demo.with_suffix(".md")} <= shipped

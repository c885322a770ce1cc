"""README's lines on the method run where PyTorch is and nothing else."""

import re
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALONE = """
import importlib.abc, sys
allowed = {allowed!r}

class Others(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        top = name.split(".")[0]
        if top not in sys.stdlib_module_names and top not in allowed:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Others())
"""


def needed(package, known):
    """The distributions that `package` needs without extras, itself included."""
    if package not in known:
        known.add(package)
        try:
            named = requires(package) or []
        except ModuleNotFoundError:  # of another machine
            named = []
        for line in named:
            if "extra ==" not in line:
                needed(re.match(r"[\w.-]+", line).group().lower(), known)
    return known


def run(code):
    """Run `code` in a Python that finds no package but PyTorch and what it needs."""
    names = {name.replace("-", "_") for name in needed("torch", set())}
    allowed = names | {"synmask", "torch", "torchgen", "functorch", "mpmath", "triton", "nvidia", "cuda"}
    how = {"capture_output": True, "text": True, "check": False}
    return subprocess.run([sys.executable, "-c", ALONE.format(allowed=allowed) + code], **how)


def test_the_lines_of_the_readme_need_pytorch_alone():
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL).group(1)
    done = run(code)
    assert done.returncode == 0, done.stderr
    assert "torch.Size([2, 7, 64]) torch.Size([2, 6]) torch.Size([2, 7])" in done.stdout


def test_all_public_names_are_there():
    done = run(
        "import synmask\nfor name in synmask.__all__: getattr(synmask, name)\nprint(synmask.implementation())"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout in ("C++\n", "PyTorch\n")


def test_the_command_says_what_it_needs():
    done = run("from synmask.__main__ import main\nmain()")
    assert done.returncode == 1
    assert re.fullmatch(
        r"synmask: \S+ is not installed: the command needs the pipeline's packages; .*\n", done.stderr
    )

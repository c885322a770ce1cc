"""README's lines on the method run where PyTorch is and nothing else."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
SYNMASK = f"sys.path.append({str(ROOT / 'src')!r})\n"


def test_the_lines_of_the_readme_need_pytorch_alone(alone):
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL).group(1)
    done = alone(SYNMASK + code, "torch")
    assert done.returncode == 0, done.stderr
    assert "torch.Size([2, 7, 64]) torch.Size([2, 6]) torch.Size([2, 7])" in done.stdout


def test_all_public_names_are_there(alone):
    code = (
        "import synmask\nfor name in synmask.__all__: getattr(synmask, name)\nprint(synmask.implementation())"
    )
    done = alone(SYNMASK + code, "torch")
    assert done.returncode == 0, done.stderr
    assert done.stdout in ("C++\n", "PyTorch\n")


def test_the_command_says_what_it_needs(alone):
    done = alone(f"{SYNMASK}from synmask.__main__ import main\nmain()", "torch")
    assert done.returncode == 1
    assert re.fullmatch(
        r"synmask: \S+ is not installed, one of the pipeline's packages; .*`make .venv/.ready` .*\n",
        done.stderr,
    )


def test_loading_a_trained_model_says_what_it_needs(alone):
    done = alone(f"{SYNMASK}from synmask.pipeline import load\nload('average.pt')", "torch")
    assert done.returncode == 1
    *_, last = done.stderr.splitlines()
    assert re.fullmatch(
        r"ModuleNotFoundError: \S+ is not installed, one of the pipeline's packages; .*`make .venv/.ready` .*",
        last,
    )
    assert "During handling" not in done.stderr

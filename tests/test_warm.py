"""A verb that starts warm (warm.py) does the same as one that starts cold."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

COLD = Path(sys.executable).parent


def environment(folder, **kwargs):
    return os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"} | kwargs


@pytest.mark.parametrize(
    "words",
    [
        ("--version",),
        ("score", "nowhere", "there"),
        ("train", "--bogus"),
        ("score", "hypotheses", "references"),
    ],
)
def test_it_says_and_exits_the_same(warm, tmp_path, words):
    for name in ("hypotheses", "references"):
        (tmp_path / name).write_text("The cat sat on the mat .\n")
    done = [
        subprocess.run(["synmask", *words], cwd=tmp_path, env=environment(folder), capture_output=True)
        for folder in (COLD, warm.folder)
    ]
    assert len({(one.returncode, one.stdout, one.stderr) for one in done}) == 1


def test_its_modules_and_variables_are_the_callers(warm, tmp_path):
    (tmp_path / "synmask").mkdir()
    (tmp_path / "synmask/__init__.py").touch()
    (tmp_path / "synmask/__main__.py").write_text(
        "import os, sys\n\ndef main():\n    print(os.environ['OWN'], sys.argv[1], sys.stdin.read())\n    sys.exit(7)\n"
    )
    variables = environment(warm.folder, OWN="mine", PYTHONPATH=str(tmp_path))
    done = subprocess.run(["synmask", "word"], env=variables, input="said", text=True, capture_output=True)
    assert (done.returncode, done.stdout) == (7, "mine word said\n")


def test_it_dies_with_its_caller(warm, tmp_path):
    (tmp_path / "Snakefile").write_text(
        'rule a:\n    output: "b"\n    shell: "echo $$ > pid; exec sleep 300"\n'
    )
    caller = subprocess.Popen(
        ["snakemake", "-c1", "--quiet"], cwd=tmp_path, env=environment(warm.folder), stderr=subprocess.DEVNULL
    )
    pid = tmp_path / "pid"
    while not pid.exists() or not pid.read_text().endswith("\n"):
        assert caller.poll() is None
        time.sleep(0.1)
    caller.kill()
    caller.wait()
    end = time.monotonic() + 60
    while Path("/proc", pid.read_text().strip()).exists():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.parametrize(
    "words",
    [
        ("-c", "import sys; print(__name__, sys.argv, sys.path[0]); sys.exit(3)", "word"),
        ("-c", "1 / 0"),
        ("-m", "json.tool", "nowhere"),
        ("program.py", "word"),
    ],
)
def test_python_says_and_exits_the_same(warm, tmp_path, words):
    (tmp_path / "program.py").write_text("import sys; print(__name__, sys.argv, sys.path[0]); sys.exit(3)")
    done = [
        subprocess.run([python, *words], cwd=tmp_path, capture_output=True, text=True)
        for python in (sys.executable, warm.python)
    ]
    assert len({(each.returncode, each.stdout, each.stderr.rpartition("\n  ")[2]) for each in done}) == 1

"""Checks of the Dockerfile and of Conda's environments that need neither; `.ci/run` lints the former."""

import re
import subprocess
import sys
from importlib.metadata import packages_distributions, requires
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINES = (ROOT / "Dockerfile").read_text()


def test_what_is_copied_is_there_and_goes_into_the_build():
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert ignored[0] == "*"
    copied = [name for line in re.findall(r"^COPY (.+) \S+$", LINES, re.M) for name in line.split()]
    assert {"requirements/pipeline.txt", "src"} < {*copied}
    assert {f"!{name}" for name in copied} == {line for line in ignored if line.startswith("!")}
    assert all((ROOT / name).exists() for name in copied)


def installed(text):
    """The arguments of pip and uv in a script, without those that only one script needs."""
    words = re.findall(r"(?:pip install(?! --python)|UV_INSTALL,\$\(VENV\)\)) (.+?)(?: \\)?$", text, re.M)
    return [re.sub("--quiet |--no-cache-dir |--reinstall-package synmask |-e ", "", line) for line in words]


def test_packages_are_installed_as_make_installs_them():
    made = installed((ROOT / "Makefile").read_text())
    assert made[0] == "--require-hashes -r requirements/uv.txt"
    assert len(made) == 4
    assert installed(LINES) == installed((ROOT / "workflow/envs/synmask.post-deploy.sh").read_text()) == made


def test_the_environment_of_corenlp_has_what_its_verb_imports():
    """Imports of `constituency` are from packages of the environment, or from those that these require."""
    lines = (ROOT / "workflow/envs/corenlp.yaml").read_text().split("dependencies:")[1]
    there, todo = {"synmask"}, re.findall(r"- ([a-z-]+)", lines)
    while todo:
        name = todo.pop().lower().replace("_", "-")
        if name not in there | {"python", "openjdk"}:
            there.add(name)
            todo += [re.match(r"[\w-]+", one)[0] for one in requires(name) or () if "extra ==" not in one]
    program = """
import sys, synmask.pipeline.cli, synmask.pipeline.syntax.corenlp, synmask.pipeline.syntax.jvm
print(*{name.partition(".")[0] for name in sys.modules} - {*sys.stdlib_module_names})
"""
    message = subprocess.run(
        [sys.executable, "-c", program], text=True, capture_output=True, check=True
    ).stdout
    owners = packages_distributions()
    used = {owner.lower().replace("_", "-") for name in message.split() for owner in owners.get(name, ())}
    assert "pydantic" in used
    assert used <= there


def test_a_user_without_a_name_can_run_snakemake():
    """`docker run --user` gives a number alone, and Snakemake asks for the name, which LOGNAME or USER can say."""
    assert re.search(r"^ENV .*\bUSER=\w+", LINES, re.M)

"""Results that move to another place, and that two people share."""

import os
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.xdist_group("demo")
GROUP, FIRST, SECOND = 61000, 61001, 61002  # people whom no machine knows
TEXT, CODES = "results/demo/de-en/text/valid.de", "results/demo/de-en/bpe/codes"


def rules(project):
    return {rule for rule, _ in project.planned()}


def test_results_that_were_moved_are_not_made_again(built, project):
    """Into a checkout whose files are younger, with .snakemake or without it."""
    for path in (project.folder / "src").rglob("*.py"):
        path.touch()
    project.config = built.config
    for part in ("results", ".snakemake"):
        shutil.copytree(built.folder / part, project.folder / part)
    assert rules(project) == rules(built)
    shutil.rmtree(project.folder / ".snakemake")
    assert "train" not in rules(project)
    shutil.rmtree(project.folder / "results")


class Person:
    """Runs Snakemake in a shared project as a user of its own, who reads everything but writes as rights say."""

    def __init__(self, project, home, user, umask):
        self.project, self.user, self.umask = project, user, umask
        home.mkdir()
        os.chown(home, user, GROUP)
        self.environment = os.environ | {
            "HOME": str(home),
            "USER": str(user),
            "LOGNAME": str(user),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(project.folder / "src"),
        }

    def run(self, *words):
        power = "-all,+dac_read_search"
        rights = ["--inh-caps", power, "--ambient-caps", power.removeprefix("-all,"), "--bounding-set", power]
        person = ["setpriv", "--reuid", str(self.user), "--regid", str(GROUP), "--clear-groups", *rights]
        return subprocess.run(
            [*person, *words],
            cwd=self.project.folder,
            env=self.environment,
            umask=self.umask,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )


@pytest.fixture
def shared(project):
    """A project that belongs to a group: what is made in a folder of it belongs to the group, too."""
    project.write_config()
    for path in [project.folder, *project.folder.rglob("*")]:
        os.chown(path, -1, GROUP, follow_symlinks=False)
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o2775)
    return project


LOCK = """
import sys, time
from pathlib import Path
from synmask.pipeline.training.lock import run_lock
from synmask.pipeline.errors import UserError
try:
    with run_lock(Path("results/run")):
        print("locked", flush=True)
        time.sleep(float(sys.argv[1]))
except UserError as error:
    sys.exit(str(error))
"""


@pytest.mark.cluster
def test_two_people_go_on_in_turn_with_what_the_group_may_write(shared, tmp_path_factory):
    homes = tmp_path_factory.mktemp("homes")
    first = Person(shared, homes / "first", FIRST, 0o002)
    second = Person(shared, homes / "second", SECOND, 0o002)
    careless = Person(shared, homes / "third", SECOND, 0o022)
    snakemake = ("snakemake", "-c1")
    for person, target in ((first, TEXT), (second, CODES)):
        done = person.run(*snakemake, target)
        assert done.returncode == 0, done.stdout
        assert (shared.folder / target).stat().st_uid == person.user
    shutil.rmtree(shared.folder / "results/demo/de-en")
    assert careless.run(*snakemake, TEXT).returncode == 0
    done = first.run(*snakemake, CODES)
    assert done.returncode == 1
    assert "Permission denied: 'results/demo/de-en/" in done.stdout

    python = (os.path.join(os.path.dirname(shutil.which("snakemake")), "python"), "-c", LOCK)
    first.run("mkdir", "results/run")
    assert careless.run(*python, "0").returncode == 0
    second.run("sh", "-c", "umask 022; echo '{}' > results/run/lock")  # what a killed one leaves
    done = first.run(*python, "0")
    assert done.returncode == 1
    assert done.stdout.count("\n") == 1
    assert f"results/run/lock belongs to user {SECOND}" in done.stdout


def test_another_clones_environment_is_refused(project, tmp_path):
    """Its library would run, and results would carry this clone's digests."""
    other = tmp_path / "other/src"
    shutil.copytree(project.folder / "src", other)
    program = "import sys; sys.path.insert(0, sys.argv.pop(1)); from snakemake.cli import main; main()"
    project.write_config()
    environment = project.environment(warm=False) | {"PYTHONPATH": ""}

    def dry_run():
        command = [project.warm.python, "-c", program, str(other), "-n", "demo"]
        return subprocess.run(
            command, cwd=project.folder, env=environment, capture_output=True, text=True, check=False
        )

    assert dry_run().returncode == 0  # the same code, as in an image
    with (other / "synmask/encoder.py").open("a") as file:
        file.write("# other\n")
    done = dry_run()
    assert done.returncode == 1
    assert "this synmask would run, and encoder.py differs" in done.stdout + done.stderr
    # A node's PATH may lead elsewhere: a job's `synmask` compares, too.
    verb = "import sys; sys.path.insert(0, sys.argv.pop(1)); from synmask.pipeline.cli import main; main()"
    environment |= {"SYNMASK_SOURCE": str(project.folder / "src/synmask")}
    command = [project.warm.python, "-c", verb, str(other), "settings"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "this synmask would run, and encoder.py differs" in done.stderr
    assert done.stderr.endswith(", and unset PYTHONPATH\n")  # which goes before any environment
    assert done.stderr.count("\n") == 1


def test_snakemake_tells_jobs_whose_code_they_must_run(project):
    (project.folder / "bin").mkdir(exist_ok=True)
    program = project.folder / "bin/synmask"
    program.write_text('#!/bin/sh\necho "asked to compare with $SYNMASK_SOURCE" >&2\nexit 1\n')
    program.chmod(0o755)
    done = project.snakemake("results/demo/de-en/text/valid.de", check=False)
    program.unlink()
    assert f"asked to compare with {project.folder}/src/synmask" in done.output


def test_a_project_without_room_is_refused_in_one_line(project):
    project.write_config()
    done = subprocess.run(
        [
            "bash",
            "-c",
            "ulimit -f 32; snakemake -n demo",
        ],  # no file may be longer than 32 KiB: as a full disk
        cwd=project.folder,
        env=project.environment(warm=False),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    output = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("Using")]
    assert output == [f"{project.folder}: File too large; snakemake keeps its records and results there"]


def test_another_users_records_are_refused_in_one_line(project):
    project.write_config()
    records = project.folder / ".snakemake/iocache"
    records.mkdir(mode=0o555, parents=True)
    limited = ["setpriv", "--bounding-set=-dac_override"] if os.getuid() == 0 else []  # root may write all
    kwargs = {"cwd": project.folder, "env": project.environment(warm=False), "check": False}
    done = subprocess.run(
        [*limited, "snakemake", "-n", "demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **kwargs,
    )
    message = f"{records}: Permission denied; snakemake keeps its records and results there"
    assert (done.returncode, done.stdout.splitlines()[1:]) == (1, [message])


def test_results_on_a_disk_that_is_not_there_are_not_made_again(project):
    (project.folder / "results").symlink_to(project.folder / "disk/results")
    message = "results: No such file or directory; snakemake keeps its records and results there"
    assert project.snakemake("-n", check=False).output.splitlines()[1:] == [f"{project.folder}/{message}"]


def test_a_clone_below_a_folder_with_braces_is_refused_in_one_line(new_project):
    """Snakemake would end with a NameError from the format of a path."""
    project = new_project("a{b}")
    done = project.snakemake("-n", "demo", check=False)
    assert done.returncode == 1
    message = f"{project.folder}: Snakemake cannot run below a folder with braces in its name; rename that"
    assert done.output.splitlines()[-1] == message

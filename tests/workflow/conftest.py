"""A copy of the project in a temporary folder, with a demo that trains in seconds."""

import atexit
import contextlib
import copy
import functools
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import yaml
from snakemake.iocontainers import Wildcards

from demo_grammar import write_corpus
from demo_grammar.tasks import write_demo_task, write_text
from synmask.pipeline.config.loading import load, project_files, read_all
from synmask.pipeline.files import read_lines, write_lines
from synmask.pipeline.workflow.jobs import Jobs
from synmask.pipeline.workflow.normalise import is_ignored
from synmask.pipeline.workflow.sources import sources

ROOT = Path(__file__).parents[2]
MAX_SECONDS = 1200  # that one call of snakemake may take on a busy machine
SIZES = {"train": 200, "valid": 20, "test": 21}
TINY = {
    "pairs": SIZES,
    "text": {"lowercase": False, "max_tokens": 60, "max_ratio": 4},
    "bpe": {"merges": 300},
    "model": {"encoder_layers": 2, "decoder_layers": 1, "embed_dim": 16, "ffn_dim": 16, "heads": 2},
    "training": {
        "max_epochs": 2,
        "batch": {"gpus": 1, "updates": 1, "tokens": 800},
        "lr": 0.005,
        "warmup_updates": 5,
        "average": 2,
    },
}

QUEUE = """#!/bin/sh
# A queue whose jobs start at once. `queue submit WORDS JOBSCRIPT` prints a number, `queue status NUMBER` a word.
# $LATE: a file that is seen $SECONDS_LATE after its job is known to have ended, as on some shared file systems;
# without $SECONDS_LATE it never is.
case $1 in
  submit)
    number=$(($(wc -l < queued) + 1))
    echo "$@" >> queued
    for script; do :; done
    (
      "$script" && end=success || end=failed
      [ -z "$LATE" ] || mv "$LATE" hidden
      echo $end > state.$number
    ) > log.$number 2>&1 < /dev/null &
    echo $number ;;
  status)
    cat state.$2 2> /dev/null || { echo running; exit; }
    [ -z "$SECONDS_LATE" ] || (sleep $SECONDS_LATE; mv hidden "$LATE") > /dev/null 2>&1 < /dev/null & ;;
esac
"""
SUBMIT = (
    "./queue submit -q {resources.slurm_partition} -m {resources.mem_mb} -t {resources.runtime} -c {threads}"
    " -g {resources.gpu}"
)
GENERIC = ["--profile", "slurm", "--executor", "cluster-generic", "--cluster-generic-submit-cmd", SUBMIT]
GENERIC += ["--cluster-generic-status-cmd", "./queue status", "--seconds-between-status-checks", "1"]


# They check values and compute none, and so does all that they call.
CHECKS = ("synmask.pipeline.cli", "synmask.pipeline.config", "synmask.pipeline.arguments")


ODD = [  # source, its tree, its heads, translation, its tree
    ("", "(FLAT)", "", "", "(FLAT)"),
    ("", "(FLAT)", "", "Nothing .", "(S (NN Nothing) (. .))"),
    ("Ja", "(S (ITJ Ja))", "0", "Yes", "(S (UH Yes))"),
    ("Ja ja", "(S (ITJ Ja) (ITJ ja))", "0 1", "", "(FLAT)"),
    ("Ja !", "(S (ITJ Ja) ($. !))", "0 1", "Yes !", "(S (UH Yes) (. !))"),
    (".", "(S ($. .))", "0", ".", "(S (. .))"),
    ("? !", "(S ($. ?) ($. !))", "0 1", "? !", "(S (. ?) (. !))"),
    ("— …", "(S (_ —) (_ …))", "0 1", "— …", "(S (_ —) (_ …))"),
    ("", "(FLAT)", "", "", "(FLAT)"),
]


@functools.cache
def _demo():
    """A folder with a small demo corpus, whose validation and test sets end with odd and repeated sentences."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    write_corpus(Path(folder.name), SIZES)
    for split in ("valid", "test"):
        names = ("de", "de.trees", "de.heads", "en", "en.trees")
        columns = [Path(folder.name, f"{split}.{name}.gz") for name in names]
        rows = list(zip(*map(read_lines, columns), strict=True))
        rows[-len(ODD) - 1 :] = [rows[0], *ODD]
        for path, lines in zip(columns, zip(*rows, strict=True), strict=True):
            write_lines(path, lines)
    return folder.name


@pytest.fixture(scope="session")
def small_nlu():
    return _small_nlu


def _small_nlu(project):
    """Let a project's nlu-demo have one tiny task, and a RoBERTa of 400 documents."""
    benchmark, weights = project.config["benchmarks"]["nlu-demo"], project.config["weights"]
    task = benchmark["tasks"]["acceptability"] | {"rows": {"train": 48, "dev": 20}}
    write_demo_task(project.folder / "small/acceptability", "acceptability", task["rows"])
    benchmark |= {"folder": "small", "tasks": {"acceptability": task}, "seeds": [1]}
    text = {"train": 400, "valid": 40}
    for split, count in text.items():
        write_text(project.folder / f"small/{split}.txt", count)
    weights["roberta-demo"]["pretrain"]["text"] = {split: [f"small/{split}.txt"] for split in text}
    parses = {"train": ["small/acceptability/train"], "valid": ["small/acceptability/dev"]}
    for name in ("roberta-demo-synclm", "roberta-demo-continued"):
        weights[name]["continued"]["parses"] = parses


class Project:
    """The project's files in a folder of their own; `config` is what its config.yaml holds: all of the configuration.

    `snakemake` runs it, and its verbs, without the seconds of their start (warm.py).
    With `warm_jobs`, jobs on a queue start so, too.
    `loaded` is, once `record` was called, a folder with a file for each `synmask VERB` that ran: its words, and the
    files of the functions that it entered (recorder/sitecustomize.py).
    """

    warm = None  # for all of them, unless a test gives one its own
    warm_jobs = False

    def __init__(self, folder):
        self.folder = folder
        self.loaded = None
        shutil.copytree(
            ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
        for name in ("workflow", "profiles", "slurm"):
            shutil.copytree(ROOT / name, folder / name)
        shutil.copy(ROOT / "Snakefile", folder)
        shutil.copytree(_demo(), folder / "demo/de-en")
        for name in ("tasks", "text"):
            (folder / "demo" / name).symlink_to(ROOT / "demo" / name)
        self.config = copy.deepcopy(read_all(project_files(ROOT)))
        self.config["corpora"]["demo"].update(copy.deepcopy(TINY))
        self.config["corpora"]["demo"]["resources"]["threads"] = 1
        self.config["experiments"]["demo"].update(systems=["transformer", "grammar"], seeds=[1])
        self.config["tables"]["demo-cost"]["systems"] = ["transformer", "grammar"]

    def record(self):
        self.loaded = self.folder.with_name(f"{self.folder.name}-loaded")
        self.loaded.mkdir()

    def environment(self, warm):
        """The variables of what runs in the project, `warm` or not."""
        places = [self.folder / "src", Path(__file__).with_name("recorder"), os.environ.get("PYTHONPATH")]
        environment = os.environ | {
            "PYTHONPATH": ":".join(map(str, filter(None, places))),
            "OMP_NUM_THREADS": "1",
        }
        environment |= {"SYNMASK_LOADED": str(self.loaded)} if self.loaded else {}
        environment |= {"PYTHON_OF_JOBS": str(self.warm.python)} if self.warm_jobs else {}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # else each call compiles the project's modules
        folder = self.folder / "bin"  # a test may put programs there that go before all others
        programs = [folder, *([self.warm.folder] if warm else []), Path(sys.executable).parent]
        return environment | {"PATH": ":".join([*map(str, programs), environment["PATH"]])}

    def write_config(self):
        (self.folder / "config.yaml").write_text(yaml.safe_dump(self.config, sort_keys=False))

    def start(self, *words, warm=False):
        """Start snakemake with these words as the head of a process group; what it says comes as `stdout`."""
        self.write_config()
        return subprocess.Popen(
            ["snakemake", *words],
            cwd=self.folder,
            env=self.environment(warm),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def snakemake(self, *words, check=True):
        """Run snakemake with these words; the result holds `returncode` and, together, `output`."""
        return self.ended(self.start(*words, warm=True), check=check)

    @staticmethod
    def ended(running, *, check=True, hopeless=lambda: None):
        """Wait until a snakemake that `start` gave ends; `output` then holds what it said.

        It is killed, and the test fails, after MAX_SECONDS, or when `hopeless` says why it would never end.
        """
        latest, why = time.monotonic() + MAX_SECONDS, None
        while why is None:
            try:
                running.output = running.communicate(timeout=5)[0]
                assert not check or running.returncode == 0, running.output[-2000:]
                return running
            except subprocess.TimeoutExpired:
                late = f"it still ran after {MAX_SECONDS} s" if time.monotonic() > latest else None
                why = hopeless() or late
        os.killpg(running.pid, signal.SIGKILL)
        raise AssertionError(f"snakemake was killed: {why}\n{running.communicate()[0][-2000:]}")

    def synmask(self, *words, stdin=""):
        """Run a verb, which has to succeed, with this stdin, and return its stdout."""
        environment = self.environment(warm=True)
        environment.pop("SYNMASK_LOADED", None)  # only rules have sources
        kwargs = {"cwd": self.folder, "env": environment, "input": stdin, "text": True}
        done = subprocess.run(["synmask", *words], capture_output=True, check=False, **kwargs)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def planned(self, *words):
        """The jobs of a dry run: a set of (rule, output files)."""
        return self.listed(self.snakemake("-np", *words).output)

    @staticmethod
    def listed(output):
        """The same of a dry run's output."""
        jobs, rule = set(), None
        for line in output.splitlines():
            line = line.strip()  # the jobs of a group are indented
            if line.startswith(("rule ", "localrule ")):
                rule = line.split()[1].rstrip(":")
            elif line.startswith("output: ") and rule:
                jobs.add((rule, line.removeprefix("output: ")))
        return jobs


@pytest.fixture(scope="session", autouse=True)
def _warm(warm):
    Project.warm = warm


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


@pytest.fixture(scope="session")
def new_project(tmp_path_factory):
    """Make a project that outlives a test."""
    return lambda name: Project(tmp_path_factory.mktemp(name))


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """A project whose demo has run."""
    project = Project(tmp_path_factory.mktemp("built"))
    project.record()
    project.first = project.snakemake()
    return project


@pytest.fixture
def queue():
    """Put a queue into a project → the words with which snakemake's jobs go there, and start warm."""

    def put(project):
        project.warm_jobs = True
        (project.folder / "queue").write_text(QUEUE)
        (project.folder / "queue").chmod(0o755)
        (project.folder / "queued").touch()
        return GENERIC

    return put


def _check_loaded(project):
    """Compare the functions of ours that the verbs entered that a project ran with their sources; the verbs."""
    verbs, jobs = set(), Jobs(load(project.config))
    for path in project.loaded.iterdir():
        found = json.loads(path.read_text())
        verb, words = found["words"][1], " ".join(found["words"][2:])
        if verb == "download":  # what it fetches is known by its checksum
            continue
        known = {_module(file) for file in sources(verb, _asked(jobs, verb, words))}
        for file, function, caller in found["entered"]:
            module, caller = _module(file), _module(caller)
            if caller.startswith(CHECKS) or not (caller in known or is_ignored(caller)):
                continue
            what = f"{verb} enters {module}.{function} from {caller}, which does not count: {words[:200]}"
            assert module in known or is_ignored(module), what
        pages = {file for file in found["read"] if "/src/" in file and not file.endswith(".py")}
        assert {_module(file) for file in pages if "/page/" in file} <= known, words[:200]
        verbs.add(verb)
    return verbs


def _asked(jobs, verb, words):
    """The modules that the job of a command asks for."""
    wildcards = {}
    if found := re.search(r"/([\w.-]+)/seed", words):
        wildcards["system"] = found[1]
    found = re.search(r"results/([\w-]+)/\w+-\w+/", words)
    if found and found[1] in jobs.config.corpora:  # not results/weights/
        wildcards["corpus"] = found[1]
    for name in ("source", "target", "language"):
        if found := re.search(rf"--{name} (\w+)", words):
            wildcards[name] = found[1]
    guided = verb != "predict-templates" and "/template " not in words  # of a model without a guide
    return jobs(Wildcards(fromdict=wildcards)).optional_modules(guided=guided)


def _module(file):
    """The name of the module in a file."""
    return file.rpartition("src/")[2].removesuffix(".py").removesuffix("/__init__").replace("/", ".")


class _Job:
    """A job of a dry run, with the files that its rule names."""

    def __init__(self):
        self.input, self.output, self.log = [], [], []


def _jobs(output):
    """The words of each `synmask VERB …` of a dry run with -p → its job."""
    found, job = {}, _Job()
    for line in map(str.strip, output.splitlines()):
        kind, _, files = line.partition(": ")
        if line.startswith(("rule ", "localrule ")):
            job = _Job()
        elif kind in vars(job):
            getattr(job, kind).extend(files.split(", "))
        elif line.startswith("Shell command: ") and "synmask " in line:
            words = shlex.split(line[line.index("synmask ") :])
            found[_command(itertools.takewhile(lambda word: word not in ("2>", ">>", ">"), words[1:]))] = job
    return found


def _command(words):
    """A command by its words, without the number behind --again, which --forceall changes."""
    words = [*words]
    if "--again" in words:
        del words[words.index("--again") + 1]
    return tuple(words)


def _check_read(project, target):
    """Compare the files of the project that steps have read with those that their rules name; the verbs.

    A rule that names a folder names what is in it; checkpoints/ and train.log belong to the train.json beside
    them, the other forms of a table to its Markdown. A step reads something of each job whose files it names.
    """
    jobs, verbs = _jobs(project.snakemake("-np", "--forceall", target).output), set()
    maker = {file: job for job in jobs.values() for file in job.output}
    for path in project.loaded.iterdir():
        found = json.loads(path.read_text())
        if (job := jobs.get(_command(found["words"][1:]))) is None:  # of another target or configuration
            continue
        read = {str(Path(file).relative_to(project.folder)) for file in found["read"] if os.path.isfile(file)}
        named = [*job.input, *job.output, *job.log]
        known = tuple(f"{name}/" for name in named)
        others = {
            file
            for file in read - {*named}
            if not file.startswith((*known, "src/", ".snakemake/"))
            and not re.search(r"/checkpoints/|/train\.log$", file)
            and str(Path(file).with_suffix(".md")) not in named
        }
        assert not others, (found["words"], others)
        makers = {maker.get(file) for file in read}
        unread = [file for file in job.input if file in maker and maker[file] not in makers]
        assert not unread, (found["words"], unread)
        verbs.add(found["words"][1])
    return verbs


@pytest.fixture
def check_read():
    return _check_read


@pytest.fixture
def check_loaded():
    with contextlib.chdir(ROOT):
        yield _check_loaded

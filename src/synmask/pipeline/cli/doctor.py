"""`synmask doctor`: whether this machine, and a cluster, have what the workflow needs."""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import requests
import torch

from synmask import kernels
from synmask.pipeline.cli.plan import disk_space, rows_of
from synmask.pipeline.cli.settings import load_targets, tokenisers
from synmask.pipeline.config.schema import Config
from synmask.pipeline.cpu.processor import CPU
from synmask.pipeline.display import first_names
from synmask.pipeline.errors import UserError
from synmask.pipeline.runs import Run, trainings
from synmask.pipeline.text.segment import INSTALL_JUMAN
from synmask.pipeline.workflow import slurm
from synmask.pipeline.workflow.jobs import Jobs
from synmask.pipeline.workflow.nodes import RESOURCES, nodes_of, shortage
from synmask.pipeline.workflow.targets import Targets, licensed

ANSWER_TIMEOUT = 4  # seconds for an answer of a mirror, or of SLURM
Finding = tuple[str, str]  # what was looked at; what is wrong and what to do, "" if it is good


def doctor(
    *target: str,
    configfile: tuple[Path, ...] = (),
    profile: Literal["default", "slurm"] = "default",
    job: bool = False,
) -> None:
    """Check whether this machine has what a target needs: one line per check, good or what to do.

    With `--profile slurm`, also whether the cluster takes jobs with the settings of slurm.local.yaml.
    The exit code is 1 if something is missing.

    For example: `synmask doctor demo --profile slurm --job`

    Args:
        target: Experiments and tables of the configuration; default: its targets.
        configfile: Your own files; each overrides config.yaml and the files before it.
        profile: The profile of Snakemake that you will use.
        job: Also run a job of some seconds, to see whether the nodes have this folder.
    """
    if job and profile != "slurm":
        raise UserError("--job: give --profile slurm, too; the job is one of the cluster")
    config, targets = load_targets(target, configfile)
    cluster = _check_cluster(config, targets, job=job) if profile == "slurm" else ()
    good = True
    checks = chain(
        _check_machine(), _check_tokenisers(config, targets), _check_files(config, targets), cluster
    )
    for subject, fault in checks:
        print(f"TO DO  {subject}: {fault}" if fault else f"good   {subject}")
        good = good and not fault
    if not good:
        sys.exit(1)


def _check_machine() -> Iterator[Finding]:
    """C++ operators (without them PyTorch takes more time or memory), the choice of operators, GPUs."""
    root = Path(kernels.__file__).parent
    with warnings.catch_warnings(action="ignore"):
        packages = ("induction", "pipeline.search", "pipeline.training")
        sources = {name: root.joinpath(*name.split("."), "kernel.cpp") for name in packages}
        built = all(kernels.load_kernel(f"synmask.{name}", source) for name, source in sources.items())
    yield "C++ operators", "" if built else "not built: install g++ and python3-dev, then run `make`"
    yield "operators: " + ", ".join(f"{name} {value}" for name, value in asdict(CPU).items()), ""
    gpus = torch.cuda.device_count()
    todo = "nvidia-smi is here: see what it says" if shutil.which("nvidia-smi") and not gpus else ""
    yield f"PyTorch {torch.__version__}, which sees {gpus} GPUs", todo


def _check_tokenisers(config: Config, targets: Iterable[str]) -> Iterator[Finding]:
    """The tokenisers of the targets' corpora, and why each is taken; Juman must be installed."""
    corpora = (run.corpus for run in trainings(config, targets) if isinstance(run, Run))
    for used, words in tokenisers(config, corpora):
        yield words, INSTALL_JUMAN if used == "juman" and not shutil.which("juman") else ""


def _check_files(config: Config, targets: Iterable[str]) -> Iterator[Finding]:
    """Java, files of the user's, downloads to come, and the disk."""
    needs = Targets(config)
    downloads = {path for name in targets for path in needs.downloads(name)}
    if any(path.endswith(".jar") for path in downloads):
        yield "Java for CoreNLP", "" if shutil.which("java") else "install default-jdk-headless"
    if own := {path for name in targets for path in needs.own_files(name)}:
        missing = first_names(_missing_paths(own))
        todo = f"missing: {missing}: put them there, or change what the configuration names"
        yield f"{len(own)} files of yours", todo if missing else ""
    left, places = _missing_paths(downloads), set()
    if todo := licensed(config, left):
        yield "licensed data", todo
    for folder, name in (Path(path).parts[-2:] for path in left):
        if place := config.mirrors.get(folder) or needs.data.origin(folder, name)[0]:
            places.add("{0.scheme}://{0.netloc}".format(urlsplit(place)) if "://" in place else place)
    places = sorted(places)
    todo = "cannot be reached: download elsewhere and copy data/, or set `mirrors`"
    with ThreadPoolExecutor() as threads:
        for place, reached in zip(places, threads.map(_is_reachable, places), strict=True):
            yield f"downloads from {place}", "" if reached else todo
    yield disk_space(rows_of(config, targets))


def _missing_paths(paths: Iterable[str]) -> list[str]:
    return sorted(path for path in paths if not os.path.exists(path))


def _is_reachable(place: str) -> bool:
    """Whether a host answers, or a folder is there."""
    if "://" not in place:
        return os.path.isdir(os.path.expanduser(place))
    try:
        requests.head(place, timeout=ANSWER_TIMEOUT)
    except (requests.RequestException, ValueError):  # the latter: a mirror that is no URL
        return False
    return True


def _check_cluster(config: Config, targets: Iterable[str], *, job: bool) -> Iterator[Finding]:
    """SLURM's commands, partitions, nodes, and with `job` whether a node sees what is written here."""
    try:
        slurm.check_commands()
    except UserError as error:
        yield "SLURM", str(error)
        return
    yield "SLURM's commands", ""
    site = slurm.read_site()
    for partition in dict.fromkeys((site.partition, site.gpu_partition)):
        refusal = _sbatch(site, partition, "--test-only", "--wrap", "true")
        yield f"partition {partition}", f"{refusal}; change {slurm.FILE}" if refusal else ""
    needed = trainings(config, targets)
    if todo := Jobs(config).uneven_gpus(needed):
        yield "GPUs of trainings", todo
    entries = {config.resources_key(run.wildcards): config.resources_of(run.wildcards) for run in needed}
    for key, resources in entries.items():
        request = {unit: getattr(resources, name) for unit, name in RESOURCES.items()}
        partition = site.gpu_partition if resources.gpus else site.partition
        nodes = nodes_of(partition, site.gpu_model if resources.gpus else None)
        todo = "" if nodes else f"not compared: `sinfo -p {partition}` shows no node"
        if shortfall := shortage(request, nodes, partition):
            todo = f"{shortfall[1]}: change `{RESOURCES[shortfall[0]]}` there"
        yield f"nodes for `{'.'.join(key)}`", todo
    if job:
        with tempfile.NamedTemporaryFile(dir=".") as file:
            test = f"test -e '{os.path.abspath(file.name)}'"
            refusal = _sbatch(site, site.partition, "--wait", "-o", "/dev/null", "--wrap", test, timeout=120)
        todo = f"{refusal}; {os.getcwd()} must be on a file system that nodes share"
        yield "a node sees this folder", todo if refusal else ""


def _sbatch(site: slurm.Site, partition: str, *words: str, timeout: float = ANSWER_TIMEOUT) -> str:
    """Submit a small job with the site's account, QOS and options → SLURM's words if that fails, "" else."""
    command = ["sbatch", "-p", partition, "--mem", "100", "-t", "1", *shlex.split(site.extra)]
    command += ["-A", site.account] * bool(site.account) + ["--qos", site.qos] * bool(site.qos)
    try:
        done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return f"no answer in {timeout:.0f} s: see `squeue --me`"
    words = "; ".join(done.stderr.strip().splitlines())
    return words or f"exit code {done.returncode}" if done.returncode else ""

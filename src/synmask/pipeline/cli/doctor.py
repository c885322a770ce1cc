"""`synmask doctor`: whether this machine, and a cluster, have what the workflow needs."""

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import requests
import torch

from synmask import kernels
from synmask.pipeline.cli.plan import disk, rows_of
from synmask.pipeline.cli.settings import configured
from synmask.pipeline.config.loading import read_published
from synmask.pipeline.config.schema import Config
from synmask.pipeline.config.sections import Resources
from synmask.pipeline.files import UserError
from synmask.pipeline.workflow import slurm
from synmask.pipeline.workflow.jobs import Jobs
from synmask.pipeline.workflow.nodes import lacking, nodes_of, shortage
from synmask.pipeline.workflow.targets import Targets, licensed
from synmask.pipeline.workflow.terminal import some
from synmask.pipeline.workflow.trainings import trainings
from synmask.processor import CPU

TIMEOUT = 4  # seconds for an answer of a mirror, or of SLURM
Finding = tuple[bool, str]  # whether it is good; what it is, or what to do
Key = tuple[str, ...]  # of the configuration


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
    config, targets, is_set_in = configured(target, configfile)
    named = Targets(config, read_published(config.published))
    downloads = sorted({path for name in targets for path in named.downloads(name)})
    origins = {path: _origin(config, path) for path in downloads if not os.path.exists(path)}
    checks = [_operators, _choice, _torch, lambda: _java(downloads)]
    checks += [lambda: _licensed(config, origins), lambda: _mirrors(origins)]
    if given := sorted({path for name in targets for path in named.own_files(name)}):
        checks.append(lambda: _own_files(given))
    if profile == "slurm":
        site, entries = slurm.read_site(), (Jobs.entry(one.wildcards) for one in trainings(config, targets))
        wanted = {config.resources_key(*entry): config.resources_of(*entry) for entry in entries}
        checks.append(_commands)
        checks += [
            partial(_accepts, site, name) for name in dict.fromkeys((site.partition, site.gpu_partition))
        ]
        checks.append(lambda: _nodes(site, wanted, is_set_in))
        checks += [lambda: _folder(site)] if job else []
    with ThreadPoolExecutor(len(checks)) as threads:
        found = [*threads.map(lambda check: check(), checks), disk(rows_of(config, targets))]
    for good, words in found:
        print("good  " if good else "TO DO ", words)
    if not all(good for good, _ in found):
        sys.exit(1)


def _operators() -> Finding:
    """The kernels built from C++; without them PyTorch computes the same in more time or memory."""
    here = Path(kernels.__file__).parent
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = ("induction", "pipeline.search", "pipeline.training")
        files = {part: here.joinpath(*part.split("."), "kernel.cpp") for part in parts}
        missing = [part for part, file in files.items() if not kernels.load(f"synmask.{part}", file)]
    if not missing:
        return True, "C++ kernels are built"
    do = "run `make`" if shutil.which("g++") else "install g++ and python3-dev, then run `make`"
    return False, f"kernels of {', '.join(missing)} are missing, so PyTorch takes more time or memory: {do}"


def _choice() -> Finding:
    """The operators that this processor takes."""
    lanes = f"in C++ on {CPU.lanes} numbers at once" if CPU.lanes else "by PyTorch"
    return True, (
        f"processor with {CPU.capability}: linear layers by {CPU.linear}, convolutions by "
        f"{CPU.convolution}, dropout {CPU.dropout}, P_D and continuations by {CPU.distribution}, "
        f"decoder layers {lanes}"
    )


def _torch() -> Finding:
    if count := torch.cuda.device_count():
        return True, f"PyTorch {torch.__version__} sees {count} GPUs: {torch.cuda.get_device_name(0)}"
    if shutil.which("nvidia-smi") is None:
        return True, f"PyTorch {torch.__version__}, no GPU on this machine"
    return False, f"PyTorch {torch.__version__} sees no GPU, though nvidia-smi is here: see `nvidia-smi`"


def _java(downloads: Iterable[str]) -> Finding:
    if not any(path.endswith(".jar") for path in downloads):
        return True, "Java is not needed"
    if shutil.which("java") is None:
        return False, "no java for CoreNLP: install default-jdk-headless"
    return True, "Java is there"


def _origin(config: Config, path: str) -> str | None:
    """The mirror or host of a file; None: it is licensed, and the user has not said where it is."""
    folder, name = Path(path).parts[-2:]
    if folder in config.mirrors:
        return config.mirrors[folder]
    url = config.origin(folder, name)[0]
    return url and "{0.scheme}://{0.netloc}".format(urlsplit(url))


def _licensed(config: Config, missing: Iterable[str]) -> Finding:
    """Licensed files among those that are not here."""
    todo = licensed(config, missing)
    return not todo, todo or "no licensed data is missing"


def _mirrors(origins: Mapping[str, str | None]) -> Finding:
    """The hosts and folders of what is not downloaded yet."""
    left = [origin for origin in origins.values() if origin]
    if not left:
        return True, "all that can be downloaded is here"
    places = sorted({*left})
    with ThreadPoolExecutor(16) as threads:
        bad = [*itertools.compress(places, threads.map(_unreachable, places))]
    if bad:
        do = "download on a machine with a network and copy data/, or set `mirrors`"
        return False, f"cannot be reached: {', '.join(bad)}: {do}"
    return True, f"{len(left)} downloads to come can be reached"


def _unreachable(place: str) -> bool:
    if "://" not in place:
        return not os.path.isdir(os.path.expanduser(place))
    try:
        requests.head(place, timeout=TIMEOUT)
    except (requests.RequestException, ValueError):  # the latter: a mirror that is no URL
        return True
    return False


def _own_files(paths: Sequence[str]) -> Finding:
    """The user's text and trees."""
    missing = [path for path in paths if not os.path.exists(path)]
    if not missing:
        return True, f"your own files are here: {len(paths)}"
    do = "put them there, or change the corpus' `files` or `trees`"
    return False, f"files of yours are missing: {some(missing)}: {do}"


def _commands() -> Finding:
    try:
        slurm.check_commands()
    except UserError as error:
        return False, str(error)
    return True, "SLURM's commands are there"


def _accepts(site: slurm.Site, partition: str) -> Finding:
    """Whether SLURM would take a small job for a partition, with the site's account, QOS and options."""
    done = _run(_sbatch(site, partition), "--test-only", "--wrap", "true")
    if done is None:
        return False, f"partition {partition}: SLURM does not answer"
    if done.returncode == 0:
        return True, f"partition {partition} takes jobs"
    facts = {name: f"`resources.{name}` in config.yaml" for name in slurm.RESOURCES.values()}
    facts |= {"partition": partition, "asks": "a small job"}
    where = slurm.where_to_change(done.stderr, site, facts)
    parts = [f"partition {partition}: {done.stderr.strip()}", where]
    return False, "; ".join("\n".join(filter(None, parts)).splitlines())


def _nodes(site: slurm.Site, wanted: Mapping[Key, Resources], is_set_in: Callable[[Key], str]) -> Finding:
    """Whether a node has what each training asks for."""
    faults, partition = {}, site.gpu_partition
    for key, resources in wanted.items():
        request = {"MB": resources.mem_mb, "CPU": resources.threads, "GPU": resources.gpus}
        if not (nodes := nodes_of(partition, site.gpu_model if resources.gpus else None)):
            return False, f"what trainings ask for is not compared: `sinfo -p {partition}` shows no node"
        if unit := shortage(request, nodes):
            change = f"change {is_set_in((*key, slurm.RESOURCES[unit]))}"
            faults[change] = f"{lacking(request, unit, partition, nodes)}: {change}"
    if faults:
        return False, "; ".join(faults.values())
    return True, f"nodes of {partition} have what trainings ask for"


def _sbatch(site: slurm.Site, partition: str) -> list[str]:
    words = ["sbatch", "-p", partition, "--mem", "100", "-t", "1", *site.extra.split()]
    words += ["-A", site.account] if site.account else []
    return words + (["--qos", site.qos] if site.qos else [])


def _folder(site: slurm.Site) -> Finding:
    """Whether a node sees what is written here."""
    with tempfile.NamedTemporaryFile(dir=".") as file:
        path, wait = os.path.abspath(file.name), ["--wait", "-o", "/dev/null"]
        done = _run(_sbatch(site, site.partition), *wait, "--wrap", f"test -e '{path}'", timeout=120)
    if done is None:
        return False, "the short job did not end within 2 minutes: see `squeue --me`"
    if done.returncode:
        return False, f"a node does not see {os.getcwd()}: put the project on a file system that nodes share"
    return True, "a node sees this folder"


def _run(command: list[str], *words: str, timeout: float = TIMEOUT) -> subprocess.CompletedProcess | None:
    kwargs = {"capture_output": True, "text": True, "timeout": timeout, "check": False}
    try:
        return subprocess.run([*command, *words], **kwargs)
    except (OSError, subprocess.TimeoutExpired):
        return None

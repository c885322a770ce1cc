"""`synmask doctor`: whether this machine, and a cluster, have what the workflow needs."""

import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from synmask import kernels
from synmask.pipeline.config.schema import Config
from synmask.pipeline.config.sections import Resources
from synmask.pipeline.files import UserError
from synmask.pipeline.workflow import slurm
from synmask.pipeline.workflow.nodes import lacking, nodes_of, shortage
from synmask.pipeline.workflow.slurm import Site

TIMEOUT = 4  # seconds for an answer of a mirror, or of SLURM
Finding = tuple[bool, str]  # whether it is good; what it is, or what to do


@dataclass(frozen=True)
class Training:
    """The requests of some trainings of a target, and the function that says where one of these is set."""

    resources: Resources
    is_set_in: Callable[[str], str]


def check(
    config: Config,
    downloads: list[str],
    cluster: Site | None,
    trainings: Iterable[Training] = (),
    *,
    job: bool,
) -> Iterator[Finding]:
    """Check all, side by side.

    Args:
        downloads: the files that the targets need from elsewhere.
        cluster: the settings of a cluster, if its jobs are checked, too.
        trainings: those of the targets, for the cluster.
        job: also run a short job, to see whether nodes have this folder.
    """
    checks: list[Callable[[], Finding]] = [_operators, _choice, _torch, lambda: _java(downloads)]
    checks += [lambda: _licensed(config, downloads), lambda: _mirrors(config, downloads)]
    if cluster:
        checks.append(_commands)
        partitions = dict.fromkeys((cluster.partition, cluster.gpu_partition))
        checks += [lambda name=name: _accepts(cluster, name) for name in partitions]
        checks.append(lambda: _nodes(cluster, trainings))
        checks += [lambda: _folder(cluster)] if job else []
    with ThreadPoolExecutor(len(checks)) as threads:
        yield from threads.map(lambda one: one(), checks)


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
    from synmask.processor import CPU

    lanes = f"in C++ on {CPU.lanes} numbers at once" if CPU.lanes else "by PyTorch"
    return True, (
        f"processor with {CPU.capability}: linear layers by {CPU.linear}, convolutions by "
        f"{CPU.convolution}, dropout {CPU.dropout}, P_D and continuations by {CPU.distribution}, "
        f"decoder layers {lanes}"
    )


def _torch() -> Finding:
    import torch

    if count := torch.cuda.device_count():
        return True, f"PyTorch {torch.__version__} sees {count} GPUs: {torch.cuda.get_device_name(0)}"
    if shutil.which("nvidia-smi") is None:
        return True, f"PyTorch {torch.__version__}, no GPU on this machine"
    return False, f"PyTorch {torch.__version__} sees no GPU, though nvidia-smi is here: see `nvidia-smi`"


def _java(downloads: list[str]) -> Finding:
    if not any(path.endswith(".jar") for path in downloads):
        return True, "Java is not needed"
    if shutil.which("java") is None:
        return False, "no java for CoreNLP: install default-jdk-headless"
    return True, "Java is there"


def _mirrors(config: Config, downloads: list[str]) -> Finding:
    """The hosts and folders of what is not downloaded yet."""
    left = [path for path in downloads if not os.path.exists(path) and not _is_licensed(config, path)]
    if not left:
        return True, "all that can be downloaded is here"
    places = {config.mirrors.get(Path(path).parent.name) or _url(config, path) for path in left}
    bad = [place for place, there in _reachable({place for place in places if place}).items() if not there]
    if bad:
        do = "download on a machine with a network and copy data/, or set `mirrors`"
        return False, f"cannot be reached: {', '.join(sorted(bad))}: {do}"
    return True, f"{len(left)} downloads to come can be reached"


def _is_licensed(config: Config, path: str) -> bool:
    """Whether a file can be had from the user alone, who has not said where it is."""
    name, file = Path(path).parts[-2:]
    return name not in config.mirrors and config.origin(name, file)[0] is None


def _licensed(config: Config, downloads: list[str]) -> Finding:
    """Licensed files that are not here."""
    left = [Path(path) for path in downloads if not os.path.exists(path) and _is_licensed(config, path)]
    if not left:
        return True, "no licensed data is missing"
    return False, "; ".join(
        f"{name} is licensed and cannot be downloaded: get "
        f"{', '.join(path.name for path in left if path.parent.name == name)}, "
        f"then set `mirrors: {{{name}: FOLDER}}` in config.yaml"
        for name in dict.fromkeys(path.parent.name for path in left)
    )


def _url(config: Config, path: str) -> str | None:
    folder, name = Path(path).parts[-2:]
    url = config.origin(folder, name)[0]
    return url and "{0.scheme}://{0.netloc}".format(urlsplit(url))


def _reachable(places: set[str]) -> dict[str, bool]:
    import requests

    def there(place: str) -> bool:
        if "://" not in place:
            return os.path.isdir(os.path.expanduser(place))
        try:
            requests.head(place, timeout=TIMEOUT)
        except (requests.RequestException, ValueError):  # the latter: a mirror that is no URL
            return False
        return True

    with ThreadPoolExecutor(16) as threads:
        return dict(zip(places, threads.map(there, places), strict=True))


def _commands() -> Finding:
    try:
        slurm.check_commands()
    except UserError as error:
        return False, str(error)
    return True, "SLURM's commands are there"


def _accepts(site: Site, partition: str) -> Finding:
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


def _nodes(site: Site, trainings: Iterable[Training]) -> Finding:
    """Whether a node has what each training asks for."""
    faults, partition = {}, site.gpu_partition
    for one in trainings:
        resources = one.resources
        request = {"MB": resources.mem_mb, "CPU": resources.threads, "GPU": resources.gpus}
        nodes = nodes_of(partition, site.gpu_model if resources.gpus else None)
        if unit := shortage(request, nodes):
            change = f"change {one.is_set_in(slurm.RESOURCES[unit])}"
            faults[change] = f"{lacking(request, unit, partition, nodes)}: {change}"
    if faults:
        return False, "; ".join(faults.values())
    return True, f"nodes of {partition} have what trainings ask for"


def _sbatch(site: Site, partition: str) -> list[str]:
    words = ["sbatch", "-p", partition, "--mem", "100", "-t", "1", *site.extra.split()]
    words += ["-A", site.account] if site.account else []
    return words + (["--qos", site.qos] if site.qos else [])


def _folder(site: Site) -> Finding:
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

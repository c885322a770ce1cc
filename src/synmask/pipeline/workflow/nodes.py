"""The resources of the nodes of a partition of SLURM, its time limit, and which requests are above them."""

import re
import subprocess
import sys
from collections.abc import Iterable, Mapping

TIMEOUT = 10  # seconds for SLURM to answer
# unit → key of `resources`
RESOURCES = {"MB": "mem_mb", "CPU": "threads", "GPU": "gpus", "minute": "runtime"}


def answer(command: str, *words: str) -> str | None:
    """The lines of sinfo or squeue; None if SLURM does not answer, or knows nothing of what is asked for."""
    call = [command, "--noheader", *words]
    try:
        return subprocess.run(call, capture_output=True, text=True, check=True, timeout=TIMEOUT).stdout
    except (OSError, subprocess.SubprocessError):
        return None


def nodes_of(partition: str, gpu_model: str | None = None) -> list[dict[str, int]] | None:
    """Unit → amount of each node of a partition, in any state; None if SLURM does not answer.

    A partition that SLURM does not know has no node.

    Args:
        gpu_model: the only GPUs that count; default: all.
    """
    output = answer("sinfo", "--Node", f"--partition={partition}", "--format=%m %c %l %G")
    if output is None:
        return None
    nodes = re.findall(r"^(\d+)\+? (\d+)\+? (\S+) (.*)$", output, re.M)
    return [
        {"MB": int(memory), "CPU": int(cpus), "GPU": _gpus(gres, gpu_model), "minute": _minutes(limit)}
        for memory, cpus, limit, gres in nodes
    ]


def _minutes(limit: str) -> int:
    """The minutes of a time limit such as 1-12:00:00, 4:00:00 or 30:00; the largest number for "infinite"."""
    match = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):\d+", limit)
    if match is None:
        return sys.maxsize
    days, hours, minutes = (int(number or 0) for number in match.groups())
    return (days * 24 + hours) * 60 + minutes


def _gpus(gres: str, model: str | None) -> int:
    """The number of GPUs in a node's generic resources, such as gpu:a100:4(S:0-1),gpu:v100:2."""
    entries = re.findall(r"(?:^|,)gpu:(?:([^:,(]+):)?(\d+)", gres)
    return sum(int(count) for name, count in entries if model in (None, name))


def shortage(
    request: Mapping[str, int], nodes: Iterable[Mapping[str, int]] | None, partition: str
) -> tuple[str, str] | None:
    """The unit of which `request` asks for more than a node has, and the message about it.

    None if one of `nodes`, those of `partition`, satisfies it all. If each amount by itself is on some node,
    but no node has all, the unit is memory, the easiest to change.
    """
    nodes = list(nodes or ())
    if not nodes or any(all(request[unit] <= node[unit] for unit in RESOURCES) for node in nodes):
        return None
    most = {unit: max(node[unit] for node in nodes) for unit in RESOURCES}
    unit = next((unit for unit in RESOURCES if request[unit] > most[unit]), None)
    if unit is None:
        return "MB", f"no node of {partition} has so many CPUs, GPUs and so much memory together"
    asked, largest = request[unit], most[unit]
    if unit == "minute":
        return unit, f"partition {partition} allows {largest:,} minutes, and this job asks for {asked:,}"
    return unit, f"no node of {partition} has {quantity(asked, unit)}, but at most {largest:,}"


def quantity(amount: int, unit: str) -> str:
    """An amount in words: 3,000 MB, 1 CPU, 2 GPUs."""
    return f"{amount:,} {unit}{'s' * (amount != 1 and unit != 'MB')}"

"""The resources of the nodes of a partition of SLURM, and which requests none of them can satisfy."""

import re
import subprocess
from collections.abc import Iterable, Mapping

TIMEOUT = 10  # seconds for SLURM to answer
UNITS = ("MB", "CPU", "GPU")


def nodes_of(partition: str, gpu_model: str | None = None) -> list[dict[str, int]]:
    """The amounts (`UNITS`) that each node of a partition has, in any state; none if SLURM does not answer.

    Args:
        gpu_model: the only GPUs that count; default: all.
    """
    command = ["sinfo", "--noheader", "--Node", f"--partition={partition}", "--format=%m %c %G"]
    try:
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    found = re.findall(r"^(\d+)\+? (\d+)\+? (.*)$", output, re.M)
    return [
        {"MB": int(memory), "CPU": int(cpus), "GPU": _gpus(gres, gpu_model)} for memory, cpus, gres in found
    ]


def _gpus(gres: str, model: str | None) -> int:
    """The number of GPUs in a node's generic resources, such as gpu:a100:4(S:0-1),gpu:v100:2."""
    found = re.findall(r"(?:^|,)gpu:(?:([^:,(]+):)?(\d+)", gres)
    return sum(int(count) for kind, count in found if model in (None, kind))


def shortage(request: Mapping[str, int], nodes: Iterable[Mapping[str, int]]) -> str | None:
    """The unit of which `request` asks for more than a node has; None if one of `nodes` satisfies it all.

    If each amount by itself is on some node, but no node has all, this is memory, the easiest to change.
    """
    nodes = list(nodes)
    if not nodes or any(all(request[unit] <= node[unit] for unit in UNITS) for node in nodes):
        return None
    return next((unit for unit in UNITS if request[unit] > max(node[unit] for node in nodes)), "MB")


def lacking(request: Mapping[str, int], unit: str, partition: str, nodes: Iterable[Mapping[str, int]]) -> str:
    """The message about a `shortage`."""
    most = max(node[unit] for node in nodes)
    if request[unit] <= most:
        return f"no node of {partition} has so many CPUs, GPUs and so much memory together"
    some = f"{request[unit]:,} {unit}{'s' * (unit != 'MB' and request[unit] != 1)}"
    return f"no node of {partition} has {some}, but at most {most:,}"

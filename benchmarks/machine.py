"""The machine of a measurement: `python benchmarks/machine.py` prints it, and the commit."""

import platform
import subprocess
from importlib.metadata import version

from synmask.pipeline.provenance import processor


def described(*packages: str, device: str = "cpu", threads: int = 1) -> str:
    """Machine, threads and versions: the first line of what a benchmark prints."""
    versions = [f"Python {platform.python_version()}", *(f"{one} {version(one)}" for one in packages)]
    return f"{name(device)}, {threads} thread{'s' if threads > 1 else ''}, {', '.join(versions)}"


def name(device: str) -> str:
    """The name of the GPU if `device` is "cuda", else that of the processor."""
    if device == "cuda":
        import torch

        return torch.cuda.get_device_name()
    return processor()


if __name__ == "__main__":
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout
    print(f"{described('torch', 'fairseq')}, commit {commit.strip()}")

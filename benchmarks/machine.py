"""What a measurement ran on."""

import platform
from pathlib import Path

import torch

CPUS = Path("/proc/cpuinfo")


def name(device: str) -> str:
    """The name of the GPU if `device` is "cuda", else that of the processor, where Linux tells it."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    lines = CPUS.read_text().splitlines() if CPUS.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or "unknown processor"

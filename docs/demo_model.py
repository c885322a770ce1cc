"""Writes a model file with 16-bit weights as the one that is shipped as `demo`: `make demo-model`."""

import sys
from pathlib import Path

from synmask.pipeline.training.torch_files import load_checkpoint, save_checkpoint
from synmask.pipeline.translation.model_file import DEMO_MODEL

if __name__ == "__main__":
    saved = load_checkpoint(Path(sys.argv[1]))
    weights = saved["model"].items()
    saved["model"] = {name: value.half() if value.is_floating_point() else value for name, value in weights}
    save_checkpoint(DEMO_MODEL, saved)

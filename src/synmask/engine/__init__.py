"""The only room that imports fairseq. `compat` comes first: without it, fairseq cannot be imported."""

import torch

import synmask.engine.compat  # noqa: F401

# `precision: fp32` means what it says on a GPU, too: by default, torch's convolutions round to TF32 there.
torch.backends.cudnn.conv.fp32_precision = "ieee"

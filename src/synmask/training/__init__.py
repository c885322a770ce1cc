"""Training, whatever is trained. First of all it makes fairseq importable: see `compat`."""

import torch

import synmask.training.compat  # noqa: F401

# `precision: fp32` means what it says on a GPU, too: by default, torch's convolutions round to TF32 there.
torch.backends.cudnn.conv.fp32_precision = "ieee"

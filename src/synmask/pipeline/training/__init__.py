"""The parts that all trainings share. Importing this package makes fairseq importable (`compat_fairseq`)."""

import torch

import synmask.pipeline.training.compat_fairseq  # noqa: F401

# `precision: fp32` holds on a GPU, too, where torch's convolutions round to TF32 by default.
torch.backends.cudnn.conv.fp32_precision = "ieee"

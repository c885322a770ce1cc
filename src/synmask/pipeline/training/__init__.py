"""The parts that all trainings share. Importing this package makes fairseq importable (`compat_fairseq`)."""

import torch

import synmask.pipeline.training.compat_fairseq  # noqa: F401

# `precision: fp32` holds on a GPU, too, where torch's convolutions round to TF32 by default. This is the
# older name of the setting: where the newer one, `conv.fp32_precision`, is set, torch.export fails.
torch.backends.cudnn.allow_tf32 = False

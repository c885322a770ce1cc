"""RoBERTa: its weights, pre-training and fine-tuning, guided by syntax or not."""

import synmask.pipeline.training  # noqa: F401 - before fairseq

"""Translation systems: from binarised data to hypotheses and trees."""

import synmask.pipeline.training  # noqa: F401 - before fairseq

"""Translation systems: from binarised data to hypotheses and trees."""

import synmask.training  # noqa: F401 - before fairseq

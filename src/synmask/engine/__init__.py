"""The only room that imports fairseq. `compat` comes first: without it, fairseq cannot be imported."""

import synmask.engine.compat  # noqa: F401

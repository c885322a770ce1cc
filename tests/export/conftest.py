import synmask.pipeline.training  # noqa: F401 - makes fairseq importable for the tests that import it themselves

"""Small random RoBERTas, for tests of what is built on one."""

import pytest

import synmask.pipeline.training  # noqa: F401 - makes fairseq importable for the tests that import it themselves
from demo_grammar.tasks import write_demo_task


@pytest.fixture(scope="session")
def demo_lines(tmp_path_factory):
    """Text of a task generated from the demo's grammar, one example per line."""
    from synmask.pipeline.corpora.tasks import read_task

    folder = tmp_path_factory.mktemp("text")
    write_demo_task(folder, "paraphrase", {"train": 60, "dev": 1})
    return ["\t".join(texts) for texts in read_task("paraphrase", folder / "train.tsv.gz").texts]


@pytest.fixture
def tune(weights):
    """Fine-tune from the `weights` of the test's module; "dev" chooses the best epoch."""
    from synmask.pipeline.arguments import TrainingOptions
    from synmask.pipeline.roberta.finetune import finetune

    def make(data, run, settings, seed=1, **overrides):
        kwargs = {"data": data, "run": run, "settings": settings, "options": TrainingOptions(seed=seed)}
        finetune(valid="dev", **({"weights": weights} | kwargs | overrides))

    return make

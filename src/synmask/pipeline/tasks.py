"""Language understanding tasks: those of GLUE in the paper (Wang et al. 2019), and similar demo tasks."""

from dataclasses import dataclass

from synmask.pipeline.files import UserError

BINARY = ("0", "1")
INFERENCE = ("entailment", "neutral", "contradiction")


@dataclass(frozen=True)
class Task:
    """A task on one sentence or on a pair."""

    sentences: int
    labels: tuple[str, ...]  # empty: a score from 0 to 5

    @property
    def columns(self) -> list[str]:
        return [*(f"sentence{number + 1}" for number in range(self.sentences)), "label"]


GLUE = {
    "cola": Task(1, BINARY),
    "sst-2": Task(1, BINARY),
    "mnli": Task(2, INFERENCE),
    "qnli": Task(2, ("entailment", "not_entailment")),
    "rte": Task(2, ("entailment", "not_entailment")),
    "mrpc": Task(2, BINARY),
    "qqp": Task(2, BINARY),
    "sts-b": Task(2, ()),
}
GENERATED = {  # corpora/demo/nlu_tasks.py
    "acceptability": Task(1, BINARY),
    "paraphrase": Task(2, BINARY),
    "entailment": Task(2, INFERENCE),
    "predicate": Task(1, ()),
}
TASKS = GLUE | GENERATED
SUBMISSION = {  # files that GLUE's server wants besides WNLI.tsv → the task whose model answers, test set
    "CoLA.tsv": ("cola", "test"),
    "SST-2.tsv": ("sst-2", "test"),
    "MRPC.tsv": ("mrpc", "test"),
    "STS-B.tsv": ("sts-b", "test"),
    "QQP.tsv": ("qqp", "test"),
    "MNLI-m.tsv": ("mnli", "test_matched"),
    "MNLI-mm.tsv": ("mnli", "test_mismatched"),
    "QNLI.tsv": ("qnli", "test"),
    "RTE.tsv": ("rte", "test"),
    "AX.tsv": ("mnli", "ax"),  # the diagnostic set
}


def task_named(name: str) -> Task:
    """The task of this name.

    Raises:
        UserError: there is none.
    """
    if name not in TASKS:
        raise UserError(f"no task {name!r}; there are {', '.join(TASKS)}")
    return TASKS[name]

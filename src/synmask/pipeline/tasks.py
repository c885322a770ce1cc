"""Language understanding tasks: those of GLUE in the paper (Wang et al. 2019), and similar demo tasks."""

import math
from dataclasses import dataclass

from synmask.pipeline.errors import UserError

TASK_LANGUAGE = "en"  # the language of GLUE and of the demo's tasks
AVERAGE = "average"  # the column of a table that has no runs of its own
BINARY = ("0", "1")
INFERENCE = ("entailment", "neutral", "contradiction")
ANSWER = ("entailment", "not_entailment")
MAX_SCORE = 5.0  # of a score; models learn it as a share of this, as in fairseq's recipe for STS-B


@dataclass(frozen=True)
class Task:
    """A task on one sentence or on a pair."""

    sentences: int
    labels: tuple[str, ...]  # empty: a score from 0 to MAX_SCORE
    metrics: tuple[str, ...]  # the first one counts in GLUE's average, and chooses the best epoch

    @property
    def columns(self) -> list[str]:
        return [*(f"sentence{number + 1}" for number in range(self.sentences)), "label"]

    def number(self, label: str) -> float:
        """The place of a label among the task's; the value of a score.

        Raises:
            ValueError: it is neither.
        """
        value = self.labels.index(label) if self.labels else float(label)
        if not math.isfinite(value):
            raise ValueError(label)
        return value

    @property
    def unit(self) -> float:
        """The label or score that an output of 1 stands for: of scores MAX_SCORE."""
        return 1.0 if self.labels else MAX_SCORE

    def target(self, label: str) -> float:
        """The number to learn: the place of a label; a score from 0 to 1, in six digits as in the recipe.

        Raises:
            ValueError: as `number`.
        """
        return float(f"{self.number(label) / self.unit:.6g}")

    def label(self, target: float) -> str:
        """The label of a `target`; a score as text, from 0 to MAX_SCORE."""
        return self.labels[int(target)] if self.labels else f"{target * self.unit:.4f}"


GLUE_TASKS = {
    "cola": Task(1, BINARY, ("matthews",)),
    "sst-2": Task(1, BINARY, ("accuracy",)),
    "mnli": Task(2, INFERENCE, ("accuracy",)),
    "qnli": Task(2, ANSWER, ("accuracy",)),
    "rte": Task(2, ANSWER, ("accuracy",)),
    "mrpc": Task(2, BINARY, ("f1", "accuracy")),
    "qqp": Task(2, BINARY, ("f1", "accuracy")),
    "sts-b": Task(2, (), ("pearson", "spearman")),
}
DEMO_TASKS = {  # demo/tasks/
    "acceptability": Task(1, BINARY, ("matthews",)),
    "paraphrase": Task(2, BINARY, ("f1", "accuracy")),
    "entailment": Task(2, INFERENCE, ("accuracy",)),
    "predicate": Task(1, (), ("pearson", "spearman")),
}
TASKS = GLUE_TASKS | DEMO_TASKS
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


def task_of(name: str) -> Task:
    """The task of this name.

    Raises:
        UserError: there is none.
    """
    if name not in TASKS:
        raise UserError(f"no task {name!r}; there are {', '.join(TASKS)}")
    return TASKS[name]

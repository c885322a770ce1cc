"""A cell of a table of published numbers beside ours."""

from dataclasses import dataclass

from synmask.pipeline.reporting.layout import Value


@dataclass(kw_only=True)
class Cell(Value):
    """One system, column and metric: the published number and the result of our runs.

    Attributes:
        origin: of the published number: measured or quoted.
        baseline: None: nothing to test. Beside a baseline, p is None if a run has no counts by sentence.
        p: the larger of `p_test_set` and `p_seeds`, if there are several seeds.
        best: among our means; in a sweep: the system that validation chooses.
    """

    corpus: str
    column: str
    metric: str
    system: str
    label: str
    published: float | None
    published_text: str | None
    origin: str | None
    paper: str | None
    median: float | None
    baseline: str | None
    p_test_set: float | None
    p_seeds: float | None
    best_published: bool = False

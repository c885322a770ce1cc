"""The spec of a page: the experiments, figures and contrasts that it shows."""

from typing import NotRequired

from pydantic import ConfigDict
from typing_extensions import TypedDict

from synmask.pipeline.reporting.contrasts import Contrast
from synmask.pipeline.runs import Columns

FORBID = ConfigDict(extra="forbid")


class PagePart(TypedDict):
    """The part of a page on one experiment, or on a benchmark.

    Attributes:
        note: a sentence above all of its results.
        systems: name and label of each.
        columns: directions, or parts of tasks, with their runs in the order of the page.
        tables, figures: paths of Markdown and of SVG files.
        pages: heading and path of each HTML page that becomes a section (it must load nothing).
        metrics: for a benchmark, the heads of its parts' scores.
    """

    __pydantic_config__ = FORBID

    name: str
    title: str
    note: NotRequired[str | None]
    systems: list[tuple[str, str]]
    columns: Columns
    tables: list[str]
    figures: list[str]
    pages: NotRequired[list[tuple[str, str]]]
    metrics: NotRequired[dict[str, str]]


class CorpusContrasts(TypedDict):
    """The contrasts that are tested between the runs of a corpus' experiments."""

    __pydantic_config__ = FORBID

    corpus: str
    experiments: list[str]
    contrasts: list[Contrast]


class PageSpec(TypedDict):
    """The contents of a page.

    Attributes:
        figures: those of no experiment.
        contrasts: no gain is claimed without a number that the paper prints.
    """

    __pydantic_config__ = FORBID

    title: str
    figures: list[str]
    experiments: list[PagePart]
    contrasts: NotRequired[list[CorpusContrasts]]

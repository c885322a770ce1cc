"""What a page consists of."""

from typing import NotRequired

from pydantic import ConfigDict
from typing_extensions import TypedDict


class ExperimentPlan(TypedDict):
    """What a page says about one experiment, or about a benchmark, which has tasks as directions.

    Attributes:
        systems: name and label of each.
        tables, figures: paths of Markdown and of SVG files.
        pages: heading and path of each HTML page that becomes a section (it must load nothing).
        columns: of a benchmark the task of each column of its tables.
        metrics: of a benchmark the heads of its parts' scores.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: str
    title: str
    corpus: str
    directions: list[str]
    systems: list[tuple[str, str]]
    seeds: list[int]
    tables: list[str]
    figures: list[str]
    pages: NotRequired[list[tuple[str, str]]]
    columns: NotRequired[dict[str, str]]
    metrics: NotRequired[dict[str, str]]


class PagePlan(TypedDict):
    """What a page consists of; `figures` belong to no experiment."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    title: str
    figures: list[str]
    experiments: list[ExperimentPlan]

"""The types of published.yaml: numbers that papers print, to stand beside ours in the tables."""

import re
from collections.abc import Collection, Iterator
from functools import cached_property
from typing import Annotated, NamedTuple

from pydantic import Field, model_validator

from synmask.pipeline.config.base import Distinct, Line, Metric, Name, Section, matching

# A number exactly as printed, with or without a standard deviation: "34.71 ± 0.12".
Printed = Annotated[
    str,
    matching(r"-?\d+(\.\d+)?( ± \d+(\.\d+)?)?", 'a printed number in quotes, such as "34.71 ± 0.12"'),
]
Paper = Annotated[Line, matching(r".*\d{4}.*", "authors, a year and where it appeared")]
Row = tuple[Printed | None, ...]


class Number(NamedTuple):
    """One printed number: who prints it, and whether its authors measured it or quote others."""

    text: str
    paper: str
    measured: bool

    @property
    def mean(self) -> float:
        return float(self.text.split(" ± ")[0])


class Peer(Section):
    """A system that papers report: its label in tables, and the paper that proposes it."""

    label: Line
    paper: str


class Result(Section):
    """Numbers of one metric on one corpus: a row per system, a number per column (null: none)."""

    paper: str
    corpus: Name
    metric: Metric
    columns: Distinct[Line] = Field(min_length=1)
    measured: dict[Name, Row] = Field(default_factory=dict)
    quoted: dict[Name, Row] = Field(default_factory=dict)
    note: str | None = None

    def rows(self) -> Iterator[tuple[str, bool, Row]]:
        """System, whether it was measured, and its numbers."""
        yield from ((system, True, row) for system, row in self.measured.items())
        yield from ((system, False, row) for system, row in self.quoted.items())

    @model_validator(mode="after")
    def _one_number_per_column(self) -> "Result":
        for system, _, row in self.rows():
            if len(row) != len(self.columns):
                raise ValueError(f"{system}: {len(row)} numbers for {len(self.columns)} columns")
        return self


class Published(Section):
    papers: dict[str, Paper]
    systems: dict[Name, Peer]
    results: tuple[Result, ...]

    @model_validator(mode="after")
    def _consistent(self) -> "Published":
        cited = [peer.paper for peer in self.systems.values()] + [result.paper for result in self.results]
        for paper in cited:
            if paper not in self.papers:
                raise ValueError(f"no paper {paper!r} among the papers")
        seen = set()
        for result in self.results:
            for system, *_ in result.rows():
                if system not in self.systems:
                    raise ValueError(f"no system {system!r} among the systems")
                for column in result.columns:
                    key = (result.corpus, column, result.metric, system)
                    if key in seen:
                        place = f"{result.metric} on {result.corpus} {column}"
                        raise ValueError(f"{system}: {place} is given twice")
                    seen.add(key)
        return self

    @cached_property
    def numbers(self) -> dict[tuple[str, str, str, str], Number]:
        """(corpus, column, metric, system) → the number."""
        return {
            (result.corpus, column, result.metric, system): Number(text, result.paper, measured)
            for result in self.results
            for system, measured, row in result.rows()
            for column, text in zip(result.columns, row, strict=True)
            if text is not None
        }

    def columns(self, corpus: str) -> list[str]:
        """The columns of all results on a corpus, in their order."""
        columns = (column for result in self.results if result.corpus == corpus for column in result.columns)
        return list(dict.fromkeys(columns))

    def notes(self, shown: Collection[tuple[str, str, str]]) -> list[str]:
        """Notes on the numbers that are `shown`, each given as (corpus, metric, system)."""
        notes = (
            result.note
            for result in self.results
            if any((result.corpus, result.metric, system) in shown for system, _, _ in result.rows())
        )
        return [note for note in dict.fromkeys(notes) if note]

    def cite(self, paper: str) -> str:
        """A short citation: authors and year."""
        return re.match(r".*?\d{4}", self.papers[paper])[0]

"""A table of numbers, and how it is printed: Markdown, LaTeX (booktabs), and JSON for the page."""

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd
from pydantic import TypeAdapter, ValidationError

from synmask.pipeline.display import pipes, plain
from synmask.pipeline.files import UserError, read_json, write_lines, writing

WIDEST = 8  # columns of numbers
LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "`": r"\textasciigrave{}",
    "\0": "{}",
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "<": r"$<$",
    ">": r"$>$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "−": r"$-$",
    "→": r"$\rightarrow$",
    "≥": r"$\geq$",
    "λ": r"$\lambda$",
    "†": r"$^{\dagger}$",
    "‡": r"$^{\ddagger}$",
    "–": "--",
    "“": "``",
    "”": "''",
}
SIGNIFICANT, VERY_SIGNIFICANT = 0.05, 0.01
EQUAL = " (equal here)"


@dataclass
class Value:
    """A number of a table before it is printed: a mean over seeds, or a paper's number as printed.

    Attributes:
        mean: None if there is no number; it and `sd` are printed with `digits` decimals.
        difference: from the published number.
        p: decides the significance mark.
        change: from the baseline.
        seeds, asked: how many runs exist, and how many the table asks for.
        run: corpus, direction (or task) and system of the runs.
        printed: a paper's number as printed, instead of all this.
    """

    mean: float | None = None
    digits: int = 2
    sd: float | None = None
    p: float | None = None
    change: float | None = None
    difference: float | None = None
    seeds: int = 0
    asked: int = 0
    best: bool = False
    run: tuple[str, str, str] | None = None
    printed: str | None = None

    @property
    def text(self) -> str:
        """Mean, sd, mark, difference, seeds if some are missing: 35.80 ± 0.12‡ (−0.09) [4 of 5]."""
        if self.mean is None:
            return self.printed or "–"
        text = f"{self.mean:z.{self.digits}f}"  # z: no -0.00
        if self.sd is not None:
            text += f" ± {self.sd:.{self.digits}f}"
        if self.p is not None and self.p < SIGNIFICANT:
            text += "‡" if self.p < VERY_SIGNIFICANT else "†"
        if self.difference is not None and not math.isnan(self.difference):
            text += f" ({signed(self.difference, self.digits)})"
        if self.seeds < self.asked:
            text += f" [{self.seeds} of {self.asked}]"
        return text


def signed(value: float, digits: int = 2) -> str:
    """+0.10, −0.10, but never −0.00."""
    return f"{round(float(value), digits) + 0.0:+.{digits}f}".replace("-", "−")


def probability(p: float) -> str:
    """p 0.012, or p < 0.001."""
    return f"p {p:.3f}" if p >= 0.001 else "p < 0.001"


def highest(values: Iterable[float | None], digits: int) -> list[bool]:
    """Which values are the highest, compared as printed; a single value is not the highest."""
    printed = [None if value is None else round(float(value), digits) for value in values]
    rivals = [value for value in printed if value is not None]
    return [len(rivals) > 1 and value == max(rivals) for value in printed]


@dataclass
class Layout:
    """A table to print: `stubs` are the heads of the word columns at the left, `heads` of the number columns.

    A head has several levels, such as ("IWSLT14", "De→En", "sacreBLEU"); an empty level is not printed.
    More than `WIDEST` columns are printed as blocks below each other, one per head of the first level.
    """

    title: str
    stubs: list[str]
    heads: list[tuple[str, ...]]
    rows: list[tuple[list[str], list[Value]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    baseline: str = ""  # the row that changes are measured against

    def blocks(self) -> list[tuple[str, "Layout"]]:
        """Each block as a table of its own, with its heading ("" for a single block)."""
        names = dict.fromkeys(head[0] for head in self.heads)
        if len(self.heads) <= WIDEST or len(names) == 1:
            return [("", self)]
        blocks = []
        for name in names:
            places = [place for place, head in enumerate(self.heads) if head[0] == name]
            heads = [("", *self.heads[place][1:]) for place in places]
            rows = [(words, [cells[place] for place in places]) for words, cells in self.rows]
            blocks.append((name, replace(self, heads=heads, rows=rows)))
        return blocks

    def changes(self) -> bool:
        """Whether any value is compared with the baseline."""
        return any(value.change is not None for _, values in self.rows for value in values)

    def readable(self) -> "Layout":
        """The table without rows and columns of dashes and with one column where neighbours
        have equal numbers."""
        rows = [(words, values) for words, values in self.rows if any(map(_shows, values))]
        kept: list[tuple[tuple[str, ...], list[Value]]] = []
        for head, *column in zip(self.heads, *(values for _, values in rows), strict=True):
            before, values = kept[-1] if kept else ((), [])
            if before[:-1] == head[:-1] and [one.text for one in values] == [one.text for one in column]:
                names = before[-1].removesuffix(EQUAL)
                kept[-1] = ((*head[:-1], f"{names}, {head[-1]}{EQUAL}"), values)
            elif any(map(_shows, column)):
                kept.append((head, column))
        lines = [(words, [column[row] for _, column in kept]) for row, (words, _) in enumerate(rows)]
        return replace(self, heads=[head for head, _ in kept], rows=lines)


TABLES = TypeAdapter(list[Layout])


def _shows(value: Value) -> bool:
    return value.text != "–"


def write_tables(out: Path, tables: Sequence[Layout]) -> None:
    """Write OUT.md, OUT.tex and, for the page, OUT.json.

    LaTeX needs the packages booktabs and graphicx; wide tables are scaled down to the width of the line.
    """
    markdown = itertools.chain.from_iterable(["", *_markdown(table)] for table in tables)
    write_lines(f"{out}.md", itertools.islice(markdown, 1, None))
    write_lines(f"{out}.tex", itertools.chain.from_iterable(map(_latex, tables)))
    with writing(f"{out}.json", "wb") as handle:
        handle.write(TABLES.dump_json([*tables]))


def write_csv(out: str | Path, data: pd.DataFrame) -> None:
    """Write OUT.csv."""
    with writing(f"{out}.csv") as handle:
        data.to_csv(handle, index=False, lineterminator="\n")


def read_tables(path: Path) -> list[Layout]:
    """Read the tables in a JSON file of `write_tables`.

    Raises:
        UserError: the file is of another kind.
    """
    try:
        return TABLES.validate_python(read_json(path))
    except ValidationError:
        raise UserError(f"{path}: not the numbers of a table; delete it and make it again") from None


def escape(text: str) -> str:
    """Escape text for LaTeX, where two hyphens would be a dash, and [ or * at a row's start arguments of
    the \\\\ before it."""
    apart = re.sub(r"^(?=[\[*])|(?<=-)(?=-)|(?<=')(?=')", "\0", text)
    return "".join(LATEX.get(character, character) for character in apart)


def literal(label: str) -> str:
    """A label for use in a note, with its backquotes escaped."""
    return label.replace("`", "``")


def note_parts(note: str) -> list[str]:
    """Text, code, text, …: in a note, code is between single backquotes; a double one is a literal `."""
    parts = re.split(r"(?<!`)`(?!`)([^`]+)(?<!`)`(?!`)", note)
    return [part.replace("``", "`") for part in parts]


def _note(text: str) -> str:
    """Escape a note for Markdown."""
    parts = enumerate(note_parts(text))
    return "".join(f"`{part}`" if place % 2 else plain(part).replace(r"\|", "|") for place, part in parts)


def _latex_note(text: str) -> str:
    """Escape a note for LaTeX."""
    parts = enumerate(map(escape, note_parts(text)))
    return "".join(rf"\texttt{{{part}}}" if place % 2 else part for place, part in parts)


def _markdown(table: Layout) -> list[str]:
    lines = [f"# {plain(table.title)}"]
    for name, block in table.blocks():
        lines += [*(["", f"**{plain(name)}**"] if name else []), "", *_pipes(block)]
    return [*lines, *(part for note in table.notes for part in ("", _note(note)))]


def _pipes(table: Layout) -> list[str]:
    heads = [plain(" ".join(filter(None, head))) for head in table.heads]
    rows = (
        [*map(plain, words), *(f"**{cell.text}**" if cell.best else cell.text for cell in cells)]
        for words, cells in table.rows
    )
    return pipes([*map(plain, table.stubs), *heads], "l" * len(table.stubs) + "r" * len(heads), rows)


def _latex(table: Layout) -> list[str]:
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{escape(table.title)}}}", r"\footnotesize"]
    for name, block in table.blocks():
        lines += [rf"\textbf{{{escape(name)}}}\par\smallskip"] if name else []
        lines += [r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"]
        lines += [*_tabular(block), r"}\par\smallskip"]
    if table.notes:
        lines += [r"\begin{minipage}{\linewidth}", r"\raggedright"]
        lines += [rf"{_latex_note(note)}\par" for note in table.notes]
        lines.append(r"\end{minipage}")
    return [*lines, r"\end{table}"]


def _tabular(table: Layout) -> list[str]:
    """By pandas: each level of heads above its columns; levels without any text are left out."""
    levels = [level for level in range(len(table.heads[0])) if any(head[level] for head in table.heads)]
    stubs = [(*[""] * (len(levels) - 1), escape(stub)) for stub in table.stubs]
    heads = [*stubs, *(tuple(escape(head[level]) for level in levels) for head in table.heads)]
    rows = [
        [
            *map(escape, words),
            *(rf"\textbf{{{escape(one.text)}}}" if one.best else escape(one.text) for one in values),
        ]
        for words, values in table.rows
    ]
    frame = pd.DataFrame(rows, columns=pd.MultiIndex.from_tuples(heads))
    align = "l" * len(stubs) + "r" * len(table.heads)
    printed = frame.style.hide().to_latex(hrules=True, multicol_align="c", column_format=align)
    return printed.splitlines()

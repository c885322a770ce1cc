"""How a table is printed: CSV, Markdown, LaTeX (booktabs), JSON for the page and HTML on it."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup
from markupsafe import escape as html_escape

from synmask.pipeline.display import escape_markdown, isolate, markdown_table
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_json, write_all
from synmask.pipeline.reporting.cells import as_text, frame_of, probability, signed
from synmask.pipeline.reporting.metrics import METRICS

UNICODE_LATEX = r"""% Letters beyond Latin need LuaLaTeX or XeLaTeX, \usepackage{fontspec} and their font;
% text from right to left also needs \usepackage[bidi=basic]{babel} (LuaLaTeX)."""
WIDEST = 8  # columns of numbers
LATEX = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "`": r"\textasciigrave{}", "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "|": r"\textbar{}",
    "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "±": r"$\pm$", "×": r"$\times$", "−": "$-$",
    "→": r"$\rightarrow$", "≥": r"$\geq$", "λ": r"$\lambda$", "†": r"$^{\dagger}$", "‡": r"$^{\ddagger}$",
    "–": "--", "“": "``", "”": "''", "\0": "{}", "\u2068": "", "\u2069": "",
}  # fmt: skip


@dataclass
class PrintedTable:
    """A table to print: its cells (`cells.frame_of`), and paragraphs below it."""

    title: str
    cells: pd.DataFrame
    warnings: Sequence[str] = ()  # of what makes numbers doubtful
    notes: Sequence[str] = ()
    baseline: str = ""  # the label of the row that changes are measured against

    def blocks(self, form: Callable[[Mapping[str, Any]], str]) -> list[tuple[str, pd.DataFrame]]:
        """The tables of text (`cells.as_text`): one, or if it is too wide one per group of columns."""
        table = as_text(self.cells, form)
        groups = table.columns.unique("group") if "group" in table.columns.names else []
        wide = table.shape[1] > WIDEST and len(groups) > 1
        return [(group, table[group]) for group in groups] if wide else [("", table)]


def write_tables(out: Path, tables: Sequence[PrintedTable], data: Mapping[str, pd.DataFrame]) -> None:
    """Write OUT.md, OUT.tex, OUT.json for the page, and OUT.SUFFIX for each frame of `data`: all or none."""
    texts = {
        ".md": "\n\n".join(map(_markdown, tables)) + "\n",
        ".tex": "\n".join(map(_latex, tables)) + "\n",
        ".json": json.dumps([_saved(table) for table in tables], ensure_ascii=False),
    } | {suffix: frame.to_csv(index=False, lineterminator="\n") for suffix, frame in data.items()}
    write_all({Path(f"{out}{suffix}"): text for suffix, text in texts.items()})


def _saved(table: PrintedTable) -> dict[str, Any]:
    cells = table.cells.astype(object).where(table.cells.notna(), None)
    return vars(table) | {"cells": cells.to_dict("records")}


def read_tables(path: Path) -> list[PrintedTable]:
    """Read the tables in a JSON file of `write_tables`.

    Raises:
        UserError: the file is of another kind.
    """
    try:
        return [PrintedTable(**table | {"cells": frame_of(table["cells"])}) for table in read_json(path)]
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{path}: not the numbers of a table; delete it and make it again") from None


def escape(text: str) -> str:
    """Escape text for LaTeX, where two hyphens would be a dash, and [ or * at a row's start arguments of
    the \\\\ before it."""
    apart = re.sub(r"^(?=[\[*])|(?<=-)(?=-)|(?<=')(?=')", "\0", text)
    return "".join(LATEX.get(character, character) for character in apart)


def _with_labels(block: pd.DataFrame, escape: Callable[[str], str]) -> tuple[pd.DataFrame, str]:
    """A block with its labels as columns, and how these are aligned; a dash where there is no number."""
    names = ["System", ""][: block.index.nlevels]
    escaped = block.rename(index=escape, columns=escape).fillna(escape("–")).rename_axis(index=names)
    return escaped.reset_index(col_level=-1), "l" * len(names) + "r" * block.shape[1]


def _markdown(table: PrintedTable) -> str:
    parts = [f"# {escape_markdown(table.title)}"]
    for name, block in table.blocks(lambda cell: f"**{cell['text']}**" if cell["best"] else cell["text"]):
        frame, align = _with_labels(block, lambda text: escape_markdown(isolate(text)))
        heads = [" ".join(filter(None, head)) for head in frame.columns.to_flat_index()]
        text = markdown_table(heads, align, frame.to_numpy().tolist())
        parts += [f"**{escape_markdown(name)}**", text] if name else [text]
    parts += (escape_markdown(note).replace(r"\|", "|") for note in (*table.warnings, *table.notes))
    return "\n\n".join(parts)


def _latex(table: PrintedTable) -> str:
    def form(cell: Mapping[str, Any]) -> str:
        return rf"\textbf{{{escape(cell['text'])}}}" if cell["best"] else escape(cell["text"])

    lines = [r"\begin{table}", r"\centering", rf"\caption{{{escape(table.title)}}}", r"\footnotesize"]
    for name, block in table.blocks(form):
        frame, align = _with_labels(block, escape)
        text = frame.style.hide().to_latex(hrules=True, multicol_align="c", column_format=align)
        lines += [rf"\textbf{{{escape(name)}}}\par\smallskip"] if name else []
        lines += [r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"]
        lines += [text.rstrip("\n"), r"}\par\smallskip"]
    lines += [r"\begin{minipage}{\linewidth}", r"\raggedright"]
    lines += (rf"{escape(note)}\par" for note in (*table.warnings, *table.notes))
    text = "\n".join([*lines, r"\end{minipage}", r"\end{table}"])
    beyond_latin = any(letter.isalpha() and letter >= "\u0370" for letter in text)  # Greek is the first
    return f"{UNICODE_LATEX}\n{text}" if beyond_latin else text


def html_blocks(
    table: PrintedTable, link: Callable[[Mapping[str, Any]], str | None]
) -> Iterator[tuple[str, Markup]]:
    """Each block's name and HTML; the numbers of our runs link to what `link` says."""

    def form(cell: Mapping[str, Any]) -> str:
        text = Markup("<strong>{}</strong>" if cell["best"] else "{}").format(cell["text"])
        if cell["line"] != "here":
            return text
        if href := link(cell):
            text = Markup('<a href="{}">{}</a>').format(href, text)
        if pd.notna(cell["change"]):
            change = f"Δ {signed(cell['change'], METRICS[cell['metric']].digits)}, {probability(cell['p'])}"
            text += Markup(" <small>{}</small>").format(change)
        return text

    for name, block in table.blocks(form):
        style = block.rename(index=html_escape, columns=html_escape).fillna("–").style
        style = style.hide(names=True).hide(names=True, axis="columns")
        yield name, Markup(style.to_html(exclude_styles=True, bold_headers=False))

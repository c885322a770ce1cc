"""Bilingual files: tab-separated values (TSV) and translation memories (TMX)."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from synmask.pipeline.disk import open_unpacked
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import Pair, read_lines
from synmask.pipeline.languages import match_language

LANG = "{http://www.w3.org/XML/1998/namespace}lang"
CODES = {"bpt", "ept", "it", "ph", "ut"}  # elements of a segment that hold a program's codes, not text


def read_tsv(path: Path, languages: Sequence[str]) -> Iterator[Pair]:
    """The pairs of a file of tab-separated values: its two columns, or those that its first line names.

    Raises:
        UserError: the file cannot be read, or a line does not have these columns.
    """
    columns, width = [0, 1], 2
    for number, line in enumerate(read_lines(path), start=1):
        cells = line.split("\t")
        if number == 1 and {*languages} <= {*cells}:
            columns, width = [*map(cells.index, languages)], len(cells)
        elif len(cells) != width:
            advice = f"name the columns in a first line, two of them {' and '.join(languages)}"
            raise UserError(f"{path}, line {number}: {len(cells)} columns, not {width}; {advice}")
        else:
            yield tuple(cells[column] for column in columns)


def read_tmx(path: Path, languages: Sequence[str]) -> Iterator[Pair]:
    """The pairs of a translation memory (TMX 1.4, .gz or plain): of each unit that has both languages.

    Raises:
        UserError: the file cannot be read or is not XML, or no unit has both.
    """
    others: set[str] = set()
    count = 0
    try:
        with open_unpacked(path) as file:
            for _, unit in ElementTree.iterparse(file):
                if unit.tag != "tu":
                    continue
                sides: dict[str, str] = {}
                for variant in unit.iterfind("tuv"):
                    code = variant.get(LANG) or variant.get("lang") or "und"
                    others.add(code)
                    if (segment := variant.find("seg")) is not None:
                        sides.setdefault(match_language(code, languages), "".join(_segment_text(segment)))
                unit.clear()
                if {*languages} <= {*sides}:
                    count += 1
                    yield tuple(sides[language] for language in languages)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (ElementTree.ParseError, ValueError) as error:  # the latter: a code of no language
        raise UserError(f"{path}: not TMX ({error})") from None
    if not count:
        known = ", ".join(sorted(others)) or "none"
        raise UserError(f"{path}: no unit has {' and '.join(languages)}; its languages: {known}")


def _segment_text(element: ElementTree.Element) -> Iterator[str]:
    """The text of a segment, without a program's codes."""
    if element.tag not in CODES:
        yield element.text or ""
        for inner in element:
            yield from _segment_text(inner)
            yield inner.tail or ""

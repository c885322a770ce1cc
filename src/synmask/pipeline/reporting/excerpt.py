"""Copy a table into a page of the documentation, and its numbers into a file beside it."""

from pathlib import Path

from synmask.pipeline.files import UserError, read_lines, write_lines

BEGIN, END = "<!-- table -->", "<!-- end of table -->"


def write_excerpt(table: Path, page: Path, data: Path) -> None:
    """Put TABLE.md, without its title, between the page's marks, and TABLE.csv into `data`.

    Raises:
        UserError: a file is missing, or the page does not have each mark once, on a line of its own.
    """
    lines = list(read_lines(page))
    if lines.count(BEGIN) != 1 or lines.count(END) != 1 or lines.index(BEGIN) > lines.index(END):
        raise UserError(f"{page}: give it one line {BEGIN} and below it one line {END}")
    text = list(read_lines(f"{table}.md"))[2:]
    write_lines(data, read_lines(f"{table}.csv"))
    write_lines(page, [*lines[: lines.index(BEGIN) + 1], *text, *lines[lines.index(END) :]])

"""Copies the demo's table from results/ to the page docs/demo.md: `make demo-docs`."""

import re
import shutil
from pathlib import Path

DOCS, TABLES = Path("docs"), Path("results/tables")
COPIED = TABLES / "demo.csv"
BLOCK = re.compile(r"<!-- (\S+\.md) -->\n.*?<!-- end -->", re.DOTALL)


def block(found: re.Match) -> str:
    """A table of the page as it is in results/, without its heading; as it was if it is not there."""
    table = TABLES / found[1]
    if not table.exists():
        print(f"{table} is not there: run `snakemake {table.stem}`")
        return found[0]
    text = re.sub(r"\A# .*\n+", "", table.read_text(encoding="utf-8"))
    return f"<!-- {found[1]} -->\n{text.rstrip()}\n<!-- end -->"


if __name__ == "__main__":
    page = DOCS / "demo.md"
    page.write_text(BLOCK.sub(block, page.read_text(encoding="utf-8")), encoding="utf-8")
    if COPIED.exists():
        shutil.copy(COPIED, DOCS)

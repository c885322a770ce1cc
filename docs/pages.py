"""Report pages on the site: linked as whole pages, without links to the files that lie beside them elsewhere.

    python docs/pages.py REPORT OUTPUT

writes a report to be published by itself.
"""

import re
import sys
from pathlib import Path

VERDICT, DEMO = "studies/multi30k/report.html", "results/report.html"
DISTRIBUTION = "docs/distribution.html"
LINKED = re.compile(r"\[([^\]]+)\]\((?!\w+:)(\S*\.html)\)")  # Sphinx would make a download of it
IF_THERE = re.compile(r"<!-- if (\S+) is there: (.*?) -->")
FILES = re.compile(r'<(p|span) class="files">.*?</\1>')


def with_links(text: str, root: Path) -> str:
    """A page's Markdown with links that open whole pages, and with what it says of files that exist."""
    text = IF_THERE.sub(lambda found: found[2] if (root / found[1]).exists() else "", text)
    return LINKED.sub(r'<a href="\2">\1</a>', text)


def alone(html: str) -> str:
    """A report without links to tables, figures and files of runs."""
    return FILES.sub("", html)


def publish(root: Path, site: Path) -> None:
    """Put the reports that exist, and the page on P_D, where the site's pages look for them."""
    for name in (VERDICT, DEMO, DISTRIBUTION):
        if (root / name).exists():
            (site / name).parent.mkdir(parents=True, exist_ok=True)
            (site / name).write_text(alone((root / name).read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    report, output = map(Path, sys.argv[1:])
    output.write_text(alone(report.read_text(encoding="utf-8")), encoding="utf-8")

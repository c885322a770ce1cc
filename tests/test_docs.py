"""The pages of the documentation: links lead somewhere, and the English is plain."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "results/README.md"]
CHANGES = ROOT / "CHANGELOG.md"
GENERATED = re.compile(r"<!-- (table|verdict) -->.*?<!-- end of \1 -->|```.*?```|<!--.*?-->", re.S)
AVOID = re.compile(
    r"holds? against"
    r"|\b(?:a|one) \w+ an? (?:rule|run|seed|line|row|sentence|system|step|direction)\b"  # one verb per rule
    r"|(?:^|[.:;] |\*\*|- )What [^?|\n]*$"  # the subject comes first: "Faults that were tried"
    r"|\btrainings\b|\banew\b|\bgoes on\b",
    re.M,
)


def prose(page: Path) -> str:
    return GENERATED.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """GitHub's anchors of the headings."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_a_file_and_a_heading(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        path, _, anchor = link.partition("#")
        if "://" not in link:
            target = page.parent / path if path else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", [page for page in PAGES if page != CHANGES], ids=lambda page: page.name)
def test_the_english_is_plain(page):
    assert [found[0] for found in AVOID.finditer(prose(page))] == []

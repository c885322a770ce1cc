"""Report pages on the site, and that of the verdict's runs, whose every score is that of the archive."""

import importlib.util
import json
import re
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(
    r"<tr><td>[^<]*</td><td><a href=\"#run-([\w-]+)-(\w\w-\w\w)-([\w.-]+)-(\d+)\">[^<]*</a></td><td>\4</td>\n(.*)"
)
METRICS = (("test", "sacrebleu"), ("test", "bleu_tokenised"), ("test", "chrf"), ("valid", "sacrebleu"))
spec = importlib.util.spec_from_file_location("pages", ROOT / "docs/pages.py")
pages = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pages)
REPORT = (
    '<p>A</p>\n<p class="files"><a href="x/scores.json">scores</a> <a href="y">y</a></p>\n<a href="#b">B</a>'
)


@pytest.fixture(scope="module")
def report():
    return (ROOT / pages.VERDICT).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def runs():
    """(direction, system, seed) → scores.json, and the test set's translations by all."""
    scores, hypotheses = {}, set()
    with tarfile.open(ROOT / "studies/multi30k/runs.tar.xz") as archive:
        for entry in archive:
            _, direction, system, seed, name = entry.name.split("/")
            if name == "scores.json":
                scores[direction, system, int(seed[4:])] = json.load(archive.extractfile(entry))
            elif name == "hypothesis.test.txt":
                hypotheses |= {*archive.extractfile(entry).read().decode().splitlines()}
    return scores, hypotheses


def test_a_report_by_itself_has_no_links_to_files():
    assert pages.alone(REPORT) == '<p>A</p>\n\n<a href="#b">B</a>'


def test_the_demos_report_is_linked_and_published_if_there_is_one(tmp_path):
    text = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    verdict, demo = (f'<a href="{path}">' for path in ("verdict/report.html", "../results/report.html"))
    assert text.count("report.html") == 2
    without = pages.with_links(text, tmp_path)
    assert verdict in without
    assert "results/report.html" not in without
    pages.publish(tmp_path, tmp_path / "site")
    assert not (tmp_path / "site").exists()
    (tmp_path / "results").mkdir()
    (tmp_path / pages.DEMO).write_text(REPORT)
    assert demo in pages.with_links(text, tmp_path)
    pages.publish(tmp_path, tmp_path / "site")
    assert (tmp_path / "site" / pages.DEMO).read_text() == pages.alone(REPORT)


def test_the_verdicts_report_has_the_scores_of_the_archive(report, runs):
    scores, _ = runs
    seen = set()
    for _, direction, system, seed, cells in ROW.findall(report):
        run = direction, system, int(seed)
        shown = re.findall(r">(\d+\.\d\d)<", cells)
        assert shown == [f"{scores[run]['scores'][part][metric]:.2f}" for part, metric in METRICS], run
        seen.add(run)
    assert seen == {*scores}


def test_the_verdicts_report_is_alone_and_has_no_text_of_the_corpus(report, runs):
    assert not re.findall(r'href="(?!#)[^"]*"', report)
    assert "<article" not in report  # a translation beside its source and reference
    _, hypotheses = runs
    long = [line for line in hypotheses if len(line.split()) > 4]
    assert len(long) > 1000
    assert not [line for line in long if line in report]


def test_the_verdicts_report_works_in_a_browser(open_page):
    script = (
        "return [document.scrollingElement.scrollWidth, document.querySelectorAll('.finding').length].join()"
    )
    page = open_page(ROOT / pages.VERDICT, script, width=400)
    assert not page.console
    assert page.said == "400,9"  # sections with a finding

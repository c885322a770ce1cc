"""Report pages on the site, and that of the verdict's runs, whose every score is that of the archive."""

import csv
import importlib.util
import json
import re
import tarfile
from pathlib import Path

import pytest

from synmask.pipeline.config.loading import load, project_files, read_all
from synmask.pipeline.reporting.cells import signed
from synmask.pipeline.reporting.contrasts import Contrast
from synmask.pipeline.reporting.report import write_report
from synmask.pipeline.workflow.targets import Targets

pytestmark = pytest.mark.xdist_group("pages")  # `built` takes long, and once is enough
ROOT = Path(__file__).parents[2]
ROW = re.compile(
    r"<tr><td>[^<]*</td><td><a href=\"#run-([\w-]+)-(\w\w-\w\w)-([\w.-]+)-(\d+)\">[^<]*</a></td><td>\4</td>\n(.*)"
)
TESTED = ("grammar",)  # systems whose contrasts are tested here
METRICS = (("test", "sacrebleu"), ("test", "bleu_tokenised"), ("test", "chrf"), ("valid", "sacrebleu"))
spec = importlib.util.spec_from_file_location("pages", ROOT / "docs/pages.py")
pages = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pages)
REPORT = (
    '<p>A</p>\n<p class="files"><a href="x/scores.json">scores</a> <a href="y">y</a></p>\n<a href="#b">B</a>'
)
LINKED = {pages.VERDICT: "../studies/multi30k/report.html", pages.DEMO: "../results/report.html"}


@pytest.fixture(scope="session")  # browsers take turns, with tests of other files between them
def built(tmp_path_factory):
    """The page that `make verdict` builds, but for its tables, from the archive."""
    folder = tmp_path_factory.mktemp("verdict")
    with tarfile.open(ROOT / "studies/multi30k/runs.tar.xz") as archive:
        archive.extractall(folder / "results", filter="data")
    config = load(read_all([*project_files(ROOT), ROOT / "studies/multi30k/config.yaml"]))
    spec = json.loads(Targets(config).page_spec("report-verdict"))
    (group,) = spec["contrasts"]
    group["contrasts"] = [Contrast(**one) for one in group["contrasts"] if one["system"] in TESTED]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_report(spec=spec, output=folder / "whole.html", captions=ROOT / "workflow/report")
    page = folder / "report.html"
    page.write_text(pages.alone((folder / "whole.html").read_text(encoding="utf-8")), encoding="utf-8")
    return page


@pytest.fixture(scope="session")
def report(built):
    return built.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
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


def test_whole_pages_are_linked_and_published_if_they_are_there(tmp_path):
    text = (ROOT / "docs/tasks.md").read_text(encoding="utf-8")
    built = {name: f'<a href="{path}">' for name, path in LINKED.items()}
    without = pages.with_links(text, tmp_path)
    assert not [link for link in built.values() if link in without]
    assert '<a href="distribution.html">' in without
    pages.publish(tmp_path, tmp_path / "site")
    assert not (tmp_path / "site").exists()
    for name in (*built, pages.DISTRIBUTION):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(REPORT)
    assert all(link in pages.with_links(text, tmp_path) for link in built.values())
    pages.publish(tmp_path, tmp_path / "site")
    for name in (*built, pages.DISTRIBUTION):
        assert (tmp_path / "site" / name).read_text() == pages.alone(REPORT)


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


def test_the_verdicts_report_works_in_a_browser_and_has_the_verdicts_numbers(built, open_page):
    script = (
        "return [document.scrollingElement.scrollWidth, document.querySelectorAll('.effect').length].join()"
    )
    page = open_page(built, script, width=400)
    assert not page.console
    assert page.result == "400,4"  # BLEU and F1 in two directions
    with (ROOT / "studies/multi30k/verdict.csv").open(encoding="utf-8") as file:
        rows = [
            row for row in csv.DictReader(file) if (row["system"], row["rival"]) == ("grammar", "transformer")
        ]
    assert len(rows) == 2
    for row in rows:
        numbers = (signed(float(row[key])) for key in ("difference", "low", "high"))
        assert "{} [{}, {}]".format(*numbers) in page.html

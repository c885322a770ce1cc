"""The results at the head of a page: the numbers are the verdict's, and a browser draws them to scale."""

import json
from functools import partial
from html import unescape

import pytest

from browser import SMALLEST
from synmask.pipeline.evaluation.bleu import COUNTS
from synmask.pipeline.reporting.contrasts import Contrast, compare_all, read_results
from synmask.pipeline.reporting.effects import panels
from synmask.pipeline.reporting.report import write_report
from synmask.pipeline.reporting.training_runs import read_runs

CONTRASTS = [
    Contrast(system="a", rival="b", metric="sacrebleu", gain={"de-en": 1.0}),
    Contrast(system="c", rival="b", metric="sacrebleu"),
    Contrast(system="d", rival="b", metric="sacrebleu"),
]
SYSTEMS = [["b", "Base"], ["a", "Better <i>"], ["c", "Alike"], ["d", "Absent"]]
EXPERIMENT = {
    "name": "toy", "title": "Toy", "systems": SYSTEMS,
    "columns": [{"corpus": "toy", "column": "de-en", "group": "", "runs": {name: [1, 2, 3] for name, _ in SYSTEMS}}],
    "tables": [], "figures": [],
}  # fmt: skip
ASKED = {"corpus": "toy", "experiments": ["toy"], "contrasts": CONTRASTS}
SPEC = {"title": "Report: Toy", "figures": [], "experiments": [EXPERIMENT], "contrasts": [ASKED]}
BLEU = {"b": [30.0, 30.1, 30.2], "a": [33.0, 33.1, 33.2], "c": [29.9, 30.2, 30.1]}
RIGHT = {"b": 5, "a": 8, "c": 5}  # words of 10 in each sentence


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Three systems of three seeds; the run of `d` has no counts by sentence."""
    monkeypatch.chdir(tmp_path)
    for system, scores in (BLEU | {"d": [99.0]}).items():
        for seed, bleu in enumerate(scores, start=1):
            folder = tmp_path / f"results/toy/de-en/{system}/seed{seed}"
            folder.mkdir(parents=True)
            parts = {
                part: {"sacrebleu": bleu, "bleu_tokenised": bleu, "chrf": bleu} for part in ("test", "valid")
            }
            run = {"corpus": "toy", "direction": "de-en", "system": system, "seed": seed, "scores": parts}
            run |= {"signatures": dict.fromkeys(parts["test"], "x")}
            (folder / "scores.json").write_text(json.dumps(run))
            if system != "d":
                counts = [[RIGHT[system] + (k + seed) % 2 for _ in range(4)] for k in range(40)]
                rows = [[*right, 10, 9, 8, 7, 10, 10] for right in counts]
                lines = [",".join(COUNTS), *(",".join(map(str, row)) for row in rows)]
                (folder / "sentences.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_they_are_the_contrasts_of_the_runs_that_exist(project):
    (panel,) = panels(SPEC, read_runs(EXPERIMENT))
    runs = [path.parent for path in project.rglob("sentences.csv")]
    (first,), (second,), nothing = compare_all(CONTRASTS, partial(read_results, runs))
    assert nothing == []
    assert [one.contrast for one in panel.effects] == [first, second]
    better, alike = panel.effects
    assert panel.title == "De→En, sacreBLEU: difference from Base (30.10)"
    assert panel.count == 2
    assert (better.outcome, alike.outcome) == ("higher", "cannot tell")
    assert better.sentence.startswith(
        "Better <i> against Base: +3.00 [+2.77, +3.23]; corrected p < 0.001; of a gain as"
    )
    assert better.seeds == "33.00 (seed 1), 33.10 (seed 2), 33.20 (seed 3)"
    assert better.add == """snakemake toy --config 'experiments={"toy": {"seeds": [1, 2, 3, 4]}}'"""


def test_without_runs_there_are_none(project):
    assert [*panels(SPEC, [])] == []
    assert [*panels({**SPEC, "contrasts": []}, read_runs(EXPERIMENT))] == []


def test_a_browser_draws_them_to_scale_and_a_row_unfolds(project, open_page):
    write_report(spec=SPEC, output=project / "report.html", captions=project)
    script = """
      const at = (one, name) => parseFloat(one.getAttribute(name));
      const [better] = document.querySelectorAll(".effect"), of = (kind) => better.querySelector(kind);
      const [zero, gain, point] = [at(of(".zero"), "x1"), at(of(".gain").parentElement, "x"), at(of(".point"), "cx")];
      const before = of(".facts").checkVisibility();
      of("summary").click();
      return JSON.stringify([(point - zero) / (gain - zero), of(".point").classList.contains("higher"), before,
        of(".facts").checkVisibility(), of(".facts").textContent, document.scrollingElement.scrollWidth, smallest]);"""
    page = open_page(project / "report.html", f"const smallest = {SMALLEST}; {script}", width=400)
    scale, higher, before, after, facts, wide, smallest = json.loads(page.result)
    assert scale == pytest.approx(3.0, abs=0.01)
    assert (higher, before, after, wide) == (True, False, True, 400)
    assert smallest >= 13
    assert all(
        message in facts
        for message in ("30.00 (seed 1)", "if there is one (+1.00)", "Seeds needed", "snakemake toy")
    )
    text = unescape((project / "report.html").read_text())
    assert "Cannot tell: neither" in text
    assert "after Holm's correction for all 2 contrasts;" in text
    assert "If you have a configuration of your own, put <code>--configfile FILE</code> behind" in text
    assert text.index("Better <i> against Base") < text.index("<nav")
    assert not page.console


def test_one_contrast_is_not_corrected(project):
    spec = SPEC | {"contrasts": [ASKED | {"contrasts": CONTRASTS[:1]}]}
    write_report(spec=spec, output=project / "report.html", captions=project)
    text = (project / "report.html").read_text()
    assert "Welch's t-test over the seeds;\nwith one seed it is 1" in text
    assert "Holm" not in text

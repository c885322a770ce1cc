"""Contrasts of runs whose answer is known: what holds, what does not, what nobody can tell."""

import json
import math
from functools import partial

import pytest

from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation.bleu import COUNTS
from synmask.pipeline.reporting import contrasts
from synmask.pipeline.reporting.contrasts import Contrast, ContrastResult, compare_all, read_results, verdict

ALIKE = ([8] * 60, [8] * 60)  # right words per sentence, of 10
UNSURE = ([10, 5] * 30, [5, 10] * 30)
BLEU = Contrast(system="a", rival="b", metric="sacrebleu", gain={"de-en": 2.0})
TREES = Contrast(system="a", rival="b", metric="f1_words")
TRIVIAL = Contrast(system="a", rival="balanced", trivial=True, metric="f1_words")


def sentences(matched):
    """A sentences.csv: of each sentence's ten words, the first `matched` are those of the reference."""
    rows = [[*(max(words - n, 0) for n in range(4)), 10, 9, 8, 7, 10, 10] for words in matched]
    return "".join(",".join(map(str, row)) + "\n" for row in [COUNTS, *rows])


@pytest.fixture
def runs(tmp_path):
    """Writes runs of `a` and `b` with these scores by seed, `words` right in each sentence; → the folder of results."""

    def write(ours, theirs, *, matched=(4, 2), words=([9] * 60, [8] * 60), seeds=3):
        for system, scores, right, good in zip("ab", (ours, theirs), matched, words, strict=True):
            for seed, score in enumerate(scores[:seeds], 1):
                folder = tmp_path / f"demo/de-en/{system}/seed{seed}"
                folder.mkdir(parents=True, exist_ok=True)
                run = {"corpus": "demo", "direction": "de-en", "system": system, "seed": seed}
                found = dict.fromkeys(("bleu_tokenised", "sacrebleu", "chrf"), score)
                scored = {"scores": {"valid": found, "test": found}, "signatures": dict.fromkeys(found, "s")}
                (folder / "scores.json").write_text(json.dumps(run | scored))
                (folder / "sentences.csv").write_text(sentences(good))
                numbers = dict.fromkeys(("precision", "recall", "sentence_f1"), 1.0)
                rows = {
                    "induced": numbers | {"f1": 20.0 * right + seed / 10},
                    "balanced": numbers | {"f1": 60.0},
                }
                (folder / "parse.json").write_text(
                    json.dumps(run | {"protocols": {"words": {"sentences": 60, "rows": rows}}})
                )
                trivial = {"matched": [3] * 60, "predicted": [5] * 60}
                spans = {"gold": [5] * 60, "balanced": trivial, "right-branching": trivial}
                spans["induced"] = {"matched": [right] * 60, "predicted": [5] * 60}
                (folder / "parse_counts.json").write_text(json.dumps(run | {"counts": {"words": spans}}))
        return tmp_path

    return write


def compared(folder, *contrasts):
    folders = sorted((folder / "demo").glob("*/*/seed*"))
    found = compare_all(contrasts or (BLEU, TREES, TRIVIAL), partial(read_results, folders))
    return [one for group in found for one in group]


def test_what_is_far_and_sure_holds(runs):
    found = compared(runs([33.0, 33.1, 33.2], [30.0, 30.1, 30.2]))
    assert [one.verdict for one in found] == ["holds"] * 3
    assert [one.difference for one in found] == pytest.approx([3.0, 40.0, 20.2])
    assert [one.rival_seeds for one in found] == [3, 3, 0]
    assert [one.p_test_set for one in found] == pytest.approx([1 / 10_001] * 3)


def test_both_tests_must_agree(runs):
    assert compared(runs([33.0, 33.1, 33.2], [30.0, 30.1, 30.2], words=UNSURE))[0].verdict == "cannot tell"
    assert (
        compared(runs([36.0, 33.0, 39.0], [30.0, 30.1, 35.0]))[0].verdict == "cannot tell"
    )  # the seeds wander


def test_a_gain_that_both_tests_exclude_does_not_hold(runs):
    found = compared(runs([30.1, 30.2, 30.3], [30.0, 30.1, 30.2], words=ALIKE))[0]
    assert found.high < 2.0
    assert found.verdict == "does not hold"
    found = compared(runs([30.1, 30.2, 30.3], [30.0, 30.1, 30.2], words=UNSURE))[0]
    assert found.high < 2.0
    assert found.verdict == "cannot tell"


def test_the_more_gains_are_claimed_the_harder_to_exclude(runs):
    folder = runs([30.0, 31.2, 30.6], [30.0, 30.4, 30.2], words=ALIKE)
    one = compared(folder, BLEU, TREES)[0]
    alone = max(one.p_gain_test_set, one.p_gain_seeds)
    assert 0.025 < alone < 0.05
    assert one.verdict == "does not hold"
    twice = compared(folder, BLEU, BLEU)
    assert [one.p_gain for one in twice] == pytest.approx([2 * alone] * 2)
    assert {one.verdict for one in twice} == {"cannot tell"}


def test_more_than_the_paper_gains_is_never_too_little(runs):
    found = compared(runs([33.0, 33.1, 33.2], [30.0, 30.1, 30.2]))
    assert max(found[0].p_gain_test_set, found[0].p_gain_seeds) < 0.5
    assert [one.p_gain for one in found] == [1.0, None, None]


def test_a_loss_larger_than_claimed_is_never_too_little(monkeypatch):
    """A lower perplexity is better: its gain is negative."""
    for difference, p in ((-0.9, 1.0), (-0.1, 0.001)):
        one = ContrastResult("de-en", "a", "b", "perplexity", 3, 3, 9.0, 9.0, difference, gain=-0.5)
        one.p_gain_test_set = one.p_gain_seeds = 0.001
        monkeypatch.setattr(contrasts, "_compared", lambda *_, one=one: [one])
        assert compare_all([BLEU], {"sacrebleu": None}.get)[0][0].p_gain == p


def test_the_more_contrasts_the_more_seeds_are_needed(runs):
    folder = runs([30.0, 31.2, 30.6], [30.0, 30.4, 30.2])
    [one], many = compared(folder, BLEU), compared(folder, *[BLEU] * 8)
    assert one.needed < many[0].needed


def test_worse_does_not_hold(runs):
    _, trees, trivial = compared(runs([33.0, 33.1, 33.2], [30.0, 30.1, 30.2], matched=(2, 4)))
    assert trees.verdict == trivial.verdict == "does not hold"


def test_one_seed_cannot_tell(runs):
    found = compared(runs([33.0], [30.0], seeds=1))
    assert {(one.verdict, one.needed, one.p_seeds) for one in found} == {("cannot tell", None, 1.0)}
    assert found[0].low == -math.inf


def test_runs_without_their_counts_or_of_other_sentences_are_named(runs):
    folder = runs([33.0, 33.1, 33.2], [30.0, 30.1, 30.2])
    counted = folder / "demo/de-en/a/seed2/sentences.csv"
    whole = counted.read_text()
    counted.unlink()
    with pytest.raises(
        UserError,
        match=r"a on demo de-en, seed 2: no counts by sentence for sacrebleu, induced; score it again",
    ):
        compared(folder)
    counted.write_text(whole.replace("words,", "letters,"))
    with pytest.raises(UserError, match=r"seed2/sentences\.csv: no column words"):
        compared(folder)
    counted.write_text("".join(whole.splitlines(keepends=True)[:-1]))
    with pytest.raises(UserError, match=r"de-en, a and b: not scored on the same sentences .*\[59, 60\]"):
        compared(folder)
    counted.write_text(whole)
    (folder / "demo/de-en/a/seed2/parse_counts.json").unlink()
    with pytest.raises(UserError, match=r"seed2/parse_counts\.json: no such file"):
        compared(folder)


def test_trees_that_are_not_there_or_not_counted_are_named(runs):
    folder = runs([33.0, 33.1, 33.2], [30.0, 30.1, 30.2])
    for path in folder.rglob("parse.json"):
        path.write_text(path.read_text().replace('"balanced"', '"random"'))
    with pytest.raises(UserError, match=r"a on demo de-en, seed 1: no balanced for f1_words; name another"):
        compared(folder, TRIVIAL)
    with pytest.raises(
        UserError, match=r"seed 1: no counts by sentence for f1_words, random; score it again"
    ):
        compared(folder, TRIVIAL.model_copy(update={"rival": "random"}))


def test_systems_that_decoded_differently_are_not_compared(runs):
    folder = runs([33.0, 33.1, 33.2], [30.0, 30.1, 30.2])
    for path in folder.rglob("scores.json"):
        scores = json.loads(path.read_text())
        path.write_text(json.dumps(scores | {"decoding": {"beam": 1 if scores["system"] == "a" else 5}}))
    with pytest.raises(
        UserError, match=r"decoding differ between a on demo de-en, seed 1 \(beam: 1\) and b on"
    ):
        compared(folder, BLEU)


def test_runs_without_a_system_have_no_contrast(runs):
    assert compared(runs([33.0], [30.0]), Contrast(system="c", rival="b", metric="sacrebleu")) == []


@pytest.mark.parametrize(
    ("difference", "p", "p_gain", "expected"),
    [
        (1.0, 0.01, 0.01, "holds"),  # though it is less than the paper's
        (-1.0, 0.01, None, "does not hold"),
        (0.1, 0.9, 0.01, "does not hold"),  # the gain as published is excluded
        (0.1, 0.9, 0.4, "cannot tell"),
        (0.1, 0.9, None, "cannot tell"),
    ],
)
def test_verdicts(difference, p, p_gain, expected):
    assert verdict(difference, p, p_gain) == expected

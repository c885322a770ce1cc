"""Verdicts: runs whose answer is known, missing and damaged files, and every number of studies/multi30k/README.md."""

import csv
import json
import math
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from synmask.pipeline.config import read_claims, read_published
from synmask.pipeline.config.claims import OF_HEADS
from synmask.pipeline.evaluation.bleu import COUNTS, SOURCE
from synmask.pipeline.files import UserError
from synmask.pipeline.reporting.verdict import write_verdict

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "studies/multi30k"
ALIKE = ([8] * 60, [8] * 60)  # right words per sentence, of 10
UNSURE = ([10, 5] * 30, [5, 10] * 30)
CLAIMS = """
corpus: demo
experiments: [demo]
claims:
  - name: Better translations
    claim: a translates better than b.
    refuted: it does not.
    contrasts: [{system: a, baseline: b, metric: sacrebleu, gain: {de-en: 2.0}}]
  - name: Better trees
    claim: a has better trees than b, and than balanced ones.
    refuted: it has not.
    contrasts:
      - {system: a, baseline: b, metric: f1_words}
      - {system: a, trivial: balanced, metric: f1_words}
  - name: Better heads
    claim: a finds more heads than a rule, and than a probe without it.
    refuted: it does not.
    contrasts:
      - {system: a, trivial: best rule, metric: attachment}
      - {system: a, trivial: position, metric: probe}
  - {name: Nobody ran it, claim: c is better., refuted: no., contrasts: [{system: c, baseline: b, metric: sacrebleu}]}
"""


def heads(right, seed):
    """A heads.json in which the parser is right about `right` of 5 words per sentence, all else about 3."""
    counts = {
        metric: dict.fromkeys(pairs.values(), right) | dict.fromkeys(pairs, 3)
        for metric, pairs in OF_HEADS.items()
    }
    percentages = {
        metric: {row: 20.0 * count + (seed / 10 if count == right else 0) for row, count in rows.items()}
        for metric, rows in counts.items()
    }
    spread = {
        metric: {"words": [5] * 60, "right": {row: [count] * 60 for row, count in rows.items()}}
        for metric, rows in counts.items()
    }
    return percentages | {"counts": spread}


def sentences(matched):
    """A sentences.csv: of each sentence's ten words, the first `matched` are those of the reference."""
    rows = [
        [*(max(words - n, 0) for n in range(4)), 10, 9, 8, 7, 10, 10, len(matched), 0] for words in matched
    ]
    return "".join(",".join(map(str, row)) + "\n" for row in [[*COUNTS, *SOURCE], *rows])


def recalls(seed):
    """Of the protocol "words": six labels, the last of them the most frequent."""
    return {
        f"L{label}": {
            "gold": 10 * label,
            "induced": 10.0 * label + seed,
            "right-branching": 5.0,
            "balanced": 7.0,
        }
        for label in range(1, 7)
    }


@pytest.fixture
def runs(tmp_path):
    """Writes runs of `a` and `b`, with `words` right in each sentence; → the claims and their folder."""

    def write(ours, theirs, *, matched=(4, 2), words=([9] * 60, [8] * 60), seeds=3):
        for system, scores, right, good in zip("ab", (ours, theirs), matched, words, strict=True):
            for seed, score in enumerate(scores[:seeds], 1):
                folder = tmp_path / f"demo/de-en/{system}/seed{seed}"
                folder.mkdir(parents=True, exist_ok=True)
                run = {"corpus": "demo", "direction": "de-en", "system": system, "seed": seed}
                found = dict.fromkeys(("bleu_tokenised", "sacrebleu", "chrf"), score)
                scored = {"scores": {"valid": found, "test": found}, "signatures": dict.fromkeys(found, "s")}
                (folder / "scores.json").write_text(json.dumps(run | scored | {"train_seconds": 1.0}))
                (folder / "history.csv").write_text(f"epoch,valid_ppl\n1,80.0\n2,{score / 10}\n")
                (folder / "sentences.csv").write_text(sentences(good))
                numbers = dict.fromkeys(("precision", "recall", "sentence_f1"), 1.0)
                rows = {
                    "induced": numbers | {"f1": 20.0 * right + seed / 10},
                    "balanced": numbers | {"f1": 60.0},
                }
                found = {"rows": rows, "recall_by_label": recalls(seed)}
                (folder / "parse.json").write_text(
                    json.dumps(run | {"protocols": dict.fromkeys(("words", "paper"), found)})
                )
                trivial = {"matched": [3] * 60, "predicted": [5] * 60}
                spans = {"gold": [5] * 60, "balanced": trivial, "right-branching": trivial}
                spans["induced"] = {"matched": [right] * 60, "predicted": [5] * 60}
                (folder / "parse_counts.json").write_text(json.dumps(run | {"counts": {"words": spans}}))
                if system == "a":
                    (folder / "heads.json").write_text(json.dumps(run | heads(right, seed)))
        (tmp_path / "claims.yaml").write_text(CLAIMS)
        return read_claims(tmp_path / "claims.yaml"), tmp_path

    return write


def verdicts(claims, folder):
    """Name of a claim → its verdict; the rows of the contrasts."""
    write_verdict(claims, folder, folder / "out")
    lines = (folder / "out.md").read_text().splitlines()[2 : 2 + len(claims.claims)]
    cells = [line.strip("| ").split(" | ") for line in lines]
    with (folder / "out.csv").open() as handle:
        return {cell[0].split("**")[1]: cell[1] for cell in cells}, list(csv.DictReader(handle))


def test_what_is_far_and_sure_holds(runs):
    found, rows = verdicts(*runs([33.0, 33.1, 33.2], [30.0, 30.1, 30.2]))
    assert found == dict.fromkeys(("Better translations", "Better trees", "Better heads"), "holds") | {
        "Nobody ran it": "not tested"
    }
    assert [float(row["difference"]) for row in rows] == pytest.approx([3.0, 40.0, 20.2, 20.2, 20.2])
    assert [row["rival_seeds"] for row in rows] == ["3", "3", "0", "0", "0"]
    assert [float(row["p_test_set"]) for row in rows] == pytest.approx([1 / 10_001] * 5)


def test_all_runs_are_listed_the_best_on_validation_first(runs):
    claims, folder = runs([30.0, 30.1, 30.2], [33.0, 33.1, 33.2])
    write_verdict(claims, folder, folder / "out")
    tables = (folder / "out.md").read_text().split("**De→En, ")
    listed = tables[1].strip().splitlines()[4:]
    assert [line.split("|")[1].strip() for line in listed] == ["`b`", "`a`"]
    assert (
        "| 3 | 3.31 ± 0.01 | 33.10 ± 0.10 | 33.10 ± 0.10 | 33.10 ± 0.10 | 40.20 ± 0.10 | 40.20 ± 0.10 |"
        in listed[0]
    )
    assert tables[2].startswith("heads**")
    assert tables[2].strip().splitlines()[4:] == [
        "| none (the first column: the best rule) | – | 60.00 | 60.00 | 60.00 |",
        "| `a` | 3 | 80.20 ± 0.10 | 80.20 ± 0.10 | 80.20 ± 0.10 |",
    ]
    assert tables[3].strip().splitlines()[2:6] == [
        "| Trees | L6 (60) | L5 (50) | L4 (40) | L3 (30) | L2 (20) |",
        "|---|---:|---:|---:|---:|---:|",
        "| right-branching | 5.00 | 5.00 | 5.00 | 5.00 | 5.00 |",
        "| balanced | 7.00 | 7.00 | 7.00 | 7.00 | 7.00 |",
    ]
    assert "| `a` | 62.00 ± 1.00 | 52.00 ± 1.00 | 42.00 ± 1.00 | 32.00 ± 1.00 | 22.00 ± 1.00 |" in tables[3]


def test_both_tests_must_agree(runs):
    found, _ = verdicts(*runs([33.0, 33.1, 33.2], [30.0, 30.1, 30.2], words=UNSURE))
    assert found["Better translations"] == "cannot tell"
    found, _ = verdicts(*runs([36.0, 33.0, 39.0], [30.0, 30.1, 35.0]))  # the seeds wander
    assert found["Better translations"] == "cannot tell"


def test_a_gain_that_the_interval_excludes_does_not_hold(runs):
    found, rows = verdicts(*runs([30.1, 30.2, 30.3], [30.0, 30.1, 30.2], words=ALIKE))
    assert float(rows[0]["high"]) < 2.0
    assert found["Better translations"] == "does not hold"


def test_a_gain_is_excluded_over_the_sentences_too(runs):
    found, rows = verdicts(*runs([30.1, 30.2, 30.3], [30.0, 30.1, 30.2], words=UNSURE))
    assert float(rows[0]["high"]) < 2.0
    assert found["Better translations"] == "cannot tell"


def test_the_more_gains_are_claimed_the_harder_to_exclude(runs):
    claims, folder = runs([30.0, 31.2, 30.6], [30.0, 30.4, 30.2], words=ALIKE)
    claim = claims.claims[0]
    found, rows = verdicts(claims, folder)
    alone = max(float(rows[0]["p_gain_test_set"]), float(rows[0]["p_gain_seeds"]))
    assert 0.025 < alone < 0.05
    assert found[claim.name] == "does not hold"
    twice = claims.model_copy(update={"claims": [claim, claim.model_copy(update={"name": "Again"})]})
    found, rows = verdicts(twice, folder)
    assert [float(row["p_gain"]) for row in rows] == pytest.approx([2 * alone] * 2)
    assert {*found.values()} == {"cannot tell"}


def test_more_than_the_paper_gains_is_never_too_little(runs):
    found, rows = verdicts(*runs([33.0, 33.1, 33.2], [30.0, 30.1, 30.2]))
    assert max(float(rows[0]["p_gain_test_set"]), float(rows[0]["p_gain_seeds"])) < 0.5
    assert [row["p_gain"] for row in rows] == ["1.0", "", "", "", ""]
    assert found["Better translations"] == "holds"


def test_worse_does_not_hold(runs):
    found, _ = verdicts(*runs([33.0, 33.1, 33.2], [30.0, 30.1, 30.2], matched=(2, 4)))
    assert found["Better trees"] == found["Better heads"] == "does not hold"


def test_one_seed_cannot_tell(runs):
    claims, folder = runs([33.0], [30.0], seeds=1)
    found, rows = verdicts(claims, folder)
    assert {*found.values()} == {"cannot tell", "not tested"}
    assert {row["needed"] for row in rows} == {""}
    page = (folder / "out.md").read_text()
    assert "| cannot tell | – |" in page
    assert "(one seed) |" in page
    assert "inf" not in page


PERPLEXITY = """
corpus: demo
experiments: [demo]
claims:
  - name: Lower
    claim: a finds the references more probable than b.
    refuted: it does not.
    contrasts: [{system: a, baseline: b, metric: perplexity, gain: {de-en: -0.5}}]
"""


@pytest.fixture
def probable(runs):
    """Writes runs of `a` and `b` whose references have these perplexities by seed; → the claims, the folder."""

    def write(ours, theirs):
        _, folder = runs([30.0, 30.1, 30.2], [30.0, 30.1, 30.2])
        for system, values in zip("ab", (ours, theirs), strict=True):
            for seed, value in enumerate(values, 1):
                run = folder / f"demo/de-en/{system}/seed{seed}"
                head, *rows = (run / "sentences.csv").read_text().splitlines()
                spread = [10 * math.log(value) + (0.1 if number % 2 else -0.1) for number in range(60)]
                rows = [
                    f"{row},{-more},10,{'xy'[k % 2]}"
                    for k, (row, more) in enumerate(zip(rows, spread, strict=True))
                ]
                head += ",log_probability,tokens,set"
                (run / "sentences.csv").write_text("\n".join([head, *rows]) + "\n")
                found = {"sacrebleu": 30.0, "chrf": 50.0, "perplexity": value, "sentences": 30}
                more = {
                    "test_sets": {"x": found, "y": found},
                    "perplexity": {"test": value},
                    "processor": "P",
                }
                scores = json.loads((run / "scores.json").read_text()) | more
                (run / "scores.json").write_text(json.dumps(scores))
        (folder / "claims.yaml").write_text(PERPLEXITY)
        return read_claims(folder / "claims.yaml"), folder

    return write


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ([4.0, 4.1, 4.2], [5.0, 5.1, 5.2], "holds"),  # lower is better
        ([5.0, 5.1, 5.2], [4.0, 4.1, 4.2], "does not hold"),
        ([5.05, 5.06, 5.07], [5.05, 5.07, 5.06], "does not hold"),  # a gain of 0.5 is excluded
        ([3.0, 4.0, 7.0], [4.5, 5.0, 5.2], "cannot tell"),
    ],
)
def test_a_lower_perplexity_is_better(probable, ours, theirs, verdict):
    claims, folder = probable(ours, theirs)
    found, [row] = verdicts(claims, folder)
    assert found == {"Lower": verdict}
    assert float(row["mean"]) == pytest.approx(sum(ours) / 3)
    assert float(row["difference"]) == pytest.approx((sum(ours) - sum(theirs)) / 3)


def test_test_sets_are_shown_apart_and_together(probable):
    claims, folder = probable([4.0, 4.1, 4.2], [5.0, 5.1, 5.2])
    write_verdict(claims, folder, folder / "out")
    page = (folder / "out.md").read_text()
    table = page.split("**De→En, by test set**\n\n")[1].split("\n\n")[0].splitlines()[2:]
    assert [row.split(" | ")[:2] for row in table[::2]] == [
        ["| x", "30"],
        ["| y", "30"],
        ["| together", "60"],
    ]
    assert table[0] == "| x | 30 | `a` | 3 | 30.00 ± 0.00 | 50.00 ± 0.00 | 4.10 ± 0.10 |"
    with (folder / "out.runs.csv").open() as handle:
        rows = list(csv.DictReader(handle))
    assert (rows[0]["perplexity"], rows[0]["processor"]) == ("4.0", "P")


def test_runs_scored_before_have_no_perplexity(runs):
    _, folder = runs([30.0, 30.1, 30.2], [30.0, 30.1, 30.2])
    (folder / "claims.yaml").write_text(PERPLEXITY)
    with pytest.raises(
        UserError, match=r"sentences\.csv: no column log_probability, tokens; decode and score"
    ):
        write_verdict(read_claims(folder / "claims.yaml"), folder, folder / "out")


def test_what_is_missing_or_damaged_is_named(runs):
    claims, folder = runs([33.0, 33.1, 33.2], [30.0, 30.1, 30.2])
    counted = folder / "demo/de-en/a/seed2/sentences.csv"
    whole = counted.read_text()
    counted.unlink()
    with pytest.raises(UserError, match=r"seed2/sentences\.csv: no such file"):
        write_verdict(claims, folder, folder / "out")
    counted.write_text(whole.replace("words,", "letters,"))
    with pytest.raises(UserError, match=r"seed2/sentences\.csv: not a table of counts"):
        write_verdict(claims, folder, folder / "out")
    counted.write_text("".join(whole.splitlines(keepends=True)[:-1]))
    with pytest.raises(UserError, match=r"de-en, a and b: not scored on the same sentences .*\[59, 60\]"):
        write_verdict(claims, folder, folder / "out")
    counted.write_text(whole)
    history = folder / "demo/de-en/a/seed1/history.csv"
    history.write_text("epoch,valid_loss\n1,2.0\n")
    with pytest.raises(UserError, match=r"seed1/history\.csv: no column valid_ppl"):
        write_verdict(claims, folder, folder / "out")
    history.write_text("epoch,valid_ppl\n")
    with pytest.raises(UserError, match=r"seed1/history\.csv: no epoch"):
        write_verdict(claims, folder, folder / "out")
    history.write_text("epoch,valid_ppl\n1,80.0\n2,3.3\n")
    unscored = folder / "demo/de-en/a/seed9/history.csv"  # of a run that is still training
    unscored.parent.mkdir()
    unscored.write_text("epoch,valid_ppl\n1,80.0\n")
    write_verdict(claims, folder, folder / "whole")
    assert "| `a` | 3 | 3.31 ± 0.01 |" in (folder / "whole.md").read_text()
    history.unlink()  # not needed
    (folder / "demo/de-en/a/seed3/heads.json").write_text('{"counts": {}, "attachment": {}, "probe": {}}')
    with pytest.raises(UserError, match=r"seed3/heads\.json: no 'attachment' in it"):
        write_verdict(claims, folder, folder / "out")
    with pytest.raises(UserError, match="no such folder"):
        write_verdict(claims, folder / "nowhere", folder / "out")
    assert not (folder / "out.md").exists()


def test_only_the_chosen_runs_are_read(runs):
    claims, folder = runs([33.0, 33.1, 33.2], [30.0, 30.1, 30.2])
    run = folder / "demo/de-en"
    for name in ("raw", "en-de/bin"):  # no runs
        (folder / "demo" / name).mkdir(parents=True)
    (run / "a/seed1").rename(run / "a/seed1-old")
    write_verdict(claims, folder, folder / "out")
    page = (folder / "out.md").read_text()
    assert "| 2, 3 |" in page
    assert page.count("all runs**") == 1
    scores = [run / f"{system}/seed{seed}/scores.json" for system in "ab" for seed in (2,)]
    write_verdict(claims, folder, folder / "out", scores)
    assert "| 1, 1 |" in (folder / "out.md").read_text()
    assert len((folder / "out.runs.csv").read_text().splitlines()) == 3
    (run / "a/seed2/parse_counts.json").unlink()
    with pytest.raises(UserError, match=r"seed2/parse_counts\.json: no such file"):
        write_verdict(claims, folder, folder / "out")


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("trivial: balanced,", "", "give either a baseline or trivial trees"),
        ("metric: f1_words}\n      - ", "metric: bleu}\n      - ", "metric"),
        ("trivial: balanced, metric: f1_words", "trivial: balanced, metric: sacrebleu", "have no sacreBLEU"),
        ("claim: a translates", "says: a translates", "says"),
        ("trivial: best rule", "trivial: position", "attachment: give as trivial best rule"),
        ("trivial: position", "baseline: b", "probe: give as trivial position or position and length"),
    ],
)
def test_wrong_claims_are_one_line(tmp_path, old, new, fault):
    path = tmp_path / "claims.yaml"
    path.write_text(CLAIMS.replace(old, new, 1))
    with pytest.raises(UserError, match=fault) as error:
        read_claims(path)
    assert "\n" not in str(error.value)


def test_every_number_of_the_documentation(tmp_path):
    """The study's page has what the shipped runs say, to the byte."""
    name = "verdict"
    with tarfile.open(SHIPPED / "runs.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    write_verdict(read_claims(SHIPPED / "claims.yaml"), tmp_path, tmp_path / name)
    page = (SHIPPED / "README.md").read_text()
    shown = page.split("<!-- verdict -->\n")[1].split("<!-- end of verdict -->")[0]
    assert shown == (tmp_path / f"{name}.md").read_text()
    assert (SHIPPED / f"{name}.csv").read_text() == (tmp_path / f"{name}.csv").read_text()
    assert (SHIPPED / "runs.csv").read_text() == (tmp_path / f"{name}.runs.csv").read_text()
    assert (SHIPPED / f"{name}.svg").read_bytes() == (tmp_path / f"{name}.svg").read_bytes()


def test_the_documentation_holds_no_text_of_the_corpus():
    """Trees and P_D are shipped without their tokens."""
    with tarfile.open(SHIPPED / "runs.tar.xz") as archive:
        names = archive.getnames()
        assert not any(name.endswith(("trees.jsonl", "distribution.json")) for name in names)


def test_packed_runs_say_the_same_and_hold_no_words(runs):
    claims, folder = runs([33.0, 33.1, 33.2], [30.0, 30.1, 30.2])
    tree = {
        "tokens": ["Geheimnis", "."],
        "distances": [0.123456789],
        "heads": [0, 1],
        "parents": [[[1, 1.0]]],
    }
    (folder / "demo/de-en/a/seed1/trees.jsonl").write_text(json.dumps(tree) + "\n")
    (folder / "demo/de-en/a/seed1/distribution.json").write_text('{"tokens": ["Geheimnis"]}')
    script = ROOT / "studies/pack-runs.py"
    archives = [folder / "one.tar.xz", folder / "two.tar.xz"]
    for archive in archives:
        subprocess.run([sys.executable, script, folder / "demo", archive], check=True)
    assert archives[0].read_bytes() == archives[1].read_bytes()
    with tarfile.open(archives[0]) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    assert not any(b"Geheimnis" in path.read_bytes() for path in (folder / "unpacked").rglob("*.*"))
    kept = (folder / "unpacked/demo/de-en/a/seed1/trees.wordless.jsonl").read_text()
    assert json.loads(kept) == {"distances": [0.123457], "heads": [0, 1]}
    subprocess.run([sys.executable, script, folder / "unpacked/demo", folder / "again.tar.xz"], check=True)
    assert (folder / "again.tar.xz").read_bytes() == archives[0].read_bytes()
    for name, place in (("whole", folder), ("packed", folder / "unpacked")):
        write_verdict(claims, place, folder / name)
    assert (folder / "whole.md").read_text() == (folder / "packed.md").read_text()


def test_gains_are_those_of_the_paper():
    """The gains in claims.yaml are differences of published.yaml's numbers on IWSLT14."""
    printed = read_published(ROOT / "workflow/published.yaml").numbers
    # the paper has no control: its gain over the Transformer is what ours would have to reach
    told = {"transformer-mlm": "transformer", "grammar-mask": "grammar-nomlm"}
    count = 0
    for claim in read_claims(SHIPPED / "claims.yaml").claims:
        for one in claim.contrasts:
            metric = {"sacrebleu": "bleu_tokenised"}.get(one.metric, "f1")
            system = "grammar" if one.system == "transformer-mlm" else one.system
            for direction, gain in one.gain.items():
                sides = (system, told.get(one.rival, one.rival))
                ours, theirs = (printed["iwslt14", direction, metric, side].mean for side in sides)
                assert gain == pytest.approx(ours - theirs, abs=0.001), (claim.name, sides)
                count += 1
    assert count == 17

"""Parse tables: the numbers by hand, the marks, and runs that do not belong together."""

import csv
import json

import numpy as np
import pytest

from synmask.pipeline.errors import UserError
from synmask.pipeline.reporting.cells import TableOptions
from synmask.pipeline.reporting.parse_tables import write_parse_table
from synmask.pipeline.reporting.score_trees import as_text


@pytest.fixture
def run(tmp_path):
    """Writes parse.json and parse_counts.json of a run and returns the path of the first."""

    def write(system, direction, seed, f1=None, *, right=40.0, sentences=100, heads=True, matched=(2,) * 50):
        f1 = 20 * np.mean(matched) if f1 is None else f1  # of five spans in each of fifty sentences
        head = {"corpus": "demo", "direction": direction, "system": system, "seed": seed}
        protocols = {}
        for protocol, shift in (("evalb", 5), ("words", 0)):
            rows = {"oracle": 90.0, "induced": f1, "random": 20.0, "right-branching": right}
            protocols[protocol] = {
                "sentences": sentences,
                "rows": {
                    name: {
                        "precision": value + 1,
                        "recall": value - 1,
                        "f1": value + shift,
                        "sentence_f1": value + 2,
                    }
                    for name, value in rows.items()
                },
            }
        rows = {
            "induced": {"directed": f1 / 2, "undirected": f1},
            "random": {"directed": 5.0, "undirected": 9.0},
        }
        path = tmp_path / f"{direction}/{system}/seed{seed}/parse.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        dependencies = {"words": 55, "rows": rows} if heads else None
        path.write_text(json.dumps(head | {"protocols": protocols, "dependencies": dependencies}))
        counts = {
            "gold": [5] * 50,
            "induced": {"matched": matched, "predicted": [5] * 50},
            "right-branching": {"matched": [2] * 50, "predicted": [5] * 50},
        }
        kept = head | {"counts": {"words": counts, "evalb": counts}}
        path.with_name("parse_counts.json").write_text(json.dumps(kept))
        return path

    return write


@pytest.fixture
def table(tmp_path):
    def write(parses, systems=("a", "b"), directions=("de-en",)):
        labels = {name: f"System {name}" for name in systems}
        runs_of = {system: [1, 2] for system in systems}
        columns = [{"corpus": "demo", "column": name, "group": "", "runs": runs_of} for name in directions]
        options = TableOptions(title="Demo", labels=[*labels.items()], columns=columns)
        write_parse_table(options=options, inputs=parses, output=tmp_path / "t.x")
        texts = {
            kind: (tmp_path / f"t.x.{kind}").read_text(encoding="utf-8") for kind in ("csv", "md", "tex")
        }
        return list(csv.DictReader(texts["csv"].splitlines())), texts["md"], texts["tex"]

    return write


def cells(text, row):
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {row} |")]
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_by_hand(run, table):
    runs = [run("a", "de-en", 1, 30.0), run("a", "de-en", 2, 33.0), run("b", "de-en", 1, 28.0)]
    rows, markdown, latex = table([*runs, run("a", "en-de", 1, 45.0)], directions=("de-en", "en-de"))
    words, evalb, dependencies = markdown.split("\n# ")
    assert words.startswith("# Demo, protocol “words”")
    assert evalb.startswith("Demo, protocol “evalb”")
    # sd of 30 and 33 is 3 / sqrt(2)
    assert cells(words, "System a")[:4] == ["32.50 ± 2.12", "30.50 ± 2.12", "31.50 ± 2.12", "33.50 ± 2.12"]
    assert cells(words, "right-branching")[2] == "**40.00**"  # a baseline may be the best
    assert cells(words, "System a")[6] == "**45.00 [1 of 2]**"
    assert cells(words, "oracle")[2] == "90.00"  # never the best
    assert cells(words, "System b")[4:] == ["–"] * 4
    assert cells(evalb, "System a")[2] == "36.50 ± 2.12"
    names = [line.split(" |")[0] for line in words.splitlines() if line.startswith("| ") and "--" not in line]
    assert names == ["| System", "| System a", "| System b", "| right-branching", "| random", "| oracle"]
    assert "Scored sentences: De→En 100, En→De 100." in words
    assert "Missing: System b De→En (seed 2); System a En→De (seed 2); System b En→De (seeds 1, 2)." in words
    assert cells(dependencies, "System a")[:2] == ["**15.75 ± 1.06**", "**31.50 ± 2.12**"]
    assert "Scored words: De→En 55" in dependencies
    assert latex.count(r"\begin{tabular}{lrrrrrrrr}") == 2
    assert latex.count(r"\begin{tabular}{lrrrr}") == 1
    assert r"32.50 $\pm$ 2.12 & 30.50" in latex
    assert len(rows) == 4 * (4 + 4 + 2)
    first = [(row["protocol"], row["system"], row["seed"], row["tree"], row["f1"]) for row in rows[:4]]
    assert first == [("words", "a", "1", tree, f1) for tree, f1 in [
        ("induced", "30.0"), ("right-branching", "40.0"), ("random", "20.0"), ("oracle", "90.0")]]  # fmt: skip


def test_marks_against_right_branching_and_between_systems(run, table):
    rng = np.random.default_rng(0)
    better = (2 + (rng.random(50) < 0.9)).tolist()  # right-branching finds 2 in each sentence
    slightly = [3] * 6 + [1] * 5 + [2] * 39
    runs = [run("a", "de-en", 1, matched=better), run("b", "de-en", 1, matched=slightly)]
    _, markdown, latex = table(runs)
    marked = cells(markdown.split("\n# ")[0], "System a")
    f1 = f"{2 * sum(better) / 5:.2f}"
    assert marked[2] == f"**{f1}‡ [1 of 2]**"
    assert sum("‡" in one for one in marked) == 1  # F1 alone is tested
    assert cells(markdown.split("\n# ")[0], "System b")[2] == "40.40 [1 of 2]"
    assert "F1 De→En, by the same tests: System b against System a −" in markdown
    assert "System a against System b" not in markdown  # a pair is tested once
    assert "(p = 0.001)" in markdown
    assert rf"{f1}$^{{\ddagger}}$" in latex


def test_seeds_that_disagree_are_not_marked(run, table):
    runs = [run("a", "de-en", seed, matched=[found] * 50) for seed, found in ((1, 3), (2, 5))]
    runs += [run("b", "de-en", seed, matched=[3] * 49 + [3 + seed]) for seed in (1, 2)]
    _, markdown, _ = table(runs)  # right-branching finds 2 in each sentence
    assert cells(markdown.split("\n# ")[0], "System a")[2].strip("*") == "80.00 ± 28.28"
    assert (
        cells(markdown.split("\n# ")[0], "System b")[2].strip("*") == "60.60 ± 0.28‡"
    )  # p of the seeds 0.006
    assert "System b against System a −19.40 (p = 0.510)" in markdown


def test_trees_that_need_no_parser_are_not_tested(run, table):
    scores = run("a", "de-en", 1, 50.0)
    counts = scores.with_name("parse_counts.json")
    of_run, of_counts = (json.loads(path.read_text()) for path in (scores, counts))
    of_run["protocols"]["words"]["rows"]["balanced"] = dict.fromkeys(
        ("precision", "recall", "f1", "sentence_f1"), 60.0
    )
    of_counts["counts"]["words"]["balanced"] = {"matched": [3] * 50, "predicted": [5] * 50}
    scores.write_text(json.dumps(of_run))
    counts.write_text(json.dumps(of_counts))
    _, markdown, _ = table([scores])
    assert cells(markdown, "balanced")[2] == "**60.00**"


def test_without_heads_there_is_no_table_of_them(run, table):
    _, markdown, _ = table([run("a", "de-en", 1, 30.0, heads=False)])
    assert "dependencies" not in markdown


def test_a_system_without_heads_is_not_missing_among_the_heads(run, table):
    _, markdown, _ = table([run("a", "de-en", 1, 30.0), run("b", "de-en", 1, 30.0, heads=False)])
    words, *_, dependencies = markdown.split("\n# ")
    assert cells(words, "System b")[2] == "30.00 [1 of 2]"
    assert "System a" in dependencies
    assert "System b" not in dependencies


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"right": 41.0},
            r"precision differ between a on demo de-en, seed 1 \(41.0\) and .*, seed 2 \(42.0\)",
        ),
        ({"sentences": 101}, "counted differ between a on demo de-en, seed 1 .*100.* and .*, seed 2 .*101"),
    ],
)
def test_parses_under_other_rules_are_refused(run, table, change, message):
    with pytest.raises(UserError, match=message):
        table([run("a", "de-en", 1, 30.0), run("a", "de-en", 2, 30.0, **change)])


def test_runs_that_do_not_belong_are_refused(run, table, tmp_path):
    one = run("a", "de-en", 1, 30.0)
    for runs, options, message in [
        ([one, one], {}, "a on demo de-en, seed 1: given twice"),
        ([one], {"systems": ["b"]}, "a on demo de-en, seed 1: not in this table"),
        ([one], {"directions": ["en-de"]}, "a on demo de-en, seed 1: not in this table"),
        ([tmp_path / "gone.json"], {}, r"gone\.json: no such file"),
    ]:
        with pytest.raises(UserError, match=message):
            table(runs, **options)
    kept = one.with_name("parse_counts.json")
    whole = json.loads(kept.read_text())
    for counts, message in [
        ({"words": {}}, "no 'gold' in it"),
        ({"words": {"gold": [1], "right-branching": {}}}, "no 'induced' in it"),
        ({"words": {"gold": [1], "induced": {}, "right-branching": {}}}, "no 'matched' in it"),
    ]:
        kept.write_text(json.dumps(whole | {"counts": counts}))
        with pytest.raises(UserError, match=rf"parse_counts\.json: {message}"):
            table([one])
    kept.unlink()
    with pytest.raises(UserError, match=r"parse_counts\.json: no such file"):
        table([one])
    one.write_text('{"corpus": "demo"}')
    with pytest.raises(UserError, match=r"parse\.json: no 'direction' in it"):
        table([one])
    assert not list(tmp_path.glob("t.x.*"))


def test_text_for_the_terminal(run):
    result = json.loads(run("a", "de-en", 1, 30.0).read_text())
    parts = {
        "recall_by_label": {"NP": {"gold": 3, "induced": 50.0}},
    }
    result["protocols"]["words"] |= parts
    result |= {"cut_words": {"cut": 1, "split": 2}, "ties": {"tied": 3, "splits": 4}, "unparsed": 5}
    result |= {"explained_by_labels_within_sentences": 0.9512}
    lines = as_text(result).splitlines()
    rows = [line.split() for line in lines]
    assert ["right-branching", "41.00", "39.00", "45.00", "42.00"] in rows
    assert ["NP", "3", "50.00"] in rows
    assert ["induced", "15.00", "30.00"] in rows
    assert lines[-4:] == [
        "5 sentences without a gold tree are left out",
        "1 of 2 split words are cut by the tree over sub-words",
        "3 of 4 splits are ties, decided for the first",
        "95.1% of the distances' variance within sentences is explained by the BPE labels beside each gap",
    ]

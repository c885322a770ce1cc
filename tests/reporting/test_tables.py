"""Tables: the numbers by hand, what is missing or does not fit, and text that LaTeX would misread."""

import csv
import json

import pytest

from synmask.files import UserError
from synmask.reporting.tables import write_table

SIGNATURES = {"sacrebleu": "case:mixed|tok:13a", "bleu_tokenised": "case:mixed|tok:none", "chrf": "nc:6"}


@pytest.fixture
def run(tmp_path):
    """Writes a scores.json and returns its path."""

    def write(system, direction, seed, bleu, *, tokenised=30.0, signatures=SIGNATURES, corpus="demo", **more):
        scores = {"sacrebleu": bleu, "bleu_tokenised": tokenised, "chrf": 50.0}
        path = tmp_path / f"{corpus}.{system}.{direction}.{seed}.json"
        head = {"corpus": corpus, "direction": direction, "system": system, "seed": seed}
        costs = {"parameters": 1000, "tokens_per_second": 1.5, "train_seconds": 2.5, "commit": "c0ffee"}
        path.write_text(json.dumps(head | {"scores": scores, "signatures": signatures} | costs | more))
        return path

    return write


@pytest.fixture
def table(tmp_path):
    """Writes a table and returns the CSV's rows, the Markdown's lines and the LaTeX text."""

    def write(
        runs, systems, directions=("de-en", "en-de"), *, function=write_table, title="Translation, demo"
    ):
        paths = [tmp_path / f"table.{extension}" for extension in ("csv", "md", "tex")]
        function(
            runs, *paths, title=title, systems={name: name for name in systems}, directions=list(directions)
        )
        rows = list(csv.DictReader(paths[0].read_text(encoding="utf-8").splitlines()))
        return rows, paths[1].read_text(encoding="utf-8").splitlines(), paths[2].read_text(encoding="utf-8")

    return write


def cells(lines, row):
    (line,) = [line for line in lines if line.startswith(f"| {row} |")]
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_means_deviations_and_bold_by_hand(run, table):
    runs = [
        run("transformer", "de-en", 1, 34.0),
        run("transformer", "de-en", 2, 35.0),
        run("transformer", "de-en", 3, 39.0),
        run("grammar", "de-en", 1, 37.0, tokenised=31.0),
        run("grammar", "de-en", 2, 38.0, tokenised=32.0),
        run("grammar", "de-en", 3, 36.5, tokenised=30.5),
        run("transformer", "en-de", 1, 28.126),
        run("grammar", "en-de", 1, 28.124),
    ]
    _, markdown, latex = table(runs, ["transformer", "grammar"])
    # mean (34 + 35 + 39) / 3 = 36, sd sqrt((4 + 1 + 9) / 2); mean 37.1667, sd sqrt(7/12)
    transformer = cells(markdown, "transformer")
    assert transformer[:2] == ["36.00 ± 2.65", "30.00 ± 0.00"]
    assert transformer[3:5] == ["**28.13**", "**30.00**"]
    assert transformer[-1] == "3 / 1"
    grammar = cells(markdown, "grammar")
    assert grammar[:4] == ["**37.17 ± 0.76**", "**31.17 ± 0.76**", "**50.00 ± 0.00**", "28.12"]
    assert r"transformer & 36.00 $\pm$ 2.65 & 30.00 $\pm$ 0.00 & " in latex
    assert r"grammar & \textbf{37.17 $\pm$ 0.76} & \textbf{31.17 $\pm$ 0.76} & " in latex
    assert cells(markdown, "System")[:4] == [
        "De→En sacreBLEU",
        "De→En tokenised BLEU",
        "De→En chrF",
        "En→De sacreBLEU",
    ]
    notes = "\n".join(markdown)
    assert "over seeds 1, 2, 3;" in notes
    assert "sacreBLEU: case:mixed|tok:13a." in notes
    assert "tokenised BLEU: case:mixed|tok:none." in notes
    assert "Commit: c0ffee." in notes
    assert "Missing runs: transformer En→De (seed 2 and 3); grammar En→De (seed 2 and 3)." in notes


def test_the_best_is_the_best_mean_not_the_best_as_text(run, table):
    runs = [run("a", "de-en", 1, 9.5), run("b", "de-en", 1, 10.0)]
    _, markdown, _ = table(runs, ["a", "b"], ["de-en"])
    assert cells(markdown, "b")[0] == "**10.00**"
    assert cells(markdown, "a")[0] == "9.50"
    assert "One seed (1); the best of each column is bold." in markdown
    _, markdown, _ = table(runs[:1], ["a"], ["de-en"])
    assert cells(markdown, "a")[0] == "9.50"  # nothing to be better than


def test_the_csv_has_one_row_a_run_in_the_order_of_the_config(run, table):
    runs = [
        run("grammar", "de-en", 10, 1.0),
        run("grammar", "de-en", 2, 0.1 + 0.2),
        run("transformer", "en-de", 1, 3.0),
        run("transformer", "de-en", 1, 4.0),
    ]
    rows, *_ = table(runs, ["transformer", "grammar"])
    keys = [(row["direction"], row["system"], row["seed"]) for row in rows]
    assert keys == [
        ("de-en", "transformer", "1"),
        ("de-en", "grammar", "2"),
        ("de-en", "grammar", "10"),
        ("en-de", "transformer", "1"),
    ]
    assert float(rows[1]["sacrebleu"]) == 0.1 + 0.2
    assert rows[0]["signature_sacrebleu"] == "case:mixed|tok:13a"
    assert (rows[0]["parameters"], rows[0]["commit"], rows[0]["corpus"]) == ("1000", "c0ffee", "demo")


def test_missing_runs_are_dashes_and_are_named(run, table):
    runs = [run("transformer", "de-en", 1, 30.0), run("transformer", "de-en", 2, 31.0)]
    _, markdown, latex = table(runs, ["transformer", "grammar"])
    assert cells(markdown, "grammar") == ["–"] * 7
    assert cells(markdown, "transformer")[3:] == ["–"] * 3 + ["2 / 0"]
    missing = "transformer En→De (all seeds); grammar De→En (all seeds); grammar En→De (all seeds)"
    assert f"Missing runs: {missing}." in markdown
    assert "grammar & -- & -- & -- & -- & -- & -- & -- " in latex


def test_the_same_runs_in_any_order_give_the_same_bytes(run, table, tmp_path):
    runs = [run(system, "de-en", seed, seed * 1.1) for system in ("a", "b") for seed in (1, 2, 3)]
    table(runs, ["a", "b"], ["de-en"])
    first = [path.read_bytes() for path in sorted(tmp_path.glob("table.*"))]
    table(runs[::-1], ["a", "b"], ["de-en"])
    assert [path.read_bytes() for path in sorted(tmp_path.glob("table.*"))] == first


def test_latex_special_characters_are_escaped(run, table):
    name = r"a_b&c%d$e#f{g}h~i^j\k|l"
    runs = [run("plain", "de-en", 1, 1.0)]
    runs[0].write_text(runs[0].read_text().replace("plain", name.replace("\\", "\\\\")))
    _, markdown, latex = table(runs, [name], ["de-en"], title="50% of demo_x")
    escaped = r"a\_b\&c\%d\$e\#f\{g\}h\textasciitilde{}i\textasciicircum{}j\textbackslash{}k\textbar{}l"
    assert f"\n{escaped} & 1.00 & " in latex
    assert r"\caption{50\% of demo\_x. One seed" in latex
    assert any(line.startswith("| " + name.replace("|", r"\|")) for line in markdown)


def test_every_latex_row_has_as_many_cells_as_columns(run, table):
    _, _, latex = table([run("a", "de-en", 1, 1.0)], ["a", "b"])
    lines = latex.splitlines()
    assert r"\begin{tabular}{lrrrrrrr}" in lines
    assert [line.count("&") for line in lines if line.startswith(("System", "a ", "b "))] == [7, 7, 7]
    assert r"\cmidrule(lr){2-4} \cmidrule(lr){5-7}" in lines
    assert [line for line in lines if line.endswith("rule")] == [r"\toprule", r"\midrule", r"\bottomrule"]


def test_other_signatures_in_one_column_are_refused_in_two_they_are_both_named(run, table):
    lower = SIGNATURES | {"sacrebleu": "case:lc|tok:13a"}
    one = run("a", "de-en", 1, 1.0)
    with pytest.raises(
        UserError, match=r"signature_sacrebleu .* case:mixed.*a de-en, seed 1.*case:lc.*seed 2"
    ):
        table([one, run("a", "de-en", 2, 1.0, signatures=lower)], ["a"])
    _, markdown, _ = table([one, run("a", "en-de", 1, 1.0, signatures=lower)], ["a"])
    assert "sacreBLEU (De→En): case:mixed|tok:13a." in markdown
    assert "sacreBLEU (En→De): case:lc|tok:13a." in markdown


def test_runs_that_do_not_belong_are_refused(run, table, tmp_path):
    one = run("a", "de-en", 1, 1.0)
    with pytest.raises(UserError, match="a de-en, seed 1: given twice"):
        table([one, one], ["a"])
    with pytest.raises(UserError, match="system a is not in the table"):
        table([one], ["b"])
    with pytest.raises(UserError, match="direction de-en is not in the table"):
        table([one], ["a"], ["en-de"])
    with pytest.raises(UserError, match="corpus differs"):
        table([one, run("a", "en-de", 1, 1.0, corpus="other")], ["a"])
    with pytest.raises(UserError, match=r"no scores\.json"):
        table([], ["a"])
    with pytest.raises(UserError, match=r"gone\.json: no such file"):
        table([tmp_path / "gone.json"], ["a"])
    one.write_text("{")
    with pytest.raises(UserError, match=r"de-en\.1\.json: not JSON"):
        table([one], ["a"])
    one.write_text('{"corpus": "demo", "scores": {}}')
    with pytest.raises(
        UserError, match=r"de-en\.1\.json: no direction, system, seed, signatures in the file"
    ):
        table([one], ["a"])
    assert not list(tmp_path.glob("table.*"))

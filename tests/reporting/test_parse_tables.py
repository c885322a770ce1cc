"""The parsing table: numbers by hand, what is missing, parses under other rules."""

import csv
import json

import pytest

from synmask.files import UserError
from synmask.reporting.parse_tables import write_parse_table


@pytest.fixture
def parse_run(tmp_path):
    """Writes a parse.json and returns its path."""

    def write(system, direction, seed, f1, *, right=40.0, sentences=7, protocol="words"):
        path = tmp_path / f"parse.{system}.{direction}.{seed}.json"
        head = {"corpus": "demo", "direction": direction, "system": system, "seed": seed}
        rows = {"induced": f1, "right-branching": right, "oracle": 90.0}
        rows = {
            name: {"precision": value + 1, "recall": value - 1, "f1": value, "sentence_f1": value + 2}
            for name, value in rows.items()
        }
        path.write_text(json.dumps(head | {"protocol": protocol, "sentences": sentences, "rows": rows}))
        return path

    return write


@pytest.fixture
def table(tmp_path):
    """Writes a table and returns the CSV's rows, the Markdown's lines and the LaTeX text."""

    def write(runs, systems, directions=("de-en", "en-de")):
        paths = [tmp_path / f"table.{extension}" for extension in ("csv", "md", "tex")]
        names = {name: name for name in systems}
        write_parse_table(runs, *paths, title="Parsing, demo", systems=names, directions=list(directions))
        rows = list(csv.DictReader(paths[0].read_text(encoding="utf-8").splitlines()))
        return rows, paths[1].read_text(encoding="utf-8").splitlines(), paths[2].read_text(encoding="utf-8")

    return write


def cells(lines, row):
    (line,) = [line for line in lines if line.startswith(f"| {row} |")]
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_parse_table_by_hand(parse_run, table):
    runs = [
        parse_run("grammar", "de-en", 1, 30.0),
        parse_run("grammar", "de-en", 2, 33.0),
        parse_run("grammar-nobpe", "de-en", 1, 28.0),
        parse_run("grammar", "en-de", 1, 45.0),
    ]
    rows, markdown, latex = table(runs, ["grammar-nobpe", "grammar"])
    # sd of 30 and 33 is 3 / sqrt(2)
    assert cells(markdown, "grammar")[:4] == ["32.50 ± 2.12", "30.50 ± 2.12", "31.50 ± 2.12", "33.50 ± 2.12"]
    assert cells(markdown, "right-branching")[2] == "**40.00**"  # a baseline may be the best
    assert cells(markdown, "grammar")[6] == "**45.00**"
    assert cells(markdown, "oracle")[2] == "90.00"
    assert cells(markdown, "grammar-nobpe")[4:] == ["–"] * 4
    names = [line.split(" |")[0] for line in markdown if line.startswith("| ")]
    assert names == ["| System", "| grammar-nobpe", "| grammar", "| right-branching", "| oracle"]
    assert "De→En: 7 sentences, protocol “words”." in markdown
    assert "Missing runs: grammar-nobpe De→En (seed 2); grammar-nobpe En→De (all seeds); " in "\n".join(
        markdown
    )
    assert r"right-branching & \textbf{41.00} & \textbf{39.00} & \textbf{40.00} & \textbf{42.00} & " in latex
    assert len(rows) == 4 * 3
    assert [row["tree"] for row in rows[:3]] == ["induced", "right-branching", "oracle"]
    assert [(row["system"], row["seed"], row["f1"]) for row in rows if row["tree"] == "induced"][:2] == [
        ("grammar-nobpe", "1", "28.0"),
        ("grammar", "1", "30.0"),
    ]


def test_the_oracle_is_never_the_best(parse_run, table):
    _, markdown, _ = table([parse_run("grammar", "de-en", 1, 90.0)], ["grammar"], ["de-en"])
    assert cells(markdown, "grammar")[2] == "**90.00**"
    assert cells(markdown, "oracle")[2] == "90.00"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"right": 41.0}, "precision differs"),
        ({"sentences": 8}, "sentences"),
        ({"protocol": "evalb"}, "protocol"),
    ],
)
def test_parses_under_other_rules_are_refused(parse_run, table, change, message):
    runs = [parse_run("grammar", "de-en", 1, 30.0), parse_run("grammar", "de-en", 2, 30.0, **change)]
    with pytest.raises(UserError, match=message):
        table(runs, ["grammar"])

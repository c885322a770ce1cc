"""Trees in the terminal, by hand."""

import pytest
from rich.cells import cell_len

from synmask.pipeline.reporting.tree_nodes import sentence_of
from synmask.pipeline.reporting.tree_text import draw
from synmask.pipeline.syntax.parses import Parse
from synmask.pipeline.syntax.treebank import read_trees


@pytest.fixture
def gold(tmp_path):
    def read(text):
        (tmp_path / "gold.mrg").write_text(text)
        return next(read_trees(tmp_path / "gold.mrg"))

    return read


def test_gold_and_induced_trees(gold):
    tree = gold("(S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (NP (DT a)) (NN cat))) (. .))")
    parse = Parse(
        ["the", "do@@", "g", "saw", "a", "cat", "."], [2, 1, 4, 0, 3, 5], 4, None, [0, 1, 2, 3, 4, 5, 6]
    )
    text = draw(sentence_of(tree, {"+BPE": parse}), {"+BPE": parse})
    assert text.splitlines() == [
        "gold (3 constituents that count)",
        "S┬NP┬─────── the",
        " │  └─────── dog",
        " ├VP┬─────── saw",
        " │  └NP┬NP── a",
        " │     └──── cat",
        " └────────── .",
        "",
        "+BPE (2 of 3 found, drawn thick)",
        "            height        distance to the next",
        "┬┬┳── the                 ▇▇▇▇",
        "││┗┬─ do@@  ▇▇            ▇▇",
        "││ └─ g     ▇▇▇▇          ▇▇▇▇▇▇▇▇",
        "│└┳┬─ saw   ▇▇▇▇▇▇",
        "│ ┃└─ a     ▇▇▇▇▇▇▇▇      ▇▇▇▇▇▇",
        "│ ┗── cat   ▇▇▇▇▇▇▇▇▇▇    ▇▇▇▇▇▇▇▇▇▇",
        "└──── .     ▇▇▇▇▇▇▇▇▇▇▇▇  ▇▇▇▇▇▇▇▇",
    ]


def test_words_from_right_to_left_do_not_turn_their_line(gold):
    parse = Parse(["قرأ", "2@@", "ب", "a"], [1, 3, 2], 4)
    lines = draw(sentence_of(None, {"A": parse}), {"A": parse}).splitlines()
    assert [line.split("─ ")[1].split("  ")[0] for line in lines[2:6]] == [
        "\u2068قرأ\u2069", "2@@", "\u2068ب\u2069", "a",
    ]  # fmt: skip
    assert len({cell_len(line[: line.index("▇")]) for line in lines[3:6]}) == 1


def test_one_word_and_equal_values(gold):
    parse = Parse(["ja"], [], 1.0, None, [1.0])
    lines = draw(sentence_of(gold("(S (UH ja))"), {"A": parse}), {"A": parse}).splitlines()
    assert lines == [
        "gold (not scored)",
        "S── ja",
        "",
        "A (not scored)",
        "      height        distance to the next",
        "─ ja",
    ]


def test_a_sentence_without_words(gold):
    parse = Parse([], [], 0.0, [], [], [])
    lines = draw(sentence_of(gold("(FLAT)"), {"A": parse}), {"A": parse}).splitlines()
    assert lines == [
        "gold (not scored)", "(no words)", "", "A (not scored)", "(no words)",
    ]  # fmt: skip


def test_where_the_gold_trees_parser_failed_the_induced_tree_stands_alone(gold):
    parse = Parse(["ja", "!"], [1.0], 2.0)
    assert draw(sentence_of(gold("(())"), {"A": parse}), {"A": parse}) == draw(
        sentence_of(None, {"A": parse}), {"A": parse}
    )


def test_without_a_gold_tree():
    parse = Parse(["a", "b"], [1], 2, None, [1, 2])
    assert draw(sentence_of(None, {"A": parse}), {"A": parse}).splitlines()[0] == "A"


def test_a_system_without_heights():
    parse = Parse(["a", "b"], [1], 2)
    lines = draw(sentence_of(None, {"A": parse}), {"A": parse}).splitlines()
    assert lines == ["A", "      distance to the next", "┬─ a", "└─ b  ▇▇▇▇▇▇▇▇▇▇▇▇"]

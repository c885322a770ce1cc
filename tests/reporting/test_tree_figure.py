"""The figure of one sentence's trees: what it shows, its bytes, and that nothing in it overlaps."""

import csv
import itertools
import xml.etree.ElementTree as ET

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from synmask.pipeline.reporting import tree_figure
from synmask.pipeline.syntax.parses import Parse
from synmask.pipeline.syntax.treebank import flat_tree, read_trees

TOKENS = ["die", "Fracht@@", "raum@@", "ung", "in", "den", "Häfen", ",", "sagte", "sie", "."]
GOLD = (
    "(S (S (NP (ART die) (NN Frachtraumung)) (PP (IN in) (NP (ART den) (NN Häfen))))"
    " ($, ,) (VP (V sagte) (P sie)) ($. .))"
)
# ((die (Fracht@@ raum@@ ung)) (in (den Häfen))) , | sagte sie | .
GOOD = [3, 1, 0.5, 5, 3, 2, 6, 8, 1, 9]
HEIGHTS = [*range(11)]


@pytest.fixture
def gold(tmp_path):
    (tmp_path / "gold.mrg").write_text(GOLD, encoding="utf-8")
    return next(read_trees(tmp_path / "gold.mrg"))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("tokens", [[], ["ja"], ["."], ["ja", "ja"]])
def test_a_sentence_of_no_word_or_few(tokens, tmp_path):
    count = len(tokens)
    parse = Parse(tokens, [1.0] * (count - 1), 2.0 * bool(tokens), [0] * count, [1.0] * count, [[]] * count)
    for gold in (flat_tree(tokens), None):
        tree_figure.draw_trees(gold, {"A": parse}, tmp_path / "drawn")
        assert (tmp_path / "drawn.pdf").stat().st_size > 1000
        assert (tmp_path / "drawn.csv").read_text().startswith("tree,start,end,label,right,value,tokens\n")


@pytest.fixture
def induced():
    return {
        "+BPE": Parse(TOKENS, GOOD, 10.0, None, HEIGHTS),
        "−BPE": Parse(TOKENS, GOOD[::-1], 0.5, None, HEIGHTS),
    }


@pytest.fixture
def drawn(monkeypatch):
    """The figures that are saved, as matplotlib objects."""
    kept, save = [], tree_figure.save

    def keep(figure, out, data):
        kept.append(figure)
        save(figure, out, data)

    monkeypatch.setattr(tree_figure, "save", keep)
    return kept


def table(path):
    with path.open(encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def right(rows, title="+BPE"):
    return {row["tokens"] for row in rows if row["tree"] == title and row["right"] == "True"}


def test_the_same_trees_give_the_same_bytes(gold, induced, tmp_path):
    for folder in ("one", "two"):
        tree_figure.draw_trees(gold, induced, tmp_path / folder / "figure.v1")
    for extension in ("svg", "pdf", "csv"):
        first = (tmp_path / "one" / f"figure.v1.{extension}").read_bytes()
        assert first == (tmp_path / "two" / f"figure.v1.{extension}").read_bytes()
        assert len(first) > 100
    assert ET.parse(tmp_path / "one" / "figure.v1.svg").getroot().tag.endswith("svg")


def test_no_text_overlaps_another_or_leaves_the_figure(gold, induced, drawn, tmp_path, monkeypatch):
    tree_figure.draw_trees(gold, induced, tmp_path / "figure")
    boxes, plain_draw = {}, Text.draw

    def record(text, renderer):
        if text.get_text().strip() and text.get_visible():
            boxes[text] = text.get_window_extent(renderer)
        plain_draw(text, renderer)

    monkeypatch.setattr(Text, "draw", record)
    FigureCanvasAgg(drawn[0]).draw()
    assert len(boxes) > 30
    for text, box in boxes.items():
        assert 0 <= box.x0 < box.x1 <= drawn[0].bbox.x1, text
        assert 0 <= box.y0 < box.y1 <= drawn[0].bbox.y1, text
    for (text, box), (other_text, other) in itertools.combinations(boxes.items(), 2):
        assert not box.overlaps(other), (text, other_text)


def test_trees_show_what_the_gold_tree_has(gold, induced, drawn, tmp_path):
    tree_figure.draw_trees(gold, induced, tmp_path / "trees")
    rows = table(tmp_path / "trees.csv")
    # the inner S with and without its comma are one constituent when punctuation does not count
    assert right(rows) == {
        "die Fracht@@ raum@@ ung",
        "in den Häfen",
        "den Häfen",
        "die Fracht@@ raum@@ ung in den Häfen",
        "die Fracht@@ raum@@ ung in den Häfen ,",
        "sagte sie",
    }
    values = {row["tokens"]: row["value"] for row in rows if row["tree"] == "+BPE"}
    assert (values["in den Häfen"], values["sie"]) == ("3", "9")  # the distance it splits at; a height
    axes = {axes.get_title(loc="left"): axes for axes in drawn[0].axes}
    assert next(iter(axes)) == "gold (5 constituents that count)"
    assert not [
        line
        for line in axes["gold (5 constituents that count)"].lines
        if line.get_color() == tree_figure.RIGHT
    ]
    assert [
        line for line in axes["+BPE (5 of 5 found, in green)"].lines if line.get_color() == tree_figure.RIGHT
    ]


def test_a_constituent_that_cuts_a_word_is_never_right(gold, tmp_path):
    cut = [5, 9, 4, 5, 3, 2, 6, 8, 1, 7]  # die Fracht@@ | raum@@ ung …
    tree_figure.draw_trees(gold, {"+BPE": Parse(TOKENS, cut, 10.0, None, HEIGHTS)}, tmp_path / "trees")
    assert right(table(tmp_path / "trees.csv")) == {"in den Häfen", "den Häfen", "sagte sie", "sagte sie ."}


def test_split_words_are_marked_and_bars_stand_below(gold, induced, drawn, tmp_path):
    tree_figure.draw_trees(gold, induced, tmp_path / "trees")
    trees = [axes for axes in drawn[0].axes if axes.lines]
    assert [sum(line.get_color() == tree_figure.PIECE for line in axes.lines) for axes in trees] == [1, 1, 1]
    (bars, _) = [axes for axes in drawn[0].axes if not axes.lines]
    heights = [bar.get_height() for bar in bars.containers[0]]
    distances = [bar.get_height() for bar in bars.containers[1]]
    assert len(heights) == len(distances) == 11  # one distance before </s>
    assert heights == pytest.approx([0.06 + value / 10 for value in HEIGHTS])  # from 0 to 10 here
    assert distances == pytest.approx([0.06 + value / 10 for value in [*GOOD, 10]])


def test_without_a_gold_tree_only_induced_trees_show(induced, drawn, tmp_path):
    tree_figure.draw_trees(None, induced, tmp_path / "trees")
    assert {row["tree"] for row in table(tmp_path / "trees.csv")} == {"+BPE", "−BPE"}
    assert [axes.get_title(loc="left") for axes in drawn[0].axes] == ["+BPE", "", "−BPE", ""]


def test_a_system_without_heights_shows_distances(drawn, tmp_path):
    tree_figure.draw_trees(None, {"A": Parse(TOKENS, GOOD, 10.0)}, tmp_path / "trees")
    (bars,) = [axes for axes in drawn[0].axes if not axes.lines]
    assert [len(group) for group in bars.containers] == [11]


def test_trees_of_other_words_are_refused(gold, tmp_path):
    def draw(*parses):
        named = {
            str(n): Parse(tokens, gaps, 1.0, None, HEIGHTS[: len(tokens)])
            for n, (tokens, gaps) in enumerate(parses)
        }
        tree_figure.draw_trees(gold, named, tmp_path / "trees")

    with pytest.raises(ValueError, match="induced: 8 words, but the gold tree has 9"):
        draw((TOKENS[1:], GOOD[1:]))
    with pytest.raises(ValueError, match="induced: all trees must have the same sub-words"):
        draw((TOKENS, GOOD), ([*TOKENS[:-1], "!"], GOOD))
    with pytest.raises(ValueError, match="tokens"):
        draw((TOKENS, GOOD[1:]))


def test_a_sentence_of_one_word_can_be_drawn(tmp_path):
    (tmp_path / "one.mrg").write_text("(S (UH ja))")
    tree = next(read_trees(tmp_path / "one.mrg"))
    tree_figure.draw_trees(tree, {"+BPE": Parse(["ja"], [], 1.0, None, [1.0])}, tmp_path / "trees")
    assert [row["tree"] for row in table(tmp_path / "trees.csv")] == ["gold", "+BPE"]

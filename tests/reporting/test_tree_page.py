"""The page of sentences: which ones, how they are drawn, and that it stands alone."""

import itertools
import json
import random
import re
import xml.etree.ElementTree as ET

import pytest

from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation.parseval import evaluate
from synmask.pipeline.evaluation.protocols import ParsedCorpus
from synmask.pipeline.reporting.tree_nodes import sentence_of
from synmask.pipeline.reporting.tree_page import figure, page
from synmask.pipeline.syntax.parses import Parse
from synmask.pipeline.syntax.treebank import Tree, flat_tree, parse_trees, read_trees


@pytest.fixture
def trees(tmp_path):
    (tmp_path / "gold.mrg").write_text(
        "(S (NP (D the) (N dog)) (V <barks>) (. .))\n(S (A a) (NP (B bc) (D d)))\n(S (UH yes) (. !))\n"
    )
    return list(read_trees(tmp_path / "gold.mrg"))


@pytest.fixture
def parses():
    return [
        Parse(["the", "dog", "<barks>", "."], [1, 2, 3], 4),
        Parse(
            ["a", "b@@", "c", "d"],
            [1, 0, 2],
            3,
            None,
            [4, 1, 2, 3],
            [[[3, 0.5], [4, 0.25]], [], [], [[0, 1.0]]],
        ),
        Parse(["yes", "!"], [1], 2),
    ]


def svgs(text):
    return [ET.fromstring(svg) for svg in re.findall("<svg.*?</svg>", text)]


def path(svg, kind):
    return next(part.get("d") for part in svg.iter() if part.get("class") == f"tree-{kind}")


def test_every_sentence_with_its_trees_from_short_to_long(trees, parses):
    text = page("Trees", trees, {"Grammar <1>": parses})
    heads = re.findall('<summary class="tree-text" dir="auto">(.*?)</summary>', text)
    assert heads == ["3. yes !", "2. a bc d", "1. the dog &lt;barks&gt; ."]
    assert ">3 sentences from short" in text
    assert ">One sentence. Green" in page("Trees", trees[:1], {"A": parses[:1]})
    assert "Grammar &lt;1&gt; (1 of 1 found, F1 100.0)" in text
    assert "gold (1 constituent that counts)" in text
    drawn = svgs(text)
    assert len(drawn) == 6
    words = [[part.text for part in svg.iter("text") if not part.get("class")] for svg in drawn]
    assert words[3] == ["a", "b@@", "c", "d"]
    assert words[4] == words[5] == ["the", "dog", "<barks>", "."]


def test_right_constituents_and_split_words_are_marked(trees, parses):
    drawn = svgs(page("Trees", trees, {"Grammar": parses}))
    assert [path(svg, "right").count("H") for svg in drawn] == [0, 0, 0, 0, 0, 1]  # a constituent has one H
    assert [path(svg, "split").count("M") for svg in drawn] == [0, 0, 0, 1, 0, 0]
    assert [path(svg, "plain").count("H") for svg in drawn] == [1, 1, 2, 3, 2, 2]


def test_a_sentence_without_words_is_left_out(trees, parses):
    """Of an empty line, or where the gold tree's parser failed."""
    trees += [flat_tree([]), *parse_trees(["(())"], "gold"), *parse_trees(["(S (UH yes))"], "gold")]
    parses += [Parse([], [], 0.0, [], [], []), parses[0], Parse(["yes"], [], 1.0, [0], [1.0], [[]])]
    text = page("Trees", trees, {"A": parses})
    heads = re.findall('<summary class="tree-text" dir="auto">(.*?)</summary>', text)
    assert heads == ["6. yes", "3. yes !", "2. a bc d", "1. the dog &lt;barks&gt; ."]
    assert "<summary" not in page("Trees", trees[3:4], {"A": parses[3:4]})


def test_the_numbers_are_those_of_the_table():
    """Random trees over sub-words, with punctuation, many with nodes that cut words; one without a parse."""
    rng = random.Random(0)
    trees, parses = [], []
    for _ in range(300):
        line = [rng.choice(["w", "x@@ y", "u@@ v@@ z", ","]) for _ in range(rng.randint(1, 9))]
        leaves = [f"({',' if word == ',' else 'NN'} {word.replace('@@ ', '')})" for word in line]
        while len(leaves) > 1:
            start = rng.randrange(len(leaves) - 1)
            end = start + rng.randint(2, 3)
            leaves[start:end] = [f"(X {' '.join(leaves[start:end])})"]
        trees += parse_trees([f"(S {leaves[0]})"], "gold")
        tokens = " ".join(line).split()
        parses.append(Parse(tokens, [rng.randint(1, 6) for _ in tokens[1:]], 9))
    trees[7] = flat_tree(trees[7].leaves())
    scored, found = 0, 0
    for tree, parse in zip(trees, parses, strict=True):
        sentence = sentence_of(tree, {"A": parse})
        try:
            result, counts = evaluate(ParsedCorpus([tree], [parse]))
        except UserError:
            result = None
        right = sum(node.right for node in sentence.drawings["A"].nodes)
        if result is None or tree.label == "FLAT":
            assert (sentence.heading("A", "{f1}"), right) == ("A (not scored)", 0)
            continue
        of, f1 = counts["words"], result["protocols"]["words"]["rows"]["induced"]["f1"]
        assert right == of["induced"]["matched"][0]
        assert sentence.heading("A", "{f1}") == f"A ({right} of {of['gold'][0]} found, F1 {f1:.1f})"
        scored, found = scored + 1, found + right
    assert scored > 200
    assert found > 100


def test_a_node_that_cuts_a_word_does_not_hide_the_constituent_over_it():
    """((a b@@) (c d)) is ((a bc) d) over words."""
    (tree,) = parse_trees(["(S (NP (D a) (N bc)) (V d))"], "gold")
    parse = Parse(["a", "b@@", "c", "d"], [1, 3, 2], 4)
    sentence = sentence_of(tree, {"A": parse})
    assert sentence.heading("A", "{f1}") == "A (1 of 1 found, F1 100.0)"
    assert [(node.start, node.end) for node in sentence.drawings["A"].nodes if node.right] == [(0, 2)]


def test_the_sentences_are_spread_over_all_lengths():
    trees = [Tree("S", tuple(Tree("N", ("w",)) for _ in range(1 + number % 50))) for number in range(200)]
    parses = [Parse(tree.leaves(), [1.0] * (len(tree.leaves()) - 1), 2) for tree in trees]
    heads = re.findall(
        '<summary class="tree-text" dir="auto">[0-9]+. (.*?)</summary>', page("Trees", trees, {"A": parses})
    )
    lengths = [len(head.split()) for head in heads]
    assert len(lengths) == 20
    assert lengths == sorted(lengths)
    assert (lengths[0], lengths[-1]) == (1, 50)
    assert max(b - a for a, b in itertools.pairwise(lengths)) <= 4


def test_it_stands_alone(trees, parses):
    text = page("Trees & more", trees, {"Grammar": parses})
    assert text == page("Trees & more", trees, {"Grammar": parses})
    assert text.startswith("<!doctype html>")
    assert "<title>Trees &amp; more</title>" in text
    assert not re.findall(r"https?://|@import|<link", text)
    assert '<form class="tree-controls" hidden>' in text  # nothing to step with, unless the script shows it


@pytest.fixture
def opened(trees, parses, open_page, tmp_path):
    """The page in a browser, after a script."""

    def opened(script="", **kwargs):
        (tmp_path / "page.html").write_text(page("Trees", trees, {"A": parses, "B": parses}))
        return open_page(tmp_path / "page.html", script, **kwargs)

    return opened


def test_a_word_points_to_its_likely_parents(trees, parses):
    (svg,) = [
        svg
        for svg in svgs(page("Trees", trees, {"A": parses}))
        if "A " in svg.get("aria-label") and path(svg, "split")
    ]
    words = [group for group in svg.iter("g")]
    assert [word.find("title").text for word in words] == [
        "a: likely parents d 0.50, </s> (root) 0.25",
        "b@@: likely parents none above 0.1",
        "c: likely parents none above 0.1",
        "d: likely parents a 1.00",
    ]
    assert [len(word.findall("path")) for word in words] == [2, 0, 0, 1]
    places = [float(word.find("text").get("x")) for word in words]
    arrow = words[3].find("path").get("d")
    assert arrow.startswith(f"M{places[3]:.1f} ")
    assert f" {places[0]:.1f} " in arrow
    assert float(words[0].findall("path")[0].get("stroke-width")) == 2.5
    shares = [part for part in words[0].findall("text") if part.get("class") == "tree-share"]
    assert [part.text for part in shares] == [".50", ".25", "root"]
    assert shares[0].get("x") == f"{places[3]:.1f}"


def test_bars_are_heights_and_distances_by_one_scale(trees, parses):
    (svg,) = [
        svg
        for svg in svgs(page("Trees", trees, {"A": parses}))
        if "A " in svg.get("aria-label") and path(svg, "split")
    ]
    drawn = {
        kind: [float(v) for v in re.findall(r"v(-[0-9.]+)", path(svg, kind))]
        for kind in ("bar-height", "bar-distance")
    }
    # heights 4 1 2 3 and distances 1 0 2, then 3: from 0 to 4
    assert drawn["bar-height"] == pytest.approx([-40, -12.2, -21.5, -30.8], abs=0.1)
    assert drawn["bar-distance"] == pytest.approx([-12.2, -3, -21.5, -30.8], abs=0.1)


def test_arrows_to_the_root_end_inside_the_drawing(opened):
    script = """
      const root = [...document.querySelectorAll(".tree-share")].find((one) => one.textContent === "root");
      const svg = root.ownerSVGElement, group = root.parentElement;
      group.closest("details").open = true; group.closest("details").hidden = false;
      for (const one of group.children) one.style.display = "inline";
      const box = group.getBBox(), view = svg.viewBox.baseVal;
      return JSON.stringify([box.x >= 0, box.x + box.width <= view.width, box.y + box.height <= view.height]);"""
    assert json.loads(opened(script).result) == [True, True, True]


HELPERS = """
  const shown = () => [...document.querySelectorAll(".tree-sentence")].filter((one) => one.checkVisibility() && one.open)
    .map((one) => one.querySelector("summary").textContent.slice(0, 2)).join();
  const of = (name) => document.querySelector(".tree-" + name);
  const key = (name, on) => on.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
  const seen = [shown()];
"""


def test_a_figure_holds_all_trees_of_a_sentence_and_stands_alone(trees, parses):
    drawn = figure(sentence_of(trees[1], {"A <1>": parses[1]}), {"A <1>": parses[1]})
    svg = ET.fromstring(drawn)
    message = [part.text for part in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in message if "(" in text] == [
        "gold (1 constituent that counts)",
        "A <1> (0 of 1 found, green)",
    ]
    assert [text for text in message if text in ("a", "bc", "b@@", "c", "d")] == [
        "a",
        "bc",
        "d",
        "a",
        "b@@",
        "c",
        "d",
    ]
    assert "tree-bar-height" in drawn
    assert "tree-parent" not in drawn.split("</style>")[1]  # nothing to point at
    assert drawn == figure(sentence_of(trees[1], {"A <1>": parses[1]}), {"A <1>": parses[1]})
    alone = figure(sentence_of(None, {"A": parses[1]}), {"A": parses[1]})
    assert "gold" not in alone.split("</style>")[1]


@pytest.mark.parametrize("tokens", [[], ["ja"], ["."], ["ja", "ja"]])
def test_a_figure_of_no_word_or_few(tokens):
    count = len(tokens)
    parse = Parse(tokens, [1.0] * (count - 1), 2.0 * bool(tokens), [0] * count, [1.0] * count, [[]] * count)
    for gold in (flat_tree(tokens), None):
        ET.fromstring(figure(sentence_of(gold, {"A": parse}), {"A": parse}))


def test_a_browser_shows_one_sentence_at_a_time(opened):
    script = """
      of("next").click(); seen.push(shown(), of("next").disabled);
      of("previous").click(); of("previous").click(); seen.push(shown(), of("previous").disabled, of("count").value);
      key("ArrowRight", of("next")); seen.push(shown());
      return JSON.stringify(seen);"""
    found = opened(HELPERS + script)
    assert json.loads(found.result) == ["2.", "1.", True, "3.", True, "Sentence 1 of 3", "2."]
    assert found.console == []


def test_arrows_show_when_a_word_has_the_focus(opened):
    script = """
      const word = [...document.querySelectorAll(".tree-word")].find((one) => one.checkVisibility());
      const arrow = () => getComputedStyle(word.querySelector(".tree-parent")).display;
      const before = arrow(); word.focus();
      return new Promise((said) => {  // :focus matches once the browser has given its window the focus
        const look = () => document.hasFocus()
          ? said([before, document.activeElement === word, arrow()].join()) : setTimeout(look, 50);
        look();
      });"""
    assert opened(script).result == "none,true,inline"


def test_without_scripts_every_sentence_can_be_opened(opened):
    found = opened("return document.querySelectorAll('.tree-sentence:not([hidden])').length;", scripts=False)
    assert found.result == "3"
    assert "hidden" in found.of("form")[0]
    assert [("open" in one) for one in found.of("details")] == [False, True, False]


def test_a_narrow_window_is_not_overflowed(opened):
    wide = "return document.scrollingElement.scrollWidth <= innerWidth;"
    assert opened(wide, width=400).result == "true"


def test_trees_fit_the_column_or_scroll_together(open_page, tmp_path):
    words = [f"word{k}" for k in range(14)]
    gold = [Tree("S", tuple(Tree("N", (word,)) for word in words))]
    parse = [Parse([f"{word}{'@' * 2 * (k == 3)}" for k, word in enumerate(words)], [1.0] * 13, 2)]
    gold[0] = Tree("S", tuple(Tree("N", (word,)) for word in (*words[:3], "word3word4", *words[5:])))
    (tmp_path / "page.html").write_text(page("Trees", gold, {"A": parse}))
    script = """
      const trees = [...document.querySelectorAll(".tree-one")];
      trees[1].scrollLeft = 1e6;
      trees[1].dispatchEvent(new Event("scroll"));  // the browser's own comes with a frame, which may be late
      return JSON.stringify(trees.map((one) => {
        const lack = one.scrollWidth - one.clientWidth;
        return [lack, lack - Math.round(one.scrollLeft)];
      }));"""
    wide = json.loads(open_page(tmp_path / "page.html", script).result)
    assert [lack for lack, _ in wide] == [0, 0]
    narrow = json.loads(open_page(tmp_path / "page.html", script, width=400).result)
    assert all(lack > 50 and abs(left) <= 2 for lack, left in narrow), narrow


def test_texts_of_a_long_sentence_are_legible_and_apart(open_page, tmp_path):
    """Long words and long labels over short ones, 60 words; the page scrolls rather than shrinks them."""
    rng = random.Random(0)
    words = [rng.choice(["a", "I", "Donaudampfschiff", "@-@", "公园", "KATZE"]) for _ in range(58)] + [
        "a",
        ".",
    ]
    leaves = [f"(NN {word})" for word in words]
    while len(leaves) > 1:
        start = rng.randrange(len(leaves) - 1)
        end = start + rng.randint(2, 3)
        leaves[start:end] = [f"({rng.choice(['NP', 'SBARQ'])} {' '.join(leaves[start:end])})"]
    heights, distances = [1.0] * 60, [rng.random() for _ in words[1:]]
    parents = [[[58, 0.44], [59, 0.28], [60, 0.28]], *([] for _ in words[1:])]
    parse = Parse(words, distances, 2, None, heights, parents)
    (tmp_path / "page.html").write_text(page("Trees", [*parse_trees(leaves, "gold")], {"A": [parse]}))
    script = """
      const seen = [];
      for (const share of document.querySelectorAll(".tree-share")) share.style.display = "inline";
      for (const svg of document.querySelectorAll(".tree-svg")) {
        const texts = [...svg.querySelectorAll("text")].map((one) => one.getBoundingClientRect());
        const over = (a, b, low, size) => Math.min(a[low] + a[size], b[low] + b[size]) - Math.max(a[low], b[low]);
        for (const [k, a] of texts.entries()) for (const b of texts.slice(0, k)) {
          if (over(a, b, "x", "width") > 0 && over(a, b, "y", "height") > 4) seen.push([a, b]);
        }
        const size = parseFloat(getComputedStyle(svg).fontSize) * svg.getScreenCTM().a;
        if (size < 13) seen.push(size);
      }
      return JSON.stringify(seen);"""
    assert json.loads(open_page(tmp_path / "page.html", script, width=1280).result) == []


WORDS = {
    "ar": "يقرأ الطال@@ ب كتابا .",
    "fa": "کودک می‌خو@@ اند کتاب .",
    "he": "הילד קו@@ רא ספר .",
    "ja": "私は 猫@@ が 好き 。",
    "zh": "我 喜@@ 欢 猫 。",
    "th": "ฉัน ชอ@@ บ แมว .",
    "hi": "मैं किता@@ ब पढ़ता ।",
}


def test_words_stand_in_the_order_of_reading(tmp_path, open_page):
    parents = [[[1, 0.5]], [[4, 0.6]], [[5, 0.4]], [], []]
    for language, words in WORDS.items():
        parse = Parse(words.split(), [3, 1, 4, 2], 6, None, [1, 3, 2, 5, 4], parents)
        whole = words.replace("@@ ", "").split()
        (tmp_path / "gold.mrg").write_text(
            f"(S {' '.join(f'(N {word})' for word in whole)})\n", encoding="utf-8"
        )
        text = page("Trees", list(read_trees(tmp_path / "gold.mrg")), {"Grammar": [parse]})
        (tmp_path / "page.html").write_text(text, encoding="utf-8")
        script = """
            const centre = (one) => one.getBoundingClientRect().x + one.getBoundingClientRect().width / 2;
            const centres = (svg) => [...svg.querySelectorAll("text:not([class])")].map(centre);
            return JSON.stringify({
                trees: [...document.querySelectorAll("svg")].map(centres),
                bars: [...document.querySelectorAll(".tree-bar-height, .tree-bar-distance")].map(centre),
                text: getComputedStyle(document.querySelector(".tree-text")).direction,
                inside: [...document.querySelectorAll("svg")].every((svg) => {
                    const box = svg.getBoundingClientRect();
                    return [...svg.querySelectorAll(".tree-word > text:not([class])")].every((one) => {
                        const { left, right } = one.getBoundingClientRect();
                        return left >= box.left - 1 && right <= box.right + 1;
                    });
                }),
            })"""
        found = json.loads(open_page(tmp_path / "page.html", script).result)
        right_to_left = language in ("ar", "fa", "he")
        assert found["text"] == ("rtl" if right_to_left else "ltr"), language
        for centres in found["trees"]:
            assert centres == sorted(centres, reverse=right_to_left), language
        height, distance = found["bars"]
        assert (height > distance) == right_to_left, language  # distances are to the next sub-word
        assert found["inside"], language
        word = re.search('tree-word" tabindex="0"><title>(.*?): likely', text)[1]
        assert word == (f"\u2068{whole[0]}\u2069" if right_to_left else whole[0])

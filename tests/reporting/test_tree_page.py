"""The page of sentences: which ones, how they are drawn, and that it stands alone."""

import html
import itertools
import json
import re
import xml.etree.ElementTree as ET

import pytest

from synmask.reporting.tree_page import page, section
from synmask.syntax.parses import Parse
from synmask.syntax.treebank import Tree, read_trees


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
        Parse(["a", "b@@", "c", "d"], [1, 0, 2], 3),
        Parse(["yes", "!"], [1], 2),
    ]


def svgs(text):
    return [ET.fromstring(svg) for svg in re.findall("<svg.*?</svg>", text)]


def path(svg, kind):
    return next(part.get("d") for part in svg.iter() if part.get("class") == f"tree-{kind}")


def test_every_sentence_with_its_trees_from_short_to_long(trees, parses):
    text = section(trees, {"Grammar <1>": parses})
    heads = re.findall('<p class="tree-text">(.*?)</p>', text)
    assert heads == ["3. yes !", "2. a bc d", "1. the dog &lt;barks&gt; ."]
    data = [json.loads(html.unescape(found)) for found in re.findall('data-f1="(.*?)"', text)]
    assert data == [{"Grammar <1>": 100.0}, {"Grammar <1>": 0.0}, {"Grammar <1>": 100.0}]
    assert re.findall('data-length="(.*?)"', text) == ["2", "3", "4"]
    assert "Grammar &lt;1&gt;, 1 found, F1 100.0" in text
    drawn = svgs(text)
    assert len(drawn) == 6
    words = [[part.text for part in svg if part.tag == "text" and not part.get("class")] for svg in drawn]
    assert words[3] == ["a", "b@@", "c", "d"]
    assert words[4] == words[5] == ["the", "dog", "<barks>", "."]


def test_right_constituents_and_split_words_are_marked(trees, parses):
    drawn = svgs(section(trees, {"Grammar": parses}))
    assert [path(svg, "right").count("H") for svg in drawn] == [0, 0, 0, 0, 0, 1]  # a constituent has one H
    assert [path(svg, "split").count("M") for svg in drawn] == [0, 0, 0, 1, 0, 0]
    assert [path(svg, "plain").count("H") for svg in drawn] == [1, 1, 2, 3, 2, 2]


def test_the_sentences_are_spread_over_all_lengths():
    trees = [Tree("S", tuple(Tree("N", ("w",)) for _ in range(1 + number % 50))) for number in range(200)]
    parses = [Parse(tree.leaves(), [1.0] * (len(tree.leaves()) - 1), 2) for tree in trees]
    lengths = list(map(int, re.findall('data-length="(.*?)"', section(trees, {"A": parses}))))
    assert len(lengths) == 20
    assert lengths == sorted(lengths)
    assert (lengths[0], lengths[-1]) == (1, 50)
    assert max(b - a for a, b in itertools.pairwise(lengths)) <= 4


def test_it_stands_alone_and_can_be_put_into_a_page(trees, parses):
    text = section(trees, {"Grammar": parses})
    assert text == section(trees, {"Grammar": parses})
    assert not re.findall(r"https?://|@import|\bid=|<html|<body|<link", text)
    assert {name.split("-")[0] for names in re.findall('class="(.*?)"', text) for name in names.split()} == {
        "tree"
    }
    selectors = re.findall(r"([^{}]+){", text.split("<style>")[1].split("</style>")[0])
    assert all(selector.strip().startswith(".tree-") for selector in selectors)
    assert '<form class="tree-filter" hidden>' in text  # nothing to filter with, unless the script shows it
    whole = page("Trees & more", text)
    assert whole.startswith("<!doctype html>")
    assert "<title>Trees &amp; more</title>" in whole
    assert text in whole


@pytest.fixture
def opened(trees, parses, open_page, tmp_path):
    """The page in a browser, after a script."""

    def opened(script="", **how):
        (tmp_path / "page.html").write_text(page("Trees", section(trees, {"A": parses, "B": parses})))
        return open_page(tmp_path / "page.html", script, **how)

    return opened


SHOWN = "return [...document.querySelectorAll('.tree-sentence')].filter(e => !e.hidden).length;"


def test_a_browser_filters_by_length_and_f1(opened):
    everything = opened(SHOWN)
    assert everything.said == "3"
    assert everything.console == []
    assert "hidden" not in everything.of("form")[0]
    for name, value, left in [
        ("shortest", 3, "2"),
        ("longest", 2, "1"),
        ("least", 50, "2"),
        ("most", 50, "1"),
    ]:
        change = (
            f"const field = document.querySelector('.tree-{name}'); field.value = {value};"
            "field.dispatchEvent(new Event('input', {bubbles: true}));"
        )
        assert opened(change + SHOWN).said == left, name


def test_without_scripts_all_sentences_show_and_no_filter(opened):
    found = opened(SHOWN, scripts=False)
    assert found.said == "3"
    assert "hidden" in found.of("form")[0]


def test_a_narrow_window_is_not_overflowed(opened):
    wide = "return document.scrollingElement.scrollWidth <= innerWidth;"
    assert opened(wide, width=400).said == "true"

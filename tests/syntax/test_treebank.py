import gzip
from unicodedata import normalize

import pytest

from synmask.pipeline.errors import UserError
from synmask.pipeline.syntax.treebank import (
    UNPARSED,
    Tree,
    flat_tree,
    parse_trees,
    read_trees,
    word_difference,
)

DOG = "(S (NP (DT The) (NN dog)) (VP (VBZ barks)) (. .))"


def read(tmp_path, text):
    path = tmp_path / "trees.txt"
    path.write_text(text, encoding="utf-8")
    return list(read_trees(path))


def test_a_tree_and_its_parts(tmp_path):
    (tree,) = read(tmp_path, DOG)
    noun_phrase = Tree("NP", (Tree("DT", ("The",)), Tree("NN", ("dog",))))
    assert tree == Tree("S", (noun_phrase, Tree("VP", (Tree("VBZ", ("barks",)),)), Tree(".", (".",))))
    assert tree != noun_phrase
    assert len({tree, noun_phrase, read(tmp_path, DOG)[0]}) == 2
    assert tree.leaves() == ["The", "dog", "barks", "."]
    assert tree.tags() == ["DT", "NN", "VBZ", "."]
    assert tree.spans() == [(0, 4, "S"), (0, 2, "NP"), (2, 3, "VP")]
    assert str(tree) == DOG


def test_unary_chains_give_a_span_each_and_a_lone_preterminal_none(tmp_path):
    chain, word = read(tmp_path, "(S (VP (VB Go))) (UH Yes)")
    assert chain.spans() == [(0, 1, "S"), (0, 1, "VP")]
    assert (word.spans(), word.leaves(), str(word)) == ([], ["Yes"], "(UH Yes)")


def test_trees_over_many_lines_with_an_outer_bracket(tmp_path):
    text = (
        "\n( (S\n    (NP-SBJ (DT The)\n       (NN dog))\n (VP (VBZ barks)) (. .) ))\n\n" + DOG + DOG + "\r\n"
    )
    assert [str(tree) for tree in read(tmp_path, text)] == [f"( {DOG})", DOG, DOG]
    assert read(tmp_path, text)[0].spans()[:2] == [(0, 4, ""), (0, 4, "S")]
    assert [tree.label for tree in read(tmp_path, "( (FLAT (X a)) )")] == ["FLAT"]


def test_a_labelled_root_stays(tmp_path):
    assert str(read(tmp_path, f"(ROOT {DOG})")[0]) == f"(ROOT {DOG})"


def test_function_tags_traces_and_what_they_leave_empty_go(tmp_path):
    (tree,) = read(
        tmp_path,
        "(S (NP-SBJ-1 (PRP$ My) (NN dog)) (VP (VBZ wants) (S-ADV=2 (NP-SBJ (-NONE- *PRO*-1)) (VP (TO to)"
        " (VP (VB sleep) (SBAR (-NONE- 0) (S (-NONE- *T*-2)))))) (-LRB- -LRB-)) (NP|X (NN a-b)))",
    )
    assert str(tree) == (
        "(S (NP (PRP$ My) (NN dog)) (VP (VBZ wants) (S (VP (TO to) (VP (VB sleep)))) (-LRB- -LRB-))"
        " (NP|X (NN a-b)))"
    )
    assert tree.spans()[2:5] == [(2, 6, "VP"), (3, 5, "S"), (3, 5, "VP")]


def test_brackets_in_words_are_escaped_and_come_back(tmp_path):
    (tree,) = read(tmp_path, "(X (-LRB- -LRB-) (NN -LSB-) (NN -RCB-) (NN :-RRB-))")
    assert tree.leaves() == ["(", "[", "}", ":)"]
    smile = Tree("X", (Tree("A", ("(",)), Tree("B", (":)",))))
    assert str(smile) == "(X (A -LRB-) (B :-RRB-))"
    assert read(tmp_path, str(smile)) == [smile]
    assert read(tmp_path, str(smile))[0].leaves() == ["(", ":)"]


def test_a_word_that_looks_like_an_escape_comes_back(tmp_path):
    """GLUE's RTE has "25 -LCB- hours"."""
    words = ("-LCB-", "a-RRB-b", "-=LRB-", "(-RSB-)", "-==LSB-", "=(-")
    tree = Tree("X", tuple(Tree("A", (word,)) for word in words))
    assert str(tree).startswith("(X (A -=LCB-) (A a-=RRB-b) (A -==LRB-) (A -LRB--=RSB--RRB-)")
    assert tuple(read(tmp_path, str(tree))[0].leaves()) == words


def test_trees_as_treebanks_in_the_wild_write_them(tmp_path):
    """TIGER's NP-SB and $*LRB*, PTB's PRP$ and NP-SBJ=1, the Brown corpus' indented trees, (TOP …)."""
    text = (
        "( (S (NP-SBJ=1 (PRP$ My) (NN dog)) (VP (VBZ costs) (NP ($ $) (CD 5) (-NONE- *U*))) (. .)) )\n\n\n"
        "(TOP\t(S (NP-SB (ART-NK Der) (NN-NK Hund)) (VVFIN-HD bellt) ($*LRB* -LRB-) ($, ,) ($. .)))\r\n"
        "(\n  (X\n    (UH\n      Ja)\n  )\n)\n"
    )
    assert [str(tree) for tree in read(tmp_path, text)] == [
        "( (S (NP (PRP$ My) (NN dog)) (VP (VBZ costs) (NP ($ $) (CD 5))) (. .)))",
        "(TOP (S (NP (ART Der) (NN Hund)) (VVFIN bellt) ($*LRB* -LRB-) ($, ,) ($. .)))",
        "( (X (UH Ja)))",
    ]


def test_flat_trees_stand_for_sentences_that_nobody_parsed(tmp_path):
    trees = [flat_tree(words) for words in (["a", "("], [], ["b"])]
    text = "(FLAT (X a) (X -LRB-))\n(FLAT)\n(FLAT (X b))\n"
    assert "".join(f"{tree}\n" for tree in trees) == text
    assert read(tmp_path, text) == trees
    assert [tree.leaves() for tree in read(tmp_path, text)] == [["a", "("], [], ["b"]]
    assert trees[1].spans() == [(0, 0, "FLAT")]


def test_an_outer_bracket_around_several_constituents_is_the_tree(tmp_path):
    text = "( (NP (NNP Anna)) (VP (VBZ sleeps)) (. .))"
    (tree,) = read(tmp_path, text.replace("))", ") )"))
    assert (tree.label, tree.tags()) == ("", ["NNP", "VBZ", "."])
    assert tree.spans()[0] == (0, 3, "")
    assert str(tree) == text
    assert read(tmp_path, str(tree)) == [tree]


def test_a_failed_parse_is_no_tree_but_takes_its_place(tmp_path):
    dog, failed, _ = trees = read(tmp_path, f"{DOG}\n( ( ) )\n{DOG}\n")
    assert str(failed) == "(())"
    assert (failed.leaves(), failed.label in UNPARSED, dog.label in UNPARSED) == ([], True, False)
    assert read(tmp_path, "".join(map(str, trees))) == trees


def test_a_round_bracket_in_the_tag_of_stts(tmp_path):
    text = '(S (NE Anna) ($( -)\t($(--- ") ($(\n -) ($-LRB- -LRB-) ($. .))'
    (tree,) = read(tmp_path, text)
    assert tree.tags() == ["NE", "$(", "$(", "$(", "$", "$."]
    assert tree.leaves() == ["Anna", "-", '"', "-", "(", "."]
    assert read(tmp_path, str(tree)) == [tree]


def test_empty_lines_mean_nothing(tmp_path):
    assert len(read(tmp_path, f"\n{DOG}\n \n\n{DOG}\n\n")) == 2


def test_gzip(tmp_path):
    path = tmp_path / "trees.gz"
    path.write_bytes(gzip.compress(DOG.encode()))
    assert [str(tree) for tree in read_trees(path)] == [DOG]


@pytest.mark.parametrize("side", ["left", "right"])
def test_trees_of_any_depth(side, tmp_path):
    depth = 20_000
    word = "(Y a)"
    text = (
        "(X " * depth + word + f" {word})" * depth
        if side == "left"
        else f"(X {word} " * depth + word + ")" * depth
    )
    (tree,) = read(tmp_path, text)
    assert str(tree) == text
    assert len(tree.leaves()) == depth + 1
    assert sorted(end - start for start, end, _ in tree.spans()) == list(range(2, depth + 2))


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (f"{DOG}\n(S\n(NP (NN a)\n", 2, "never closed"),
        (f"{DOG}\n{DOG})\n", 2, "without its"),
        (f"{DOG}\n\nword\n", 3, "outside of brackets"),
        (f"{DOG}\n(S (NP the (NN a)))\n", 2, '"the" shares'),
        (f"{DOG}\n(S (NN a b))\n", 2, '"a" shares'),
        (f"{DOG}\n(S (NP (-NONE- *)))\n", 2, "without words"),
        (f"{DOG}\n()\n", 2, "without words"),
        (f"{DOG}\n(S (FLAT))\n", 2, "without words"),
        (f"{DOG}\n(S ((NN a)))\n", 2, "without a label"),
        (f"{DOG}\n(S ((NN a) (NN b)))\n", 2, "without a label"),
        (f"{DOG}\n((-NONE- *))\n", 2, "without words"),
        ("", 1, "no tree"),
        ("\n\n", 2, "no tree"),
    ],
)
def test_damaged_files_are_refused_with_their_line(text, line, what, tmp_path):
    with pytest.raises(UserError, match=what) as caught:
        read(tmp_path, text)
    assert f"trees.txt, line {line}: " in str(caught.value)


@pytest.fixture
def treebank(tmp_path):
    """A folder of .mrg files."""
    folder = tmp_path / "wsj"
    (folder / "02").mkdir(parents=True)
    for name, words in (("02/b.mrg", "c"), ("02/a.mrg", "ab"), ("10.mrg", "d"), ("readme.txt", "(")):
        (folder / name).write_text("".join(f"( (S (N {word})) )\n" for word in words))
    return tmp_path


def test_a_folder_is_read_in_the_order_of_its_names(treebank):
    assert [tree.leaves() for tree in read_trees(treebank / "wsj")] == [["a"], ["b"], ["c"], ["d"]]


def test_faulty_folders_are_named(treebank):
    (treebank / "empty").mkdir()
    (treebank / "wsj/10.mrg").write_text("(S (N d)\n")
    for name, message in (
        ("empty", "empty: no file that ends in .mrg in it"),
        ("wsj", 'wsj/10.mrg, line 1: "\\(" is never closed'),
    ):
        with pytest.raises(UserError, match=message):
            list(read_trees(treebank / name))


def test_another_unicode_form_of_a_word_is_reported():
    (tree,) = parse_trees(["(S (A Tür) (B zu))"], "gold")
    assert word_difference([normalize("NFD", "Tür"), "zu"], tree).endswith(
        ": the same in another Unicode form; write both in NFC (uconv -x nfc)"
    )
    assert word_difference(["Tor", "zu"], tree) == 'word 1 is "Tor", not "Tür"'

"""Heads of words on pieces of the text as GPT-2 cuts it."""

import random

import pytest

from synmask.pipeline.errors import UserError
from synmask.pipeline.files import write_lines
from synmask.pipeline.syntax.pieces import (
    ParsedText,
    annotate_pieces,
    find_words,
    is_punctuation,
    read_parsed_texts,
)


def table(pieces, words, heads):
    """The annotation of pieces that are written out (or bytes), and how many words `annotate_pieces` lost."""
    text = b"".join(piece if isinstance(piece, bytes) else piece.encode() for piece in pieces).decode()
    sizes = [len(piece if isinstance(piece, bytes) else piece.encode()) for piece in pieces]
    found, lost = annotate_pieces(text, sizes, ParsedText(words, heads))
    return found.tolist(), lost


def test_words_of_several_pieces_and_the_space_before_them():
    found, lost = table(
        ["The", " tall", "est", " dog", "  ", " barks", "."],
        ["The", "tallest", "dog", "barks", "."],
        [3, 3, 4, 0, 4],
    )
    assert found == [[0, 3, 0], [1, 3, 0], [1, 3, 0], [3, 4, 0], [4, 4, 0], [4, 4, 0], [6, 4, 1]]
    assert lost == 0


def test_contractions_and_quotes():
    """`isn` and `'t` are the words of "is n't"; one piece holds two words, the full stop and the quote."""
    found, lost = table(
        ["It", " isn", "'t", ' "', "so", '."'],
        ["It", "isn", "'t", '"', "so", ".", '"'],
        [5, 5, 2, 5, 0, 5, 5],
    )
    assert [row[:2] for row in found] == [[0, 4], [1, 4], [2, 1], [3, 4], [4, 4], [5, 4]]
    assert [row[2] for row in found] == [0, 0, 0, 1, 0, 1]
    assert lost == 0


def test_what_hangs_on_a_word_without_a_piece_of_its_own_hangs_on_that_piece():
    found, _ = table(["a", '."', " b"], ["a", ".", '"', "b"], [0, 1, 1, 3])
    assert found == [[0, 0, 0], [1, 0, 1], [2, 1, 0]]
    found, _ = table(["a", '."'], ["a", ".", '"'], [0, 3, 1])  # the first of the two hangs on the other
    assert found == [[0, 0, 0], [1, 0, 1]]


def test_an_emoji_of_several_pieces():
    thumb = "👍".encode()
    found, lost = table(
        [" Nice", b" " + thumb[:2], thumb[2:3], thumb[3:], " é", "!"], ["Nice", "👍", "é", "!"], [0, 1, 1, 1]
    )
    assert [row[:2] for row in found] == [[0, 0], [1, 0], [1, 0], [1, 0], [4, 0], [5, 0]]
    assert lost == 0
    assert [row[2] for row in found] == [0, 0, 0, 0, 0, 1]


def test_words_that_are_not_in_the_text_are_counted_and_their_pieces_have_none():
    found, lost = table(
        ["This", " \x08", "girl", " in", " red"], ["This", "girls", "in", "red"], [2, 0, 2, 3]
    )
    assert lost == 1
    assert [row[:2] for row in found] == [[0, 0], [-1, -1], [-1, -1], [3, 3], [4, 3]]


def test_a_lost_word_does_not_send_others_far_away():
    assert find_words("a b c d e f g h i in", ["x", "in"]) == [None, None]
    assert find_words("a in b", ["x", "in", "b"]) == [None, (2, 4), (4, 6)]


def test_pieces_that_were_cut_off_and_sentences_without_a_parse():
    assert annotate_pieces("a b c", [1, 2], ParsedText(["a", "b", "c"], [3, 1, 0]))[0].tolist() == [
        [0, 0, 0],
        [1, 0, 0],
    ]
    assert annotate_pieces("a b", [1, 2], None)[0].tolist() == [[-1, -1, 0]] * 2
    assert annotate_pieces("", [], ParsedText([], []))[0].shape == (0, 3)


@pytest.mark.parametrize("seed", range(30))
def test_against_a_search_through_every_byte(seed):
    """Words of random letters, spaces between some of them, the text cut anywhere."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("ab.é👍", k=rng.randint(1, 4))) for _ in range(rng.randint(1, 8))]
    text, word_at = "", []
    for number, word in enumerate(words):
        gap = rng.choice(["", " ", "  "])
        text += gap + word
        word_at += [number] * len((gap + word).encode())
    order = rng.sample(range(len(words)), len(words))
    heads = [0] * len(words)
    for place, number in enumerate(order[1:], start=1):
        heads[number] = rng.choice(order[:place]) + 1
    sizes, left = [], len(word_at)
    while left:
        sizes.append(rng.randint(1, min(4, left)))
        left -= sizes[-1]
    found, lost = annotate_pieces(text, sizes, ParsedText(words, heads))
    assert lost == 0
    owners, place = [], 0
    for size in sizes:
        owners.append(word_at[place : place + size])
        place += size
    first_owners = [inside[0] for inside in owners]

    def node(number):
        """The first piece of the word, or of the one that has its first piece."""
        if number in first_owners:
            return first_owners.index(number)
        piece = next(i for i, inside in enumerate(owners) if number in inside)
        return first_owners.index(first_owners[piece])

    for piece, number in enumerate(first_owners):
        here = node(number)
        merged = [w for w in range(len(words)) if node(w) == here]
        outside = [node(heads[w] - 1) for w in merged if heads[w] and node(heads[w] - 1) != here]
        assert found[piece].tolist() == [
            here,
            outside[0] if outside else here,
            int(set(words[number]) == {"."}),
        ]


def test_punctuation():
    assert all(map(is_punctuation, [".", "``", "$", "...", "—", "“", "<"]))
    assert not any(map(is_punctuation, ["a.", "3", "'s", "👍", "€"]))


def test_parses_are_read_and_flat_ones_are_none(tmp_path):
    lines = {
        "text": ["He isn't &amp; so.", "x y", ""],
        "tokens": ["He isn 't &amp;amp; so .", "x y", ""],
        "trees": ["(S (X He) (X isn) (X 't) (X &amp;amp;) (X so) (X .))", "(FLAT (X x) (X y))", "(FLAT)"],
        "heads": ["5 5 2 5 0 5", "0 1", ""],
    }
    for ending, column in lines.items():
        write_lines(tmp_path / f"1.{ending}", column)
    found = dict(read_parsed_texts([tmp_path / "1"]))
    assert found == {
        "He isn't &amp; so.": ParsedText(["He", "isn", "'t", "&amp;", "so", "."], [5, 5, 2, 5, 0, 5]),
        "x y": None,
        "": None,
    }
    for ending, wrong in (("heads", ["5 5", "0 1", ""]), ("text", ["x"]), ("heads", ["x", "0 1", ""])):
        write_lines(tmp_path / f"1.{ending}", wrong)
        with pytest.raises(
            UserError, match="1: text, tokens, trees and heads do not fit; parse the text again"
        ):
            list(read_parsed_texts([tmp_path / "1"]))

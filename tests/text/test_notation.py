import random

import pytest

import synmask.pipeline.training  # noqa: F401 - before fairseq

# isort: split
from fairseq.data import Dictionary
from hypothesis import given
from hypothesis import strategies as st

from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_lines, write_lines
from synmask.pipeline.syntax.tree import word_distances
from synmask.pipeline.text.bpe import BpeSplitter, learn_joint_bpe, read_frequent
from synmask.pipeline.text.notation import join_subwords, reserved_fault
from synmask.pipeline.training.binarise import binarise, encode_line
from synmask.pipeline.translation.inputs import encode_lines

NAMES = ["<s>", "<pad>", "</s>", "<unk>", "madeupword0000", "@@", "a@@", "x@@@@"]
PARTS = [*NAMES, "<", ">", "@", "a", "x", "&lt;", "<mask>", "wort"]
LINES = [" ".join(random.Random(n).choices([*PARTS, "a<pad>", "w@@x"], k=8)) for n in range(200)]


@pytest.fixture(scope="module")
def codes(tmp_path_factory):
    """Merges of a text in which each name occurs so often that it becomes one sub-word."""
    folder = tmp_path_factory.mktemp("reserved")
    write_lines(folder / "text", LINES)
    codes, [vocabulary] = learn_joint_bpe([folder / "text"], 500)
    write_lines(folder / "codes", codes)
    write_lines(folder / "vocabulary", vocabulary)
    return folder / "codes"


@pytest.fixture(scope="module")
def splitter(codes):
    return BpeSplitter(codes.read_text())


@given(st.lists(st.lists(st.sampled_from(PARTS), min_size=1, max_size=3).map("".join), max_size=6))
def test_no_word_is_lost_or_misread(splitter, words):
    pieces = splitter(" ".join(words)).split()
    assert reserved_fault(pieces) is None
    assert join_subwords(" ".join(pieces)) == " ".join(words)
    distances = [0.0] * (len(pieces) - 1)
    assert not words or len(word_distances(pieces, distances)[1]) == len(words)


def test_examples(splitter):
    message = "<pad> wort<pad> a<pad> madeupword0000 a@@ @@ <mask> wort"
    split = "<@@ pad> wor@@ t@@ <@@ pad> a<pad> m@@ adeupword0000 a@@@ @ @@@ @ <mask> wort"
    assert splitter(message) == split


@pytest.mark.parametrize("threshold", [None, 10])
def test_fairseqs_data_have_all_words(codes, tmp_path, threshold):
    for split in ("train", "valid"):
        for side in ("de", "en"):
            vocabulary = codes.with_name("vocabulary")
            splitter = BpeSplitter(
                codes.read_text(), read_frequent(vocabulary, threshold) if threshold else None
            )
            write_lines(tmp_path / f"{split}.{side}", map(splitter, LINES))
    binarise(text=tmp_path, output=tmp_path / "bin", source="de", target="en")
    dictionary = Dictionary.load(str(tmp_path / "bin/dict.de.txt"))
    for line, pieces in zip(LINES, read_lines(tmp_path / "train.de"), strict=True):
        ids = encode_line(pieces, dictionary)
        assert ids[:-1].min() >= dictionary.nspecial
        assert join_subwords(dictionary.string(ids)) == line


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        *((f"a {name} b", f"'{name}' is a symbol of fairseq's own") for name in NAMES[:5]),
        ("a b@@ ", "'b@@' at its end goes on in the next word, and there is none"),
    ],
)
def test_sub_words_of_a_user_that_would_be_misread_are_refused(line, fault):
    with pytest.raises(UserError) as error:
        encode_lines(["a@@ b", line], 100, Dictionary())
    assert str(error.value) == f"line 2: {fault}; give raw text to `synmask translate`"

import pytest

from synmask.pipeline.config.sections import SentencePiece
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_lines, write_lines
from synmask.pipeline.text.bpe import BpeSplitter, learn_joint_bpe, read_frequent
from synmask.pipeline.text.notation import join_subwords
from synmask.pipeline.training import subwords
from synmask.pipeline.training.binarise import binarise
from synmask.pipeline.training.subwords import write_subwords

TRAIN = {
    "de": ["der hund schläft", "die hunde schlafen", "der hund"],
    "en": ["the dog sleeps", "the dogs sleep", "the dog"],
}
PAIR = {"source": "de", "target": "en", "merges": 12, "vocabulary_threshold": 2}


@pytest.fixture
def pair(tmp_path):
    """A folder as `synmask text` leaves it."""
    for language, lines in TRAIN.items():
        write_lines(tmp_path / f"clean/train.{language}", lines)
        write_lines(tmp_path / f"tokens/valid.{language}", lines[:1])
        write_lines(tmp_path / f"tokens/test.{language}", [*lines[1:], "Zoë"])
    return tmp_path


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("threads", [1, 2])
def test_the_step_is_learning_splitting_and_binarising(pair, threads):
    write_subwords(input=pair, output=pair / "made", threads=threads, **PAIR)
    codes, clean = pair / "steps/bpe/codes", [pair / f"clean/train.{language}" for language in TRAIN]
    learned, vocabularies = learn_joint_bpe(clean, 12)
    write_lines(codes, learned)
    for language, lines in zip(TRAIN, vocabularies, strict=True):
        write_lines(pair / f"steps/bpe/vocabulary.{language}", lines)
    for text in (*clean, *pair.glob("tokens/*")):
        vocabulary = pair / f"steps/bpe/vocabulary{text.suffix}"
        splitter = BpeSplitter(codes.read_text(), read_frequent(vocabulary, 2))
        write_lines(pair / f"steps/bpe/{text.name}", map(splitter, read_lines(text)))
    binarise(text=pair / "steps/bpe", output=pair / "steps/bin", source="de", target="en")
    assert files(pair / "made") == files(pair / "steps")
    assert len(files(pair / "made")) == 19
    assert [*map(join_subwords, read_lines(pair / "made/bpe/test.en"))] == [
        "the dogs sleep",
        "the dog",
        "Zoë",
    ]


@pytest.mark.parametrize("name", ["valid.de", "test.en"])  # which are translated, or scored
def test_a_sentence_that_no_model_can_read_is_named(pair, monkeypatch, name):
    monkeypatch.setattr(subwords, "MAX_SUBWORDS", 20)
    long = " ".join("x" * 21)
    write_lines(pair / "clean/train.de", [*read_lines(pair / "clean/train.de"), long])  # is left out
    write_subwords(input=pair, output=pair, **PAIR)
    write_lines(pair / "tokens" / name, ["a", long])
    with pytest.raises(UserError, match=rf"tokens/{name}, line 2: 21 sub-words, a model reads 20"):
        write_subwords(input=pair, output=pair, **PAIR)


@pytest.mark.parametrize("kwargs", [{}, {"merges": 12, "sentencepiece": SentencePiece(vocab_size=50)}])
def test_sub_words_are_of_one_kind(pair, kwargs):
    with pytest.raises(UserError, match="give --merges, for BPE, or --sentencepiece"):
        write_subwords(input=pair, output=pair, source="de", target="en", **kwargs)

"""Sentencepiece's pieces in the notation of BPE, as a step and by a model's splitter."""

import pytest
from sentencepiece import SentencePieceProcessor

from synmask.pipeline.config.sections import SentencePiece
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_lines, write_lines
from synmask.pipeline.syntax.annotations import annotate_file
from synmask.pipeline.text.detokenise import detokenise
from synmask.pipeline.text.notation import join_subwords, to_words
from synmask.pipeline.text.spm import SentencePieceSplitter, model_in_codes
from synmask.pipeline.text.tokenise import tokenise
from synmask.pipeline.training import sentencepiece, subwords
from synmask.pipeline.training.binarise import read_binary, read_dictionary
from synmask.pipeline.training.subwords import write_subwords

NOUNS = {"ja": ("猫", "犬", "子供", "先生"), "en": ("cat", "dog", "child", "teacher", "garden")}
VERBS = {"ja": ("歩く", "見る", "聞く"), "en": ("walks", "sees", "hears")}
RAW = {
    "ja": [f"{a}は {b}と{c}。" for a in NOUNS["ja"] for b in NOUNS["ja"] for c in VERBS["ja"]],
    "en": [f"The {a} {c}, the {b} too." for a in NOUNS["en"] for b in NOUNS["en"] for c in VERBS["en"]],
}
ODD = ["plain", "龘 caf龘é x@@ <s> a@@b end@@", "<pad>", "<0xE9> <0xC3><0xA9>x", "a▁b ▁c d▁ ▁▁", "▁", "", "@@ madeupword0001 @"]  # fmt: skip
TOKENISERS = {"ja": "char", "en": "none"}
PAIR = {"source": "ja", "target": "en", "tokenisers": ("char", "none")}


@pytest.fixture
def pair(tmp_path):
    """A folder as `synmask text` leaves it."""
    for language, lines in RAW.items():
        for path, more in (("clean/train", []), ("tokens/valid", []), ("tokens/test", ODD)):
            write_lines(tmp_path / f"{path}.{language}", tokens([*lines, *more], language))
    return tmp_path


def tokens(lines, language):
    return [*tokenise(lines, language, tokeniser=TOKENISERS[language])]


def splitter(folder, language):
    [codes] = read_lines(folder / "bpe/codes")
    return SentencePieceSplitter(model_in_codes(codes, language), TOKENISERS[language])


@pytest.mark.parametrize(
    "settings",
    [
        {"vocab_size": 50},
        {"vocab_size": 60, "model_type": "bpe", "shared": False},
        {"vocab_size": 295, "byte_fallback": True, "character_coverage": 0.98},
    ],
)
def test_any_text_comes_back_and_pieces_are_the_library_s(pair, settings):
    write_subwords(input=pair, output=pair, sentencepiece=SentencePiece(**settings), **PAIR)
    [codes] = read_lines(pair / "bpe/codes")
    assert (model_in_codes(codes, "ja") == model_in_codes(codes, "en")) == settings.get("shared", True)
    for language, raw in RAW.items():
        ours, theirs = (
            splitter(pair, language),
            SentencePieceProcessor(model_proto=model_in_codes(codes, language)),
        )
        split = [*read_lines(pair / f"bpe/test.{language}")]
        for line, pieces in zip(raw, split, strict=False):
            assert [ours.symbols.get(symbol, symbol.removesuffix("@@")) for symbol in pieces.split()] == theirs.encode(line, out_type=str)  # fmt: skip
        spelled = [*map(ours.as_bpe, split)]
        assert [len(line.split()) for line in spelled] == [len(line.split()) for line in split]
        back = detokenise(map(join_subwords, spelled), language, TOKENISERS[language])
        expected = [
            *raw,
            *(" ".join(line.replace("▁", " ").split()) if language == "ja" else line for line in ODD),
        ]
        assert [line.strip() for line in back] == expected
        known = [line.split(" ")[0] for line in read_lines(pair / f"bpe/vocabulary.{language}")]
        dictionary = read_dictionary(pair / f"bin/dict.{language}.txt")
        assert {*known} == {*dictionary.symbols[4:]} - {f"madeupword{n:04}" for n in range(8)}
        assert {*known} <= ours.symbols.keys()
        assert len(known) <= settings["vocab_size"]
        train = [*read_lines(pair / f"bpe/train.{language}")]
        data = read_binary(pair / f"bin/train.ja-en.{language}", dictionary)
        assert [dictionary.string(ids, escape_unk=True) for ids in data] == [
            " ".join(symbol if symbol in known else "<<unk>>" for symbol in line.split()) for line in train
        ]


def test_a_piece_inside_a_word_is_marked_and_words_of_a_text_without_spaces_are_its_pieces(pair):
    write_subwords(input=pair, output=pair, sentencepiece=SentencePiece(vocab_size=50), **PAIR)
    line = splitter(pair, "en")("The xT walks, walks")
    assert to_words(splitter(pair, "en").as_bpe(line).split()) == ["The", "xT", "walks,", "walks"]
    assert all(symbol.endswith("@@") for symbol in splitter(pair, "en")("xqz").split()[:-1])
    ours = splitter(pair, "ja")("猫 は 犬 と 歩 く 。 ▁ 犬")
    assert "@@" not in ours
    assert "".join(ours.split()).replace("▁", " ").strip() == "猫は犬と歩く。 犬"


def test_a_parser_s_words_are_found_in_pieces(pair):
    text = ["The xT walks", *RAW["en"]]
    write_lines(pair / "tokens/test.en", text)
    write_subwords(input=pair, output=pair, sentencepiece=SentencePiece(vocab_size=50), **PAIR)
    write_lines(pair / "trees", (f"(S {' '.join(f'(X {word})' for word in line.split())})" for line in text))
    paths = {"subwords": pair / "bpe/test.en", "trees": pair / "trees", "output": pair / "a.npy"}
    kwargs = {"language": "en", "tokeniser": "none"}
    counts = annotate_file(**paths, codes=pair / "bpe/codes", **kwargs)
    assert counts == {"sentences": len(text), "without_heads": len(text), "without_distances": 0}
    assert "▁" in next(read_lines(pair / "bpe/test.en")).split()
    with pytest.raises(UserError, match=r"test\.en, line 1: word 2 "):
        annotate_file(**paths)
    with pytest.raises(UserError, match=r"train\.en: no sentencepiece model of en .*; give bpe/codes"):
        annotate_file(**paths, codes=pair / "clean/train.en", **kwargs)


def test_an_unknown_piece_s_word_ends_with_it():
    trained = sentencepiece._train_model(RAW["en"], "text", SentencePiece(vocab_size=28))
    assert (
        join_subwords(SentencePieceSplitter(trained, "none").as_bpe("<unk> ▁ T@@ h@@ e@@ ▁ x@@"))
        == "<unk> The x"
    )


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (8000, r"train\.ja, .*train\.en: .*vocab_size 8000 is more .* the largest is (\d+)$"),
        (5, r"the least is (\d+)$"),
    ],
)
def test_a_vocabulary_that_does_not_fit_is_refused_with_one_that_does(pair, size, message):
    with pytest.raises(UserError, match=message) as error:
        write_subwords(input=pair, output=pair, sentencepiece=SentencePiece(vocab_size=size), **PAIR)
    assert not (pair / "bpe").exists()
    write_subwords(input=pair, output=pair, sentencepiece=SentencePiece(vocab_size=int(error.value.args[0].split()[-1])), **PAIR)  # fmt: skip


@pytest.mark.parametrize("shared", [True, False])
def test_an_empty_side_is_refused(pair, shared):
    write_lines(pair / "clean/train.en", [""])
    with pytest.raises(UserError, match=r"train\.en: no sentence in it"):
        write_subwords(
            input=pair, output=pair, sentencepiece=SentencePiece(vocab_size=20, shared=shared), **PAIR
        )


def test_characters_outside_the_model_are_counted_and_long_sentences_refused(pair, capsys, monkeypatch):
    write_lines(pair / "clean/train.en", [*RAW["en"] * 9, "The ☃ sees ☃."])
    write_subwords(input=pair, output=pair, sentencepiece=SentencePiece(vocab_size=50), **PAIR)
    assert "train.en: 2 pieces are unknown to the model, such as '☃'; raise" in capsys.readouterr().err
    monkeypatch.setattr(subwords, "MAX_SUBWORDS", 20)
    write_lines(pair / "tokens/valid.ja", [" ".join("猫" * 4), " ".join("猫" * 30)])
    with pytest.raises(UserError, match=r"tokens/valid\.ja, line 2: \d+ sub-words, a model reads 20"):
        write_subwords(input=pair, output=pair, sentencepiece=SentencePiece(vocab_size=50), **PAIR)


def test_large_text_is_thinned(pair, monkeypatch):
    seen = []
    monkeypatch.setattr(sentencepiece, "_train_model", lambda lines, *_: seen.extend(lines) or b"")
    monkeypatch.setattr(sentencepiece, "MAX_SENTENCES_READ", 50)
    sentencepiece._learn_models({"en": pair / "clean/train.en"}, TOKENISERS, SentencePiece())
    assert seen == RAW["en"][::2]

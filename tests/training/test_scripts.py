"""Text of each script, by each tokeniser that it may take: raw files → tokens, sub-words, fairseq's data, and back."""

import random

import pytest

from synmask.pipeline.config.sections import Corpus, Text
from synmask.pipeline.corpora.pair import write_text
from synmask.pipeline.files import read_lines
from synmask.pipeline.text.detokenise import detokenise
from synmask.pipeline.text.notation import join_subwords
from synmask.pipeline.training.subwords import write_subwords

# Subjects, objects and verbs in the order of the sentence, and what stands between and after words.
SCRIPTS = {
    "ar": (["الطبيب", "المعلمة", "الولد"], ["يرى", "تحب", "يسمع"], ["الكتاب", "المدينة", "البحر"], " ", "."),
    "fa": (["پزشک", "معلم", "کودک"], ["کتاب را", "شهر را", "دریا را"], ["می‌بیند", "می‌شنود", "دارد"], " ", "."),
    "he": (["הרופא", "המורה", "הילד"], ["רואה", "אוהב", "שומע"], ["ספר", "עיר", "ים"], " ", "."),
    "hi": (["डॉक्टर", "शिक्षक", "बच्चा"], ["किताब", "शहर", "समुद्र"], ["देखता है", "सुनता है", "चाहता है"], " ", " ।"),
    "ru": (["Врач", "Учитель", "Ребёнок"], ["видит", "любит", "слышит"], ["книгу", "город", "море"], " ", "."),
    "ja": (["医者は", "先生は", "子供は"], ["本を", "町を", "海を"], ["見る", "愛する", "聞く"], "", "。"),
    "zh": (["医生", "老师", "孩子"], ["看见", "喜欢", "听到"], ["这本书", "城市", "大海"], "", "。"),
    "th": (["หมอ", "ครู", "เด็ก"], ["เห็น", "รัก", "ได้ยิน"], ["หนังสือ", "เมือง", "ทะเล"], "", " ครับ"),
}  # fmt: skip
DEFAULTS = dict.fromkeys(("ar", "fa", "he", "hi", "ru"), "moses") | {"ja": "mecab", "zh": "icu", "th": "icu"}
# Moses' script makes tokens of its own of Persian's zero-width non-joiners and Hindi's viramas.
LOSSY = {"fa", "hi"}
ENGLISH = (["The doctor", "The teacher", "The child"], ["sees", "loves", "hears"], ["a book", "a town", "a sea"], " ", ".")  # fmt: skip


def sentences(parts, count, seed=1):
    *words, between, end = parts
    rng = random.Random(seed)
    return [between.join(map(rng.choice, words)) + end for _ in range(count)]


@pytest.mark.parametrize(
    ("language", "tokeniser"),
    [*((code, None) for code in SCRIPTS), ("ja", "icu"), ("th", "char"), ("ar", "char"), ("he", "none")],
)
def test_text_of_each_script_becomes_subwords_and_comes_back(language, tokeniser, tmp_path):
    files = dict.fromkeys(("train", "valid", "test"), "x.{language}")
    corpus = Corpus(languages=[language, "en"], files=files, text={"max_ratio": 6})
    used = tokeniser or corpus.text.tokeniser_of(language)
    assert tokeniser or used == DEFAULTS[language]
    raw = {}
    for code, parts in ((language, SCRIPTS[language]), ("en", ENGLISH)):
        raw[code] = [tmp_path / f"{split}.{code}" for split in ("train", "valid", "test")]
        for path in raw[code]:
            path.write_text("".join(f"{line}\n" for line in sentences(parts, 60)), encoding="utf-8")
    settings = Text(tokeniser={language: used, "en": "moses"}, max_ratio=6)
    sides = {"source": language, "target": "en"}
    fates = write_text(
        name="mine", **sides, splits=("train", "valid", "test"), source_in=raw[language], target_in=raw["en"],
        output=tmp_path, settings=settings,
    )  # fmt: skip
    assert fates["kept"] == 60
    tokens = [*read_lines(tmp_path / f"tokens/test.{language}")]
    assert all(3 <= len(line.split()) <= 30 for line in tokens)  # words, not whole sentences
    write_subwords(input=tmp_path, **sides, merges=30, output=tmp_path)
    pieces = [*read_lines(tmp_path / f"bpe/test.{language}")]
    assert [*map(join_subwords, pieces)] == tokens
    assert any("@@" in line for line in pieces) != (tokeniser == "char" and language == "ar")
    back = [*detokenise(tokens, language, used)] == [*read_lines(raw[language][2])]
    assert back == (language not in LOSSY)
    assert (tmp_path / f"bin/train.{language}-en.{language}.bin").stat().st_size > 0

"""BLEU and chrF against their definitions, on texts small enough to count by hand."""

import math

import pytest

from synmask.evaluation.bleu import score
from synmask.files import UserError


@pytest.fixture
def files(tmp_path):
    """Writes the four files of `score`; the tokenised ones default to the others."""

    def write(hypothesis, reference, hypothesis_tok=None, reference_tok=None):
        texts = [hypothesis, reference, hypothesis_tok or hypothesis, reference_tok or reference]
        paths = [tmp_path / name for name in ("hyp", "ref", "hyp.tok", "ref.tok")]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text, encoding="utf-8")
        return paths

    return write


def test_bleu_counted_by_hand(files):
    # 13a splits the full stop off: 7 tokens each, one wrong
    paths = files("a b c d x f.\n", "a b c d e f.\n", "a b c d e.\n", "a b c d e.\n")
    result = score(*paths)
    # n-grams right: 6 of 7, 4 of 6, 2 of 5, 1 of 4
    precisions = [6 / 7, 4 / 6, 2 / 5, 1 / 4]
    expected = 100 * math.exp(sum(map(math.log, precisions)) / 4)
    assert result["scores"]["sacrebleu"] == pytest.approx(expected)
    assert result["scores"]["bleu_tokenised"] == pytest.approx(100)
    assert 0 < result["scores"]["chrf"] < 100


def test_short_hypotheses_pay_the_brevity_penalty(files):
    result = score(*files("a b c d\n", "a b c d e f\n"))
    assert result["scores"]["bleu_tokenised"] == pytest.approx(100 * math.exp(1 - 6 / 4))


def test_tokenised_bleu_keeps_the_tokens_as_they_are(files):
    result = score(*files("a b. c d\ny\n", "a b . c d\ny\n", "a b. c d\ny\n", "a b . c d\ny\n"))
    assert result["scores"]["sacrebleu"] == pytest.approx(100)
    assert result["scores"]["bleu_tokenised"] < 60


@pytest.mark.parametrize(("language", "tokeniser"), [("de", "13a"), ("zh", "zh"), ("ja", "ja-mecab")])
def test_the_target_language_decides_how_sacrebleu_tokenises(files, language, tokeniser):
    result = score(*files("名前はまだ無い。\n", "名前はまだ無い 。\n"), language=language)
    assert f"tok:{tokeniser}" in result["signatures"]["sacrebleu"]
    assert (result["scores"]["sacrebleu"] > 99) == (language != "de")


def test_signatures_are_text_and_name_tokeniser_and_case(files):
    paths = files("The Dog saw It .\n", "the dog saw it .\n")
    cased, lower = score(*paths), score(*paths, lowercase=True)
    assert cased["signatures"].keys() == cased["scores"].keys() == {"sacrebleu", "bleu_tokenised", "chrf"}
    assert "tok:13a" in cased["signatures"]["sacrebleu"]
    assert "tok:none" in cased["signatures"]["bleu_tokenised"]
    assert cased["signatures"]["chrf"].startswith("nrefs:1|case:mixed")
    assert all("case:mixed" in signature for signature in cased["signatures"].values())
    assert all("case:lc" in signature for signature in lower["signatures"].values())
    assert max(cased["scores"].values()) < 60
    assert lower["scores"] == pytest.approx({"sacrebleu": 100, "bleu_tokenised": 100, "chrf": 100})


def test_an_untrained_system_that_says_nothing_gets_zero(files):
    assert score(*files("\n\n", "a b\nc d\n"))["scores"]["sacrebleu"] == 0


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("", "a\n"), "hyp: empty"),
        (("a\n", ""), "ref: empty"),
        (("a\n", " \n"), "ref: only blank"),
        (("a\nb\n", "a\n"), "hyp has 2 lines, .*ref 1"),
        (("a\n", "a\n", "a\nb\n", "a\n"), r"hyp\.tok has 2 lines, .*ref\.tok 1"),
        (("a\n", "a\n", "a\nb\n", "a\nb\n"), r"hyp\.tok has 2 lines, .*hyp 1"),
    ],
)
def test_files_that_do_not_fit_are_named(files, texts, message):
    paths = files(*texts)
    if "" in texts:
        paths[texts.index("")].write_text("")
    with pytest.raises(UserError, match=message):
        score(*paths)

"""BLEU and chrF against their definitions, on texts small enough to count by hand."""

import json
import math
from pathlib import Path
from unicodedata import normalize

import pytest
from sacrebleu.metrics import CHRF

from synmask.pipeline import cli, languages
from synmask.pipeline.errors import UserError
from synmask.pipeline.evaluation import bleu
from synmask.pipeline.evaluation.sentences import OF_SENTENCES, counts_of
from synmask.pipeline.reporting.score_text import score_texts


def score(*paths, language="en", **kwargs):
    texts = bleu.read_texts(*paths)
    return bleu.score(texts[:2], texts[2:], language=language, **kwargs)


@pytest.fixture
def files(tmp_path):
    """Writes the four files of `score_run`; the tokenised ones default to the others."""

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


def test_chrf_is_sacrebleu_s_however_many_lines_it_reads_at_once(monkeypatch):
    texts = ["ein Hund", "", "zwei Hunde rennen", "x", "y"], [["ein Hut", "z", "zwei rennen", "", "y y"]]
    theirs = CHRF()
    expected = theirs.corpus_score(*texts).score
    most = 0

    def note(self, references):
        nonlocal most
        most = max(most, len(references[0]))
        return keep(self, references)

    keep = CHRF._cache_references
    monkeypatch.setattr(CHRF, "_cache_references", note)
    monkeypatch.setattr(bleu, "CHUNK", 2)
    metric = bleu.ChrF()
    assert metric.corpus_score(*texts).score == expected
    assert most == 2
    assert str(metric.get_signature()) == str(theirs.get_signature())


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


@pytest.mark.parametrize(
    ("language", "tokeniser", "reference", "words", "hypotheses"),
    [
        (
            "zh",
            "zh",
            ["我们 提出 了 一种 新 的 方法 。", "结果 表明 该 方法 有效 ， 误差 很 小 。"],
            ["我们 提出 一种 新 方法 。", "结果 表明 方法 有效 ， 误差 小 。"],
            ["他们 有 一种 方法 。", "结果 是 该 误差 很 大 。"],
        ),
        (
            "ja",
            "ja-mecab",
            ["本研究 では 新しい 手法 を 提案 する 。", "その 結果 は 従来 の 方法 より 優れて いた 。"],
            ["本研究 では 手法 を 提案 した 。", "結果 は 従来 の 方法 より 優れて いる 。"],
            ["研究 の 手法 だ 。", "その 方法 は 従来 の 結果 より 良い 。"],
        ),
    ],
)
def test_table_and_test_tokenise_alike(tmp_path, language, tokeniser, reference, words, hypotheses):
    """Plain text has no spaces, so a tokeniser for Western languages would find next to nothing."""

    def write(name, lines):
        stem = tmp_path / name / "hypothesis.test"
        stem.parent.mkdir()
        for kind, text in (("txt", "\n".join(lines).replace(" ", "")), ("tok", "\n".join(lines))):
            Path(f"{stem}.{kind}").write_text(text + "\n", encoding="utf-8")
        Path(f"{stem}.json").write_text('{"decoding": {}}')
        Path(f"{stem}.forced.csv").write_text("log_probability,tokens\n" + "-1.5,3\n" * len(lines))
        run = {"direction": f"en-{language}", "settings": {}}
        (stem.parent / "train.json").write_text(json.dumps(run))
        return stem

    gold, ours, theirs = (
        write(*pair) for pair in (("reference", reference), ("ours", words), ("theirs", hypotheses))
    )

    def scored(stem):
        words = ["--splits", "test", "--references", f"{gold}.txt", "--reference-tokens", f"{gold}.tok"]
        cli.main(["score-run", "--run", str(stem.parent), *words])
        return json.loads((stem.parent / "scores.json").read_text())

    table, other = scored(ours), scored(theirs)
    for metric, tokenised in (("sacrebleu", tokeniser), ("bleu_tokenised", "none")):
        assert f"|tok:{tokenised}" in table["signatures"][metric]
        assert table["scores"]["test"][metric] - other["scores"]["test"][metric] > 5
        _, score = OF_SENTENCES[metric]
        for name, scores in ((ours, table), (theirs, other)):
            sums = counts_of(name.with_name("sentences.csv"), metric).sum(axis=0)
            assert score(sums) == pytest.approx(scores["scores"]["test"][metric])


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
        (("", "a\n"), "hyp, .*ref: 0 lines against 1; give one"),
        (("a\n", ""), "hyp, .*ref: 1 line against 0"),
        (("a\n", " \n"), "ref: only blank"),
        (("a\nb\n", "a\n"), "hyp, .*ref: 2 lines against 1"),
        (("a\n", "a\n", "a\nb\n", "a\n"), r"hyp, .*hyp\.tok: 1 line against 2"),
        (("a\n", "a\n", "a\nb\n", "a\nb\n"), r"hyp, .*hyp\.tok: 1 line against 2"),
    ],
)
def test_files_that_do_not_fit_are_named(files, texts, message):
    paths = files(*texts)
    if "" in texts:
        paths[texts.index("")].write_text("")
    with pytest.raises(UserError, match=message):
        score(*paths)


def test_plain_texts_are_scored_as_their_tokens_and_as_they_are(tmp_path):
    (tmp_path / "hyp").write_text("The dog barks, loudly.\nIt's A cat, isn't it?\n\n")
    (tmp_path / "ref").write_text("The dog barks, loudly!\nIt's a cat, isn't it?\nYes.\n")
    (tmp_path / "hyp.tok").write_text("The dog barks , loudly .\nIt &apos;s A cat , isn &apos;t it ?\n\n")
    (tmp_path / "ref.tok").write_text(
        "The dog barks , loudly !\nIt &apos;s a cat , isn &apos;t it ?\nYes .\n"
    )
    files = [tmp_path / name for name in ("hyp", "ref", "hyp.tok", "ref.tok")]
    for lowercase in (False, True):
        expected = score(*files, lowercase=lowercase)
        assert score_texts(*files[:2], language="en", lowercase=lowercase) == expected
    assert [*score_texts(*files[:2], language="zh")["scores"]] == ["sacrebleu", "chrf"]


def test_the_command_prints_a_row_per_metric(tmp_path, capsys):
    (tmp_path / "a").write_text("one two three four\n")
    cli.main(["score", str(tmp_path / "a"), str(tmp_path / "a"), "--language", "de"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[-2] for row in rows] == ["100.00"] * 3
    assert all(row[-1].startswith("nrefs:1|case:mixed|") for row in rows)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a"], 'Command "score" parameter REFERENCES requires an argument.'),
        (["a", "a", "a"], "unexpected: 'a'; see --help"),
        (["a", "a", "--splits", "x"], "Unknown option: --splits."),
        ([], 'Command "score" parameter HYPOTHESES requires an argument.'),
        (["a", "b"], "a, b: 1 line against 2; give one hypothesis per reference"),
        (["a", "gone"], "gone: no such file"),
        (["a", "c"], "a, c: 1 line against 0; give"),
        (["c", "c"], "c: empty; give"),
    ],
)
def test_texts_that_cannot_be_scored(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    for name, text in (("a", "x\n"), ("b", "x\ny\n"), ("c", "")):
        (tmp_path / name).write_text(text)
    with pytest.raises(SystemExit):
        cli.main(["score", *words])
    assert capsys.readouterr().err.startswith(f"synmask score: {message}")


def test_a_tokeniser_that_is_not_installed_is_one_line():
    with pytest.raises(UserError, match="language ko: sacreBLEU lacks its tokeniser; pip install"):
        bleu.bleu("sacrebleu", "ko")


@pytest.mark.parametrize(
    ("code", "tokeniser"),
    [
        *((code, "zh") for code in ("zho", "chi", "cmn", "yue", "zh_TW", "zh-Hans")),
        ("jpn", "ja-mecab"),
        ("deu", "13a"),
        ("pt_BR", "13a"),
    ],
)
def test_codes_of_one_language_have_one_tokeniser(code, tokeniser):
    metric = bleu.bleu("sacrebleu", code)
    metric.corpus_score(["我 喜欢 音乐 。"], [["我喜欢音乐。"]])
    assert f"|tok:{tokeniser}" in str(metric.get_signature())


def test_tokenised_bleu_is_left_out_where_words_have_no_spaces(files):
    hypothesis, reference, *_ = files("我 喜欢\n", "我喜欢\n")
    for code in ("zh", "zho", "zh-Hant", "jpn"):
        found = score_texts(hypothesis, reference, language=code)
        assert [*found["scores"]] == ["sacrebleu", "chrf"]


def test_a_language_that_sacrebleu_cannot_split_is_reported_once(capsys):
    languages.print_note.cache_clear()
    for _ in range(2):
        bleu.bleu("sacrebleu", "tha")
    assert capsys.readouterr().err == (
        "note: tha (Thai): sacreBLEU has no tokeniser for it, so BLEU counts whole phrases as words; see chrF\n"
    )


def test_another_unicode_form_is_reported(tmp_path, capsys):
    plain = "Die Tür knarrt über Nacht.\nÄ\n"
    (tmp_path / "nfc").write_text(plain, encoding="utf-8")
    (tmp_path / "nfd").write_text(normalize("NFD", plain), encoding="utf-8")
    for hypothesis, message in (("nfd", "2 lines have words in another Unicode form"), ("nfc", "")):
        languages.print_note.cache_clear()
        bleu.read_texts(tmp_path / hypothesis, tmp_path / "nfc")
        err = capsys.readouterr().err
        assert message in err
        assert bool(err) == bool(message)

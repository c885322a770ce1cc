"""Translation scores by sacreBLEU, each with its signature."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sacrebleu.metrics import BLEU, CHRF

from synmask.files import UserError, read_aligned, read_lines

COUNTS = [*(f"matches_{n}" for n in range(1, 5)), *(f"ngrams_{n}" for n in range(1, 5)), "words", "reference"]
SOURCE = ["source_words", "split_words"]


def bleu(metric: str, language: str, *, lowercase: bool = False) -> BLEU:
    """sacreBLEU as all scores, tests of significance and figures use it.

    Args:
        metric: "sacrebleu" for plain text, or "bleu_tokenised" for tokens, used as they are.
        language: the target's; it selects sacreBLEU's tokeniser: zh for Chinese, MeCab for Japanese, or 13a.
        lowercase: compare without case.
    """
    if metric == "bleu_tokenised":
        return BLEU(lowercase=lowercase, tokenize="none", force=True)
    return BLEU(lowercase=lowercase, trg_lang=language)


def bleu_of_counts(sums: np.ndarray) -> np.ndarray:
    """Sums of `COUNTS` (..., 10) over the sentences of texts → their scores (...).

    These are `BLEU.compute_bleu`'s, with the smoothing of `bleu`: the k-th order without a match has 1/2^k
    matches. sacreBLEU computes one score at a time, a bootstrap needs ten thousands.
    """
    matches, ngrams, words, reference = sums[..., :4], sums[..., 4:8], sums[..., 8], sums[..., 9]
    smoothed = np.where(matches > 0, matches, 0.5 ** np.cumsum(matches == 0, axis=-1))
    with np.errstate(divide="ignore", invalid="ignore"):  # texts without n-grams or words score 0
        precision = np.exp(np.log(np.where(ngrams > 0, smoothed / ngrams, 0)).mean(axis=-1))
        scores = 100 * precision * np.exp(np.minimum(0, 1 - reference / words))
    return np.where(matches.any(axis=-1), scores, 0)


def score(
    hypothesis_detok: str | Path,
    reference_raw: str | Path,
    hypothesis_tok: str | Path,
    reference_tok: str | Path,
    *,
    language: str,
    lowercase: bool = False,
) -> dict[str, dict[str, Any]]:
    """Score a translated test set; all four files have one sentence per line, and equally many lines.

    Args:
        hypothesis_detok: the detokenised hypotheses, for sacreBLEU and chrF2.
        reference_raw: the references as the corpus gives them.
        hypothesis_tok, reference_tok: both tokenised, without sub-words, for tokenised BLEU (the paper's).
        language: the target's (see `bleu`).
        lowercase: the corpus is lower-cased, so compare in lower case; the signatures say case:lc.
    Returns:
        {"scores": {"sacrebleu", "bleu_tokenised", "chrf"}, all 0-100, "signatures": the same keys}.
    Raises:
        UserError: a file is empty, or the line counts differ.
    """
    detok, raw = _read_pair(hypothesis_detok, reference_raw)
    tok, tok_reference = _read_pair(hypothesis_tok, reference_tok)
    if len(tok) != len(detok):
        raise UserError(
            f"{hypothesis_tok} has {len(tok)} lines, {hypothesis_detok} {len(detok)}; "
            "give the same hypotheses, tokenised and detokenised"
        )
    return _scores((detok, raw), (tok, tok_reference), language=language, lowercase=lowercase)


def sentence_counts(
    hypothesis: str | Path, reference: Path, source: Path, *, language: str, lowercase: bool = False
) -> Iterator[list[int]]:
    """Yield `COUNTS` (sacreBLEU's) and `SOURCE` of each test sentence.

    Args:
        hypothesis, reference: detokenised hypotheses and raw references, as for `score`.
        source: the source sentences in BPE.
        language, lowercase: as for `bleu`.
    Raises:
        UserError: the files do not have the same number of lines, or none.
    """
    sides = read_aligned((hypothesis, reference, source), "decode the test set again")
    metric = bleu("sacrebleu", language, lowercase=lowercase)
    metric.effective_order = True  # does not affect counts; avoids a warning per sentence
    for line, expected, tokens in zip(*sides, strict=True):
        found = metric.sentence_score(line, [expected])
        words = (tokens + " ").replace("@@ ", "@@").split()
        split = sum("@@" in word for word in words)
        yield [*found.counts, *found.totals, found.sys_len, found.ref_len, len(words), split]


def score_texts(
    hypotheses: Path, references: Path, *, language: str, lowercase: bool = False
) -> dict[str, dict[str, Any]]:
    """Score plain translations, one sentence per line, as `score` does.

    For tokenised BLEU, Moses' tokeniser tokenises both texts; it is left out for languages without spaces
    between words (zh, ja).

    Raises:
        UserError: a file is missing, empty or not UTF-8, or the line counts differ.
    """
    from synmask.text.tokenise import tokenise  # imported here: the workflow's scores do not depend on it

    plain = _read_pair(hypotheses, references)
    tokens = None
    if language not in ("zh", "ja"):
        tokens = tuple([*tokenise(lines, language)] for lines in plain)
    return _scores(plain, tokens, language=language, lowercase=lowercase)


def _scores(
    plain: tuple[list[str], list[str]],
    tokens: tuple[list[str], list[str]] | None,
    *,
    language: str,
    lowercase: bool,
) -> dict[str, dict[str, Any]]:
    """As `score`, of (hypotheses, references) in plain text and in tokens, if there are any."""
    metrics = {"sacrebleu": (bleu("sacrebleu", language, lowercase=lowercase), *plain)}
    if tokens:
        metrics["bleu_tokenised"] = (bleu("bleu_tokenised", language, lowercase=lowercase), *tokens)
    metrics["chrf"] = (CHRF(lowercase=lowercase), *plain)
    scores: dict[str, float] = {}
    signatures: dict[str, str] = {}
    for name, (metric, hypotheses, references) in metrics.items():
        scores[name] = metric.corpus_score(hypotheses, [references]).score
        signatures[name] = str(metric.get_signature())
    return {"scores": scores, "signatures": signatures}


def _read_pair(hypothesis: str | Path, reference: str | Path) -> tuple[list[str], list[str]]:
    hypotheses, references = list(read_lines(hypothesis)), list(read_lines(reference))
    for path, lines in ((hypothesis, hypotheses), (reference, references)):
        if not lines:
            raise UserError(f"{path}: empty file; nothing to score")
    if not any(line.strip() for line in references):
        raise UserError(f"{reference}: only blank lines; give the reference translations")
    if len(hypotheses) != len(references):
        raise UserError(
            f"{hypothesis} has {len(hypotheses)} lines, {reference} {len(references)}; "
            "give one hypothesis per reference"
        )
    return hypotheses, references

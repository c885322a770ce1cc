"""Translation scores by sacreBLEU, each with its signature."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
from sacrebleu.metrics import BLEU, CHRF

from synmask.pipeline import languages
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_aligned

COUNTS = [*(f"matches_{n}" for n in range(1, 5)), *(f"ngrams_{n}" for n in range(1, 5)), "words", "reference"]
TOKENISED = [f"tokenised_{count}" for count in COUNTS]  # the same, of tokenised BLEU
Texts = tuple[list[str], list[str]]  # hypotheses and references, sentence by sentence
CHUNK = 1000  # lines


class ChrF(CHRF):
    """sacreBLEU's chrF, which would keep the n-grams of all references: 1.4 GB of 30,000 lines."""

    def _extract_corpus_statistics(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
    ) -> list[list[int]]:
        parts = (slice(start, start + CHUNK) for start in range(0, len(hypotheses), CHUNK))
        extract = super()._extract_corpus_statistics
        return [
            row for part in parts for row in extract(hypotheses[part], [lines[part] for lines in references])
        ]


def bleu(metric: str, language: str, *, lowercase: bool = False) -> BLEU:
    """sacreBLEU as all scores, tests of significance and figures use it.

    Args:
        metric: "sacrebleu" for plain text, or "bleu_tokenised" for tokens, used as they are.
        language: the target's; it selects sacreBLEU's tokeniser: zh for Chinese, MeCab for Japanese and
            Korean, or 13a. A note on stderr says if 13a cannot split the language.
        lowercase: compare without case.
    Raises:
        UserError: the tokeniser is not installed (Korean's).
    """
    if metric == "bleu_tokenised":
        return BLEU(lowercase=lowercase, tokenize="none", force=True)
    try:
        return BLEU(lowercase=lowercase, trg_lang=sacrebleu_code(language))
    except RuntimeError as error:
        needed = str(error).strip().splitlines()[-1].strip()  # pip install …
        raise UserError(f"language {language}: sacreBLEU lacks its tokeniser; {needed}") from None


def sacrebleu_code(language: str) -> str:
    """sacreBLEU's code of a language that has a tokeniser of its own: zho, yue → zh."""
    if code := languages.match_language(language, ("zh", "ja", "ko")):
        return code
    if (script := languages.script_of(language)) in languages.HAN:
        return "zh"
    if script in languages.WITHOUT_SPACES:
        fault = "sacreBLEU has no tokeniser for it, so BLEU counts whole phrases as words; see chrF"
        languages.print_note(f"{languages.describe_language(language)}: {fault}")
    return languages.base_language(language)


@cache
def words_of(language: str) -> Callable[[str], list[str]]:
    """The words of a line as sacreBLEU counts them; Chinese and Japanese ones have no spaces between them.

    Where its tokeniser is not installed (Korean's), words are those of 13a.
    """
    try:
        split = bleu("sacrebleu", language).tokenizer
    except UserError:
        split = bleu("sacrebleu", "en").tokenizer
    return lambda line: split(line).split()


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


def read_texts(*paths: str | Path) -> list[list[str]]:
    """Read translations and their references, perhaps plain and tokenised: one sentence per line.

    Args:
        paths: the second is plain references.
    Raises:
        UserError: a file is missing, empty or not UTF-8, the line counts differ, or all references are blank.
    """
    texts = read_aligned(paths, "give one hypothesis per reference")
    if not any(line.strip() for line in texts[1]):
        raise UserError(f"{paths[1]}: only blank lines; give the reference translations")
    if count := sum(map(_differ_in_form, texts[0], texts[1])):
        fault = f"{count:,} lines have words in another Unicode form, which count as other words"
        languages.print_note(f"{paths[0]}, {paths[1]}: {fault}; write both in NFC (uconv -x nfc)")
    return texts


def _differ_in_form(line: str, other: str) -> bool:
    """Whether lines share words by Unicode's normal form only: "Tür" with two code points for ü, or one."""
    if line.isascii() or other.isascii():
        return False
    words, others = ({*text.split()} for text in (line, other))
    formed = {normalize("NFC", word) for word in others - words}
    return any(normalize("NFC", word) in formed for word in words - others)


def score(
    plain: Texts, tokens: Texts | None, *, language: str, lowercase: bool = False
) -> dict[str, dict[str, Any]]:
    """Score a translated set.

    Args:
        plain: detokenised hypotheses, and the references as the corpus gives them, for sacreBLEU and chrF2.
        tokens: both tokenised, without sub-words, for tokenised BLEU (the paper's); None: leave that out.
        language: the target's (see `bleu`).
        lowercase: the corpus is lower-cased, so compare in lower case; the signatures say case:lc.
    Returns:
        {"scores": {"sacrebleu", "bleu_tokenised", "chrf"}, all 0-100, "signatures": the same keys}.
    """
    metrics = {"sacrebleu": (bleu("sacrebleu", language, lowercase=lowercase), *plain)}
    if tokens:
        metrics["bleu_tokenised"] = (bleu("bleu_tokenised", language, lowercase=lowercase), *tokens)
    metrics["chrf"] = (ChrF(lowercase=lowercase), *plain)
    scores: dict[str, float] = {}
    signatures: dict[str, str] = {}
    for name, (metric, hypotheses, references) in metrics.items():
        scores[name] = metric.corpus_score(hypotheses, [references]).score
        signatures[name] = str(metric.get_signature())
    return {"scores": scores, "signatures": signatures}


def sentence_counts(
    metric: str,
    hypotheses: Sequence[str],
    references: Sequence[str],
    language: str,
    *,
    lowercase: bool = False,
) -> tuple[np.ndarray, str]:
    """(N, 10) `COUNTS` of each sentence, and the metric's signature; arguments as for `bleu`."""
    counter = bleu(metric, language, lowercase=lowercase)
    counter.effective_order = True  # does not affect counts; avoids a warning per sentence
    pairs = zip(hypotheses, references, strict=True)
    scores = [counter.sentence_score(line, [expected]) for line, expected in pairs]
    counts = [[*score.counts, *score.totals, score.sys_len, score.ref_len] for score in scores]
    counter.effective_order = False  # for the signature
    return np.array(counts), str(counter.get_signature())

"""The scores of translations as lines for the terminal."""

from pathlib import Path
from typing import Any

from synmask.pipeline.arguments import Lowercase
from synmask.pipeline.config.base import Language
from synmask.pipeline.evaluation import bleu
from synmask.pipeline.reporting.metrics import METRICS
from synmask.pipeline.text.tokenise import tokenise


def score(
    hypotheses: Path, references: Path, /, *, language: Language = "en", lowercase: Lowercase = False
) -> None:
    """Score translations: sacreBLEU, chrF and tokenised BLEU, each with its signature.

    For example: `synmask score hypotheses.txt references.txt --language en`. For tokenised BLEU, Moses' rules
    tokenise both (not in zh and ja).

    Args:
        hypotheses: Translations, plain text, one sentence per line.
        references: Reference translations of the same sentences.
        language: Their language code (ISO 639, perhaps with a script or region: pt_BR); Chinese, Japanese and
            Korean have tokenisers of their own.
    """
    result = score_texts(hypotheses, references, language=language, lowercase=lowercase)
    width = max(len(METRICS[name].label) for name in result["scores"])
    for name, value in result["scores"].items():
        print(f"{METRICS[name].label:<{width}}  {value:6.2f}  {result['signatures'][name]}")


def score_texts(
    hypotheses: Path, references: Path, *, language: str, lowercase: bool = False
) -> dict[str, dict[str, Any]]:
    """Score plain translations, one sentence per line, as `bleu.score` does.

    For tokenised BLEU, Moses' tokeniser tokenises both texts; it is left out for languages without spaces
    between words (Chinese, Japanese).

    Raises:
        UserError: a file is missing, empty or not UTF-8, or the line counts differ.
    """
    plain = tuple(bleu.read_texts(hypotheses, references))
    tokens = None
    if bleu.sacrebleu_code(language) not in ("zh", "ja"):
        tokens = tuple([*tokenise(lines, language)] for lines in plain)
    return bleu.score(plain, tokens, language=language, lowercase=lowercase)

"""Scores of predicted templates of the target (ST-NMT)."""

from pathlib import Path
from typing import Any

from synmask.pipeline.evaluation.bleu import bleu
from synmask.pipeline.files import UserError, read_pairs
from synmask.pipeline.text.bpe import join_subwords


def score_templates(predicted: Path, gold: Path, language: str) -> dict[str, Any]:
    """Score predicted templates if there is a gold one; both files are in BPE, one template per line.

    Returns:
        {"scores": {"bleu_tokenised" of words and labels, "exact": share of templates that match, both
        0-100}, "signatures", "sentences": number of scored templates}.
    Raises:
        UserError: the files differ in length, or there is no gold template.
    """
    pairs = [(join_subwords(ours), join_subwords(theirs)) for ours, theirs in read_pairs(predicted, gold)]
    pairs = [(ours, theirs) for ours, theirs in pairs if theirs]
    if not pairs:
        raise UserError(f"{gold}: no template in it; parse the text again")
    metric = bleu("bleu_tokenised", language)
    scores = {
        "bleu_tokenised": metric.corpus_score(
            [ours for ours, _ in pairs], [[theirs for _, theirs in pairs]]
        ).score,
        "exact": 100 * sum(ours == theirs for ours, theirs in pairs) / len(pairs),
    }
    signatures = {"bleu_tokenised": str(metric.get_signature())}
    return {"scores": scores, "signatures": signatures, "sentences": len(pairs)}

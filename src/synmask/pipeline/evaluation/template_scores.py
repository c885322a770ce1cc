"""Scores of predicted templates of the target (ST-NMT)."""

from pathlib import Path
from typing import Any

from synmask.pipeline.config.run_info import TranslationInfo
from synmask.pipeline.evaluation.bleu import bleu
from synmask.pipeline.evaluation.records import by_split, of_run
from synmask.pipeline.files import UserError, read_pairs, write_json
from synmask.pipeline.options import Json, Some, TrainJson, together
from synmask.pipeline.text.bpe import join_subwords


def score_splits(
    *,
    splits: Some[str],
    predicted: Some[Path],
    gold: Some[Path],
    run: Json[TranslationInfo],
    train: TrainJson,
    output: Path,
) -> None:
    """Score predicted templates: BLEU on words and labels, and the share of exact matches.

    Args:
        splits: Names of the splits, such as valid and test.
        predicted: Output of `predict-templates` for each.
        gold: Output of `templates` for each.
        run: The run: corpus, direction, system, seed, settings.
        output: scores.json.
    """
    parts = together(splits=splits, predicted=predicted, gold=gold)
    found = {split: score_templates(ours, theirs, run.target) for split, ours, theirs in parts}
    write_json(output, of_run(run, train, by_split(found)))


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

"""Answers to a test set, by the seed that is best on the development set."""

from pathlib import Path

from synmask.pipeline.evaluation.submission import best_seed
from synmask.pipeline.files import all_writing, json_text
from synmask.pipeline.options import BY_HAND, Identity, Some, TaskName, Threads, on_gpus, together
from synmask.pipeline.roberta.finetune import predictions


@on_gpus
def predict_test(
    *,
    task: TaskName,
    valid: str,
    models: Some[Path],
    scores: Some[Path],
    weights: Path,
    data: Path,
    output: Path,
    chosen: Path,
    threads: Threads = 1,
    identity: Identity = BY_HAND,
) -> None:
    """Predict the answers to a test set with the seed that is best on the development set.

    Args:
        valid: The part that chooses.
        models: best.pt of each seed.
        scores: scores.json of each seed.
        weights: The weights that their training started from.
        data: PART.npz.
        output: Text, one line per example.
        chosen: Output: the seed, and the scores of all, as JSON.
    """
    runs = together(models=models, scores=scores)
    best = best_seed(task, valid, [path for _, path in runs])
    whose = identity | {"seed": best["seed"]} if identity else identity
    lines = predictions(models[best.pop("place")], weights, data, threads, whose)
    with all_writing([output, chosen]) as (answers, said):
        answers.writelines(f"{line}\n" for line in lines)
        said.write(json_text(best))

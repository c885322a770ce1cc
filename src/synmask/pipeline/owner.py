"""Whose a model is: a model file carries its run, and a step of a run compares it with its own."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from synmask.pipeline.files import UserError, json_text
from synmask.pipeline.provenance import commit

# The parts of a run that a step compares. A model also carries the commit, which may differ: a step that
# comes later may be run by a later version whose changes do not concern the training.
COMPARED_KEYS = ("corpus", "direction", "task", "weights", "system", "seed", "settings", "start")


# Parts of a training's stamp that tell it from another one; later code may go on with it.
IDENTIFYING = ("settings", "seed", "data")


def training_digest(stamp: Mapping[str, Any]) -> str:
    """The mark that a run's train.json, model and hypotheses carry, so that none of them is another run's.

    Args:
        stamp: the training's, with settings, seed, and the checksum of its data.
    """
    parts = {part: stamp.get(part) for part in IDENTIFYING}
    return hashlib.sha256(json_text(parts).encode()).hexdigest()[:16]


def owned(run: Mapping[str, Any]) -> dict[str, Any]:
    """The run that a model carries beside its weights; nothing if it was made by hand, without a run."""
    return {"run": {**run, "commit": commit()}} if run else {}


def check_owner(path: Path, saved: Mapping[str, Any], run: Mapping[str, Any], *but: str) -> None:
    """Compare the run that a model file carries with the run that reads it.

    Args:
        path: of the model, for messages; `saved`: its contents.
        run: the run that reads it; by hand there is none, and any model is fine.
        but: parts of the run that are not compared.

    Raises:
        UserError: it is another run's, or does not say whose it is.
    """
    if not run:
        return
    advice = "move it away and run again to make this run's own"
    carried = saved.get("run")
    if not isinstance(carried, Mapping):
        raise UserError(f"{path}: does not say whose it is (made by hand, or by an older version); {advice}")
    for part in COMPARED_KEYS:
        if part in run and part not in but and carried.get(part) != run[part]:
            there, here = carried.get(part), run[part]
            if isinstance(there, Mapping) and isinstance(here, Mapping):
                there, here = first_difference(there, here)
            raise UserError(f"{path}: of another run ({part} {there}, here {here}); {advice}")


def first_difference(one: Any, other: Any, path: str = "") -> tuple[str, str]:
    """The first setting with different values, as "training.lr: 0.1" and "training.lr: 0.2"."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        key = next(key for key in sorted({*one, *other}) if one.get(key) != other.get(key))
        return first_difference(one.get(key), other.get(key), f"{path}.{key}")
    return f"{path[1:]}: {one}", f"{path[1:]}: {other}"


def check_start(folder: Path, saved: Mapping[str, Any], run: Mapping[str, Any]) -> None:
    """`check_owner` for the model.pt of the weights folder that the training of `run` starts from.

    Only weights that were trained here must be this run's: fetched ones carry none, or that of where they
    were trained.
    """
    start = run.get("start", {})
    if "settings" in start:
        check_owner(folder / "model.pt", saved, start)

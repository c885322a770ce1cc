"""Which run a model belongs to: a model file records its run, and a step compares that with its own run."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from synmask.pipeline.files import UserError, json_text
from synmask.pipeline.provenance import commit

# The parts of a run that a step compares. A model also records the commit, which may differ: later steps may
# run in a later version whose changes do not concern the training.
COMPARED_KEYS = ("corpus", "direction", "task", "weights", "system", "seed", "settings", "start")


# Parts of a stamp that identify a training; code is not one of them, since later code may resume it.
IDENTIFYING = ("settings", "seed", "data")


def training_digest(stamp: Mapping[str, Any]) -> str:
    """The digest that a run's train.json, model and hypotheses record, to detect files of another run.

    Args:
        stamp: the training's, with settings, seed, and the checksum of its data.
    """
    parts = {part: stamp.get(part) for part in IDENTIFYING}
    return hashlib.sha256(json_text(parts).encode()).hexdigest()[:16]


def owned(run: Mapping[str, Any]) -> dict[str, Any]:
    """The run recorded in a model file; empty if the model was made by hand, without a run."""
    return {"run": {**run, "commit": commit()}} if run else {}


def check_owner(path: Path, saved: Mapping[str, Any], run: Mapping[str, Any], *but: str) -> None:
    """Check that a model file belongs to the run that reads it.

    Args:
        path: of the model, for messages; `saved`: its contents.
        run: the run that reads it; empty for a call by hand, which takes any model.
        but: parts of the run that are not compared.

    Raises:
        UserError: it belongs to another run, or records none.
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

    Only weights that were trained here must belong to this run: fetched ones record none, or the run that
    trained them elsewhere.
    """
    start = run.get("start", {})
    if "settings" in start:
        check_owner(folder / "model.pt", saved, start)

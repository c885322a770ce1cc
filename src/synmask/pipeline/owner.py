"""The run that a file belongs to. Models, and the records beside other files, name it; later steps check it.

A record is a JSON file with the keys "run", "training" (`training_digest` of the model behind the files), and
"sha256": checksums of files beside it, by their names without the stem that they share with it ("txt" of
predictions.dev.txt in predictions.dev.json, "sentences.csv" in scores.json).
"""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from synmask.pipeline.files import UserError, json_text, read_object, text_sha256
from synmask.pipeline.paths import named_run
from synmask.pipeline.provenance import commit

# The parts of a run that a step compares. A model also records the commit, which may differ: later steps may
# run in a later version whose changes do not concern the training.
COMPARED_KEYS = ("corpus", "direction", "task", "weights", "system", "seed", "settings", "start")
NAMED_KEYS = ("corpus", "direction", "task", "system", "seed")  # the parts of a run that name it

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


def check_owner(path: Path, saved: Mapping[str, Any], run: Mapping[str, Any], *ignored: str) -> None:
    """Check that a model file belongs to the run that reads it.

    Args:
        path: of the model, for messages; `saved`: its contents.
        run: the run that reads it; empty for a call by hand, which takes any model.
        ignored: parts of the run that are not compared.

    Raises:
        UserError: it belongs to another run, or records none.
    """
    if not run:
        return
    advice = "move it away and run again to make this run's own"
    recorded = saved.get("run")
    if not isinstance(recorded, Mapping):
        raise UserError(f"{path}: names no run (made by hand, or by an older version); {advice}")
    for part in COMPARED_KEYS:
        if part in run and part not in ignored and recorded.get(part) != run[part]:
            there, here = recorded.get(part), run[part]
            if isinstance(there, Mapping) and isinstance(here, Mapping):
                there, here = first_difference(there, here)
            raise UserError(f"{path}: of another run ({part} {there}, here {here}); {advice}")


def named(run: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a run that name it."""
    return {key: run[key] for key in NAMED_KEYS if key in run}


def record(
    path: Path, run: Mapping[str, Any], training: str | None, texts: Mapping[Path, str]
) -> dict[str, Any]:
    """The keys of the record `path` of files with these texts."""
    return {"run": named(run), "training": training, "sha256": checksums(path, texts)}


def checksums(path: Path, texts: Mapping[Path, str]) -> dict[str, str]:
    """The value of "sha256" in the record `path` of files with these texts."""
    return {_name(part, path): hashlib.sha256(text.encode()).hexdigest() for part, text in texts.items()}


def _name(part: Path, path: Path) -> str:
    """The name of a file in the record `path`."""
    return part.name.removeprefix(f"{path.stem}.")


def read_record(
    path: Path,
    parts: Iterable[Path] = (),
    run: Mapping[str, Any] = MappingProxyType({}),
    train: Path | None = None,
) -> dict[str, Any]:
    """The rest of a record, after a check that all parts are of one run.

    Records of older versions and of steps by hand have fewer keys; what is missing is not checked.

    Args:
        parts: files that it has the checksums of; those that do not exist, or not beside it, do not count.
        run: the run that reads it; `train`: its train.json, which need not exist.

    Raises:
        UserError: no such file; it is another run's, or one of `parts` or `train` is.
    """
    rest = read_object(path)
    owner, training, sums = (rest.pop(key, None) for key in ("run", "training", "sha256"))
    if owner:
        check_owner(path, {"run": owner}, named(run))
    for part in parts:
        known = (sums or {}).get(_name(part, path)) if part.parent == path.parent else None
        if known and part.exists() and text_sha256(part) != known:
            raise UserError(f"{part}: not what {path.name} was written with; make both again")
    if train and train.exists():
        check_training(path, training, train, read_object(train).get("training"))
    return rest


def check_training(path: Path, training: str | None, other: Path, its: str | None) -> None:
    """Check that two files record the same training; those of older versions or made by hand record none."""
    if training and its and training != its:
        raise UserError(f"{other}: of another training than {path}; train again, or make that again")


def check_part(path: Path, run: Mapping[str, Any], train: Path | None = None) -> None:
    """`read_record` of the record of a file, NAME.json beside NAME.txt, if there is one."""
    if (beside := path.with_suffix(".json")).exists() and beside != path:
        read_record(beside, [path], run, train)


def first_difference(one: Any, other: Any, path: str = "") -> tuple[str, str]:
    """The first setting with different values, as "training.lr: 0.1" and "training.lr: 0.2"."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        key = next(key for key in sorted({*one, *other}) if one.get(key) != other.get(key))
        return first_difference(one.get(key), other.get(key), f"{path}.{key}")
    return f"{path[1:]}: {one}", f"{path[1:]}: {other}"


def weights_of(folder: Path) -> dict[str, Any]:
    """The weights in a folder, as the trainings that start from them record it ("start").

    Those that were trained here have a record with settings and seed; of others it is the name.
    """
    if not (path := folder / "train.json").exists():
        return named_run(folder)
    run = read_object(path)
    return {key: run[key] for key in ("weights", "seed", "settings", "start") if key in run}


def check_start(folder: Path, saved: Mapping[str, Any], run: Mapping[str, Any]) -> None:
    """`check_owner` for the model.pt of the weights folder that the training of `run` starts from.

    Fetched weights are not checked: they record no run, or one of another machine.
    """
    start = run.get("start", {})
    if "settings" in start:
        check_owner(folder / "model.pt", saved, start)

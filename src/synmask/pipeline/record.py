"""The record that a run keeps of itself, and the files that are a run's.

RUN/train.json, which a training writes, says which run it is (`RUN_KEYS`), on what it depends ("settings",
"seed", "data", "code", "start": the weights it started from), how it went, and "training", a digest of
settings, seed and data. Later steps read all this there. Models, and the records of other files, have the run
and the digest of their training; a step refuses files of another run or of another training.

The record of files is a JSON file beside them: "run", "training", and "sha256": checksums of these files, by
their names without the stem that they share with it ("txt" of predictions.dev.txt in predictions.dev.json,
"sentences.csv" in scores.json).
"""

import hashlib
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from synmask.pipeline.disk import text_sha256
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import json_text, read_object
from synmask.pipeline.paths import run_of_folder
from synmask.pipeline.provenance import commit, versions

RunRecord = Mapping[str, Any]  # the contents of a train.json
NO_RUN: RunRecord = MappingProxyType({})  # of files that were made by hand
RUN_KEYS = ("corpus", "direction", "task", "weights", "system", "seed")  # the keys that name a run
IDENTITY_KEYS = (*RUN_KEYS, "settings", "start")  # the keys that a model records
IDENTIFYING = ("settings", "seed", "data")  # of a training; later code may resume it
RERUN_ADVICE = (
    "delete it and run again with --config any_code=true: it is written again, and nothing is trained"
)


def training_digest(stamp: Mapping[str, Any]) -> str:
    """The digest of a training, to detect files of another one.

    Args:
        stamp: the training's, with settings, seed, and the checksum of its data.
    """
    parts = {part: stamp.get(part) for part in IDENTIFYING}
    return hashlib.sha256(json_text(parts).encode()).hexdigest()[:16]


# ---- runs --------------------------------------------------------------------------------------------------


def new_run(folder: Path, facts: RunRecord) -> dict[str, Any]:
    """The record of a run that is to be trained: the names that its folder says, and these facts.

    Raises:
        UserError: they are of another run than the folder's name says.
    """
    known = run_of_folder(folder)
    for key in known.keys() & facts.keys():
        if known[key] != facts[key]:
            raise UserError(f"{folder}: of {key} {known[key]}, not {facts[key]}; give --run another folder")
    return known | dict(facts)


def read_run(folder: Path, *needed: str) -> dict[str, Any]:
    """The record of the run in a folder.

    Args:
        needed: keys that it must have.

    Raises:
        UserError: there is none, it lacks a key (an older version made it), or it is not the run that the
            folder names.
    """
    path = folder / "train.json"
    run = read_object(path)
    for key in ("settings", *needed):
        if key not in run:
            raise UserError(
                f"{path}: no {key} in it (made by an older version, or by another verb); {RERUN_ADVICE}"
            )
    check_owner(path, {"run": run}, run_of_folder(folder))
    return run


def run_beside(path: Path) -> RunRecord:
    """The record of the run in whose folder a file lies; empty where there is none."""
    return read_run(path.parent) if (path.parent / "train.json").exists() else {}


def read_training_digest(folder: Path) -> RunRecord:
    """The digest of the training in a run's folder, whatever version made it; empty where there is none."""
    path = folder / "train.json"
    return {"training": read_object(path).get("training")} if path.exists() else {}


def run_names(run: RunRecord) -> dict[str, Any]:
    """The parts of a run that name it."""
    return {key: run[key] for key in RUN_KEYS if key in run}


def run_identity(run: RunRecord) -> dict[str, Any]:
    """The parts of a run that its model records."""
    return {key: run[key] for key in IDENTITY_KEYS if key in run}


def weights_identity(folder: Path) -> dict[str, Any]:
    """The weights in a folder, as the trainings that start from them record it ("start").

    Those that were trained here have a record with settings and seed; of others it is the name.
    """
    return run_identity(read_run(folder)) if (folder / "train.json").exists() else run_of_folder(folder)


# ---- models ------------------------------------------------------------------------------------------------


def model_identity(run: RunRecord) -> dict[str, Any]:
    """The keys of a model's file that say whose it is; none if it was made by hand."""
    known = run_identity(run)
    digest = {"training": run["training"]} if "training" in run else {}
    return {"run": {**known, "commit": commit()}, **digest} if known else digest


def check_model(path: Path, saved: Mapping[str, Any], run: RunRecord) -> None:
    """Check that the contents of a model's file belong to the run that reads it; by hand any model will do.

    Raises:
        UserError: they are another run's, or say nothing of it, or are another training's.
    """
    check_owner(path, saved, run_identity(run))
    check_training(path, saved.get("training"), path.with_name("train.json"), run.get("training"))


def check_owner(path: Path, saved: Mapping[str, Any], run: RunRecord) -> None:
    """Check that the contents of a file belong to a run.

    Args:
        saved: the contents, with a "run"; `run`: the keys to compare. The commit may differ: later steps may
            run in a later version.

    Raises:
        UserError: they belong to another run, or record none.
    """
    if not run:
        return
    advice = "move it away and run again to make this run's own"
    recorded = saved.get("run")
    if not isinstance(recorded, Mapping):
        raise UserError(f"{path}: names no run (made by hand, or by an older version); {advice}")
    for part in (part for part in IDENTITY_KEYS if part in run and recorded.get(part) != run[part]):
        other, own = recorded.get(part), run[part]
        if isinstance(other, Mapping) and isinstance(own, Mapping):
            other, own = first_difference(other, own)
        raise UserError(f"{path}: of another run ({part} {other}, here {own}); {advice}")


def check_training(path: Path, training: str | None, other: Path, its: str | None) -> None:
    """Check that two files record the same training; those of older versions or made by hand record none."""
    if training and its and training != its:
        raise UserError(f"{other}: of another training than {path}; train again, or make that again")


def check_start(folder: Path, saved: Mapping[str, Any], start: RunRecord) -> None:
    """`check_owner` for the model.pt of the weights folder that a training starts from.

    Fetched weights are not checked: they record no run, or one of another machine.
    """
    if "settings" in start:
        check_owner(folder / "model.pt", saved, start)


def first_difference(value: Any, other: Any, path: str = "") -> tuple[str, str]:
    """The first setting with different values, as "training.lr: 0.1" and "training.lr: 0.2"."""
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        key = next(key for key in sorted({*value, *other}) if value.get(key) != other.get(key))
        return first_difference(value.get(key), other.get(key), f"{path}.{key}")
    return f"{path[1:]}: {value}", f"{path[1:]}: {other}"


# ---- other files -------------------------------------------------------------------------------------------


def new_record(path: Path, run: RunRecord, training: str | None, texts: Mapping[Path, str]) -> dict[str, Any]:
    """The keys of the record `path` of files with these texts."""
    return {"run": run_names(run), "training": training, "sha256": checksums(path, texts)}


def checksums(path: Path, texts: Mapping[Path, str]) -> dict[str, str]:
    """The value of "sha256" in the record `path` of files with these texts."""
    return {_part_name(part, path): hashlib.sha256(text.encode()).hexdigest() for part, text in texts.items()}


def _part_name(part: Path, path: Path) -> str:
    """The name of a file in the record `path`."""
    return part.name.removeprefix(f"{path.stem}.")


def read_record(path: Path, parts: Iterable[Path] = (), run: RunRecord = NO_RUN) -> dict[str, Any]:
    """The rest of a record, after a check that all parts are of one run.

    Records of older versions and of steps by hand have fewer keys; what is missing is not checked.

    Args:
        parts: files that it has the checksums of; those that do not exist, or not beside it, do not count.
        run: the run that reads it; by default the one that the name of its folder says.

    Raises:
        UserError: no such file; it is another run's or another training's, or one of `parts` is.
    """
    rest = read_object(path)
    owner, training, sums = (rest.pop(key, None) for key in ("run", "training", "sha256"))
    if owner:
        check_owner(path, {"run": owner}, run_names(run) or run_of_folder(path.parent))
    for part in parts:
        known = (sums or {}).get(_part_name(part, path)) if part.parent == path.parent else None
        if known and part.exists() and text_sha256(part) != known:
            raise UserError(f"{part}: not what {path.name} was written with; make both again")
    check_training(path, training, path.with_name("train.json"), run.get("training"))
    return rest


def check_part(path: Path, run: RunRecord = NO_RUN) -> None:
    """`read_record` of the record of a file, NAME.json beside NAME.txt, if there is one."""
    if (beside := path.with_suffix(".json")).exists() and beside != path:
        read_record(beside, [path], run)


def scores_of(run: RunRecord, scores: Mapping[str, Any], parts: Mapping[str, str]) -> dict[str, Any]:
    """The contents of a run's scores.json: its record, its scores, and what made them.

    Args:
        parts: checksums of the files that belong to it, as in a record.
    """
    run = dict(run)
    if attempts := run.get("attempts"):  # older versions recorded only the commit of the last one
        run["attempts"] = [*attempts[:-1], {"commit": run.get("commit")} | attempts[-1]]
    command = shlex.join(sys.argv)
    return run | dict(scores) | versions_and_commit() | {"sha256": dict(parts), "command": command}


def versions_and_commit() -> dict[str, Any]:
    """The versions and the commit that make the scores."""
    return {"versions": versions(), "commit": commit()}

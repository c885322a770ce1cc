"""The parts that the files of scores share."""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from synmask.pipeline.config.run_info import RunInfo
from synmask.pipeline.files import read_object
from synmask.pipeline.provenance import commit, versions

PROBABILITY = ["log_probability", "tokens"]  # of a reference: the sum over its sub-words and their number


def by_split(found: Mapping[str, dict]) -> dict[str, Any]:
    """Split → results as result → split → value; signatures are the same for all splits."""
    first = next(iter(found.values()))
    result = {key: {split: values[key] for split, values in found.items()} for key in first}
    return result | {"signatures": first["signatures"]}


def of_run(run: RunInfo, train: Path, scores: dict[str, Any], parts: Mapping[str, str]) -> dict[str, Any]:
    """The contents of a run's scores.json.

    Args:
        parts: checksums of the files that belong to it, as in a record (see `owner`).
    """
    trained = read_object(train)
    if attempts := trained.get("attempts"):  # older versions recorded only the commit of the last one
        trained["attempts"] = [*attempts[:-1], {"commit": trained.get("commit")} | attempts[-1]]
    given = run.given() | trained | scores | made()
    return given | {"sha256": dict(parts), "command": shlex.join(sys.argv)}


def made() -> dict[str, Any]:
    """The versions and the commit that make the scores."""
    return {"versions": versions(), "commit": commit()}

"""The files that results were made from: their checksums behind each digest among the parameters of jobs.

A job runs again when a digest in its parameters is another one. To say which files have changed, the files
and checksums behind each digest are kept in results/logs/sources, in a JSON file named by the digest.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from synmask.pipeline.files import write_json
from synmask.pipeline.paths import LOGS

FOLDER = Path(LOGS / "sources")
_known: dict[str, Mapping[str, str]] = {}  # digest → file → checksum
_kept = False  # whether they are written


def note(digest: str, files: Mapping[str, str]) -> str:
    """Remember the files behind a digest, with checksums; return the digest."""
    if digest not in _known:
        _known[digest] = files
        if _kept:
            _keep(digest)
    return digest


def keep() -> None:
    """Write the files behind all digests, known ones now and later ones when they are noted."""
    global _kept
    _kept = True
    for digest in _known:
        _keep(digest)


def behind(digest: str) -> Mapping[str, str] | None:
    """File → checksum behind a digest, of this call or of an earlier one; None: there is no record."""
    if digest in _known:
        return _known[digest]
    try:
        return json.loads(_file(digest).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _file(digest: str) -> Path:
    return FOLDER / f"{digest}.json"


def _keep(digest: str) -> None:
    if not _file(digest).exists():
        write_json(_file(digest), dict(_known[digest]))

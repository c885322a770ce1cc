"""Parts that all HTML pages share: styles, scripts, a policy that allows no others, samples."""

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import TypeVar

T = TypeVar("T")


def part(name: str) -> str:
    """A style sheet or a script of the folder `page`."""
    return files("synmask.pipeline.reporting").joinpath("page", name).read_text(encoding="utf-8").strip()


def spread(items: Sequence[T], count: int) -> list[T]:
    """`count` of the items at equal steps, including first and last; all items if there are not more."""
    count = min(count, len(items))
    return [items[round(place * (len(items) - 1) / max(count - 1, 1))] for place in range(count)]


def policy(*scripts: str) -> str:
    """A content security policy: only these scripts run, images are inline, nothing is loaded."""
    sums = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii") for script in scripts)
    allowed = " ".join(f"'sha256-{sum_}'" for sum_ in sums)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )

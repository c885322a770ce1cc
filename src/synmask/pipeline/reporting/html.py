"""Parts that all HTML pages share: templates, styles, scripts, a policy that allows no others, samples."""

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined

T = TypeVar("T")


def render(
    template: str, scripts: Sequence[str], filters: Mapping[str, Callable] | None = None, **variables: Any
) -> str:
    """The page that a template of the folder `page` makes; of scripts, these alone run."""
    environment = Environment(
        loader=PackageLoader("synmask.pipeline.reporting", "page"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= filters or {}
    return environment.get_template(template).render(policy=policy(*scripts), **variables)


def part(name: str) -> str:
    """A style sheet or a script of the folder `page`."""
    return files("synmask.pipeline.reporting").joinpath("page", name).read_text(encoding="utf-8").strip()


def sample_evenly(items: Sequence[T], count: int) -> list[T]:
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

"""What the signatures of verbs are made of: types that are checked, and options that several verbs have."""

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from cyclopts import Parameter, Token
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from synmask.config.base import Line, Seed
from synmask.config.faults import one_line
from synmask.files import UserError

T = TypeVar("T")


def _from_json(kind: Any, tokens: Sequence[Token]) -> Any:
    """The value of a JSON text, checked.

    Raises:
        ValueError: it is not JSON, or not of this kind; it names the key.
    """
    try:
        values = json.loads(tokens[0].value)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error})") from None
    try:
        return TypeAdapter(kind).validate_python(values)
    except ValidationError as error:
        raise ValueError(one_line(error, values, kind)) from None


def _whole(_: Any, tokens: Sequence[Token]) -> int:
    """A whole number; cyclopts by itself rounds 1.5.

    Raises:
        ValueError: it is none.
    """
    if not re.fullmatch("[+-]?[0-9]{1,99}", tokens[0].value):
        raise ValueError("must be a whole number")
    return int(tokens[0].value)


def _labels_differ(labels: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    if len({label for _, label in labels}) < len(labels):
        raise ValueError(f"two systems have one label: {json.dumps(labels, ensure_ascii=False)}")
    return labels


Json = Annotated[T, Parameter(converter=_from_json, n_tokens=1, accepts_keys=False, metavar="JSON")]
Some = Annotated[tuple[T, ...], Field(min_length=1)]  # one or more
Whole = Annotated[int, Parameter(converter=_whole, n_tokens=1, accepts_keys=False)]
Count = Annotated[Whole, Field(ge=1, lt=2**31)]
Switch = Annotated[Whole, Field(ge=0, le=1)]

Source = Annotated[str, Parameter(help="Source language.")]
Target = Annotated[str, Parameter(help="Target language.")]
Threads = Annotated[
    Whole,
    Field(ge=1, le=1024),
    Parameter(help="CPU threads; the same number gives the same bytes."),
]
Gpus = Annotated[
    Whole,
    Field(ge=0, le=1024),
    Parameter(help="GPUs to reserve, waiting until they are free; 0: share the GPU that is there, if any."),
]
Labels = Annotated[
    Json[list[tuple[str, Line]]],
    AfterValidator(_labels_differ),
    Parameter(help="The systems in order, as JSON pairs of name and label."),
]
ConfigFile = Annotated[Path, Parameter(help="Configuration file.")]
Lowercase = Annotated[bool, Parameter(help="Compare without case.")]
Figure = Annotated[Path, Parameter(help="Prefix of .svg, .pdf and .csv.")]

# Of all trainings.
RandomSeed = Annotated[Seed, Parameter(help="Random seed.", converter=_whole, n_tokens=1, accepts_keys=False)]
Code = Annotated[tuple[Path, ...], Parameter(help="Source files whose change makes old checkpoints invalid.")]
Minutes = Annotated[float, Field(gt=0, lt=2**31), Parameter(help="Save at least this often, in minutes.")]
Restart = Annotated[
    bool,
    Parameter(
        help="Start again where settings, data, seed or code are not those of the checkpoints in the run's "
        "folder; these are moved aside until an epoch is done."
    ),
]


def together(**lists: Sequence) -> list[tuple]:
    """What belongs together of lists of equal length, which are options.

    Raises:
        UserError: their lengths differ.
    """
    if len({*map(len, lists.values())}) > 1:
        counts = ", ".join(f"--{name.replace('_', '-')} {len(values)}" for name, values in lists.items())
        raise UserError(f"give as many of one as of the other: {counts}")
    return [*zip(*lists.values(), strict=True)]


def labels_of(systems: Iterable[str], labels: Sequence[tuple[str, str]]) -> dict[str, str]:
    """System → label.

    Raises:
        UserError: one of `systems` has no label.
    """
    named = dict(labels)
    if missing := [*dict.fromkeys(system for system in systems if system not in named)]:
        raise UserError(f"--labels: none for {', '.join(missing)}, of which --runs has runs; add it")
    return named


def tell(counts: Mapping[str, int]) -> None:
    """Say on stderr how many there were of what."""
    said = (f"{what.replace('_', ' ')}: {count:,}" for what, count in counts.items())
    print(", ".join(said), file=sys.stderr)

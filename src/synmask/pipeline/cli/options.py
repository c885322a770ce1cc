"""Types for the signatures of verbs: checked values, and options that several verbs share."""

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from cyclopts import Parameter, Token
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from synmask.pipeline.config.base import Language, Line, Seed, looks
from synmask.pipeline.config.faults import nearest, one_line
from synmask.pipeline.config.run_info import RunInfo
from synmask.pipeline.files import UserError

if TYPE_CHECKING:
    from synmask.pipeline.config import Config

T = TypeVar("T")


def _from_json(kind: Any, tokens: Sequence[Token]) -> Any:
    """Read a JSON text and check its value.

    Raises:
        ValueError: not JSON, or not valid for this type; the message names the key.
    """
    try:
        values = json.loads(tokens[0].value)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error})") from None
    try:
        return TypeAdapter(kind).validate_python(values)
    except ValidationError as error:
        raise ValueError(one_line(error, values)) from None


def _whole(_: Any, tokens: Sequence[Token]) -> int:
    """A whole number; cyclopts by itself rounds 1.5.

    Raises:
        ValueError: it is none.
    """
    if not re.fullmatch("[+-]?[0-9]{1,99}", tokens[0].value):
        raise ValueError("must be a whole number")
    return int(tokens[0].value)


def _labels_differ(labels: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    if len({looks(label) for _, label in labels}) < len(labels):
        raise ValueError(f"two systems have the same label: {json.dumps(labels, ensure_ascii=False)}")
    return labels


Json = Annotated[T, Parameter(converter=_from_json, n_tokens=1, accepts_keys=False, metavar="JSON")]
Some = Annotated[tuple[T, ...], Field(min_length=1)]  # one or more
AS_WHOLE = Parameter(converter=_whole, n_tokens=1, accepts_keys=False)
Whole = Annotated[int, AS_WHOLE]
CountOption = Annotated[Whole, Field(ge=1, lt=2**31)]
Switch = Annotated[Whole, Field(ge=0, le=1)]

Source = Annotated[Language, Parameter(help="Source language.")]
Target = Annotated[Language, Parameter(help="Target language.")]
Threads = Annotated[
    Whole,
    Field(ge=1, le=1024),
    Parameter(help="CPU threads; the same number gives the same bytes."),
]
Gpus = Annotated[
    Whole,
    Field(ge=0, le=1024),
    Parameter(help="GPUs to reserve (waits until they are free); 0: share the GPU, if there is one."),
]
Labels = Annotated[
    Json[list[tuple[str, Line]]],
    AfterValidator(_labels_differ),
    Parameter(help="The systems in order, as JSON pairs of name and label."),
]
Identity = Annotated[
    Json[RunInfo | None],
    Parameter(
        help="The run that this is a part of, as JSON: corpus, direction, system, seed, settings. Models "
        "that it reads must be that run's; without it, any model will do."
    ),
]
Lowercase = Annotated[bool, Parameter(help="Compare without case.")]
Figure = Annotated[Path, Parameter(help="Prefix of .svg, .pdf and .csv.")]

TaskName = Annotated[str, Parameter(help="cola, rte, …")]
Parts = Annotated[Some[str], Parameter(help="Names of the parts, such as dev.")]
TrainJson = Annotated[Path, Parameter(help="train.json of the run.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """The options of every training."""

    seed: Annotated[Seed, AS_WHOLE, Parameter(help="Random seed.")]
    code: Annotated[
        str, Parameter(help="Digest of the training's code: checkpoints of another one are not continued.")
    ] = ""
    threads: Threads = 1
    gpus: Gpus = 0
    checkpoint_minutes: Annotated[
        float, Field(gt=0, lt=2**31), Parameter(help="Save at least this often, in minutes.")
    ] = 15.0
    restart: Annotated[
        bool,
        Parameter(
            help="Start again if settings, data, seed or code differ from those of the checkpoints in the "
            "run's folder, or if these are finished and train.json was removed since; they are moved aside "
            "until an epoch is done."
        ),
    ] = False

    def how(self) -> dict[str, Any]:
        """The options for the training function; reserving GPUs is left to the caller."""
        return {name: value for name, value in vars(self).items() if name != "gpus"}


def laid_over(own: Iterable[Path]) -> tuple["Config", dict[str, Any], list[Path]]:
    """The configuration of the project and of `own` files, each over those before it; its values; all files.

    Raises:
        UserError: a file cannot be read, or the configuration is wrong.
    """
    from synmask.pipeline.config import load, project_files, read_all

    files = [*map(Path, project_files()), *own]
    if not Path("config.yaml").exists():
        raise UserError(
            f"{Path.cwd()}: no config.yaml here; cd into the top folder of your checkout of synmask"
        )
    values = read_all(files)
    return load(values, files), values, files


def check_named(config: "Config", path: Path, kind: str, name: str) -> None:
    """Raise a UserError that begins with `path` unless this section of the configuration has `name`."""
    if name in (known := getattr(config, kind)):
        return
    near = nearest(name, known)
    if "did you mean" not in near and len(known) > 12:
        near = f"; config/{kind}.yaml has all {len(known)}"
    raise UserError(f"{path}: no {name!r} among the {kind}{near}")


def together(**lists: Sequence) -> list[tuple]:
    """Zip options that must have equally many values.

    Raises:
        UserError: the numbers of values differ.
    """
    if len({*map(len, lists.values())}) > 1:
        counts = ", ".join(f"--{name.replace('_', '-')} {len(values)}" for name, values in lists.items())
        raise UserError(f"these options need equally many values: {counts}")
    return [*zip(*lists.values(), strict=True)]


def labels_of(systems: Iterable[str], labels: Sequence[tuple[str, str]]) -> dict[str, str]:
    """System → label.

    Raises:
        UserError: one of `systems` has no label.
    """
    named = dict(labels)
    if missing := [*dict.fromkeys(system for system in systems if system not in named)]:
        raise UserError(f"--labels: no label for {', '.join(missing)}, which --runs lists; add one")
    return named


def run_of(identity: RunInfo | None) -> dict[str, Any]:
    """The run that a step is a part of; by hand there is none."""
    return identity.given() if identity else {}


def tell(counts: Mapping[str, int]) -> None:
    """Print counts to stderr."""
    said = (f"{what.replace('_', ' ')}: {count:,}" for what, count in counts.items())
    print(", ".join(said), file=sys.stderr)

"""Types for the functions that are verbs, whose signatures are command lines (`verbs.VERBS`).

They check values, and explain the options that several verbs share.
"""

import inspect
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar

from cyclopts import Parameter, Token
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from synmask.pipeline.config.base import Language, Line, Seed, looks
from synmask.pipeline.config.faults import first_fault
from synmask.pipeline.gpus import lease

T = TypeVar("T")


def _from_json(type_: Any, tokens: Sequence[Token]) -> Any:
    """Read a JSON text and check its value.

    Raises:
        ValueError: not JSON, or not valid for this type; the message names the key.
    """
    try:
        values = json.loads(tokens[0].value)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error})") from None
    try:
        return TypeAdapter(type_).validate_python(values)
    except ValidationError as error:
        raise ValueError(first_fault(error, values).line) from None


def _whole(_: Any, tokens: Sequence[Token]) -> int:
    """A whole number; cyclopts by itself rounds 1.5.

    Raises:
        ValueError: it is not one.
    """
    if not re.fullmatch("[+-]?[0-9]{1,99}", tokens[0].value):
        raise ValueError("must be a whole number")
    return int(tokens[0].value)


def _labels_differ(labels: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    if len({looks(label) for _, label in labels}) < len(labels):
        raise ValueError(f"two systems have the same label: {json.dumps(labels, ensure_ascii=False)}")
    return labels


Json = Annotated[T, Parameter(converter=_from_json, n_tokens=1, accepts_keys=False, metavar="JSON")]
Spread = Annotated[T, Parameter(name="*")]  # each field of a section is an option
OneOrMore = Annotated[tuple[T, ...], Field(min_length=1)]
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
    Json[Annotated[list[tuple[str, Line]], Field(min_length=1)]],
    AfterValidator(_labels_differ),
    Parameter(help="The systems in order, as JSON pairs of name and label."),
]
RunFolder = Annotated[Path, Parameter(help="Folder of the run, whose train.json says which it is.")]
Lowercase = Annotated[bool, Parameter(help="Compare without case.")]
Figure = Annotated[Path, Parameter(help="Prefix of .svg, .pdf and .csv.")]

TaskName = Annotated[str, Parameter(help="cola, rte, …")]
Parts = Annotated[OneOrMore[str], Parameter(help="Names of the parts, such as dev.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """The options of every training."""

    seed: Annotated[Seed, AS_WHOLE, Parameter(help="Random seed.")]
    code: Annotated[str, Parameter(help="Digest of the training's code; see --any-code.")] = ""
    threads: Threads = 1
    gpus: Gpus = 0
    tensorboard: Annotated[Switch, Parameter(help="1: write RUN/tensorboard while it trains.")] = 0
    checkpoint_minutes: Annotated[
        float, Field(gt=0, lt=2**31), Parameter(help="Save at least this often, in minutes.")
    ] = 15.0
    again: Annotated[
        Switch, Parameter(help="1: train again if it is finished; its checkpoints stay until then.")
    ] = 0
    any_code: Annotated[
        Switch,
        Parameter(help="1: go on with checkpoints of the same settings, data and seed that other code made."),
    ] = 0


def on_gpus(function: Callable[..., T]) -> Callable[..., T]:
    """Add the option `gpus` to a verb: the number of GPUs that it leases (`gpus.lease`)."""

    @wraps(function)
    def leasing(*, gpus: int = 0, **kwargs: Any) -> T:
        with lease(gpus):
            return function(**kwargs)

    signature = inspect.signature(function)
    option = inspect.Parameter("gpus", inspect.Parameter.KEYWORD_ONLY, default=0, annotation=Gpus)
    leasing.__signature__ = signature.replace(parameters=[*signature.parameters.values(), option])
    leasing.__annotations__ = function.__annotations__ | {"gpus": Gpus}
    return leasing

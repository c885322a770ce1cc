"""Types that the sections of config.yaml share: names, paths, numbers."""

import ast
import difflib
import json
import os
import re
import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from synmask.pipeline import languages
from synmask.pipeline.languages import DIRECTION, LANGUAGE, split_direction
from synmask.pipeline.metric_names import Cost, Parsing, Translation, Validation

T = TypeVar("T", bound=Hashable)

MAX_CHARACTERS = 1000  # characters of a title, label or path
MAX_NAMES = 12  # names that a message lists


def distinct(values: Sequence[T]) -> Sequence[T]:
    """Reject duplicates: they would count twice in means, or run twice."""
    for place, value in enumerate(values):
        if value in values[:place]:
            raise ValueError(f"{value!r} is given twice")
    return values


def matching(pattern: str, description: str) -> AfterValidator:
    """A check of a type that the whole text matches `pattern`; the message describes valid text."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"must be {description}")
        return text

    return AfterValidator(check)


def number(value: Any) -> Any:
    """Refuse true and false, which Python would take for 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("must be a number, not true or false")
    return value


NUMBER = BeforeValidator(number)
Int = Annotated[int, NUMBER]
Rate = Annotated[float, Field(ge=0, lt=1), NUMBER]
Count = Annotated[int, Field(gt=0, lt=2**63), NUMBER]
Natural = Annotated[int, Field(ge=0), NUMBER]
SEED_LIMIT = 2**31  # fairseq and NumPy add to a seed and need 32 bits
Seed = Annotated[int, Field(gt=0, lt=SEED_LIMIT), NUMBER]
Weight = Annotated[float, Field(ge=0), NUMBER]
Beam = Annotated[int, Field(gt=0, le=1000), NUMBER]
# an exponent
LengthPenalty = Annotated[float, Field(ge=-10, le=10, allow_inf_nan=False), NUMBER]
Positive = Annotated[float, Field(gt=0), NUMBER]
# other values were meant as gigabytes or bytes
Megabytes = Annotated[int, Field(ge=256, le=100_000_000), NUMBER]
Minutes = Annotated[int, Field(gt=0, le=366 * 24 * 60), NUMBER]
Devices = Annotated[int, Field(gt=0, le=1024), NUMBER]
Share = Annotated[float, Field(gt=0, lt=1), NUMBER]
Distinct = Annotated[tuple[T, ...], AfterValidator(distinct)]


def _plain_name(name: str) -> str:
    """Names become file names, targets and table rows: refuse anything a shell or a path could misread."""
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise ValueError("use lower-case letters and digits, joined by single hyphens")
    if len(name) > 64:
        raise ValueError("longer than 64 characters; shorten it, it becomes part of file names")
    return name


def _system_name(name: str) -> str:
    """Like other names, but with dots: the name of a swept system ends in a number."""
    _plain_name(name.replace(".", "-"))
    return name


def _one_line(text: str) -> str:
    """Titles, labels and paths appear in logs, tables and commands, so they must be one line."""
    if not text.isprintable():
        raise ValueError("a line break or another character that cannot be shown is in it")
    if not text.strip():
        raise ValueError("must not be empty")
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"longer than {MAX_CHARACTERS} characters")
    return text


def looks(label: str) -> str:
    """A label as readers see it: equal for labels that differ in case or spaces.

    >>> looks("Grammar  A") == looks("grammar a"), looks("Grammar −") == looks("Grammar +")
    (True, False)
    """
    return " ".join(label.casefold().split())


def _plain_path(path: str) -> str:
    """A path with ~ and $VARIABLES expanded, as Snakemake wants it: without `//`, `./` and a last `/`, and
    without braces, which it would read as wildcards."""
    path = os.path.expandvars(os.path.expanduser(path))
    if path.startswith("~") or (variable := re.search(r"\$(\w+|\{\w+\})", path)):
        name = path.partition("/")[0] if path.startswith("~") else variable[0]
        raise ValueError(f"{name} stands for nothing on this machine; set it, or write the folder out")
    if re.search(r"[{}]", path.replace("{language}", "")):
        raise ValueError("no braces in a path but {language}")
    return str(Path(_one_line(path)))


def _plain_url(url: str) -> str:
    """Snakemake would read braces as wildcards, and cannot make a file `.`; commands appear in logs."""
    if not re.fullmatch(r"(https?|file)://.*[^/?#]", url):
        raise ValueError("must be an http, https or file URL of a file or folder")
    urlsplit(url)  # raises a ValueError: brackets that do not match
    if re.search(r"[{}]", url):
        raise ValueError("no braces in a URL; write %7B and %7D")
    if re.search(r"/\.{1,2}$", url):
        raise ValueError("ends in a dot; name the file or folder")
    if re.search(r"://([^/]*@|[^/:\[]*:(?!\d*(/|$)))", url):  # what follows ":" is no port
        advice = "put both into ~/.netrc: machine HOST login NAME password PASSWORD"
        raise ValueError(f"a name and a password in a URL are seen by others, in logs, too; {advice}")
    return url


def _mirror(place: str) -> str:
    return _plain_url(place.rstrip("/")) if "://" in place else _plain_path(place)


def checked_language(code: str) -> str:
    """The code, if it names a language.

    Raises:
        ValueError: it names none; for a country's code, the message suggests the language's.
    """
    if languages.is_language(code):
        return code
    if right := languages.country_language(code):
        meant = f"for {languages.language_name(right)} write {right}"
        raise ValueError(f"{code!r} is a country's code, not a language's; {meant}")
    raise ValueError(f"{code!r} is no code of a language in ISO 639")


def _two_languages(direction: str) -> str:
    source, target = split_direction(direction)
    if source == target:
        raise ValueError(f"from {source} to {target}: give two languages")
    return direction


Name = Annotated[str, AfterValidator(_plain_name)]
SystemName = Annotated[str, AfterValidator(_system_name)]
Line = Annotated[str, AfterValidator(_one_line)]
PathText = Annotated[Line, AfterValidator(_plain_path)]
Url = Annotated[Line, AfterValidator(_plain_url)]
Mirror = Annotated[Line, AfterValidator(_mirror)]
Language = Annotated[
    str,
    matching(
        LANGUAGE, "a language code of two or three lower-case letters, perhaps with a region: de, deu, pt_BR"
    ),
    AfterValidator(checked_language),
]
Direction = Annotated[
    str,
    matching(DIRECTION, "two language codes and a hyphen, such as de-en"),
    AfterValidator(_two_languages),
]
Format = Literal["iwslt14", "nc11", "aspec"]  # of archives: a module of synmask.pipeline.corpora each
FileName = Annotated[
    str, matching(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", "a file name of letters, digits and . _ -")
]
Checksum = Annotated[str, matching("[0-9a-f]{64}", "a sha256: 64 digits and letters a to f")]
Tokeniser = Literal["moses", "icu", "mecab", "char", "corenlp", "juman", "stanford", "none"]
TextTokeniser = Literal[Tokeniser, "sentencepiece"]  # of raw text, which takes one of the others (`Corpus`)
ONLY = {"stanford": "zh", "juman": "ja", "mecab": "ja"}  # tokenisers of one language
WITH_JARS = ("corenlp", "stanford")  # tokenisers that are programs of CoreNLP
EXTERNAL = (*WITH_JARS, "juman")  # tokenisers that are external programs
SEGMENTERS = (*EXTERNAL, "mecab", "icu")  # those of text/segment.py
FUNCTION = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+"
Function = Annotated[str, matching(FUNCTION, "a function of yours by its dotted name, such as mine.length")]
Measured = Literal["ter"] | Function  # of the test set, where a table asks for it
# GLUE's has published numbers only
Metric = Literal[Translation, "ter", Validation, Parsing, Cost, "glue"] | Function


def module_file(function: str) -> str | None:
    """The Python file with a function of the user's, by its dotted name; None if its module is no such file.

    The module lies in the current folder, or is installed.

    Raises:
        ValueError: there is no such module or function.
    """
    module, _, name = function.rpartition(".")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):  # of a package around it
        spec = None
    if spec is None:
        raise ValueError(f"no module {module!r}, neither in this folder nor installed")
    if not (spec.origin or "").endswith(".py"):
        return None
    try:
        nodes = [*ast.walk(ast.parse(Path(spec.origin).read_bytes()))]
    except SyntaxError as error:
        raise ValueError(f"{spec.origin}, line {error.lineno}: not Python ({error.msg})") from None
    known = {getattr(node, key, None) for node in nodes for key in ("name", "asname", "id")} - {None}
    if not {name, "*"} & known:
        near = nearest(name, known, others=False)
        raise ValueError(f"no {name!r} in {spec.origin}{near}")
    return os.path.relpath(spec.origin) if spec.origin.startswith(f"{os.getcwd()}/") else spec.origin


class Fault(ValueError):
    """An error in the value at `path`; in a validator, `path` begins at its section."""

    def __init__(self, path: tuple, message: str) -> None:
        self.path = path
        super().__init__(message)

    @property
    def line(self) -> str:
        return ": ".join(filter(None, (".".join(map(str, self.path)), str(self))))


@contextmanager
def at(*path: object) -> Iterator[None]:
    """Let the path of a Fault, or of another ValueError, begin here."""
    try:
        yield
    except ValueError as error:
        raise Fault((*path, *getattr(error, "path", ())), str(error)) from None


def check_known(path: tuple, noun: str, known: Iterable[str], *names: object) -> None:
    """Raise a Fault with the nearest known name unless all `names` are known; `noun` says what they name."""
    known = [*known]
    for name in names:
        if name not in known:
            raise Fault(path, f"unknown {noun} {name!r}{nearest(str(name), known)}")


def nearest(name: str, known: Iterable[str], *, others: bool = True) -> str:
    """The nearest known name as a suggestion, or all known names; without `others` then nothing."""
    known = sorted(known)
    if near := difflib.get_close_matches(name, known, n=1, cutoff=0.5):
        return f"; did you mean {near[0]!r}?"
    listed = known if len(known) <= MAX_NAMES else [*known[: MAX_NAMES // 2], f"… ({len(known)} in all)"]
    return f"; known: {', '.join(listed)}" if known and others else ""


def merge(base: Mapping, over: Mapping) -> dict:
    """`base`, overridden by the keys of `over`, recursively; a key is the object that came last (`Key`).

    All settings are inherited so. A file overrides the files before it, and --config all of them
    (`loading.load_project`). A corpus overrides the one that it is `based_on`, and the common sections; a
    benchmark the common resources; a task the `finetuning` of its benchmark (`loading.inherit`); a swept
    system the first of its experiment (`sweeps`). In a run, a system's training and sizes override the
    corpus', and the corpus' `options` those of the system (`Config.run_settings`).
    """
    merged: dict = {}
    for key, last in {key: key for key in (*base, *over)}.items():
        value = over[key] if key in over else base[key]
        inner = base.get(key)
        nested = key in over and isinstance(inner, Mapping) and isinstance(value, Mapping)
        merged[last] = merge(inner, value) if nested else value
    return merged


class Section(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        protected_namespaces=(),
        allow_inf_nan=False,
        defer_build=True,  # a verb that reads no configuration starts a tenth of a second earlier
    )

    @model_validator(mode="before")
    @classmethod
    def _known(cls, values: Any) -> Any:
        if cls.model_config["extra"] == "forbid" and isinstance(values, Mapping):
            for key in filter(lambda key: isinstance(key, str), values):
                check_known((key,), "key", cls.model_fields, key)
        return values

    def plain(self, **kwargs: Any) -> dict[str, Any]:
        """As plain JSON values with sorted keys: equal settings are written as equal bytes.

        Args:
            kwargs: for `model_dump`, such as `exclude`.
        """
        return json.loads(json.dumps(self.model_dump(mode="json", **kwargs), sort_keys=True))


# Keys that several sections have, with different defaults.
Width = Annotated[Count, Field(description="width of the embeddings and layers")]
FeedForward = Annotated[
    int, Field(gt=0, le=1_000_000, description="width inside feed-forward layers"), NUMBER
]
Heads = Annotated[Count, Field(description="attention heads, which share the width evenly")]
Epochs = Annotated[Count, Field(description="passes over the training set, at most")]
# at about 1 and above, nothing is learned: a typo
LearningRate = Annotated[float, Field(gt=0, le=10, description="peak of the learning rate"), NUMBER]
Warmup = Annotated[int, Field(ge=0, lt=2**63, description="updates until this peak"), NUMBER]
Decay = Annotated[Weight, Field(description="weight decay of Adam")]
Dropout = Annotated[Rate, Field(description="dropout of embeddings and layers")]
AttentionDropout = Annotated[Rate, Field(description="dropout of attention weights")]
MaskRate = Annotated[Share, Field(description="share of tokens that are masked, and predicted")]
Seeds = Annotated[Distinct[Seed] | None, Field(min_length=1, description="default: those of config.yaml")]
OneSeed = Annotated[Seed, Field(description="random seed")]
Checksums = Annotated[
    dict[str, Checksum],
    Field(
        description="of each downloaded file; without one, that of the first download is recorded beside the "
        "file, and later downloads must match it"
    ),
]


def key(description: str, default: Any = ..., **bounds: Any) -> Any:
    """A key of a section with its description; a class as `default` stands for its own defaults."""
    argument = "default_factory" if callable(default) else "default"
    return Field(**{argument: default}, description=description, **bounds)


class Shape(Section):
    """The width of a model, which its attention heads share evenly."""

    embed_dim: Width
    heads: Heads

    @model_validator(mode="after")
    def _divisible(self) -> "Shape":
        if self.embed_dim % self.heads:
            raise ValueError(f"embed_dim {self.embed_dim} is not a multiple of heads {self.heads}")
        return self


class Optimisation(Section):
    """Settings of all trainings with Adam."""

    max_epochs: Epochs
    lr: LearningRate
    warmup_updates: Warmup
    weight_decay: Decay
    adam_betas: tuple[Rate, Rate] = key("Adam's β₁ and β₂", (0.9, 0.98))
    clip_norm: Weight = key("norm to which gradients are clipped; 0: no clipping", 0.0)
    precision: Literal["fp32", "fp16", "bf16"] = key("bf16 is faster on GPUs; fp16 needs one", "fp32")
    # left out of records unless it is set, so that those of older trainings stay the same
    compile: bool | None = key(
        "compile a step by torch.compile, for GPUs; not measured on one yet",
        None,
        exclude_if=lambda on: on is None,
    )

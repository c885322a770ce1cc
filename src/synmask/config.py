"""The typed configuration: the one place that knows every key of config.yaml.

`load` turns the merged dictionary into a frozen `Config` or raises one `UserError` that names file, key
and the nearest valid name. The methods of `Config` hand out the narrow slices of settings that the
workflow's rules depend on, as JSON with sorted keys, so that a change reruns only what it concerns.
"""

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from synmask.files import UserError

SPLITS = ("train", "valid", "test")


def _plain_name(name: str) -> str:
    """Names become file names, targets and table rows: refuse anything a shell or a path could misread."""
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise ValueError("use lower-case letters and digits, joined by single hyphens")
    return name


Name = Annotated[str, AfterValidator(_plain_name)]
Language = Annotated[str, Field(pattern=r"^[a-z]{2,3}$")]
Direction = Annotated[str, Field(pattern=r"^[a-z]{2,3}-[a-z]{2,3}$")]
Rate = Annotated[float, Field(ge=0, lt=1)]
Count = Annotated[int, Field(gt=0)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class GrammarOptions(Section):
    """Options of the guide `grammar` (guides/grammar.py)."""

    bpe: Literal["none", "add", "concatenate"] = "add"
    bpe_dim: Count = 256
    conv_layers: Annotated[int, Field(ge=0)] = 3
    conv_kernel: Annotated[int, Field(gt=0)] = 9
    attention: bool = True
    layers: Count = 1
    relations: tuple[Literal["parent", "child"], ...] = ("parent", "child")
    activation: Literal["sigmoid", "softmax"] = "sigmoid"
    calibration: Literal["masked", "as-published"] = "masked"


class System(Section):
    """One row of a table: how syntax guides the encoder, and the training objective."""

    label: str | None = None
    guide: Literal["none", "grammar"] = "none"
    options: GrammarOptions | None = None
    mask_rate: Rate = 0.0
    mlm_weight: Rate | Literal["corpus"] = 0.0
    left_pad_source: bool = False

    @model_validator(mode="after")
    def _consistent(self) -> "System":
        if self.guide == "none" and self.options is not None:
            raise ValueError("options need a guide")
        if self.mlm_weight != 0 and self.mask_rate == 0:
            raise ValueError("mlm_weight needs a mask_rate above 0")
        return self


class Text(Section):
    """From raw text to tokens, and which training pairs are kept."""

    tokenise: bool = True
    lowercase: bool = False
    min_tokens: Count = 1
    max_tokens: Count = 175
    max_ratio: Annotated[float, Field(ge=1)] = 1.5


class Bpe(Section):
    merges: Count = 10000
    vocabulary_threshold: Annotated[int, Field(ge=0)] = 0


class Model(Section):
    encoder_layers: Count = 6
    decoder_layers: Count = 6
    embed_dim: Count = 512
    ffn_dim: Count = 1024
    heads: Count = 4

    @model_validator(mode="after")
    def _divisible(self) -> "Model":
        if self.embed_dim % self.heads:
            raise ValueError(f"embed_dim {self.embed_dim} is not a multiple of heads {self.heads}")
        return self


class Batch(Section):
    """One update sees gpus x updates x tokens target tokens, however many GPUs there really are."""

    gpus: Count = 2
    updates: Count = 1
    tokens: Count = 4096


class Training(Section):
    max_epochs: Count = 60
    batch: Batch = Batch()
    lr: Annotated[float, Field(gt=0)] = 5e-4
    warmup_updates: Count = 4000
    adam_betas: tuple[Rate, Rate] = (0.9, 0.98)
    weight_decay: Annotated[float, Field(ge=0)] = 1e-4
    clip_norm: Annotated[float, Field(ge=0)] = 0.0
    dropout: Rate = 0.3
    attention_dropout: Rate = 0.0
    label_smoothing: Rate = 0.1
    mlm_weight: Rate | dict[Direction, Rate] = 0.47
    average: Count = 5
    precision: Literal["fp32", "fp16", "bf16"] = "fp32"


class Decoding(Section):
    beam: Count = 5
    length_penalty: float = 1.0
    max_tokens: Count = 8000


class Resources(Section):
    """What one training or decoding asks of the machine or the cluster; never changes a result's settings."""

    threads: Count = 2
    mem_mb: Count = 8000
    runtime: Count = 720
    gpus: Annotated[int, Field(ge=0)] = 0


class Generate(Section):
    """Sizes and seed of a generated corpus."""

    seed: int = 1
    train: Count
    valid: Count
    test: Count


class Corpus(Section):
    """Where the parallel text of a corpus comes from and how it is prepared, trained on and decoded."""

    languages: tuple[Language, ...] = Field(min_length=2)
    generate: Generate | None = None
    files: dict[Literal["train", "valid", "test"], str] | None = None
    url: str | None = None
    sha256: dict[str, Annotated[str, Field(pattern="^[0-9a-f]{64}$")]] = {}
    trees: dict[Literal["valid", "test"], str] = {}
    sentence: Count | None = None
    text: Text = Text()
    bpe: Bpe = Bpe()
    model: Model = Model()
    training: Training = Training()
    decoding: Decoding = Decoding()
    resources: Resources = Resources()
    download: str = ""  # the name under which its files are downloaded: its own, or that of `based_on`

    @model_validator(mode="after")
    def _one_origin(self) -> "Corpus":
        if (self.generate is None) == (self.files is None):
            raise ValueError("give either `generate` or `files`")
        if self.files is not None:
            if missing := [split for split in SPLITS if split not in self.files]:
                raise ValueError(f"files: no entry for {', '.join(missing)}")
            for split, template in self.files.items():
                if "{language}" not in template:
                    raise ValueError(f"files.{split}: {template!r} has no {{language}} in it")
        return self


class Experiment(Section):
    """A target: which systems run on which corpus, and which tables come of it."""

    title: str
    corpus: Name
    directions: tuple[Direction, ...] = Field(min_length=1)
    systems: tuple[Name, ...] = Field(min_length=1)
    seeds: tuple[Count, ...] | None = Field(default=None, min_length=1)
    tables: tuple[Literal["translation", "parsing"], ...] = ("translation",)


class Config(Section):
    targets: tuple[Name, ...] = Field(min_length=1)
    data_dir: str = "data"
    mirrors: dict[Name, str] = {}
    seeds: tuple[Count, ...] = Field(min_length=1)
    training: Training = Training()
    decoding: Decoding = Decoding()
    resources: Resources = Resources()
    systems: dict[Name, System]
    corpora: dict[Name, Corpus]
    experiments: dict[Name, Experiment | list[Name]]

    @cached_property
    def plain_experiments(self) -> dict[str, Experiment]:
        """The experiments that run something, without the groups of experiments."""
        return {n: e for n, e in self.experiments.items() if isinstance(e, Experiment)}

    def members(self, name: str) -> list[str]:
        """The plain experiments behind a target: itself, or those of a group."""
        entry = self.experiments[name]
        return [name] if isinstance(entry, Experiment) else [m for n in entry for m in self.members(n)]

    def experiment_seeds(self, name: str) -> tuple[int, ...]:
        return self.plain_experiments[name].seeds or self.seeds

    def label(self, system: str) -> str:
        """What a system is called in tables and figures."""
        return self.systems[system].label or system

    def raw_file(self, corpus: str, split: str, language: str) -> str:
        """Path of a corpus' raw text file as it was downloaded, generated or given by the user."""
        entry = self.corpora[corpus]
        if entry.generate is not None:
            return f"results/{corpus}/raw/{split}.{language}"
        name = entry.files[split].replace("{language}", language)
        return f"{self.data_dir}/{entry.download}/{name}" if entry.url else name

    def gold_trees(self, corpus: str, split: str, language: str) -> str | None:
        """Path of the bracketed gold trees of a split, None where the corpus has none."""
        entry = self.corpora[corpus]
        if entry.generate is not None:
            return f"results/{corpus}/raw/{split}.{language}.trees" if split != "train" else None
        template = entry.trees.get(split)
        return template.replace("{language}", language) if template else None

    def run_settings(self, corpus: str, direction: str, system: str) -> str:
        """All that a training depends on besides its data and seed, as JSON with sorted keys."""
        entry, row = self.corpora[corpus], self.systems[system]
        training = entry.training.model_dump(mode="json", exclude={"mlm_weight", "average"})
        weight = row.mlm_weight
        if weight == "corpus":
            weight = entry.training.mlm_weight
            if isinstance(weight, dict):
                if direction not in weight:
                    raise UserError(f"corpora.{corpus}.training.mlm_weight: no value for {direction}")
                weight = weight[direction]
        return as_json(
            {
                "model": entry.model.model_dump(mode="json"),
                "training": training,
                "system": {
                    "guide": row.guide,
                    "options": (row.options or GrammarOptions()).model_dump(mode="json")
                    if row.guide == "grammar"
                    else {},
                    "mask_rate": row.mask_rate,
                    "mlm_weight": weight,
                    "left_pad_source": row.left_pad_source,
                },
            }
        )


def as_json(settings: Any) -> str:
    """Settings as one line of JSON with sorted keys: equal settings are equal strings."""
    if isinstance(settings, BaseModel):
        settings = settings.model_dump(mode="json")
    return json.dumps(settings, sort_keys=True)


class _UniqueKeys(yaml.SafeLoader):
    """YAML that refuses a key given twice, which YAML itself lets pass in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=deep)
            if key in seen:
                line = key_node.start_mark.line + 1
                raise UserError(f"line {line}: the key {key!r} is given twice")
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path: str | Path) -> dict:
    """Read one YAML file.

    Raises:
        UserError: no such file, not YAML, a key given twice, or not a mapping.
    """
    try:
        with open(path, encoding="utf-8") as handle:
            value = yaml.load(handle, _UniqueKeys)
    except UserError as error:
        raise UserError(f"{path}, {error}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise UserError(f"{path}{where}: not YAML ({getattr(error, 'problem', error)})") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    if not isinstance(value or {}, dict):
        raise UserError(f"{path}: expected keys and values, found a {type(value).__name__}")
    return value or {}


def merge(base: Mapping, over: Mapping) -> dict:
    """`base` with the keys of `over` laid over it, mapping by mapping."""
    merged = dict(base)
    for key, value in over.items():
        inner = merged.get(key)
        merged[key] = (
            merge(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
        )
    return merged


def load(values: Mapping[str, Any], files: Iterable[str | Path] = ("config.yaml",)) -> Config:
    """Check the merged configuration `values`; `files` are read again only to say where a fault stands.

    Raises:
        UserError: an unknown key, a wrong type, an unknown name or an inconsistent entry (one line).
    """
    sources = {str(path): read_yaml(path) for path in files}
    try:
        config = Config.model_validate(_inherit(values))
        _check_names(config)
    except ValidationError as error:
        raise UserError(_first_fault(error, sources)) from None
    except _NameFault as fault:
        raise UserError(f"{_where(fault.path, sources)}: {fault}") from None
    return config


class _NameFault(Exception):
    def __init__(self, path: tuple, kind: str, name: object, known: Iterable[str]) -> None:
        self.path = path
        super().__init__(f"unknown {kind} {name!r}{_nearest(str(name), known)}")


def _inherit(values: Mapping[str, Any]) -> dict:
    """Lay each corpus over the corpus it is `based_on`, and that over the common training and decoding."""
    values = dict(values)
    corpora = values.get("corpora")
    if not isinstance(corpora, Mapping):
        return values
    common = {
        key: values[key]
        for key in ("training", "decoding", "resources")
        if isinstance(values.get(key), Mapping)
    }
    full: dict[str, Any] = {}

    def resolve(name: str, chain: tuple[str, ...]) -> Any:
        entry = corpora[name]
        if not isinstance(entry, Mapping):
            return entry
        base = entry.get("based_on")
        if base is None:
            return merge({**common, "download": name}, entry)
        if base in chain or base == name:
            raise _NameFault(("corpora", name, "based_on"), "base (a circle)", base, [])
        if base not in corpora:
            raise _NameFault(("corpora", name, "based_on"), "corpus", base, corpora)
        return merge(resolve(base, (*chain, name)), {k: v for k, v in entry.items() if k != "based_on"})

    for name in corpora:
        full[name] = resolve(name, ())
    values["corpora"] = full
    return values


def _check_names(config: Config) -> None:
    """Every name that an entry mentions must exist."""

    def known(path: tuple, kind: str, name: str, names: Iterable[str]) -> None:
        if name not in names:
            raise _NameFault(path, kind, name, names)

    for position, target in enumerate(config.targets):
        known(("targets", position), "experiment", target, config.experiments)
    for name in config.mirrors:
        downloads = {c.download for c in config.corpora.values() if c.url}
        known(("mirrors", name), "downloaded corpus", name, downloads)
    for name, experiment in config.experiments.items():
        path = ("experiments", name)
        if isinstance(experiment, list):
            for member in experiment:
                known(path, "experiment", member, config.experiments)
                if not isinstance(config.experiments[member], Experiment):
                    raise _NameFault(path, "experiment (a group)", member, config.plain_experiments)
            continue
        known((*path, "corpus"), "corpus", experiment.corpus, config.corpora)
        languages = config.corpora[experiment.corpus].languages
        for system in experiment.systems:
            known((*path, "systems"), "system", system, config.systems)
        for direction in experiment.directions:
            source, target = direction.split("-")
            known((*path, "directions"), "language", source, languages)
            known((*path, "directions"), "language", target, set(languages) - {source})
        if "parsing" in experiment.tables:
            guided = {name for name, system in config.systems.items() if system.guide != "none"}
            if not guided & set(experiment.systems):
                raise _NameFault((*path, "tables"), "table (no system here induces trees)", "parsing", [])
            if config.gold_trees(experiment.corpus, "valid", languages[0]) is None:
                raise _NameFault((*path, "tables"), "table (the corpus has no `trees`)", "parsing", [])


def _nearest(name: str, known: Iterable[str]) -> str:
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; known: {', '.join(known)}" if known else ""


def _where(path: tuple, sources: Mapping[str, Any]) -> str:
    """The key's dotted path behind the last file that holds it (or --config, if none does)."""
    dotted = ".".join(str(part) for part in path)
    for file in reversed(sources):
        node = sources[file]
        for part in path:
            if (isinstance(node, Mapping) and part in node) or (
                isinstance(node, list) and isinstance(part, int) and part < len(node)
            ):
                node = node[part]
            else:
                break
        else:
            return f"{file}: {dotted}"
    missing_parent = sources and any(path[0] in values for values in sources.values())
    return f"{next(reversed(sources)) if missing_parent else '--config'}: {dotted}"


def _section_of(annotation: Any) -> type[BaseModel] | None:
    """The section that a field's annotation holds, however deep in a union or a dict."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_section_of, get_args(annotation))), None)


def _known_keys(path: tuple) -> set[str]:
    """The keys that the section at `path` may hold."""
    section: type[BaseModel] = Config
    for part in path:  # a part that is no field is the user's own name for an entry: same section
        if field := section.model_fields.get(str(part)):
            section = _section_of(field.annotation) or section
    keys = set(section.model_fields) - {"download"}
    return keys | {"based_on"} if section is Corpus else keys


def _first_fault(error: ValidationError, sources: Mapping[str, Any]) -> str:
    """One line for the first fault that pydantic found."""
    faults = error.errors()
    unknown = [fault for fault in faults if fault["type"] == "extra_forbidden"]
    fault = (unknown or faults)[0]
    path = tuple(
        part for part in fault["loc"] if part not in ("[key]",) and not str(part).startswith("list[")
    )
    path = tuple(part for part in path if part not in ("Experiment", "GrammarOptions"))
    where = _where(path, sources)
    if fault["type"] == "extra_forbidden":
        return f"{where}: unknown key {path[-1]!r}{_nearest(str(path[-1]), _known_keys(path[:-1]))}"
    message = fault["msg"].removeprefix("Value error, ")
    given = fault["input"]
    shown = "" if isinstance(given, Mapping) or fault["type"] == "missing" else f" (given: {given!r})"
    return f"{where}: {message}{shown}"

"""The sections of config.yaml: every key, its type and its default."""

from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field, ValidationError, field_validator, model_validator

from synmask.pipeline.config.base import (
    ONLY,
    Beam,
    Checksum,
    Count,
    Direction,
    Distinct,
    FileName,
    Format,
    Language,
    LengthPenalty,
    Line,
    Megabytes,
    Metric,
    Minutes,
    Name,
    Optimisation,
    PathText,
    Positive,
    Rate,
    Section,
    Seed,
    Split,
    SystemName,
    Tokeniser,
    Url,
    Weight,
    Width,
    distinct,
    matching,
)
from synmask.pipeline.config.faults import nearest, one_line
from synmask.pipeline.config.guides import GUIDES, GuideOptions
from synmask.pipeline.files import UserError

SPLITS = get_args(Split)
DEMO_LANGUAGES = ("de", "en")  # the languages of a generated corpus


class Tokens(Section):
    """From raw text to tokens."""

    tokeniser: Tokeniser | dict[Language, Tokeniser] = "moses"
    lowercase: bool = False

    def tokeniser_of(self, language: str) -> str:
        """The tokeniser of one language.

        Raises:
            UserError: this language has none.
        """
        if isinstance(self.tokeniser, str):
            return self.tokeniser
        if language not in self.tokeniser:
            raise UserError(f"no tokeniser for {language!r}; only for {', '.join(self.tokeniser)}")
        return self.tokeniser[language]


class ModelText(Tokens):
    """How raw text becomes a model's input; stands in each model file."""

    source: Language
    target: Language
    codes: str  # the contents of the file of BPE codes
    vocabulary: list[str] | None  # the allowed sub-words; None: all


class Lengths(Section):
    """Which training pairs are kept."""

    min_tokens: Count = 1
    max_tokens: Count | None = 175
    max_ratio: Annotated[float, Field(ge=1)] | None = 1.5

    @model_validator(mode="after")
    def _something_is_kept(self) -> "Lengths":
        if self.max_tokens is not None and self.min_tokens > self.max_tokens:
            raise ValueError(f"min_tokens {self.min_tokens} is above max_tokens {self.max_tokens}")
        return self


class Text(Tokens, Lengths):
    """From raw text to tokens, and which training pairs are kept."""


class Bpe(Section):
    merges: Count = 10000
    vocabulary_threshold: Annotated[int, Field(ge=0)] = 0


class Sizes(Section):
    """Sizes of a model; those of a system count only where they are given, over those of the corpus."""

    encoder_layers: Count = 6
    decoder_layers: Count = 6
    embed_dim: Annotated[Count, Field(ge=4)] = 512  # with fewer fairseq's positions have no frequencies
    ffn_dim: Count = 1024
    heads: Count = 4


class Model(Sizes, Width):
    """Sizes of a model that fit each other."""


class Batch(Section):
    """One update sees gpus x updates x tokens target tokens, however many GPUs there really are."""

    gpus: Annotated[int, Field(gt=0, le=1024)] = 2
    updates: Count = 1
    tokens: Count = 4096


class Training(Optimisation):
    max_epochs: Count = 60
    batch: Batch = Field(default_factory=Batch)
    lr: Positive = 5e-4
    warmup_updates: Count = 4000
    weight_decay: Weight = 1e-4
    dropout: Rate = 0.3
    attention_dropout: Rate = 0.0
    label_smoothing: Rate = 0.1
    mlm_weight: Rate | dict[Direction, Rate] = 0.47
    checkpoint: Literal["average", "best", "best-bleu"] = "average"
    average: Count = 5
    validate_bleu: Annotated[int, Field(ge=0)] = 0

    @property
    def kept(self) -> int:
        """How many epochs' models make up the final one: the last `average`, or the best."""
        return self.average if self.checkpoint == "average" else 1


class Guidance(Section):
    """How syntax guides the encoder, and the training objective: all that a run depends on of its system."""

    guide: str = "none"
    options: dict[str, Any] = {}
    mask_rate: Rate = 0.0
    mlm_weight: Rate = 0.0
    left_pad_source: bool = False

    @property
    def kind(self) -> type[GuideOptions]:
        """The options class of the guide: what it reads and induces."""
        return GUIDES[self.guide]

    @model_validator(mode="after")
    def _consistent(self) -> "Guidance":
        if self.guide not in GUIDES:
            raise ValueError(f"unknown guide {self.guide!r}{nearest(self.guide, GUIDES)}")
        try:
            _ = self.guide_options
        except ValidationError as error:
            raise ValueError(f"options.{one_line(error, self.options, self.kind)}") from None
        return self

    @property
    def guide_options(self) -> GuideOptions:
        """The guide's options, those that are not given by default.

        Raises:
            ValidationError: an unknown option, or a wrong value.
        """
        return self.kind.model_validate(self.options)

    @property
    def mixes(self) -> bool:
        """Whether the other sentences of a batch affect a sentence's attention."""
        return self.guide_options.mixes(self.left_pad_source)


class System(Guidance):
    """One row of a table. `checks` looks at its guide and options, to say where they stand."""

    label: Line | None = None
    mlm_weight: Rate | Literal["corpus"] = 0.0
    model: Sizes = Field(default_factory=Sizes)  # here and in `training`, only the keys that are given count
    training: Training = Field(default_factory=Training)

    @model_validator(mode="after")
    def _consistent(self) -> "System":
        if self.guide == "none" and self.options:
            raise ValueError("options need a guide")
        if self.mlm_weight != 0 and self.mask_rate == 0:
            raise ValueError("mlm_weight needs a mask_rate above 0")
        if "mlm_weight" in self.training.model_fields_set:
            raise ValueError("training.mlm_weight: a system's share is its own key, mlm_weight")
        return self

    def guidance(self, options: GuideOptions, mlm_weight: float) -> Guidance:
        """The settings that a run depends on, with these options and this share of the MLM loss."""
        own = self.model_dump(include={*Guidance.model_fields})
        return Guidance(**own | {"options": options.model_dump(mode="json"), "mlm_weight": mlm_weight})


class RunSettings(Section):
    """All that a training depends on besides its data and seed."""

    model: Model
    training: Training
    system: Guidance

    @field_validator("system")
    @classmethod
    def _translates(cls, system: Guidance) -> Guidance:
        if "words" in system.kind.reads:
            raise ValueError(f"guide {system.guide!r} is made for RoBERTa; give one that guides translation")
        return system

    @field_validator("training")
    @classmethod
    def _bleu_is_known(cls, training: Training) -> Training:
        if training.checkpoint == "best-bleu" and not training.validate_bleu:
            raise ValueError("checkpoint: best-bleu needs a validate_bleu above 0")
        return training

    def plain(self, **how: Any) -> dict[str, Any]:
        """Without settings that no training depends on.

        These are the number of averaged epochs and the corpus' share of the MLM loss; systems have their own.
        """
        unused = {"mlm_weight", "average"}
        if self.training.checkpoint == "average":
            unused.add("checkpoint")
        if not self.training.validate_bleu:
            unused.add("validate_bleu")
        return super().plain(exclude={"training": unused}, **how)


class Decoding(Section):
    beam: Beam = 5
    length_penalty: LengthPenalty = 1.0
    max_tokens: Count = 8000
    precision: Literal["fp32", "bf16"] = "fp32"


class Resources(Section):
    """Resources that one training or decoding requests; results do not depend on them."""

    threads: Annotated[int, Field(gt=0, le=1024)] = 2
    mem_mb: Megabytes = 8000
    runtime: Minutes = 720
    gpus: Annotated[int, Field(ge=0, le=1024)] = 0
    checkpoint_minutes: Minutes = 15
    tensorboard: bool = False
    keep_checkpoints: bool = False


Jar = Annotated[
    str,
    AfterValidator(
        matching(
            r"[\w.-]+:[\w.-]+:[\w.-]+:jar(:[\w.-]+)?",
            "Maven's group:artifact:version:jar or …:jar:classifier",
        )
    ),
]


class ParserModels(Section):
    """CoreNLP's models for one language, by their names in its jars."""

    tagger: Line
    parser: Line
    dependencies: Line | None = None


class ParserSettings(ParserModels):
    """All that the trees of a language depend on besides its sentences and jars."""

    max_words: Count


class CoreNLPModels(ParserModels):
    """CoreNLP's models for one language, and their jars."""

    jars: dict[Jar, Checksum] = {}


class CoreNLP(Section):
    """CoreNLP: the parser behind `trees: corenlp`, and tokenisers."""

    jars: dict[Jar, Checksum] = {}
    segmenter: dict[Jar, Checksum] = {}
    languages: dict[Language, CoreNLPModels] = {}
    max_words: Count = 200
    threads: Count = 2
    mem_mb: Megabytes = 6000
    runtime: Minutes = 720


Generated = Annotated[int, Field(gt=0, le=10_000_000)]  # pairs; ten million are a GB


class Generate(Section):
    """Sizes and seed of a generated corpus."""

    seed: Seed = 1
    train: Generated
    valid: Generated
    test: Generated


Pairs = Count | tuple[Count, Count]  # a number, or the least and the most


class Corpus(Section):
    """Where the parallel text of a corpus comes from and how it is prepared, trained on and decoded."""

    languages: Distinct[Language] = Field(min_length=2)
    generate: Generate | None = None
    files: dict[Split, PathText | dict[Name, PathText]] | None = None
    format: Format | None = None
    archives: Distinct[FileName] = ()
    url: Url | None = None
    sha256: dict[str, Checksum] = {}
    pairs: dict[Split, Pairs] = {}
    trees: Literal["corenlp"] | dict[Literal["valid", "test"], PathText] = {}
    sentence: Count | None = None
    text: Text = Field(default_factory=Text)
    bpe: Bpe = Field(default_factory=Bpe)
    model: Model = Field(default_factory=Model)
    options: dict[SystemName, dict[Direction, dict[str, Any]]] = {}
    training: Training = Field(default_factory=Training)
    decoding: Decoding = Field(default_factory=Decoding)
    resources: Resources = Field(default_factory=Resources)
    download: str = ""  # the name under which its files are downloaded: its own, or that of `based_on`

    @field_validator("trees", mode="before")
    @classmethod
    def _none(cls, value: Any) -> Any:
        """`trees: null` switches off those of a base corpus."""
        return {} if value is None else value

    @model_validator(mode="after")
    def _one_origin(self) -> "Corpus":
        if sum(origin is not None for origin in (self.generate, self.files, self.format)) != 1:
            raise ValueError("give one of `generate`, `files` and `format`")
        if (self.format is None) != (not self.archives):
            raise ValueError("`format` and `archives` go together")
        tokenised = self.text.tokeniser if isinstance(self.text.tokeniser, dict) else self.languages
        if missing := [language for language in self.languages if language not in tokenised]:
            raise ValueError(f"text.tokeniser: none for {', '.join(missing)}")
        for language in self.languages:
            name = self.text.tokeniser_of(language)
            if ONLY.get(name, language) != language:
                raise ValueError(f"text.tokeniser: {name} is for {ONLY[name]}, not for {language}")
        if surplus := [language for language in tokenised if language not in self.languages]:
            raise ValueError(f"text.tokeniser: {', '.join(surplus)} is none of the languages")
        if self.generate is not None and {*self.languages} != {*DEMO_LANGUAGES}:
            raise ValueError(f"what is generated is {' and '.join(DEMO_LANGUAGES)}; give these languages")
        if self.generate is not None and self.trees:
            raise ValueError("a generated corpus has gold `trees` of its own; leave the key out")
        for split, pairs in self.pairs.items():
            if isinstance(pairs, tuple) and pairs[0] > pairs[1]:
                raise ValueError(f"pairs.{split}: {pairs[0]} is above {pairs[1]}; give [least, most]")
        if self.files is not None:
            if missing := [split for split in SPLITS if split not in self.files]:
                raise ValueError(f"files: no entry for {', '.join(missing)}")
            for split, given in self.files.items():
                self._check_files(split, given if isinstance(given, dict) else {"": given})
                if split != "test" and isinstance(given, dict):
                    raise ValueError(f"files.{split}: give one file; only `test` may have several, named")
        return self

    def _check_files(self, split: str, templates: dict[str, str]) -> None:
        if not templates:
            raise ValueError(f"files.{split}: no file")
        distinct([*templates.values()])
        for name, template in templates.items():
            key = f"files.{split}.{name}".rstrip(".")
            if "{language}" not in template:
                raise ValueError(f"{key}: {template!r} has no {{language}} in it")
            if self.url and "/" in template:
                raise ValueError(f"{key}: {template!r} has a folder in it; it belongs to `url`")

    def file_names(self, split: str) -> list[str]:
        """The names of a split's `files`: one, or one per test set."""
        given = self.files[split]
        return [*given.values()] if isinstance(given, dict) else [given]

    @property
    def test_sets(self) -> list[str]:
        """The names of the sets that make up the test set; none if it is a single one."""
        given = (self.files or {}).get("test")
        return [*given] if isinstance(given, dict) else []


class Sweep(Section):
    """A setting of an experiment's first system, and the values to try besides those that its systems have.

    Each value becomes a system named SYSTEM-SETTING-VALUE (`sweeps.expand_sweeps`).
    """

    setting: Line  # of a system: mlm_weight, options.bpe_dim, training.dropout
    values: Distinct[bool | int | float | Line] = Field(min_length=1)

    @property
    def key(self) -> str:
        """The setting's key in a run's settings."""
        own = self.setting.startswith(("model.", "training."))
        return self.setting if own else f"system.{self.setting}"


class Experiment(Section):
    """A target: which systems run on which corpus, and which tables show them."""

    title: Line
    corpus: Name
    directions: Distinct[Direction] = Field(min_length=1)
    systems: Distinct[SystemName] = Field(min_length=1)
    sweep: Sweep | None = None
    peers: Distinct[Name] = ()
    seeds: Distinct[Seed] | None = Field(default=None, min_length=1)
    tables: Distinct[Literal["translation", "parsing"]] = Field(default=("translation",), min_length=1)


class Table(Section):
    """A target: runs of some experiments beside published numbers; its first system is the baseline."""

    title: Line
    experiments: Distinct[Name] = ()
    benchmark: Name | None = None
    tasks: Distinct[Name] | None = Field(default=None, min_length=1)
    systems: Distinct[SystemName] = Field(min_length=1)
    metrics: Distinct[Metric] = Field(default=("bleu_tokenised", "sacrebleu"), min_length=1)

    @model_validator(mode="after")
    def _one_source_of_columns(self) -> "Table":
        if bool(self.experiments) == bool(self.benchmark):
            raise ValueError("give either `experiments` or `benchmark`")
        if self.tasks and not self.benchmark:
            raise ValueError("tasks need a benchmark")
        if self.benchmark and self.metrics != ("glue",):
            raise ValueError("a benchmark's table needs metrics: [glue]")
        if self.experiments and "glue" in self.metrics:
            raise ValueError("the metric glue needs a benchmark")
        return self

"""The sections of config.yaml: every key, its type and its default."""

from typing import Annotated, Any, Literal, get_args

from pydantic import Field, ValidationError, field_validator, model_validator

from synmask.pipeline.config import base
from synmask.pipeline.config.faults import nearest, one_line
from synmask.pipeline.config.guides import GUIDES, GuideOptions
from synmask.pipeline.files import UserError

SPLITS = get_args(base.Split)
DEMO_LANGUAGES = ("de", "en")  # the languages of a generated corpus


class Tokens(base.Section):
    """From raw text to tokens."""

    tokeniser: base.Tokeniser | dict[base.Language, base.Tokeniser] = "moses"
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

    source: base.Language
    target: base.Language
    codes: str  # the contents of the file of BPE codes
    vocabulary: list[str] | None  # the allowed sub-words; None: all


class Lengths(base.Section):
    """Which training pairs are kept."""

    min_tokens: base.Count = 1
    max_tokens: base.Count | None = 175
    max_ratio: Annotated[base.Float, Field(ge=1)] | None = 1.5

    @model_validator(mode="after")
    def _something_is_kept(self) -> "Lengths":
        if self.max_tokens is not None and self.min_tokens > self.max_tokens:
            raise ValueError(f"min_tokens {self.min_tokens} is above max_tokens {self.max_tokens}")
        return self


class Text(Tokens, Lengths):
    """From raw text to tokens, and which training pairs are kept."""


Size = Annotated[base.Int, Field(gt=0, le=1_000_000)]
Layers = Annotated[base.Int, Field(gt=0, le=1000)]


class Bpe(base.Section):
    merges: Size = 10000
    vocabulary_threshold: base.Natural = 0


class Sizes(base.Section):
    """Sizes of a model; those of a system count only where they are given, over those of the corpus."""

    encoder_layers: Layers = 6
    decoder_layers: Layers = 6
    embed_dim: Annotated[base.Int, Field(ge=4, le=65536)] = 512  # fairseq's positions need 4
    ffn_dim: Size = 1024
    heads: base.Count = 4


class Model(Sizes, base.Width):
    """Sizes of a model that fit each other."""


class Batch(base.Section):
    """One update sees gpus x updates x tokens target tokens, however many GPUs there really are."""

    gpus: Annotated[base.Int, Field(gt=0, le=1024)] = 2
    updates: base.Count = 1
    tokens: base.Count = 4096


class Training(base.Optimisation):
    max_epochs: base.Count = 60
    batch: Batch = Field(default_factory=Batch)
    lr: base.LearningRate = 5e-4
    warmup_updates: base.Count = 4000
    weight_decay: base.Weight = 1e-4
    dropout: base.Rate = 0.3
    attention_dropout: base.Rate = 0.0
    label_smoothing: base.Rate = 0.1
    mlm_weight: base.Rate | dict[base.Direction, base.Rate] = 0.47
    checkpoint: Literal["average", "best", "best-bleu"] = "average"
    average: base.Count = 5
    validate_bleu: Annotated[base.Int, Field(ge=0)] = 0

    @property
    def kept(self) -> int:
        """How many epochs' models make up the final one: the last `average`, or the best."""
        return self.average if self.checkpoint == "average" else 1


class Guidance(base.Section):
    """How syntax guides the encoder, and the training objective: all that a run depends on of its system."""

    guide: str = "none"
    options: dict[str, Any] = {}
    mask_rate: base.Rate = 0.0
    mlm_weight: base.Rate = 0.0
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
            raise ValueError(f"options.{one_line(error, self.options)}") from None
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

    label: base.Line | None = None
    mlm_weight: base.Rate | Literal["corpus"] = 0.0
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


class RunSettings(base.Section):
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


class Decoding(base.Section):
    beam: base.Beam = 5
    length_penalty: base.LengthPenalty = 1.0
    max_tokens: base.Count = 8000
    precision: Literal["fp32", "bf16"] = "fp32"


class Resources(base.Section):
    """Resources that one training or decoding requests; results do not depend on them."""

    threads: Annotated[base.Int, Field(gt=0, le=1024)] = 2
    mem_mb: base.Megabytes = 8000
    runtime: base.Minutes = 720
    gpus: Annotated[base.Int, Field(ge=0, le=1024)] = 0
    checkpoint_minutes: base.Minutes = 15
    tensorboard: bool = False
    keep_checkpoints: bool = False


class ParserModels(base.Section):
    """CoreNLP's models for one language, by their names in its jars."""

    tagger: base.Line
    parser: base.Line
    dependencies: base.Line | None = None


class ParserSettings(ParserModels):
    """All that the trees of a language depend on besides its sentences and jars."""

    max_words: base.Count


class CoreNLPModels(ParserModels):
    """CoreNLP's models for one language, and their jars."""

    jars: dict[base.FileName, base.Checksum] = {}


class CoreNLP(base.Section):
    """CoreNLP: the parser behind `trees: corenlp`, and tokenisers; `url` is the folder of its jars."""

    url: base.Url | None = None
    jars: dict[base.FileName, base.Checksum] = {}
    segmenter: dict[base.FileName, base.Checksum] = {}
    languages: dict[base.Language, CoreNLPModels] = {}
    max_words: base.Count = 200
    threads: base.Count = 2
    mem_mb: base.Megabytes = 6000
    runtime: base.Minutes = 720

    @property
    def sha256(self) -> dict[str, str]:
        """The checksums of all jars."""
        jars = self.jars | self.segmenter
        for models in self.languages.values():
            jars |= models.jars
        return jars


Generated = Annotated[base.Int, Field(gt=0, le=10_000_000)]  # pairs; ten million are a GB


class Generate(base.Section):
    """Sizes and seed of a generated corpus."""

    seed: base.Seed = 1
    train: Generated
    valid: Generated
    test: Generated


Pairs = base.Count | tuple[base.Count, base.Count]  # a number, or the least and the most


class Corpus(base.Section):
    """Where the parallel text of a corpus comes from and how it is prepared, trained on and decoded."""

    languages: base.Distinct[base.Language] = Field(min_length=2)
    based_on: str | None = None  # the corpus whose keys hold where this one has none (`loading._inherit`)
    generate: Generate | None = None
    files: dict[base.Split, base.PathText | dict[base.Name, base.PathText]] | None = None
    format: base.Format | None = None
    archives: base.Distinct[base.FileName] = ()
    url: base.Url | None = None
    sha256: dict[str, base.Checksum] = {}
    pairs: dict[base.Split, Pairs] = {}
    trees: Literal["corenlp"] | dict[Literal["valid", "test"], base.PathText] = {}
    sentence: base.Count | None = None
    text: Text = Field(default_factory=Text)
    bpe: Bpe = Field(default_factory=Bpe)
    model: Model = Field(default_factory=Model)
    options: dict[base.SystemName, dict[base.Direction, dict[str, Any]]] = {}
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
            if base.ONLY.get(name, language) != language:
                raise ValueError(f"text.tokeniser: {name} is for {base.ONLY[name]}, not for {language}")
        if surplus := [language for language in tokenised if language not in self.languages]:
            raise ValueError(f"text.tokeniser: {', '.join(surplus)} is none of the languages")
        if self.generate is not None and {*self.languages} != {*DEMO_LANGUAGES}:
            raise ValueError(f"what is generated is {' and '.join(DEMO_LANGUAGES)}; give these languages")
        if self.generate is not None and self.trees:
            raise ValueError("a generated corpus has gold `trees` of its own; leave the key out")
        for split, pairs in self.pairs.items():
            if isinstance(pairs, tuple) and pairs[0] > pairs[1]:
                raise ValueError(f"pairs.{split}: {pairs[0]} is above {pairs[1]}; give [least, most]")
        return self

    @model_validator(mode="after")
    def _all_files(self) -> "Corpus":
        given = self.files or {}
        if missing := [split for split in SPLITS if given and split not in given]:
            raise ValueError(f"files: no entry for {', '.join(missing)}")
        for split, one in given.items():
            if not one or (split != "test" and isinstance(one, dict)):
                raise ValueError(f"files.{split}: give one file; only `test` may have several, named")
            base.distinct(self.file_names(split))
            for template in self.file_names(split):
                if "{language}" not in template:
                    raise ValueError(f"files.{split}: {template!r} has no {{language}} in it")
                if self.url and "/" in template:
                    raise ValueError(f"files.{split}: {template!r} has a folder in it; it belongs to `url`")
        return self

    def file_names(self, split: str) -> list[str]:
        """The names of a split's `files`: one, or one per test set."""
        given = self.files[split]
        return [*given.values()] if isinstance(given, dict) else [given]

    @property
    def test_sets(self) -> list[str]:
        """The names of the sets that make up the test set; none if it is a single one."""
        given = (self.files or {}).get("test")
        return [*given] if isinstance(given, dict) else []


class Sweep(base.Section):
    """A setting of an experiment's first system, and the values to try besides those that its systems have.

    Each value becomes a system named SYSTEM-SETTING-VALUE (`sweeps.expand_sweeps`).
    """

    setting: base.Line  # of a system: mlm_weight, options.bpe_dim, training.dropout
    values: base.Distinct[bool | int | float | base.Line] = Field(min_length=1)

    @property
    def key(self) -> str:
        """The setting's key in a run's settings."""
        own = self.setting.startswith(("model.", "training."))
        return self.setting if own else f"system.{self.setting}"


class Experiment(base.Section):
    """A target: which systems run on which corpus, and which tables show them."""

    title: base.Line
    corpus: base.Name
    directions: base.Distinct[base.Direction] = Field(min_length=1)
    systems: base.Distinct[base.SystemName] = Field(min_length=1)
    sweep: Sweep | None = None
    peers: base.Distinct[base.Name] = ()
    seeds: base.Distinct[base.Seed] | None = Field(default=None, min_length=1)
    tables: base.Distinct[Literal["translation", "parsing"]] = Field(default=("translation",), min_length=1)


class Table(base.Section):
    """A target: runs of some experiments beside published numbers; its first system is the baseline."""

    title: base.Line
    experiments: base.Distinct[base.Name] = ()
    benchmark: base.Name | None = None
    tasks: base.Distinct[base.Name] | None = Field(default=None, min_length=1)
    systems: base.Distinct[base.SystemName] | None = Field(default=None, min_length=1)
    metrics: base.Distinct[base.Metric] = Field(default=("bleu_tokenised", "sacrebleu"), min_length=1)

    @model_validator(mode="after")
    def _one_source_of_columns(self) -> "Table":
        if bool(self.experiments) == bool(self.benchmark):
            raise ValueError("give either `experiments` or `benchmark`")
        if self.benchmark and not self.systems:
            raise ValueError("a benchmark's table needs systems")
        if self.tasks and not self.benchmark:
            raise ValueError("tasks need a benchmark")
        if self.benchmark and self.metrics != ("glue",):
            raise ValueError("a benchmark's table needs metrics: [glue]")
        if self.experiments and "glue" in self.metrics:
            raise ValueError("the metric glue needs a benchmark")
        if 0 < len({*self.metrics} & {*get_args(base.Parsing)}) < len(self.metrics):
            raise ValueError("some metrics are of trees, others not; make a table of each")
        return self

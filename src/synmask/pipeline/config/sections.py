"""The sections of config.yaml: every key, its type and its default."""

from importlib.util import find_spec
from itertools import permutations
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from synmask.options import GuideOptions
from synmask.pipeline.config import base
from synmask.pipeline.config.base import key
from synmask.pipeline.files import SPLITS, Split
from synmask.pipeline.guidance import GUIDES, Guidance, adapter, option_values
from synmask.pipeline.languages import (
    WITHOUT_SPACES,
    default_tokeniser,
    match_language,
    script_of,
    split_direction,
)
from synmask.pipeline.metric_names import Parsing
from synmask.pipeline.tokens import Tokens


class Lengths(base.Section):
    """Which training pairs are kept."""

    min_tokens: base.Count = key("training pairs have at least so many tokens on each side", 1)
    max_tokens: base.Count | None = key("training pairs have at most so many; null: no limit", 175)
    max_ratio: Annotated[float, Field(ge=1), base.NUMBER] | None = key(
        "largest ratio of the two sides' lengths; null: no limit", 1.5
    )

    @model_validator(mode="after")
    def _something_is_kept(self) -> "Lengths":
        if self.max_tokens is not None and self.min_tokens > self.max_tokens:
            raise ValueError(f"min_tokens {self.min_tokens} is above max_tokens {self.max_tokens}")
        return self


class Text(Tokens, Lengths):
    """From raw text to tokens, and which training pairs are kept: without tokens above 1000 characters."""

    tokeniser: base.TextTokeniser | dict[base.Language, base.TextTokeniser] | None = key(
        "of all languages, or of each (docs/corpora.md); default: by the language's script", None
    )


Layers = Annotated[int, Field(gt=0, le=1000), base.NUMBER]
# fairseq's positions need 4
ModelWidth = Annotated[int, Field(ge=4, le=65536, description="width of embeddings and layers"), base.NUMBER]
Merges = Annotated[int, Field(gt=0, le=1_000_000), base.NUMBER]


class Bpe(base.Section):
    """Sub-words, which the languages of a pair share."""

    merges: Merges = key("operations of the joint BPE", 10000)
    vocabulary_threshold: base.Natural = key("sub-words that are rarer are split again", 0)


class SentencePiece(base.Section):
    """Sub-words by sentencepiece, not by BPE. Keys and defaults are the library's, but for `shared`."""

    vocab_size: Merges = key("pieces of a model", 8000)
    model_type: Literal["unigram", "bpe"] = key("how they are learned", "unigram")
    character_coverage: Annotated[float, Field(ge=0.98, le=1), base.NUMBER] = key(
        "share of the text's characters that the pieces cover; others are unknown", 0.9995
    )
    byte_fallback: bool = key("write these as bytes instead", False)
    shared: bool = key("one model for both languages; false: one for each", True)


class Sizes(base.Section):
    """Sizes of a model; those of a system count only where they are given, over those of the corpus."""

    encoder_layers: Layers = key("layers of the encoder", 6)
    decoder_layers: Layers = key("layers of the decoder", 6)
    embed_dim: ModelWidth = 512
    ffn_dim: base.FeedForward = 1024
    heads: base.Heads = 4


class Model(Sizes, base.Shape):
    """Sizes of a model that fit each other."""


class Batch(base.Section):
    """One update sees gpus x updates x tokens target tokens, however many GPUs there really are."""

    gpus: base.Devices = key("GPUs that the batch is meant for", 2)
    updates: base.Count = key("batches that are accumulated on each", 1)
    tokens: base.Count = key("target tokens of each batch", 4096)


class TrainingSettings(base.Optimisation):
    """How translation is trained; of a system, only the keys that are given count, over the corpus'."""

    max_epochs: base.Epochs = 60
    batch: Batch = key("the size of an update", Batch)
    lr: base.LearningRate = 5e-4
    warmup_updates: base.Count = key("updates until this peak", 4000)
    weight_decay: base.Decay = 1e-4
    dropout: base.Dropout = 0.3
    attention_dropout: base.AttentionDropout = 0.0
    label_smoothing: base.Rate = key("share of the target's probability for other words", 0.1)
    checkpoint: Literal["average", "best", "best-bleu"] = key(
        "decode with the mean of the last epochs, or that with the best validation loss or BLEU", "average"
    )
    average: base.Count = key("how many of the last epochs are averaged", 5)
    validate_bleu: base.Natural = key("compute validation BLEU every so many epochs; 0: never", 0)

    @property
    def kept(self) -> int:
        """How many epochs' models make up the final one: the last `average`, or the best."""
        return self.average if self.checkpoint == "average" else 1


class WholeTraining(TrainingSettings):
    """How a system is trained on a corpus: settings that fit each other."""

    @model_validator(mode="after")
    def _makes_its_model(self) -> "WholeTraining":
        if self.kept > self.max_epochs:
            fault = f"{self.average} epochs to average, but only {self.max_epochs} trained"
            raise base.Fault(("average",), fault)
        if self.checkpoint == "best-bleu" and not self.validate_bleu:
            raise base.Fault(("checkpoint",), "best-bleu needs a validate_bleu above 0")
        return self


class CorpusTraining(TrainingSettings):
    """How translation is trained on a corpus; it overrides the common training key by key."""

    mlm_weight: base.Rate | dict[base.Direction, base.Rate] = key(
        "λ, the share of the MLM loss, of systems with `mlm_weight: corpus`; one, or one per direction", 0.47
    )


def _options_by_guide(schema: dict[str, Any]) -> None:
    """Say in the JSON schema of systems which options each guide has."""
    schema["allOf"] = []
    for name, kind in GUIDES.items():
        options = adapter(kind).json_schema() | {"additionalProperties": False}
        options.pop("description", None)  # the docstring, which says of each key what the key says itself
        condition = {"properties": {"guide": {"const": name}}, "required": ["guide"]}
        schema["allOf"].append({"if": condition, "then": {"properties": {"options": options}}})


class System(Guidance):
    """One row of a table."""

    model_config = ConfigDict(json_schema_extra=_options_by_guide)

    label: base.Line | None = key("name in tables and figures; default: the system's name", None)
    mlm_weight: base.Rate | Literal["corpus"] = key("share of the MLM loss; `corpus`: the corpus'", 0.0)
    # of these two, only the keys that are given count
    model: Sizes = key("sizes of this system alone, over the corpus'", Sizes)
    training: TrainingSettings = key("training of this system alone, over the corpus'", TrainingSettings)

    @model_validator(mode="after")
    def _consistent(self) -> "System":
        if self.mlm_weight != 0 and self.mask_rate == 0:
            raise ValueError("mlm_weight needs a mask_rate above 0")
        return self

    def guidance(self, options: GuideOptions, mlm_weight: float) -> Guidance:
        """The settings that a run depends on, with these options and this share of the MLM loss."""
        settings = self.model_dump(include={*Guidance.model_fields})
        return Guidance(**settings | {"options": option_values(options), "mlm_weight": mlm_weight})


class Decoding(base.Section):
    """How a test set is translated; a corpus overrides key by key."""

    beam: base.Beam = key("hypotheses that are kept at each step", 5)
    length_penalty: base.LengthPenalty = key("exponent of the length in the score", 1.0)
    max_tokens: base.Count = key("source tokens per batch", 8000)
    precision: Literal["fp32", "bf16"] = key("bf16 may change a hypothesis", "fp32")


DEFAULT_DECODING = Decoding()


class Resources(base.Section):
    """Resources that one training or decoding requests; a change reruns nothing, but see docs/workflow.md."""

    threads: base.Devices = key(
        "cores of a training; several at once, with one each, are faster; other numbers change last bits",
        2,
    )
    mem_mb: base.Megabytes = key("memory in MB", 8000)
    runtime: base.Minutes = key("time limit in minutes", 720)
    gpus: Annotated[int, Field(ge=0, le=1024), base.NUMBER] = key(
        "reserved: requested from SLURM, or locked (docs/slurm.md); 0: share the GPU, if there is one", 0
    )
    nodes: base.Devices = key("nodes of one training, each with so many `gpus`; several need SLURM", 1)
    checkpoint_minutes: base.Minutes = key(
        "minutes between checkpoints: the most that a killed training loses", 15
    )
    tensorboard: bool = key("write curves to the run's tensorboard/ while it trains", False)
    keep_checkpoints: bool = key("keep checkpoints after the last epochs are averaged", False)

    @model_validator(mode="after")
    def _nodes_have_gpus(self) -> "Resources":
        if self.nodes > 1 and not self.gpus:
            raise ValueError(f"nodes {self.nodes}: give `gpus`, those of each node")
        return self


class ParserModels(base.Section):
    """CoreNLP's models for one language, by their names in its jars."""

    tagger: base.Line = key("its tagger, a path in the jars")
    parser: base.Line = key("its constituency parser")
    dependencies: base.Line | None = key("without it, heads are converted from the tree (en, zh)", None)


class ParserSettings(ParserModels):
    """All that the trees of a language depend on besides its sentences and jars."""

    max_words: base.Count


class CoreNLPModels(ParserModels):
    """CoreNLP's models for one language, and their jars."""

    jars: dict[base.FileName, base.Checksum] = key("jars of this language: sha256", {})


class CoreNLP(base.Section):
    """CoreNLP: the parser behind `trees: corenlp`, and tokenisers (docs/parsing.md)."""

    url: base.Url | None = key("the folder that its jars are downloaded from", None)
    jars: dict[base.FileName, base.Checksum] = key("jars that all languages need: sha256", {})
    segmenter: dict[base.FileName, base.Checksum] = key("those of `tokeniser: stanford`", {})
    languages: dict[base.Language, CoreNLPModels] = key("languages that it can parse, with their models", {})
    max_words: base.Count = key("longer sentences are not parsed: they get a flat tree", 200)
    threads: base.Count = key("sentences parsed at once", 2)
    mem_mb: base.Megabytes = key("memory of its JVM; English and Chinese need 5000, German 2500", 6000)
    runtime: base.Minutes = key("time limit in minutes", 720)

    @property
    def sha256(self) -> dict[str, str]:
        """The checksums of all jars."""
        jars = self.jars | self.segmenter
        for models in self.languages.values():
            jars |= models.jars
        return jars


Trees = Literal["corenlp"] | dict[Split, base.PathText]


def _ascending(pairs: tuple[int, int]) -> tuple[int, int]:
    if pairs[0] > pairs[1]:
        raise ValueError(f"{pairs[0]} is above {pairs[1]}; give [least, most]")
    return pairs


# a number, or the least and the most
Pairs = base.Count | Annotated[tuple[base.Count, base.Count], AfterValidator(_ascending)]


class Corpus(base.Section):
    """Where the parallel text of a corpus comes from and how it is prepared, trained on and decoded."""

    languages: base.Distinct[base.Language] = key("codes of ISO 639: de, deu, pt_BR", min_length=2)
    based_on: str | None = key("the corpus that all other keys are taken from", None)
    files: dict[Split, base.PathText | dict[base.Name, base.PathText]] | None = key(
        "of each split a file with {language} in its name, plain text or .gz, one sentence per line; several "
        "test sets have names, are decoded together, and scored together and apart",
        None,
    )
    format: base.Format | None = key("how archives become text (docs/corpora.md)", None)
    archives: base.Distinct[base.FileName] = key("the archives' file names", ())
    url: base.Url | None = key(
        "the folder that `files` or `archives` are downloaded from; without it, `files` are paths on this "
        "machine, and `archives` come from a folder that `mirrors` names",
        None,
    )
    sha256: base.Checksums = {}
    pairs: dict[Split, Pairs] = key("how many there must be: a number, or [least, most]", {})
    # null switches off those of a base corpus
    trees: Annotated[
        Trees,
        BeforeValidator(lambda given: {} if given is None else given, json_schema_input_type=Trees | None),
    ] = key(
        "gold trees for the parsing scores, and trees that systems read: `corenlp` parses the text; files of "
        "bracketed trees over tokens, one per sentence; null: none, although `based_on` has some",
        {},
    )
    heads: dict[Split, base.PathText] = key("of the same, dependency heads: from 1, the root's 0", {})
    sentence: base.Count | None = key("the validation sentence to draw; default: one of 8 to 14 words", None)
    text: Text = key("from raw text to tokens", Text)
    bpe: Bpe = key("sub-words", Bpe)
    sentencepiece: SentencePiece | None = key("sub-words by this library instead; {}: its defaults", None)
    model: Model = key("the sizes of all systems", Model)
    options: dict[base.SystemName, dict[base.Direction, dict[str, Any]]] = key(
        "a guide's options on this corpus, by system and direction, over those of the system", {}
    )
    training: CorpusTraining = key("keys that override the common `training`", CorpusTraining)
    decoding: Decoding = key("keys that override the common `decoding`", Decoding)
    resources: Resources = key("keys that override the common `resources`", Resources)
    # its own name, or that of `based_on`: not a key
    download: SkipJsonSchema[str] = key("the name under which its files are downloaded", "")

    @model_validator(mode="after")
    def _one_origin(self) -> "Corpus":
        if (self.files is None) == (self.format is None):
            raise ValueError("give one of `files` and `format`")
        if (self.format is None) != (not self.archives):
            raise ValueError("`format` and `archives` go together")
        if self.trees == "corenlp" and self.heads:
            raise ValueError("`trees: corenlp` makes `heads`, too; leave them out, or name files of both")
        return self

    @model_validator(mode="after")
    def _settle_tokenisers(self) -> "Corpus":
        """Name the tokenisers that are not given: a default that changes must run the steps again.

        `sentencepiece` takes the text as it is, by characters where no spaces part words; its pieces join
        these.
        """
        given = self.text.tokeniser
        if isinstance(given, dict) and given.keys() != {*self.languages}:
            raise ValueError(
                f"text.tokeniser: give one for each of {', '.join(self.languages)}, and no others"
            )
        chosen = {language: self.text.tokeniser_of(language) for language in self.languages}
        unspaced = {language for language in chosen if script_of(language) in WITHOUT_SPACES}
        for language, name in chosen.items():
            if name in base.ONLY and match_language(language, [base.ONLY[name]]) is None:
                raise ValueError(f"text.tokeniser: {name} is for {base.ONLY[name]}, not for {language}")
            if name == "icu" and language not in unspaced:
                fault = f"icu is for scripts without spaces, not for {language}"
                raise ValueError(f"text.tokeniser: {fault}; give {default_tokeniser(language)[0]}")
        raw = [language for language, name in chosen.items() if name == "sentencepiece"]
        if raw and (self.trees == "corenlp" or "train" in self.trees):
            fault = "sentencepiece makes no words, over which this corpus has trees"
            raise ValueError(f"text.tokeniser: {fault}; give another, and beside it `sentencepiece: {{}}`")
        chosen |= {language: "char" if language in unspaced else "none" for language in raw}
        if given is None or raw:
            tokeniser = chosen[self.languages[0]] if len({*chosen.values()}) == 1 else chosen
            self.__dict__["text"] = self.text.model_copy(update={"tokeniser": tokeniser})
        if pieces := self.sentencepiece or (SentencePiece() if raw else None):
            # the number of merges, for estimates of a model's size
            self.__dict__.update(sentencepiece=pieces, bpe=Bpe(merges=pieces.vocab_size))
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

    @model_validator(mode="after")
    def _refers_to_what_it_has(self) -> "Corpus":
        for system, directions in self.options.items():
            for direction in directions:
                path = ("options", system, direction)
                base.check_known(path, "direction", self.possible_directions, direction)
        valid = self.pairs.get("valid")
        most = valid[1] if isinstance(valid, tuple) else valid
        if self.sentence and most and self.sentence > most:
            fault = f"there is no sentence {self.sentence}: the validation set has {most}"
            raise base.Fault(("sentence",), fault)
        return self

    @property
    def possible_directions(self) -> list[str]:
        return [f"{source}-{target}" for source, target in permutations(self.languages, 2)]

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

    Each value becomes a system named SYSTEM-SETTING-VALUE (`sweeps.complete`).
    """

    setting: base.Line = key("of a system: mlm_weight, options.bpe_dim, training.dropout")
    values: base.Distinct[bool | int | float | base.Line] = key("values to try", min_length=1)

    @property
    def key(self) -> str:
        """The setting's key in a run's settings."""
        has_prefix = self.setting.startswith(("model.", "training."))
        return self.setting if has_prefix else f"system.{self.setting}"


class Experiment(base.Section):
    """A target: which systems run on which corpus, and which tables show them."""

    title: base.Line = key("heading of its tables")
    corpus: base.Name = key("one of `corpora`")
    directions: base.Distinct[base.Direction] = key("source-target, such as de-en", min_length=1)
    systems: base.Distinct[base.SystemName] = key("rows; the first is the baseline", min_length=1)
    sweep: Sweep | None = key("try values of a setting of the first system", None)
    peers: base.Distinct[base.Name] = key("rows that are not trained, of `published`", ())
    seeds: base.Seeds = None
    tables: base.Distinct[Literal["translation", "parsing"]] = key(
        "parsing needs gold trees", ("translation",), min_length=1
    )
    note: base.Line | None = key("a sentence above all results on its page", None)

    @model_validator(mode="after")
    def _rows_differ(self) -> "Experiment":
        for peer in self.peers:
            if peer in self.systems:
                raise base.Fault(("peers",), f"{peer!r} is among the systems; leave it out of one of them")
        return self

    @model_validator(mode="after")
    def _can_be_scored(self) -> "Experiment":
        with base.at("directions"):
            for _, target in map(split_direction, self.directions):
                if match_language(target, ["ko"]) and not find_spec("mecab_ko"):
                    raise ValueError(f"sacreBLEU lacks its tokeniser of {target}; pip install sacrebleu[ko]")
        return self


class Table(base.Section):
    """A target: runs of some experiments beside published numbers; its first system is the baseline."""

    title: base.Line = key("heading of the table")
    experiments: base.Distinct[base.Name] = key("their corpora and directions are the columns", ())
    benchmark: base.Name | None = key("instead: one of `benchmarks`; its tasks are the columns", None)
    tasks: base.Distinct[base.Name] | None = key("default: all", None, min_length=1)
    systems: base.Distinct[base.SystemName] | None = key(
        "rows; default: the experiments'", None, min_length=1
    )
    metrics: base.Distinct[base.Metric] = key(
        "valid_…: of the validation set; precision … sentence_f1: of trees (docs/tables.md)",
        ("bleu_tokenised", "sacrebleu"),
        min_length=1,
    )

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
        if 0 < len({*self.metrics} & {*get_args(Parsing)}) < len(self.metrics):
            raise ValueError("some metrics are of trees, others not; make a table of each")
        return self

    @model_validator(mode="after")
    def _has_its_functions(self) -> "Table":
        for place, metric in enumerate(self.metrics):
            try:
                if "." in metric:
                    base.module_file(metric)
            except ValueError as error:
                raise base.Fault(("metrics", place), f"{metric}: {error}") from None
        return self

"""The sections of config.yaml about language understanding: benchmarks, their tasks, RoBERTa's weights."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from synmask.pipeline.config.base import (
    Checksum,
    Count,
    Distinct,
    Line,
    Name,
    Optimisation,
    PathText,
    Positive,
    Rate,
    Section,
    Seed,
    Share,
    Url,
    Weight,
    Width,
)
from synmask.pipeline.config.faults import nearest
from synmask.pipeline.config.guides import ROBERTAS
from synmask.pipeline.config.sections import Batch, Guidance, Resources
from synmask.pipeline.tasks import TASKS


class RobertaTraining(Optimisation):
    """Settings that all trainings of a RoBERTa have."""

    max_epochs: Count = 10
    adam_eps: Positive = 1e-6
    dropout: Rate = 0.1
    attention_dropout: Rate = 0.1


class DecayingTraining(RobertaTraining):
    """The learning rate rises for `warmup_updates`, then falls to 0 at `total_updates`."""

    total_updates: Count

    @model_validator(mode="after")
    def _warms_up(self) -> "DecayingTraining":
        if self.warmup_updates > self.total_updates:
            warm, total = self.warmup_updates, self.total_updates
            raise ValueError(f"warmup_updates {warm} is above total_updates {total}")
        return self


class Finetuning(DecayingTraining):
    """How RoBERTa is fine-tuned; a task overrides key by key."""

    sentences: Count = 16
    lr: Positive = 1e-5
    weight_decay: Weight = 0.1
    max_tokens: Annotated[Count, Field(ge=3)] = 512


def _known_task(name: str) -> str:
    if name not in TASKS:
        raise ValueError(f"unknown task {name!r}{nearest(name, TASKS)}")
    return name


class FinetuningSettings(Section):
    """All that a fine-tuning depends on besides its data, weights and seed."""

    task: Annotated[Name, AfterValidator(_known_task)]
    training: Finetuning
    system: Guidance

    @field_validator("system")
    @classmethod
    def _guides_roberta(cls, system: Guidance) -> Guidance:
        if not system.guide_options.fits_roberta:
            raise ValueError(f"guide {system.guide!r} cannot guide a RoBERTa, which takes {ROBERTAS}")
        return system


class NluTask(Finetuning):
    """A task of language understanding: its source and its training."""

    column: Line
    urls: Distinct[Url] = ()
    rows: dict[Literal["train", "dev", "dev_matched", "dev_mismatched"], Count] = Field(min_length=2)
    test_urls: Distinct[Url] = ()
    test_rows: dict[Literal["test", "test_matched", "test_mismatched", "ax"], Count] = {}

    @property
    def parts(self) -> list[str]:
        """The parts to predict and score; the first one chooses the best epoch."""
        return [part for part in self.rows if part != "train"]

    @property
    def columns(self) -> list[str]:
        """Its columns in tables, one per part: for MNLI "MNLI-m" and "MNLI-mm"."""
        endings = {"dev_matched": "-m", "dev_mismatched": "-mm"}
        return [self.column + endings.get(part, "") for part in self.parts]


class GenerateTask(Section):
    """Sizes and seed of a generated task."""

    seed: Seed = 1
    train: Count
    dev: Count


class Benchmark(Section):
    """Tasks of language understanding, and the RoBERTa that is fine-tuned on them."""

    title: Line
    weights: Name
    weights_of: dict[Name, Name] = {}
    generate: Seed | None = None
    folder: PathText | None = None
    sha256: dict[str, Checksum] = {}
    seeds: Distinct[Seed] | None = Field(default=None, min_length=1)
    finetuning: dict[str, Any] = {}
    tasks: dict[Name, NluTask] = Field(min_length=1)
    resources: Resources = Field(default_factory=Resources)

    @model_validator(mode="after")
    def _one_origin(self) -> "Benchmark":
        if self.generate is not None and self.folder is not None:
            raise ValueError("give `generate` or `folder`, not both")
        return self


class RobertaSize(Width):
    layers: Count = 12
    embed_dim: Count = 768
    ffn_dim: Count = 3072
    heads: Count = 12
    max_positions: Annotated[Count, Field(ge=3)] = 512  # <s>, a token, </s>


class PretrainingSettings(RobertaTraining):
    """Pre-training by masked language modelling, until `max_epochs`."""

    batch: Batch = Field(default_factory=lambda: Batch(gpus=1))
    lr: Positive = 5e-4
    warmup_updates: Count = 4000
    weight_decay: Weight = 0.01
    mask_rate: Share = 0.15


Files = Annotated[Distinct[PathText], Field(min_length=1)]


class PretrainingRun(Section):
    """All that a pre-training depends on besides its data and seed."""

    model: RobertaSize = Field(default_factory=RobertaSize)
    training: PretrainingSettings = Field(default_factory=PretrainingSettings)


class GenerateText(Section):
    """Numbers of documents and seed of generated text."""

    seed: int = 1
    train: Count
    valid: Count


class Pretrain(PretrainingRun):
    """A RoBERTa that is trained here: its text, sub-words, size and training."""

    text: dict[Literal["train", "valid"], Files] = {}
    generate: GenerateText | None = None
    merges: Count = 10000
    seed: Seed = 1
    resources: Resources = Field(default_factory=Resources)

    @model_validator(mode="after")
    def _one_text(self) -> "Pretrain":
        if len(self.text) != (0 if self.generate else 2):
            raise ValueError("give `text` with `train` and `valid`, or `generate`")
        return self


class Continuation(DecayingTraining):
    """Continued pre-training. The defaults are SynCLM's; its paper does not give `max_epochs`."""

    batch: Batch = Field(default_factory=lambda: Batch(gpus=1, tokens=6250))
    lr: Positive = 3e-5
    total_updates: Count = 3_000_000
    warmup_updates: Annotated[int, Field(ge=0)] = 24_000
    weight_decay: Weight = 0.005
    mask_rate: Share = 0.15


class ContinuedRun(Section):
    """All that continued pre-training depends on besides its data, weights and seed."""

    losses: Distinct[Literal["phrase", "tree"]] = ("phrase", "tree")
    training: Continuation = Field(default_factory=Continuation)


class Continued(ContinuedRun):
    """Weights that are pre-trained further on parsed sentences."""

    weights: Name
    parses: dict[Literal["train", "valid"], Files] = Field(min_length=2)
    max_tokens: Count = 512
    seed: Seed = 1
    resources: Resources = Field(default_factory=Resources)


class WeightsSource(Section):
    """Where a pre-trained RoBERTa comes from: one of four."""

    archive: Url | None = None
    bpe: tuple[Url, Url] | None = None
    sha256: dict[str, Checksum] = {}
    huggingface: PathText | None = None
    pretrain: Pretrain | None = None
    continued: Continued | None = None

    @model_validator(mode="after")
    def _one_origin(self) -> "WeightsSource":
        origins = (self.archive, self.huggingface, self.pretrain, self.continued)
        if sum(origin is not None for origin in origins) != 1:
            raise ValueError("give one of `archive`, `huggingface`, `pretrain` and `continued`")
        if (self.archive is None) != (self.bpe is None):
            raise ValueError("`archive` and `bpe` go together")
        return self

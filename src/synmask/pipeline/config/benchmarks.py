"""The sections of config.yaml about language understanding: benchmarks, their tasks, RoBERTa's weights."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from synmask.pipeline.config import base
from synmask.pipeline.config.faults import nearest
from synmask.pipeline.config.guides import ROBERTAS
from synmask.pipeline.config.sections import Batch, Guidance, Resources
from synmask.pipeline.tasks import TASKS


class RobertaTraining(base.Optimisation):
    """Settings that all trainings of a RoBERTa have."""

    max_epochs: base.Count = 10
    adam_eps: base.Positive = 1e-6
    dropout: base.Rate = 0.1
    attention_dropout: base.Rate = 0.1


class DecayingTraining(RobertaTraining):
    """The learning rate rises for `warmup_updates`, then falls to 0 at `total_updates`."""

    total_updates: base.Count

    @model_validator(mode="after")
    def _warms_up(self) -> "DecayingTraining":
        if self.warmup_updates > self.total_updates:
            warm, total = self.warmup_updates, self.total_updates
            raise ValueError(f"warmup_updates {warm} is above total_updates {total}")
        return self


class Finetuning(DecayingTraining):
    """How RoBERTa is fine-tuned; a task overrides key by key."""

    sentences: base.Count = 16
    lr: base.LearningRate = 1e-5
    weight_decay: base.Weight = 0.1
    max_tokens: Annotated[base.Count, Field(ge=3)] = 512


def _known_task(name: str) -> str:
    if name not in TASKS:
        raise ValueError(f"unknown task {name!r}{nearest(name, TASKS)}")
    return name


class FinetuningSettings(base.Section):
    """All that a fine-tuning depends on besides its data, weights and seed."""

    task: Annotated[base.Name, AfterValidator(_known_task)]
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

    column: base.Line
    urls: base.Distinct[base.Url] = ()
    rows: dict[Literal["train", "dev", "dev_matched", "dev_mismatched"], base.Count] = Field(min_length=2)
    test_urls: base.Distinct[base.Url] = ()
    test_rows: dict[Literal["test", "test_matched", "test_mismatched", "ax"], base.Count] = {}

    @property
    def parts(self) -> list[str]:
        """The parts to predict and score; the first one chooses the best epoch."""
        return [part for part in self.rows if part != "train"]

    @property
    def columns(self) -> list[str]:
        """Its columns in tables, one per part: for MNLI "MNLI-m" and "MNLI-mm"."""
        endings = {"dev_matched": "-m", "dev_mismatched": "-mm"}
        return [self.column + endings.get(part, "") for part in self.parts]


class GenerateTask(base.Section):
    """Sizes and seed of a generated task."""

    seed: base.Seed = 1
    train: base.Count
    dev: base.Count


class Benchmark(base.Section):
    """Tasks of language understanding, and the RoBERTa that is fine-tuned on them."""

    title: base.Line
    weights: base.Name
    weights_of: dict[base.Name, base.Name] = {}
    generate: base.Seed | None = None
    folder: base.PathText | None = None
    sha256: dict[str, base.Checksum] = {}
    seeds: base.Distinct[base.Seed] | None = Field(default=None, min_length=1)
    finetuning: dict[str, Any] = {}
    tasks: dict[base.Name, NluTask] = Field(min_length=1)
    resources: Resources = Field(default_factory=Resources)

    @model_validator(mode="after")
    def _one_origin(self) -> "Benchmark":
        if self.generate is not None and self.folder is not None:
            raise ValueError("give `generate` or `folder`, not both")
        return self


class RobertaSize(base.Width):
    layers: base.Count = 12
    embed_dim: base.Count = 768
    ffn_dim: base.Count = 3072
    heads: base.Count = 12
    max_positions: Annotated[base.Count, Field(ge=3)] = 512  # <s>, a token, </s>


class PretrainingSettings(RobertaTraining):
    """Pre-training by masked language modelling, until `max_epochs`."""

    batch: Batch = Field(default_factory=lambda: Batch(gpus=1))
    lr: base.LearningRate = 5e-4
    warmup_updates: base.Count = 4000
    weight_decay: base.Weight = 0.01
    mask_rate: base.Share = 0.15


Files = Annotated[base.Distinct[base.PathText], Field(min_length=1)]


class PretrainingRun(base.Section):
    """All that a pre-training depends on besides its data and seed."""

    model: RobertaSize = Field(default_factory=RobertaSize)
    training: PretrainingSettings = Field(default_factory=PretrainingSettings)


class GenerateText(base.Section):
    """Numbers of documents and seed of generated text."""

    seed: base.Int = 1
    train: base.Count
    valid: base.Count


class Pretrain(PretrainingRun):
    """A RoBERTa that is trained here: its text, sub-words, size and training."""

    text: dict[Literal["train", "valid"], Files] = {}
    generate: GenerateText | None = None
    merges: base.Count = 10000
    seed: base.Seed = 1
    resources: Resources = Field(default_factory=Resources)

    @model_validator(mode="after")
    def _one_text(self) -> "Pretrain":
        if len(self.text) != (0 if self.generate else 2):
            raise ValueError("give `text` with `train` and `valid`, or `generate`")
        return self


class Continuation(DecayingTraining):
    """Continued pre-training. The defaults are SynCLM's; its paper does not give `max_epochs`."""

    batch: Batch = Field(default_factory=lambda: Batch(gpus=1, tokens=6250))
    lr: base.LearningRate = 3e-5
    total_updates: base.Count = 3_000_000
    warmup_updates: base.Natural = 24_000
    weight_decay: base.Weight = 0.005
    mask_rate: base.Share = 0.15


class ContinuedRun(base.Section):
    """All that continued pre-training depends on besides its data, weights and seed."""

    losses: base.Distinct[Literal["phrase", "tree"]] = ("phrase", "tree")
    training: Continuation = Field(default_factory=Continuation)


class Continued(ContinuedRun):
    """Weights that are pre-trained further on parsed sentences."""

    weights: base.Name
    parses: dict[Literal["train", "valid"], Files] = Field(min_length=2)
    max_tokens: base.Count = 512
    seed: base.Seed = 1
    resources: Resources = Field(default_factory=Resources)


class WeightsSource(base.Section):
    """Where a pre-trained RoBERTa comes from: one of four."""

    url: base.Url | None = None
    sha256: dict[str, base.Checksum] = {}
    huggingface: base.PathText | None = None
    pretrain: Pretrain | None = None
    continued: Continued | None = None

    @model_validator(mode="after")
    def _one_origin(self) -> "WeightsSource":
        origins = (self.url, self.huggingface, self.pretrain, self.continued)
        if sum(origin is not None for origin in origins) != 1:
            raise ValueError("give one of `url`, `huggingface`, `pretrain` and `continued`")
        return self

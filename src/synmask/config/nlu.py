"""The sections of config.yaml about language understanding: benchmarks, their tasks, RoBERTa's weights."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from synmask.config.base import (
    Checksum,
    Count,
    Distinct,
    Line,
    Name,
    Optimisation,
    PathText,
    Rate,
    Section,
    Seed,
    Url,
    Width,
)
from synmask.config.sections import Batch, Guidance, Resources


class Finetuning(Optimisation):
    """How RoBERTa is fine-tuned; a task overrides key by key."""

    max_epochs: Count = 10
    sentences: Count = 16
    lr: Annotated[float, Field(gt=0)] = 1e-5
    total_updates: Count
    warmup_updates: Annotated[int, Field(ge=0)]
    adam_eps: Annotated[float, Field(gt=0)] = 1e-6
    weight_decay: Annotated[float, Field(ge=0)] = 0.1
    dropout: Rate = 0.1
    attention_dropout: Rate = 0.1
    max_tokens: Count = 512

    @model_validator(mode="after")
    def _warms_up(self) -> "Finetuning":
        if self.warmup_updates > self.total_updates:
            warm, total = self.warmup_updates, self.total_updates
            raise ValueError(f"warmup_updates {warm} is above total_updates {total}")
        return self


class FinetuningSettings(Section):
    """All that a fine-tuning depends on besides its data, weights and seed."""

    task: Name
    training: Finetuning
    system: Guidance


class NluTask(Finetuning):
    """A task of language understanding: where it comes from, how it is trained."""

    column: Line
    urls: Distinct[Url] = ()
    rows: dict[Literal["train", "dev", "dev_matched", "dev_mismatched"], Count] = Field(min_length=2)

    @property
    def parts(self) -> list[str]:
        """What is predicted and scored; the first part chooses the best epoch."""
        return [part for part in self.rows if part != "train"]

    @property
    def columns(self) -> list[str]:
        """Its columns in tables, one a part: of MNLI "MNLI-m" and "MNLI-mm"."""
        endings = {"dev_matched": "-m", "dev_mismatched": "-mm"}
        return [self.column + endings.get(part, "") for part in self.parts]


class GenerateTask(Section):
    """Sizes and seed of a generated task."""

    seed: int = 1
    train: Count
    dev: Count


class Benchmark(Section):
    """Tasks of language understanding, and the RoBERTa that is fine-tuned on them."""

    title: Line
    weights: Name
    weights_of: dict[Name, Name] = {}
    generate: int | None = None
    folder: PathText | None = None
    sha256: dict[str, Checksum] = {}
    seeds: Distinct[Seed] | None = Field(default=None, min_length=1)
    finetuning: dict[str, Any] = {}
    tasks: dict[Name, NluTask] = Field(min_length=1)
    resources: Resources = Resources()


class RobertaSize(Width):
    layers: Count = 12
    embed_dim: Count = 768
    ffn_dim: Count = 3072
    heads: Count = 12
    max_positions: Count = 512


class PretrainingSettings(Optimisation):
    """Pre-training by masked language modelling, until `max_epochs`."""

    max_epochs: Count = 10
    batch: Batch = Batch(gpus=1)
    lr: Annotated[float, Field(gt=0)] = 5e-4
    warmup_updates: Count = 4000
    adam_eps: Annotated[float, Field(gt=0)] = 1e-6
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    dropout: Rate = 0.1
    attention_dropout: Rate = 0.1
    mask_rate: Annotated[float, Field(gt=0, lt=1)] = 0.15


Files = Annotated[Distinct[PathText], Field(min_length=1)]


class PretrainingRun(Section):
    """All that a pre-training depends on besides its data and seed."""

    model: RobertaSize = RobertaSize()
    training: PretrainingSettings = PretrainingSettings()


class GenerateText(Section):
    """Numbers of documents and seed of generated text."""

    seed: int = 1
    train: Count
    valid: Count


class Pretrain(PretrainingRun):
    """A RoBERTa of one's own: its text, its sub-words, its size, its training."""

    text: dict[Literal["train", "valid"], Files] = {}
    generate: GenerateText | None = None
    merges: Count = 10000
    seed: Seed = 1
    resources: Resources = Resources()

    @model_validator(mode="after")
    def _one_text(self) -> "Pretrain":
        if len(self.text) != (0 if self.generate else 2):
            raise ValueError("give `text` with `train` and `valid`, or `generate`")
        return self


class Continuation(Optimisation):
    """Pre-training that goes on. The defaults are SynCLM's, but for `max_epochs`, which it does not say."""

    max_epochs: Count = 10
    batch: Batch = Batch(gpus=1, tokens=6250)
    lr: Annotated[float, Field(gt=0)] = 3e-5
    total_updates: Count = 3_000_000
    warmup_updates: Annotated[int, Field(ge=0)] = 24_000
    adam_eps: Annotated[float, Field(gt=0)] = 1e-6
    weight_decay: Annotated[float, Field(ge=0)] = 0.005
    dropout: Rate = 0.1
    attention_dropout: Rate = 0.1
    mask_rate: Annotated[float, Field(gt=0, lt=1)] = 0.15

    _warms_up = model_validator(mode="after")(Finetuning._warms_up)


class ContinuedRun(Section):
    """All that continued pre-training depends on besides its data, weights and seed."""

    losses: Distinct[Literal["phrase", "tree"]] = ("phrase", "tree")
    training: Continuation = Continuation()


class Continued(ContinuedRun):
    """Weights that are pre-trained further on parsed sentences."""

    weights: Name
    parses: dict[Literal["train", "valid"], Files] = Field(min_length=2)
    max_tokens: Count = 512
    seed: Seed = 1
    resources: Resources = Resources()


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

"""The sections of config.yaml about language understanding: benchmarks, their tasks, RoBERTa's weights."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from synmask.pipeline.config import base
from synmask.pipeline.config.base import key
from synmask.pipeline.config.sections import Batch, Resources
from synmask.pipeline.guidance import GUIDES, Guidance
from synmask.pipeline.tasks import TASKS

BASELINES = {"majority": "Majority", "bag-of-words": "Bag of words"}  # trivial ones: nothing is trained

_PLAIN = ", ".join(f"`{name}`" for name, kind in GUIDES.items() if kind.roberta and name != "grammar")
ROBERTAS = f"guide {_PLAIN}, or `grammar` with bpe: none"  # for messages

Least3 = Annotated[int, Field(ge=3, lt=2**63), base.NUMBER]  # <s>, a token, </s>


class RobertaTraining(base.Optimisation):
    """Settings that all trainings of a RoBERTa have."""

    max_epochs: base.Epochs = 10
    adam_eps: base.Positive = key("Adam's ε", 1e-6)
    dropout: base.Dropout = 0.1
    attention_dropout: base.AttentionDropout = 0.1


TotalUpdates = Annotated[base.Count, Field(description="updates until the learning rate is 0")]


class DecayingTraining(RobertaTraining):
    """The learning rate rises for `warmup_updates`, then falls to 0 at `total_updates`."""

    total_updates: TotalUpdates

    @model_validator(mode="after")
    def _warms_up(self) -> "DecayingTraining":
        if self.warmup_updates > self.total_updates:
            warm, total = self.warmup_updates, self.total_updates
            raise ValueError(f"warmup_updates {warm} is above total_updates {total}")
        return self


class Finetuning(DecayingTraining):
    """How RoBERTa is fine-tuned; a task overrides key by key."""

    sentences: base.Count = key("examples per batch", 16)
    lr: base.LearningRate = 1e-5
    weight_decay: base.Decay = 0.1
    max_tokens: Least3 = key("longer examples are cut", 512)


def _known_task(name: str) -> str:
    base.check_known((), "task", TASKS, name)
    return name


class FinetuningSettings(base.Section):
    """All that a fine-tuning depends on besides its data, weights and seed."""

    task: Annotated[base.Name, AfterValidator(_known_task)]
    training: Finetuning
    system: Guidance

    @field_validator("system")
    @classmethod
    def _guides_roberta(cls, system: Guidance) -> Guidance:
        if not system.fits_roberta:
            raise ValueError(f"guide {system.guide!r} cannot guide a RoBERTa, which takes {ROBERTAS}")
        return system


Part = Literal["train", "dev", "dev_matched", "dev_mismatched"]
TestPart = Literal["test", "test_matched", "test_mismatched", "ax"]


class NluTask(Finetuning):
    """A task of language understanding: its source and its training."""

    column: base.Line = key("its heading in tables")
    urls: base.Distinct[base.Url] = key("its downloads", ())
    rows: dict[Part, base.Count] = key("how many its parts must have", min_length=2)
    test_urls: base.Distinct[base.Url] = key("downloads of test sets", ())
    test_rows: dict[TestPart, base.Count] = key("of test sets, for TABLE-submission; ax: diagnostic", {})

    @property
    def parts(self) -> list[str]:
        """The parts to predict and score; the first one chooses the best epoch."""
        return [part for part in self.rows if part != "train"]

    @property
    def columns(self) -> list[str]:
        """Its columns in tables, one per part: for MNLI "MNLI-m" and "MNLI-mm"."""
        endings = {"dev_matched": "-m", "dev_mismatched": "-mm"}
        return [self.column + endings.get(part, "") for part in self.parts]


class Benchmark(base.Section):
    """Tasks of language understanding, and the RoBERTa that is fine-tuned on them."""

    title: base.Line = key("of the benchmark, in pages")
    weights: base.Name = key("what is fine-tuned: one of `weights`")
    weights_of: dict[base.Name, base.Name] = key("system: other weights", {})
    folder: base.PathText | None = key("your folder of the tasks: CoLA/train.tsv (or .tsv.gz), …", None)
    parsed: bool = key("whether it also has train.text, .tokens, .trees and .heads (or .gz) of each", False)
    sha256: base.Checksums = {}
    seeds: base.Seeds = None
    finetuning: dict[str, Any] = key("keys of `tasks` that all share", {})
    tasks: dict[base.Name, NluTask] = key("GLUE's, or the demo's", min_length=1)
    resources: Resources = key("keys that override the common `resources`", Resources)

    @model_validator(mode="after")
    def _parses_have_a_folder(self) -> "Benchmark":
        if self.parsed and self.folder is None:
            raise ValueError("parsed: name the `folder` with the parses")
        return self

    @model_validator(mode="after")
    def _tasks_have_sources(self) -> "Benchmark":
        columns: dict[str, str] = {}
        for name, task in self.tasks.items():
            path = ("tasks", name)
            base.check_known(path, "task", TASKS, name)
            if self.folder is None and not task.urls:
                raise base.Fault(path, "give `urls`, or the benchmark's `folder`")
            if "train" not in task.rows:
                raise base.Fault((*path, "rows"), "no number of rows for train")
            if (other := columns.setdefault(task.column, name)) != name:
                fault = f"{task.column!r} is that of {other!r}; give it its own"
                raise base.Fault((*path, "column"), fault)
        return self


class RobertaSize(base.Shape):
    """Sizes of a RoBERTa."""

    layers: base.Count = key("layers of the encoder", 12)
    embed_dim: base.Width = 768
    ffn_dim: base.FeedForward = 3072
    heads: base.Heads = 12
    max_positions: Least3 = key("tokens, with <s> and </s>", 512)


class PretrainingSettings(RobertaTraining):
    """Pre-training by masked language modelling, until `max_epochs`."""

    batch: Batch = key("the size of an update", lambda: Batch(gpus=1))
    lr: base.LearningRate = 5e-4
    warmup_updates: base.Count = key("updates until this peak", 4000)
    weight_decay: base.Decay = 0.01
    mask_rate: base.MaskRate = 0.15


Texts = dict[Literal["train", "valid"], Annotated[base.Distinct[base.PathText], Field(min_length=1)]]


class PretrainingRun(base.Section):
    """All that a pre-training depends on besides its data and seed."""

    model: RobertaSize = key("its sizes", RobertaSize)
    training: PretrainingSettings = key("how it is trained", PretrainingSettings)


class Pretrain(PretrainingRun):
    """A RoBERTa that is trained here: its text, sub-words, size and training."""

    text: Texts = key("plain text: one sentence per line, an empty line after each document", min_length=2)
    merges: base.Count = key("operations of its byte-level BPE", 10000)
    seed: base.OneSeed = 1
    resources: Resources = key("memory, time and devices that its training asks for", Resources)


class Continuation(DecayingTraining):
    """Continued pre-training. The defaults are SynCLM's; its paper does not give `max_epochs`."""

    batch: Batch = key("the size of an update", lambda: Batch(gpus=1, tokens=6250))
    lr: base.LearningRate = 3e-5
    total_updates: TotalUpdates = 3_000_000
    warmup_updates: base.Warmup = 24_000
    weight_decay: base.Decay = 0.005
    mask_rate: base.MaskRate = 0.15


class ContinuedRun(base.Section):
    """All that continued pre-training depends on besides its data, weights and seed."""

    losses: base.Distinct[Literal["phrase", "tree"]] = key(
        "SynCLM's losses; []: none, as a control", ("phrase", "tree")
    )
    training: Continuation = key("how they are trained", Continuation)


class Continued(ContinuedRun):
    """Weights that are pre-trained further on parsed sentences."""

    weights: base.Name = key("those to start from: one of `weights`")
    parses: Texts = key("parsed sentences: prefixes of .text, .tokens, .trees and .heads", min_length=2)
    max_tokens: base.Count = key("of a sentence", 512)
    seed: base.OneSeed = 1
    resources: Resources = key("memory, time and devices that their training asks for", Resources)


class WeightsSource(base.Section):
    """Where a pre-trained RoBERTa comes from: one of four."""

    url: base.Url | None = key("where a RoBERTa in Hugging Face's format is downloaded from", None)
    sha256: base.Checksums = {}
    huggingface: base.PathText | None = key("a folder of yours in this format (docs/nlu.md)", None)
    pretrain: Pretrain | None = key("your own, trained on plain text", None)
    continued: Continued | None = key("other weights, trained further on parsed sentences", None)

    @model_validator(mode="after")
    def _one_origin(self) -> "WeightsSource":
        origins = (self.url, self.huggingface, self.pretrain, self.continued)
        if sum(origin is not None for origin in origins) != 1:
            raise ValueError("give one of `url`, `huggingface`, `pretrain` and `continued`")
        return self

    @property
    def trained(self) -> Pretrain | Continued | None:
        """How they are trained here; None for those that others trained."""
        return self.pretrain or self.continued

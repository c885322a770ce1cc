"""What the sections of config.yaml have in common: names, paths, numbers."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

Rate = Annotated[float, Field(ge=0, lt=1)]
Count = Annotated[int, Field(gt=0)]
Weight = Annotated[float, Field(ge=0)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class Width(Section):
    """The width of a model, which its attention heads share evenly."""

    embed_dim: Count
    heads: Count

    @model_validator(mode="after")
    def _divisible(self) -> "Width":
        if self.embed_dim % self.heads:
            raise ValueError(f"embed_dim {self.embed_dim} is not a multiple of heads {self.heads}")
        return self


class Optimisation(Section):
    """What all trainings by Adam have in common."""

    adam_betas: tuple[Rate, Rate] = (0.9, 0.98)
    clip_norm: Annotated[float, Field(ge=0)] = 0.0
    precision: Literal["fp32", "fp16", "bf16"] = "fp32"


def _plain_name(name: str) -> str:
    """Names become file names, targets and table rows: refuse anything a shell or a path could misread."""
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise ValueError("use lower-case letters and digits, joined by single hyphens")
    return name


def _one_line(text: str) -> str:
    """Titles, labels and paths stand in logs, tables and commands of one line."""
    if not text.isprintable():
        raise ValueError("a line break or another character that cannot be shown is in it")
    return text


def _plain_path(path: str) -> str:
    """Snakemake would read other braces in a path as wildcards."""
    if re.search(r"[{}]", path.replace("{language}", "")):
        raise ValueError("no braces in a path but {language}")
    return path


Name = Annotated[str, AfterValidator(_plain_name)]
Line = Annotated[str, AfterValidator(_one_line)]
PathText = Annotated[Line, AfterValidator(_plain_path)]
Language = Annotated[str, Field(pattern=r"^[a-z]{2,3}$")]
Direction = Annotated[str, Field(pattern=r"^[a-z]{2,3}-[a-z]{2,3}$")]
Split = Literal["train", "valid", "test"]
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$")]
Checksum = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Tokeniser = Literal["moses", "corenlp", "juman", "stanford", "none"]
Translation = Literal["bleu_tokenised", "sacrebleu", "chrf"]
Parsing = Literal["precision", "recall", "f1", "sentence_f1"]
Cost = Literal["parameters", "tokens_per_second", "device_hours", "memory"]
Metric = Translation | Parsing | Cost | Literal["glue"]  # GLUE's has published numbers only

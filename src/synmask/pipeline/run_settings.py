"""All that a training for translation depends on besides its data and seed."""

from typing import Any

from pydantic import Field, field_validator, model_validator

from synmask.pipeline.config.base import Section
from synmask.pipeline.config.sections import Decoding, Model, TrainingSettings
from synmask.pipeline.guidance import Guidance


class RunSettings(Section):
    """All that a training depends on besides its data and seed."""

    model: Model
    training: TrainingSettings
    system: Guidance
    decoding: Decoding = Field(default_factory=Decoding)  # of the validation set

    @field_validator("system")
    @classmethod
    def _translates(cls, system: Guidance) -> Guidance:
        if "words" in system.options_class.reads:
            raise ValueError(f"guide {system.guide!r} is made for RoBERTa; give one that guides translation")
        return system

    @model_validator(mode="after")
    def _guides_what_is_there(self) -> "RunSettings":
        for name, size in (("heads", self.model.heads), ("layers", self.model.encoder_layers)):
            if (guided := getattr(self.system.guide_options, name, None) or 0) > size:
                raise ValueError(f"guides {guided} {name}, the model has {size}")
        return self

    def plain(self, **kwargs: Any) -> dict[str, Any]:
        """Without settings that no training depends on.

        No training depends on the number of averaged epochs. Nothing is decoded, unless `validate_bleu` asks
        for it.
        """
        unused: dict[str, Any] = {"training": {"average"}}
        if self.training.checkpoint == "average":
            unused["training"].add("checkpoint")
        if not self.training.validate_bleu:
            unused["training"].add("validate_bleu")
            unused["decoding"] = True
        return super().plain(exclude=unused, **kwargs)

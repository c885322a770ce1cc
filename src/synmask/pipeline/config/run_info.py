"""The description of a run in score files."""

from typing import Any

from pydantic import ConfigDict

from synmask.pipeline.config.base import Direction, Section, sides


class RunInfo(Section):
    """A run: the keys that tables and pages read, and any others."""

    model_config = ConfigDict(extra="allow")

    corpus: str | None = None
    direction: Direction | None = None
    task: str | None = None
    system: str | None = None
    seed: int | None = None
    settings: dict[str, Any] | None = None

    def given(self) -> dict[str, Any]:
        """The keys that were given, as JSON values."""
        return self.model_dump(mode="json", exclude_unset=True)


class TranslationInfo(RunInfo):
    direction: Direction

    @property
    def target(self) -> str:
        """The language of the hypotheses."""
        return sides(self.direction)[1]

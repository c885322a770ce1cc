"""The options of the guide `syntax`."""

from dataclasses import dataclass

from synmask.options import GuideOptions, documented, option


@documented
@dataclass(frozen=True)
class SyntaxOptions(GuideOptions):
    reads = frozenset({"words"})
    roberta = True

    distance: int = option(
        4, "masks for parents and children up to so many steps, for siblings at one edge more", gt=0, lt=2**63
    )
    start: float = option(0.01, "share at the start of all masks but the one that allows all", gt=0, lt=1)

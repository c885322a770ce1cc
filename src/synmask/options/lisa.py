"""The options of the guide `lisa`."""

from dataclasses import dataclass

from synmask.options import GuideOptions, documented, option


@documented
@dataclass(frozen=True)
class LisaOptions(GuideOptions):
    reads = frozenset({"heads"})
    parses_itself = True

    parse_weight: float = option(
        1.0, "weight of the loss of the attention head that learns to point to the parent", ge=0
    )

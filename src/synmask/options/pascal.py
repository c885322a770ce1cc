"""The options of the guide `pascal`."""

from dataclasses import dataclass

from synmask.options import HeadOptions, documented, option


@documented
@dataclass(frozen=True)
class PascalOptions(HeadOptions):
    reads = frozenset({"heads"})

    sigma: float = option(1.0, "standard deviation of the Gaussian around the parent, in sub-words", gt=0)
    ignore: float = option(0.0, "share of rows that are left unguided in training", ge=0, lt=1)

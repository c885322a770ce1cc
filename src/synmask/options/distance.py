"""The options of the guide `distance`."""

from dataclasses import dataclass

from synmask.options import HeadOptions, documented, option


@documented
@dataclass(frozen=True)
class DistanceOptions(HeadOptions):
    reads = frozenset({"distances"})

    temperature: float = option(10.0, "of the gates: differences of distances are divided by it", gt=0)

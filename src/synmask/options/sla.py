"""The options of the guide `sla`."""

from dataclasses import dataclass

from synmask.options import GuideOptions, documented, option


@documented
@dataclass(frozen=True)
class SlaOptions(GuideOptions):
    reads = frozenset({"words"})
    roberta = True

    edges: int = option(3, "edges of the dependency tree that the local attention reaches", gt=0, lt=2**63)
    start: float = option(0.01, "share of the local attention at the start, in all layers", gt=0, lt=1)

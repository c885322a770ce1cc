"""The options of the guide `lpsi`."""

from dataclasses import dataclass
from typing import Literal

from synmask.options import HeadOptions, documented, option


@documented
@dataclass(frozen=True)
class LpsiOptions(HeadOptions):
    induces = frozenset({"distances"})

    temperature: float = option(10.0, "of the gates: differences of distances are multiplied by it", gt=0)
    sync: Literal["none", "rank"] = option("none", "loss that aligns distances of source and target")
    sync_weight: float = option(0.005, "weight of this loss", ge=0)
    sync_margin: float = option(0.1, "margin of this loss", ge=0)

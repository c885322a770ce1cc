"""The options of the guide `structformer`."""

from dataclasses import dataclass

from synmask.options import GuideOptions, documented, option


@documented
@dataclass(frozen=True)
class StructformerOptions(GuideOptions):
    induces = frozenset({"distances", "heads"})

    conv_layers: int = option(3, "convolutions of the parser", ge=0, lt=1024)
    conv_kernel: int = option(9, "tokens that each sees", gt=0, lt=1024)

    def mixes(self, left_pads: bool) -> bool:
        return True  # by their common margin

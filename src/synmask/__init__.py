"""Grammar induction inside a Transformer: the method, on PyTorch alone.

`from synmask import GrammarGuide, GuidedEncoder, …`. `synmask.pipeline` runs the experiments.
"""

from importlib import import_module
from typing import Any

__version__ = "0.2.0"

_FROM = {  # loaded on first access: the pipeline's configuration needs no PyTorch
    "synmask.encoder": ("GuidedEncoder",),
    "synmask.guides": ("Guide", "Shape", "Syntax", "build_guide"),
    "synmask.guides.distance": ("DistanceGuide",),
    "synmask.guides.grammar": ("GrammarGuide",),
    "synmask.guides.lisa": ("LisaGuide",),
    "synmask.guides.lpsi": ("LpsiGuide",),
    "synmask.options.distance": ("DistanceOptions",),
    "synmask.options.grammar": ("GrammarOptions",),
    "synmask.options.lisa": ("LisaOptions",),
    "synmask.options.lpsi": ("LpsiOptions",),
    "synmask.options.pascal": ("PascalOptions",),
    "synmask.options.sla": ("SlaOptions",),
    "synmask.options.structformer": ("StructformerOptions",),
    "synmask.options.syntax": ("SyntaxOptions",),
    "synmask.guides.pascal": ("PascalGuide",),
    "synmask.guides.sla": ("SlaGuide",),
    "synmask.guides.structformer": ("StructformerGuide",),
    "synmask.guides.syntax": ("SyntaxGuide",),
    "synmask.induction.distribution": ("calibrate", "dependency_distribution"),
    "synmask.induction.literal": ("literal_distribution",),
    "synmask.induction.operators": ("implementation",),
    "synmask.induction.parser": ("GrammarParser",),
}
_MODULE = {name: module for module, names in _FROM.items() for name in names}
__all__ = sorted([*_MODULE, "__version__"])


def __getattr__(name: str) -> Any:
    if name not in _MODULE:
        raise AttributeError(f"module 'synmask' has no attribute {name!r}")
    return getattr(import_module(_MODULE[name]), name)


def __dir__() -> list[str]:
    return __all__

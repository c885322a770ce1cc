"""C++ operators, built at set-up if there is a compiler (setup.py)."""

import sys
import warnings
from hashlib import sha256
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType


def load(package: str, source: Path) -> bool:
    """Load the operators of `source`, the kernel.cpp of `package`.

    Returns False if none were built from this source for this PyTorch.
    """
    try:
        built_from = _module(package).SOURCE
    except ModuleNotFoundError:
        return False
    except ImportError:
        built_from = None
    if built_from == sha256(source.read_bytes()).hexdigest():
        return True
    warnings.warn(
        f"the C++ operators of {package} are out of date: build them anew with `make`", stacklevel=2
    )
    return False


def _module(package: str) -> ModuleType:
    """The module of a package's operators, beside its source or in another copy of synmask, as in an image.

    Raises:
        ImportError: there is none, or it cannot be loaded.
    """
    name = f"{package}.kernel"
    if name in sys.modules or PathFinder.find_spec(name, import_module(package).__path__):
        return import_module(name)
    spec = PathFinder.find_spec(name, [str(Path(place, *package.split("."))) for place in sys.path])
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(name)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[name] = module
    return module

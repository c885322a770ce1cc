"""C++ operators, which are built at set-up where a compiler is (setup.py)."""

import warnings
from hashlib import sha256
from importlib import import_module
from pathlib import Path


def load(package: str, source: Path) -> bool:
    """Load the operators of `source`, the kernel.cpp of `package`.

    Returns False where there are none of the present source for the present PyTorch.
    """
    try:
        built_from = import_module(f"{package}.kernel").SOURCE
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

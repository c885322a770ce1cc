"""C++ kernels, built at set-up if there is a compiler (setup.py); without them, PyTorch computes the same."""

import ctypes
import sys
import warnings
from hashlib import sha256
from importlib.machinery import PathFinder
from pathlib import Path

# Of the compiler. They come last on its command line: those of the environment (CXXFLAGS) change no bit.
FLAGS = (
    "-std=c++20",
    "-O3",
    "-fopenmp",  # of PyTorch's own library: nothing is linked
    "-fno-fast-math",
    "-fno-associative-math",
    "-fno-reciprocal-math",
    "-fno-finite-math-only",
    "-fsigned-zeros",
    "-ffp-contract=off",  # the same bytes with and without fused instructions
    "-fno-math-errno",
    "-fno-trapping-math",
)


def source_checksum(source: Path) -> str:
    """A checksum of all that the bits of a kernel depend on: its text and the compiler's flags."""
    return sha256(source.read_bytes() + " ".join(FLAGS).encode()).hexdigest()


def load_kernel(package: str, source: Path) -> ctypes.CDLL | None:
    """The library built of `source`, the kernel.cpp of `package`, whose operators are now registered.

    None if none was built of this source with these flags, for this PyTorch.
    """
    if (path := _library(package, source)) is None:
        return None
    try:
        library = ctypes.CDLL(path)
        built_of = (ctypes.c_char * 64).in_dll(library, "source").value.decode()
    except (OSError, ValueError):  # of another PyTorch, of a version before
        built_of = None
    if built_of == source_checksum(source):
        return library
    message = f"the C++ operators of {package} are out of date: build them anew with `make`"
    warnings.warn(message, stacklevel=2)
    return None


def _library(package: str, source: Path) -> str | None:
    """The file of a package's library, beside its source or in another copy of synmask, as in an image."""
    folders = [str(source.parent), *(str(Path(place, *package.split("."))) for place in sys.path)]
    spec = PathFinder.find_spec(f"{package}.kernel", folders)
    return spec and spec.origin

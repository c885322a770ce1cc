"""The operators of beam search pass the checks of torch.library."""

import pytest
import torch

from synmask.pipeline.search import extension

S, W, T, D, HEADS, VOCABULARY = 2, 3, 4, 32, 2, 11
N = 16  # source tokens
LANES = extension.LANES


def panels(width, outputs=D):
    """Weights as `Products.panels` orders them."""
    return torch.randn(-(-outputs // 32), width + 1, 32)


def arguments():
    x, memory, rows = torch.randn(S, W, D), torch.randn(S, 8, 2 * D), torch.arange(S)
    path = torch.arange(T).expand(S, W, T).contiguous()
    score, never = torch.randn(S, W), torch.zeros(VOCABULARY, dtype=torch.bool)
    layers = [panels(D), panels(D, 2 * D), panels(2 * D), panels(D, 3 * D), panels(D), panels(D)]
    source = torch.randn(S, D, N), torch.randn(S, N, D), torch.zeros(S, N)
    where = HEADS, rows, path, None
    return {
        "attend": (x, memory, *where),
        "attend_own": (torch.randn(S, W, 3 * D), memory, *where),
        "best": (torch.randn(S, W, VOCABULARY), score, 5, never),
        "layer": (x, layers, [torch.ones(D)] * 6, 1e-5, memory, *source, *where, LANES),
        "best_after": (x, panels(D), score, 5, torch.zeros(32, dtype=torch.bool), LANES),
    }


@pytest.mark.parametrize("name", extension.SHAPES)
def test_an_operator_passes_the_checks_of_torch_library(name):
    assert extension.LOADED, "the C++ operators were not built"
    if name in ("layer", "best_after") and not LANES:
        pytest.skip("a processor without AVX-512 and AVX2")
    torch.manual_seed(0)
    torch.library.opcheck(getattr(torch.ops.synmask, name).default, arguments()[name])

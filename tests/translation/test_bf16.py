"""Training in bf16 on a CPU without instructions for it."""

import copy

import pytest

from bf16_products import ProductsInBf16
from small_models import fit, typed
from synmask.options import guide_names
from synmask.pipeline.cpu import bf16


@pytest.mark.parametrize("name", ["none", *(name for name in guide_names() if name not in ("sla", "syntax"))])
def test_no_product_is_left_to_torch(corpus, tmp_path, settings, settings_of, monkeypatch, name):
    """Torch takes 5 to 25 times as long for it there as in float32."""
    monkeypatch.setattr(bf16, "has_instructions", lambda: False)
    chosen = settings if name == "none" else settings_of(name)
    chosen["training"] = copy.deepcopy(chosen["training"]) | {"precision": "bf16", "max_epochs": 1}
    with ProductsInBf16() as products:
        fit(corpus / "bin", tmp_path / "run", typed(chosen), keep=1)
    assert products.found == set()

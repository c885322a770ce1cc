"""RoBERTa in bf16 on a CPU without instructions for it."""

import pytest
import torch

from bf16_products import ProductsInBf16
from synmask.pipeline.cpu import bf16
from synmask.pipeline.guidance import Guidance
from synmask.pipeline.roberta.continued import ContrastiveRoberta
from synmask.pipeline.roberta.model import HEAD_NAME, GuidedRoberta
from synmask.pipeline.roberta.sentences import task_loss
from synmask.pipeline.roberta.weights import RobertaShape, load_weights

SHAPE = RobertaShape(layers=2, embed_dim=16, ffn_dim=24, heads=2, max_positions=20)
GUIDES = {
    "none": {},
    "grammar": {"bpe": "none", "conv_layers": 1, "conv_kernel": 3, "layers": 2},
    "sla": {},
    "syntax": {},
}
TOKENS = torch.tensor([[0, 5, 6, 7, 8, 2], [0, 9, 7, 2, 1, 1]])
WORDS = torch.tensor([[i, max(i - 1, 1), 1, 0] if 0 < i < 3 else [-1, -1, 0, 0] for i in range(6)])


@pytest.fixture(autouse=True)
def without_instructions(monkeypatch):
    monkeypatch.setattr(bf16, "has_instructions", lambda: False)


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("name", GUIDES)
def test_no_product_of_a_fine_tuning_is_left_to_torch(small_roberta, demo_lines, name, autocast):
    """Torch takes 5 to 25 times as long for it there as in float32."""
    weights = load_weights(small_roberta(SHAPE, demo_lines, 60, std=0.3))
    guidance = Guidance(guide=name, options=GUIDES[name])
    model = GuidedRoberta.with_head(weights, SHAPE.settings(), guidance, outputs=3).train()
    model = model if autocast else model.bfloat16()
    given = {"annotations": {"words": WORDS.expand(2, -1, -1)}, "classification_head_name": HEAD_NAME}
    with ProductsInBf16() as products, bf16.float32_products():
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            outputs, extra = model(TOKENS, masked=torch.tensor([1, 2, 7]), **given)
        task_loss(outputs, torch.tensor([0, 2]), "sum").backward(retain_graph=True)
        extra["mlm_logits"].float().square().mean().backward()
    assert products.found == set()
    assert outputs.isfinite().all()


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("continued", [False, True])
def test_no_product_of_a_pretraining_is_left_to_torch(small_roberta, demo_lines, continued, autocast):
    weights = load_weights(small_roberta(SHAPE, demo_lines, 60, std=0.3))
    if continued:
        model = ContrastiveRoberta.from_weights(weights, SHAPE.settings())
    else:
        model = GuidedRoberta.build(SHAPE.settings(), weights.dictionary)
    model = model.train() if autocast else model.train().bfloat16()
    with ProductsInBf16() as products, bf16.float32_products():
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            outputs = model(TOKENS, None, torch.tensor([1, 2])) if continued else {"logits": model(TOKENS)[0]}
        sum(one.float().square().mean() for one in outputs.values()).backward()
    assert products.found == set()

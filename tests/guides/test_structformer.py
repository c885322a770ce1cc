"""StructFormer: what differs from `grammar`."""

import pytest
import torch

from synmask.guides.grammar import GrammarGuide
from synmask.induction.distribution import calibrate


def test_it_guides_every_layer_without_labels_and_parser_attention(guide):
    structformer = guide("structformer", encoder_layers=5)
    assert isinstance(structformer, GrammarGuide)
    assert structformer.layers == 5
    assert structformer.options.needs == frozenset()
    assert structformer.parser.attention is None
    assert structformer.relation_logits.shape == (5, 2, 2)


@pytest.mark.parametrize("left", [False, True])
def test_the_margin_is_that_of_the_batch(batch, guide, left):
    these = batch(6, 4, 3, left=left)
    structformer = guide("structformer")
    distance, height = structformer.parser(these.x, these.padding)
    distance = 5 * distance
    alone = []
    for b, n in enumerate(these.lengths):
        part = slice(these.start[b], these.start[b] + n)
        gaps = slice(these.start[b], these.start[b] + n - 1)
        one = distance[b : b + 1, gaps], height[b : b + 1, part]
        alone.append((one[0] - calibrate(*one)).mean())
    assert max(alone) - min(alone) > 1e-3
    found = structformer.calibrate(distance, height, these.padding)
    torch.testing.assert_close(found, distance - max(alone), rtol=0, atol=1e-12)


def test_of_a_sentence_alone_it_is_grammar_without_labels_and_attention(batch, guide):
    these = batch(6)
    structformer, grammar = guide("structformer"), guide("grammar", bpe="none", attention="none", layers=2)
    grammar.load_state_dict(structformer.state_dict())
    for layer in range(2):
        assert torch.equal(these.attention(structformer, layer), these.attention(grammar, layer))

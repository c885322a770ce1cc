import pytest
import torch

from synmask.guides.dependencies import restricted_softmax, within_edges


@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_within_counts_edges_of_the_tree(batch, edges, most):
    words = batch(24, 15, 1, 3).annotations["words"]
    found = within_edges(words, most)
    for b, rows in enumerate(words.tolist()):
        far = edges(rows)
        expected = [[d is not None and d <= most for d in row] for row in far]
        assert found[b].tolist() == expected


def test_a_row_that_allows_nothing_is_not_restricted():
    scores, padding = torch.randn(1, 2, 4, 4), torch.tensor([[False, False, False, True]])
    allowed = torch.tensor([[[0, 1, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1]]]).bool()
    weights = restricted_softmax(scores, allowed, padding)
    assert weights[0, 0, 0].tolist() == [0, 1, 0, 0]
    everything = scores[..., :3].softmax(-1)
    torch.testing.assert_close(weights[:, :, 1:, :3], everything[:, :, 1:])
    assert weights[..., 3].eq(0).all()

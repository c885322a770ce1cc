import math

import numpy as np
import pytest

from synmask.pipeline.training.divergence import unigram_perplexity, why_diverged


def test_the_unigram_perplexity_is_that_of_add_one_shares_by_hand():
    train, valid = np.array([6, 1, 0]), np.array([2, 0, 1])  # shares 7/10, 2/10, 1/10
    by_hand = math.exp(-(2 * math.log(0.7) + math.log(0.1)) / 3)
    assert unigram_perplexity(train, valid) == pytest.approx(by_hand)


@pytest.mark.parametrize(
    ("perplexities", "final", "message"),
    [
        ([90.0, 5.2e21], 2, "perplexity 5.2e+21, word frequencies alone have 100"),
        ([100.0], 1, "perplexity 100, word"),
        ([float("nan")], 1, "perplexity nan"),
        ([50.0, 60.0, 50.0], 3, "never below that of the first epoch, 50"),
        ([50.0, 49.0, 60.0], 3, None),
        ([50.0], 1, None),
        ([50.0, 5.2e21, 40.0, 300.0], 3, None),  # the best epoch's model is used
    ],
)
def test_a_training_that_learned_nothing_is_told_from_others(perplexities, final, message):
    found = why_diverged(perplexities, 100.0, final)
    assert found is None if message is None else message in found

"""Learning rates by the number of updates done, as fairseq's inverse_sqrt and polynomial_decay."""

from collections.abc import Callable

Schedule = Callable[[int], float]


def inverse_sqrt(peak: float, warmup: int, start: float = 0.0) -> Schedule:
    """From `start` in a straight line to `peak` after `warmup` updates, then with 1/√updates."""

    def rate(updates: int) -> float:
        if updates < warmup:
            return start + updates * ((peak - start) / warmup)
        return peak * warmup**0.5 * updates**-0.5

    return rate


def linear_decay(peak: float, warmup: int, total: int) -> Schedule:
    """From 0 in a straight line to `peak` after `warmup` updates, then to 0 after `total`."""

    def rate(updates: int) -> float:
        if warmup and updates <= warmup:
            return updates / warmup * peak
        if updates >= total:
            return 0.0
        return peak * (1 - (updates - warmup) / (total - warmup))

    return rate

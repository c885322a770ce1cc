"""A table's findings in words: which systems differ from the baseline, by how much, how certainly."""

from collections.abc import Sequence

from synmask.pipeline.reporting.layout import SIGNIFICANT, Layout, Value, signed

TOLD = ("sacreBLEU", "F1")  # metrics to report findings in, if the table has them


def findings(tables: Sequence[Layout]) -> list[tuple[str, list[str]]]:
    """For each reported column: how many systems differ, and a sentence on each of them.

    Args:
        tables: the first one with tests is reported, in the metrics `TOLD` if it has them.
    """
    for table in tables:
        names = [words[0] for words, _ in table.rows]
        columns = zip(*(values for _, values in table.rows), strict=True)
        tested = [
            (head, column)
            for head, column in zip(table.heads, columns, strict=True)
            if any(value.change is not None for value in column)
        ]
        if tested:
            named = [pair for pair in tested if pair[0][-1].removeprefix("test ") in TOLD]
            return [
                _column(" ".join(filter(None, head)), table.baseline, names, column)
                for head, column in named or tested[:1]
            ]
    return []


def _column(head: str, baseline: str, names: Sequence[str], values: Sequence[Value]) -> tuple[str, list[str]]:
    rows = list(zip(names, values, strict=True))
    told = [(name, value) for name, value in rows if value.change is not None]
    sure = [value.change > 0 for _, value in told if value.p < SIGNIFICANT]
    counts = {"higher": sum(sure), "lower": len(sure) - sum(sure), "inconclusive": len(told) - len(sure)}
    against = [f" ({_mean(value)})" for name, value in rows if name == baseline and value.mean is not None]
    text = f"{head} against {baseline}{''.join(against[:1])}"
    if len(told) > 1:
        text += f": {', '.join(f'{count} {what}' for what, count in counts.items() if count)}"
    return text, [f"{name}: {sentence(value)}" for name, value in told]


def _mean(value: Value) -> str:
    return f"{value.mean:.{value.digits}f}"


def sentence(value: Value) -> str:
    """−1.86 (31.77); p 0.060 over the test set; p 0.210 over 2 seeds: inconclusive."""
    parts = [f"{signed(value.change, value.digits)} ({_mean(value)})"]
    if value.p_test_set is None:
        parts.append(f"{probability(value.p)} over sentences and seeds")
    else:
        seeds = (
            "one seed" if value.p_seeds is None else f"{probability(value.p_seeds)} over {value.seeds} seeds"
        )
        parts += [f"{probability(value.p_test_set)} over the test set", seeds]
    verdict = "inconclusive" if value.p >= SIGNIFICANT else "higher" if value.change > 0 else "lower"
    return f"{'; '.join(parts)}: {verdict}"


def probability(p: float) -> str:
    """p 0.012, or p < 0.001."""
    return f"p {p:.3f}" if p >= 0.001 else "p < 0.001"

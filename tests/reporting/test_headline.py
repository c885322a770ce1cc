"""Findings in words."""

from synmask.pipeline.reporting.headline import findings
from synmask.pipeline.reporting.layout import Layout, Value

HEADS = [("", "De→En", "tokenised BLEU"), ("", "De→En", "sacreBLEU")]
BASELINE = [Value(31.0), Value(33.63)]


def test_a_finding_says_by_how_much_and_how_sure():
    lower = Value(31.77, p=0.21, p_test_set=0.06, p_seeds=0.21, change=-1.86, seeds=2)
    higher = Value(35.0, p=0.0004, p_test_set=0.0004, change=1.37, seeds=1)
    rows = [(["Transformer"], BASELINE), (["Grammar"], [lower, lower]), (["Mended"], [higher, higher])]
    table = Layout("T", ["System"], HEADS, rows, baseline="Transformer")
    assert findings([Layout("none", ["System"], HEADS, rows[:1]), table, table]) == [
        (
            "De→En sacreBLEU against Transformer (33.63): 1 higher, 1 inconclusive",
            [
                "Grammar: −1.86 (31.77); p 0.060 over the test set; p 0.210 over 2 seeds: inconclusive",
                "Mended: +1.37 (35.00); p < 0.001 over the test set; one seed: higher",
            ],
        )
    ]


def test_another_metric_speaks_where_there_is_no_better_one():
    value = Value(20.0, p=0.01, change=-2.0)
    rows = [(["right-branching"], [Value(22.0)]), (["Grammar"], [value])]
    heads = [("", "De→En", "F1"), ("", "De→En", "x")]
    for head in heads:
        table = Layout("T", ["Trees"], [head], rows, baseline="right-branching")
        ((text, sentences),) = findings([table])
        assert text == f"De→En {head[-1]} against right-branching (22.00)"
        assert sentences == ["Grammar: −2.00 (20.00); p 0.010 over sentences and seeds: lower"]
    assert findings([]) == []

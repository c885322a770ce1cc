"""The metrics: their names, and how they are printed."""

from typing import NamedTuple, get_args

from synmask.pipeline.config.base import Parsing

PARSE_SCORES = list(get_args(Parsing))
DEPENDENCIES, ATTACHMENT = "dependencies", ["directed", "undirected"]  # a protocol, its scores


class Metric(NamedTuple):
    """How a metric is printed: its value times `scale`, with `digits` decimals."""

    label: str
    digits: int = 2
    scale: float = 1.0
    contest: bool = True  # the highest is the best
    spread: bool = True  # it differs between seeds


METRICS = {
    "bleu_tokenised": Metric("tokenised BLEU"),
    "sacrebleu": Metric("sacreBLEU"),
    "chrf": Metric("chrF"),
    "valid_bleu_tokenised": Metric("validation tokenised BLEU"),
    "valid_sacrebleu": Metric("validation sacreBLEU"),
    "valid_chrf": Metric("validation chrF"),
    "precision": Metric("P"),
    "recall": Metric("R"),
    "f1": Metric("F1"),
    "sentence_f1": Metric("sentence F1"),
    "parameters": Metric("parameters (M)", 1, 1e-6, contest=False, spread=False),
    "tokens_per_second": Metric("target tokens/s", 0, contest=False),
    "device_hours": Metric("device hours", 2, contest=False),
    "memory": Metric("memory (GiB)", 2, 1 / 1024, contest=False),
    "glue": Metric("", 1),
}
PARSE_LABELS = {metric: METRICS[metric].label for metric in PARSE_SCORES} | {
    name: name for name in ATTACHMENT
}
PROTOCOLS = {
    "words": "trees over words, without punctuation and currency signs, which induced trees lose after "
    "they are split; single words and whole sentences do not count",
    "paper": "binary trees over sub-words and </s>, as the scripts of Kai et al. 2024 score them; the paper "
    "prints this P as R, this R as P",
    "evalb": "what EVALB computes with COLLINS.prm on unlabelled brackets",
    DEPENDENCIES: "heads by the argmax of P_D, of words without punctuation",
}

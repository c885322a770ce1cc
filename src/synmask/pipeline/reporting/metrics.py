"""The metrics: their names, and how they are printed."""

from typing import NamedTuple, get_args

from synmask.pipeline.metric_names import Parsing

PARSE_SCORES = list(get_args(Parsing))
DEPENDENCIES, ATTACHMENT = "dependencies", ["directed", "undirected"]  # a protocol, its scores


class Metric(NamedTuple):
    """How a metric is printed: its value times `scale`, with `digits` decimals."""

    label: str
    digits: int = 2
    scale: float = 1.0
    contest: int = 1  # the highest is the best; -1: the lowest; 0: neither
    spread: bool = True  # it differs between seeds


class _Metrics(dict[str, Metric]):
    """A function of the user's is printed under its own name."""

    def __missing__(self, name: str) -> Metric:
        return Metric(name)


METRICS = _Metrics(
    {
        "bleu_tokenised": Metric("tokenised BLEU"),
        "sacrebleu": Metric("sacreBLEU"),
        "chrf": Metric("chrF"),
        "ter": Metric("TER", contest=-1),
        "valid_bleu_tokenised": Metric("validation tokenised BLEU"),
        "valid_sacrebleu": Metric("validation sacreBLEU"),
        "valid_chrf": Metric("validation chrF"),
        "precision": Metric("P"),
        "recall": Metric("R"),
        "f1": Metric("F1"),
        "sentence_f1": Metric("sentence F1"),
        "parameters": Metric("parameters (M)", 1, 1e-6, contest=0, spread=False),
        "tokens_per_second": Metric("target tokens/s", 0, contest=0),
        "device_hours": Metric("device hours", 2, contest=0),
        "memory": Metric("memory (GiB)", 2, 1 / 1024, contest=0),
        "glue": Metric("", 1),
    }
)
PARSE_LABELS = {metric: METRICS[metric].label for metric in [*PARSE_SCORES, *ATTACHMENT]}
PROTOCOLS = {
    "words": "trees over words, without punctuation and currency signs, which induced trees lose after "
    "they are split; single words and whole sentences do not count",
    "paper": "binary trees over sub-words and </s>, as the scripts of Kai et al. 2024 score them; the paper "
    "prints this P as R, this R as P",
    "evalb": "what EVALB computes with COLLINS.prm on unlabelled brackets",
    DEPENDENCIES: "heads by the argmax of P_D, of words without punctuation",
}

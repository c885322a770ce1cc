"""The names of metrics, by what they are of."""

from typing import Literal

Translation = Literal["bleu_tokenised", "sacrebleu", "chrf"]  # of the test set
Validation = Literal["valid_bleu_tokenised", "valid_sacrebleu", "valid_chrf"]  # of the validation set
Parsing = Literal["precision", "recall", "f1", "sentence_f1"]
Cost = Literal["parameters", "tokens_per_second", "device_hours", "memory"]
TESTED = ("sacrebleu", "bleu_tokenised", "glue", "f1")  # and `Measured` ones: against a table's baseline


def is_measured(metric: str) -> bool:
    """Whether a metric is `config.base.Measured`."""
    return metric == "ter" or "." in metric

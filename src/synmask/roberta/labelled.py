"""Sentences and sentence pairs with a label or score: data, task and objective of fine-tuning."""

import io
import zipfile
import zlib
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset, data_utils
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from synmask.config.nlu import DecayingTraining, FinetuningSettings
from synmask.corpora.tasks import TASKS
from synmask.files import UserError, writing
from synmask.roberta.model import HEAD, GuidedRoberta
from synmask.roberta.weights import Weights
from synmask.training.losses import LoggedLoss
from synmask.training.masking import collate_masked, draw_mask

COLUMNS = 4  # of an annotation (roberta/task_syntax.py): word, head, sentence, punctuation
NONE = -1


@dataclass(frozen=True)
class Encoded:
    """Examples as ids: `tokens` (T,) of all examples, example i from starts[i] to starts[i+1]; `targets`
    (N,), class numbers or, for a regression, scores; NaN in a test set."""

    tokens: np.ndarray
    starts: np.ndarray
    targets: np.ndarray

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> np.ndarray:
        return self.part(self.tokens, index)

    def part(self, values: np.ndarray, index: int) -> np.ndarray:
        """The part of `values` (T, ...), one per token, that belongs to an example."""
        return values[self.starts[index] : self.starts[index + 1]]

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.starts)


def encode(
    texts: Sequence[Sequence[Sequence[int]]], dictionary: Dictionary, most: int, targets: Sequence[float]
) -> Encoded:
    """RoBERTa's input for each example: `<s> a </s>`, for a pair `<s> a </s> </s> b </s>`.

    An example with more than `most` tokens is truncated: the longer sentence loses its last token until the
    example fits (as in BERT).

    Args:
        texts: one or two sentences per example, each as GPT-2 BPE ids.
        most: maximum number of tokens per example, special ones included.
    """
    rows = [_row([_ids(sentence, dictionary) for sentence in example], dictionary, most) for example in texts]
    return Encoded(
        np.concatenate(rows).astype(np.int32),
        np.cumsum([0, *map(len, rows)]),
        np.asarray(targets, dtype=np.float32),
    )


def _ids(sentence: Sequence[int], dictionary: Dictionary) -> list[int]:
    return [dictionary.index(str(piece)) for piece in sentence]


def _row(sentences: list[list[int]], dictionary: Dictionary, most: int) -> np.ndarray:
    room = most - 2 * len(sentences)
    if room < len(sentences):
        raise UserError(f"max_tokens {most}: too few for a token of each sentence and the marks; give more")
    while (over := sum(map(len, sentences)) - room) > 0:
        longest = max(sentences, key=len)
        rest = max((len(other) for other in sentences if other is not longest), default=0)
        del longest[len(longest) - min(over, max(1, len(longest) - rest)) :]
    begin, end = [dictionary.bos()], [dictionary.eos()]
    row = begin + sentences[0] + end
    for other in sentences[1:]:
        row += end + other + end
    return np.array(row)


def write_encoded(path: Path, encoded: Encoded) -> None:
    packed = io.BytesIO()  # a zip seeks in what it is written to, which a device cannot
    np.savez(packed, tokens=encoded.tokens, starts=encoded.starts, targets=encoded.targets)
    with writing(path, "wb") as handle:
        handle.write(packed.getbuffer())


def read_encoded(path: Path) -> Encoded:
    """Read a file of `write_encoded`.

    Raises:
        UserError: missing or damaged.
    """
    try:
        with np.load(path) as arrays:
            encoded = Encoded(arrays["tokens"], arrays["starts"], arrays["targets"])
        kinds = [array.dtype.kind for array in vars(encoded).values()]
        if kinds != ["i", "i", "f"] or any(array.ndim != 1 for array in vars(encoded).values()):
            raise ValueError("other arrays than write_encoded's")
        if len(encoded.starts) != len(encoded) + 1 or encoded.starts[-1] != len(encoded.tokens):
            raise ValueError("of other lengths than write_encoded's")
        return encoded
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
        raise UserError(f"{path}: encoded sentences missing or damaged; delete it and rerun") from None


def syntax_file(part: Path) -> Path:
    """The path of the syntax of PART.npz, beside it."""
    return part.with_name(f"syntax.{part.stem}.npy")


def read_syntax(part: Path, encoded: Encoded) -> np.ndarray:
    """The annotations (T, 4) of the tokens of PART.npz, memory-mapped (roberta/task_syntax.py).

    Raises:
        UserError: missing, damaged, or of other examples.
    """
    path = syntax_file(part)
    try:
        table = np.load(path, mmap_mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{path}: cannot be read ({error}); annotate the task again") from None
    if getattr(table, "shape", None) != (len(encoded.tokens), COLUMNS):
        raise UserError(f"{path}: annotations of other examples; annotate the task again")
    return table


def batched(rows: Sequence[np.ndarray]) -> dict[str, Tensor]:
    """A guide's input from annotations (n, 4) of examples: "words" (B, n, 4), -1 at pads."""
    words = [torch.from_numpy(row.astype(np.int64)) for row in rows]
    return {"words": nn.utils.rnn.pad_sequence(words, batch_first=True, padding_value=NONE)}


def read_fitting(path: Path, weights: Weights, *, test: bool = False) -> Encoded:
    """Read examples that must fit `weights` and, except for a `test` set, have labels.

    Raises:
        UserError: they do not, or as for `read_encoded`.
    """
    encoded = read_encoded(path)
    ids, sizes = encoded.tokens, encoded.sizes
    fits = len(encoded) and ids.min() >= 0 and ids.max() < len(weights.dictionary)
    if not fits or sizes.min() < 2:
        raise UserError(f"{path}: no sentences for these weights; encode the task again")
    if sizes.max() > (most := weights.shape.max_positions):
        raise UserError(
            f"{path}: {sizes.max()} tokens in an example, the weights take {most}; lower max_tokens"
        )
    if not test and np.isnan(encoded.targets).any():
        raise UserError(f"{path}: a test set, without labels; give a part that has them")
    return encoded


class Sentences(FairseqDataset):
    """Examples as batches, padded on the right.

    Args:
        syntax: annotations (T, 4) of the examples' tokens, added to `net_input` (`batched`).
        mask_rate: share of tokens, special ones excepted, replaced by `<mask>`. `net_input` then contains
            `masked` (m,), positions in the flattened (B, n), and the batch `masked_target` (m,), the original
            tokens. Masking depends on seed, epoch and example only.
        order: of the examples before batching.
    """

    def __init__(
        self, encoded: Encoded, dictionary: Dictionary, *, regression: bool, order: np.ndarray,
        syntax: np.ndarray | None = None, mask_rate: float = 0.0, seed: int = 1,
    ) -> None:  # fmt: skip
        self.syntax = syntax
        self.encoded, self.dictionary, self.regression, self.order = encoded, dictionary, regression, order
        self.mask_rate, self.seed, self.epoch = mask_rate, seed, 1
        self.sizes = encoded.sizes

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.encoded)

    def __getitem__(self, index: int) -> dict[str, Any]:
        tokens = torch.from_numpy(self.encoded[index].astype(np.int64))
        example = {"id": index, "tokens": tokens, "target": self.encoded.targets[index]}
        if self.mask_rate:
            masked = self._mask(np.random.default_rng([self.seed, self.epoch, index]), tokens)
            shown = tokens.masked_fill(masked, self.dictionary.index("<mask>"))
            example |= {"tokens": shown, "masked": masked, "unmasked": tokens}
        return example

    def _mask(self, random: np.random.Generator, tokens: Tensor) -> Tensor:
        """(n,) bool: the tokens to mask, never `<s>` or `</s>`."""
        real = (tokens != self.dictionary.bos()) & (tokens != self.dictionary.eos())
        return draw_mask(random, len(tokens), self.mask_rate) & real

    def collater(self, samples: list[dict[str, Any]]) -> dict[str, Any]:
        if not samples:
            return {}
        pad, lengths = self.dictionary.pad(), torch.tensor([len(sample["tokens"]) for sample in samples])
        kind = torch.float32 if self.regression else torch.int64
        batch = {
            "id": torch.tensor([sample["id"] for sample in samples]),
            "net_input": {
                "src_tokens": data_utils.collate_tokens([sample["tokens"] for sample in samples], pad),
                "src_lengths": lengths,
            },
            "target": torch.tensor([sample["target"] for sample in samples]).to(kind),
            "ntokens": int(lengths.sum()),
            "nsentences": len(samples),
        }
        if self.syntax is not None:
            rows = [self.encoded.part(self.syntax, sample["id"]) for sample in samples]
            batch["net_input"]["annotations"] = batched(rows)
        if self.mask_rate:
            batch["net_input"]["masked"], batch["masked_target"] = collate_masked(samples, pad)
        return batch

    def num_tokens(self, index: int) -> int:
        return int(self.sizes[index])

    def size(self, index: int) -> int:
        return int(self.sizes[index])

    def ordered_indices(self) -> np.ndarray:
        return self.order


def sentence_words(training: DecayingTraining) -> dict[str, Any]:
    """The part of fairseq's command line that all trainings of a `SentenceTask` share."""
    return {
        "--task": "sentence_prediction",
        "--criterion": "sentence_prediction",
        "--arch": "roberta",
        "--adam-eps": training.adam_eps,
        "--lr-scheduler": "polynomial_decay",
        "--total-num-update": training.total_updates,
    }


class SentenceTask(FairseqTask):
    """fairseq's task for PART.npz files in the folder `data`, encoded for `weights`."""

    def __init__(self, data: Path, settings: Any, weights: Weights, seed: int) -> None:
        super().__init__(Namespace())
        self.data, self.settings, self.weights, self.seed = data, settings, weights, seed

    @property
    def source_dictionary(self) -> Dictionary:
        return self.weights.dictionary

    @property
    def target_dictionary(self) -> Dictionary:
        return self.weights.dictionary

    def max_positions(self) -> int:
        return self.weights.shape.max_positions


class SentencePrediction(SentenceTask):
    """A class or a score for each example, by a RoBERTa that may be guided.

    Args:
        valid: the part to validate on.
    """

    def __init__(
        self, data: Path, valid: str, settings: FinetuningSettings, weights: Weights, seed: int
    ) -> None:
        super().__init__(data, settings, weights, seed)
        self.valid, self.classes = valid, len(TASKS[settings.task].labels)  # 0 for a regression

    def build_model(self, cfg: Namespace, from_checkpoint: bool = False) -> GuidedRoberta:
        return GuidedRoberta.fine_tuned(self.weights, cfg, self.settings.system, max(1, self.classes))

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        part = self.data / f"{self.valid if split == 'valid' else split}.npz"
        encoded = read_encoded(part)
        if split == "train":
            order = np.random.default_rng(self.seed).permutation(len(encoded))
        else:
            order = np.argsort(encoded.sizes, kind="stable")
        rate = self.settings.system.mask_rate if split == "train" else 0.0
        self.datasets[split] = Sentences(
            encoded, self.source_dictionary, regression=not self.classes, order=order,
            syntax=self.syntax(part, encoded), mask_rate=rate, seed=self.seed,
        )  # fmt: skip

    def syntax(self, part: Path, encoded: Encoded) -> np.ndarray | None:
        """The annotations of PART.npz, if the system's guide reads them."""
        return read_syntax(part, encoded) if self.settings.system.kind.reads else None


class SentenceLoss(LoggedLoss):
    """L = (1 − λ)·L_task + λ·L_MLM (method.md, section 5).

    L_task is the cross-entropy (for a regression, the squared error), a mean over examples; L_MLM the
    cross-entropy of the masked tokens, a mean over these. Logged per example in nats (squared errors).
    """

    losses = ("loss", "task_loss")

    def __init__(self, task: SentencePrediction, mlm_weight: float) -> None:
        super().__init__(task)
        self.regression, self.mlm_weight = not task.classes, mlm_weight

    def forward(self, model: nn.Module, sample: dict, reduce: bool = True) -> tuple[Tensor, int, dict]:
        """→ loss (a sum), sample size (examples), sums to log (nats)."""
        inputs = dict(sample["net_input"])
        if not self.mlm_weight:
            inputs.pop("masked", None)
        outputs, extra = model(**inputs, classification_head_name=HEAD)
        target, size = sample["target"], sample["nsentences"]
        if self.regression:
            loss = nn.functional.mse_loss(outputs.view(-1).float(), target, reduction="sum")
        else:
            loss = nn.functional.cross_entropy(outputs.float(), target, reduction="sum")
        log = {"task_loss": loss.data, "ntokens": sample["ntokens"], "sample_size": size}
        if "mlm_logits" in extra:
            hidden = sample["masked_target"]
            mlm = nn.functional.cross_entropy(extra["mlm_logits"].float(), hidden, reduction="sum")
            loss = (1 - self.mlm_weight) * loss + self.mlm_weight * size * mlm / max(1, len(hidden))
            log |= {"mlm_loss": mlm.data, "masked": len(hidden)}
        return loss, size, log | {"loss": loss.data}

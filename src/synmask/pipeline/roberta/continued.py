"""Continued pre-training of a RoBERTa on parsed sentences: a masked language model, and SynCLM's losses."""

import math
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from synmask.guides import Guide, Shape
from synmask.guides.attention import masked_softmax
from synmask.options import GuideOptions
from synmask.pipeline.arguments import Json, TrainingOptions
from synmask.pipeline.config.benchmarks import ContinuedRun
from synmask.pipeline.errors import UserError
from synmask.pipeline.record import RunRecord
from synmask.pipeline.roberta import synclm
from synmask.pipeline.roberta.examples import read_encoded
from synmask.pipeline.roberta.model import GuidedRoberta
from synmask.pipeline.roberta.sentences import Sentences, SentenceStage
from synmask.pipeline.roberta.weights import MASK, Weights, load_dictionary, load_weights, save_weights
from synmask.pipeline.training.batches import Batches, Limits
from synmask.pipeline.training.checkpoints import load_epoch_model
from synmask.pipeline.training.divergence import divergence_summary
from synmask.pipeline.training.loop import run_training
from synmask.pipeline.training.losses import Sums
from synmask.pipeline.training.stage import History, history_losses
from synmask.pipeline.training.trainer import Loss, Trainer
from synmask.pipeline.translation.layers import shape_of

KEEP, REPLACE = 0.1, 0.1  # of masked tokens: that stay, or are drawn at random; others become <mask>


@dataclass(eq=False)
class ParsedSentences(Sentences):
    """Sentences with BERT's masking and, for contrastive `validate`, their samples.

    Batches also contain a key for each loss (`synclm.flatten_samples`). All random choices depend on seed,
    epoch and sentence; for validation, on seed and sentence only.
    """

    losses: Sequence[str] = ()

    def corrupt(
        self, random: np.random.Generator, index: int, tokens: Tensor, masked: Tensor
    ) -> dict[str, Any]:
        choice = torch.from_numpy(random.random(len(tokens)))
        drawn = torch.from_numpy(random.integers(self.dictionary.nspecial, len(self.dictionary), len(tokens)))
        corrupted = tokens.masked_fill(masked & (choice >= KEEP + REPLACE), self.dictionary.index(MASK))
        corrupted = torch.where(masked & (choice >= KEEP) & (choice < KEEP + REPLACE), drawn, corrupted)
        heads = synclm.token_heads(np.asarray(self.encoded.part(self.syntax, index)))
        samplers = {"phrase": synclm.draw_phrases, "tree": synclm.draw_subtrees}
        samples = {loss: sample(heads, random) for loss, sample in samplers.items() if loss in self.losses}
        return {"tokens": corrupted} | samples

    def collater(self, samples: list[dict[str, Any]]) -> dict[str, Any]:
        batch = super().collater(samples)
        if not samples:
            return batch
        del batch["net_input"]["annotations"]
        length = batch["net_input"]["src_tokens"].size(1)
        joined = {
            loss: synclm.flatten_samples([sample[loss] for sample in samples], length) for loss in self.losses
        }
        return batch | joined


class _LastAttention(Guide):
    """Plain attention that keeps the weights of the last layer: (B, n, n), mean over heads."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(GuideOptions(), shape)
        self.layers = shape.layers
        self.weights: Tensor | None = None

    def prepare(self, x: Tensor, padding: Tensor, annotations: Mapping[str, Tensor]) -> Tensor:
        return padding

    def attend(self, scores: Tensor, prepared: Tensor, layer: int) -> Tensor:
        weights = masked_softmax(scores, prepared)
        if layer == self.layers - 1:
            self.weights = weights.mean(1)
        return weights


class ContrastiveRoberta(GuidedRoberta):
    """A RoBERTa that also returns its last attention and, from `contrast`, features for the tree loss."""

    @classmethod
    def from_weights(cls, weights: Weights, args: Namespace) -> "ContrastiveRoberta":
        """A model with pre-trained `weights`."""
        model = cls.build(args, weights.dictionary)
        model.load_state_dict(weights.state)
        encoder = model.encoder.sentence_encoder
        encoder.guide = _LastAttention(shape_of(encoder.cfg))
        d = args.encoder_embed_dim
        model.contrast = nn.Sequential(nn.Linear(d, d), nn.GELU(), nn.LayerNorm(d), nn.Linear(d, d))
        return model

    def forward(self, src_tokens: Tensor, src_lengths: Tensor, masked: Tensor) -> dict[str, Tensor]:
        """src_tokens (B, n), positions `masked` (m,) of the flattened (B, n) → "mlm_logits" (m, V),
        "attention" (B, n, n), "features" (B, n, d)."""
        states, _ = self.encoder.extract_features(src_tokens)
        return {
            "mlm_logits": self.encoder.output_layer(states.flatten(0, 1).index_select(0, masked)),
            "attention": self.encoder.sentence_encoder.guide.weights.float(),
            "features": self.contrast(states).float(),
        }


def contrastive_loss(model: nn.Module, sample: dict[str, Any]) -> tuple[Tensor, int, Sums]:
    """L = L_MLM + L_phrase + L_tree, each a mean over the batch; 0 if the batch has no samples for it.

    Returns:
        the loss, sample size 1 (a batch), values to log (nats).
    """
    output = model(**sample["net_input"])
    hidden = sample["masked_target"]
    mlm = nn.functional.cross_entropy(output["mlm_logits"].float(), hidden, reduction="sum")
    none = sum(part.sum() for part in output.values()) * 0.0  # so that all parameters have a gradient
    losses = {"phrase_loss": none, "tree_loss": none}
    reads = ("phrase", synclm.phrase_loss, "attention"), ("tree", synclm.tree_loss, "features")
    for name, contrast, part in reads:
        if name in sample and len(sample[name]["anchors"]):
            losses[f"{name}_loss"] = contrast(output[part], **sample[name])
    loss = mlm / max(1, len(hidden)) + sum(losses.values()) + none
    log = {name: value.data for name, value in ({"loss": loss, "mlm_loss": mlm} | losses).items()}
    return loss, 1, log | {"ntokens": sample["ntokens"], "masked": len(hidden)}


@dataclass(frozen=True)
class ContinuedStage(SentenceStage):
    """Continued pre-training on parsed sentences; the last model is kept."""

    settings: ContinuedRun

    def check(self) -> dict[str, int]:
        super().check()
        most = self.settings.training.batch.tokens
        for part in self.parts:
            if (longest := read_encoded(part).sizes.max()) > most:
                raise UserError(f"{part}: a sentence has {longest} tokens, batch.tokens is {most}; give more")
        return {}

    def model(self) -> ContrastiveRoberta:
        weights = load_weights(self.weights)
        return ContrastiveRoberta.from_weights(weights, weights.shape.settings(self.settings.training))

    def loss(self) -> Loss:
        return contrastive_loss

    def dataset(self, split: str) -> ParsedSentences:
        encoded, syntax = self.load_part(split)
        return ParsedSentences(
            encoded,
            load_dictionary(self.weights),
            syntax=syntax,
            mask_rate=self.settings.training.mask_rate,
            seed=self.seed,
            losses=self.settings.losses,
        )

    def batch_limits(self, split: str) -> Limits:
        return Limits(tokens=self.settings.training.batch.tokens)

    def validate(
        self, trainer: Trainer, valid: Batches, train: Mapping[str, float], epoch: int
    ) -> dict[str, Any]:
        means = trainer.validate(valid.in_order())
        valid_losses = {name: name for name in ("mlm_loss", "phrase_loss", "tree_loss")}
        return history_losses(train, train_loss="loss") | history_losses(
            means, **valid_losses, valid_loss="loss"
        )

    def summary(self, history: History) -> dict[str, Any]:
        """As for pre-training, but by the last loss of masked tokens; special symbols are never masked."""
        dictionary = load_dictionary(self.weights)
        counts = [np.bincount(read_encoded(part).tokens, minlength=len(dictionary)) for part in self.parts]
        for count in counts:
            count[: dictionary.nspecial] = 0
        last = [math.exp(min(row["mlm_loss"], 50)) for row in history if row["mlm_loss"] != ""][-1:]
        return divergence_summary(*counts, last, 1)

    def describe_quality(self, row: Mapping[str, Any]) -> str:
        losses = {loss: row[f"{loss}_loss"] for loss in ("mlm", *self.settings.losses)}
        return "  ".join(f"{loss} {value:.2f}" for loss, value in losses.items() if value != "")

    def write_outputs(self, run: Path, checkpoints: Path, history: History, record: RunRecord) -> None:
        model = load_epoch_model(checkpoints / self.final_model)
        save_weights(run, model, load_weights(self.weights).shape, self.weights, record)


def continue_pretraining(
    *,
    data: Path,
    weights: Path,
    run: Path,
    settings: Json[ContinuedRun],
    options: TrainingOptions,
) -> None:
    """Pre-train a RoBERTa further on parsed sentences, by SynCLM's contrastive losses.

    It is stopped and resumed as `train` is.

    Args:
        data: Folder with train.npz and valid.npz of `encode-parses`.
        weights: The weights folder to start from.
        run: Folder of the run: checkpoints/, history.csv, train.json; it becomes a weights folder.
        settings: Losses and training; `snakemake -np TARGET` shows them.
    """
    run_training(ContinuedStage(settings, options.seed, data, weights), run, options)

"""A weights folder of RoBERTa: model.pt, dict.txt, encoder.json, vocab.bpe.

model.pt is a fairseq checkpoint ({"args", "model": state}) and dict.txt fairseq's dictionary of byte-level
BPE ids; the other two are GPT-2's. fairseq reads the folder, too.
"""

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary
from pydantic import ValidationError
from torch import Tensor

from synmask.pipeline.config.benchmarks import RobertaSize, RobertaTraining
from synmask.pipeline.config.faults import first_fault
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import write_all
from synmask.pipeline.record import NO_RUN, RunRecord, model_identity
from synmask.pipeline.text.gpt2 import read_encoder
from synmask.pipeline.training.binarise import read_dictionary
from synmask.pipeline.training.torch_files import load_checkpoint, save_checkpoint

VOCABULARY_FILES = ("dict.txt", "encoder.json", "vocab.bpe")
MASK = "<mask>"
TOKENS = "encoder.sentence_encoder.embed_tokens.weight"
SIZES = {  # here: in fairseq, in transformers
    "layers": ("encoder_layers", "num_hidden_layers"),
    "embed_dim": ("encoder_embed_dim", "hidden_size"),
    "ffn_dim": ("encoder_ffn_embed_dim", "intermediate_size"),
    "heads": ("encoder_attention_heads", "num_attention_heads"),
    "max_positions": ("max_positions", "max_position_embeddings"),
}


class RobertaShape(RobertaSize):
    """The sizes of a RoBERTa; `max_positions` counts tokens, including <s> and </s>."""

    @classmethod
    def of(cls, sizes: Mapping[str, Any], where: str) -> "RobertaShape":
        """The sizes that a file gives.

        Raises:
            UserError: one is missing or wrong, or they do not fit; it begins with `where`.
        """
        try:
            return cls.model_validate(sizes)
        except ValidationError as error:
            raise UserError(f"{where}: {first_fault(error, sizes).line}") from None

    def settings(self, training: RobertaTraining | None = None) -> Namespace:
        """The sizes, and the dropout of a training, under the names that fairseq's `roberta` reads."""
        rates = training.model_dump(include={"dropout", "attention_dropout"}) if training else {}
        sizes = {theirs: getattr(self, ours) for ours, (theirs, _) in SIZES.items()}
        return Namespace(arch="roberta", task="masked_lm", activation_fn="gelu", **sizes, **rates)

    def parameters(self, words: int) -> dict[str, tuple[int, ...]]:
        """Names, as in fairseq 0.12.2's RobertaModel, and shapes of the parameters, for `words` tokens."""
        d, f, top = self.embed_dim, self.ffn_dim, "encoder.sentence_encoder"
        shapes: dict[str, tuple[int, ...]] = {
            f"{top}.embed_tokens.weight": (words, d),
            f"{top}.embed_positions.weight": (self.max_positions + 2, d),  # positions start after <pad>'s id
            "encoder.lm_head.weight": (words, d),
            "encoder.lm_head.bias": (words,),
        }
        linear = {"encoder.lm_head.dense": (d, d)}
        norms = [f"{top}.layernorm_embedding", "encoder.lm_head.layer_norm"]
        for layer in (f"{top}.layers.{number}" for number in range(self.layers)):
            linear |= {f"{layer}.self_attn.{name}_proj": (d, d) for name in ("q", "k", "v", "out")}
            linear |= {f"{layer}.fc1": (f, d), f"{layer}.fc2": (d, f)}
            norms += [f"{layer}.self_attn_layer_norm", f"{layer}.final_layer_norm"]
        for name, shape in (linear | {name: (d,) for name in norms}).items():
            shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
        return shapes


@dataclass(frozen=True)
class Weights:
    """The contents of a weights folder.

    Attributes:
        dictionary: the rows of the embeddings: <s>, <pad>, </s>, <unk>, BPE ids as strings, <mask>.
        state: float32, on the CPU, with the names of `RobertaShape.parameters`; the masked-language-model
            head's weight is the embeddings' own tensor.
        run: the keys of model.pt that say which run trained it here (`synmask.pipeline.record`).
    """

    shape: RobertaShape
    dictionary: Dictionary
    state: dict[str, Tensor]
    run: Mapping[str, Any] = field(default_factory=dict)


def load_weights(folder: Path) -> Weights:
    """Read a weights folder. No code in the file is run (`weights_only`).

    Raises:
        UserError: a file is missing or damaged, or files do not fit together.
    """
    dictionary = load_dictionary(folder)
    saved = load_checkpoint(folder / "model.pt", "make the weights again")
    state = saved.get("model")
    if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
        raise UserError(f"{folder}: model.pt holds no model; make the weights again")
    sizes = {ours: getattr(saved.get("args"), theirs, None) for ours, (theirs, _) in SIZES.items()}
    shape = RobertaShape.of(sizes, f"{folder}: the settings in model.pt")
    if shape.layers > len(state):  # before all their parameters are listed
        raise UserError(f"{folder}: model.pt has too few parameters for {shape.layers} layers")
    _check_state(state, shape, len(dictionary), folder)
    state = {name: value.float() for name, value in state.items()}
    state["encoder.lm_head.weight"] = state[TOKENS]
    return Weights(shape, dictionary, state, {key: saved.get(key) for key in ("run", "training")})


def load_dictionary(folder: Path) -> Dictionary:
    """Read the dictionary of a weights folder; model.pt need not exist yet.

    Raises:
        UserError: as for `load_weights`.
    """
    encoder, dictionary = read_encoder(folder / "encoder.json"), read_dictionary(folder / "dict.txt")
    dictionary.add_symbol(MASK)
    known = set(map(str, encoder.values())) | {MASK}
    for symbol in dictionary.symbols[dictionary.nspecial :]:
        if symbol not in known and not symbol.startswith("madeupword"):
            fault = f"dict.txt has {symbol!r}, which is no id of encoder.json"
            raise UserError(f"{folder}: {fault}; both must be of one vocabulary")
    return dictionary


def save_weights(
    folder: Path,
    state: Mapping[str, Tensor],
    shape: RobertaShape,
    vocabulary: Path,
    run: RunRecord = NO_RUN,
) -> None:
    """Write a weights folder that fairseq and `load_weights` read.

    Args:
        state: contains all of `shape.parameters`; other parameters, such as a guide's, are left out.
        vocabulary: a folder with dict.txt, encoder.json and vocab.bpe, which are copied; or `folder` itself.
        run: the record of its run, whose identity stands in model.pt under keys that fairseq ignores.
    Raises:
        UserError: `state` is not of this shape, or not of this vocabulary.
    """
    words = len(load_dictionary(vocabulary))
    names = shape.parameters(words)
    model = {name: value for name, value in state.items() if name in names}
    _check_state(model, shape, words, folder)
    model["encoder.lm_head.weight"] = model[TOKENS]  # one tensor, saved once
    if folder.resolve() != vocabulary.resolve():
        write_all({folder / name: (vocabulary / name).read_bytes() for name in VOCABULARY_FILES})
    training = {"optimizer_name": "adam", "lr_scheduler_state": {}, "num_updates": 0}
    rest = {"optimizer_history": [training], "extra_state": {"train_iterator": None}}  # fairseq requires them
    save_checkpoint(
        folder / "model.pt", {"args": shape.settings(), "model": model, **rest, **model_identity(run)}
    )


def _check_state(state: Mapping[str, Tensor], shape: RobertaShape, words: int, folder: Path) -> None:
    """Raise a UserError unless `state` is of a RoBERTa of `shape` with `words` embeddings."""
    if TOKENS in state and len(state[TOKENS]) != words:
        raise UserError(
            f"{folder}: dict.txt has {words:,} symbols with the special ones, the model "
            f"{len(state[TOKENS]):,} embeddings; both must be of one vocabulary"
        )
    expected = shape.parameters(words)
    for name in sorted(expected.keys() ^ state.keys(), key=str):
        verb = "lacks" if name in expected else "has"
        raise UserError(f"{folder}: the model {verb} {name}, unlike a RoBERTa with {shape.layers} layers")
    for name, sizes in expected.items():
        if (actual := tuple(state[name].shape)) != sizes:
            raise UserError(f"{folder}: {name} has the shape {actual}, by the model's settings it is {sizes}")
        if not state[name].is_floating_point() or not state[name].isfinite().all():
            raise UserError(f"{folder}: {name} is not finite, or of whole numbers")
    if not torch.equal(state["encoder.lm_head.weight"], state[TOKENS]):
        raise UserError(f"{folder}: the language-model head is not tied to the embeddings, as RoBERTa's is")

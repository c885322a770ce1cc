"""A weights folder of RoBERTa: model.pt, dict.txt, encoder.json, vocab.bpe.

model.pt is a fairseq checkpoint ({"args" or "cfg", "model": state}) and dict.txt its dictionary of GPT-2 BPE
ids, as in the published roberta.base.tar.gz; the other two are GPT-2's, which fairseq publishes separately.
"""

import os
import re
import shutil
import sys
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models.roberta import RobertaModel
from torch import Tensor

from synmask.pipeline.config.benchmarks import RobertaTraining
from synmask.pipeline.corpora.archive import unpack
from synmask.pipeline.files import UserError, machine_fault, renamed
from synmask.pipeline.owner import owned
from synmask.pipeline.text.gpt2 import read_encoder, read_merges, tokenizer
from synmask.pipeline.training.checkpoints import fault, save

VOCABULARY = ("dict.txt", "encoder.json", "vocab.bpe")
MASK = "<mask>"
TOKENS = "encoder.sentence_encoder.embed_tokens.weight"
# fairseq 0.12.2 saves layers' weights twice, for a fast path that translation/layers.py does not have.
COPIES = re.compile(r"\.layers\.\d+\.(in_proj|out_proj|fc1|fc2)_(weight|bias)$")


@dataclass(frozen=True)
class RobertaShape:
    """The sizes of a RoBERTa; `max_positions` counts tokens, including <s> and </s>."""

    encoder_layers: int
    embed_dim: int
    ffn_dim: int
    heads: int
    max_positions: int

    def settings(self, training: RobertaTraining | None = None) -> Namespace:
        """The sizes, and the dropout of a training, under the names that fairseq's `roberta` reads."""
        rates = training.model_dump(include={"dropout", "attention_dropout"}) if training else {}
        return Namespace(
            arch="roberta",
            task="masked_lm",
            activation_fn="gelu",
            encoder_layers=self.encoder_layers,
            encoder_embed_dim=self.embed_dim,
            encoder_ffn_embed_dim=self.ffn_dim,
            encoder_attention_heads=self.heads,
            max_positions=self.max_positions,
            **rates,
        )

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
        for layer in (f"{top}.layers.{number}" for number in range(self.encoder_layers)):
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
        run: what a model that was trained here carries (`synmask.pipeline.owner`).
    """

    shape: RobertaShape
    dictionary: Dictionary
    state: dict[str, Tensor]
    run: Mapping[str, Any] = field(default_factory=dict)


def load_weights(folder: Path) -> Weights:
    """Read a weights folder. fairseq's own rules rename the parameters of checkpoints of 2019.

    Classification heads are left out. No code in the file is run (`weights_only`).

    Raises:
        UserError: a file is missing or damaged or of another architecture, or files do not fit together.
    """
    return _read(folder, folder, read_encoder(folder / "encoder.json"))


def load_dictionary(folder: Path) -> Dictionary:
    """Read the dictionary of a weights folder, whose model.pt need not be there yet.

    Raises:
        UserError: as for `load_weights`.
    """
    return _dictionary(folder, folder, read_encoder(folder / "encoder.json"))


def save_weights(
    folder: Path,
    state: Mapping[str, Tensor],
    shape: RobertaShape,
    vocabulary: Path,
    run: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Write a weights folder that fairseq and `load_weights` read.

    Args:
        state: contains all of `shape.parameters`; other parameters, such as a guide's, are left out.
        vocabulary: a folder with dict.txt, encoder.json and vocab.bpe, which are copied; or `folder` itself.
        run: the run that trained it; stands in model.pt, where fairseq does not look.
    Raises:
        UserError: `state` is not of this shape, or not of this vocabulary.
    """
    words = len(load_dictionary(vocabulary))
    kept = {name: value for name, value in state.items() if name in shape.parameters(words)}
    _check(kept, shape, words, folder)
    kept["encoder.lm_head.weight"] = kept[TOKENS]  # one tensor, saved once
    if folder.resolve() != vocabulary.resolve():
        _copy(vocabulary, folder)
    training = {"optimizer_name": "adam", "lr_scheduler_state": {}, "num_updates": 0}
    rest = {"optimizer_history": [training], "extra_state": {"train_iterator": None}}  # fairseq requires them
    save(folder / "model.pt", {"args": shape.settings(), "model": kept, **rest, **owned(run)})


def unpack_archive(*, archive: Path, encoder_json: Path, vocab: Path, output: Path) -> None:
    """Check fairseq's archive of RoBERTa and unpack it into a weights folder.

    Nothing is written unless all of it can be loaded.

    Args:
        archive: NAME.tar.gz, such as roberta.base.tar.gz, with NAME/model.pt and NAME/dict.txt.
        encoder_json: GPT-2's encoder.json.
        vocab: GPT-2's vocab.bpe.
        output: The weights folder: model.pt, dict.txt, encoder.json, vocab.bpe.

    Raises:
        UserError: not such an archive, damaged, or as for `load_weights`.
    """
    encoder = read_encoder(encoder_json)
    tokenizer(encoder, read_merges(vocab), f"{encoder_json}, {vocab}")  # stops if they do not fit
    name = archive.name.removesuffix(".gz").removesuffix(".tar").removesuffix(".tgz")
    output.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".weights-", dir=output.parent) as temporary:
        unpacked = Path(temporary)
        unpack(archive, [f"{name}/model.pt", f"{name}/dict.txt"], unpacked)
        weights = _read(unpacked, archive, encoder)
        shutil.copyfile(encoder_json, unpacked / "encoder.json")
        shutil.copyfile(vocab, unpacked / "vocab.bpe")
        output.mkdir(exist_ok=True)
        for file in (*VOCABULARY, "model.pt"):
            os.replace(unpacked / file, output / file)
    print(weights.shape, file=sys.stderr)


def _read(folder: Path, called: Path, encoder: dict[str, int]) -> Weights:
    """Read the weights in `folder`; error messages name it `called`."""
    dictionary = _dictionary(folder, called, encoder)
    saved = _checkpoint(folder / "model.pt", called)
    state = saved["model"]
    if not any(".sentence_encoder." in name for name in state):
        kind = _setting(saved, "arch") or "an unknown architecture"
        raise UserError(f"{called}: model.pt is of {kind}, not of RoBERTa; give one of RoBERTa's archives")
    shape = _shape(saved, called)
    state = _upgrade(state, shape.encoder_layers)
    _check(state, shape, len(dictionary), called)
    state = {name: value.float() for name, value in state.items()}
    state["encoder.lm_head.weight"] = state[TOKENS]
    return Weights(shape, dictionary, state, {key: saved[key] for key in ("run",) if key in saved})


def _dictionary(folder: Path, called: Path, encoder: dict[str, int]) -> Dictionary:
    path = folder / "dict.txt"
    if not path.is_file():
        raise UserError(f"{called}: has no dict.txt; it comes with model.pt")
    try:
        dictionary = Dictionary.load(str(path))
    except Exception as error:  # fairseq raises plain exceptions, too
        told = " ".join(str(error).split())
        raise UserError(f"{called}: dict.txt is no fairseq dictionary ({told})") from None
    dictionary.add_symbol(MASK)
    known = set(map(str, encoder.values())) | {MASK}
    for symbol in dictionary.symbols[dictionary.nspecial :]:
        if symbol not in known and not symbol.startswith("madeupword"):
            raise UserError(
                f"{called}: dict.txt has {symbol!r}, which is no id of encoder.json; "
                "both must be of one vocabulary"
            )
    return dictionary


def _checkpoint(path: Path, called: Path) -> dict[str, Any]:
    if not path.is_file():
        raise UserError(f"{called}: has no model.pt, fairseq's checkpoint")
    with open(path, "rb") as handle:
        packed = handle.read(2) == b"PK"  # checkpoints of 2019 are pickles without checksums
    problem = fault(path) if packed else None
    if problem is None:
        try:
            saved = torch.load(path, map_location="cpu", weights_only=True)
            problem = _no_model(saved)
            if problem is None:
                return saved
        except Exception as error:  # a damaged file can raise anything
            if machine_fault(error):
                raise
            problem = type(error).__name__
    raise UserError(f"{called}: model.pt is damaged or no fairseq checkpoint ({problem}); fetch it again")


def _no_model(saved: Any) -> str | None:
    """Why what a file holds is no checkpoint with a model, None if it is one."""
    state = saved.get("model") if isinstance(saved, dict) else None
    if not isinstance(state, dict):
        return "holds no model"
    for name, value in state.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            return f"{name} is no weight"
    return None


def _setting(saved: dict[str, Any], name: str) -> Any:
    """A setting of the model, in `args` (fairseq up to 0.9) or `cfg` (later); None if missing."""
    settings = saved.get("args")
    if not settings and isinstance(saved.get("cfg"), dict):
        settings = saved["cfg"].get("model")
    values = vars(settings) if isinstance(settings, Namespace) else settings
    return values.get(name) if isinstance(values, dict) else None


def _shape(saved: dict[str, Any], called: Path) -> RobertaShape:
    sizes = {
        "encoder_layers": _setting(saved, "encoder_layers"),
        "embed_dim": _setting(saved, "encoder_embed_dim"),
        "ffn_dim": _setting(saved, "encoder_ffn_embed_dim"),
        "heads": _setting(saved, "encoder_attention_heads"),
        "max_positions": _setting(saved, "max_positions") or _setting(saved, "tokens_per_sample"),
    }
    for name, value in sizes.items():
        if type(value) is not int or value < 1:
            raise UserError(f"{called}: the settings in model.pt do not say {name} (found {value!r})")
    if sizes["encoder_layers"] > len(saved["model"]):  # check before work that depends on it
        raise UserError(f"{called}: model.pt has too few parameters for {sizes['encoder_layers']} layers")
    if (activation := _setting(saved, "activation_fn") or "gelu") != "gelu":
        raise UserError(f"{called}: model.pt was trained with {activation}, RoBERTa has gelu")
    return RobertaShape(**sizes)


def _upgrade(state: dict[str, Tensor], layers: int) -> dict[str, Tensor]:
    """`state` with fairseq 0.12.2's names. Its rules depend on names only, so the smallest model does."""
    one = RobertaShape(layers, 1, 1, 1, 1)
    with torch.random.fork_rng(devices=[]):
        model = RobertaModel.build_model(one.settings(), Namespace(source_dictionary=Dictionary()))
    upgraded = {name: value for name, value in state.items() if not name.startswith("classification_heads.")}
    model.upgrade_state_dict(upgraded)
    upgraded.pop("encoder.sentence_encoder.version", None)  # marks the version of the names
    return {name: value for name, value in upgraded.items() if not COPIES.search(name)}


def _check(state: Mapping[str, Tensor], shape: RobertaShape, words: int, called: Path) -> None:
    """Raise a UserError unless `state` is of a RoBERTa of `shape` with `words` embeddings."""
    if shape.embed_dim % shape.heads:
        raise UserError(f"{called}: {shape.embed_dim} dimensions cannot be split into {shape.heads} heads")
    if TOKENS in state and len(state[TOKENS]) != words:
        raise UserError(
            f"{called}: dict.txt has {words:,} symbols with the special ones, the model "
            f"{len(state[TOKENS]):,} embeddings; both must be of one vocabulary"
        )
    expected = shape.parameters(words)
    for name in sorted(expected.keys() ^ state.keys()):
        told = "lacks" if name in expected else "has"
        raise UserError(
            f"{called}: the model {told} {name}, unlike a RoBERTa with {shape.encoder_layers} layers"
        )
    for name, sizes in expected.items():
        if (found := tuple(state[name].shape)) != sizes:
            raise UserError(f"{called}: {name} has the shape {found}, by the model's settings it is {sizes}")
        if not state[name].is_floating_point() or not state[name].isfinite().all():
            raise UserError(f"{called}: {name} is not finite, or of whole numbers")
    if not torch.equal(state["encoder.lm_head.weight"], state[TOKENS]):
        raise UserError(f"{called}: the language-model head is not tied to the embeddings, as RoBERTa's is")


def _copy(source: Path, folder: Path) -> None:
    for name in VOCABULARY:
        if not (source / name).is_file():
            raise UserError(f"{source}: has no {name}")
        with renamed(folder / name) as temporary:
            shutil.copyfile(source / name, temporary)

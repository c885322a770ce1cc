"""A fine-tuned RoBERTa as a folder that Hugging Face's transformers loads."""

import re
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from safetensors.torch import save as packed
from torch import Tensor

from synmask.pipeline.config.benchmarks import FinetuningSettings
from synmask.pipeline.export.card import model_card
from synmask.pipeline.export.code import check_exportable, guided_code, guided_config, write_folder
from synmask.pipeline.files import UserError, json_text
from synmask.pipeline.roberta.huggingface import FIXED, NAMES, SPECIAL
from synmask.pipeline.roberta.model import HEAD
from synmask.pipeline.roberta.weights import MASK, Weights, load_weights
from synmask.pipeline.tasks import TASKS
from synmask.pipeline.text.gpt2 import HEAD as MERGES_HEAD
from synmask.pipeline.text.gpt2 import read_encoder, read_merges
from synmask.pipeline.training.checkpoints import load

USAGE = """from transformers import pipeline

classify = pipeline("text-classification", "exported", trust_remote_code={trust})
print(classify("The doctor sees the woman."))
"""


def export_roberta(path: Path, weights: Path, folder: Path) -> None:
    """Write the best model of a fine-tuning as a `RobertaForSequenceClassification`, with the same outputs.

    A guided model becomes one with layers of its own (export/modeling_roberta.py), whose code lies in the
    folder. Writes README.md (`model_card`), config.json, model.safetensors, and the tokenizer's vocab.json,
    merges.txt and tokenizer_config.json.

    Args:
        path: best.pt; `weights`: the folder that it was trained from.

    Raises:
        UserError: no such model, one that needs a parser, or other weights.
    """
    saved = load(path)
    try:
        settings = FinetuningSettings.model_validate(saved["settings"])
        state = dict(saved["model"])
        labels = TASKS[settings.task].labels
    except (KeyError, TypeError, ValueError, ValidationError):
        raise UserError(f"{path}: not the model of a fine-tuning; give its best.pt") from None
    guide = settings.system.guide
    check_exportable(path, guide)
    loaded = load_weights(weights)
    files = {
        "config.json": json_text(_config(loaded, settings, labels)),
        "model.safetensors": packed(_state(state, loaded, max(1, len(labels)), path), {"format": "pt"}),
        "vocab.json": json_text(_vocabulary(loaded, weights)),
        "merges.txt": "\n".join([MERGES_HEAD, *map(" ".join, read_merges(weights / "vocab.bpe")), ""]),
        "tokenizer_config.json": json_text(
            {
                "tokenizer_class": "RobertaTokenizer",
                "model_max_length": settings.training.max_tokens,
                "split_special_tokens": True,  # "<s>" in a text is text
            }
        ),
    }
    if guide != "none":
        files |= guided_code("roberta", guide)
    header = {"pipeline_tag": "text-classification", "language": "en"}
    longest = f"Texts of at most {settings.training.max_tokens} sub-words."
    files["README.md"] = model_card(
        path, header, settings.system, USAGE.format(trust=guide != "none"), [longest]
    )
    write_folder(folder, files)


def _config(loaded: Weights, settings: FinetuningSettings, labels: tuple[str, ...]) -> dict[str, Any]:
    shape, training = loaded.shape, settings.training
    names, system = labels or (settings.task,), settings.system
    kind = {"architectures": ["RobertaForSequenceClassification"]}
    if system.guide != "none":
        named = ("AutoModelForSequenceClassification", "GuidedRoberta")
        kind = guided_config("roberta", system.guide, system.options, *named)
    return (
        FIXED
        | kind
        | {
            "dtype": "float32",
            "vocab_size": len(loaded.dictionary),
            "hidden_size": shape.embed_dim,
            "num_hidden_layers": shape.encoder_layers,
            "num_attention_heads": shape.heads,
            "intermediate_size": shape.ffn_dim,
            "max_position_embeddings": shape.max_positions + 2,
            "type_vocab_size": 1,
            "hidden_dropout_prob": training.dropout,
            "attention_probs_dropout_prob": training.attention_dropout,
            "problem_type": "single_label_classification" if labels else "regression",
            "id2label": {str(number): name for number, name in enumerate(names)},
            "label2id": {name: number for number, name in enumerate(names)},
        }
    )


def _state(state: dict[str, Any], loaded: Weights, outputs: int, path: Path) -> dict[str, Tensor]:
    """The encoder and the head by the names of transformers; its one type of tokens is nothing."""
    shape, top = loaded.shape, "encoder.sentence_encoder"
    guide = {name: tuple(value.shape) for name, value in state.items() if name.startswith(f"{top}.guide.")}
    width, head = shape.embed_dim, f"classification_heads.{HEAD}"
    wanted = {
        name: size
        for name, size in shape.parameters(len(loaded.dictionary)).items()
        if not name.startswith("encoder.lm_head")
    }
    wanted |= guide | {
        f"{head}.dense.weight": (width, width),
        f"{head}.dense.bias": (width,),
        f"{head}.out_proj.weight": (outputs, width),
        f"{head}.out_proj.bias": (outputs,),
    }
    tensors = {"roberta.embeddings.token_type_embeddings.weight": torch.zeros(1, width)}
    for name, size in wanted.items():
        value = state.get(name)
        if not isinstance(value, Tensor) or tuple(value.shape) != size:
            raise UserError(
                f"{path}: {name} is missing or of another shape; give the --weights of its training"
            )
        if not value.isfinite().all():
            raise UserError(f"{path}: {name} is not finite; fine-tune again with a lower lr")
        tensors[_their_name(name.replace(head, "classifier"), bool(guide))] = value.float().contiguous()
    return tensors


def _their_name(name: str, guided: bool) -> str:
    """The name of a parameter in transformers; layers and guide of a guided model keep ours."""
    own = re.fullmatch(r"encoder\.sentence_encoder\.((layers|guide)\..*)", name) if guided else None
    if own:
        return f"roberta.{own[1]}"
    for ours, theirs in NAMES:
        name = name.replace(ours, theirs)
    return name


def _vocabulary(loaded: Weights, weights: Path) -> dict[str, int]:
    """The rows of tokens in the embeddings."""
    dictionary = loaded.dictionary
    tokens = {token: str(number) for token, number in read_encoder(weights / "encoder.json").items()}
    tokens |= {token: token for token in (*SPECIAL, MASK)}
    return {token: dictionary.index(symbol) for token, symbol in tokens.items()}

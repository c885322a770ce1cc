"""A fine-tuned RoBERTa as a folder that Hugging Face's transformers loads."""

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save as packed
from torch import Tensor

from synmask.pipeline.config.benchmarks import FinetuningSettings
from synmask.pipeline.export.card import model_card
from synmask.pipeline.export.code import method_code, write_folder
from synmask.pipeline.files import json_text
from synmask.pipeline.roberta.huggingface import (
    FIXED_CONFIG,
    POSITION_OFFSET,
    SPECIAL_TOKENS,
    TYPE_EMBEDDINGS,
    transformers_name,
)
from synmask.pipeline.roberta.model import HEAD_NAME, GuidedRoberta
from synmask.pipeline.roberta.predict import load_finetuned
from synmask.pipeline.roberta.weights import MASK, SIZES, Weights
from synmask.pipeline.tasks import TASKS
from synmask.pipeline.text.gpt2 import MERGES_HEADER, read_encoder, read_merges

USAGE = """# pip install torch transformers
from transformers import pipeline

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
    model, settings, loaded, saved = load_finetuned(path, weights)
    model.scale_outputs(TASKS[settings.task].unit)  # transformers' users expect the task's own scores
    system, longest = settings.system, settings.training.max_tokens
    keys, code = method_code(path, system, "roberta", "AutoModelForSequenceClassification", "GuidedRoberta")
    files = {
        "config.json": json_text(_roberta_config(loaded, settings) | keys),
        "model.safetensors": packed(_transformers_state(model), {"format": "pt"}),
        "vocab.json": json_text(_token_rows(loaded, weights)),
        "merges.txt": "\n".join([MERGES_HEADER, *map(" ".join, read_merges(weights / "vocab.bpe")), ""]),
        "tokenizer_config.json": json_text(
            {
                "tokenizer_class": "RobertaTokenizer",
                "model_max_length": longest,
                "split_special_tokens": True,  # "<s>" in a text is text
            }
        ),
    }
    header = {"pipeline_tag": "text-classification", "language": "en"}
    usage, limits = USAGE.format(trust=bool(code)), [f"Texts of at most {longest} sub-words."]
    files["README.md"] = model_card(path, header, system, usage, limits, saved.get("run", {}))
    write_folder(folder, files | code)


def _roberta_config(loaded: Weights, settings: FinetuningSettings) -> dict[str, Any]:
    training, labels = settings.training, TASKS[settings.task].labels
    names = labels or (settings.task,)
    sizes = {theirs: getattr(loaded.shape, ours) for ours, (_, theirs) in SIZES.items()}
    return FIXED_CONFIG | {
        "architectures": ["RobertaForSequenceClassification"],
        "dtype": "float32",
        "vocab_size": len(loaded.dictionary),
        **sizes,
        "max_position_embeddings": loaded.shape.max_positions + POSITION_OFFSET,
        "type_vocab_size": 1,
        "hidden_dropout_prob": training.dropout,
        "attention_probs_dropout_prob": training.attention_dropout,
        "problem_type": "single_label_classification" if labels else "regression",
        "id2label": {str(number): name for number, name in enumerate(names)},
        "label2id": {name: number for number, name in enumerate(names)},
    }


def _transformers_state(model: GuidedRoberta) -> dict[str, Tensor]:
    """The encoder and the head by the names of transformers; its one type of tokens is nothing.

    Layers and guide of a guided model keep our names.
    """
    top = "encoder.sentence_encoder"
    ours = () if model.encoder.sentence_encoder.guide is None else (f"{top}.layers.", f"{top}.guide.")
    tensors = {TYPE_EMBEDDINGS: torch.zeros(1, model.args.encoder_embed_dim)}
    for name, value in model.state_dict().items():
        if name.startswith(ours):
            tensors[name.replace(top, "roberta")] = value
        elif not name.startswith(("encoder.lm_head", f"{top}.version")):
            tensors[transformers_name(name).replace(f"classification_heads.{HEAD_NAME}", "classifier")] = (
                value
            )
    return {name: value.float().contiguous() for name, value in tensors.items()}


def _token_rows(loaded: Weights, weights: Path) -> dict[str, int]:
    """The rows of tokens in the embeddings."""
    dictionary = loaded.dictionary
    tokens = {token: str(number) for token, number in read_encoder(weights / "encoder.json").items()}
    tokens |= {token: token for token in (*SPECIAL_TOKENS, MASK)}
    return {token: dictionary.index(symbol) for token, symbol in tokens.items()}

"""Export a translation model to Hugging Face's transformers, as FSMT (its fairseq Transformer).

A guided model becomes an FSMT with an encoder of its own (export/modeling_translation.py). The package
transformers is not needed here.
"""

import re
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.modules import SinusoidalPositionalEmbedding
from safetensors.torch import save as packed
from torch import Tensor

from synmask.pipeline.config.sections import DEFAULT_DECODING
from synmask.pipeline.export.card import model_card
from synmask.pipeline.export.code import OF_PIECES, TOKENIZER, method_code, with_imports, write_folder
from synmask.pipeline.files import json_text
from synmask.pipeline.guidance import Guidance
from synmask.pipeline.languages import closest_language
from synmask.pipeline.text.moses import ABBREVIATIONS
from synmask.pipeline.translation.dataset import continues
from synmask.pipeline.translation.model_file import load_model
from synmask.pipeline.translation.raw_text import TextProcessor
from synmask.pipeline.translation.transformer import GuidedTransformer

USAGE = """# pip install torch transformers sacremoses{}
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("exported", trust_remote_code=True)
model = AutoModelForSeq2SeqLM.from_pretrained("exported", trust_remote_code=True)
sentences = tokenizer(["a sentence of the source language"], padding=True, return_tensors="pt")
print(tokenizer.batch_decode(model.generate(**sentences), skip_special_tokens=True))
"""
OWN_GUIDE = "decoder.layers.0.self_attn.guide"  # where the exported model has the decoder's guide
# the same in all of fairseq's dictionaries
SPECIAL_IDS = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
MAX_LENGTH = 202  # fairseq's maximum of 200 sub-words, </s>, and the </s> that decoding starts from
PARAMETERS = re.compile(r"(encoder|decoder)\.(embed_tokens|layers|output_projection|guide)\.")


def export_translation(path: Path, folder: Path) -> str | None:
    """Write a model file of `average` as a `FSMTForConditionalGeneration` with the same outputs.

    A guided model becomes a subclass of it, whose code lies in the folder. Writes README.md (`model_card`),
    config.json, generation_config.json (beam search as `synmask translate` has it), model.safetensors,
    vocab-src.json and vocab-tgt.json; also the tokenizer's other files, if FSMT's tokenizer can split text
    like the model's.

    Returns:
        the reason why there is no tokenizer, else None.

    Raises:
        UserError: it is no model file, or the model needs a parser or a second model.
    """
    model, task, text, saved = load_model(path)
    system = task.settings.system
    keys, code = method_code(path, system, "translation", "AutoModelForSeq2SeqLM", "GuidedTransformer")
    languages = [closest_language(language, ABBREVIATIONS) for language in (text.source, text.target)]
    files = {
        "config.json": json_text(_fsmt_config(model, languages) | keys),
        "generation_config.json": json_text(_generation_config()),
        "model.safetensors": packed(_fsmt_state(model), {"format": "pt"}),
        "vocab-src.json": _fsmt_vocabulary(task.src_dict),
        "vocab-tgt.json": _fsmt_vocabulary(task.tgt_dict),
    }
    header = {"pipeline_tag": "translation", "language": [text.source, text.target]}
    usage = USAGE.format(" sentencepiece" if text.has_pieces else "")
    files["README.md"] = model_card(path, header, system, usage, _limits(model, system), saved.get("run", {}))
    missing = _why_not_tokenized(text)
    if missing is None:
        files |= _tokenizer_files(text, languages, system.left_pad_source)
    write_folder(folder, files | code)
    return missing


def _limits(model: GuidedTransformer, system: Guidance) -> list[str]:
    limits = [f"Sentences of at most {model.encoder.max_positions()} sub-words, like those of its corpus."]
    if system.mixes:
        limits.append(
            "A sentence's translation depends on its batch: give it alone for `synmask translate`'s."
        )
    if system.guide_options.induces:
        limits.append("The trees that it induces (`model.parse`) differ from seed to seed.")
    return limits


def _fsmt_config(model: GuidedTransformer, languages: list[str]) -> dict[str, Any]:
    cfg, encoder, decoder = model.cfg, model.encoder, model.decoder
    sizes = {}
    for side, part in (("encoder", cfg.encoder), ("decoder", cfg.decoder)):
        sizes |= {
            f"{side}_layers": part.layers,
            f"{side}_ffn_dim": part.ffn_embed_dim,
            f"{side}_attention_heads": part.attention_heads,
        }
    return sizes | {
        "architectures": ["FSMTForConditionalGeneration"],
        "model_type": "fsmt",
        "dtype": "float32",
        "langs": languages,
        "src_vocab_size": len(encoder.dictionary),
        "tgt_vocab_size": len(decoder.dictionary),
        "d_model": cfg.encoder.embed_dim,
        "max_position_embeddings": encoder.max_positions(),
        "activation_function": "relu",
        "dropout": cfg.dropout,
        "attention_dropout": cfg.attention_dropout,
        "scale_embedding": True,
        "is_encoder_decoder": True,
        "use_cache": False,  # with a cache, FSMT lets tokens see later ones; `generate` has one at a time
        "tie_word_embeddings": False,  # True would replace the source's by the target's
        **SPECIAL_IDS,
    }


def _generation_config() -> dict[str, Any]:
    """fairseq's beam search with the defaults of `synmask translate`.

    Model files do not contain the `decoding` of their corpus; give it to `generate` if you want it.
    """
    return {
        "use_cache": True,
        "num_beams": DEFAULT_DECODING.beam,
        "length_penalty": DEFAULT_DECODING.length_penalty,
        "early_stopping": True,
        "max_length": MAX_LENGTH,
        "min_length": 2,  # counts the </s> that decoding starts from: no translation is empty
        "suppress_tokens": [1],  # <pad>
        **SPECIAL_IDS,
        "forced_eos_token_id": 2,
    }


def _fsmt_state(model: GuidedTransformer) -> dict[str, Tensor]:
    """The parameters, under fairseq's names, and what FSMT or the guided encoder stores besides: the table of
    positions, and which tokens end in "@@"."""
    state = {
        f"model.{name}".replace("decoder.guide", OWN_GUIDE): value.detach().cpu().clone()
        for name, value in model.state_dict().items()
        if PARAMETERS.match(name)
    }
    width, padding = model.cfg.encoder.embed_dim, model.encoder.padding_idx
    rows = model.encoder.max_positions() + padding + 1
    for side in ("encoder", "decoder"):
        table = SinusoidalPositionalEmbedding.get_embedding(rows, width, padding)
        state[f"model.{side}.embed_positions.weight"] = table
    if model.encoder.guide is not None:
        state["model.encoder.continues"] = torch.from_numpy(continues(model.encoder.dictionary))
    return state


def _fsmt_vocabulary(dictionary: Dictionary) -> str:
    """Sub-words and their ids; FSMT marks ends of words: "un@@ lich" becomes "un" and "lich</w>"."""
    special, words = dictionary.symbols[: dictionary.nspecial], dictionary.symbols[dictionary.nspecial :]
    marked = [word[:-2] if word.endswith("@@") else f"{word}</w>" for word in words]
    return json_text({token: number for number, token in enumerate([*special, *marked])})


def _why_not_tokenized(text: TextProcessor) -> str | None:
    """Why no tokenizer can split text by these text settings; None if one can."""
    known = ("moses", "none", "char") if text.has_pieces else ("moses",)
    for side, language in (("source", text.source), ("target", text.target)):
        if (used := text.settings.tokeniser_of(language)) not in known:
            return f"its {side} is tokenised by {used!r}, FSMT's tokenizer has Moses alone"
    if text.settings.vocabulary is not None:
        return "its sub-words have a vocabulary_threshold, which FSMT's tokenizer has not"
    return None


def _tokenizer_files(text: TextProcessor, languages: list[str], left_pads: bool) -> dict[str, str | bytes]:
    files: dict[str, str | bytes] = {}
    code, name, more = TOKENIZER, "MosesTokenizer", {}
    merges = [line for line in text.settings.codes.split("\n") if line and not line.startswith("#version")]
    if text.has_pieces:
        files, merges = text.piece_models(), []
        code, name = OF_PIECES, "PiecesTokenizer"
        more = {"tokenisers": [*map(text.settings.tokeniser_of, (text.source, text.target))]}
    config = {
        "tokenizer_class": "FSMTTokenizer",
        "auto_map": {"AutoTokenizer": [f"{code.stem}.{name}", None]},
        "langs": languages,
        "do_lower_case": text.settings.lowercase,
        "model_max_length": 1024,
        "padding_side": "left" if left_pads else "right",
        "split_special_tokens": True,  # "<s>" in a text is text
    }
    return files | {
        "merges.txt": "".join(f"{merge}\n" for merge in merges),
        "tokenizer_config.json": json_text(config | more),
        **with_imports(code.stem, code.read_text(encoding="utf-8")),
    }

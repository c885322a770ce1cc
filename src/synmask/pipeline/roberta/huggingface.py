"""A RoBERTa in Hugging Face's format → a weights folder."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from synmask.pipeline.disk import raise_unreadable
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_json, read_object, write_json, write_lines
from synmask.pipeline.roberta.weights import MASK, SIZES, RobertaShape, save_weights
from synmask.pipeline.text.gpt2 import MERGES_HEADER, read_encoder, read_merges, tokenizer

SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>")  # fairseq gives them the first rows, in this order
# Fixed values of fairseq's RoBERTa; the first ones are the defaults of a config.json.
CONFIG_DEFAULTS = {
    "bos_token_id": 0,
    "pad_token_id": 1,
    "eos_token_id": 2,
    "position_embedding_type": "absolute",
    "is_decoder": False,
}
FIXED_CONFIG = {**CONFIG_DEFAULTS, "model_type": "roberta", "hidden_act": "gelu", "layer_norm_eps": 1e-5}
POSITION_OFFSET = 2  # rows before the first position, which transformers counts
POSITION_EMBEDDINGS = "encoder.sentence_encoder.embed_positions.weight"
TYPE_EMBEDDINGS = "roberta.embeddings.token_type_embeddings.weight"
PARAMETER_NAMES = (  # in fairseq, in transformers
    ("encoder.sentence_encoder.embed_tokens", "roberta.embeddings.word_embeddings"),
    ("encoder.sentence_encoder.embed_positions", "roberta.embeddings.position_embeddings"),
    ("encoder.sentence_encoder.layernorm_embedding", "roberta.embeddings.LayerNorm"),
    ("encoder.sentence_encoder.layers", "roberta.encoder.layer"),
    ("self_attn.q_proj", "attention.self.query"),
    ("self_attn.k_proj", "attention.self.key"),
    ("self_attn.v_proj", "attention.self.value"),
    ("self_attn.out_proj", "attention.output.dense"),
    ("self_attn_layer_norm", "attention.output.LayerNorm"),
    (".fc1.", ".intermediate.dense."),
    (".fc2.", ".output.dense."),
    ("final_layer_norm", "output.LayerNorm"),
    ("encoder.lm_head", "lm_head"),
)


def convert_huggingface(*, input: Path, output: Path) -> None:
    """Convert a RoBERTa in Hugging Face's format to a weights folder.

    The model is a RobertaForMaskedLM; hidden states and logits stay the same. The embedding of its only token
    type, which fairseq's RoBERTa lacks, is added to the position embeddings. Weights become float32.

    Args:
        input: Folder with config.json, model.safetensors, and vocab.json with merges.txt or, as
            transformers 5 writes it, tokenizer.json.
        output: The weights folder: model.pt, dict.txt, encoder.json, vocab.bpe.

    Raises:
        UserError: a file is missing or damaged, or fairseq's RoBERTa cannot represent the model.
    """
    for name in ("config.json", "model.safetensors"):
        if not (input / name).is_file():
            raise UserError(f"{input}: has no {name}; save a RobertaForMaskedLM there with save_pretrained")
    _check_tokenizer(input)
    shape, words = _read_shape(input / "config.json")
    state = _fairseq_state(input / "model.safetensors", shape, words)
    with TemporaryDirectory() as temporary:
        vocabulary = Path(temporary)
        _write_vocabulary(input, vocabulary, words)
        save_weights(output, state, shape, vocabulary)
    print(shape, file=sys.stderr)


def _read_shape(path: Path) -> tuple[RobertaShape, int]:
    config = CONFIG_DEFAULTS | read_object(path)
    for key, value in FIXED_CONFIG.items():
        if config.get(key) != value:
            raise UserError(f"{path}: {key} is {config.get(key)!r}; fairseq's RoBERTa has {value!r}")
    for key in (*(theirs for _, theirs in SIZES.values()), "vocab_size"):
        if type(config.get(key)) is not int or config[key] < 1:
            raise UserError(f"{path}: has no {key}; is it a config.json of transformers?")
    sizes = {ours: config[theirs] for ours, (_, theirs) in SIZES.items()}
    sizes["max_positions"] -= POSITION_OFFSET
    return RobertaShape.of(sizes, str(path)), config["vocab_size"]


def _fairseq_state(path: Path, shape: RobertaShape, words: int) -> dict[str, Tensor]:
    """The parameters by fairseq's names."""
    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise_unreadable(path, error)
        raise UserError(f"{path}: damaged or no safetensors file ({error}); fetch it again") from None
    state = {}
    for ours, names in [
        (TYPE_EMBEDDINGS, [TYPE_EMBEDDINGS]),
        *((name, _stored_names(name)) for name in shape.parameters(words)),
    ]:
        stored = [name for name in names if name in tensors]
        if not stored:
            raise UserError(f"{path}: has no {names[0]}; save a RobertaForMaskedLM with save_pretrained")
        state[ours] = tensors[stored[0]].float()
    state[POSITION_EMBEDDINGS] = state[POSITION_EMBEDDINGS].clone()
    state[POSITION_EMBEDDINGS][POSITION_OFFSET:] += state.pop(TYPE_EMBEDDINGS)[0]
    return state


def transformers_name(name: str) -> str:
    """The name of fairseq's parameter in transformers."""
    for ours, theirs in PARAMETER_NAMES:
        name = name.replace(ours, theirs)
    return name


def _stored_names(name: str) -> list[str]:
    """Possible names of fairseq's parameter in transformers; files store tied ones once."""
    name = transformers_name(name)
    if name == "lm_head.weight":
        return ["lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight"]
    return [name, "lm_head.decoder.bias"] if name == "lm_head.bias" else [name]


def _check_tokenizer(source: Path) -> None:
    """Raise a UserError if the tokenizer changes text before it splits it, which GPT-2's BPE does not do."""
    for path in (source / "tokenizer_config.json", source / "tokenizer.json"):
        saved = read_object(path) if path.is_file() else {}
        before = saved.get("pre_tokenizer") or {}
        steps = (saved, before, *before.get("pretokenizers", ()))
        changes = {
            "puts a space before each text (add_prefix_space)": any(
                step.get("add_prefix_space") for step in steps
            ),
            "lower-cases text (do_lower_case)": saved.get("do_lower_case"),
            "normalises text (normalizer)": saved.get("normalizer"),
        }
        if wrong := [change for change, applies in changes.items() if applies]:
            raise UserError(f"{path}: it {wrong[0]}, which fairseq's RoBERTa does not; take another model")


def _read_vocabulary(source: Path) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """The ids of all tokens, special ones too, and the merge operations."""
    if (source / "vocab.json").is_file():
        return read_encoder(source / "vocab.json"), read_merges(source / "merges.txt")
    path = source / "tokenizer.json"
    if not path.is_file():
        raise UserError(f"{source}: has no vocab.json, nor a tokenizer.json; save the tokenizer there")
    saved = read_json(path)
    try:
        ids = saved["model"]["vocab"] | {token["content"]: token["id"] for token in saved["added_tokens"]}
        pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in saved["model"]["merges"]]
        return ids, [(left, right) for left, right in pairs]
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{path}: not the tokenizer of a RoBERTa") from None


def _write_vocabulary(source: Path, folder: Path, words: int) -> None:
    """Write encoder.json, vocab.bpe and dict.txt, where row n of `words` is the token with id n, as a string.

    Rows that no text is encoded to keep their names: fillers and <mask>. A final <mask> is left out, as in
    RoBERTa's own dict.txt, since fairseq adds it.
    """
    ids, merges = _read_vocabulary(source)
    tokens = {number: token for token, number in ids.items()}
    for number, token in enumerate(SPECIAL_TOKENS):
        if tokens.get(number) != token:
            raise UserError(f"{source}: {token} must have the id {number}, as in RoBERTa's vocabulary")
    if MASK not in ids or max(tokens) >= words:
        wrong = f"no {MASK}" if MASK not in ids else f"the id {max(tokens)}, the model {words} embeddings"
        raise UserError(f"{source}: the vocabulary has {wrong}; is it of this model?")
    encoder, rows = {}, []
    for number in range(len(SPECIAL_TOKENS), words):
        token = tokens.get(number, f"madeupword{number}")
        if token == MASK or token.startswith("madeupword"):
            rows.append(token)
        else:
            encoder[token] = number
            rows.append(str(number))
    if rows[-1] == MASK:
        rows.pop()
    tokenizer(encoder, merges, f"{source}: its tokens and merges")  # stops if they do not fit
    write_lines(folder / "dict.txt", (f"{row} 0" for row in rows))
    write_json(folder / "encoder.json", encoder)
    write_lines(folder / "vocab.bpe", [MERGES_HEADER, *map(" ".join, merges)])

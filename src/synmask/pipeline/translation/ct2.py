"""Export a plain translation model to CTranslate2, an engine that translates faster than PyTorch."""

from pathlib import Path
from tempfile import TemporaryDirectory

from ctranslate2.converters.fairseq import set_transformer_decoder, set_transformer_encoder
from ctranslate2.specs import TransformerSpec
from ctranslate2.specs.common_spec import Activation

from synmask.pipeline.errors import UserError
from synmask.pipeline.export.card import model_card
from synmask.pipeline.export.code import write_folder
from synmask.pipeline.translation.model_file import load_model

USAGE = """from ctranslate2 import Translator

sentences = [["a", "sent@@", "ence", "in", "BPE"]]
options = {"beam_size": 5, "length_penalty": 1, "max_decoding_length": 200, "min_decoding_length": 1}
results = Translator("exported").translate_batch(sentences, **options)
print(" ".join(results[0].hypotheses[0]).replace("@@ ", ""))
"""
USAGE_OF_PIECES = """from ctranslate2 import Translator
from sentencepiece import SentencePieceProcessor

source, target = (SentencePieceProcessor(model_file=f"exported/{side}.spm") for side in ("source", "target"))
sentences = source.encode(["a sentence of the source language"], out_type=str)
options = {"beam_size": 5, "length_penalty": 1, "max_decoding_length": 200, "min_decoding_length": 1}
results = Translator("exported").translate_batch(sentences, **options)
print(target.decode(results[0].hypotheses[0]))
"""
LIMITS = ["Text must come tokenised, as for training, and split by subword-nmt with codes.bpe."]


def export_ctranslate2(path: Path, folder: Path) -> None:
    """Write a model file of `average` as a CTranslate2 model in float32, with its codes and a card.

    Vocabularies of sentencepiece's pieces have its names of them.

    Raises:
        UserError: it is no model file, or syntax guides the model's attention.
    """
    model, task, text, saved = load_model(path)
    system = task.settings.system
    if system.guide != "none":
        raise UserError(f"{path}: guided by {system.guide}, which CTranslate2 lacks; leave --format out")
    sizes = task.settings.model
    layers = sizes.encoder_layers, sizes.decoder_layers
    model = model.cpu().requires_grad_(False)
    spec = TransformerSpec.from_config(layers, sizes.heads, pre_norm=False, activation=Activation.RELU)
    set_transformer_encoder(spec.encoder, model.encoder)
    set_transformer_decoder(spec.decoder, model.decoder)
    names, usage, limits = [{}, {}], USAGE, LIMITS
    codes: dict[str, str | bytes] = {"codes.bpe": text.settings.codes}
    if text.has_pieces:
        names = [text.splitter(language).symbols for language in (text.source, text.target)]
        codes, usage = text.piece_models(), USAGE_OF_PIECES
        tokenisers = map(text.settings.tokeniser_of, (text.source, text.target))
        raw = {*tokenisers} <= {"none", "char"}
        limits = [
            "Text must come with single spaces." if raw else "Text must come tokenised, as for training."
        ]
    spec.register_source_vocabulary([names[0].get(symbol, symbol) for symbol in task.src_dict.symbols])
    spec.register_target_vocabulary([names[1].get(symbol, symbol) for symbol in task.tgt_dict.symbols])
    spec.config.decoder_start_token = spec.config.eos_token
    spec.config.add_source_eos = True
    spec.validate()
    spec.optimize()
    header = {"pipeline_tag": "translation", "language": [text.source, text.target]}
    header |= {"library_name": "ctranslate2"}
    card = model_card(path, header, system, usage, limits, saved.get("run", {}))
    files: dict[str, str | bytes] = {"README.md": card}
    with TemporaryDirectory() as folder_path:
        spec.save(folder_path)
        files |= {path.name: path.read_bytes() for path in Path(folder_path).iterdir()}
    write_folder(folder, files | codes)

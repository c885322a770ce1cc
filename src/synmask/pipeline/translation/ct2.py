"""Export a plain translation model to CTranslate2, an engine that translates faster than PyTorch."""

from pathlib import Path
from tempfile import TemporaryDirectory

from ctranslate2.converters.fairseq import set_transformer_decoder, set_transformer_encoder
from ctranslate2.specs import TransformerSpec
from ctranslate2.specs.common_spec import Activation

from synmask.pipeline.errors import UserError
from synmask.pipeline.export.card import model_card
from synmask.pipeline.export.code import write_folder
from synmask.pipeline.translation.model_file import read_model, ready

USAGE = """from ctranslate2 import Translator

sentences = [["a", "sent@@", "ence", "in", "BPE"]]
options = {"beam_size": 5, "length_penalty": 1, "max_decoding_length": 200, "min_decoding_length": 1}
found = Translator("exported").translate_batch(sentences, **options)
print(" ".join(found[0].hypotheses[0]).replace("@@ ", ""))
"""
LIMITS = ["Text must come tokenised, as for training, and split by subword-nmt with codes.bpe."]


def export_ctranslate2(path: Path, folder: Path) -> None:
    """Write a model file of `average` as a CTranslate2 model in float32, with its BPE codes and a card.

    Raises:
        UserError: it is no model file, or syntax guides the model's attention.
    """
    saved = read_model(path)
    model, task, text = ready(saved, path)
    system = task.settings.system
    if system.guide != "none":
        raise UserError(f"{path}: guided by {system.guide}, which CTranslate2 lacks; leave --format out")
    sizes = task.settings.model
    layers = sizes.encoder_layers, sizes.decoder_layers
    model = model.cpu().requires_grad_(False)
    spec = TransformerSpec.from_config(layers, sizes.heads, pre_norm=False, activation=Activation.RELU)
    set_transformer_encoder(spec.encoder, model.encoder)
    set_transformer_decoder(spec.decoder, model.decoder)
    spec.register_source_vocabulary(list(task.src_dict.symbols))
    spec.register_target_vocabulary(list(task.tgt_dict.symbols))
    spec.config.decoder_start_token = spec.config.eos_token
    spec.config.add_source_eos = True
    spec.validate()
    spec.optimize()
    header = {"pipeline_tag": "translation", "language": [text.source, text.target]}
    header |= {"library_name": "ctranslate2"}
    card = model_card(path, header, system, USAGE, LIMITS, saved.get("run", {}))
    files: dict[str, str | bytes] = {"README.md": card}
    with TemporaryDirectory() as folder_path:
        spec.save(folder_path)
        files |= {path.name: path.read_bytes() for path in Path(folder_path).iterdir()}
    write_folder(folder, files | {"codes.bpe": text.codes})

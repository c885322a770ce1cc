"""Translation models of other libraries in the shape of a system's settings.

For training.py `marian` and `joey` give a model and a criterion: (model, sample) → loss, what it is to be
divided by, nothing. The embeddings of the target are tied to the output, as in all of them; fairseq's ids:
pad 1, `</s>` 2. For decoding.py `joey_copy` gives a model alone.
"""

from types import SimpleNamespace

import torch
from torch import nn


def marian(settings, source, target):
    """Hugging Face's, with its Trainer's loss. `source` and `target` are the sizes of the vocabularies."""
    from transformers import MarianConfig, MarianMTModel
    from transformers.trainer_pt_utils import LabelSmoother

    shape, training = settings.model, settings.training
    both = {
        "layers": shape.encoder_layers,
        "attention_heads": shape.heads,
        "ffn_dim": shape.ffn_dim,
    }
    config = MarianConfig(
        **{f"{side}_{key}": value for side in ("encoder", "decoder") for key, value in both.items()},
        d_model=shape.embed_dim,
        vocab_size=source,
        decoder_vocab_size=target,
        share_encoder_decoder_embeddings=False,
        dropout=training.dropout,
        attention_dropout=training.attention_dropout,
        activation_function="relu",
        scale_embedding=True,
        pad_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=2,
    )
    smoother = LabelSmoother(epsilon=training.label_smoothing)

    def loss(model, sample):
        net = sample["net_input"]
        source, before = net["src_tokens"], net["prev_output_tokens"]
        made = model(input_ids=source, attention_mask=source.ne(1), decoder_input_ids=before, use_cache=False)
        return smoother(made, sample["target"]), 1, None  # a mean already

    return MarianMTModel(config), loss


def joey(settings, source, target):
    """joeynmt's; an ImportError where it is not installed."""
    from joeynmt.model import build_model
    from joeynmt.vocabulary import Vocabulary

    def vocabulary(size):
        names = {"unk": "<unk>", "pad": "<pad>", "bos": "<s>", "eos": "</s>"}
        ids = {"unk_id": 0, "pad_id": 1, "bos_id": 2, "eos_id": 3}
        special = {f"{key}_token": name for key, name in names.items()} | ids
        words = [str(number) for number in range(size - len(names))]
        return Vocabulary(words, SimpleNamespace(**special, sep_token=None, lang_tags=[]))

    shape, dropout = settings.model, settings.training.dropout
    side = {
        "type": "transformer",
        "num_layers": shape.encoder_layers,
        "num_heads": shape.heads,
        "hidden_size": shape.embed_dim,
        "ff_size": shape.ffn_dim,
        "dropout": dropout,
        "layer_norm": "post",
        "embeddings": {"embedding_dim": shape.embed_dim, "scale": True, "dropout": dropout},
    }
    whole = {"encoder": side, "decoder": side, "tied_softmax": True}
    model = build_model(whole, vocabulary(source), vocabulary(target))
    model.loss_function = ("crossentropy", settings.training.label_smoothing)

    def loss(model, sample):
        net, target = sample["net_input"], sample["target"]
        source = net["src_tokens"]
        summed, *_ = model(
            return_type="loss",
            src=source,
            src_mask=source.ne(1)[:, None],
            src_length=net["src_lengths"],
            trg_input=net["prev_output_tokens"],
            trg=target,
            trg_mask=target.ne(1)[:, None],
        )
        return summed, sample["ntokens"], None

    return model, loss


def joey_copy(model, task):
    """joeynmt's model with the weights of an unguided model of ours; it computes the same logits.

    Its `<s>`, from which it decodes, takes fairseq's id 0 and the embedding of `</s>`, as fairseq starts
    from `</s>`.
    """
    copy, _ = joey(task.settings, len(task.src_dict), len(task.tgt_dict))
    target = task.tgt_dict
    copy.bos_index, copy.pad_index, copy.eos_index, copy.unk_index = (
        0,
        target.pad(),
        target.eos(),
        target.unk(),
    )
    copy.decoder.output_layer.weight = nn.Parameter(model.decoder.output_projection.weight.detach().clone())
    copy.trg_embed.lut.weight.data[:] = model.decoder.embed_tokens.weight
    copy.trg_embed.lut.weight.data[copy.bos_index] = model.decoder.embed_tokens.weight[target.eos()]
    copy.src_embed.lut.weight.data[:] = model.encoder.embed_tokens.weight
    for theirs, ours in ((copy.encoder, model.encoder), (copy.decoder, model.decoder)):
        real = torch.full((1, 1000), target.eos())  # any id except <pad>
        theirs.pe.pe = ours.embed_positions(real)
        for its, layer in zip(theirs.layers, ours.layers, strict=True):
            for part, source in _pairs(its, layer):
                part.load_state_dict(source.state_dict())
                if isinstance(part, nn.LayerNorm):
                    part.eps = source.eps
    return copy.eval()


def _pairs(its, layer):
    """The modules of a joeynmt layer, each with ours."""
    if hasattr(layer, "encoder_attn"):
        attentions = [(its.trg_trg_att, layer.self_attn), (its.src_trg_att, layer.encoder_attn)]
        norms = [
            (its.x_layer_norm, layer.self_attn_layer_norm),
            (its.dec_layer_norm, layer.encoder_attn_layer_norm),
        ]
    else:
        attentions, norms = (
            [(its.src_src_att, layer.self_attn)],
            [(its.layer_norm, layer.self_attn_layer_norm)],
        )
    for theirs, ours in attentions:
        yield from ((getattr(theirs, f"{name}_layer"), getattr(ours, f"{name}_proj")) for name in "kvq")
        yield theirs.output_layer, ours.out_proj
    yield from norms
    forward = its.feed_forward
    yield from ((forward.pwff_layer[0], layer.fc1), (forward.pwff_layer[3], layer.fc2))
    yield forward.layer_norm, layer.final_layer_norm

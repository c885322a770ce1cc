"""Translation models of other libraries in the shape of a system's settings, for training.py.

Each function gives a model and a criterion: (model, sample) → loss, what it is to be divided by, nothing. The
embeddings of the target are tied to the output, as in all of them; fairseq's ids: pad 1, `</s>` 2.
"""

from types import SimpleNamespace

from transformers import MarianConfig, MarianMTModel
from transformers.trainer_pt_utils import LabelSmoother


def marian(settings, source, target):
    """Hugging Face's, with its Trainer's loss. `source` and `target` are the sizes of the vocabularies."""
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

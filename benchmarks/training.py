"""A training step of each system at a corpus's model size, on the same batch: time and operations.

    python benchmarks/training.py --corpus demo

Stock fairseq and Hugging Face's Marian are the rivals; what is measured, and how: steps.py.
"""

import argparse
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import torch

from synmask.pipeline.config.loading import load, project_files, read_all
from synmask.pipeline.cpu import modules
from synmask.pipeline.translation.criterion import MixedLoss
from synmask.pipeline.translation.task import GuidedTranslation, transformer_config  # isort: split

from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerModelBase

import machine
from steps import DTYPES, STOCK, Ours, Rival, compare

MARIAN = "Marian"
EXACT = f"{STOCK}, fp32"  # the rival of other precisions, too
ROOT = Path(__file__).parents[1]
SIZES = {  # of the vocabularies
    "demo": (1500, 1500),
    "multi30k-small": (5000, 5000),
    "iwslt14": (8848, 6632),
    "nc11": (14000, 12000),
    "aspec": (40000, 40000),
}


def costs(names, corpus, sentences, length, steps, **kwargs):
    """The cost of a step of each system; `kwargs`: a Rival's device, precision, and compile backend."""
    return compare([rival(name, corpus, sentences, length, **kwargs) for name in names], steps)


def rival(name, corpus, batch, length, **kwargs):
    """A system of config.yaml at this corpus's size, or another library's model."""
    config = load(read_all(project_files(ROOT)))
    direction = "-".join(config.corpora[corpus].languages[:2])
    stock = name in (STOCK, EXACT)
    system = "transformer" if stock or name == MARIAN else name
    if name == EXACT:
        kwargs["precision"] = "fp32"
    settings = config.run_settings(corpus, direction, system)
    words = [Dictionary(), Dictionary()]
    for dictionary, size in zip(words, SIZES[corpus], strict=True):
        for number in range(size - len(dictionary)):
            dictionary.add_symbol(str(number))
    torch.manual_seed(1)
    if stock:
        task = Namespace(source_dictionary=words[0], target_dictionary=words[1])
        model = TransformerModelBase.build_model(transformer_config(settings), task)
        criterion = LabelSmoothedCrossEntropyCriterion(task, False, 0.1)
    elif name == MARIAN:
        model, criterion = marian(settings, *SIZES[corpus])
    else:
        model = GuidedTranslation(*words, settings, template_dictionary=words[1]).build_model()
        criterion = MixedLoss(words[1].pad(), 0.1, settings.system.mlm_weight)
    batches = sample(batch, length, SIZES[corpus], settings.system, name)
    kind = Rival if stock or name == MARIAN else Ours
    return kind(name, model, criterion, batches, **kwargs)


def sample(batch, length, sizes, system, name):
    """`batch` sentence pairs of about `length` tokens, with pads in a quarter of them."""
    torch.manual_seed(2)
    source = torch.randint(4, sizes[0], (batch, length))
    target = torch.randint(4, sizes[1], (batch, length))
    source[::4, -3:] = 1
    net = {"src_tokens": source, "src_lengths": source.ne(1).sum(1), "prev_output_tokens": target.roll(1, 1)}
    value = {"net_input": net, "target": target, "ntokens": target.numel(), "nsentences": batch}
    if name not in (STOCK, EXACT, MARIAN):
        heads = torch.randint(length - 3, (batch, length, 1)).expand(-1, -1, 2)
        distances = torch.randint(1, 12, (batch, length))
        syntax = {"heads": heads, "distances": distances, "template": target[:, ::2]}
        net["annotations"] = {"bpe_labels": 2 * (source % 2), **syntax}
        if system.mask_rate:
            net["masked"] = (torch.rand(source.numel()) < system.mask_rate).nonzero().view(-1)
            value["masked_target"] = source.flatten()[net["masked"]]
    return value


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", default="multi30k-small", choices=SIZES, help="whose model size")
    parser.add_argument("--sentences", type=int, default=64)
    parser.add_argument("--length", type=int, default=16, help="tokens per sentence")
    parser.add_argument("--steps", type=int, default=machine.TURNS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", default="fp32", choices=DTYPES, help="rivals also in fp32")
    parser.add_argument("--compile", action="store_true", help="put our models through torch.compile")
    parser.add_argument("--linear", choices=("oneDNN", "PyTorch"), help="of linear layers, not as chosen")
    parser.add_argument("--systems", nargs="+", default=["transformer", "grammar"])
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.linear:
        modules.CPU = replace(modules.CPU, linear=args.linear)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    names = [STOCK, MARIAN] if args.precision == "fp32" else [EXACT, STOCK]
    print(machine.described("torch", "fairseq", "transformers", device=device, threads=args.threads))
    print(f"{args.corpus}, {args.sentences} x {args.length} tokens, {args.precision}\n")
    kwargs = {"device": device, "precision": args.precision, "backend": "inductor" if args.compile else None}
    costs([*names, *args.systems], args.corpus, args.sentences, args.length, args.steps, **kwargs)


if __name__ == "__main__":
    main()

"""Language understanding: RoBERTa's weights."""

import argparse
import sys

from synmask.cli.options import Arguments, add


def add_verbs(verbs: argparse._SubParsersAction) -> None:
    option = add(
        verbs,
        "roberta-weights",
        _roberta_weights,
        "Unpack fairseq's archive of RoBERTa, and check it, into a weights folder.",
    )
    option("archive", "NAME.tar.gz, such as roberta.base.tar.gz, with NAME/model.pt and NAME/dict.txt")
    option("encoder-json", "GPT-2's encoder.json")
    option("vocab", "GPT-2's vocab.bpe")
    option("output", "the weights folder: model.pt, dict.txt, encoder.json, vocab.bpe")

    option = add(
        verbs,
        "convert-roberta",
        _convert_roberta,
        "Convert a RoBERTa in Hugging Face's format into a weights folder.",
    )
    option(
        "input", "folder with config.json, model.safetensors, and vocab.json, merges.txt or tokenizer.json"
    )
    option("output", "the weights folder: model.pt, dict.txt, encoder.json, vocab.bpe")


def _roberta_weights(a: Arguments) -> None:
    from synmask.engine.weights import unpack_archive

    print(unpack_archive(a.archive, a.encoder_json, a.vocab, a.output).shape, file=sys.stderr)


def _convert_roberta(a: Arguments) -> None:
    from synmask.engine.huggingface import convert_huggingface

    print(convert_huggingface(a.input, a.output), file=sys.stderr)

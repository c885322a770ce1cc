"""Language understanding: RoBERTa's weights, fine-tuning, predictions."""

import argparse
import json
import sys
from collections.abc import Callable

from synmask.cli.options import Arguments, add, gpus, restart
from synmask.gpus import lease


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

    option = add(verbs, "learn-gpt2-bpe", _learn_gpt2_bpe, "Learn a byte-level BPE in GPT-2's format.")
    option("text", "plain text files", nargs="+")
    option("merges", "how many merge operations", type=int)
    option("output", "folder for encoder.json, vocab.bpe and dict.txt")

    option = add(verbs, "encode-text", _encode_text, "Write text as ids, for `pretrain`.")
    option("train", "plain text files to train on", nargs="+")
    option("valid", "plain text files to validate on", nargs="+")
    option("weights", "folder with encoder.json, vocab.bpe and dict.txt")
    option("output", "folder for {train,valid}.{bin,idx}")

    option = add(
        verbs,
        "pretrain",
        _pretrain,
        "Pre-train a RoBERTa as a masked language model; called again it goes on where it was. "
        "Stopped by SIGTERM or Ctrl-C it saves, exit code 75.",
    )
    option("data", "output of `encode-text`")
    option("weights", "folder with dict.txt; model.pt is written there")
    _training(option)

    option = add(
        verbs, "encode-task", _encode_task, "Write one part of a task as ids, as RoBERTa reads them."
    )
    option("task", "cola, rte, … ", type=str)
    option("input", "output of `glue` or `demo-task`")
    option("weights", "a folder with RoBERTa's weights")
    option("max-tokens", "cut examples that are longer", type=int)
    option("output", "PART.npz")

    option = add(
        verbs, "task-sentences", _task_sentences, "Write each distinct sentence of a task once, for a parser."
    )
    option("task", "cola, rte, … ", type=str)
    option("inputs", "outputs of `glue`, one a part", nargs="+")
    option("output", "a sentence a line")
    option("number", "write this one, from 1, of several files of like length", type=int, default=1)
    option("files", "how many these are", type=int, default=1)

    option = add(
        verbs,
        "annotate-task",
        _annotate_task,
        "Write words and dependency heads of a part's sub-words beside PART.npz, for systems that read them.",
    )
    option("task", "cola, rte, … ", type=str)
    option("input", "output of `glue` or `demo-task`")
    option("data", "output of `encode-task`, PART.npz; makes syntax.PART.npy and, with counts, .json")
    option("weights", "folder with encoder.json and vocab.bpe")
    option("parses", "prefixes of parsed sentences: PREFIX.text, .tokens, .trees, .heads", nargs="+")

    option = add(
        verbs,
        "finetune",
        _finetune,
        "Fine-tune one system on one task with one seed, keeping the best epoch's model; called again it "
        "goes on where it was. Stopped by SIGTERM or Ctrl-C it saves, exit code 75.",
    )
    option("data", "folder with PART.npz of each part, and syntax.PART.npy where the system reads it")
    option("valid", "the part that chooses the best epoch", type=str)
    option("weights", "a folder with RoBERTa's weights")
    option("keep-checkpoints", "0: remove all but the best epoch's model", type=int, default=1)
    _training(option)

    option = add(verbs, "predict", _predict, "Answer a task: a label, or a number, a line.")
    option("model", "best.pt of a fine-tuning")
    option("weights", "the weights that it was trained from")
    option("data", "PART.npz")
    option("output", "text, a line an example")
    option("threads", "CPU threads", type=int, default=1)
    gpus(option)


def _training(option: Callable) -> None:
    option("run", "folder of the run: checkpoints/, lock, history.csv, train.json, best.pt")
    option("settings", "JSON; `snakemake -np TARGET` shows it", type=json.loads)
    option("seed", "random seed", type=int)
    option("code", "source files whose change makes old checkpoints invalid", nargs="*", default=[])
    option("threads", "CPU threads a process; the same number gives the same bytes", type=int, default=1)
    option("checkpoint-minutes", "save at least this often", type=float, default=15.0)
    restart(option)
    gpus(option)


def _how(a: Arguments) -> dict:
    how = {"code": a.code, "threads": a.threads, "restart": a.restart}
    return how | {"checkpoint_minutes": a.checkpoint_minutes}


def _roberta_weights(a: Arguments) -> None:
    from synmask.engine.weights import unpack_archive

    print(unpack_archive(a.archive, a.encoder_json, a.vocab, a.output).shape, file=sys.stderr)


def _convert_roberta(a: Arguments) -> None:
    from synmask.engine.huggingface import convert_huggingface

    print(convert_huggingface(a.input, a.output), file=sys.stderr)


def _learn_gpt2_bpe(a: Arguments) -> None:
    from synmask.files import read_lines
    from synmask.text.gpt2 import learn

    learn([line for path in a.text for line in read_lines(path)], a.merges, a.output)


def _encode_text(a: Arguments) -> None:
    from synmask.engine.pretrain import encode_text

    encode_text({"train": a.train, "valid": a.valid}, a.weights, a.output)


def _pretrain(a: Arguments) -> None:
    from synmask.engine.pretrain import pretrain

    with lease(a.gpus):
        pretrain(a.data, a.run, a.weights, a.settings, a.seed, **_how(a))


def _encode_task(a: Arguments) -> None:
    from synmask.corpora.tasks import read_task
    from synmask.engine.finetune import encode_file
    from synmask.engine.sentences import write_encoded

    examples = read_task(a.task, a.input)
    write_encoded(a.output, encode_file(examples, a.task, a.weights, a.max_tokens))


def _task_sentences(a: Arguments) -> None:
    from synmask.corpora.tasks import write_sentences

    count = write_sentences(a.task, a.inputs, a.output, a.number, a.files)
    print(f"{a.task}: {count:,} different sentences", file=sys.stderr)


def _annotate_task(a: Arguments) -> None:
    from synmask.engine.task_syntax import annotate_task

    counts = annotate_task(a.task, a.input, a.data, a.weights, a.parses)
    print(
        ", ".join(f"{what.replace('_', ' ')}: {count:,}" for what, count in counts.items()), file=sys.stderr
    )


def _finetune(a: Arguments) -> None:
    from synmask.engine.finetune import finetune

    with lease(a.gpus):
        finetune(
            a.data, a.valid, a.run, a.weights, a.settings, a.seed, keep_checkpoints=bool(a.keep_checkpoints),
            **_how(a),
        )  # fmt: skip


def _predict(a: Arguments) -> None:
    from synmask.engine.finetune import predict

    with lease(a.gpus):
        predict(a.model, a.weights, a.data, a.output, a.threads)

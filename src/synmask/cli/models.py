"""Training, averaging, decoding."""

import argparse
import json
import os
from pathlib import Path

from synmask.cli.options import Arguments, add, gpus, languages, restart
from synmask.files import UserError
from synmask.gpus import lease


def add_verbs(verbs: argparse._SubParsersAction) -> None:
    option = add(
        verbs,
        "settings",
        _settings,
        "Print the settings of a run as JSON, for --settings of `train`.",
        "Example: synmask settings --corpus demo --direction de-en --system grammar",
    )
    option("config", "configuration file", default=Path("config.yaml"))
    option("corpus", "a corpus of the configuration", type=str)
    option("direction", "source-target", type=str)
    option("system", "a system of the configuration", type=str)

    option = add(
        verbs,
        "train",
        _train,
        "Train one system with one seed; called again it goes on where it was, "
        "unless settings, data or code have changed (see --restart). "
        "Stopped by SIGTERM or Ctrl-C it saves, exit code 75.",
    )
    option("data", "folder of binarised data")
    option("run", "folder of the run: checkpoints/, lock, history.csv, train.json")
    languages(option)
    option("settings", "JSON, see `synmask settings`", type=json.loads)
    option("seed", "random seed", type=int)
    option("keep", "how many of the last epochs' models to keep for averaging", type=int)
    option("code", "source files whose change makes old checkpoints invalid", nargs="*", default=[])
    option("threads", "CPU threads a process; the same number gives the same bytes", type=int, default=1)
    option("processes", "data-parallel workers; default: one a GPU", type=int, default=None)
    gpus(option)
    option("checkpoint-minutes", "save at least this often", type=float, default=15.0)
    restart(option)

    option = add(verbs, "average", _average, "Average the last epochs into one model file that stands alone.")
    option("run", "folder of the run")
    option("last", "how many epochs", type=int)
    option("data", "folder of binarised data (for its dictionaries)")
    option("codes", "the BPE codes")
    option("vocabulary", "the source vocabulary of learn-bpe")
    option("vocabulary-threshold", "as for apply-bpe", type=int)
    languages(option)
    option("text", "the corpus' text settings as JSON", type=json.loads)
    option("settings", "the run's settings as JSON", type=json.loads)
    option("output", "the model file")
    option("keep-checkpoints", "0: remove them afterwards", type=int, default=1)

    option = add(
        verbs,
        "speed",
        _speed,
        "Measure time and memory of models' encoders by length of the sentences.",
    )
    option("models", "model files of `average`", nargs="+")
    option("labels", "what each of them is called", nargs="+", type=str)
    option("output", "JSON, a row a model and length")
    option("threads", "CPU threads", type=int, default=1)
    gpus(option)

    option = add(verbs, "decode", _decode, "Translate BPE files by beam search, each by itself.")
    option("model", "a model file of `average`")
    option("inputs", "source sentences in BPE", nargs="+")
    option("outputs", "a prefix each: .txt (detokenised), .tok (tokens), .json (time)", nargs="+")
    option("annotations", "output of `annotate` each, for systems that read it", nargs="*", default=[])
    option("settings", '\'{"beam": 5, "length_penalty": 1.0, "max_tokens": 8000}\'', type=json.loads)
    option("threads", "CPU threads", type=int, default=1)
    gpus(option)

    option = add(
        verbs,
        "translate",
        _translate,
        "Translate raw text from standard input with any trained system; a line in, a line out.",
        "Example: echo 'Ein Hund schläft.' | synmask translate --model results/…/seed1/average.pt",
    )
    option("model", "a model file of `average`")
    option("beam", "beam size", type=int, default=5)
    option("length-penalty", "below 1 favours short translations", type=float, default=1.0)
    option("threads", "CPU threads", type=int, default=os.cpu_count())
    option(
        "config",
        "says where CoreNLP is, for systems that read a parser and text that it tokenised",
        default=Path("config.yaml"),
    )


def _settings(a: Arguments) -> None:
    from synmask.config import load, read_yaml

    config = load(read_yaml(a.config), [a.config])
    for kind, name in (("corpora", a.corpus), ("systems", a.system)):
        if name not in getattr(config, kind):
            raise UserError(f"{a.config}: no {name!r} among the {kind}: {', '.join(getattr(config, kind))}")
    print(config.run_settings(a.corpus, a.direction, a.system))


def _train(a: Arguments) -> None:
    from synmask.engine.train import train

    with lease(a.gpus):
        train(
            a.data, a.run, a.source, a.target, a.settings, a.seed,
            keep=a.keep, code=a.code, threads=a.threads, processes=a.processes,
            checkpoint_minutes=a.checkpoint_minutes, restart=a.restart,
        )  # fmt: skip


def _average(a: Arguments) -> None:
    from synmask.engine.average import average, save_model
    from synmask.engine.checkpoints import average_file, retire
    from synmask.engine.lock import locked
    from synmask.files import read_lines
    from synmask.text.bpe import frequent

    epochs = a.settings.get("training", {}).get("max_epochs", a.last)
    if a.last > epochs:
        raise UserError(f"--last {a.last}: the training has {epochs} epochs; lower training.average")
    threshold = a.vocabulary_threshold
    text = a.text | {
        "source": a.source,
        "target": a.target,
        "codes": "\n".join(read_lines(a.codes)),
        "vocabulary": sorted(frequent(a.vocabulary, threshold)) if threshold else None,
    }
    checkpoints = a.run / "checkpoints"
    with locked(a.run):
        save_model(a.output, average(checkpoints, a.last), a.data, text, a.settings)
        if not a.keep_checkpoints:
            retire(checkpoints, a.output, average_file(a.last))


def _speed(a: Arguments) -> None:
    from synmask.engine.speed import measure_files

    with lease(a.gpus):
        if len({*a.labels}) < len(a.labels) or len(a.labels) != len(a.models):
            raise UserError(f"--labels {' '.join(a.labels)}: give each of --models one of its own")
        measure_files(dict(zip(a.labels, a.models, strict=True)), a.output, a.threads)


def _decode(a: Arguments) -> None:
    from synmask.engine.decode import decode_files

    with lease(a.gpus):
        decode_files(a.model, a.inputs, a.outputs, threads=a.threads, annotations=a.annotations, **a.settings)


def _translate(a: Arguments) -> None:
    from synmask.cli.syntax import corenlp_parser, tokeniser_jars
    from synmask.engine.decode import translate
    from synmask.files import read_lines

    for line in translate(
        a.model, read_lines("/dev/stdin"), beam=a.beam, length_penalty=a.length_penalty, threads=a.threads,
        parse=corenlp_parser(a.config, a.threads), jars=tokeniser_jars(a.config),
    ):  # fmt: skip
        print(line)

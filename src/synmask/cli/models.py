"""Training, averaging, decoding."""

import os
from pathlib import Path
from typing import Annotated

from pydantic import Field

from synmask.cli.options import (
    Code,
    ConfigFile,
    Count,
    Gpus,
    Json,
    Minutes,
    RandomSeed,
    Restart,
    Some,
    Source,
    Switch,
    Target,
    Threads,
    Whole,
    together,
)
from synmask.config.base import LengthPenalty, Line
from synmask.config.sections import Decoding, RunSettings, Tokens
from synmask.files import UserError
from synmask.gpus import lease

CORES = os.cpu_count() or 1


def train(
    *,
    data: Path,
    run: Path,
    source: Source,
    target: Target,
    settings: Json[RunSettings],
    seed: RandomSeed,
    keep: Count,
    templates: tuple[Path, ...] = (),
    code: Code = (),
    threads: Threads = 1,
    processes: Annotated[Whole, Field(ge=1, le=1024)] | None = None,
    gpus: Gpus = 0,
    checkpoint_minutes: Minutes = 15.0,
    restart: Restart = False,
) -> None:
    """Train one system with one seed.

    Call it again to continue where it stopped, unless settings, data or code have changed (see --restart).
    SIGTERM or Ctrl-C makes it save and exit with 75.

    Args:
        data: Folder of binarised data.
        run: Folder of the run: checkpoints/, lock, history.csv, train.json.
        settings: See `synmask settings`.
        keep: How many of the last epochs' models to keep for averaging.
        templates: Those of train and of valid and their dictionary, for systems that read them.
        processes: Data-parallel workers; default: one per GPU.
    """
    from synmask.translation.train import train

    if len(templates) not in (0, 3):
        raise UserError("--templates: give three files, those of train and of valid and their dictionary")
    named = dict(zip(("train", "valid", "dictionary"), templates, strict=False))
    with lease(gpus):
        train(
            data, run, source, target, settings, seed, keep=keep, templates=named, code=code,
            threads=threads, processes=processes, checkpoint_minutes=checkpoint_minutes, restart=restart,
        )  # fmt: skip


def average(
    *,
    run: Path,
    last: Count,
    data: Path,
    codes: Path,
    vocabulary: Path,
    vocabulary_threshold: Annotated[Whole, Field(ge=0)],
    source: Source,
    target: Target,
    text: Json[Tokens],
    settings: Json[RunSettings],
    output: Path,
    template_model: Path | None = None,
    keep_checkpoints: Switch = 1,
) -> None:
    """Average the last epochs into one self-contained model file.

    Args:
        run: Folder of the run.
        last: How many epochs.
        data: Folder of binarised data (for its dictionaries).
        codes: The BPE codes.
        vocabulary: The source vocabulary of learn-bpe.
        vocabulary_threshold: As for apply-bpe.
        text: The corpus' tokeniser and case.
        settings: The run's settings.
        output: The model file.
        template_model: The model file that predicts templates, for systems that read them.
        keep_checkpoints: 0: remove them afterwards.
    """
    from synmask.files import read_lines
    from synmask.text.bpe import frequent
    from synmask.training.checkpoints import average_file, retire
    from synmask.training.lock import locked
    from synmask.translation.average import average, save_model

    if last > settings.training.max_epochs:
        epochs = settings.training.max_epochs
        raise UserError(f"--last {last}: the training has {epochs} epochs; lower training.average")
    language = {"source": source, "target": target}
    words = sorted(frequent(vocabulary, vocabulary_threshold)) if vocabulary_threshold else None
    subwords = {"codes": "\n".join(read_lines(codes)), "vocabulary": words}
    checkpoints = run / "checkpoints"
    with locked(run):
        state = average(checkpoints, last)
        words = text.plain() | language | subwords
        save_model(output, state, data, words, settings, template_model)
        if not keep_checkpoints:
            retire(checkpoints, output, average_file(last))


def speed(
    *, models: Some[Path], labels: Some[Line], output: Path, threads: Threads = 1, gpus: Gpus = 0
) -> None:
    """Measure time and memory of models' encoders by sentence length.

    Args:
        models: Model files of `average`.
        labels: A name for each model.
        output: JSON, one row per model and length.
    """
    from synmask.translation.speed import measure_files

    named = dict(together(labels=labels, models=models))
    if len(named) < len(labels):
        raise UserError(f"--labels {' '.join(labels)}: give each of --models one of its own")
    with lease(gpus):
        measure_files(named, output, threads)


def decode(
    *,
    model: Path,
    inputs: Some[Path],
    outputs: Some[Path],
    annotations: tuple[Path, ...] = (),
    templates: tuple[Path, ...] = (),
    settings: Json[Decoding],
    threads: Threads = 1,
    gpus: Gpus = 0,
) -> None:
    """Translate BPE files by beam search.

    Args:
        model: A model file of `average`.
        inputs: Source sentences in BPE.
        outputs: A prefix for each: .txt (detokenised), .tok (tokens), .json (time).
        annotations: Output of `annotate` for each, for systems that read it.
        templates: Output of `predict-templates` for each, for systems that read it.
        settings: '{"beam": 5, "length_penalty": 1.0, "max_tokens": 8000}'.
    """
    from synmask.translation.decode import decode_files

    with lease(gpus):
        how = settings.model_dump() | {"annotations": annotations, "templates": templates}
        decode_files(model, inputs, outputs, threads=threads, **how)


def predict_templates(
    *,
    model: Path,
    input: Path,
    output: Path,
    settings: Json[Decoding],
    threads: Threads = 1,
    gpus: Gpus = 0,
) -> None:
    """Predict templates of the target, for ST-NMT.

    Args:
        model: A model file of `average`, trained on templates.
        input: Source sentences in BPE.
        output: Their templates, in BPE.
        settings: As for decode.
    """
    from synmask.translation.decode import predict_templates

    with lease(gpus):
        predict_templates(model, input, output, threads=threads, **settings.model_dump())


def translate(
    *,
    model: Some[Path],
    input: Path | None = None,
    output: Path | None = None,
    nbest: Count = 1,
    scores: bool = False,
    beam: Count = 5,
    length_penalty: LengthPenalty = 1.0,
    batch: Annotated[Whole, Field(ge=1, le=100_000)] = 64,
    threads: Threads = CORES,
    config: ConfigFile = Path("config.yaml"),
) -> None:
    """Translate raw text: a line in, a line out, as soon as it comes; at a terminal it asks for lines.

    For example: `echo 'Ein Hund schläft.' | synmask translate --model results/…/seed1/average.pt`,
    `synmask translate --model average.pt --input news.de --output news.en`, or the three best translations
    by two models together: `synmask translate --model one.pt two.pt --nbest 3 --scores < news.de`

    Args:
        model: A model file of `average`; several, of one corpus, are an ensemble: the mean of their
            probabilities.
        input: A file (.gz or plain); default: standard input.
        output: A file; default: standard output.
        nbest: So many translations of each line, the best first; each then begins with the number of its
            line and a tab.
        scores: Put the model's score before each translation, and a tab: the mean natural log-probability
            of its sub-words and its end (with --length-penalty P: their sum, divided by length to the P).
        beam: Beam size.
        length_penalty: Below 1 favours short translations.
        batch: Lines translated together at most; it changes the speed, not the translations.
        config: Says where CoreNLP is, for systems that read a parser and text that it tokenised; these start
            it once, when the last line has come.
    """
    from synmask.cli.syntax import corenlp_parser, tokeniser_jars
    from synmask.translation.translate import translate

    translate(
        model, input=input, output=output, nbest=nbest, scores=scores, batch=batch, beam=beam,
        length_penalty=length_penalty, threads=threads,
        parse=corenlp_parser(config, threads), jars=tokeniser_jars(config),
    )  # fmt: skip

"""Training, averaging, decoding."""

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from synmask.pipeline.cli.options import (
    CountOption,
    Gpus,
    Json,
    Some,
    Source,
    Switch,
    Target,
    Threads,
    TrainingOptions,
    Whole,
    together,
)
from synmask.pipeline.config.base import LengthPenalty, Line
from synmask.pipeline.config.sections import Decoding, ModelText, RunSettings, Tokens
from synmask.pipeline.files import UserError, read_lines
from synmask.pipeline.gpus import lease

BEAM_SEARCH = Decoding.model_fields

CORES = os.cpu_count() or 1


def train(
    *,
    data: Path,
    run: Path,
    source: Source,
    target: Target,
    settings: Json[RunSettings],
    keep: CountOption,
    templates: tuple[Path, ...] = (),
    processes: Annotated[Whole, Field(ge=1, le=1024)] | None = None,
    training: TrainingOptions,
) -> None:
    """Train one system with one seed.

    Run it again to continue where it stopped, unless settings, data or code have changed (see --restart).
    On SIGTERM or Ctrl-C it saves and exits with 75.

    Args:
        data: Folder of binarised data.
        run: Folder of the run: checkpoints/, lock, history.csv, train.json.
        settings: See `synmask settings`.
        keep: How many of the last epochs' models to keep for averaging.
        templates: Templates of train and of valid and their dictionary, for systems that read them.
        processes: Data-parallel workers; default: one per GPU.
    """
    from synmask.pipeline.translation.train import train

    if len(templates) not in (0, 3):
        raise UserError("--templates: give three files: those of train, of valid, and their dictionary")
    named = dict(zip(("train", "valid", "dictionary"), templates, strict=False))
    how = {"keep": keep, "templates": named, "processes": processes} | training.how()
    with lease(training.gpus):
        train(data, run, source, target, settings, **how)


def average(
    *,
    run: Path,
    last: CountOption,
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
        keep_checkpoints: 0: remove the checkpoints afterwards.
    """
    from synmask.pipeline.text.bpe import frequent
    from synmask.pipeline.training.checkpoints import average_file, retire
    from synmask.pipeline.training.lock import locked
    from synmask.pipeline.translation.average import average, save_model

    if last > settings.training.max_epochs:
        epochs = settings.training.max_epochs
        raise UserError(f"--last {last}: the training has {epochs} epochs; lower training.average")
    words = sorted(frequent(vocabulary, vocabulary_threshold)) if vocabulary_threshold else None
    how = {"source": source, "target": target, "codes": "\n".join(read_lines(codes)), "vocabulary": words}
    model_text = ModelText(**text.plain(), **how)
    checkpoints = run / "checkpoints"
    with locked(run):
        state = average(checkpoints, last)
        save_model(output, state, data, model_text, settings, template_model)
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
    from synmask.pipeline.translation.speed import measure_files

    named = dict(together(labels=labels, models=models))
    if len(named) < len(labels):
        raise UserError(f"--labels {' '.join(labels)}: give each of --models a different label")
    with lease(gpus):
        measure_files(named, output, threads)


def decode(
    *,
    model: Path,
    inputs: Some[Path],
    outputs: Some[Path],
    references: tuple[Path, ...] = (),
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
        outputs: A prefix for each: .txt (detokenised), .tok (tokens), .json (time), .forced.csv (with
            --references).
        references: Reference translations of each in BPE, whose log-probabilities the model gives.
        annotations: Output of `annotate` for each, for systems that read it.
        templates: Output of `predict-templates` for each, for systems that read it.
        settings: '{"beam": 5, "length_penalty": 1.0, "max_tokens": 8000, "precision": "fp32"}'.
    """
    from synmask.pipeline.translation.decode import decode_files

    with lease(gpus):
        given = {"references": references, "annotations": annotations, "templates": templates}
        decode_files(model, inputs, outputs, settings, threads=threads, **given)


def predict_templates(
    *, model: Path, input: Path, output: Path, settings: Json[Decoding], threads: Threads = 1, gpus: Gpus = 0
) -> None:
    """Predict templates of the target, for ST-NMT.

    Args:
        model: A model file of `average`, trained on templates.
        input: Source sentences in BPE.
        output: Their templates, in BPE.
        settings: As for decode.
    """
    from synmask.pipeline.translation.decode import predict_templates

    with lease(gpus):
        predict_templates(model, input, output, settings, threads=threads)


def translate(
    *,
    model: Some[Path],
    input: Path | None = None,
    output: Path | None = None,
    nbest: CountOption = 1,
    scores: bool = False,
    beam: CountOption = BEAM_SEARCH["beam"].default,
    length_penalty: LengthPenalty = BEAM_SEARCH["length_penalty"].default,
    precision: Literal["fp32", "bf16"] = BEAM_SEARCH["precision"].default,
    batch: Annotated[Whole, Field(ge=1, le=100_000)] = 64,
    threads: Threads = CORES,
    configfile: tuple[Path, ...] = (),
) -> None:
    """Translate raw text, each line as soon as it arrives; at a terminal, prompt for lines.

    For example: `echo 'Ein Hund schläft.' | synmask translate --model results/…/seed1/average.pt`,
    `synmask translate --model average.pt --input news.de --output news.en`, or the three best translations
    by two models together: `synmask translate --model one.pt two.pt --nbest 3 --scores < news.de`

    Args:
        model: A model file of `average`; several models of one corpus form an ensemble (the mean of their
            probabilities).
        input: A file (.gz or plain); default: standard input.
        output: A file; default: standard output.
        nbest: Translations per line, best first; if more than 1, each begins with the number of its line and
            a tab.
        scores: Put the model's score and a tab before each translation: the mean natural log-probability of
            its sub-words and its end (with --length-penalty P: their sum, divided by length to the P).
        beam: Beam size.
        length_penalty: Below 1 favours short translations.
        precision: bf16 is faster on CPUs with instructions for it; it may change a translation.
        batch: Maximum number of lines translated together; changes the speed, not the translations.
        configfile: Your own files, which override config.yaml. The configuration is read for
            systems that read parses and for text that CoreNLP tokenised; CoreNLP then starts once, after the
            last line.
    """
    from synmask.pipeline.cli.constituency import corenlp_parser, tokeniser_jars
    from synmask.pipeline.translation.translate import translate

    settings = Decoding(beam=beam, length_penalty=length_penalty, precision=precision)
    translate(
        model, settings, input=input, output=output, nbest=nbest, scores=scores, batch=batch, threads=threads,
        parse=corenlp_parser(configfile, threads), jars=tokeniser_jars(configfile),
    )  # fmt: skip


def export(*, model: Path, output: Path, weights: Path | None = None) -> None:
    """Write a plain model as a folder for Hugging Face's transformers, with its tokenizer.

    For example: `synmask export --model results/…/transformer/seed1/average.pt --output mine` or, of RoBERTa,
    `synmask export --model results/…/roberta/seed1/best.pt --weights results/weights/NAME --output mine`.
    Systems whose attention syntax guides cannot be exported: transformers has no such architecture.

    Args:
        model: A model file of `average`, or best.pt of `finetune`.
        output: The folder: config.json, model.safetensors, the tokenizer's files.
        weights: Of a fine-tuned RoBERTa, the weights that it was trained from.
    """
    if weights is not None:
        from synmask.pipeline.roberta.exported import export_roberta

        return export_roberta(model, weights, output)
    from synmask.pipeline.translation.fsmt import export_translation

    if missing := export_translation(model, output):
        print(f"{output}: without a tokenizer: {missing}", file=sys.stderr)

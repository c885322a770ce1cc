"""Average epoch checkpoints into one self-contained model file, for decoding and parsing."""

import os
import re
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import Field, ValidationError

from synmask.pipeline.arguments import RunFolder, Switch, Whole
from synmask.pipeline.config.base import Tokeniser
from synmask.pipeline.config.faults import first_fault
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_lines, read_object
from synmask.pipeline.languages import split_direction
from synmask.pipeline.record import check_training, read_run, training_digest
from synmask.pipeline.run_settings import RunSettings
from synmask.pipeline.stamps import CheckpointFolder
from synmask.pipeline.text.bpe import read_frequent
from synmask.pipeline.text.notation import RESERVED_SYMBOL
from synmask.pipeline.tokens import ModelText
from synmask.pipeline.training.checkpoints import (
    average_file,
    keep_final_only,
    load_epoch_model,
    load_final_model,
    trained_folder,
)
from synmask.pipeline.training.lock import run_lock
from synmask.pipeline.translation.model_file import save_model
from synmask.pipeline.translation.raw_text import TextProcessor


def average_run(
    *,
    run: RunFolder,
    data: Path,
    codes: Path,
    vocabulary: Path,
    vocabulary_threshold: Annotated[Whole, Field(ge=0)] = 0,
    tokenisers: tuple[Tokeniser, Tokeniser],
    lowercase: bool = False,
    output: Path,
    template_model: Path | None = None,
    keep_checkpoints: Switch = 1,
) -> None:
    """Average the last epochs of a run into one self-contained model file.

    Args:
        data: Folder of binarised data (for its dictionaries).
        codes: The BPE codes.
        vocabulary: The source vocabulary of `subwords`.
        vocabulary_threshold: As for `subwords`; 0: none.
        tokenisers: Of the source and of the target.
        lowercase: Whether the text is in lower case.
        output: The model file.
        template_model: The model file that predicts templates, for systems that read them.
        keep_checkpoints: 0: remove the checkpoints afterwards.
    """
    if not keep_checkpoints and output.exists() and not output.is_file():
        raise UserError(f"{output}: no file that could replace the checkpoints; give --keep-checkpoints 1")
    kwargs = {"lowercase": lowercase, "codes": "\n".join(read_lines(codes)), "vocabulary": None}
    if vocabulary_threshold:
        kwargs["vocabulary"] = sorted(read_frequent(vocabulary, vocabulary_threshold))
    with run_lock(run):
        record, checkpoints = read_run(run, "direction", "averaged_epochs", "training"), trained_folder(run)
        source, target = split_direction(record["direction"])
        tokeniser = {source: tokenisers[0], target: tokenisers[1]}
        text = ModelText(tokeniser=tokeniser, source=source, target=target, **kwargs)
        for language in (source, target):
            _check_codes(codes, text, language, data / f"dict.{language}.txt")
        if (stamp := checkpoints / "stamp.json").exists():
            digest = training_digest(read_object(stamp))
            check_training(run / "train.json", record["training"], stamp, digest)
        last, settings = record["averaged_epochs"], _settings(run, record["settings"])
        state = average(run, last, record["training"])
        save_model(output, state, data, text, settings, template_model, record)
        if not keep_checkpoints:
            keep_final_only(checkpoints, output, average_file(last))


def _check_codes(path: Path, text: ModelText, language: str, dictionary: Path) -> None:
    """Check that codes are of some kind, and sentencepiece's model those of the dictionary's sub-words."""
    processor = TextProcessor(text)
    try:
        splitter = processor.splitter(language)
    except ValueError as error:
        raise UserError(f"{path}: {error}; remove it and learn it again") from None
    if processor.has_pieces:
        symbols = {line.rpartition(" ")[0] for line in read_lines(dictionary)} - splitter.symbols.keys()
        if foreign := sorted(symbol for symbol in symbols if not RESERVED_SYMBOL.fullmatch(symbol)):
            fault = f"a model of another corpus: it lacks {foreign[0]!r} of {dictionary}"
            raise UserError(f"{path}: {fault}; make their folders again")


def _settings(run: Path, values: Any) -> RunSettings:
    """The settings in the record of a run of translation."""
    try:
        return RunSettings.model_validate(values)
    except ValidationError as error:
        raise UserError(f"{run}/train.json: settings: {first_fault(error, values)}") from None


def average(run: Path, last: int, training: str | None = None) -> dict[str, torch.Tensor]:
    """The mean, in float32, of the models of the last `last` epochs of the training behind a run's outputs.

    If these models were removed after averaging, it is the average that `keep_final_only` kept.

    Args:
        training: the `training_digest` of that training, which the average that `keep_final_only` kept
            must carry.

    Raises:
        UserError: neither exists, one of the models is missing, or a file is damaged or of another training.
    """
    checkpoints, advice = trained_folder(run), f"delete {run}/train.json and rerun to train again"
    names = os.listdir(checkpoints) if checkpoints.exists() else []
    numbers = sorted(int(n) for name in names for n in re.findall(r"^epoch(\d+)\.pt$", name))[-last:]
    average_path = checkpoints / average_file(last)
    final = CheckpointFolder(checkpoints, {}).epochs or max(numbers, default=0)
    in_a_row = last == 1 or numbers == [*range(final - last + 1, final + 1)]  # one may be the best of all
    if len(numbers) < last or not in_a_row:
        if average_path.exists():
            return load_final_model(average_path, training, advice)
        there = f"epochs {', '.join(map(str, numbers))} of {final}" if numbers else "no epochs"
        raise UserError(f"{checkpoints}: {there} are there, the last {last} are to be averaged; {advice}")
    mean: dict[str, torch.Tensor] = {}
    for number in numbers:
        for name, value in load_epoch_model(checkpoints / f"epoch{number}.pt", advice).items():
            mean[name] = mean.get(name, 0) + value.double() / last
    return {name: value.float() for name, value in mean.items()}

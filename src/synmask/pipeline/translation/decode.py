"""Decode with a model file by beam search."""

import hashlib
import time
from collections.abc import Iterable
from pathlib import Path

import torch

from synmask.pipeline.arguments import OneOrMore, Spread, Threads, on_gpus
from synmask.pipeline.config.sections import DEFAULT_DECODING, Decoding
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import all_writing, csv_text, json_text, read_lines
from synmask.pipeline.record import new_record, run_beside
from synmask.pipeline.syntax.annotations import Annotations
from synmask.pipeline.translation.beam import BeamSearch, best_hypotheses
from synmask.pipeline.translation.forced import FORCED_COLUMNS, encode_references, log_probabilities
from synmask.pipeline.translation.inputs import encode_lines
from synmask.pipeline.translation.model_file import LoadedModel, load_model
from synmask.pipeline.translation.st_nmt import read_template_ids


@on_gpus
def decode_files(
    *,
    model: Path,
    inputs: OneOrMore[Path],
    outputs: OneOrMore[Path],
    references: tuple[Path, ...] = (),
    annotations: tuple[Path, ...] = (),
    templates: tuple[Path, ...] = (),
    settings: Spread[Decoding] = DEFAULT_DECODING,
    threads: Threads = 1,
) -> None:
    """Translate BPE files by beam search.

    Args:
        model: A model file of `average`; it must be of the training in the train.json beside it, if there is
            one.
        inputs: Source sentences in BPE.
        outputs: A prefix for each: .txt (detokenised), .tok (tokens), .forced.csv (with --references), .json
            (time, model, settings, record of the others).
        references: Reference translations of each in BPE, whose log-probabilities the model gives.
        annotations: Output of `annotate` for each, for systems that read it.
        templates: Output of `predict-templates` for each, for systems that read it.

    Raises:
        UserError: the numbers of inputs and outputs differ; the model belongs to another run; required
            annotations or templates are missing, or belong to another text or another run.
    """
    torch.set_num_threads(threads)
    run = run_beside(model)
    transformer, task, text, saved = load_model(model, run)
    weights = weights_checksum(transformer)
    if task.parser_annotations and not annotations:
        reads = " and ".join(sorted(task.parser_annotations))
        raise UserError(f"{model}: reads {reads} of a parser; give --annotations")
    templated = task.template_dictionary is not None
    if templated and not templates:
        raise UserError(f"{model}: reads templates; give --templates")
    predictor = (model, saved["template_model"].get("training")) if templated else None
    parsed = annotations if task.parser_annotations else [None] * len(inputs)
    template_files = templates if templated else [None] * len(inputs)
    expected = references or [None] * len(inputs)
    if len({*map(len, (inputs, outputs, parsed, template_files, expected))}) > 1:
        counts = "references, templates or annotations of each or none"
        raise UserError(f"{model}: give one output for each input, and {counts}")
    search, limit = BeamSearch([transformer], task.tgt_dict, settings), transformer.encoder.max_positions()
    sides = zip(inputs, outputs, parsed, template_files, expected, strict=True)
    for source, output, syntax, template, reference in sides:
        started = time.perf_counter()
        sentences = encode_lines(read_lines(source), limit, task.src_dict, name=source)
        rows = syntax and Annotations(syntax, [len(sentence) for sentence in sentences])
        count = len(sentences)
        template_ids = template and read_template_ids(
            template, task.template_dictionary, count, run, predictor
        )
        forced = reference and encode_references(reference, transformer, task, count)
        suffixes = ("tok", "txt", *(["forced.csv"] if reference else []), "json")
        files = [Path(f"{output}.{suffix}") for suffix in suffixes]
        with all_writing(files) as handles:
            pairs = task.sources(sentences, rows, template_ids)
            hypotheses = best_hypotheses(search, pairs, show_progress=True)
            seconds = time.perf_counter() - started
            contents = ["".join(f"{line}\n" for line in lines) for lines in text.decode(hypotheses)]
            if reference:
                pairs = task.sources(sentences, rows, template_ids, forced)
                values = log_probabilities(transformer, pairs, settings.max_tokens)
                table = zip(values, map(len, forced), strict=True)
                contents.append(csv_text([FORCED_COLUMNS, *table]))
            tokens = sum(len(line.split()) + 1 for line in hypotheses)
            facts = {"decode_seconds": round(seconds, 2), "decoded_tokens": tokens, "model": weights}
            facts |= {"decoding": settings.plain()}
            texts = dict(zip(files, contents, strict=False))
            facts |= new_record(files[-1], run, saved.get("training"), texts)
            for handle, part in zip(handles, [*contents, json_text(facts)], strict=True):
                handle.write(part)


@on_gpus
def predict_templates(
    *,
    model: Path,
    input: Path,
    output: Path,
    settings: Spread[Decoding] = DEFAULT_DECODING,
    threads: Threads = 1,
) -> None:
    """Predict templates of the target, for ST-NMT.

    Args:
        model: A model file of `average`, trained on templates; as for `decode`, it must be of its train.json.
        input: Source sentences in BPE.
        output: Their templates, in BPE; the .json beside them names their run.

    Raises:
        UserError: the model belongs to another run, or reads parses or templates itself.
    """
    torch.set_num_threads(threads)
    run = run_beside(model)
    loaded = load_model(model, run)
    if needed := loaded.task.parser_annotations or loaded.task.needs & {"template"}:
        reads = " and ".join(sorted(needed))
        raise UserError(f"{model}: reads {reads}; templates are predicted from the source alone")
    beside = Path(f"{output}.json")
    with all_writing([output, beside]) as (handle, handle_beside):  # first: a wrong name is reported at once
        lines = predict_best_templates(loaded, read_lines(input), settings, show_progress=True, name=input)
        text = "".join(f"{line}\n" for line in lines)
        handle.write(text)
        handle_beside.write(json_text(new_record(beside, run, loaded.saved.get("training"), {output: text})))


def predict_best_templates(
    loaded: LoadedModel,
    lines: Iterable[str],
    settings: Decoding,
    show_progress: bool = False,
    name: Path | None = None,
) -> list[str]:
    """The best template for each source sentence, both in BPE; `name`: the lines' file, for messages."""
    transformer, task = loaded.model, loaded.task
    search = BeamSearch([transformer], task.tgt_dict, settings)
    sentences = encode_lines(lines, transformer.encoder.max_positions(), task.src_dict, name=name)
    return best_hypotheses(search, task.sources(sentences), show_progress=show_progress)


def weights_checksum(model: torch.nn.Module) -> str:
    """A checksum of a model's weights: equal for equal models, whatever else their files contain."""
    checksum = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        if not name.endswith("_float_tensor"):  # fairseq's uninitialised memory; only its type is used
            checksum.update(name.encode() + value.detach().cpu().contiguous().numpy().tobytes())
    return checksum.hexdigest()[:16]

"""Tokens of a pair of languages → sentencepiece's models, text in their pieces, and fairseq's binary data."""

import base64
import io
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path

from synmask.pipeline.arguments import Json, Source, Target, Threads
from synmask.pipeline.config.base import Tokeniser
from synmask.pipeline.config.sections import SentencePiece
from synmask.pipeline.disk import whole_folder
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import SPLITS, read_lines, write_lines
from synmask.pipeline.languages import BLANK, print_note
from synmask.pipeline.text.detokenise import detokenise
from synmask.pipeline.text.spm import CHARACTERS, SentencePieceSplitter, model_in_codes
from synmask.pipeline.training.binarise import binarise
from synmask.pipeline.training.subwords import split_files, token_files

TRAINING_THREADS = 2  # on every machine: with another number, sums and so pieces differ
MAX_SENTENCES_READ = 2_000_000  # that a model is learned from, about: the library holds them in memory
MAX_SENTENCE_BYTES = 1 << 20  # bytes of a sentence; by default, the library would leave out those above 4,192


def write_pieces(
    *,
    input: Path,
    source: Source,
    target: Target,
    settings: Json[SentencePiece],
    tokenisers: tuple[Tokeniser, Tokeniser],
    output: Path,
    threads: Threads = 1,
) -> None:
    """Learn sentencepiece's models from the clean training pairs, split all text, and write it for fairseq.

    Writes what `synmask subwords` writes by BPE: OUTPUT/bpe/ and OUTPUT/bin/. The dictionaries have the
    pieces of the models alone. OUTPUT/spelled/SPLIT.SOURCE has as many sub-words as bpe/SPLIT.SOURCE, and
    undoing BPE gives the words (`SentencePieceSplitter.as_bpe`): `annotate` aligns them with a parser's.

    Args:
        input: The output of `synmask text`, with clean/train.LANGUAGE and tokens/{valid,test}.LANGUAGE.
        settings: '{"vocab_size": 8000, "model_type": "unigram", "byte_fallback": true, "shared": false}'.
        tokenisers: Of the source and of the target; pieces join the tokens of `char`.
        output: Folder of bpe/, spelled/ and bin/; it may be that of the input.

    Raises:
        UserError: a file cannot be read, `vocab_size` does not fit the text, or a sentence of the source's
            valid or test is too long for a model.
    """
    used = dict(zip((source, target), tokenisers, strict=True))
    tokens = token_files(input, source, target)
    texts = {language: tokens["train", language] for language in used}
    with whole_folder(output, "sentencepiece") as folder:
        codes = _learn_models(texts, used, settings)
        write_lines(folder / "bpe/codes", [codes])
        splitters = {
            language: SentencePieceSplitter(model_in_codes(codes, language), used[language])
            for language in used
        }
        split_files(tokens, splitters, source, folder / "bpe", threads)
        for split in SPLITS:
            pieces = read_lines(folder / f"bpe/{split}.{source}")
            write_lines(folder / f"spelled/{split}.{source}", map(splitters[source].as_bpe, pieces))
        known = {language: splitter.symbols for language, splitter in splitters.items()}
        for language, path in texts.items():
            _note_unknown(folder / f"bpe/train.{language}", known[language], path)
        binarise(text=folder / "bpe", output=folder / "bin", source=source, target=target, symbols=known)
        for language in used:
            rows = read_lines(folder / f"bin/dict.{language}.txt")  # with rows that fill it up
            used_rows = (row for row in rows if not row.endswith(" 0"))
            write_lines(folder / f"bpe/vocabulary.{language}", used_rows)


def _learn_models(texts: Mapping[str, Path], tokenisers: Mapping[str, str], settings: SentencePiece) -> str:
    """Models of all texts, or of each (`shared`) → codes for `SentencePieceSplitter`."""
    groups = [[*texts]] if settings.shared else [[language] for language in texts]
    models = {}
    for languages in groups:
        count = sum(1 for name in languages for _ in read_lines(texts[name]))
        lines = chain.from_iterable(_plain_lines(texts[name], name, tokenisers[name]) for name in languages)
        spread = islice(lines, None, None, 1 + count // MAX_SENTENCES_READ)
        model = _train_model(spread, ", ".join(str(texts[name]) for name in languages), settings)
        models |= dict.fromkeys(languages, base64.b64encode(model).decode())
    return json.dumps({"sentencepiece": models}, sort_keys=True)


def _plain_lines(path: Path, language: str, tokeniser: str) -> Iterator[str]:
    """The lines as the model sees them when it splits them."""
    if tokeniser == CHARACTERS:
        return detokenise(read_lines(path), language, tokeniser)
    return (line.replace(BLANK, " ") for line in read_lines(path))


def _train_model(lines: Iterable[str], name: str, settings: SentencePiece) -> bytes:
    from sentencepiece import SentencePieceTrainer

    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            **settings.model_dump(exclude={"shared"}),
            treat_whitespace_as_suffix=True,
            normalization_rule_name="identity",  # the text comes back as it was
            bos_id=-1,
            eos_id=-1,
            max_sentence_length=MAX_SENTENCE_BYTES,
            num_threads=TRAINING_THREADS,
            minloglevel=2,
        )
    except RuntimeError as error:
        size, reason = settings.vocab_size, str(error).strip()
        advice = f"sentencepiece cannot learn from it ({reason})"
        if "!sentences_.empty()" in reason:
            advice = "no sentence in it; check the corpus and its limits on length"
        elif limit := re.search(r"too high.* value <= (\d+)", reason):
            advice = f"vocab_size {size} is more pieces than the text has; the largest is {limit[1]}"
        elif limit := re.search(r"smaller than required_chars\. \d+ vs (\d+)", reason):
            advice = f"vocab_size {size} is below the number of its characters; the least is {limit[1]}"
        raise UserError(f"{name}: {advice}") from None
    return model.getvalue()


def _note_unknown(path: Path, known: Collection[str], name: Path) -> None:
    """Count the sub-words of a text in pieces that are not `known`, in a note on the file `name`.

    Raises:
        UserError: there is no sentence in it.
    """
    counts = Counter(symbol for line in read_lines(path) for symbol in line.split(" ") if symbol)
    if not counts:
        raise UserError(f"{name}: no sentence in it; check the corpus and its limits on length")
    if outside := sorted(counts.keys() - known):
        total, example = sum(counts[symbol] for symbol in outside), outside[0].removesuffix("@@")
        advice = "raise sentencepiece.character_coverage, or set byte_fallback"
        print_note(f"{name}: {total:,} pieces are unknown to the model, such as {example!r}; {advice}")

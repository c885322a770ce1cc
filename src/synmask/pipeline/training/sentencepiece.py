"""Models of sentencepiece, learned from the tokens of a pair of languages (`subwords.write_subwords`)."""

import base64
import io
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path

from synmask.pipeline.config.sections import SentencePiece
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import count_words, read_lines, write_lines
from synmask.pipeline.languages import BLANK, print_note
from synmask.pipeline.text.detokenise import detokenise
from synmask.pipeline.text.spm import CHARACTERS, SentencePieceSplitter, model_in_codes
from synmask.pipeline.training.binarise import binarise

TRAINING_THREADS = 2  # on every machine: with another number, sums and so pieces differ
MAX_SENTENCES_READ = 2_000_000  # that a model is learned from, about: the library holds them in memory
MAX_SENTENCE_BYTES = 1 << 20  # bytes of a sentence; by default, the library would leave out those above 4,192


def learn_splitters(
    texts: Mapping[str, Path], tokenisers: Mapping[str, str], settings: SentencePiece, folder: Path
) -> dict[str, SentencePieceSplitter]:
    """Write FOLDER/codes → the splitter of each language.

    Raises:
        UserError: a file cannot be read, or has no sentence, or `vocab_size` does not fit the text.
    """
    codes = _learn_models(texts, tokenisers, settings)
    write_lines(folder / "codes", [codes])
    return {
        language: SentencePieceSplitter(model_in_codes(codes, language), tokenisers[language])
        for language in texts
    }


def binarise_pieces(
    texts: Mapping[str, Path], splitters: Mapping[str, SentencePieceSplitter], folder: Path
) -> None:
    """Binarise FOLDER/bpe, with the models' pieces alone in the dictionaries; write bpe/vocabulary.LANGUAGE.

    A note counts the sub-words of the training text that are no pieces.
    """
    source, target = texts
    known = {language: splitter.symbols for language, splitter in splitters.items()}
    for language, path in texts.items():
        _note_unknown(folder / f"bpe/train.{language}", known[language], path)
    binarise(text=folder / "bpe", output=folder / "bin", source=source, target=target, symbols=known)
    for language in texts:
        rows = read_lines(folder / f"bin/dict.{language}.txt")  # with rows that fill it up
        write_lines(folder / f"bpe/vocabulary.{language}", (row for row in rows if not row.endswith(" 0")))


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
    """Count the sub-words of a text in pieces that are not `known`, in a note on the file `name`."""
    counts = count_words(path)
    if not counts:
        raise UserError(f"{name}: no sentence in it; check the corpus and its limits on length")
    if outside := sorted(counts.keys() - known):
        total, example = sum(counts[symbol] for symbol in outside), outside[0].removesuffix("@@")
        advice = "raise sentencepiece.character_coverage, or set byte_fallback"
        print_note(f"{name}: {total:,} pieces are unknown to the model, such as {example!r}; {advice}")

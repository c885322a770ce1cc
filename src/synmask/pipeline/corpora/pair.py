"""The text of a pair of languages: raw files → plain text, tokens, and the training pairs that are kept."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from synmask.pipeline.arguments import Json, OneOrMore, Source, Target, Threads
from synmask.pipeline.config.sections import Pairs, Text
from synmask.pipeline.corpora.plain import write_pair
from synmask.pipeline.disk import whole_folder
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import SPLITS, Pair, Split, all_writing, read_lines, write_json, zip_equal
from synmask.pipeline.languages import characters_per_word
from synmask.pipeline.text.clean import check_dropped, clean
from synmask.pipeline.text.overlap import Overlap
from synmask.pipeline.text.tokenise import tokenise


def write_text(
    *,
    name: str,
    source: Source,
    target: Target,
    splits: OneOrMore[Split],
    source_in: OneOrMore[Path],
    target_in: OneOrMore[Path],
    output: Path,
    settings: Json[Text],
    pairs: Json[dict[Split, Pairs]] | None = None,
    threads: Threads = 1,
    jars: tuple[Path, ...] = (),
) -> dict[str, int]:
    """Write the text of two languages as plain text and as tokens, and the training pairs that are kept.

    OUTPUT/text/SPLIT.LANGUAGE is the plain text, OUTPUT/tokens/SPLIT.LANGUAGE its tokens. OUTPUT/clean has
    the tokens of the training pairs that meet the limits on length and length ratio, those that Moses'
    clean-corpus-n.perl keeps; a side whose tokeniser makes no words is measured in characters.
    clean/kept.SOURCE-TARGET numbers the lines of these pairs in tokens/train.LANGUAGE. OUTPUT/pairs.json
    counts the pairs: of each split, the training pairs by outcome, and those of valid and test that occur in
    an earlier split, too ("overlap").

    Args:
        name: The corpus' name, for messages.
        splits: train, valid or test, for each of the raw files; files of one split are joined in their order.
        source_in: Raw source text (.gz or plain), one sentence per line.
        target_in: Raw target text, likewise.
        output: Folder of the results.
        settings: '{"tokeniser": "moses", "lowercase": false, "max_tokens": 175, "max_ratio": 1.5}'.
        pairs: Expected numbers of pairs: '{"train": [230000, 238000], "test": 2999}'.
        threads: Processes for each language.
        jars: CoreNLP's jars, if a tokeniser needs them.

    Returns:
        The number of training pairs by outcome.

    Raises:
        UserError: a file is missing, damaged, empty or not UTF-8, line counts differ, there are not as many
            pairs as expected, or nine tenths of the training pairs would be dropped.
    """
    raw_files: dict[Split, list[tuple[Path, Path]]] = {split: [] for split in SPLITS}
    for split, *pair in zip_equal(splits=splits, source_in=source_in, target_in=target_in):
        raw_files[split].append(pair)
    if missing := [split for split, raw in raw_files.items() if not raw]:
        raise UserError(f"--splits: no file of {', '.join(missing)}; give some of each split")
    with whole_folder(output, "text") as root:
        languages = (source, target)

        def files(folder: str, split: str) -> list[Path]:
            return [root / f"{folder}/{split}.{language}" for language in languages]

        sizes = {
            split: write_pair(name, raw, files("text", split), (pairs or {}).get(split))
            for split, raw in raw_files.items()
        }

        def tokens(split: str) -> Iterator[Pair]:
            """The tokens of a split's pairs, which are written on the way."""
            sides = (
                tokenise(
                    read_lines(text),
                    language,
                    tokeniser=settings.tokeniser_of(language),
                    lowercase=settings.lowercase,
                    threads=threads,
                    jars=jars,
                )
                for text, language in zip(files("text", split), languages, strict=True)
            )
            with all_writing(files("tokens", split)) as handles:
                for pair in zip(*sides, strict=True):
                    _write_lines(handles, pair)
                    yield pair

        outcomes: Counter[str] = Counter()
        overlap = Overlap()
        for split in SPLITS[1:]:
            overlap.add(split, tokens(split))
        per_word = [*map(characters_per_word, languages, map(settings.tokeniser_of, languages))]
        kept = [*files("clean", "train"), root / f"clean/kept.{source}-{target}"]
        with all_writing(kept) as handles:
            for number, *pair in clean(tokens("train"), settings, outcomes, per_word):
                _write_lines(handles, [*pair, number])
                overlap.add_training_pair(*pair)
        check_dropped(name, outcomes)
        overlap.note(f"{name} {source}-{target}")
        write_json(root / "pairs.json", {"pairs": sizes, "train": outcomes, "overlap": overlap.counts()})
    return dict(outcomes)


def _write_lines(handles: Sequence[IO[str]], values: Iterable[object]) -> None:
    """Write a line into each of some files."""
    for handle, value in zip(handles, values, strict=True):
        handle.write(f"{value}\n")

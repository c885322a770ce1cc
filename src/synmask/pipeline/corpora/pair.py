"""The text of a pair of languages: raw files → plain text, tokens, and the training pairs that are kept."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from synmask.pipeline.arguments import Json, OneOrMore, Source, Target, Threads
from synmask.pipeline.config.sections import Pairs, Text
from synmask.pipeline.corpora.plain import write_pair
from synmask.pipeline.disk import whole_folder
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import SPLITS, Split, all_writing, json_text, read_lines, together
from synmask.pipeline.languages import characters_per_word
from synmask.pipeline.text.clean import check_dropped, clean
from synmask.pipeline.text.overlap import Overlap, Pair
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
    files_of: dict[Split, list[tuple[Path, Path]]] = {split: [] for split in SPLITS}
    for split, *files in together(splits=splits, source_in=source_in, target_in=target_in):
        files_of[split].append(files)
    if missing := [split for split, files in files_of.items() if not files]:
        raise UserError(f"--splits: no file of {', '.join(missing)}; give some of each split")
    with whole_folder(output, "text") as root:
        languages = (source, target)
        sizes = {
            split: write_pair(
                name,
                files,
                [root / f"text/{split}.{language}" for language in languages],
                (pairs or {}).get(split),
            )
            for split, files in files_of.items()
        }

        def tokens(split: str) -> Iterator[Pair]:
            sides = (
                tokenise(
                    read_lines(root / f"text/{split}.{language}"),
                    language,
                    tokeniser=settings.tokeniser_of(language),
                    lowercase=settings.lowercase,
                    threads=threads,
                    jars=jars,
                )
                for language in languages
            )
            return zip(*sides, strict=True)

        outcomes: Counter[str] = Counter()
        overlap = Overlap()
        held_out = [root / f"tokens/{split}.{language}" for split in SPLITS[1:] for language in languages]
        trained = [
            root / f"{folder}/train.{language}" for folder in ("tokens", "clean") for language in languages
        ]
        counts = root / "pairs.json"
        with all_writing([*held_out, *trained, root / f"clean/kept.{source}-{target}", counts]) as handles:
            for place, split in enumerate(SPLITS[1:]):
                overlap.hold(split, _written(tokens(split), handles[2 * place : 2 * place + 2]))
            *_, first, second, clean_source, clean_target, numbers, counted = handles
            per_word = [*map(characters_per_word, languages, map(settings.tokeniser_of, languages))]
            train = _written(tokens("train"), (first, second))
            for number, *pair in clean(train, settings, outcomes, per_word):
                clean_source.write(f"{pair[0]}\n")
                clean_target.write(f"{pair[1]}\n")
                numbers.write(f"{number}\n")
                overlap.passing(*pair)
            check_dropped(name, outcomes)
            overlap.note(f"{name} {source}-{target}")
            counted.write(json_text({"pairs": sizes, "train": outcomes, "overlap": overlap.counts()}))
    return dict(outcomes)


def _written(pairs: Iterable[Pair], handles: Sequence) -> Iterator[Pair]:
    """The pairs, each of which is written to two files."""
    for pair in pairs:
        for handle, line in zip(handles, pair, strict=True):
            handle.write(f"{line}\n")
        yield pair

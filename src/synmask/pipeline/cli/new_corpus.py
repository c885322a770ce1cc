"""`synmask new-corpus`: from a user's files to a corpus, an experiment and a table of the configuration."""

import os
import random
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from glob import glob
from pathlib import Path
from typing import IO, Any

from synmask.pipeline import languages as codes
from synmask.pipeline.cli.plan import SAMPLED_PAIRS, count_outcomes, reservoir_sample
from synmask.pipeline.config.base import EXTERNAL, Language, Name
from synmask.pipeline.config.loading import load_project
from synmask.pipeline.config.sections import Text
from synmask.pipeline.corpora.bilingual import read_tmx, read_tsv
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import SPLITS, Pair, all_writing, read_pairs
from synmask.pipeline.workflow.targets import Targets

Reader = Callable[[], Iterable[Pair]]
MIN_PAIRS = 500  # different pairs of a text that is split; valid and test get a tenth each
MAX_HELD_OUT = 1000  # pairs of each
RATIOS = (1.5, 2.0, 3.0, 4.5, 9.0)  # limits of the length ratio; the first is the default
OTHER_SUFFIXES = {"bpe", "doc", "raw", "src", "tgt", "trg", "txt"}  # of file names, though ISO 639 has some
MAX_DROPPED = 0.02  # share of the training pairs that the limit may drop
TINY_PAIRS, SMALL_PAIRS = 20_000, 100_000  # below, models are as small as the demo's, multi30k-small's
TINY_PAIRS_SEEN = 60_000  # training pairs that a tiny model sees
ENTRY = """\
# yaml-language-server: $schema=schema.json
# Written by `{command}`; yours to change.
# docs/configuration.md explains each key, docs/extending.md what to add.
corpora:
  {name}:
    languages: [{sides}]  # {names}
    # {splits}
    files: {{train: {files[0]}, valid: {files[1]}, test: {files[2]}}}
    pairs: {{train: {pairs[0]}, valid: {pairs[1]}, test: {pairs[2]}}}
    text:
      tokeniser: {{{tokenisers}}}  # {why}
      max_ratio: {ratio}  # {why_ratio}
{sizes}
experiments:
  {name}:
    title: "{name}"
    corpus: {name}
    directions: [{direction}]
    systems: [transformer, grammar]  # the first is the baseline; config/systems.yaml has all
    seeds: [1, 2]  # more seeds tell small differences apart
tables:
  {name}-scores:
    title: "{name}: scores of the test set"
    experiments: [{name}]
    metrics: [sacrebleu, chrf]  # also ter, which takes longer, and functions of yours (docs/tables.md)
"""
SMALL_MODEL = """\
    based_on: {base}  # the sizes of model and training that suit {size} pairs, on a laptop, too
    trees: null  # `corenlp` parses some languages, for pictures of trees (docs/parsing.md)
    bpe: {{merges: {merges}}}
"""
PAPER_MODEL = """\
    bpe: {merges: 10000}
    # the model and its training are the paper's; for a laptop: `based_on: multi30k-small` and `trees: null`
"""


def new_corpus(
    name: Name,
    /,
    *,
    files: tuple[Path, ...] = (),
    tsv: Path | None = None,
    tmx: Path | None = None,
    languages: tuple[Language, ...] = (),
) -> None:
    """Make a corpus of your text: its entry in the configuration, an experiment and a table.

    For example: `synmask new-corpus talks --files train.ja train.en`

    The text goes to data/NAME/, the entry, with a reason for each choice, to config/NAME.yaml. Validation
    and test set are drawn at random, unless they are given, too.

    Args:
        name: Name of the corpus and its experiment.
        files: Two aligned files, source and target, plain or .gz, one sentence per line; or six: train,
            valid, test.
        tsv: Instead: tab-separated values, in two columns, or with the languages in the first line.
        tmx: Instead: a translation memory.
        languages: Source and target; default: what the names of FILES end in.

    Raises:
        UserError: the name is in use; a file cannot be read; sides differ in length; there are too few pairs,
            or a language is not known. Nothing is written then.
    """
    config, _, _ = load_project(())
    entry, folder = Path("config", f"{name}.yaml"), Path(config.data_dir, name)
    sides, readers = _readers(files, tsv, tmx, languages)
    places = [folder / f"{split}.{side}" for split in SPLITS for side in sides]
    _check_free(name, [*config.corpora, *dict(Targets(config).by_name())], [entry, *places])
    try:
        with all_writing([*places, entry]) as (*texts, handle):
            drawn = reservoir_sample(
                (pair for pair in _normalised_pairs(readers[0]) if all(pair)), 10 * MAX_HELD_OUT
            )
            random.Random(1).shuffle(drawn)
            if not drawn:
                raise UserError(f"{name}: no pairs of sentences in these files")
            facts = _write_splits(readers, drawn, texts)
            values = facts | _choose_settings(sides, drawn, facts["pairs"][0])
            stems = [f'"{folder}/{split}.{{language}}"' for split in SPLITS]
            command = " ".join(shlex.join(["synmask", *sys.argv[1:]]).split())  # one line
            handle.write(ENTRY.format(name=name, files=stems, command=command, **values))
            handle.flush()
            _check_entry(Path(handle.name), entry)
    except BaseException:
        with suppress(OSError):  # it has other files
            os.removedirs(folder)
        raise
    print(entry.read_text(encoding="utf-8"))
    print(f"This is {entry}. Next:\n  synmask doctor {name}\n  synmask plan {name}\n  snakemake {name}")


def _check_free(name: str, names: Iterable[str], paths: Iterable[Path]) -> None:
    files = ["Snakefile", *glob("workflow/rules/*.smk")]  # not an editor's, which are hidden
    workflow = (Path(file).read_text(encoding="utf-8") for file in files)
    rules = re.findall(r"^ *rule (\w+):", "".join(workflow), re.M)
    if {name, f"{name}-scores"} & {*names, *rules}:
        raise UserError(f"{name}: the project has this name already; take another")
    if taken := [path for path in paths if path.exists()]:
        raise UserError(f"{taken[0]}: exists already; take another name than {name!r}, or move the file")


def _check_entry(written: Path, entry: Path) -> None:
    """Check the configuration with the `written` entry; in an error, it has the name that it will have."""
    try:
        load_project([written])
    except UserError as error:
        raise UserError(str(error).replace(os.path.abspath(written), str(entry))) from None


def _readers(
    files: Sequence[Path], tsv: Path | None, tmx: Path | None, languages: Sequence[str]
) -> tuple[Sequence[str], list[Reader]]:
    """The languages; what reads the pairs of the whole text, or of train, valid and test."""
    if [bool(files), bool(tsv), bool(tmx)].count(True) != 1 or len(files) not in (0, 2, 6):
        raise UserError(
            "give --files SOURCE TARGET (or six files: train, valid, test), --tsv FILE or --tmx FILE"
        )
    sides = languages or [*map(_language_of, files[:2])]
    if len(sides) != 2 or sides[0] == sides[1]:
        raise UserError("give two languages, source and target, such as --languages ja en")
    if files:
        pairs = zip(files[::2], files[1::2], strict=True)
        return sides, [partial(read_pairs, *pair) for pair in pairs]
    return sides, [partial(read_tsv, tsv, sides) if tsv else partial(read_tmx, tmx, sides)]


def _language_of(path: Path) -> str:
    """The language that a file's name ends in."""
    code = path.name.removesuffix(".gz").rpartition(".")[2]
    if code in OTHER_SUFFIXES or not re.fullmatch(codes.LANGUAGE, code) or not codes.is_language(code):
        raise UserError(
            f"{path}: its name does not end in a language, as train.ja does; give --languages, too"
        )
    return code


def _normalised_pairs(read: Reader) -> Iterator[Pair]:
    for source, target in read():
        yield " ".join(source.split()), " ".join(target.split())


def _write_splits(readers: Sequence[Reader], drawn: Sequence[Pair], texts: Sequence[IO]) -> dict[str, Any]:
    """Write train, valid and test, both sides of each → what the entry says of them.

    Args:
        drawn: pairs of the first reader's text, in random order.
    """
    whole, *others = readers
    held_out, apart = [[*_normalised_pairs(read)] for read in others], frozenset()
    if not others:
        different = [*dict.fromkeys(drawn)]
        if len(different) < MIN_PAIRS:
            advice = f"give {MIN_PAIRS:,} or more, or files for valid and test, too"
            raise UserError(f"{len(different):,} different pairs are too few to be split; {advice}")
        size = len(different) // 10
        held_out = [different[:size], different[size : 2 * size]]
        apart = frozenset(different[: 2 * size])
    train = (pair for pair in _normalised_pairs(whole) if pair not in apart)
    sizes = [0] * len(SPLITS)
    for number, pairs in enumerate([train, *held_out]):
        for pair in pairs:
            for line, text in zip(pair, texts[2 * number : 2 * number + 2], strict=True):
                text.write(f"{line}\n")
            sizes[number] += 1
    if 0 in sizes:
        raise UserError(f"no pairs of sentences for {SPLITS[sizes.index(0)]}; give files that have some")
    given = "train, valid and test are as they were given"
    drawn_at_random = "valid and test were drawn at random; train has none of their pairs"
    return {"pairs": sizes, "splits": given if others else drawn_at_random}


def _choose_settings(sides: Sequence[str], drawn: Sequence[Pair], pairs: int) -> dict[str, Any]:
    """Tokenisers, the limit of the length ratio, and sizes: what the entry says of them."""
    tokenisers = {side: codes.default_tokeniser(side) for side in sides}
    text = Text(tokeniser={side: tokeniser for side, (tokeniser, _) in tokenisers.items()})
    ratio, dropped = RATIOS[0], {}
    if not {*text.tokeniser.values()} & {*EXTERNAL}:
        for ratio in RATIOS:
            limited = text.model_copy(update={"max_ratio": ratio})
            outcomes = count_outcomes(drawn[:SAMPLED_PAIRS], sides, limited)
            dropped[ratio] = outcomes["ratio"] / sum(outcomes.values())
            if dropped[ratio] <= MAX_DROPPED:
                break
    why_ratio = ", ".join(f"{limit:g} drops {share:.1%}" for limit, share in dropped.items())
    sizes = PAPER_MODEL
    if pairs < SMALL_PAIRS:
        base, merges = ("demo", 2000) if pairs < TINY_PAIRS else ("multi30k-small", 6000)
        sizes = SMALL_MODEL.format(base=base, size=f"{pairs:,}", merges=merges)
    if pairs < TINY_PAIRS:
        epochs = max(5, min(30, TINY_PAIRS_SEEN // pairs))
        sizes += (
            f"    training: {{max_epochs: {epochs}}}  # a first table in minutes; more give better scores\n"
        )
    return {
        "sides": ", ".join(sides),
        "names": ", ".join(map(codes.language_name, sides)),
        "direction": "-".join(sides),
        "tokenisers": ", ".join(f"{side}: {tokeniser}" for side, (tokeniser, _) in tokenisers.items()),
        "why": "; ".join(f"{side}: {why}" for side, (_, why) in tokenisers.items()),
        "ratio": f"{ratio:g}",
        "why_ratio": f"of the lengths of the sides: {why_ratio or 'the default'}",
        "sizes": sizes.rstrip(),
    }

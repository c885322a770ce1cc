"""Parse a file with Stanford CoreNLP: constituency trees and dependency heads; interrupted runs resume."""

import hashlib
import json
import re
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tqdm import tqdm

from synmask.pipeline import disk
from synmask.pipeline.arguments import CountOption, Json, OneOrMore, Threads
from synmask.pipeline.config.base import Language, Tokeniser
from synmask.pipeline.config.data_files import DataFiles
from synmask.pipeline.config.loading import load_project
from synmask.pipeline.config.sections import ParserSettings
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_lines, write_json, write_lines, writing
from synmask.pipeline.languages import base_language
from synmask.pipeline.syntax.jvm import PROGRAM, parser_answers
from synmask.pipeline.syntax.treebank import escape_brackets, flat_tree
from synmask.pipeline.text.escapes import unescape
from synmask.pipeline.text.tokenise import tokenise

PROGRESS_SECONDS = 10.0  # seconds between two states of the progress bar

Answers = dict[int, list[str]]  # line number → ["ok", tree, heads] or ["failed", why]


def parse_file(
    *,
    input: Path,
    tokens: Path,
    output: Path,
    language: Language,
    tokeniser: Tokeniser | None = None,
    settings: Json[ParserSettings],
    jars: OneOrMore[Path],
    threads: Threads = 1,
    memory: CountOption = 6000,
) -> None:
    """Parse tokenised sentences with CoreNLP; continue an interrupted run.

    A line of .trees is a bracketed tree whose leaves are the tokens (`treebank.read_trees` gives them back),
    a line of .heads the tokens' heads (from 1, 0 = root). A sentence that is empty, has more than
    `max_words` tokens or cannot be parsed gets a flat tree, (FLAT (X a) (X b)), in which all words depend on
    the first. The JSON contains the number of flat trees by reason, the speed, versions and the jars'
    checksums.

    Finished sentences are kept in OUTPUT.partial until all are done. That file is dropped if sentences,
    models or jars change.

    Args:
        input: Tokens in their true case, one sentence per line; plain text, if --tokeniser is given.
        tokens: The same tokens as they should appear in the trees (perhaps lower-cased).
        output: Prefix: makes OUTPUT.trees, OUTPUT.heads and OUTPUT.json.
        language: Language code; English has a special rule (`parser_words`).
        tokeniser: Makes tokens of the input, as those of --tokens but for case.
        settings: '{"tagger": …, "parser": …, "dependencies": …, "max_words": 200}'.
        jars: CoreNLP and its models.
        threads: Sentences parsed at once.
        memory: MB for the JVM.

    Raises:
        UserError: the files do not match, a token cannot be written in a tree, a jar is missing, Java is
            missing or too old, CoreNLP does not start, was killed or ran out of memory.
    """
    lines = read_lines(input)
    if tokeniser:
        lines = tokenise(lines, language, tokeniser=tokeniser, threads=threads, jars=jars)
    words, leaves = _read_sentences(input, lines, tokens, language)
    report = {
        "sentences": len(words),
        "language": language,
        "models": settings.model_dump(exclude={"max_words"}),
        "jars": {jar.name: _checksum(jar) for jar in jars},
    }
    partial = Path(f"{output}.partial")
    finished = _read_partial(partial, words, report)
    todo = {
        n: sentence
        for n, sentence in words.items()
        if 0 < len(sentence) <= settings.max_words and n not in finished
    }
    try:
        answers = parser_answers(todo, str(input), settings, jars, threads, memory)
        report |= _keep_answers(answers, len(todo), finished, partial)
    except UserError as error:
        if not finished:
            partial.unlink(missing_ok=True)
        advice = f"; {len(finished):,} sentences are kept; run again to resume" if finished else ""
        raise UserError(f"{error}{advice}") from None
    trees, heads, flat = _tree_lines(leaves, finished, settings.max_words)
    write_lines(f"{output}.trees", trees)
    write_lines(f"{output}.heads", heads)
    write_json(f"{output}.json", report | {"flat": flat, "max_words": settings.max_words})
    partial.unlink(missing_ok=True)


def corenlp_parser(configfile: Sequence[Path], threads: int) -> Callable[[str, Path, Path, Path], None]:
    """A function that parses with CoreNLP: (language, sentences, their tokens, output's prefix).

    It reads the configuration when it is called.
    """

    def parse(language: str, sentences: Path, tokens: Path, output: Path) -> None:
        config, _, files = load_project(configfile)
        if not DataFiles(config).parser_code(language):
            raise UserError(
                f"{files[-1]}: corenlp.languages has no {language!r}; use a system without a parser"
            )
        settings = DataFiles(config).corenlp_settings(language)
        jars = [Path(jar) for jar in DataFiles(config).corenlp_jars(language)]
        parse_file(
            input=sentences, tokens=tokens, output=output, language=language, settings=settings,
            jars=jars, threads=threads, memory=config.corenlp.mem_mb,
        )  # fmt: skip

    return parse


def parser_words(tokens: Sequence[str], language: str) -> list[str]:
    """Moses tokens in the form of CoreNLP's models: unescaped, English "isn 't" as "is n't"."""
    words = [*map(unescape, tokens)]
    if base_language(language) == "en":
        for before, word in enumerate(words[1:]):
            if word.lower() == "'t" and re.search(".n$", words[before], re.I):
                words[before], words[before + 1] = words[before][:-1], words[before][-1] + word
    return words


def _read_sentences(
    sentences: Path, lines: Iterable[str], tokens: Path, language: str
) -> tuple[dict[int, list[str]], list[list[str]]]:
    """The parser's input by line number, and the leaves of every tree."""
    cased, leaves = ([line.split() for line in part] for part in (lines, read_lines(tokens)))
    if len(cased) != len(leaves):
        raise UserError(
            f"{sentences} has {len(cased)} lines, {tokens} has {len(leaves)}: tokenise both again"
        )
    for line, (sentence, words) in enumerate(zip(cased, leaves, strict=True), start=1):
        if len(sentence) != len(words):
            raise UserError(
                f"{tokens}, line {line}: {len(words)} tokens, but {len(sentence)} in {sentences}: "
                "tokenise both again"
            )
    return {n: parser_words(sentence, language) for n, sentence in enumerate(cased, start=1)}, leaves


def _checksum(jar: Path) -> str:
    if not jar.is_file():
        raise UserError(f"{jar}: no such jar; `snakemake {jar}` fetches it")
    checksum = disk.sha256(jar)  # first: `is_zipfile` takes a failure to read for another kind of file
    if not zipfile.is_zipfile(jar):
        raise UserError(f"{jar}: no jar, or not a whole one; fetch it again")
    return checksum


def _read_partial(partial: Path, words: Mapping[int, Sequence[str]], settings: Mapping) -> Answers:
    """The answers of an earlier run with the same input; prepares `partial` for more lines."""
    work = json.dumps([words, settings, disk.sha256(PROGRAM)], sort_keys=True)
    digest = hashlib.sha256(work.encode()).hexdigest().encode()
    lines = partial.read_bytes().split(b"\n") if partial.exists() else [b""]
    if lines[0] != digest or len(lines) == 1:
        lines = [digest, b""]
    whole = lines[:-1]  # the last line is empty or truncated
    with writing(partial, "wb") as handle:
        handle.writelines(line + b"\n" for line in whole)
    rows = (line.decode().split("\t") for line in whole[1:])
    return {int(number): answer for number, *answer in rows}


def _keep_answers(answers: Iterator[list[str]], count: int, finished: Answers, partial: Path) -> dict:
    """Add `count` answers to `finished` and at once to `partial`; return versions and speed."""
    if not count:  # then Java does not start
        return {}
    if finished:
        print(f"{len(finished):,} sentences were finished before", file=sys.stderr)
    with (
        disk.naming_write_errors(partial),
        partial.open("a", encoding="utf-8", newline="\n", buffering=1) as handle,
    ):
        _, corenlp, java = next(answers)
        print(f"CoreNLP {corenlp} is ready", file=sys.stderr)
        started = time.monotonic()
        for number, *answer in tqdm(answers, total=count, unit=" sentences", mininterval=PROGRESS_SECONDS):
            handle.write("\t".join([number, *answer]) + "\n")
            finished[int(number)] = answer
    seconds = time.monotonic() - started
    return {
        "corenlp": corenlp,
        "java": java,
        "parsed": count,
        "seconds": round(seconds, 2),
        "sentences_per_second": round(count / seconds, 1),
    }


def _tree_lines(
    leaves: Sequence[Sequence[str]], finished: Answers, max_words: int
) -> tuple[list[str], list[str], dict]:
    """The lines of trees and heads, and the number of flat trees by reason."""
    trees, heads = [], []
    flat = Counter({"empty": 0, "long": 0, "failed": 0})
    for line, words in enumerate(leaves, start=1):
        reason = "empty" if not words else "long" if len(words) > max_words else finished[line][0]
        if reason == "ok":
            _, tree, arcs = finished[line]
            trees.append(re.sub(r" (\d+)\)", lambda leaf: f" {escape_brackets(words[int(leaf[1])])})", tree))  # noqa: B023
            heads.append(arcs)
        else:
            flat[reason] += 1
            trees.append(str(flat_tree(words)))
            heads.append(" ".join(["0", *["1"] * len(words)][: len(words)]))
    return trees, heads, dict(flat)

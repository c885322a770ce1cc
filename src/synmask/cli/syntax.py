"""Reference trees by Stanford CoreNLP."""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from synmask.cli.options import Arguments, add
from synmask.files import UserError


def add_verbs(verbs: argparse._SubParsersAction) -> None:
    option = add(verbs, "jar", _jar, "Fetch one of CoreNLP's jars, checked, with Maven or from a mirror.")
    option("coordinates", "Maven's: group:artifact:version:jar[:classifier]", type=str)
    option("output", "where it goes")
    option("sha256", "its checksum", type=str)
    option("mirror", "folder or URL that holds the jar under the output's name", type=str, default=None)

    option = add(
        verbs,
        "constituency",
        _constituency,
        "Parse tokenised sentences with CoreNLP; an interrupted run goes on where it stopped.",
    )
    option("input", "Moses tokens in their true case, a sentence a line")
    option("tokens", "the same tokens as they shall stand in the trees (lower-cased)")
    option("output", "prefix: makes OUTPUT.trees, OUTPUT.heads and OUTPUT.json")
    option("language", "its code", type=str)
    option(
        "settings",
        "CoreNLP's models and the longest sentence to parse: "
        '\'{"tagger": …, "parser": …, "dependencies": …, "max_words": 200}\'',
        type=json.loads,
    )
    option("jars", "CoreNLP and its models", nargs="+")
    option("threads", "sentences parsed at once", type=int, default=1)
    option("memory", "MB for the JVM", type=int, default=6000)


def _jar(a: Arguments) -> None:
    from synmask.corpora.jars import fetch_jar

    fetch_jar(a.coordinates, a.output, sha256=a.sha256, mirror=a.mirror)


def _constituency(a: Arguments) -> None:
    _parse(a.input, a.tokens, a.output, a.language, a.settings, a.jars, a.threads, a.memory)


def corenlp_parser(path: Path, threads: int) -> Callable[[str, Path, Path, Path], None]:
    """CoreNLP as the configuration `path` says, for (language, sentences, their tokens, output's prefix).

    The configuration is read when a text is parsed.
    """

    def parse(language: str, sentences: Path, tokens: Path, output: Path) -> None:
        from synmask.config import load, read_yaml

        config = load(read_yaml(path), [path])
        if language not in config.corenlp.languages:
            raise UserError(f"{path}: corenlp.languages has no {language!r}; use a system without a parser")
        settings, jars = json.loads(config.corenlp_settings(language)), config.corenlp_jars(language)
        jars = [Path(jar) for jar in jars]
        _parse(sentences, tokens, output, language, settings, jars, threads, config.corenlp.mem_mb)

    return parse


def tokeniser_jars(path: Path) -> Callable[[str], list[Path]]:
    """The jars that a tokeniser needs, as the configuration `path` says, which is read if it needs any."""

    def jars(tokeniser: str) -> list[Path]:
        from synmask.config import load, read_yaml

        if tokeniser not in ("corenlp", "stanford"):
            return []
        return [Path(jar) for jar in load(read_yaml(path), [path]).tokeniser_jars(tokeniser)]

    return jars


def _parse(
    sentences: Path,
    tokens: Path,
    output: Path,
    language: str,
    settings: dict[str, Any],
    jars: Sequence[Path],
    threads: int,
    memory: int,
) -> None:
    from synmask.syntax.corenlp import parse_file
    from synmask.syntax.jvm import Machine, Models

    models = {name: value for name, value in settings.items() if name != "max_words"}
    parse_file(
        sentences,
        tokens,
        output,
        language=language,
        max_words=settings["max_words"],
        models=Models(**models),
        jars=jars,
        machine=Machine(threads, memory),
    )

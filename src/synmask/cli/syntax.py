"""Reference trees by Stanford CoreNLP."""

import argparse
import json

from synmask.cli.options import Arguments, add


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
    from synmask.syntax.corenlp import parse_file
    from synmask.syntax.jvm import Machine, Models

    settings = dict(a.settings)
    parse_file(
        a.input,
        a.tokens,
        a.output,
        language=a.language,
        max_words=settings.pop("max_words"),
        models=Models(**settings),
        jars=a.jars,
        machine=Machine(a.threads, a.memory),
    )

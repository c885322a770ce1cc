"""Stanford CoreNLP: the verb that parses with it, and its settings in a configuration."""

from collections.abc import Callable, Sequence
from pathlib import Path

from synmask.pipeline.cli.options import CountOption, Json, Some, Threads, laid_over
from synmask.pipeline.config.base import WITH_JARS, Language
from synmask.pipeline.config.sections import ParserSettings
from synmask.pipeline.files import UserError


def constituency(
    *,
    input: Path,
    tokens: Path,
    output: Path,
    language: Language,
    settings: Json[ParserSettings],
    jars: Some[Path],
    threads: Threads = 1,
    memory: CountOption = 6000,
) -> None:
    """Parse tokenised sentences with CoreNLP; continue an interrupted run.

    Args:
        input: Moses tokens in their true case, one sentence per line.
        tokens: The same tokens as they should appear in the trees (perhaps lower-cased).
        output: Prefix: makes OUTPUT.trees, OUTPUT.heads and OUTPUT.json.
        language: Language code.
        settings: '{"tagger": …, "parser": …, "dependencies": …, "max_words": 200}'.
        jars: CoreNLP and its models.
        threads: Sentences parsed at once.
        memory: MB for the JVM.
    """
    from synmask.pipeline.syntax.corenlp import parse_file
    from synmask.pipeline.syntax.jvm import Machine, Models

    parse_file(
        input,
        tokens,
        output,
        language=language,
        max_words=settings.max_words,
        models=Models(**settings.model_dump(exclude={"max_words"})),
        jars=jars,
        machine=Machine(threads, memory),
    )


def corenlp_parser(configfile: Sequence[Path], threads: int) -> Callable[[str, Path, Path, Path], None]:
    """A function that parses with CoreNLP: (language, sentences, their tokens, output's prefix).

    It reads the configuration when it is called.
    """

    def parse(language: str, sentences: Path, tokens: Path, output: Path) -> None:
        config, _, files = laid_over(configfile)
        if not config.parser_code(language):
            raise UserError(
                f"{files[-1]}: corenlp.languages has no {language!r}; use a system without a parser"
            )
        settings = config.corenlp_settings(language)
        jars = [Path(jar) for jar in config.corenlp_jars(language)]
        constituency(
            input=sentences, tokens=tokens, output=output, language=language, settings=settings,
            jars=jars, threads=threads, memory=config.corenlp.mem_mb,
        )  # fmt: skip

    return parse


def tokeniser_jars(configfile: Sequence[Path]) -> Callable[[str], list[Path]]:
    """A function from tokeniser to the jars it needs; reads the configuration only for some."""

    def jars(tokeniser: str) -> list[Path]:
        if tokeniser not in WITH_JARS:
            return []
        return [Path(jar) for jar in laid_over(configfile)[0].tokeniser_jars(tokeniser)]

    return jars

"""The verb that translates what people give it."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from synmask.pipeline.arguments import AS_WHOLE, CountOption, OneOrMore, Threads, Whole
from synmask.pipeline.config.base import Beam, LengthPenalty
from synmask.pipeline.config.sections import DEFAULT_DECODING, Decoding
from synmask.pipeline.errors import UserError

if TYPE_CHECKING:
    from synmask.pipeline.translation.translate import Candidate


def translate(
    model: OneOrMore[Path],
    *,
    input: Path | None = None,
    output: Path | None = None,
    nbest: CountOption = 1,
    scores: bool = False,
    beam: Annotated[Beam, AS_WHOLE] = DEFAULT_DECODING.beam,
    length_penalty: LengthPenalty = DEFAULT_DECODING.length_penalty,
    precision: Literal["fp32", "bf16"] = DEFAULT_DECODING.precision,
    batch: Annotated[Whole, Field(ge=1, le=100_000)] = 64,
    threads: Threads = 1,
    configfile: tuple[Path, ...] = (),
) -> None:
    """Translate raw text, each line as soon as it arrives; at a terminal, prompt for lines.

    For example: `echo 'Ein Hund schläft.' | synmask translate results/…/seed1/average.pt`,
    `synmask translate average.pt --input news.de --output news.en`, or the three best translations
    by two models together: `synmask translate one.pt two.pt --nbest 3 --scores < news.de`

    Args:
        model: A model file of `average`, or `demo` for the one that is shipped; several models of one corpus
            form an ensemble (the mean of their probabilities).
        input: A file (.gz or plain); default: standard input.
        output: A file; default: standard output.
        nbest: Translations per line, best first; if more than 1, each begins with the number of its line and
            a tab.
        scores: Put the model's score and a tab before each translation: the mean natural log-probability of
            its sub-words and its end (with --length-penalty P: their sum, divided by length to the P).
        beam: Beam size.
        length_penalty: Below 1 favours short translations.
        precision: bf16 is faster on CPUs with instructions for it; it may change a translation.
        batch: Maximum number of lines translated together; changes the speed, not the translations.
        configfile: Your own files, which override config.yaml. The configuration is read for
            systems that read parses and for text that CoreNLP tokenised; CoreNLP then starts once, after the
            last line.

    Raises:
        UserError: as for `Translator`, or `nbest` is above `beam`.
    """
    from synmask.pipeline.config.loading import tokeniser_jars
    from synmask.pipeline.syntax.corenlp import corenlp_parser
    from synmask.pipeline.text.lines import answer_lines
    from synmask.pipeline.translation.translate import Translator

    if nbest > beam:
        raise UserError(f"--nbest {nbest}: the beam holds only {beam} translations; raise --beam, too")
    settings = Decoding(beam=beam, length_penalty=length_penalty, precision=precision)
    parse, jars = corenlp_parser(configfile, threads), tokeniser_jars(configfile)
    translator = Translator(model, settings, threads=threads, parse=parse, jars=jars, name=input)

    def reply(lines: list[str], first: int) -> Iterator[str]:
        translations = translator(lines, first, batch=batch, nbest=nbest, scored=scores)
        for number, candidates in enumerate(translations, start=first):
            yield "\n".join("\t".join(_columns(number, candidate, nbest)) for candidate in candidates)

    # all lines that a program prepares come together, and are checked before the first is translated
    together, check = (None, None) if translator.starts_programs else (batch, translator.encode)
    prompt = f"{translator.text.source}>"
    answer_lines(reply, input=input, output=output, most=together, prompt=prompt, check=check)


def _columns(number: int, candidate: "Candidate", nbest: int) -> list[str]:
    score = [] if candidate.score is None else [f"{candidate.score:.4f}"]
    return [*([str(number)] if nbest > 1 else []), *score, candidate.text]

"""News Commentary v11, German–English, with newstest2015 and 2016, as PASCAL prepares it.

Training pairs are dropped if they are too long, or if langdetect does not recognise German and English. Both
depend on Moses tokens; the later tokenisation by CoreNLP is the setting `tokeniser: corenlp`.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import compress
from pathlib import Path
from tempfile import TemporaryDirectory

from synmask.pipeline.corpora.archive import unpack
from synmask.pipeline.files import UserError, read_lines, read_pairs, write_lines
from synmask.pipeline.text.clean import fate
from synmask.pipeline.text.parallel import map_lines
from synmask.pipeline.text.tokenise import tokenise

LANGUAGES = ("de", "en")
ARCHIVES = ("training-parallel-nc-v11.tgz", "dev.tgz", "test.tgz")
TRAIN = "news-commentary-v11.de-en.{language}"
SIDES = {"de": "src", "en": "ref"}
MAX_TOKENS, MAX_RATIO = 80, 9  # 9 is clean-corpus-n.perl's own limit


def write(archives: Mapping[str, Path], output: Path, threads: int) -> None:
    """Write {train,valid,test}.{de,en} under `output`, untokenised, from the three `ARCHIVES`.

    Both directions are trained and tested on the same pairs, with the German→English test sets.

    Raises:
        UserError: an archive is damaged or lacks a file, or the languages do not fit together.
    """
    with TemporaryDirectory(dir=output) as temporary:
        folder = Path(temporary)
        names = [TRAIN.format(language=language) for language in LANGUAGES]
        paths = unpack(
            archives["training-parallel-nc-v11.tgz"],
            [f"training-parallel-nc-v11/{name}" for name in names],
            folder,
        )
        _write_train(paths, folder, output, threads)
        for split, archive, year in (("valid", "dev", 2015), ("test", "test", 2016)):
            for language, side in SIDES.items():
                member = f"{archive}/newstest{year}-deen-{side}.{language}.sgm"
                [path] = unpack(archives[f"{archive}.tgz"], [member], folder)
                write_lines(output / f"{split}.{language}", segments(path))


def segments(path: Path) -> list[str]:
    """The text of the <seg> elements of an SGM file: entities unchanged, white space as single spaces.

    Raises:
        UserError: a <seg> does not end.
    """
    text = "\n".join(read_lines(path))
    _, *started = re.split(r"<seg\b", text, flags=re.IGNORECASE)
    whole = (re.match(r"[^>]*>(.*?)</seg>", rest, re.IGNORECASE | re.DOTALL) for rest in started)
    found = [match[1] for match in whole if match]
    if len(found) != len(started):
        raise UserError(
            f"{path.name}: {len(started)} segments start and {len(found)} end; fetch its archive again"
        )
    return [" ".join(segment.split()) for segment in found]


def _write_train(paths: list[Path], folder: Path, output: Path, threads: int) -> None:
    tokens = [folder / f"tokens.{language}" for language in LANGUAGES]
    for path, tokenised, language in zip(paths, tokens, LANGUAGES, strict=True):
        write_lines(tokenised, tokenise(read_lines(path), language, threads=threads))
    keep = [
        fate(source.split(), target.split(), 1, MAX_TOKENS, MAX_RATIO) == "kept"
        for source, target in read_pairs(*tokens)
    ]
    for tokenised, language in zip(tokens, LANGUAGES, strict=True):  # only the rest is identified
        identified = map_lines(identify, compress(read_lines(tokenised), keep), threads)
        keep = _narrowed(keep, (name == language for name in identified))
    for path, language in zip(paths, LANGUAGES, strict=True):
        lines = (" ".join(line.split()) for line in compress(read_lines(path), keep))
        write_lines(output / f"train.{language}", lines)


def _narrowed(keep: list[bool], verdicts: Iterable[bool]) -> list[bool]:
    """`keep` with each True replaced by the next verdict."""
    verdicts = iter(verdicts)
    return [kept and next(verdicts) for kept in keep]


def identify(line: str) -> str:
    """The language of a line of text by langdetect with seed 0; "" where it cannot tell."""
    from langdetect import DetectorFactory, LangDetectException, detect

    DetectorFactory.seed = 0
    try:
        return detect(line + "\n")  # PASCAL's lines include the line end
    except LangDetectException:  # no letters
        return ""

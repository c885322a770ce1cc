"""News Commentary v11, German–English, with newstest2015 and 2016, as PASCAL prepares it.

Training pairs are dropped if they are too long, or if langdetect does not recognise German and English. Both
depend on Moses tokens; the later tokenisation by CoreNLP is the setting `tokeniser: corenlp`.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from synmask.pipeline.corpora.archive import unpack
from synmask.pipeline.corpora.limits import pairs_within_limits
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_lines, write_lines
from synmask.pipeline.text.parallel import map_lines

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
        train = "training-parallel-nc-v11"
        names = [TRAIN.format(language=language) for language in LANGUAGES]
        paths = unpack(archives[f"{train}.tgz"], [f"{train}/{name}" for name in names], folder)
        for path, language in zip(paths, LANGUAGES, strict=True):
            path.rename(folder / language)
        rows = pairs_within_limits(folder, LANGUAGES, MAX_TOKENS, MAX_RATIO, threads)
        for side, language in enumerate(LANGUAGES):  # only the rest is identified
            identified = map_lines(identify_language, [tokens[side] for _, tokens in rows], threads)
            rows = [row for row, name in zip(rows, identified, strict=True) if name == language]
        for side, language in enumerate(LANGUAGES):
            write_lines(output / f"train.{language}", (" ".join(pair[side].split()) for pair, _ in rows))
        for split, archive, year in (("valid", "dev", 2015), ("test", "test", 2016)):
            for language, side in SIDES.items():
                member = f"{archive}/newstest{year}-deen-{side}.{language}.sgm"
                [path] = unpack(archives[f"{archive}.tgz"], [member], folder)
                write_lines(output / f"{split}.{language}", read_segments(path))


def read_segments(path: Path) -> list[str]:
    """The text of the <seg> elements of an SGM file: entities unchanged, white space as single spaces.

    Raises:
        UserError: a <seg> does not end.
    """
    text = "\n".join(read_lines(path))
    _, *started = re.split(r"<seg\b", text, flags=re.IGNORECASE)
    whole = (re.match(r"[^>]*>(.*?)</seg>", rest, re.IGNORECASE | re.DOTALL) for rest in started)
    texts = [match[1] for match in whole if match]
    if len(texts) != len(started):
        raise UserError(
            f"{path.name}: {len(started)} segments start and {len(texts)} end; fetch its archive again"
        )
    return [" ".join(segment.split()) for segment in texts]


def identify_language(line: str) -> str:
    """The language of a line of text by langdetect with seed 0; "" where it cannot tell."""
    from langdetect import DetectorFactory, LangDetectException, detect

    DetectorFactory.seed = 0
    try:
        return detect(line + "\n")  # PASCAL's lines include the line end
    except LangDetectException:  # no letters
        return ""

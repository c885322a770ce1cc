"""IWSLT14, German–English, as fairseq's prepare-iwslt14.sh prepares it.

The archive contains talks with tags. The script tokenises and cleans all training pairs and then takes every
23rd of the rest for validation, so that the choice of pairs depends on tokenisation.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from synmask.pipeline.corpora.archive import unpack
from synmask.pipeline.corpora.limits import pairs_within_limits
from synmask.pipeline.files import read_lines, write_lines

LANGUAGES = ("de", "en")
ARCHIVES = ("de-en.tgz",)
TRAIN = "train.tags.de-en.{language}"
TEST = [
    f"IWSLT14.{name}.de-en.{{language}}.xml"
    for name in ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
]
MAX_TOKENS, MAX_RATIO = 175, 1.5
VALIDATION_STEP = 23  # each 23rd pair is for validation


def write(archives: Mapping[str, Path], output: Path, threads: int) -> None:
    """Write {train,valid,test}.{de,en} under `output`, untokenised, from the archive named in `ARCHIVES`.

    Raises:
        UserError: the archive is damaged or lacks a file, or the languages do not fit together.
    """
    with TemporaryDirectory(dir=output) as temporary:
        folder = Path(temporary)
        names = [name.format(language=language) for language in LANGUAGES for name in (TRAIN, *TEST)]
        unpack(archives["de-en.tgz"], [f"de-en/{name}" for name in names], folder)
        for language in LANGUAGES:
            tests = (folder / name.format(language=language) for name in TEST)
            write_lines(output / f"test.{language}", chain.from_iterable(map(read_test_lines, tests)))
            write_lines(folder / language, read_training_lines(folder / TRAIN.format(language=language)))
        pairs = [pair for pair, _ in pairs_within_limits(folder, LANGUAGES, MAX_TOKENS, MAX_RATIO, threads)]
    for side, language in enumerate(LANGUAGES):
        lines = [pair[side] for pair in pairs]
        write_lines(output / f"valid.{language}", lines[VALIDATION_STEP - 1 :: VALIDATION_STEP])
        del lines[VALIDATION_STEP - 1 :: VALIDATION_STEP]
        write_lines(output / f"train.{language}", lines)


def read_training_lines(path: Path) -> Iterator[str]:
    """The text lines of a training file, without the tags of titles and descriptions.

    Other tags, such as <speaker>, stay, as in the script.
    """
    for line in read_lines(path):
        if not re.search("<(url|talkid|keywords)>", line):
            yield re.sub("</?(title|description)>", "", line)


def read_test_lines(path: Path) -> Iterator[str]:
    """The segments of a test file, one per line, also empty ones; typographic apostrophes become plain."""
    for line in read_lines(path):
        if "<seg id" in line:
            line = re.sub(r'<seg id="[0-9]*">\s*', "", line)
            yield re.sub(r"(?<!\s)\s*</seg>\s*", "", line).replace("’", "'")

"""ASPEC-JC, Japanese–Chinese: licensed, so users must put the files in place."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_lines, writing

LANGUAGES = ("zh", "ja")
ARCHIVES = ("train.txt", "dev.txt", "test.txt")
SPLIT_FILES = {"train": "train.txt", "valid": "dev.txt", "test": "test.txt"}
SEPARATOR = " ||| "


def write(archives: Mapping[str, Path], output: Path, threads: int) -> None:
    """Write {train,valid,test}.{zh,ja} under `output`, unsegmented, from train.txt, dev.txt and test.txt.

    Raises:
        UserError: a line does not have three fields (id, Japanese, Chinese); the message names file and line.
    """
    for split, name in SPLIT_FILES.items():
        with writing(output / f"{split}.zh") as chinese, writing(output / f"{split}.ja") as japanese:
            for ja, zh in read_sentence_pairs(archives[name]):
                chinese.write(zh + "\n")
                japanese.write(ja + "\n")


def read_sentence_pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the Japanese and the Chinese sentence of each line."""
    for number, line in enumerate(read_lines(path), start=1):
        fields = line.split(SEPARATOR)
        if len(fields) != 3:
            raise UserError(
                f"{path}, line {number}: {len(fields)} fields, not 3 (id ||| Japanese ||| Chinese); "
                "give the files of ASPEC-JC"
            )
        yield fields[1], fields[2]

"""Convert a publisher's archives to plain parallel text, with checks."""

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from synmask.pipeline.corpora.plain import Expected, check_count, count_pairs
from synmask.pipeline.files import UserError

SPLITS = ("train", "valid", "test")


def prepare(
    name: str,
    format: str,
    archives: Sequence[Path],
    output: Path,
    *,
    pairs: Mapping[str, Expected],
    threads: int = 1,
) -> dict[str, int]:
    """Write `output`/{train,valid,test}.LANGUAGE from a publisher's archives; return the numbers of pairs.

    All files are written, or none.

    Args:
        name: the corpus' name, for messages.
        format: the module of synmask.pipeline.corpora that converts its archives.
        archives: its files, known by their base names.
        pairs: for each split how many pairs there should be: a number, or the least and the most.
    Raises:
        UserError: an archive is missing or damaged, its text is not as it should be, or a count is not.
    """
    module = import_module(f"synmask.pipeline.corpora.{format}")
    given = {path.name: path for path in archives}
    if missing := [wanted for wanted in module.ARCHIVES if wanted not in given]:
        raise UserError(f"{name}: archives: {format} needs {missing[0]}; name it in config.yaml")
    for path in given.values():
        if not path.is_file():
            raise UserError(f"{name}: {path}: no such file; fetch it with synmask download")
    output.mkdir(parents=True, exist_ok=True)
    counts = {}
    with TemporaryDirectory(dir=output) as temporary:
        folder = Path(temporary)
        module.write(given, folder, threads)
        for split in SPLITS:
            paths = [folder / f"{split}.{language}" for language in module.LANGUAGES]
            counts[split] = count_pairs(*paths)
            check_count(name, split, counts[split], pairs.get(split))
        for split in SPLITS:
            for language in module.LANGUAGES:
                os.replace(folder / f"{split}.{language}", output / f"{split}.{language}")
    return counts

"""Convert a publisher's archives to plain parallel text, with checks."""

from importlib import import_module
from pathlib import Path

from synmask.pipeline.arguments import Json, OneOrMore, Threads
from synmask.pipeline.config.base import Format
from synmask.pipeline.config.sections import Pairs
from synmask.pipeline.corpora.plain import check_count
from synmask.pipeline.disk import whole_folder
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import SPLITS, Split, read_pairs


def prepare(
    *,
    name: str,
    format: Format,
    archives: OneOrMore[Path],
    output: Path,
    pairs: Json[dict[Split, Pairs]],
    threads: Threads = 1,
) -> dict[str, int]:
    """Check a publisher's archives and write them as plain parallel text: all files, or none.

    Args:
        name: The corpus' name, for messages.
        format: The format of its archives: a module of synmask.pipeline.corpora.
        archives: Its files, known by their names.
        output: Folder for {train,valid,test}.LANGUAGE.
        pairs: Expected number of pairs: '{"train": [230000, 238000], "test": 2999}'.

    Returns:
        The number of pairs of each split.

    Raises:
        UserError: an archive is missing or damaged, its text is not as it should be, or a count is not.
    """
    module = import_module(f"synmask.pipeline.corpora.{format}")
    by_name = {path.name: path for path in archives}
    if missing := [needed for needed in module.ARCHIVES if needed not in by_name]:
        raise UserError(f"{name}: archives: {format} needs {missing[0]}; name it in config.yaml")
    for path in by_name.values():
        if not path.is_file():
            raise UserError(f"{name}: {path}: no such file; fetch it with synmask download")
    counts = {}
    with whole_folder(output, "prepare") as folder:
        module.write(by_name, folder, threads)
        for split in SPLITS:
            paths = [folder / f"{split}.{language}" for language in module.LANGUAGES]
            counts[split] = sum(1 for _ in read_pairs(*paths))
            check_count(name, split, counts[split], pairs.get(split))
    return counts

"""Tokens of a pair of languages → a joint BPE, the text in sub-words, and fairseq's binary data."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from synmask.pipeline.arguments import CountOption, Source, Target, Threads, Whole
from synmask.pipeline.disk import whole_folder
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import SPLITS, read_lines, write_lines
from synmask.pipeline.text import bpe
from synmask.pipeline.text.parallel import map_lines
from synmask.pipeline.training.binarise import binarise

MAX_SUBWORDS = 1023  # of a sentence that is translated: fairseq's 1024 positions without that of </s>


def write_subwords(
    *,
    input: Path,
    source: Source,
    target: Target,
    merges: CountOption,
    vocabulary_threshold: Annotated[Whole, Field(ge=0)] = 0,
    output: Path,
    threads: Threads = 1,
) -> None:
    """Learn a joint BPE from the clean training pairs, split all text by it, and write it for fairseq.

    Writes OUTPUT/bpe/codes, bpe/vocabulary.LANGUAGE and bpe/SPLIT.LANGUAGE (`bpe.learn_joint_bpe`), and
    OUTPUT/bin/ (`binarise.binarise`).

    Args:
        input: The output of `synmask text`, with clean/train.LANGUAGE and tokens/{valid,test}.LANGUAGE.
        merges: How many merge operations.
        vocabulary_threshold: Split sub-words further that are rarer in their language; 0: no limit.
        output: Folder of bpe/ and bin/; it may be that of the input.

    Raises:
        UserError: a file cannot be read, there is no merge to learn, or a sentence of the source's valid or
            test is too long for a model.
    """
    tokens = token_files(input, source, target)
    with whole_folder(output, "subwords") as folder:
        texts = {language: tokens["train", language] for language in (source, target)}
        codes, vocabularies = bpe.learn_joint_bpe([*texts.values()], merges)
        write_lines(folder / "bpe/codes", codes)
        splitters = {}
        for language, lines in zip(texts, vocabularies, strict=True):
            vocabulary = folder / f"bpe/vocabulary.{language}"
            write_lines(vocabulary, lines)
            known = bpe.read_frequent(vocabulary, vocabulary_threshold) if vocabulary_threshold else None
            splitters[language] = bpe.BpeSplitter("\n".join(codes), known)
        split_files(tokens, splitters, source, folder / "bpe", threads)
        binarise(text=folder / "bpe", output=folder / "bin", source=source, target=target)


def token_files(folder: Path, source: str, target: str) -> dict[tuple[str, str], Path]:
    """(split, language) → the tokens to split: of the training text those of the pairs that are kept."""
    return {
        (split, language): folder / ("clean" if split == "train" else "tokens") / f"{split}.{language}"
        for language in (source, target)
        for split in SPLITS
    }


def split_files(
    tokens: Mapping[tuple[str, str], Path],
    splitters: Mapping[str, Callable[[str], str]],
    source: str,
    folder: Path,
    threads: int,
) -> None:
    """Write FOLDER/SPLIT.LANGUAGE, the sub-words of `tokens`, each by the splitter of its language.

    Raises:
        UserError: a file cannot be read, or a sentence of the source's valid or test is too long for a model.
    """
    for (split, language), path in tokens.items():
        lines = map_lines(splitters[language], read_lines(path), threads)
        if language == source and split != "train":
            lines = _check_lengths(lines, path)
        write_lines(folder / f"{split}.{language}", lines)


def _check_lengths(lines: Iterable[str], path: Path) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if (length := len(line.split())) > MAX_SUBWORDS:
            length = f"{length:,} sub-words, a model reads {MAX_SUBWORDS:,}"
            raise UserError(f"{path}, line {number}: {length}; split the sentence in the corpus' file")
        yield line

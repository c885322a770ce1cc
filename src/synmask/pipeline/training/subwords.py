"""Tokens of a pair of languages → sub-words by a joint BPE or by sentencepiece, and fairseq's binary data."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from synmask.pipeline.arguments import CountOption, Json, Source, Target, Threads, Whole
from synmask.pipeline.config.base import Tokeniser
from synmask.pipeline.config.sections import SentencePiece
from synmask.pipeline.disk import whole_folder
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import SPLITS, read_lines, write_lines
from synmask.pipeline.text import bpe
from synmask.pipeline.text.parallel import map_lines
from synmask.pipeline.training import sentencepiece as pieces
from synmask.pipeline.training.binarise import binarise

MAX_SUBWORDS = 1023  # of a sentence that is translated, or of its reference: fairseq's 1024 without </s>


def write_subwords(
    *,
    input: Path,
    source: Source,
    target: Target,
    merges: CountOption | None = None,
    vocabulary_threshold: Annotated[Whole, Field(ge=0)] = 0,
    sentencepiece: Json[SentencePiece] | None = None,
    tokenisers: tuple[Tokeniser, Tokeniser] = ("none", "none"),
    output: Path,
    threads: Threads = 1,
) -> None:
    """Learn sub-words from the clean training pairs, split all text into them, and write it for fairseq.

    Writes OUTPUT/bpe/codes, bpe/vocabulary.LANGUAGE and bpe/SPLIT.LANGUAGE, and OUTPUT/bin/ (`binarise`).
    They are of a joint BPE (`bpe.learn_joint_bpe`), or of sentencepiece's models (`text.spm`), whose pieces
    alone the dictionaries have.

    Args:
        input: The output of `synmask text`, with clean/train.LANGUAGE and tokens/{valid,test}.LANGUAGE.
        merges: How many merge operations BPE learns.
        vocabulary_threshold: Split BPE's sub-words further that are rarer in their language; 0: no limit.
        sentencepiece: Take this instead: '{"vocab_size": 8000, "model_type": "unigram", "shared": false}'.
        tokenisers: Of the source and of the target; sentencepiece joins the tokens of `char`.
        output: Folder of bpe/ and bin/; it may be that of the input.

    Raises:
        UserError: a file cannot be read, there is no merge to learn, `vocab_size` does not fit the text, or a
            sentence of valid or test is too long for a model.
    """
    if (merges is None) == (sentencepiece is None):
        raise UserError("sub-words: give --merges, for BPE, or --sentencepiece")
    tokens = {
        (split, language): input / ("clean" if split == "train" else "tokens") / f"{split}.{language}"
        for language in (source, target)
        for split in SPLITS
    }
    texts = {language: tokens["train", language] for language in (source, target)}
    with whole_folder(output, "subwords") as folder:
        splitters: Mapping[str, Callable[[str], str]]
        if sentencepiece:
            used = dict(zip(texts, tokenisers, strict=True))
            splitters = pieces.learn_splitters(texts, used, sentencepiece, folder / "bpe")
        else:
            splitters = _learn_bpe(texts, merges, vocabulary_threshold, folder / "bpe")
        _split_files(tokens, splitters, folder / "bpe", threads)
        if sentencepiece:
            pieces.binarise_pieces(texts, splitters, folder)
        else:
            binarise(text=folder / "bpe", output=folder / "bin", source=source, target=target)


def _learn_bpe(
    texts: Mapping[str, Path], merges: int, threshold: int, folder: Path
) -> dict[str, bpe.BpeSplitter]:
    """Write FOLDER/codes and FOLDER/vocabulary.LANGUAGE → the splitter of each language."""
    codes, vocabularies = bpe.learn_joint_bpe([*texts.values()], merges)
    write_lines(folder / "codes", codes)
    splitters = {}
    for language, lines in zip(texts, vocabularies, strict=True):
        vocabulary = folder / f"vocabulary.{language}"
        write_lines(vocabulary, lines)
        known = bpe.read_frequent(vocabulary, threshold) if threshold else None
        splitters[language] = bpe.BpeSplitter("\n".join(codes), known)
    return splitters


def _split_files(
    tokens: Mapping[tuple[str, str], Path],
    splitters: Mapping[str, Callable[[str], str]],
    folder: Path,
    threads: int,
) -> None:
    """Write FOLDER/SPLIT.LANGUAGE, the sub-words of `tokens`, each by the splitter of its language."""
    for (split, language), path in tokens.items():
        lines = map_lines(splitters[language], read_lines(path), threads)
        if split != "train":  # whose long pairs are left out
            lines = _check_lengths(lines, path)
        write_lines(folder / f"{split}.{language}", lines)


def _check_lengths(lines: Iterable[str], path: Path) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if (length := len(line.split())) > MAX_SUBWORDS:
            length = f"{length:,} sub-words, a model reads {MAX_SUBWORDS:,}"
            raise UserError(f"{path}, line {number}: {length}; split the sentence in the corpus' file")
        yield line

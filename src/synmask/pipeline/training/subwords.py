"""Tokens of a pair of languages → a joint BPE, the text in sub-words, and fairseq's binary data."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from synmask.pipeline.arguments import CountOption, Source, Target, Threads, Whole
from synmask.pipeline.disk import whole_folder
from synmask.pipeline.files import SPLITS
from synmask.pipeline.text import bpe
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

    Writes OUTPUT/bpe/codes, bpe/vocabulary.LANGUAGE and bpe/SPLIT.LANGUAGE (`bpe.learn`, `bpe.apply_file`),
    and OUTPUT/bin/ (`binarise.binarise`).

    Args:
        input: The output of `synmask text`, with clean/train.LANGUAGE and tokens/{valid,test}.LANGUAGE.
        merges: How many merge operations.
        vocabulary_threshold: Split sub-words further that are rarer in their language; 0: no limit.
        output: Folder of bpe/ and bin/; it may be that of the input.

    Raises:
        UserError: a file cannot be read, there is no merge to learn, or a sentence of the source's valid or
            test is too long for a model.
    """
    tokens = {
        (split, language): input / ("clean" if split == "train" else "tokens") / f"{split}.{language}"
        for language in (source, target)
        for split in SPLITS
    }
    with whole_folder(output, "subwords") as folder:
        codes = folder / "bpe/codes"
        vocabularies = {language: folder / f"bpe/vocabulary.{language}" for language in (source, target)}
        bpe.learn(
            inputs=[tokens["train", language] for language in vocabularies],
            codes=codes,
            vocabularies=[*vocabularies.values()],
            merges=merges,
        )
        for (split, language), path in tokens.items():
            bpe.apply_file(
                input=path,
                output=folder / f"bpe/{split}.{language}",
                codes=codes,
                vocabulary=vocabularies[language],
                vocabulary_threshold=vocabulary_threshold,
                most=MAX_SUBWORDS if language == source and split != "train" else None,
                threads=threads,
            )
        binarise(text=folder / "bpe", output=folder / "bin", source=source, target=target)

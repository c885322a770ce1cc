"""Verbs from plain text to binary data."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from synmask.pipeline.cli.options import (
    CountOption,
    Json,
    Some,
    Source,
    Target,
    Threads,
    Whole,
    tell,
    together,
)
from synmask.pipeline.config.base import Language
from synmask.pipeline.config.guides import TemplateCut
from synmask.pipeline.config.sections import Lengths, Tokens


def tokenise(
    *,
    input: Path,
    output: Path,
    language: Language,
    settings: Json[Tokens],
    threads: Threads = 1,
    jars: tuple[Path, ...] = (),
) -> None:
    """Tokenise plain text; optionally lower-case it.

    Args:
        input: Plain text, one sentence per line.
        output: Tokens, separated by spaces.
        language: Its language code.
        settings: '{"tokeniser": "moses", "lowercase": false}'.
        jars: CoreNLP's jars, if the tokeniser needs them.
    """
    from synmask.pipeline.text.tokenise import tokenise_file

    tokeniser = settings.tokeniser_of(language)
    how = {"tokeniser": tokeniser, "lowercase": settings.lowercase}
    tokenise_file(input, output, language, threads=threads, jars=jars, **how)


def clean(
    *,
    source_in: Path,
    source_out: Path,
    target_in: Path,
    target_out: Path,
    kept: Path,
    settings: Json[Lengths],
) -> None:
    """Keep the pairs that meet the limits on length and length ratio.

    Args:
        source_in: Source tokens.
        source_out: Kept source tokens.
        target_in: Target tokens.
        target_out: Kept target tokens.
        kept: Output: the numbers of the lines that were kept.
        settings: '{"min_tokens": 1, "max_tokens": 175, "max_ratio": 1.5}'.
    """
    from synmask.pipeline.text.clean import clean_files

    tell(clean_files(source_in, target_in, source_out, target_out, kept, **settings.model_dump()))


def learn_bpe(*, inputs: Some[Path], codes: Path, vocabularies: Some[Path], merges: CountOption) -> None:
    """Learn a joint BPE; write its codes and each file's sub-word vocabulary.

    Args:
        inputs: Token files of all languages.
        codes: Output: the merge operations.
        vocabularies: Output: one file per input, with lines 'sub-word count'.
        merges: How many merge operations.
    """
    from synmask.pipeline.text.bpe import learn

    together(inputs=inputs, vocabularies=vocabularies)
    learn(inputs, codes, vocabularies, merges)


def apply_bpe(
    *,
    input: Path,
    output: Path,
    codes: Path,
    vocabulary: Path,
    vocabulary_threshold: Annotated[Whole, Field(ge=0)],
    most: CountOption | None = None,
    threads: Threads = 1,
) -> None:
    """Split words into sub-words.

    Args:
        input: Tokens.
        output: Sub-words; all but a word's last end in @@.
        codes: The merge operations of learn-bpe.
        vocabulary: The language's vocabulary of learn-bpe.
        vocabulary_threshold: Split rarer sub-words further; 0: no limit.
        most: Refuse longer sentences; default: no limit.
    """
    from synmask.pipeline.text.bpe import apply_file

    known = {"vocabulary": vocabulary} if vocabulary_threshold else {}
    how = {"vocabulary_threshold": vocabulary_threshold, "threads": threads, "most": most}
    apply_file(input, output, codes, **known, **how)


def binarise(*, text: Path, output: Path, source: Source, target: Target) -> None:
    """Write dictionaries and binary data for fairseq.

    Args:
        text: Folder with {train,valid,test}.LANGUAGE in BPE.
        output: Folder for dict.LANGUAGE.txt and the data.
    """
    from synmask.pipeline.training.binarise import binarise

    binarise(text, output, source, target)


def annotate(
    *,
    subwords: Path,
    output: Path,
    trees: Path | None = None,
    heads: Path | None = None,
    kept: Path | None = None,
) -> None:
    """Write dependency heads and constituency distances of sub-words, for systems that read them.

    Args:
        subwords: Sentences in BPE.
        output: The annotations, .npy; counts go into a .json file beside it.
        trees: A bracketed tree of each sentence's words.
        heads: Each sentence's heads, from 1, 0 for the root.
        kept: Output of `clean`: which lines of trees and heads became sentences.
    """
    from synmask.pipeline.syntax.annotations import annotate_file

    tell(annotate_file(subwords, output, trees=trees, heads=heads, kept=kept))


def templates(
    *,
    source: Path,
    target: Path,
    trees: Path,
    kept: Path | None = None,
    settings: Json[TemplateCut],
    output: Path,
    source_out: Path,
    templates_out: Path,
) -> None:
    """Write templates of the target side (trees cut at a depth), for ST-NMT.

    Also write the pairs of source and template, where there is a template.

    Args:
        source: Source sentences in BPE.
        target: Target sentences in BPE.
        trees: A bracketed tree of each target sentence's words.
        kept: Output of `clean`: which lines of trees became sentences.
        settings: The depth is min(max(ratio · words, least), most): '{"ratio": 0.15, "least": 3, "most": 6}'.
        output: The templates, one per line, empty without a parse; counts go into a .json file beside it.
        source_out: The source sentences with a template.
        templates_out: Their templates.
    """
    from synmask.pipeline.syntax.templates import template_file

    pairs = (source_out, templates_out)
    tell(template_file((source, target), trees, output, pairs, kept=kept, **settings.model_dump()))

"""Plain text → binary data."""

import argparse
import json
import sys

from synmask.cli.options import Arguments, add, languages


def add_verbs(verbs: argparse._SubParsersAction) -> None:
    option = add(verbs, "tokenise", _tokenise, "Tokenise plain text; optionally lower-case it.")
    option("input", "plain text, a sentence a line")
    option("output", "tokens, separated by spaces")
    option("language", "its language code", type=str)
    option("settings", '\'{"tokeniser": "moses", "lowercase": false}\'', type=json.loads)
    option("threads", "processes of Moses or Juman", type=int, default=1)
    option("jars", "CoreNLP's jars, where the tokeniser needs them", nargs="*", default=[])

    option = add(verbs, "clean", _clean, "Keep the pairs within limits of length and length ratio.")
    for side in ("source", "target"):
        option(f"{side}-in", f"{side} tokens")
        option(f"{side}-out", f"kept {side} tokens")
    option("kept", "output: the numbers of the lines that were kept")
    option("settings", '\'{"min_tokens": 1, "max_tokens": 175, "max_ratio": 1.5}\'', type=json.loads)

    option = add(
        verbs,
        "learn-bpe",
        _learn_bpe,
        "Learn joint BPE; write its codes and each file's sub-word vocabulary.",
    )
    option("inputs", "token files of all languages", nargs="+")
    option("codes", "output: the merge operations")
    option("vocabularies", "output: one file an input, 'sub-word count' a line", nargs="+")
    option("merges", "how many merge operations", type=int)

    option = add(verbs, "apply-bpe", _apply_bpe, "Split words into sub-words.")
    option("input", "tokens")
    option("output", "sub-words; all but a word's last end in @@")
    option("codes", "the merge operations of learn-bpe")
    option("vocabulary", "the language's vocabulary of learn-bpe")
    option("vocabulary-threshold", "split rarer sub-words further; 0: no limit", type=int)
    option("threads", "processes", type=int, default=1)

    option = add(verbs, "binarise", _binarise, "Write dictionaries and binary data as fairseq reads them.")
    option("text", "folder with {train,valid,test}.LANGUAGE in BPE")
    option("output", "folder for dict.LANGUAGE.txt and the data")
    languages(option)

    option = add(
        verbs,
        "annotate",
        _annotate,
        "Write dependency heads and constituency distances of sub-words, for systems that read them.",
    )
    option("subwords", "sentences in BPE")
    option("trees", "a bracketed tree of each sentence's words", default=None)
    option("heads", "each sentence's heads, from 1, 0 for the root", default=None)
    option("kept", "output of `clean`: which lines of trees and heads became sentences", default=None)
    option("output", "the annotations, .npy; counts go beside it as .json")


def _tokenise(a: Arguments) -> None:
    from synmask.text.tokenise import of_language, tokenise_file

    tokeniser = of_language(a.settings.get("tokeniser", "moses"), a.language)
    how = a.settings | {"tokeniser": tokeniser}
    tokenise_file(a.input, a.output, a.language, threads=a.threads, jars=a.jars, **how)


def _clean(a: Arguments) -> None:
    from synmask.text.clean import clean_files

    counts = clean_files(a.source_in, a.target_in, a.source_out, a.target_out, a.kept, **a.settings)
    print(
        ", ".join(f"{fate.replace('_', ' ')}: {count:,}" for fate, count in counts.items()), file=sys.stderr
    )


def _learn_bpe(a: Arguments) -> None:
    from synmask.text.bpe import learn

    learn(a.inputs, a.codes, a.vocabularies, a.merges)


def _apply_bpe(a: Arguments) -> None:
    from synmask.text.bpe import apply_file

    apply_file(
        a.input,
        a.output,
        a.codes,
        vocabulary=a.vocabulary if a.vocabulary_threshold else None,
        vocabulary_threshold=a.vocabulary_threshold,
        threads=a.threads,
    )


def _binarise(a: Arguments) -> None:
    from synmask.engine.binarise import binarise

    binarise(a.text, a.output, a.source, a.target)


def _annotate(a: Arguments) -> None:
    from synmask.syntax.annotations import annotate_file

    counts = annotate_file(a.subwords, a.output, trees=a.trees, heads=a.heads, kept=a.kept)
    print(
        ", ".join(f"{what.replace('_', ' ')}: {count:,}" for what, count in counts.items()), file=sys.stderr
    )

"""Verbs that generate, fetch and check corpora."""

import sys
from pathlib import Path
from typing import Literal

from synmask.pipeline.cli.options import CountOption, Json, Some, Threads, together
from synmask.pipeline.config.base import Format, Split
from synmask.pipeline.config.benchmarks import GenerateTask, GenerateText
from synmask.pipeline.config.sections import Generate, Pairs


def demo_corpus(*, output: Path, settings: Json[Generate]) -> None:
    """Generate the demo corpus with its gold trees and heads.

    Args:
        output: Folder for {train,valid,test}.{de,en}, .trees and .heads.
        settings: Sizes and seed: '{"seed": 1, "train": 8000, "valid": 400, "test": 400}'.
    """
    from synmask.pipeline.corpora.demo import write_corpus

    write_corpus(output, sizes=settings.model_dump(exclude={"seed"}), seed=settings.seed)


def demo_task(
    *, task: str, part: str, settings: Json[GenerateTask], output: Path, parses: Path | None = None
) -> None:
    """Generate a task of language understanding from the demo's grammar.

    Args:
        task: acceptability, paraphrase, entailment or predicate.
        part: train or dev.
        settings: Sizes and seed: '{"seed": 1, "train": 3000, "dev": 500}'.
        output: TSV: sentence1, sentence2 if there are two, label.
        parses: Prefix; if given, also writes PREFIX.text, .tokens, .trees and .heads of its sentences.
    """
    from synmask.pipeline.corpora.demo.nlu_tasks import write_part

    sizes = settings.model_dump(exclude={"seed"})
    write_part(task, part, output, sizes=sizes, seed=settings.seed, parses=parses)


def demo_text(*, split: Literal["train", "valid"], settings: Json[GenerateText], output: Path) -> None:
    """Generate text for pre-training from the demo's grammar.

    Args:
        split: train or valid.
        settings: Numbers of documents and seed: '{"seed": 1, "train": 16000, "valid": 300}'.
        output: One sentence per line, an empty line after each document.
    """
    from synmask.pipeline.corpora.demo.documents import write_text

    write_text(output, split, getattr(settings, split), settings.seed)


def download(
    *, name: str, url: str | None = None, output: Path, sha256: str | None = None, mirror: str | None = None
) -> None:
    """Fetch one file of a corpus and check it; continue an interrupted download.

    Args:
        name: The corpus' name, for messages.
        url: The publisher's URL of the file; without it, a mirror is required.
        output: The file to write.
        sha256: Its checksum.
        mirror: Folder or URL that holds the file instead.
    """
    from synmask.pipeline.corpora.download import fetch

    fetch(name, url, output, sha256=sha256, mirror=mirror)


def prepare(
    *,
    name: str,
    format: Format,
    archives: Some[Path],
    output: Path,
    pairs: Json[dict[Split, Pairs]],
    threads: Threads = 1,
) -> None:
    """Check a publisher's archives and write them as plain parallel text.

    Args:
        name: The corpus' name, for messages.
        format: The format of its archives.
        archives: Its files.
        output: Folder for {train,valid,test}.LANGUAGE.
        pairs: Expected number of pairs: '{"train": [230000, 238000], "test": 2999}'.
    """
    from synmask.pipeline.corpora.prepare import prepare

    counts = prepare(name, format, archives, output, pairs=pairs, threads=threads)
    said = ", ".join(f"{split} {count:,}" for split, count in counts.items())
    print(f"{name}: pairs: {said}", file=sys.stderr)


def text(
    *,
    name: str,
    source_in: Some[Path],
    source_out: Path,
    target_in: Some[Path],
    target_out: Path,
    pairs: Json[Pairs | None] = None,
) -> None:
    """Check aligned raw files (.gz or plain) and write them as plain text; several are joined in their order.

    Args:
        name: The corpus' name, for messages.
        source_in: Raw source text.
        source_out: Plain source text.
        target_in: Raw target text.
        target_out: Plain target text.
        pairs: Expected number of pairs: 1000, or [990, 1010].
    """
    from synmask.pipeline.corpora.plain import write_pair

    together(source_in=source_in, target_in=target_in)
    files = (source_in, target_in, source_out, target_out)
    count = write_pair(*files, name, split=source_out.stem, expected=pairs)
    print(f"{name}: {count:,} pairs", file=sys.stderr)


def glue(*, task: str, part: str, sources: Some[Path], output: Path, rows: CountOption) -> None:
    """Check one part of a GLUE task, or a test set, and write it as TSV.

    Args:
        task: cola, sst-2, mnli, qnli, rte, mrpc, qqp or sts-b.
        part: train, dev or test; for mnli train, dev_matched, dev_mismatched, test_matched,
            test_mismatched or ax.
        sources: Its archive (for mrpc, its files; for ax, AX.tsv, too), or the folder with its PART.tsv.
        output: TSV: sentence1, sentence2 if there are two, label unless it is a test set.
        rows: Required number of rows.
    """
    from synmask.pipeline.corpora.glue import write_part

    dropped = write_part(task, part, sources, output, rows)
    print(f"glue: {task} {part}: {rows:,} rows, {dropped} malformed rows dropped", file=sys.stderr)

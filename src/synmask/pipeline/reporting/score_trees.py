"""The scores of predicted trees, as files or as tables for the terminal."""

import json
from pathlib import Path

from synmask.pipeline.evaluation.parseval import evaluate_files
from synmask.pipeline.evaluation.records import made
from synmask.pipeline.files import all_writing, json_text
from synmask.pipeline.options import BY_HAND, RunJson
from synmask.pipeline.reporting.parse_text import as_text


def parseval(
    gold: Path,
    predicted: Path,
    *,
    heads: Path | None = None,
    run: RunJson = BY_HAND,
    output: Path | None = None,
    counts: Path | None = None,
) -> None:
    """Score predicted trees against gold trees, and right-branching, random and other trivial trees, too.

    For example: `synmask parseval valid.mrg trees.jsonl`, `synmask parseval wsj/23 predicted.txt`

    Args:
        gold: A bracketed treebank, one or more lines per tree; or a folder of .mrg files.
        predicted: Output of `parse`; or any parser's bracketed trees, with labels, or without labels and one
            per line: (the (dog barks)).
        heads: Gold dependency heads, one sentence per line.
        run: The run: corpus, direction, system, seed.
        output: parse.json; default: print tables.
        counts: Output: counts per sentence, for significance tests.
    """
    result, by_sentence = evaluate_files(gold, predicted, heads)
    if output is None:
        print(as_text(result))
    texts = {
        output: json_text({**run} | result | made()),
        counts: json.dumps({**run} | {"counts": by_sentence}, sort_keys=True, separators=(",", ":")),
    }
    asked = [path for path in texts if path is not None]
    with all_writing(asked) as handles:
        for path, handle in zip(asked, handles, strict=True):
            handle.write(texts[path])

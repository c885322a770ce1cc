"""The scores of predicted trees, as files or as tables for the terminal.

It works without pandas, whose import takes 0.4 s.
"""

import json
from pathlib import Path
from typing import Any

from synmask.pipeline.display import text_table
from synmask.pipeline.evaluation.parseval import evaluate_files
from synmask.pipeline.files import json_text, write_all
from synmask.pipeline.record import check_part, checksums, run_beside, run_identity, versions_and_commit
from synmask.pipeline.reporting.metrics import DEPENDENCIES, PARSE_LABELS, PROTOCOLS


def parseval(
    gold: Path,
    predicted: Path,
    *,
    heads: Path | None = None,
    output: Path | None = None,
    counts: Path | None = None,
) -> None:
    """Score predicted trees against gold trees, and right-branching, random and other trivial trees, too.

    For example: `synmask parseval valid.mrg trees.jsonl`, `synmask parseval wsj/23 predicted.txt`

    Args:
        gold: A bracketed treebank, one or more lines per tree; or a folder of .mrg files.
        predicted: Output of `parse`; or any parser's bracketed trees, with labels, or without labels and one
            per line: (the (dog barks)). For --output, it must be of the training in the train.json
            beside it, if there is one.
        heads: Gold dependency heads, one sentence per line.
        output: parse.json; default: print tables.
        counts: Output: counts per sentence, for significance tests.
    """
    run = run_beside(predicted) if output or counts else {}
    check_part(predicted, run)
    result, by_sentence = evaluate_files(gold, predicted, heads)
    if output is None:
        print(as_text(result))
    sentences = json.dumps(run_identity(run) | {"counts": by_sentence}, sort_keys=True, separators=(",", ":"))
    parts = {"sha256": checksums(output, {counts: sentences})} if output and counts else {}
    texts = {output: json_text(run_identity(run) | result | versions_and_commit() | parts), counts: sentences}
    write_all({path: text for path, text in texts.items() if path is not None})


def as_text(result: dict[str, Any]) -> str:
    """All scores of one parse."""
    lines = []
    for name, protocol in result["protocols"].items():
        sentences = f"{protocol['sentences']} sentences"
        lines += [f"{name}: {PROTOCOLS[name]}; {sentences}", _table(protocol["rows"]), ""]
        if labels := dict(list(protocol.get("recall_by_label", {}).items())[:10]):
            lines += [f"{name}: recall by label", _table(labels), ""]
    if result["dependencies"]:
        lines += [f"{DEPENDENCIES}: {PROTOCOLS[DEPENDENCIES]}; {result['dependencies']['words']} words"]
        lines += [_table(result["dependencies"]["rows"]), ""]
    if known := result.get("punctuation"):  # older files lack it, and `failed`
        rule = "punctuation and currency signs are recognised by the gold tags"
        if known["by_characters"]:
            tags = ", ".join(known["tags"][:5]) + (", …" if len(known["tags"]) > 5 else "")
            rule += (
                f"; where a tag is not known ({tags}; {known['by_characters']} of {known['leaves']} leaves), "
                "by Unicode's categories of the characters"
            )
        lines.append(rule)
    if others := result.get("other_deletions"):
        sentences = "1 sentence has" if others == 1 else f"{others} sentences have"
        lines.append(
            f"evalb: the gold tags say which words are deleted; {sentences} predicted tags that delete other "
            "words, and EVALB would leave them out"
        )
    if result["unparsed"]:
        lines.append(f"{result['unparsed']} sentences without a gold tree are left out")
    if result.get("failed"):
        lines.append(f"{result['failed']} sentences whose parse failed, (()), are skipped")
    if cut := result["cut_words"]:
        lines.append(f"{cut['cut']} of {cut['split']} split words are cut by the tree over sub-words")
    if ties := result["ties"]:
        lines.append(f"{ties['tied']} of {ties['splits']} splits are ties, decided for the first")
    if (explained := result["explained_by_labels_within_sentences"]) is not None:
        lines.append(
            f"{100 * explained:.1f}% of the distances' variance within sentences is explained by the BPE "
            "labels beside each gap"
        )
    return "\n".join(lines).rstrip("\n")


def _table(rows: dict[str, dict[str, float]]) -> str:
    """Named rows of numbers below their heads."""
    lines = [
        [name, *(f"{value:.2f}" if isinstance(value, float) else str(value) for value in row.values())]
        for name, row in rows.items()
    ]
    heads = ["", *(PARSE_LABELS.get(key, key) for key in next(iter(rows.values()), {}))]
    return text_table(heads, lines)

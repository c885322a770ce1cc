"""The scores of one parse as tables for the terminal. It works without pandas, whose import takes 0.4 s."""

from collections.abc import Mapping
from typing import Any

from tabulate import tabulate

from synmask.pipeline.reporting.metrics import ATTACHMENT, DEPENDENCIES, METRICS, PARSE_SCORES

LABELS = {metric: METRICS[metric].label for metric in PARSE_SCORES} | {name: name for name in ATTACHMENT}
PROTOCOLS = {
    "words": "trees over words, without punctuation and currency signs, which induced trees lose after "
    "they are split; single words and whole sentences do not count",
    "paper": "binary trees over sub-words and </s>, as the scripts of Kai et al. 2024 score them; the paper "
    "prints this P as R, this R as P",
    "evalb": "what EVALB computes with COLLINS.prm on unlabelled brackets",
    DEPENDENCIES: "heads by the argmax of P_D, of words without punctuation",
}


def as_text(result: dict) -> str:
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
    if how := result.get("punctuation"):  # older files lack it, and `failed`
        lines.append(punctuation_rule(how))
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


def punctuation_rule(found: Mapping[str, Any]) -> str:
    """How punctuation and currency signs were recognised (`parseval.evaluate`)."""
    said = "punctuation and currency signs are recognised by the gold tags"
    if found["by_characters"]:
        tags = ", ".join(found["tags"][:5]) + (", …" if len(found["tags"]) > 5 else "")
        said += (
            f"; where a tag is not known ({tags}; {found['by_characters']} of {found['leaves']} leaves), by "
            "Unicode's categories of the characters"
        )
    return said


def _table(rows: dict[str, dict[str, float]]) -> str:
    """Named rows of numbers below their heads."""
    lines = [[name, *row.values()] for name, row in rows.items()]
    heads = ["", *(LABELS.get(key, key) for key in next(iter(rows.values()), {}))]
    return tabulate(lines, heads, tablefmt="plain", floatfmt=".2f")

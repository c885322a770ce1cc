"""Read the output of `synmask parse`, one JSON object per sentence, and compare it with gold trees."""

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from pydantic import BaseModel, Field, FiniteFloat, TypeAdapter, ValidationError, model_validator

from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_json, read_lines
from synmask.pipeline.syntax.treebank import FAILED, Tree, parse_trees, read_trees, word_difference
from synmask.pipeline.text.notation import to_words


@dataclass(frozen=True)
class Parse:
    """One line of `synmask parse`, or another parser's tree over n words.

    Attributes:
        tokens: n sub-words without `</s>`, or n words.
        distances: n-1, between the tokens; `eos_distance`: before `</s>`. Undefined for other parsers' trees.
        heads: of each word, from 1, 0 = root; None for a system without heads.
        heights: of the sub-words; `parents`: their likely parents (`translation.parse.likely_parents`); both
            for figures.
        spans: (start, end, label) of another parser's tree; `tags`: those of its n words, if it has labels.
        failed: whether another parser found no tree, (()); then there are no tokens.
    """

    tokens: Sequence[str]
    distances: Sequence[float]
    eos_distance: float
    heads: Sequence[int] | None = None
    heights: Sequence[float] = ()
    parents: Sequence[Sequence[tuple[int, float]]] = ()
    spans: Sequence[tuple[int, int, str]] | None = None
    tags: Sequence[str] = ()
    failed: bool = False


_PARSE = TypeAdapter(Parse)


def read_parses(path: Path) -> Iterator[Parse]:
    """Read a file of `synmask parse`.

    Raises:
        UserError: a line is malformed, a distance is NaN, or its tokens, distances, heads, heights and
            parents do not fit together.
    """
    for line, text in enumerate(read_lines(path), start=1):
        try:
            parse = _PARSE.validate_json(text)
            if any(map(math.isnan, [*parse.distances, parse.eos_distance])):
                raise ValueError
        except ValueError:  # also pydantic's ValidationError
            raise UserError(
                f"{path}, line {line}: not tokens, distances and eos_distance of a parse; parse again"
            ) from None
        if misfit := _parse_fault(parse):
            raise UserError(f"{path}, line {line}: {misfit}; parse again")
        yield parse


def _parse_fault(parse: Parse) -> str | None:
    """The fault in the distances, heads, heights and parents of a parse; None without one."""
    words, pieces = len(to_words(parse.tokens)), len(parse.tokens)
    if len(parse.distances) != max(pieces - 1, 0):
        return f"{len(parse.distances)} distances for {pieces} tokens"
    if parse.heads is not None and len(parse.heads) != words:
        return f"{len(parse.heads)} induced heads for {words} words"
    if parse.heads is not None and any(not 0 <= head <= words for head in parse.heads):
        return f"an induced head outside of 0 to {words}"
    for name, values in (("heights", parse.heights), ("lists of parents", parse.parents)):
        if values and len(values) != pieces:
            return f"{len(values)} {name} for {pieces} tokens"
    if any(not 0 <= parent <= pieces for parents in parse.parents for parent, _ in parents):
        return f"a parent outside of 0 to {pieces}"
    return None


def read_tree_pairs(gold: Path, predicted: Path) -> Iterator[tuple[Tree, Parse]]:
    """Yield each tree of a treebank (`treebank.read_trees`) with its prediction: output of `synmask parse`,
    or any parser's bracketed trees.

    Bracketed trees have labels or, one per line, none: (the (dog barks)). A file is of the latter kind if
    each line has as many words as the gold tree, or none: (()), a failed parse. To tell them apart, all trees
    are held in memory then.

    Raises:
        UserError: `predicted` is of neither kind, a line is damaged, or trees do not fit together.
    """
    trees, where = read_trees(gold), f"{gold}, {predicted}"
    if predicted.is_dir():
        return pair_up(trees, _parses_of_trees(read_trees(predicted), predicted), where)
    start = next((line.lstrip()[:1] for line in read_lines(predicted) if line.strip()), "(")
    if start == "{":
        return pair_up(trees, read_parses(predicted), where)
    if start != "(":
        reason = "neither a tree in brackets nor what `synmask parse` writes"
        raise UserError(f"{predicted}: {reason}; give one of these per sentence")
    trees = [*trees]
    return pair_up(trees, _read_bracketed(predicted, [len(tree.leaves()) for tree in trees]), where)


def _read_bracketed(path: Path, lengths: Sequence[int]) -> list[Parse]:
    """A parser's bracketed trees; `lengths`: the words of each gold tree."""
    lines = list(read_lines(path))
    words = [len(re.findall(r"[^\s()]+", line)) for line in lines if line.strip()]
    bare = len(words) == len(lengths) and all(
        count in (0, length) or length == 0 for count, length in zip(words, lengths, strict=True)
    )
    if not bare:
        try:
            return [*_parses_of_trees(parse_trees(lines, str(path)), path)]
        except UserError as error:
            hint = "or, if trees have no labels, give one per line with as many words as the gold tree"
            raise UserError(f"{error}; {hint}") from None
    labelled = (
        re.sub(r"\(|[^\s()]+", _with_label, line) if re.search(r"[^\s()]", line) else line for line in lines
    )
    # drop brackets around single words, and repeated ones
    return [
        replace(parse, spans=sorted({span for span in parse.spans if span[1] - span[0] > 1}), tags=())
        for parse in _parses_of_trees(parse_trees(labelled, str(path)), path)
    ]


def _with_label(token: re.Match) -> str:
    return "(X " if token[0] == "(" else f"(X {token[0]})"


def _parses_of_trees(trees: Iterable[Tree], path: Path) -> Iterator[Parse]:
    for number, tree in enumerate(trees, start=1):
        words = tree.leaves()
        if pieces := [word for word in words if word.endswith("@@")]:
            raise UserError(
                f'{path}, tree {number}: "{pieces[0]}" is a piece of a word; give trees over words'
            )
        failed = tree.label == FAILED
        spans = [] if failed else tree.spans()
        distances = [0.0] * (len(words) - 1)
        yield Parse(words, distances, 0.0, spans=spans, tags=tree.tags(), failed=failed)


class SentenceDistribution(BaseModel):
    """The sentence chosen by `synmask parse --distribution`: its number from 1, its n tokens with `</s>`, and
    P_D (n, n); tokens and P_D are empty if the guide induces no P_D."""

    sentence: int = Field(ge=1)
    tokens: list[str] = []
    distribution: list[list[FiniteFloat]] = []

    @model_validator(mode="after")
    def _is_square(self) -> Self:
        sizes = {len(self.distribution), *map(len, self.distribution)}
        if sizes != {len(self.tokens)}:
            raise ValueError(f"P_D is not one row and one column for each of {len(self.tokens)} tokens")
        return self


def read_distribution(path: Path) -> SentenceDistribution:
    """Read a file of `synmask parse --distribution`.

    Raises:
        UserError: it is missing, or of another kind.
    """
    try:
        return SentenceDistribution.model_validate(read_json(path))
    except ValidationError as error:
        first_error = error.errors()[0]
        where = ": ".join([str(path), *map(str, first_error["loc"]), first_error["msg"]])
        raise UserError(f"{where}; give what `synmask parse --distribution` wrote") from None


def pair_up(trees: Iterable[Tree], parses: Iterable[Parse], where: str) -> Iterator[tuple[Tree, Parse]]:
    """Yield each gold tree with its parse; `where`: the files, for messages.

    Raises:
        UserError: there are more of one, or their words differ (case aside). A tree or a parse that says that
            a parser failed has no words to compare.
    """
    for line, (tree, parse) in enumerate(itertools.zip_longest(trees, parses), start=1):
        if tree is None or parse is None:
            more, fewer = ("parses", "gold trees") if tree is None else ("gold trees", "parses")
            advice = f"more {more} than {fewer} ({line - 1}); give one parse per tree"
            raise UserError(f"{where}: line {line}: {advice}")
        if not parse.failed and (difference := word_difference(to_words(parse.tokens), tree)):
            advice = "give both the same sentences, tokenised alike"
            raise UserError(f"{where}: line {line}: {difference} as in the gold tree; {advice}")
        yield tree, parse

"""Faults that make a sentence of the demo's English unacceptable, with the words of good sentences."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from synmask.pipeline.corpora.demo.abstract import Clause, Complement, Nominal
from synmask.pipeline.corpora.demo.phrases import Phrase, Row, Word, side_of, words
from synmask.pipeline.corpora.demo.sampling import Grammar
from synmask.pipeline.corpora.demo.variants import INFLECTIONS, child, english, lexical, replaced, variants

# Verbs that need an object in every reading, and verbs that cannot have two.
TRANSITIVE = {
    "carry", "lift", "discard", "take", "invite", "mock", "introduce", "discover", "need", "prefer", "hate",
}  # fmt: skip
ONE_OBJECT = {
    "see", "observe", "discover", "know", "love", "hate", "need", "miss", "visit", "meet", "invite", "mock",
    "buy", "sell", "carry", "collect", "steal", "lift", "discard", "help", "thank", "follow", "trust",
}  # fmt: skip


def agreement(clause: Clause, _: Grammar) -> Iterator[Phrase]:
    """A verb whose number differs from its subject's, in a relative clause or separated from the subject by a
    phrase or clause."""

    def other_number(part: Clause | Nominal) -> Iterator[Clause | Nominal]:
        if isinstance(part, Nominal):
            if part.relative and _inflected(part.relative):
                yield replace(part, relative=_flipped(part.relative))
        elif part.subject and (part.subject.attribute or part.subject.relative) and _inflected(part):
            yield _flipped(part)

    return map(english, variants(clause, Clause | Nominal, other_number))


def _inflected(clause: Clause) -> bool:
    return clause.tense == "present" and clause.person > 0


def _flipped(clause: Clause) -> Clause:
    return replace(clause, person=3 - clause.person)


def verb_form(clause: Clause, _: Grammar) -> Iterator[Phrase]:
    """Two verbs in each other's form: "who works will laugh" → "who work will laughs"."""
    found = list(words(english(clause)))
    bare = [index for index, word in enumerate(found) if word.tag == "VB"]
    finite = [i for i, word in enumerate(found) if word.tag in ("VBZ", "VBD") and word.form in INFLECTIONS]
    for i in bare:
        for j in finite:
            swapped = list(found)
            form = 1 if found[j].tag == "VBZ" else 2
            swapped[i] = Word("VB", INFLECTIONS[found[i].form][form])
            swapped[j] = Word(found[j].tag, INFLECTIONS[found[j].form][0])
            yield Phrase("S", tuple(swapped), 0)


def verb_last(clause: Clause, _: Grammar) -> Iterator[Phrase]:
    """A verb after its object, as in German: "because the dog the man sees"."""

    def german_order(part: Phrase) -> Iterator[Phrase]:
        if part.label == "S" and child(part, "NP"):  # without a subject, "who sees the dog" becomes good
            active = lexical(child(part, "VP"))
            if affected := child(active, "NP"):
                verb, *rest = (c for c in active.children if c is not affected)
                yield replaced(part, active, active._replace(children=(affected, verb, *rest)))

    return variants(english(clause), Phrase, german_order)


def missing(clause: Clause, _: Grammar) -> Iterator[Phrase]:
    """A verb without the object that it needs (and that no relative pronoun represents)."""

    def without(part: Clause) -> Iterator[Clause]:
        kept = tuple(c for c in part.complements if c.english)
        if part.verb.english in TRANSITIVE and len(kept) < len(part.complements):
            yield replace(part, complements=kept)

    return map(english, variants(clause, Clause, without))


def doubled(clause: Clause, grammar: Grammar) -> Iterator[Phrase]:
    """A relative clause about the verb's object, with another object: "whom the dog sees the cat"."""

    def with_object(part: Nominal) -> Iterator[Nominal]:
        relative = part.relative
        if relative and relative.subject and relative.verb.english in ONE_OBJECT:
            kinds = ("person",) if part.noun.kind == "person" else ("thing",)
            extra = Complement("", "acc", "", grammar.nominal(kinds, 0))
            yield replace(part, relative=replace(relative, complements=(extra, *relative.complements)))

    return map(english, variants(clause, Nominal, with_object))


FAULTS: tuple[Callable[[Clause, Grammar], Iterator[Phrase]], ...] = (
    agreement,
    verb_form,
    verb_last,
    missing,
    doubled,
)


def acceptability(grammar: Grammar, label: str) -> Row | None:
    """A sentence that allows a fault, and has it with label 0. None if this draw allows no such fault.

    Sentences of both labels come from the same draws; only the faults make them differ.
    """
    fault = grammar.rng.choice(FAULTS)
    clause = grammar.main_clause(depth=1)
    faulty = list(fault(clause, grammar))
    if not faulty:
        return None
    return (side_of(english(clause) if label == "1" else grammar.rng.choice(faulty)),), label

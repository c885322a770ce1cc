"""Variants of English sentences: passives and fronted adverbs, made from the phrases of `english`."""

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from synmask.pipeline.corpora.demo import lexicon
from synmask.pipeline.corpora.demo.abstract import Clause
from synmask.pipeline.corpora.demo.english import sentence
from synmask.pipeline.corpora.demo.phrases import Phrase, Word, phrase, unary, words

# if they differ from the past; the corpus has no participles
PARTICIPLES = dict(
    take="taken", steal="stolen", hide="hidden", see="seen", know="known", give="given", show="shown"
)
OBJECT_FORMS = {"I": "me", "he": "him", "she": "her", "we": "us", "they": "them"}
INFLECTIONS = {  # any form of a verb → base, third person, past
    form: forms
    for verbs in lexicon.VERBS.values()
    for forms in ((verb.english, lexicon.with_s(verb.english), verb.past) for verb in verbs)
    for form in forms
}


def english(clause: Clause) -> Phrase:
    """The English sentence of one main clause."""
    return sentence([(("", ""), clause)])


def variants(node: Any, kind: type, change: Callable[[Any], Iterator]) -> Iterator:
    """Every copy of a structure (clauses or phrases) in which `change` has replaced one part of type `kind`.

    `change` yields the replacements of a part, possibly none.
    """
    if isinstance(node, kind):
        yield from change(node)
    if is_dataclass(node):
        for field in fields(node):
            for part in variants(getattr(node, field.name), kind, change):
                yield replace(node, **{field.name: part})
    elif isinstance(node, tuple):
        for index, inner in enumerate(node):
            for part in variants(inner, kind, change):
                copy = (*node[:index], part, *node[index + 1 :])
                yield node._make(copy) if hasattr(node, "_make") else copy


def child(node: Phrase, *labels: str) -> Phrase | None:
    """The first child that is a phrase with one of these labels."""
    return next((c for c in node.children if isinstance(c, Phrase) and c.label in labels), None)


def replaced(node: Phrase | Word, old: Phrase | Word, new: Phrase | Word) -> Phrase | Word:
    """A copy of `node` with `new` in place of the object `old`."""
    if node is old:
        return new
    if isinstance(node, Word):
        return node
    return node._replace(children=tuple(replaced(c, old, new) for c in node.children))


def lexical(predication: Phrase) -> Phrase:
    """The phrase of the main verb: the inner one, if there is an auxiliary."""
    return child(predication, "VP") or predication


def passives(node: Phrase) -> Iterator[Phrase]:
    """The passive of a clause with subject and object, or of the object relative clause in a noun phrase:
    "whom the dog sees" → "who is seen by the dog"."""
    if node.label == "S":
        subject, predication = child(node, "NP"), child(node, "VP")
        affected = predication and child(lexical(predication), "NP")
        if subject and affected:
            said = _passive(predication, subject, _plural(affected))
            parts = (affected if c is subject else said if c is predication else c for c in node.children)
            yield node._replace(children=tuple(parts))
    if node.label == "NP" and (relative := child(node, "SBAR")):
        pronoun, clause = relative.children
        subject, predication = child(clause, "NP"), child(clause, "VP")
        if subject:
            said = _passive(predication, subject, _plural(node))
            form = next(words(pronoun)).form.replace("whom", "who")
            inner = phrase("S", said, head=said)
            relative = phrase("SBAR", unary("WHNP", "WP", form), inner, head=inner)
            yield node._replace(children=(*node.children[:-1], relative))


def _plural(nominal: Phrase) -> bool:
    """Whether a noun phrase (no pronoun) takes a verb in the plural."""
    while isinstance(head := nominal.children[nominal.head], Phrase) and not _coordinated(nominal):
        nominal = head
    return _coordinated(nominal) or head.tag == "NNS"


def _coordinated(nominal: Phrase) -> bool:
    return any(isinstance(c, Word) and c.tag == "CC" for c in nominal.children)


def _passive(predication: Phrase, subject: Phrase, plural: bool) -> Phrase:
    """ "is seen by SUBJECT" for "sees (the object)"; `plural` is the number of the object."""
    finite = predication.children[predication.head]
    active = lexical(predication)
    verb, *rest = (c for c in active.children if c is not child(active, "NP"))
    base, _, past = INFLECTIONS[verb.form]
    participle = Word("VBN", PARTICIPLES.get(base, past))
    preposition = Word("IN", "by")
    by = phrase("PP", preposition, _object_form(subject), head=preposition)
    said = phrase("VP", participle, by, *rest, head=participle)
    if finite.tag == "MD":
        auxiliary, be = finite, Word("VB", "be")
        said = phrase("VP", be, said, head=be)
    elif finite.tag == "VBD":
        auxiliary = Word("VBD", "were" if plural else "was")
    else:
        auxiliary = Word("VBP", "are") if plural else Word("VBZ", "is")
    negation = next((c for c in predication.children if c == Word("RB", "not")), None)
    return phrase("VP", auxiliary, negation, said, head=auxiliary)


def _object_form(nominal: Phrase) -> Phrase:
    pronoun = nominal.children[0]
    if isinstance(pronoun, Word) and pronoun.tag == "PRP":
        return unary("NP", "PRP", OBJECT_FORMS[pronoun.form])
    return nominal


def adverb_first(clause: Phrase) -> Iterator[Phrase]:
    """An active clause with its verb's adverb before the subject."""
    active = lexical(child(clause, "VP"))
    adverb = child(active, "ADVP")
    if adverb and not child(clause, "SBAR"):
        shorter = active._replace(children=tuple(c for c in active.children if c is not adverb))
        clause = replaced(clause, active, shorter)
        yield clause._replace(children=(adverb, *clause.children), head=clause.head + 1)

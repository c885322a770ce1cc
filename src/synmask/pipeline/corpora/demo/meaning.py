"""The demo's pairs of sentences with the same or nearly the same meaning."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from synmask.pipeline.corpora.demo import lexicon
from synmask.pipeline.corpora.demo.abstract import Clause, Complement, Nominal
from synmask.pipeline.corpora.demo.phrases import Phrase, Row, Side, side_of
from synmask.pipeline.corpora.demo.sampling import Grammar
from synmask.pipeline.corpora.demo.variants import adverb_first, english, passives, variants

SYMMETRIC = {"meet", "marry"}  # same meaning with subject and object exchanged
ASYMMETRIC = {"because", "although", "before", "after"}  # other meaning with clauses exchanged
DEFINITE = ("der", "der", "mein", "unser", "dieser")  # with others, voice can change the meaning
STYLES = ("adverb", "subordinate", "relative", "passive")


class Definite(Grammar):
    """Draws clauses about definite persons and things, from which pairs are made."""

    def determiner(self, person: int) -> str:
        return self.rng.choice(DEFINITE)

    def deed(self, depth: int) -> Clause:
        """Somebody does something to somebody; no pronouns, no other complements."""
        while True:
            clause = self.clause(depth, frames=("person", "perception", "state", "dative"))
            affected = clause.complements[0].nominal
            people = {n.noun for n in (clause.subject, affected) if n.noun and n.noun.kind == "person"}
            if len(people) == 2 and clause.verb.english not in SYMMETRIC:
                return replace(clause, complements=clause.complements[:1])

    def noun(self, kind: str, determiner: str) -> Nominal:
        """One person or thing, without modifiers."""
        return Nominal(1, noun=self.rng.choice(lexicon.NOUNS[kind]), determiner=determiner)

    def frame(self) -> str:
        """The frame of a verb that is complete with a subject, or with a subject and an object."""
        return self.rng.choice(("intransitive", "intransitive", "thing", "perception", "state", "dative"))


def styled(clause: Clause, style: Sequence[str]) -> Side | None:
    """The clause as a sentence in a style; None if the style does not apply.

    Args:
        style: some of "adverb" (it comes first), "subordinate" (the subordinate clause comes first),
            "relative" (a relative clause in the passive), "passive" (the main clause in the passive).
    """
    if "subordinate" in style:
        if not clause.subordinate:
            return None
        clause = replace(clause, front="subordinate")
    sentence = english(clause)
    for name, change in (("adverb", adverb_first), ("relative", _passive_relatives), ("passive", passives)):
        if name in style:
            sentence = next(change(sentence), None)
            if sentence is None:
                return None
    return side_of(sentence)


def _passive_relatives(sentence: Phrase) -> Iterator[Phrase]:
    def change(part: Phrase) -> Iterator[Phrase]:
        return passives(part) if part.label == "NP" else iter(())

    return variants(sentence, Phrase, change)


def paraphrase(grammar: Definite, label: str) -> Row | None:
    """Two sentences of the same words in different styles; with label 0 their meanings differ.

    None if this draw has no such styles.
    """
    clause = grammar.deed(depth=0)
    if grammar.chance(0.3):
        subordinator = grammar.rng.choice(lexicon.SUBORDINATORS)
        clause = replace(clause, subordinate=(subordinator, grammar.deed(depth=0)))
    other = grammar.rng.choice(list(exchanges(clause)))
    # Both styles must apply to both clauses for either label, so that styles do not reveal the label.
    usable = [kind for kind in STYLES if styled(clause, [kind]) and styled(other, [kind])]
    first, second = grammar.rng.sample(range(2 ** len(usable)), 2)
    styles = [[kind for bit, kind in enumerate(usable) if number >> bit & 1] for number in (first, second)]
    one, same, different = styled(clause, styles[0]), styled(clause, styles[1]), styled(other, styles[1])
    if one and same and different:
        return (one, same if label == "1" else different), label
    return None


def exchanges(clause: Clause) -> Iterator[Clause]:
    """Other meanings with the words of a clause: other roles, modifiers or dependencies."""
    yield from variants(clause, Clause, other_roles)
    yield from variants(clause, Clause, _other_modifiers)
    yield from variants(clause, Nominal, _other_relative)
    if clause.subordinate and clause.subordinate[0][1] in ASYMMETRIC:
        word, inner = clause.subordinate
        yield replace(inner, subordinate=(word, replace(clause, subordinate=None)))


def other_roles(clause: Clause) -> Iterator[Clause]:
    """The clause with subject and object exchanged, if it has both."""
    if clause.subject and clause.complements and clause.complements[0].nominal.noun:
        subject, (affected, *_) = clause.subject, clause.complements
        changed = (replace(affected, nominal=subject),)
        yield replace(clause, subject=affected.nominal, person=affected.nominal.person, complements=changed)


def _other_modifiers(clause: Clause) -> Iterator[Clause]:
    """Exchange adjectives, attribute and relative clause of subject and object."""
    if clause.subject and clause.complements:
        subject, affected = clause.subject, clause.complements[0].nominal
        names = ("adjectives", "attribute", "relative", "relative_case")
        ours, theirs = ({name: getattr(n, name) for name in names} for n in (subject, affected))
        if ours != theirs and subject.person == affected.person:
            changed = (replace(clause.complements[0], nominal=replace(affected, **ours)),)
            yield replace(clause, subject=replace(subject, **theirs), complements=changed)


def _other_relative(nominal: Nominal) -> Iterator[Nominal]:
    """Turn an object relative clause into a subject relative clause."""
    relative = nominal.relative
    if not relative or relative.verb.english in SYMMETRIC:
        return
    if relative.subject and relative.subject.noun and nominal.noun.kind == "person":
        inner = Complement("", "acc", "", relative.subject)
        relative = replace(relative, person=nominal.person, subject=None, complements=(inner,))
        yield replace(nominal, relative=relative, relative_case="nom")


def restated(grammar: Definite) -> list[Side]:
    """Two sentences in any style; the second means the same as the first, or nearly the same."""
    clause = grammar.deed(depth=int(grammar.chance(0.5)))
    if grammar.chance(0.3):
        clause = replace(
            clause, subordinate=(grammar.rng.choice(lexicon.SUBORDINATORS), grammar.deed(depth=0))
        )
    other = clause
    for edit in grammar.rng.sample(EDITS, grammar.rng.choice((0, 0, 1, 2))):
        other = edit(grammar, other)
    return [_in_some_style(grammar, said) for said in (clause, other)]


def _in_some_style(grammar: Definite, clause: Clause) -> Side:
    return grammar.rng.choice(
        [said for style in ([], *([kind] for kind in STYLES)) if (said := styled(clause, style))]
    )


def _other_verb(grammar: Definite, clause: Clause) -> Clause:
    verbs = [verb for verb in lexicon.VERBS[clause.verb.frame] if verb.english not in SYMMETRIC]
    return replace(clause, verb=grammar.rng.choice(verbs))


def _other_adverb(grammar: Definite, clause: Clause) -> Clause:
    adverbs = lexicon.ADVERBS["modal" if clause.tense in lexicon.MODALS else clause.tense]
    return replace(clause, adverb=None if clause.adverb else grammar.rng.choice(adverbs))


def _other_subject(grammar: Definite, clause: Clause) -> Clause:
    return replace(clause, subject=_other_person(grammar, clause.subject))


def _other_object(grammar: Definite, clause: Clause) -> Clause:
    affected = clause.complements[0]
    return replace(clause, complements=(replace(affected, nominal=_other_person(grammar, affected.nominal)),))


def _other_person(grammar: Definite, nominal: Nominal) -> Nominal:
    """Another noun, or the same with another modifier."""
    if grammar.chance(0.4):
        return replace(nominal, noun=grammar.rng.choice(lexicon.NOUNS["person"]))
    if nominal.adjectives or grammar.chance(0.5):
        return replace(nominal, compound=grammar.rng.choice(lexicon.COMPOUNDS))
    return replace(nominal, adjectives=(grammar.adjective(nominal.noun),))


EDITS = (_other_verb, _other_adverb, _other_subject, _other_object)

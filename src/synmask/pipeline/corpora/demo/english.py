"""The English side: fixed word order, auxiliaries and agreement."""

from collections.abc import Sequence

from synmask.pipeline.corpora.demo import lexicon
from synmask.pipeline.corpora.demo.abstract import Clause, Complement, Nominal
from synmask.pipeline.corpora.demo.lexicon import with_s
from synmask.pipeline.corpora.demo.phrases import Phrase, Word, joined, phrase, unary, words


def sentence(clauses: Sequence[tuple[tuple[str, str], Clause]]) -> Phrase:
    """One main clause or two, each with the conjunction (German, English) before it."""
    parts = [_clause(clause) for _, clause in clauses]
    return joined(parts, [conjunction for (_, conjunction), _ in clauses[1:]], (",", "CC", "."))


def _clause(clause: Clause, infinitive: bool = False) -> Phrase:
    subject = _nominal(clause.subject) if clause.subject else None
    adverb = unary("ADVP", "RB", clause.adverb[1]) if clause.adverb else None
    complements = [_complement(c) for c in sorted(clause.complements, key=lambda c: bool(c.english))]
    predicate = _adjective(clause.predicate[1]) if clause.predicate else None
    after = _after(clause)
    first = after if clause.front == "subordinate" else None
    negation = Word("RB", "not") if clause.negated else None
    auxiliary, verb = _verb(clause, infinitive)
    rest = [*complements, predicate, adverb, None if first else after]
    if auxiliary:
        inner = phrase("VP", verb, *rest, head=verb)
        predication = phrase("VP", auxiliary, negation, inner, head=auxiliary)
    else:
        predication = phrase("VP", verb, negation, *rest, head=verb)
    comma = Word(",", ",") if first else None
    return phrase("S", first, comma, subject, predication, head=predication)


def _after(clause: Clause) -> Phrase | None:
    if clause.infinitive:
        return _clause(clause.infinitive, infinitive=True)
    if clause.subordinate:
        (_, word), inner = clause.subordinate
        inner = _clause(inner)
        return phrase("SBAR", Word("IN", word), inner, head=inner)
    return None


def _verb(clause: Clause, infinitive: bool) -> tuple[Word | None, Word]:
    """The auxiliary, if there is one, and the verb; the German perfect is the English past."""
    verb = clause.verb
    base = Word("VB", verb.english)
    third = clause.person == 1
    present = "VBZ" if third else "VBP"
    if infinitive:
        return Word("TO", "to"), base
    if clause.tense in lexicon.MODALS:
        return Word("MD", lexicon.MODALS[clause.tense]), base
    if verb.frame == "copula":
        return None, Word(present, ("am", "is", "are")[clause.person])
    if clause.negated and clause.tense == "perfect":
        return Word("VBD", "did"), base
    if clause.negated:
        return Word(present, "does" if third else "do"), base
    if clause.tense == "perfect":
        return None, Word("VBD", verb.past)
    return None, Word(present, with_s(verb.english) if third else verb.english)


def _complement(complement: Complement) -> Phrase:
    nominal = _nominal(complement.nominal)
    if not complement.english:
        return nominal
    preposition = Word("IN", complement.english)
    return phrase("PP", preposition, nominal, head=preposition)


def _nominal(nominal: Nominal) -> Phrase:
    if nominal.pronoun:
        return unary("NP", "PRP", nominal.pronoun[1])
    if nominal.conjuncts:
        first, second = map(_nominal, nominal.conjuncts)
        return phrase("NP", first, Word("CC", "and"), second, head=first)
    plural = nominal.person == 2
    adjectives = [_adjective(english) for _, english in nominal.adjectives]
    compound = Word("NN", nominal.compound[1]) if nominal.compound[1] else None
    noun = Word("NNS", nominal.noun.english_plural) if plural else Word("NN", nominal.noun.english)
    named = phrase("NP", *adjectives, compound, noun, head=noun)
    determiner = lexicon.DETERMINERS[nominal.determiner][plural]
    if determiner == "a" and next(words(named)).form[0] in "aeiou":
        determiner = "an"
    article = Word("DT", determiner) if determiner else None
    base = phrase("NP", article, *named.children, head=noun)
    if not nominal.attribute and not nominal.relative:
        return base
    attribute = _complement(nominal.attribute) if nominal.attribute else None
    return phrase("NP", base, attribute, _relative(nominal), head=base)


def _relative(nominal: Nominal) -> Phrase | None:
    if nominal.relative is None:
        return None
    clause = _clause(nominal.relative)
    pronoun = "who" if nominal.relative_case == "nom" else "whom"
    if nominal.noun.kind != "person":
        pronoun = "that"
    return phrase("SBAR", unary("WHNP", "WP", pronoun), clause, head=clause)


def _adjective(english: str) -> Phrase | Word:
    shade, _, adjective = english.rpartition(" ")
    head = Word("JJ", adjective)
    return phrase("ADJP", Word("RB", shade), head, head=head) if shade else head

"""The German side: word order, case, agreement and separable verbs."""

import re
from collections.abc import Sequence

from synmask.pipeline.corpora.demo import lexicon
from synmask.pipeline.corpora.demo.abstract import Clause, Complement, Nominal
from synmask.pipeline.corpora.demo.phrases import Phrase, Word, joined, phrase, unary


def sentence(clauses: Sequence[tuple[tuple[str, str], Clause]]) -> Phrase:
    """One main clause or two, each with the conjunction (German, English) before it."""
    parts = [_clause(clause, "main") for _, clause in clauses]
    return joined(parts, [conjunction for (conjunction, _), _ in clauses[1:]], ("$,", "KON", "$."))


def _clause(clause: Clause, order: str) -> Phrase:
    """`order`: "main" (finite verb second), "last" (finite verb last) or "zu" (infinitive)."""
    subject = _nominal(clause.subject, "nom") if clause.subject else None
    adverb = unary("ADVP", "ADV", clause.adverb[0]) if clause.adverb else None
    objects = [_complement(c) for c in clause.complements if not c.german]
    others = [_complement(c) for c in clause.complements if c.german]
    negation = Word("PTKNEG", "nicht") if clause.negated else None
    predicate = unary("AP", "ADJD", clause.predicate[0]) if clause.predicate else None
    middle = [adverb, *objects, negation, *others, predicate]
    after = _after(clause)
    finite, rest = _verb(clause, order)
    if order == "main":
        first_object = objects[0] if objects else None
        fronts = dict(subject=subject, adverb=adverb, object=first_object, subordinate=after)
        front = fronts[clause.front]  # it moves from its own place
        subject, after, *middle = (None if node is front else node for node in (subject, after, *middle))
    if order == "zu" and not clause.verb.particle:
        middle.append(Word("PTKZU", "zu"))
    if rest and rest.tag != "PTKVZ":  # a participle or infinitive forms a phrase with everything before it
        middle, rest = [phrase("VP", *middle, rest, head=rest)], None
    if order == "main":
        return phrase("S", front, finite, subject, *middle, rest, after, head=finite)
    verb = phrase("VP", *middle, finite, head=finite) if finite else middle[0]
    return phrase("S", subject, verb, after, head=verb)


def _after(clause: Clause) -> Phrase | None:
    """The clause that depends on the verb, between commas."""
    comma = Word("$,", ",")
    if clause.infinitive:
        inner, subordinator = _clause(clause.infinitive, "zu"), None
    elif clause.subordinate:
        (word, _), inner = clause.subordinate
        inner, subordinator = _clause(inner, "last"), Word("KOUS", word)
    else:
        return None
    return phrase("SBAR", comma, subordinator, inner, comma, head=inner)


def _verb(clause: Clause, order: str) -> tuple[Word | None, Word | None]:
    """The finite verb, and the part separated from it: particle, participle or infinitive."""
    verb = clause.verb
    infinitive, participle = verb.particle + verb.infinitive, verb.particle + verb.participle
    if order == "zu" and verb.particle:
        return None, Word("VVIZU", verb.particle + "zu" + verb.infinitive)
    if order == "zu":
        return None, Word("VVINF", infinitive)
    if clause.tense == "perfect":
        return Word("VAFIN", lexicon.FORMS[verb.auxiliary][clause.person]), Word("VVPP", participle)
    if clause.tense != "present":
        tag = "VAFIN" if clause.tense == "werden" else "VMFIN"
        return Word(tag, lexicon.FORMS[clause.tense][clause.person]), Word("VVINF", infinitive)
    regular = (verb.infinitive[:-2] + "e", verb.third, verb.infinitive)
    form = lexicon.FORMS.get(verb.infinitive, regular)[clause.person]
    tag = "VAFIN" if verb.frame == "copula" else "VVFIN"
    if order == "last" or not verb.particle:
        return Word(tag, verb.particle + form), None
    return Word(tag, form), Word("PTKVZ", verb.particle)


def _complement(complement: Complement) -> Phrase:
    nominal = _nominal(complement.nominal, complement.case)
    if not complement.german:
        return nominal
    preposition = Word("APPR", complement.german)
    first = nominal.children[0]
    if (complement.german, getattr(first, "form", "")) in lexicon.CONTRACTIONS:
        preposition = Word("APPRART", lexicon.CONTRACTIONS[complement.german, first.form])
        nominal = Phrase("NP", nominal.children[1:], nominal.head - 1)
    return phrase("PP", preposition, nominal, head=preposition)


def _nominal(nominal: Nominal, case: str) -> Phrase:
    if nominal.pronoun:
        return unary("NP", "PPER", nominal.pronoun[0])
    if nominal.conjuncts:
        first, second = (_nominal(conjunct, case) for conjunct in nominal.conjuncts)
        return phrase("NP", first, Word("KON", "und"), second, head=first)
    determiner = _determiner(nominal.determiner, case, nominal.gender)
    ending = _adjective_ending(nominal.determiner, case, nominal.gender)
    adjectives = [Word("ADJA", german.removesuffix("e") + ending) for german, _ in nominal.adjectives]
    noun = Word("NN", _noun(nominal, case))
    attribute = _complement(nominal.attribute) if nominal.attribute else None
    article = Word("ART", determiner) if determiner else None
    return phrase("NP", article, *adjectives, noun, attribute, _relative(nominal), head=noun)


def _relative(nominal: Nominal) -> Phrase | None:
    if nominal.relative is None:
        return None
    comma = Word("$,", ",")
    clause = _clause(nominal.relative, "last")
    pronoun = _determiner("der", nominal.relative_case, nominal.gender)
    if nominal.relative_case == "dat" and nominal.gender == "pl":
        pronoun = "denen"
    return phrase("SBAR", comma, Word("PRELS", pronoun), clause, comma, head=clause)


def _noun(nominal: Nominal, case: str) -> str:
    noun = nominal.noun
    if nominal.person == 2:
        form = noun.plural + ("n" if case == "dat" and noun.plural[-1] not in "ns" else "")
    elif noun.gender == "w" and case != "nom":
        form = noun.plural
    elif case == "gen" and noun.gender in "mn":
        form = noun.german + ("es" if len(re.findall("[aeiouäöü]+", noun.german.lower())) == 1 else "s")
    else:
        form = noun.german
    return nominal.compound[0] + form.lower() if nominal.compound[0] else form


def _takes_no_ending(determiner: str, case: str, gender: str) -> bool:
    bare = (case, gender) in lexicon.BARE or (determiner == "ein" and gender == "pl")
    return bare and determiner not in ("der", "dieser", "jeder")


def _determiner(determiner: str, case: str, gender: str) -> str:
    if determiner == "ein" and gender == "pl":
        return ""
    if _takes_no_ending(determiner, case, gender):
        return determiner
    ending = lexicon.ENDINGS[case][gender]
    if determiner == "der":
        irregular = {"e": "die", "es": "des" if case == "gen" else "das"}
        return irregular.get(ending, "d" + ending)
    stem = determiner.removesuffix("er") if determiner in ("dieser", "jeder") else determiner
    return stem + ending


def _adjective_ending(determiner: str, case: str, gender: str) -> str:
    """Strong if the determiner has no ending of its own, else weak."""
    if _takes_no_ending(determiner, case, gender):
        return lexicon.ENDINGS[case][gender]
    return "e" if (case, gender) in lexicon.WEAK_E else "en"

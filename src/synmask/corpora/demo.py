"""The demo corpus: German-like source, English-like target, gold trees and heads, from one grammar.

A sentence is drawn as abstract syntax (`Clause`, `Nominal`, `Complement`), which knows no word order. Two
linearisers turn it into phrases that know their head child; the text, the constituency tree and the
dependency heads of a side are all read off the same phrase, so that they cannot disagree.

The translation follows from the source sentence alone. What has to be understood for it:
- the verb stands last in subordinate clauses, and behind its objects next to an auxiliary;
- a particle at the end of the clause decides the verb (`nimmt … an` accepts, `nimmt … mit` takes);
- case decides who does what (`Den Arzt sieht die Frau`), and whether `in` is "in" or "into";
- the verb's number, far away, decides whether `sie` is "she" or "they", and who acts in `die Frau, die
  die Kinder sehen`;
- the verb decides where a phrase attaches: `sieht die Frau mit der Kamera` is "through", `kennt die Frau
  mit der Kamera` is "with".

Dependency heads: the finite verb heads its clause, an auxiliary its verb, a preposition its noun, the first
conjunct the others; commas hang on the head of the clause that they set off, the full stop on the root.
Every arc is projective.
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from synmask.corpora import demo_lexicon as lexicon
from synmask.corpora.demo_lexicon import Noun, Verb, with_s
from synmask.files import UserError, write_lines
from synmask.syntax.treebank import Tree

SPLITS = ("train", "valid", "test")
LENGTHS = range(4, 31)  # tokens a side, the full stop counted

FRAMES = dict(  # how often a verb of each frame is drawn
    intransitive=14, thing=14, person=12, perception=12, state=10, dative=7, ditransitive=9, motion=8,
    prepositional=9, place=4, copula=6, that=7, infinitive=7,
)  # fmt: skip
DETERMINERS = dict(der=50, ein=20, mein=9, dieser=7, unser=7, jeder=4, kein=3)  # and each determiner
ATTRIBUTES = ("with", "from", "of")  # of a noun, where none could be taken for a part of the clause


# Abstract syntax.


@dataclass(frozen=True)
class Complement:
    """A noun phrase in its case, with a preposition ("" = none) on either side, the same or not."""

    german: str
    case: str
    english: str
    nominal: "Nominal"


@dataclass(frozen=True)
class Nominal:
    """A pronoun, or a determiner, adjectives and a noun with its modifier, or two of these coordinated."""

    person: int  # 0 ich, 1 er/sie, 2 wir/sie
    pronoun: tuple[str, str] | None = None
    noun: Noun | None = None
    compound: tuple[str, str] = ("", "")
    determiner: str = "der"
    adjectives: tuple[tuple[str, str], ...] = ()
    attribute: Complement | None = None
    relative: "Clause | None" = None
    relative_case: str = "nom"
    conjuncts: "tuple[Nominal, Nominal] | None" = None

    @property
    def gender(self) -> str:
        return "pl" if self.person == 2 else self.noun.gender.replace("w", "m")


@dataclass(frozen=True)
class Clause:
    """A verb with what goes with it; complements in the German order.

    `subject` is None in infinitives and where the subject is relativised; `person` is still its person.
    `front` says what stands before the finite verb if the clause is a main clause.
    """

    verb: Verb
    person: int
    subject: Nominal | None
    tense: str = "present"  # present, perfect, or a modal verb
    negated: bool = False
    adverb: tuple[str, str] | None = None
    predicate: tuple[str, str] | None = None
    complements: tuple[Complement, ...] = ()
    infinitive: "Clause | None" = None
    subordinate: "tuple[tuple[str, str], Clause] | None" = None
    front: str = "subject"  # or adverb, object, subordinate


class Grammar:
    """Draws abstract syntax. Depth bounds the nesting: at depth 0 a noun phrase has adjectives at most.

    Where a phrase could attach to two places, the verb's frame allows one of them only (`attributes`), and a
    relative clause on an object is drawn only where case or number tells it from one on a subject.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def sentence(self) -> list[tuple[tuple[str, str], Clause]]:
        """One main clause or two, each with the conjunction before it."""
        clauses = [(("", ""), self.main_clause(depth=2))]
        if self.chance(0.06):
            clauses.append((self.rng.choice(lexicon.CONJUNCTIONS), self.main_clause(depth=1)))
        return clauses

    def main_clause(self, depth: int) -> Clause:
        clause = self.clause(depth)
        if clause.infinitive is None and clause.subordinate is None and self.chance(0.2):
            subordinate = (self.rng.choice(lexicon.SUBORDINATORS), self.clause(depth - 1))
            front = self.rng.choice(("subject", "subordinate"))
            return replace(clause, subordinate=subordinate, front=front)
        if clause.adverb and self.chance(0.4):
            return replace(clause, front="adverb")
        objects = [c.nominal for c in clause.complements if c.case == "acc" and not c.german]
        # Only the masculine's article tells the accusative from the nominative.
        if objects and objects[0].gender == "m" and self.chance(0.4):
            return replace(clause, front="object")
        return clause

    def clause(self, depth: int, person: int | None = None, frames: Sequence[str] = ()) -> Clause:
        """A clause of one of `frames` (all if empty); given `person`, one without a subject of its own."""
        frames = [f for f in frames or FRAMES if depth > 0 or f not in ("that", "infinitive")]
        frame = self.rng.choices(frames, [FRAMES[f] for f in frames])[0]
        subject = self.subject(frame, depth) if person is None else None
        person = subject.person if subject else person
        clause = self.predication(self.rng.choice(lexicon.VERBS[frame]), person, subject)
        clause = replace(clause, complements=tuple(self.complements(clause.verb, depth)))
        if frame == "copula":
            predicate = self.adjective(subject.noun if subject else None)
            return replace(clause, adverb=None, predicate=predicate)
        if frame == "that":
            return replace(clause, adverb=None, subordinate=(("dass", "that"), self.clause(depth - 1)))
        if frame == "infinitive":
            inner = self.clause(0, person, [f for f in FRAMES if f not in ("place", "copula")])
            inner = replace(inner, tense="present", negated=False, adverb=None)
            return replace(clause, adverb=None, infinitive=inner)
        return clause

    def predication(self, verb: Verb, person: int, subject: Nominal | None) -> Clause:
        """The verb with tense, negation and adverb."""
        tense = self.rng.choices(("present", "perfect", "modal"), (5, 3, 2))[0]
        if tense == "perfect" and verb.frame == "copula":
            tense = "present"
        adverb = self.rng.choice(lexicon.ADVERBS[tense]) if self.chance(0.35) else None
        if tense == "modal":
            tense = self.rng.choice(tuple(lexicon.MODALS))
        return Clause(verb, person, subject, tense, self.chance(0.1), adverb)

    def subject(self, frame: str, depth: int) -> Nominal:
        if frame in ("place", "copula"):
            return self.nominal(("person", "thing", "wear", "optics"), depth)
        if self.chance(0.2):
            german, english, person = self.rng.choice(lexicon.PRONOUNS)
            return Nominal(person, pronoun=(german, english))
        return self.nominal(("person",), depth, ATTRIBUTES[1:] if frame == "perception" else ATTRIBUTES)

    def complements(self, verb: Verb, depth: int) -> Iterator[Complement]:
        """The objects of the verb, in the German order, and perhaps a place or an instrument."""
        person, thing = ("person",), ("thing", "wear", "optics")
        match verb.frame:
            case "thing" | "person" as kind:
                yield Complement("", "acc", "", self.nominal(person if kind == "person" else thing, depth))
            case "perception":
                yield Complement("", "acc", "", self.nominal(person + thing, depth, ATTRIBUTES[1:]))
                if self.chance(0.5):
                    yield Complement("mit", "dat", "through", self.nominal(("optics",), 0))
                    return
            case "state":
                yield Complement("", "acc", "", self.nominal(person + thing, depth, (*ATTRIBUTES, "in")))
                return
            case "dative":
                yield Complement("", "dat", "", self.nominal(person, depth))
            case "ditransitive":
                yield Complement("", "dat", "to", self.nominal(person, max(depth - 1, 0)))
                yield Complement("", "acc", "", self.nominal(thing, depth))
                return
            case "motion" if self.chance(0.6):
                yield Complement("in", "acc", "into", self.nominal(("place",), depth, ("of",)))
                return
            case "prepositional":
                yield Complement(*verb.preposition, self.nominal(person + thing, depth))
                return
            case "copula" | "that" | "infinitive":
                return
        if verb.frame == "place" or self.chance(0.25):
            yield Complement("in", "dat", "in", self.nominal(("place",), depth, ("of",)))

    def nominal(self, kinds: Sequence[str], depth: int, attributes: Sequence[str] = ATTRIBUTES) -> Nominal:
        """A noun phrase about one of `kinds`; `attributes` are those that cannot be mistaken here."""
        if depth > 0 and self.chance(0.06):
            return Nominal(2, conjuncts=(self.nominal(kinds, 0), self.nominal(kinds, 0)))
        person = 2 if self.chance(0.35) else 1
        noun = self.rng.choice(lexicon.NOUNS[self.rng.choice(kinds)])
        nominal = Nominal(
            person,
            noun=noun,
            compound=self.rng.choice(lexicon.COMPOUNDS) if self.chance(0.35) else ("", ""),
            determiner=self.determiner(person),
            adjectives=(self.adjective(noun),) if self.chance(0.25) else (),
        )
        modifier = self.rng.random() if depth > 0 else 1.0
        if modifier < 0.16:
            attribute = self.rng.choice(attributes)
            determiner = "der" if attribute == "of" else nominal.determiner
            return replace(nominal, determiner=determiner, attribute=self.attribute(attribute))
        return self.with_relative(nominal, depth) if modifier < 0.28 else nominal

    def determiner(self, person: int) -> str:
        determiner = self.rng.choices(tuple(DETERMINERS), tuple(DETERMINERS.values()))[0]
        return "der" if determiner == "jeder" and person == 2 else determiner

    def attribute(self, preposition: str) -> Complement:
        german, case, kinds = {
            "with": ("mit", "dat", ("optics", "wear")),
            "from": ("aus", "dat", ("place",)),
            "in": ("in", "dat", ("place",)),
            "of": ("", "gen", ("person",)),
        }[preposition]
        nominal = self.nominal(kinds, 0)
        if case == "gen" and nominal.person == 2 and nominal.determiner == "ein":
            nominal = replace(nominal, determiner="der")  # no genitive without an article
        return Complement(german, case, preposition, nominal)

    def with_relative(self, nominal: Nominal, depth: int) -> Nominal:
        animate = nominal.noun.kind == "person"
        if self.chance(0.5):
            frames = ("perception", "state", *(("person", "dative") if animate else ("thing",)))
            verb = self.rng.choice(lexicon.VERBS[self.rng.choice(frames)])
            subject = self.subject(verb.frame, 0)
            case = "dat" if verb.frame == "dative" else "acc"
            nominative = subject.pronoun[0] != "sie" if subject.pronoun else subject.gender == "m"
            if case == "dat" or nominative or nominal.gender == "m" or subject.person != nominal.person:
                relative = self.predication(verb, subject.person, subject)
                return replace(nominal, relative=relative, relative_case=case)
        frames = () if animate else ("place", "copula")
        return replace(nominal, relative=self.clause(depth - 1, nominal.person, frames))

    def adjective(self, noun: Noun | None) -> tuple[str, str]:
        animate = noun is not None and noun.kind == "person"
        if not animate and self.chance(0.4):
            german, english = self.rng.choice(lexicon.COLOURS)
            dark, shade = self.rng.choice(lexicon.SHADES)
            return dark + german, shade + english
        german, english = self.rng.choice(lexicon.ADJECTIVES[animate])
        un = "un" if german in lexicon.UN and self.chance(0.4) else ""
        return un + german, un + english


# Phrases: what both linearisers build.


class Word(NamedTuple):
    tag: str
    form: str


class Phrase(NamedTuple):
    label: str
    children: "tuple[Word | Phrase, ...]"
    head: int  # which child


@dataclass(frozen=True)
class Side:
    """One language of a sentence: raw text, tree of its n tokens, heads (n; from 1, the root's is 0)."""

    text: str
    tree: Tree
    heads: tuple[int, ...]


@dataclass(frozen=True)
class Sentence:
    source: Side
    target: Side


def _phrase(label: str, *children: Word | Phrase | None, head: Word | Phrase) -> Phrase:
    kept = tuple(child for child in children if child is not None)
    return Phrase(label, kept, next(i for i, child in enumerate(kept) if child is head))


def _only(label: str, tag: str, form: str) -> Phrase:
    return Phrase(label, (Word(tag, form),), 0)


def _words(node: Word | Phrase) -> Iterator[Word]:
    if isinstance(node, Word):
        yield node
    else:
        for child in node.children:
            yield from _words(child)


def _side(root: Phrase) -> Side:
    """Text, tree and heads of a sentence; a comma goes if it opens the sentence or another mark follows."""
    forms = [word.form for word in _words(root)]
    keep = iter([form != "," or (i > 0 and forms[i + 1] not in ",.") for i, form in enumerate(forms)])
    heads: list[int] = []

    def visit(node: Word | Phrase) -> tuple[Tree | None, int]:
        if isinstance(node, Word):
            if not next(keep):
                return None, 0
            form = node.form if heads else node.form[0].upper() + node.form[1:]
            heads.append(0)
            return Tree(node.tag, (form,)), len(heads)
        visited = [visit(child) for child in node.children]
        head = visited[node.head][1]
        for tree, number in visited:
            if tree and number != head:
                heads[number - 1] = head
        return Tree(node.label, tuple(tree for tree, _ in visited if tree)), head

    tree, _ = visit(root)
    text = " ".join(tree.leaves()).replace(" ,", ",").replace(" .", ".")
    return Side(text, tree, tuple(heads))


# The German side.


def _german_sentence(clauses: Sequence[tuple[tuple[str, str], Clause]]) -> Phrase:
    parts = [_german_clause(clause, "main") for _, clause in clauses]
    return _joined(parts, [conjunction for (conjunction, _), _ in clauses[1:]], ("$,", "KON", "$."))


def _joined(clauses: list[Phrase], conjunctions: list[str], tags: tuple[str, str, str]) -> Phrase:
    """The main clauses of a sentence with its full stop; a comma stands before all conjunctions."""
    comma, conjunction, stop = tags
    if not conjunctions:
        return clauses[0]._replace(children=(*clauses[0].children, Word(stop, ".")))
    first, second = clauses
    words = Word(comma, ","), Word(conjunction, conjunctions[0])
    return _phrase("S", first, *words, second, Word(stop, "."), head=first)


def _german_clause(clause: Clause, order: str) -> Phrase:
    """`order`: "main" (finite verb second), "last" (finite verb last) or "zu" (infinitive)."""
    subject = _german_nominal(clause.subject, "nom") if clause.subject else None
    adverb = _only("ADVP", "ADV", clause.adverb[0]) if clause.adverb else None
    objects = [_german_complement(c) for c in clause.complements if not c.german]
    others = [_german_complement(c) for c in clause.complements if c.german]
    negation = Word("PTKNEG", "nicht") if clause.negated else None
    predicate = _only("AP", "ADJD", clause.predicate[0]) if clause.predicate else None
    middle = [adverb, *objects, negation, *others, predicate]
    after = _german_after(clause)
    finite, rest = _german_verb(clause, order)
    if order == "main":
        front = dict(
            subject=subject, adverb=adverb, subordinate=after, object=objects[0] if objects else None
        )[clause.front]
        second = None if front is subject else subject
        middle = [node for node in middle if node is not front]
        end = (
            [*middle, rest]
            if rest is None or rest.tag == "PTKVZ"
            else [_phrase("VP", *middle, rest, head=rest)]
        )
        return _phrase("S", front, finite, second, *end, None if front is after else after, head=finite)
    if order == "zu":
        particle = Word("PTKZU", "zu") if not clause.verb.particle else None
        verb = _phrase("VP", *middle, particle, rest, head=rest)
    elif rest is None:
        verb = _phrase("VP", *middle, finite, head=finite)
    else:
        verb = _phrase("VP", _phrase("VP", *middle, rest, head=rest), finite, head=finite)
    return _phrase("S", subject, verb, after, head=verb)


def _german_after(clause: Clause) -> Phrase | None:
    """The clause that depends on the verb, between commas."""
    comma = Word("$,", ",")
    if clause.infinitive:
        inner, subordinator = _german_clause(clause.infinitive, "zu"), None
    elif clause.subordinate:
        (word, _), inner = clause.subordinate
        inner, subordinator = _german_clause(inner, "last"), Word("KOUS", word)
    else:
        return None
    return _phrase("SBAR", comma, subordinator, inner, comma, head=inner)


def _german_verb(clause: Clause, order: str) -> tuple[Word | None, Word | None]:
    """The finite verb, and what stands apart from it: particle, participle or infinitive."""
    verb = clause.verb
    if order == "zu":
        whole = verb.particle + "zu" + verb.infinitive
        return None, Word("VVIZU", whole) if verb.particle else Word("VVINF", verb.infinitive)
    if clause.tense == "perfect":
        return Word("VAFIN", lexicon.FORMS[verb.auxiliary][clause.person]), Word(
            "VVPP", verb.particle + verb.participle
        )
    if clause.tense != "present":
        tag = "VAFIN" if clause.tense == "werden" else "VMFIN"
        return Word(tag, lexicon.FORMS[clause.tense][clause.person]), Word(
            "VVINF", verb.particle + verb.infinitive
        )
    regular = (verb.infinitive[:-2] + "e", verb.third, verb.infinitive)
    form = lexicon.FORMS.get(verb.infinitive, regular)[clause.person]
    tag = "VAFIN" if verb.frame == "copula" else "VVFIN"
    if order == "last" or not verb.particle:
        return Word(tag, verb.particle + form), None
    return Word(tag, form), Word("PTKVZ", verb.particle)


def _german_complement(complement: Complement) -> Phrase:
    nominal = _german_nominal(complement.nominal, complement.case)
    if not complement.german:
        return nominal
    preposition = Word("APPR", complement.german)
    first = nominal.children[0]
    if (complement.german, getattr(first, "form", "")) in lexicon.CONTRACTIONS:
        preposition = Word("APPRART", lexicon.CONTRACTIONS[complement.german, first.form])
        nominal = Phrase("NP", nominal.children[1:], nominal.head - 1)
    return _phrase("PP", preposition, nominal, head=preposition)


def _german_nominal(nominal: Nominal, case: str) -> Phrase:
    if nominal.pronoun:
        return _only("NP", "PPER", nominal.pronoun[0])
    if nominal.conjuncts:
        first, second = (_german_nominal(conjunct, case) for conjunct in nominal.conjuncts)
        return _phrase("NP", first, Word("KON", "und"), second, head=first)
    determiner = _german_determiner(nominal.determiner, case, nominal.gender)
    ending = _adjective_ending(nominal.determiner, case, nominal.gender)
    adjectives = [Word("ADJA", german.removesuffix("e") + ending) for german, _ in nominal.adjectives]
    noun = Word("NN", _german_noun(nominal, case))
    attribute = _german_complement(nominal.attribute) if nominal.attribute else None
    article = Word("ART", determiner) if determiner else None
    return _phrase("NP", article, *adjectives, noun, attribute, _german_relative(nominal), head=noun)


def _german_relative(nominal: Nominal) -> Phrase | None:
    if nominal.relative is None:
        return None
    comma = Word("$,", ",")
    clause = _german_clause(nominal.relative, "last")
    pronoun = _german_determiner("der", nominal.relative_case, nominal.gender)
    if nominal.relative_case == "dat" and nominal.gender == "pl":
        pronoun = "denen"
    return _phrase("SBAR", comma, Word("PRELS", pronoun), clause, comma, head=clause)


def _german_noun(nominal: Nominal, case: str) -> str:
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


def _german_determiner(determiner: str, case: str, gender: str) -> str:
    ending = lexicon.ENDINGS[case][gender]
    if determiner == "der":
        return {"er": "der", "e": "die", "es": "des" if case == "gen" else "das", "em": "dem", "en": "den"}[
            ending
        ]
    if determiner in ("dieser", "jeder"):
        return determiner.removesuffix("er") + ending
    if determiner == "ein" and gender == "pl":
        return ""
    return determiner if (case, gender) in lexicon.BARE else determiner + ending


def _adjective_ending(determiner: str, case: str, gender: str) -> str:
    """Strong where the determiner has no ending of its own, else weak."""
    takes_none = determiner not in ("der", "dieser", "jeder") and (case, gender) in lexicon.BARE
    if takes_none or (determiner == "ein" and gender == "pl"):
        return lexicon.ENDINGS[case][gender]
    weak = {("nom", "m"), ("nom", "f"), ("nom", "n"), ("acc", "f"), ("acc", "n")}
    return "e" if (case, gender) in weak else "en"


# The English side.


def _english_sentence(clauses: Sequence[tuple[tuple[str, str], Clause]]) -> Phrase:
    parts = [_english_clause(clause) for _, clause in clauses]
    return _joined(parts, [conjunction for (_, conjunction), _ in clauses[1:]], (",", "CC", "."))


def _english_clause(clause: Clause, infinitive: bool = False) -> Phrase:
    subject = _english_nominal(clause.subject) if clause.subject else None
    adverb = _only("ADVP", "RB", clause.adverb[1]) if clause.adverb else None
    complements = [_english_complement(c) for c in sorted(clause.complements, key=lambda c: bool(c.english))]
    predicate = _english_adjective(clause.predicate[1]) if clause.predicate else None
    after = _english_after(clause)
    first = after if clause.front == "subordinate" else None
    negation = Word("RB", "not") if clause.negated else None
    auxiliary, verb = _english_verb(clause, infinitive)
    rest = [*complements, predicate, adverb, None if first else after]
    if auxiliary:
        inner = _phrase("VP", verb, *rest, head=verb)
        predication = _phrase("VP", auxiliary, negation, inner, head=auxiliary)
    else:
        predication = _phrase("VP", verb, negation, *rest, head=verb)
    comma = Word(",", ",") if first else None
    return _phrase("S", first, comma, subject, predication, head=predication)


def _english_after(clause: Clause) -> Phrase | None:
    if clause.infinitive:
        return _english_clause(clause.infinitive, infinitive=True)
    if clause.subordinate:
        (_, word), inner = clause.subordinate
        inner = _english_clause(inner)
        return _phrase("SBAR", Word("IN", word), inner, head=inner)
    return None


def _english_verb(clause: Clause, infinitive: bool) -> tuple[Word | None, Word]:
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


def _english_complement(complement: Complement) -> Phrase:
    nominal = _english_nominal(complement.nominal)
    if not complement.english:
        return nominal
    preposition = Word("IN", complement.english)
    return _phrase("PP", preposition, nominal, head=preposition)


def _english_nominal(nominal: Nominal) -> Phrase:
    if nominal.pronoun:
        return _only("NP", "PRP", nominal.pronoun[1])
    if nominal.conjuncts:
        first, second = map(_english_nominal, nominal.conjuncts)
        return _phrase("NP", first, Word("CC", "and"), second, head=first)
    plural = nominal.person == 2
    adjectives = [_english_adjective(english) for _, english in nominal.adjectives]
    compound = Word("NN", nominal.compound[1]) if nominal.compound[1] else None
    noun = Word("NNS", nominal.noun.english_plural) if plural else Word("NN", nominal.noun.english)
    named = _phrase("NP", *adjectives, compound, noun, head=noun)
    determiner = lexicon.DETERMINERS[nominal.determiner][plural]
    if determiner == "a" and next(_words(named)).form[0] in "aeiou":
        determiner = "an"
    article = Word("DT", determiner) if determiner else None
    base = _phrase("NP", article, *named.children, head=noun)
    if not nominal.attribute and not nominal.relative:
        return base
    attribute = _english_complement(nominal.attribute) if nominal.attribute else None
    return _phrase("NP", base, attribute, _english_relative(nominal), head=base)


def _english_relative(nominal: Nominal) -> Phrase | None:
    if nominal.relative is None:
        return None
    clause = _english_clause(nominal.relative)
    pronoun = "who" if nominal.relative_case == "nom" else "whom"
    if nominal.noun.kind != "person":
        pronoun = "that"
    return _phrase("SBAR", _only("WHNP", "WP", pronoun), clause, head=clause)


def _english_adjective(english: str) -> Phrase | Word:
    shade, _, adjective = english.rpartition(" ")
    head = Word("JJ", adjective)
    return _phrase("ADJP", Word("RB", shade), head, head=head) if shade else head


# The corpus.


def linearise(clauses: Sequence[tuple[tuple[str, str], Clause]]) -> Sentence:
    """Both sides of one main clause or two, each with the conjunction (German, English) before it."""
    return Sentence(_side(_german_sentence(clauses)), _side(_english_sentence(clauses)))


def generate(sizes: Mapping[str, int], seed: int) -> Iterator[tuple[str, Sentence]]:
    """Yield (split, sentence), `sizes[split]` of each split; no source sentence comes twice.

    The same sizes and seed give the same sentences; each side has 4 to 30 tokens.

    Raises:
        UserError: `sizes` does not give a positive whole number for each of train, valid and test.
    """
    if set(sizes) != set(SPLITS) or any(type(size) is not int or size < 1 for size in sizes.values()):
        raise UserError(
            f"demo corpus: sizes {dict(sizes)}; give train, valid and test a positive whole number each"
        )
    grammar = Grammar(random.Random(seed))
    seen = set()
    for split in SPLITS:
        done = 0
        while done < sizes[split]:
            sentence = linearise(grammar.sentence())
            fits = all(len(side.heads) in LENGTHS for side in (sentence.source, sentence.target))
            if fits and sentence.source.text not in seen:
                seen.add(sentence.source.text)
                done += 1
                yield split, sentence


def write_corpus(folder: Path, sizes: Mapping[str, int], seed: int) -> None:
    """Write {train,valid,test}.{de,en}, one raw sentence a line, and beside each its .trees and .heads.

    A line of .trees is a bracketed tree of the line's Moses tokens, a line of .heads their heads (from 1, 0 =
    root) between spaces.

    Raises:
        UserError: as `generate`.
    """
    splits: dict[str, list[Sentence]] = {split: [] for split in SPLITS}
    for split, sentence in generate(sizes, seed):
        splits[split].append(sentence)
    for split, sentences in splits.items():
        for language, sides in (("de", [s.source for s in sentences]), ("en", [s.target for s in sentences])):
            write_lines(folder / f"{split}.{language}", (side.text for side in sides))
            write_lines(folder / f"{split}.{language}.trees", (str(side.tree) for side in sides))
            write_lines(
                folder / f"{split}.{language}.heads", (" ".join(map(str, side.heads)) for side in sides)
            )

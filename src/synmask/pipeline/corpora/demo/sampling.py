"""The grammar: draws abstract syntax at random."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from synmask.pipeline.corpora.demo import lexicon
from synmask.pipeline.corpora.demo.abstract import Clause, Complement, Nominal
from synmask.pipeline.corpora.demo.lexicon import Noun, Verb

FRAMES = dict(  # how often a verb of each frame is drawn
    intransitive=14, thing=14, person=12, perception=12, state=10, dative=7, ditransitive=9, motion=8,
    prepositional=9, place=4, copula=6, that=7, infinitive=7,
)  # fmt: skip
DETERMINERS = dict(der=50, ein=20, mein=9, dieser=7, unser=7, jeder=4, kein=3)  # likewise, determiners
ATTRIBUTES = ("with", "from", "of")  # of a noun, if unambiguous


class Grammar:
    """Draws abstract syntax. Depth bounds the nesting: at depth 0 a noun phrase has at most adjectives.

    If a phrase could attach to two places, the verb's frame allows only one of them (`attributes`). An object
    relative clause is drawn only if case or number distinguishes it from a subject relative clause.
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
        # Only masculine articles distinguish accusative and nominative.
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
            case "thing":
                yield Complement("", "acc", "", self.nominal(thing, depth))
            case "person":
                yield Complement("", "acc", "", self.nominal(person, depth))
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
        """A noun phrase about one of `kinds`; `attributes` are those that are unambiguous here."""
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

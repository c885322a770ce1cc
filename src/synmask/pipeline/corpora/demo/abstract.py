"""Abstract syntax: the content of a sentence in both languages, without word order."""

from dataclasses import dataclass

from synmask.pipeline.corpora.demo.lexicon import Noun, Verb


@dataclass(frozen=True)
class Complement:
    """A noun phrase with its case and, for each language, a preposition ("" = none)."""

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
    """A verb with its arguments and modifiers; complements in the German order.

    `subject` is None in infinitives and if the subject is relativised; `person` is still its person.
    `front` is the constituent before the finite verb in a main clause.
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

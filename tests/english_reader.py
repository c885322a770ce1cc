"""A reader of the demo's English, and the labels that it finds; it shares only the lexicon with the grammar."""

import itertools
import re
from functools import cache

from synmask.pipeline.corpora.demo import lexicon

# Text → the set of its meanings, equal for active and passive and for any position of adverbials.

NOUNS = {
    form: (noun.kind, noun.english, number)
    for nouns in lexicon.NOUNS.values()
    for noun in nouns
    for form, number in ((noun.english, 1), (noun.english_plural, 2))
}
VERBS = [verb for verbs in lexicon.VERBS.values() for verb in verbs if verb.frame != "copula"]
FRAMES = {  # does it take an object; which prepositions may follow
    "intransitive": (False, [[], ["in"]]),
    "thing": (True, [[], ["in"]]),
    "person": (True, [[], ["in"]]),
    "perception": (True, [[], ["in"], ["through"]]),
    "state": (True, [[]]),
    "dative": (True, [[], ["in"]]),
    "ditransitive": (True, [["to"]]),
    "motion": (False, [[], ["in"], ["into"]]),
    "place": (False, [["in"]]),
    "that": (False, [[]]),
    "infinitive": (False, [[]]),
}
FACTIVE, NOT_FACTIVE = (
    {"realise", "know", "see", "discover"},
    {"believe", "say", "hope", "claim", "think", "dream"},
)
TENSES = {"did": "past", "was": "past", "were": "past"} | {word: word for word in lexicon.MODALS.values()}
IRREGULAR = {"seen": "see", "known": "know", "taken": "take", "stolen": "steal", "hidden": "hide", "given": "give",
             "shown": "show"}  # fmt: skip
PRONOUNS = {"i": 0, "he": 1, "she": 1, "we": 2, "they": 2}
OBJECTS = dict(zip(("me", "him", "her", "us", "them"), PRONOUNS, strict=True))
NUMBERS = {"a": {1}, "an": {1}, "this": {1}, "every": {1}, "these": {2}}
NUMBERS |= {word: {1, 2} for word in ("the", "my", "our", "no")}
ADJECTIVES = {word for table in lexicon.ADJECTIVES.values() for _, word in table}
ADJECTIVES |= {
    "un" + word for german, word in itertools.chain(*lexicon.ADJECTIVES.values()) if german in lexicon.UN
}
ADJECTIVES |= {word for _, word in lexicon.COLOURS}
COMPOUNDS = {word.lower() for _, word in lexicon.COMPOUNDS}
ADVERBS = {word for adverbs in lexicon.ADVERBS.values() for _, word in adverbs}
SUBORDINATORS = {word for _, word in lexicon.SUBORDINATORS}
GAP = "gap"


class Reader:
    """Every method yields what begins at token i: (where it ends, …, its meaning)."""

    def __init__(self, text):
        self.tokens = [
            *re.findall(r"\w+|[^\w\s]", text[0].lower() + text[1:].replace("Sunday", "sunday")),
            "",
            "",
            "",
        ]
        self.tokens = ["i" if token == "I" else token for token in self.tokens]

    def meanings(self):
        """Tuples of one main clause or two with the conjunction between."""
        found = set()
        for i, first in self.sentence(0):
            if self.tokens[i] == ".":
                found.add((first,))
            elif self.tokens[i] == "," and self.tokens[i + 1] in ("and", "but", "for"):
                found |= {
                    (first, self.tokens[i + 1], second)
                    for j, second in self.sentence(i + 2)
                    if self.tokens[j] == "."
                }
        return found

    def sentence(self, i):
        if self.tokens[i] in SUBORDINATORS:
            for j, inner in self.sentence(i + 1):
                if self.tokens[j] == ",":
                    for k, clause in self.sentence(j + 1):
                        if clause[-1] is None:
                            yield k, (*clause[:-1], (self.tokens[i], inner))
        elif self.tokens[i] in ADVERBS:
            for j, clause in self.sentence(i + 1):
                if clause[4] is None:
                    yield j, (*clause[:4], self.tokens[i], clause[5])
        else:
            for j, number, subject in self.nominal(i):
                yield from self.predicate(j, number, subject)

    def nominal(self, i):
        token = self.tokens[i]
        if token in PRONOUNS:
            yield i + 1, PRONOUNS[token], token
        if token in OBJECTS:
            yield i + 1, None, OBJECTS[token]
        for j, kind, number, base in self.base(i):
            yield j, number, base
            if self.tokens[j] == "and":
                yield from ((k, 2, ("and", base, other)) for k, _, _, other in self.base(j + 1))
            if self.tokens[j] in ("with", "from", "of", "in"):
                yield from (
                    (k, number, (*base, (self.tokens[j], other))) for k, _, _, other in self.base(j + 1)
                )
            if self.tokens[j] == ("who" if kind == "person" else "that"):
                yield from ((k, number, (*base, clause)) for k, clause in self.predicate(j + 1, number, GAP))
            if self.tokens[j] == ("whom" if kind == "person" else "that"):
                for k, other, subject in self.nominal(j + 1):
                    yield from (
                        (m, number, (*base, clause))
                        for m, clause in self.predicate(k, other, subject, gap=True)
                    )

    def base(self, i):
        determiner, numbers = "", {2}
        if self.tokens[i] in NUMBERS:
            determiner, numbers = self.tokens[i], NUMBERS[self.tokens[i]]
            i += 1
        modifiers = []
        while self.tokens[i] in ADJECTIVES | COMPOUNDS | {"light", "dark"}:
            modifiers.append(self.tokens[i])
            i += 1
        kind, noun, number = NOUNS.get(self.tokens[i], ("", "", 0))
        if number in numbers:
            yield i + 1, kind, number, (determiner, tuple(modifiers), noun, number)

    def predicate(self, i, number, subject, gap=False):
        token = self.tokens[i]
        negated = self.tokens[i + 1] == "not"
        after = i + 1 + negated
        if token in lexicon.MODALS.values():
            yield from self.infinitive(after, token, negated, subject, gap)
        elif (
            negated
            and token in ("do", "does", "did")
            and (token == "did" or (token == "does") == (number == 1))
        ):
            yield from self.infinitive(after, TENSES.get(token, "present"), True, subject, gap)
        elif token in (("am", "was"), ("is", "was"), ("are", "were"))[number]:
            yield from self.be(after, TENSES.get(token, "present"), negated, subject)
        for verb in VERBS:
            for form, tense, numbers in (
                (lexicon.with_s(verb.english), "present", {1}),
                (verb.english, "present", {0, 2}),
                (verb.past, "past", {0, 1, 2}),
            ):
                if token == form and number in numbers:
                    yield from self.rest(i + 1, verb, tense, False, {"agent": subject}, gap)

    def infinitive(self, i, tense, negated, subject, gap=False):
        if self.tokens[i] == "be":
            yield from self.be(i + 1, tense, negated, subject)
        for verb in VERBS:
            if self.tokens[i] == verb.english:
                yield from self.rest(i + 1, verb, tense, negated, {"agent": subject}, gap)

    def be(self, i, tense, negated, subject):
        start = i
        while self.tokens[i] in ADJECTIVES | {"light", "dark"}:
            i += 1
        if i > start:
            predicate = tuple(self.tokens[start:i])
            yield from self.adjuncts(i, "be", tense, negated, {"agent": subject, "is": predicate}, "copula")
        if self.tokens[start + 1] == "by":
            participle = self.tokens[start]
            for verb in (v for v in VERBS if participle == v.past or IRREGULAR.get(participle) == v.english):
                for j, _, agent in self.nominal(start + 2):
                    yield from self.rest(j, verb, tense, negated, {"agent": agent, "patient": subject})

    def rest(self, i, verb, tense, negated, roles, gap=False):
        """Read the words after a verb (and its agent, in the passive)."""
        options = [("prepositional", verb.preposition[2])] if verb.preposition else [(verb.frame, "")]
        if verb.english in FACTIVE | NOT_FACTIVE:
            options.append(("that", ""))
        for frame, preposition in options:
            takes, choices = FRAMES.get(frame, (False, [[preposition], [preposition, "in"]]))
            if (gap or "patient" in roles) and not takes:
                continue
            if gap:
                objects = [(i, roles | {"patient": GAP})]
            elif takes and "patient" not in roles:
                objects = [(j, roles | {"patient": found}) for j, number, found in self.nominal(i) if number]
            else:
                objects = [(i, roles)]
            for prepositions in choices:
                places = objects
                for word in prepositions:
                    places = [
                        (k, known | {word: found})
                        for j, known in places
                        if self.tokens[j] == word
                        for k, _, found in self.nominal(j + 1)
                    ]
                for j, known in places:
                    yield from self.adjuncts(j, verb.english, tense, negated, known, frame)

    def adjuncts(self, i, verb, tense, negated, roles, frame):
        def clause(adverb, dependent):
            parties = roles.items()
            if verb in ("meet", "marry"):  # each other
                parties = ((role.replace("patient", "agent"), party) for role, party in parties)
            return verb, tense, negated, frozenset(parties), adverb, dependent

        if frame == "that":
            if self.tokens[i] == "that":
                yield from ((j, clause(None, ("that", inner))) for j, inner in self.sentence(i + 1))
            return
        if frame == "infinitive":
            if self.tokens[i] == "to":
                yield from (
                    (j, clause(None, ("to", inner))) for j, inner in self.infinitive(i + 1, "to", False, GAP)
                )
            return
        for adverb in {None, self.tokens[i] if self.tokens[i] in ADVERBS else None}:
            j = i + (adverb is not None)
            yield j, clause(adverb, None)
            if self.tokens[j] in SUBORDINATORS:
                yield from ((k, clause(adverb, (self.tokens[j], inner))) for k, inner in self.sentence(j + 1))


@cache
def read(text):
    return Reader(text).meanings()


# The labels by task.


def acceptability(sentence):
    return "1" if read(sentence) else "0"


def paraphrase(one, other):
    return "1" if read(one) & read(other) else "0"


def entailment(premise, hypothesis):
    """A simple premise by trying all small models; another by what it says is so."""
    [[claim]] = read(hypothesis)
    readings = read(premise)
    for meaning in readings:
        if len(meaning) == 1 and meaning[0][-1] is None:
            return by_models(meaning[0], claim)
    known = dict(
        itertools.chain.from_iterable(facts(clause) for meaning in readings for clause in meaning[::2])
    )
    core, negated = negation_apart(claim)
    if core in known:
        return "entailment" if known[core] == negated else "contradiction"
    return "neutral"


def negation_apart(clause):
    verb, tense, negated, *rest = clause
    return (verb, tense, *rest), negated


def facts(clause):
    """(clause without its negation, whether it is negated) of all that a clause says is so."""
    *_, dependent = clause
    if dependent is None:
        yield negation_apart(clause)
    elif dependent[0] != "that":
        yield from itertools.chain(facts((*clause[:-1], None)), facts(dependent[1]))
    elif clause[0] in FACTIVE:
        yield from facts(dependent[1])


# A model has three people. Each is (is one of the noun's bearers, has the modifier, how much it does: 0 not,
# 1 without what the object's modifier or the adverb adds, 2 with it); "the" means the first one.
MODELS = list(
    itertools.product(
        itertools.product([True], [False, True], range(3)),
        *[list(itertools.product([False, True], [False, True], range(3)))] * 2,
    )
)


def by_models(premise, hypothesis):
    """The relation of two simple clauses; neutral, if they are about different people or deeds."""
    if about(premise) != about(hypothesis):
        return "neutral"
    values = {true(hypothesis, model) for model in MODELS if true(premise, model)}
    return "neutral" if len(values) > 1 else "entailment" if values == {True} else "contradiction"


def about(clause):
    verb, tense, _, roles, _, _ = clause
    return verb, tense, {(role, noun, number) for role, (_, _, noun, number, *_) in roles}


def true(clause, model):
    _, _, negated, roles, adverb, _ = clause
    roles = dict(roles)
    determiner, *modified = roles["agent"][:2] + roles["agent"][4:]
    _, *more = roles.get("patient", ("", ()))[:2] + roles.get("patient", ())[4:]
    much = 2 if adverb or any(more) else 1
    meant = [person for person in model if person[0] and (person[1] or not any(modified))]
    doing = [person for person in meant if (person[2] >= much) != negated]
    match determiner:
        case "every":
            return len(doing) == len(meant)
        case "no":
            return not doing
        case "a" | "an":
            return bool(doing)
    return model[0] in doing

"""The demo's pairs of premise and hypothesis; each kind of inference is a function that draws one pair.

Determiners are interpreted in set theory: "every" and "the" presuppose that somebody exists; "the" denotes
the same person in both sentences. A verb with two arguments implies nothing about exchanged arguments.
"""

from dataclasses import replace

from synmask.pipeline.corpora.demo import english, lexicon
from synmask.pipeline.corpora.demo.abstract import Clause, Complement, Nominal
from synmask.pipeline.corpora.demo.meaning import Definite, other_roles, styled
from synmask.pipeline.corpora.demo.phrases import Row, Side, side_of

Pair = tuple[Side, Side, str]  # premise, hypothesis, label
# Who may do it if a sentence with this determiner and negation is true: all; some, with or without the one
# that "the" denotes ("the one", "others"); none.
WORLDS = {
    ("jeder", False): {"all"},
    ("der", False): {"all", "the one"},
    ("ein", False): {"all", "the one", "others"},
    ("der", True): {"others", "none"},
    ("ein", True): {"the one", "others", "none"},
    ("kein", False): {"none"},
}
FACTIVE = ("realise", "know", "see", "discover")  # their complements are true, even under negation
NOT_FACTIVE = ("believe", "say", "hope", "claim", "think", "dream")
THAT_VERBS = {  # some of them take other complements in the corpus
    verb.english: verb._replace(frame="that") for verbs in lexicon.VERBS.values() for verb in verbs
}


def entailment(grammar: Definite, label: str) -> Row | None:
    """Premise, hypothesis and `label`; None if this draw has another label."""
    infer = grammar.rng.choice((modifiers, determiners, clauses, embedded, roles))
    premise, hypothesis, found = infer(grammar)
    return ((premise, hypothesis), label) if found == label and premise.text != hypothesis.text else None


def modifiers(grammar: Definite) -> Pair:
    """One modifier more or less: the sentence without it follows from that with it, or, in the scope of
    "every", "no" or "not", the other way round."""
    determiner, negated = grammar.rng.choice([key for key in WORLDS if key != ("ein", True)])
    wide = predication(grammar, grammar.rng.choice(("thing", "perception", "state")), negated)
    subject = replace(wide.subject, determiner=determiner)
    wide = replace(wide, subject=subject, complements=(_accusative(grammar.noun("thing", "ein")),))
    place = grammar.rng.choice(("subject", "object", "adverb"))
    if place == "subject":
        narrow = replace(wide, subject=_modified(grammar, subject))
        downward = determiner in ("jeder", "kein")
    else:
        if place == "object":
            changed = _accusative(_modified(grammar, wide.complements[0].nominal))
            narrow = replace(wide, complements=(changed,))
        else:
            narrow = replace(wide, adverb=grammar.rng.choice(lexicon.ADVERBS[wide.tense]))
        downward = negated or determiner == "kein"
    stronger, weaker = (wide, narrow) if downward else (narrow, wide)
    if grammar.chance(0.5):
        return text(stronger), text(weaker), "entailment"
    return text(weaker), text(stronger), "neutral"


def determiners(grammar: Definite) -> Pair:
    """Two determiners; either sentence may be negated."""
    one, other = grammar.rng.sample(list(WORLDS), 2)
    clause = predication(grammar, grammar.frame())
    texts = []
    for determiner, negated in (one, other):
        subject = replace(clause.subject, determiner=determiner)
        texts.append(text(replace(clause, subject=subject, negated=negated)))
    return *texts, relation(WORLDS[one], WORLDS[other])


def relation(premise: set[str], hypothesis: set[str]) -> str:
    """The relation of two sentences, given the worlds in which each is true."""
    if premise <= hypothesis:
        return "entailment"
    return "neutral" if premise & hypothesis else "contradiction"


def clauses(grammar: Definite) -> Pair:
    """One of the premise's two clauses, or the subject of one with the verb of the other."""
    one, other = _two(grammar)
    conjunction = grammar.rng.choice(lexicon.CONJUNCTIONS[:2] + lexicon.SUBORDINATORS[:3:2])
    if conjunction in lexicon.CONJUNCTIONS:
        premise = text(one, conjunction, other)
    else:  # in front, outside the scope of negation: "not because …"
        premise = text(replace(one, subordinate=(conjunction, other), front="subordinate"))
    said, unsaid = grammar.rng.sample((one, other), 2)
    if grammar.chance(0.3):
        crossed = replace(said, subject=unsaid.subject, person=unsaid.person)
        return premise, text(_perhaps_denied(grammar, crossed)[0]), "neutral"
    hypothesis, denied = _perhaps_denied(grammar, said)
    return premise, text(hypothesis), "contradiction" if denied else "entailment"


def embedded(grammar: Definite) -> Pair:
    """Known content is true, believed content may be; the premise has one or two such clauses."""
    count = grammar.rng.choice((1, 2, 2))
    inner = _two(grammar)[:count]
    factive = [grammar.chance(0.6) for _ in inner]
    outer = []
    for clause, true in zip(inner, factive, strict=True):
        verb = THAT_VERBS[grammar.rng.choice(FACTIVE if true else NOT_FACTIVE)]
        attitude = predication(grammar, "intransitive", grammar.chance(0.4))
        outer.append(replace(attitude, verb=verb, subordinate=(("dass", "that"), clause)))
    premise = text(outer[0], ("und", "and"), outer[1]) if count == 2 else text(outer[0])
    chosen = grammar.rng.randrange(count)
    hypothesis, denied = _perhaps_denied(grammar, inner[chosen])
    if not factive[chosen]:
        return premise, text(hypothesis), "neutral"
    return premise, text(hypothesis), "contradiction" if denied else "entailment"


def roles(grammar: Definite) -> Pair:
    """Subject and object, in the active and the passive."""
    clause = grammar.deed(depth=0)
    hypothesis, denied = _perhaps_denied(grammar, clause)
    exchanged = grammar.chance(0.35)
    if exchanged:
        hypothesis = next(other_roles(hypothesis))
    styles = [["passive"] if grammar.chance(0.5) else [] for _ in range(2)]
    texts = styled(clause, styles[0]), styled(hypothesis, styles[1])
    return *texts, "neutral" if exchanged else "contradiction" if denied else "entailment"


def predication(grammar: Definite, frame: str, negated: bool = False) -> Clause:
    """Somebody does or did something; without adverb or modal verb."""
    subject = grammar.noun("person", grammar.determiner(1))
    tense = grammar.rng.choice(("present", "perfect"))
    clause = Clause(grammar.rng.choice(lexicon.VERBS[frame]), 1, subject, tense, negated)
    if frame == "intransitive":
        return clause
    kind = "thing" if frame == "thing" else "person"
    return replace(clause, complements=(_accusative(grammar.noun(kind, grammar.determiner(1))),))


def _two(grammar: Definite) -> list[Clause]:
    """Two clauses that share neither subject nor verb; each may be negated."""
    while True:
        drawn = [predication(grammar, grammar.frame(), grammar.chance(0.5)) for _ in range(2)]
        words = {word for clause in drawn for word in (clause.verb.english, clause.subject.noun.english)}
        if len(words) == 4:
            return drawn


def _accusative(nominal: Nominal) -> Complement:
    return Complement("", "acc", "", nominal)


def _modified(grammar: Definite, nominal: Nominal) -> Nominal:
    if grammar.chance(0.5):
        return replace(nominal, adjectives=(grammar.adjective(nominal.noun),))
    if nominal.noun.kind == "person":
        clause = predication(grammar, grammar.frame())
        return replace(nominal, relative=replace(clause, subject=None))
    clause = predication(grammar, "thing")
    return replace(nominal, relative=replace(clause, complements=()), relative_case="acc")


def _perhaps_denied(grammar: Definite, clause: Clause) -> tuple[Clause, bool]:
    """The clause, or its negation (with "not" added or removed); and which it is."""
    denied = grammar.chance(0.5)
    return replace(clause, negated=clause.negated != denied), denied


def text(clause: Clause, conjunction: tuple[str, str] = ("", ""), other: Clause | None = None) -> Side:
    """The English of one main clause or two."""
    parts = [(("", ""), clause), *([(conjunction, other)] if other else ())]
    return side_of(english.sentence(parts))

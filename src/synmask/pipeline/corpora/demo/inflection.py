"""The demo's words and their forms: a function of GERMAN or ENGLISH gives the tag and form of a rule's word."""

import re
from typing import NamedTuple

from synmask.pipeline.corpora.demo.grammar import WORDS

Form = tuple[str, str]  # tag and form; without a form, there is no word


class Word(NamedTuple):
    kind: str
    german: list[str]
    english: list[str]


LEXICON = [
    Word(kind, *(side.split() for side in entry.split("=")))
    for kind, entries in re.findall(r"^(\w+)(.*(?:\n .*)*)", WORDS, re.MULTILINE)
    for entry in entries.split(",")
]
THE = next(word for word in LEXICON if word.kind == "the")
ENDINGS = {  # m, f, n, plural
    "nom": {"m": "er", "f": "e", "n": "es", "pl": "e"},
    "acc": {"m": "en", "f": "e", "n": "es", "pl": "e"},
    "dat": {"m": "em", "f": "er", "n": "em", "pl": "en"},
    "gen": {"m": "es", "f": "er", "n": "es", "pl": "er"},
}
BARE = {("nom", "m"), ("nom", "n"), ("acc", "n")}  # where ein, kein, mein take no ending
WEAK_E = BARE | {("nom", "f"), ("acc", "f")}  # where a weak adjective ends in -e, elsewhere in -en


def _ending(case: str, number: str, noun: Word, determiner: Word) -> tuple[str, str, bool]:
    """The strong and the weak ending of this case, and whether the determiner goes without."""
    gender = "pl" if number == "pl" else noun.german[2].replace("w", "m")
    bare = (case, gender) in BARE and determiner.kind in ("an", "none", "mine") or (determiner.kind, gender) == ("an", "pl")
    return ENDINGS[case][gender], "e" if (case, gender) in WEAK_E else "en", bare


def article(case: str, number: str, noun: Word, determiner: Word) -> Form:
    ending, _, bare = _ending(case, number, noun, determiner)
    form = determiner.german[number == "pl"] + ("" if bare else ending)
    return "ART", {"de": "die", "des": "des" if case == "gen" else "das"}.get(form, form)


def adjective(case: str, number: str, noun: Word, determiner: Word, word: Word) -> Form:
    strong, weak, bare = _ending(case, number, noun, determiner)
    return "ADJA", word.german[0] + (strong if bare else weak)


def relative(case: str, number: str, noun: Word) -> Form:
    return "PRELS", "denen" if (case, number) == ("dat", "pl") else article(case, number, noun, THE)[1]


def german_noun(case: str, number: str, noun: Word, first: Word | None = None) -> Form:
    form, plural, gender = noun.german
    if number == "pl":
        form = plural + ("n" if case == "dat" and plural[-1] not in "ns" else "")
    elif gender == "w" and case != "nom":
        form = plural
    elif gender in "mn" and case == "gen":
        form += "es" if len(re.findall("[aeiouäöü]+", form.lower())) == 1 else "s"
    return "NN", first.german[0] + form.lower() if first else form


def german_verb(form: str, verb: Word, number: str = "sg") -> Form:
    """now: finite but for the particle (part); last: finite with it; inf, zu: infinitives; pp: participle."""
    particle, _, infinitive = verb.german[0].rpartition("+")
    finite = infinitive if number == "pl" else verb.german[1]
    return {
        "now": ("VVFIN", finite),
        "last": ("VVFIN", particle + finite),
        "part": ("PTKVZ", particle),
        "inf": ("VVINF", particle + infinitive),
        "zu": ("VVIZU", f"{particle}zu{infinitive}") if particle else ("VVINF", infinitive),
        "pp": ("VVPP", verb.german[2].removeprefix("*")),
    }[form]


def finite(number: str, verb: Word, tense: str | Word) -> Form:
    """The finite verb: the verb itself, the auxiliary of the perfect (past), or a modal verb."""
    if tense == "now":
        return german_verb("now", verb, number)
    if tense == "past":
        forms = ("ist", "sind") if verb.german[2][0] == "*" else ("hat", "haben")
        return "VAFIN", forms[number == "pl"]
    return "VAFIN" if tense.english == ["will"] else "VMFIN", tense.german[number != "pl"]


def english_noun(_: str, number: str, noun: Word) -> Form:
    singular, *irregular = noun.english
    return ("NNS", irregular[0] if irregular else _with_s(singular)) if number == "pl" else ("NN", singular)


def english_verb(form: str, verb: Word, number: str = "sg") -> Form:
    base = verb.english[0].partition("+")[0]
    regular = re.sub("(?<=[^aeiou])y$", "i", base.removesuffix("e")) + "ed"
    past, participle = (verb.english[1:] * 2 or [regular] * 2)[:2]
    return {
        "now": ("VBP", base) if number == "pl" else ("VBZ", _with_s(base)),
        "base": ("VB", base),
        "past": ("VBD", past),
        "pp": ("VBN", participle),
    }[form]


def _with_s(word: str) -> str:
    """The regular plural of a noun, the third person of a verb."""
    return re.sub("(?<=[^aeiou])y$", "ie", word) + ("es" if word.endswith(("ch", "o")) else "s")


GERMAN = {
    "N": german_noun,
    "Art": article,
    "Adj": adjective,
    "Rel": relative,
    "V": german_verb,
    "F": finite,
    "Be": lambda number: ("VAFIN", "sind" if number == "pl" else "ist"),
    "Prep": lambda verb: ("APPR", verb.german[3]),
    "Zu": lambda verb: ("PTKZU", "" if "+" in verb.german[0] else "zu"),
}
ENGLISH = {
    "N": english_noun,
    "Art": lambda _, number, __, determiner: ("DT", determiner.english[number == "pl"]),
    "V": english_verb,
    "Be": lambda number: ("VBP", "are") if number == "pl" else ("VBZ", "is"),
    "Do": lambda number: ("VBP", "do") if number == "pl" else ("VBZ", "does"),
    "Prep": lambda verb: ("IN", verb.english[0].split("+")[1]),
}

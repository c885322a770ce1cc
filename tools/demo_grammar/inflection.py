"""The forms of the demo's words: a function of GERMAN or ENGLISH gives the tag and form of a rule's word."""

import re

from demo_grammar.table import VALUES, Word

Form = tuple[str, str]
CASES, GENDERS = ("nom", "acc", "dat", "gen"), "mfnp"
# The cells of a determiner's table where a weak adjective ends in -e, elsewhere in -en
WEAK_E = {0, 4, 5, 8, 9}


def _cell(case: str, number: str, noun: Word) -> int:
    """The place in the table of a determiner."""
    gender = "p" if number == "pl" else noun.german[2].replace("w", "m")
    return 4 * GENDERS.index(gender) + CASES.index(case)


def article(case: str, number: str, noun: Word, determiner: Word) -> Form:
    return "ART", determiner.german[_cell(case, number, noun)]


def adjective(case: str, number: str, noun: Word, determiner: Word, word: Word) -> Form:
    """With the ending of "dieser" behind a determiner without one, else weak."""
    cell = _cell(case, number, noun)
    strong = VALUES["this"][0].german[cell].removeprefix("dies")
    bare = determiner.german[cell] in ("-", "ein", "kein", "mein")
    return "ADJA", word.german[0] + (strong if bare else "e" if cell in WEAK_E else "en")


def relative(case: str, number: str, noun: Word, the: Word) -> Form:
    return "PRELS", "denen" if (case, number) == ("dat", "pl") else article(case, number, noun, the)[1]


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


def german_finite(number: str, verb: Word, tense: str | Word) -> Form:
    """The finite verb: the verb itself, the auxiliary of the perfect (past), or a modal verb."""
    if tense == "now":
        return german_verb("now", verb, number)
    if tense == "past":
        forms = ("sind", "ist") if verb.german[2][0] == "*" else ("haben", "hat")
        return "VAFIN", forms[number != "pl"]
    return "VAFIN" if tense.german[0] == "werden" else "VMFIN", tense.german[number != "pl"]


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
    "F": german_finite,
    "Prep": lambda verb: ("APPR", verb.german[3]),
    "Zu": lambda verb: ("PTKZU", "" if "+" in verb.german[0] else "zu"),
}
ENGLISH = {
    "N": english_noun,
    "Art": lambda _, number, __, determiner: ("DT", determiner.english[number == "pl"]),
    "V": english_verb,
    "Prep": lambda verb: ("IN", verb.english[0].partition("+")[2]),
}

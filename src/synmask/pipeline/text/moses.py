"""Moses' tokenizer.perl and detokenizer.perl in Python; an exported tokenizer takes this file along.

sacremoses 0.2.0 ports both scripts, but its tokens and text differ from theirs in many languages. Here its
tokeniser has the scripts' rules (versions of November 2018 and later). tests/text/moses.tsv has what Perl
makes of sentences in every language with a rule or a list of its own.
"""

from collections import Counter
from collections.abc import Sequence

import regex
from sacremoses import MosesDetokenizer, MosesTokenizer
from sacremoses.corpus import NonbreakingPrefixes

ABBREVIATIONS = frozenset(NonbreakingPrefixes().available_langs.values())  # languages with a list of them

# Signs that stay in a word if a lower-case letter follows, and what is cut off otherwise. The script reads
# its own Catalan point, two bytes, as two letters of Latin-1, so it never cuts one off.
_INSIDE = {"ca": ("·", "Â·"), "fi": (":", ":"), "sv": (":", ":"), "tdt": ("'", "'")}
# Entries of sacremoses' lists of abbreviations that the script never matches: it reads "Nrs ", with a blank.
_NO_ABBREVIATIONS = {
    "as": {"ভি"},
    "bn": {"ভি"},
    "mni": {"ভি"},
    "es": {"Fil", "gr", "pÃ¡g"},
    "it": {"Amn", "Arch", "all", "es"},
    "ml": {"പി"},
    "nl": {"Nrs"},
    "sk": {"Pf"},
    "sv": {"Ö"},
}
_BEFORE_ANYTHING = {"is": {"no"}}  # entries that sacremoses takes for abbreviations before numbers only
_BEFORE_NUMBERS = {"tdt": {"Nu"}}  # and one that it lacks

ALPHA = r"\p{Alphabetic}"  # Perl's IsAlpha
NUMERIC = r"\p{N}"  # Perl's IsN


def _others(inside: str = "") -> tuple[regex.Pattern[str], str]:
    """Those to set apart: all but letters, digits, the signs that have rules, and those `inside` words."""
    return regex.compile(rf"([^{ALPHA}\p{{Nd}}\s.'`,\-{inside}])"), r" \1 "


class Tokenizer(MosesTokenizer):
    """sacremoses' tokeniser with the output of tokenizer.perl, and faster at full stops.

    In every language the full stop that ends a line is a token ("Linie A ."), and letters and numbers are
    Unicode's. A language that the script knows has its signs inside words, its apostrophes and its
    abbreviations.
    """

    DEDUPLICATE_SPACE = regex.compile(r"[^\S\x1c-\x1f]+"), " "  # control characters are no spaces in Perl

    PAD_NOT_ISALNUM = _others()
    COMMA_SEPARATE_1 = regex.compile(rf"([^{NUMERIC}]),"), r"\1 , "
    COMMA_SEPARATE_2 = regex.compile(rf",([^{NUMERIC}])"), r" , \1"
    COMMA_SEPARATE_3 = regex.compile(rf"([{NUMERIC}]),$"), r"\1 ,"
    _OUTSIDE = regex.compile(rf"([^{ALPHA}])'([^{ALPHA}])"), r"\1 ' \2"
    _BEFORE = regex.compile(rf"([^{ALPHA}])'([{ALPHA}])"), r"\1 ' \2"
    _AFTER = regex.compile(rf"([{ALPHA}])'([^{ALPHA}])"), r"\1 ' \2"
    _BETWEEN = regex.compile(rf"([{ALPHA}])'([{ALPHA}])")
    ENGLISH_SPECIFIC_APOSTROPHE = (
        _OUTSIDE,
        (regex.compile(rf"([^{ALPHA}{NUMERIC}])'([{ALPHA}])"), r"\1 ' \2"),
        _AFTER,
        (_BETWEEN, r"\1 '\2"),
        (regex.compile(rf"([{NUMERIC}])'([s])"), r"\1 '\2"),
    )
    FR_IT_SPECIFIC_APOSTROPHE = (_OUTSIDE, _BEFORE, _AFTER, (_BETWEEN, r"\1' \2"))
    _ALPHA = regex.compile(ALPHA)
    _LOWER = regex.compile(r"\p{Lowercase}")

    def __init__(self, language: str) -> None:
        super().__init__(language)
        inside, cut_off = _INSIDE.get(language, ("", ""))
        self.PAD_NOT_ISALNUM = _others(inside)  # sacremoses has others for Chinese, Japanese and Korean
        self._cut_off = regex.compile(rf"({cut_off})(?!\p{{Ll}})") if cut_off else None
        if language in ("ca", "ga", "so", "tdt"):
            self.lang = "fr"  # for sacremoses, whose one use of it chooses the rules for apostrophes
        if language in ("so", "tdt"):  # between letters it is one of them
            self.FR_IT_SPECIFIC_APOSTROPHE = self.FR_IT_SPECIFIC_APOSTROPHE[:-1]
        numeric = set(self.NUMERIC_ONLY_PREFIXES) | _BEFORE_NUMBERS.get(language, set())
        self.NUMERIC_ONLY_PREFIXES = numeric - _BEFORE_ANYTHING.get(language, set())
        self.NONBREAKING_PREFIXES = set(self.NONBREAKING_PREFIXES) - _NO_ABBREVIATIONS.get(language, set())

    def islower(self, text: str) -> bool:  # called with one character
        return self._LOWER.match(text) is not None

    def isanyalpha(self, text: str) -> bool:
        return self._ALPHA.search(text) is not None

    def replace_multidots(self, text: str) -> str:  # the step after that of PAD_NOT_ISALNUM
        if self._cut_off:
            text = self._cut_off.sub(r" \1 ", text)
        return super().replace_multidots(text)

    def handles_nonbreaking_prefixes(self, text: str) -> str:
        head, _, last = text.rstrip().rpartition(" ")
        if last.endswith(".") and len(last) > 1:
            last = f"{last[:-1]} ."
        text = f"{head} {last}"
        return super().handles_nonbreaking_prefixes(text) if "." in head else text


_CJK = regex.compile(
    r"[\u1100-\u11FF\u2E80-\uA4CF\uA840-\uA87F\uAC00-\uD7AF\uF900-\uFAFF\uFE30-\uFE4F\uFF65-\uFFDC"
    r"\U00020000-\U0002FFFF]"
)
_OPENING = regex.compile(r"[\p{Sc}(\[{¿¡]+")
_CLOSING = regex.compile(r"[,.?!:;\\%}\])]+")
_QUOTES = regex.compile("['\"„“`]+")
_DIGITS = regex.compile("[0-9]+")
_STARTS_WITH_LETTER = regex.compile(f"[{ALPHA}]")
_ENDS_IN_LETTER = regex.compile(rf".*[{ALPHA}]")
_ENDS_IN_LETTER_OR_DIGIT = regex.compile(rf".*[{ALPHA}\p{{Nd}}]")
_CONTRACTION = regex.compile(rf"'[{ALPHA}].*")  # English: 's
_ELISION = regex.compile(rf".*[{ALPHA}]'")  # French and Italian: l'
_CZECH_ENDING = regex.compile("li|mail.*", regex.IGNORECASE)  # chce-li, e-mail; but not at the very end
_FINNISH_ENDING = regex.compile(
    "({})({})?({})?".format(
        *("|".join(getattr(MosesDetokenizer, f"FINNISH_MORPHSET_{number}")) for number in (1, 2, 3))
    )
)


class Detokenizer:
    """The plain text that detokenizer.perl makes of tokens, without its exception for lines of markup.

    sacremoses' detokeniser reads the sentence's end where the script reads the neighbours, and stops with an
    error at some Czech dashes.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self._unescaped = MosesDetokenizer(language).unescape_xml

    def detokenize(self, tokens: Sequence[str]) -> str:
        words = self._unescaped(f" {' '.join(tokens)} ".replace(" @-@ ", "-")).split()
        quotes: Counter[str] = Counter()
        text, joined = "", True
        for place, word in enumerate(words):
            to_last, to_next = self._joins(words, place, quotes)
            if self.language == "fr" and regex.fullmatch(r"[?!:;\\%]", word):
                to_last = joined = False
            if self.language == "fi" and to_last:
                word = word.lower()
            text += word if to_last or joined else f" {word}"
            joined = to_next
        return text.strip(" ")

    def _joins(self, words: Sequence[str], place: int, quotes: Counter[str]) -> tuple[bool, bool]:
        """Whether the word is joined to the last one, and to the next; `quotes` counts the marks so far."""
        first, last, word, following, third = ["", "", *words, "", ""][place : place + 5]
        language = self.language
        if _CJK.match(word):
            return language != "ko" and bool(last and _CJK.match(last[-1])), False
        if _OPENING.fullmatch(word):
            return False, True
        if _CLOSING.fullmatch(word):
            return True, False
        if language == "en" and _CONTRACTION.fullmatch(word) and _ENDS_IN_LETTER_OR_DIGIT.fullmatch(last):
            return True, False
        if language == "cs" and last in (".", ",") and _DIGITS.fullmatch(first) and _DIGITS.fullmatch(word):
            return True, False
        if language in ("fr", "it") and _ELISION.fullmatch(word) and _STARTS_WITH_LETTER.match(following):
            return False, True
        if language == "cs" and word in ("-", "–") and third and _CZECH_ENDING.fullmatch(following):
            joined = bool(_ENDS_IN_LETTER.fullmatch(last) and not _CJK.match(last))
            return joined, joined
        if _QUOTES.fullmatch(word):
            return self._joins_quotes(word, last, quotes)
        return language == "fi" and last.endswith(":") and bool(_FINNISH_ENDING.fullmatch(word)), False

    def _joins_quotes(self, word: str, last: str, quotes: Counter[str]) -> tuple[bool, bool]:
        """An opening mark is joined to the next word, a closing one, each second of its kind, to the last."""
        mark = '"' if set(word) <= set("„“") else word
        if self.language == "cs" and word in ("„", "“"):
            quotes[mark] = int(word == "“")
        if quotes[mark] % 2 == 0 and self.language == "en" and word == "'" and last.endswith("s"):
            return True, False  # the Jones' house
        quotes[mark] += 1
        return quotes[mark] % 2 == 0, quotes[mark] % 2 == 1

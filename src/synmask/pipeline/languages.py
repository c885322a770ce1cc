"""Language codes (ISO 639, or tags such as zh-Hant and pt_BR), and which of them are the same language."""

import re
import sys
from collections.abc import Iterable
from functools import cache
from typing import Any

# Regular expressions; what follows a language's letters begins otherwise, so that hyphens part directions.
LANGUAGE = "[a-z]{2,3}(?:[-_](?:[A-Z][a-z]{3}|[A-Z]{2}|[0-9]{3}))*"
DIRECTION = f"{LANGUAGE}-{LANGUAGE}"

# Codes and their scripts that need no look-up: loading the registry takes a tenth of a second.
COMMON_SCRIPTS = dict.fromkeys(("cs", "de", "en", "fr"), "Latn") | {"ja": "Jpan", "ko": "Kore", "zh": "Hans"}
NO_LANGUAGES = frozenset({None, "mis", "mul", "zxx"})  # of und, and codes for several languages or none
HAN = frozenset({"Hans", "Hant"})
# Scripts (ISO 15924) without spaces between words → characters of a word, on average
WITHOUT_SPACES = dict.fromkeys((*HAN, "Jpan"), 1.5) | dict.fromkeys(
    ("Khmr", "Laoo", "Mymr", "Thai", "Tibt"), 4
)
WITH_SPACES = 5  # likewise, of other scripts

# For `regex`: a character of scripts with spaces; not the letters of others, nor any full-width form
_UNSPACED = (
    r"\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Bopo}"
    r"\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}\p{scx=Tibt}\uFF00-\uFFEF"
)
SPACED_CHARACTER = rf"[[!-~\p{{L}}\p{{M}}\p{{Nd}}]--[{_UNSPACED}]]"
BLANK = "▁"  # a token that stands for a space of the text, as sentencepiece writes it


@cache
def _tag(code: str) -> Any:
    import langcodes

    return langcodes.Language.get(code)  # deu and ger become de


def is_language(code: str) -> bool:
    """Whether `code` names a language."""
    if code in COMMON_SCRIPTS:
        return True
    tag = _tag(code)
    return tag.is_valid() and tag.language not in NO_LANGUAGES


def match_language(code: str, known: Iterable[str]) -> str | None:
    """The code among `known` of the same language: deu, de_AT → de, cmn → zh; None if there is none."""
    known = list(known)
    if code in known:
        return code
    languages = _tag(code).language, _tag(code).prefer_macrolanguage().language
    same = (other for language in languages for other in known if _tag(other).language == language)
    return next(same, None)


def base_language(code: str) -> str:
    """The code of the language alone, with two letters if it has one: zho → zh, pt_BR → pt."""
    return code if code in COMMON_SCRIPTS else _tag(code).language


def closest_language(code: str, known: Iterable[str]) -> str:
    """The code among `known` of the same language, its shortest one if there is none."""
    return match_language(code, known) or base_language(code)


def script_of(code: str) -> str:
    """The script that the language is written in, such as Latn, by ISO 15924."""
    return COMMON_SCRIPTS.get(code) or _tag(code).maximize().script


def default_tokeniser(code: str) -> tuple[str, str]:
    """The name of the tokeniser that a corpus takes unless it names one, and why (docs/corpora.md)."""
    used = script_of(code)
    if used not in WITHOUT_SPACES:
        return "moses", "words have spaces between them"
    if used == "Jpan":
        return "mecab", "no spaces between words; with ipadic, as sacreBLEU's ja-mecab; the paper's is juman"
    paper = "; the paper's is stanford" if used in HAN else ""
    return "icu", f"no spaces between words; ICU has a dictionary of them{paper}"


def characters_per_word(code: str, tokeniser: str) -> float | None:
    """How many characters count as a word where the tokeniser makes no words; None where it makes some."""
    return WITHOUT_SPACES.get(script_of(code), WITH_SPACES) if tokeniser == "char" else None


def describe_language(code: str) -> str:
    """The code and its meaning, and the language that may be meant: "kr (Kanuri; Korean is ko)"."""
    right = country_language(code)
    hint = f"; {language_name(right)} is {right}" if right and right != base_language(code) else ""
    return f"{code} ({language_name(code)}{hint})"


def country_language(code: str) -> str | None:
    """The language of the country with this code of two letters; None where there is none, or English."""
    country = _tag(f"und-{code.upper()}") if len(code) == 2 else None
    right = country.maximize().language if country and country.is_valid() else "en"
    return None if right == "en" else right  # the library also returns English for unknown countries


def language_name(code: str) -> str:
    from langcodes.registry_parser import parse_registry

    short = _tag(code).language
    names = (entry["Description"][0] for entry in parse_registry() if entry.get("Subtag") == short)
    return next(names, code)


@cache
def print_note(words: str) -> None:
    """Print a note on stderr, once."""
    print(f"note: {words}", file=sys.stderr)


def split_direction(direction: str) -> tuple[str, str]:
    """Source and target: "de-en" → ("de", "en"), "pt-BR-zh-Hant" → ("pt-BR", "zh-Hant")."""
    source, target = re.split("-(?=[a-z])", direction)
    return source, target

import pytest

from synmask.pipeline.config.base import checked_language
from synmask.pipeline.languages import base_language, describe_language, match_language, print_note

KNOWN = ["de", "fr", "pt", "yue", "zh"]


@pytest.fixture(autouse=True)
def fresh():
    print_note.cache_clear()


@pytest.mark.parametrize(
    ("code", "short", "known"),
    [
        ("de", "de", "de"),
        ("deu", "de", "de"),  # ISO 639-3 and 639-2/T
        ("ger", "de", "de"),  # 639-2/B
        ("fre", "fr", "fr"),
        ("zho", "zh", "zh"),
        ("chi", "zh", "zh"),
        ("cmn", "cmn", "zh"),  # of a macrolanguage
        ("yue", "yue", "yue"),
        ("zh-Hans", "zh", "zh"),
        ("zh_TW", "zh", "zh"),
        ("pt-BR", "pt", "pt"),
        ("de_AT", "de", "de"),
        ("hsb", "hsb", None),
        ("kr", "kr", None),  # Kanuri, though somebody may mean Korean
    ],
)
def test_codes_of_one_language(code, short, known):
    assert (checked_language(code), base_language(code), match_language(code, KNOWN)) == (code, short, known)


def test_a_known_code_may_be_any_of_the_language():
    assert match_language("de", ["deu"]) == "deu"
    assert match_language("ger", ["eng", "deu"]) == "deu"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("jp", "for Japanese write ja"),
        ("cn", "for Chinese write zh"),
        ("cz", "for Czech write cs"),
        ("ua", "for Ukrainian write uk"),
        ("xx", "'xx' is no code of a language in ISO 639"),
        ("xyz", "'xyz' is no code"),
        ("mul", "'mul' is no code"),  # several languages
        ("und", "'und' is no code"),
    ],
)
def test_what_is_no_code_is_refused(code, message):
    with pytest.raises(ValueError, match=message):
        checked_language(code)


def test_names_of_codes():
    assert describe_language("kr") == "kr (Kanuri; Korean is ko)"
    assert describe_language("xho") == "xho (Xhosa)"
    assert describe_language("fra") == "fra (French)"


def test_a_note_is_reported_once(capsys):
    for words in ("a", "b", "a"):
        print_note(words)
    assert capsys.readouterr().err == "note: a\nnote: b\n"

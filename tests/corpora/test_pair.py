import gzip
import json

import pytest

from synmask.pipeline import languages
from synmask.pipeline.config.sections import Text
from synmask.pipeline.corpora.pair import write_text
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_lines, write_lines

RAW = {
    "train.de": ["Er  sagt: „Nein.“", "Ja!", "Sehr viel zu lang ist dieser Satz hier.", "Gut", "Gut"],
    "train.en": ["He says: “No.”", "Yes!", "No.", "Good", "Fine"],
    "valid.de": ["Ja!", "Neu."],
    "valid.en": ["Yes!", "New."],
    "news.de": ["Gut"],
    "news.en": ["Good"],
    "talks.de": ["Neu.", "Oh [1]"],
    "talks.en": ["New.", "Oh [1]"],
}
SPLITS = ("train", "valid", "test", "test")


@pytest.fixture
def write(tmp_path):
    """Write these raw files, and what `write_text` makes of them → its folder."""

    def made(threads=1, pairs=None, splits=SPLITS, settings=None, **changed):
        languages.print_note.cache_clear()
        for name, lines in (RAW | changed).items():
            write_lines(tmp_path / f"{name}.gz", lines)
        names = ("train", "valid", "news", "talks")[: len(splits)]
        sides = {
            side: [tmp_path / f"{name}.{language}.gz" for name in names]
            for side, language in (("source_in", "de"), ("target_in", "en"))
        }
        write_text(
            name="mine", source="de", target="en", splits=splits, **sides, output=tmp_path / "pair",
            settings=settings or Text(max_ratio=2.0), pairs=pairs, threads=threads,
        )  # fmt: skip
        return tmp_path / "pair"

    return made


def lines(folder, *names):
    return [[*read_lines(folder / name)] for name in names]


@pytest.mark.parametrize("threads", [1, 2])
def test_raw_files_become_text_tokens_and_clean_pairs(write, threads):
    pair = write(threads=threads)
    assert lines(pair, "text/train.de")[0][0] == "Er sagt: „Nein.“"
    assert lines(pair, "text/test.de", "text/test.en") == [
        ["Gut", "Neu.", "Oh [1]"],
        ["Good", "New.", "Oh [1]"],
    ]
    assert lines(pair, "tokens/valid.de", "tokens/test.en") == [
        ["Ja !", "Neu ."],
        ["Good", "New .", "Oh &#91; 1 &#93;"],
    ]
    tokens, clean = lines(pair, "tokens/train.de", "clean/train.de")
    assert tokens[0] == "Er sagt : „ Nein . “"
    assert lines(pair, "clean/kept.de-en") == [["1", "2", "4", "5"]]
    assert clean == [tokens[number] for number in (0, 1, 3, 4)]
    assert lines(pair, "clean/train.en") == [["He says : “ No . ”", "Yes !", "Good", "Fine"]]


def test_pairs_are_counted(write, capsys):
    counted = json.loads((write() / "pairs.json").read_text())
    assert counted == {
        "pairs": {"train": 5, "valid": 2, "test": 3},
        "train": {"kept": 4, "too_short": 0, "too_long": 0, "ratio": 1, "long_word": 0},
        "overlap": {"valid in train": 1, "test in train": 1, "test in valid": 1},
    }
    output = capsys.readouterr().err
    assert "note: mine: 1 of 5 training pairs are dropped: 1 of too different length; to keep more" in output
    assert "note: mine de-en: 1 of 2 pairs of valid are in train, too" in output


def test_lower_case_is_that_of_tokens_alone(write):
    pair = write(settings=Text(lowercase=True, tokeniser={"de": "none", "en": "moses"}, max_ratio=None))
    assert lines(pair, "text/valid.de", "tokens/valid.de", "tokens/valid.en") == [
        ["Ja!", "Neu."],
        ["ja!", "neu."],
        ["yes !", "new ."],
    ]


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"pairs": {"valid": 2, "test": [1, 2]}}, "mine: test has 3 pairs, not 1 to 2"),
        ({"splits": ("train", "valid")}, "--splits: no file of test"),
        ({"talks.en": ["New."]}, r"talks\.de\.gz has 2 lines, .*talks\.en\.gz has 1"),
        ({"settings": Text(max_tokens=1)}, r"mine: .* are dropped: .*raise corpora\.mine\.text\.max_tokens"),
    ],
)
def test_a_fault_leaves_nothing(write, tmp_path, kwargs, words):
    if "settings" in kwargs:
        kwargs |= {"train.de": ["a b c"] * 20, "train.en": ["a b c"] * 20}
    with pytest.raises(UserError, match=words):
        write(**kwargs)
    assert not (tmp_path / "pair").exists()


def test_a_damaged_file_leaves_what_was_there(write, tmp_path):
    pair = write()
    before = {path: path.read_bytes() for path in pair.rglob("*") if path.is_file()}
    (tmp_path / "valid.de.gz").write_bytes(gzip.compress(b"a\n\xff\n"))
    names = ("train", "valid", "talks")
    sides = {
        side: [tmp_path / f"{name}.{language}.gz" for name in names]
        for side, language in (("source_in", "de"), ("target_in", "en"))
    }
    with pytest.raises(UserError, match=r"valid\.de\.gz, line 2: not UTF-8"):
        write_text(
            name="mine", source="de", target="en", splits=SPLITS[:3], settings=Text(), output=pair, **sides
        )
    assert {path: path.read_bytes() for path in pair.rglob("*") if path.is_file()} == before
    assert not [*pair.glob(".*")]

"""On a small archive of exactly the publisher's structure."""

import io
import re
import tarfile
from pathlib import Path

import pytest

from synmask.pipeline.config.loading import project_files, read_all
from synmask.pipeline.corpora import iwslt14
from synmask.pipeline.corpora.plain import check_count
from synmask.pipeline.corpora.prepare import prepare
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_lines
from synmask.pipeline.text.clean import outcome
from synmask.pipeline.text.tokenise import tokenise

TALKS = 12
SETS = [
    "TED.dev2010",
    "TEDX.dev2012",
    "TED.tst2010",
    "TED.tst2011",
    "TED.tst2012",
]  # the order of the test set
WORDS = {
    "de": "Das Haus ist groß und der Hund schläft z.B. nicht",
    "en": "The house is big and the dog doesn't sleep",
}


def tags(language):
    """A training file: tags in lines of their own, then text; every talk has a few lines."""
    lines = []
    for talk in range(TALKS):
        lines += [
            f"<url>http://www.ted.com/talks/{talk}</url>",
            f"<keywords>talks, {language}</keywords>",
            f"<speaker>Jane Doe {talk}</speaker>",
            f"<talkid>{talk}</talkid>",
            f"<title>A <b>title</b> {talk}</title>",
            f"<description>TED Talk {talk}: über &amp; about</description>",
            f'<reviewer href="x">Rev {talk}</reviewer>',
            f"<translator>Trans {talk}</translator>",
        ]
        words = WORDS[language].split()
        for line in range(5):
            lines.append(f" {' '.join(words[: 3 + line])} {talk}-{line}. ")
        lines.append("")  # too short
        lines.append("kurz und viel länger als nötig" if language == "de" else "short")  # of unlike length
        lines.append(" ".join(["lang"] * (176 if talk % 2 else 175)))  # too long, or just not
        lines.append(f"<URL>stays {talk}</URL>")  # tags are told apart by case
    return "\n".join(lines)  # no line end at the end


def xml(name, language):
    """A test file, indented and with tags as in the publisher's; some segments are empty."""
    segments = [f"{name} {language} {number} &amp; it’s" for number in range(1, 4)]
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<mteval>", f'<srcset setid="x" srclang="{language}">']
    lines += ['<doc docid="1" genre="lectures">', "<title>not this</title>", "<speaker>nor this</speaker>"]
    lines += [f'<seg id="{number}"> {text} </seg>' for number, text in enumerate(segments, start=1)]
    lines += ['<seg id="14"></seg>', '  <seg id="15">last   one </seg>  ', "</doc>", "</srcset>", "</mteval>"]
    return "\n".join(lines)


def contents():
    files = {f"de-en/train.tags.de-en.{language}": tags(language) for language in ("de", "en")}
    for name in SETS:
        for language in ("de", "en"):
            files[f"de-en/IWSLT14.{name}.de-en.{language}.xml"] = xml(name, language)
    return files | {"de-en/README": "read me", "de-en/train.en": "more"}


def write_archive(path, files):
    with tarfile.open(path, "w:gz") as tar:
        directory = tarfile.TarInfo("de-en")
        directory.type = tarfile.DIRTYPE
        tar.addfile(directory)
        for name, text in files.items():
            data = text.encode()
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


@pytest.fixture
def archive(tmp_path):
    return write_archive(tmp_path / "de-en.tgz", contents())


def prepared(archive, output, **pairs):
    counts = prepare(
        name="iwslt14", format="iwslt14", archives=[archive], output=output, pairs=pairs, threads=1
    )
    lines = {path.name: list(read_lines(path)) for path in output.iterdir()}
    assert sorted(lines) == [f"{s}.{lang}" for s in ("test", "train", "valid") for lang in ("de", "en")]
    return counts, lines


def by_the_script(language):
    """The raw lines of a training file when prepare-iwslt14.sh begins to clean them, as plainly as can be."""
    lines = tags(language).split("\n")
    lines = [line for line in lines if not any(tag in line for tag in ("<url>", "<talkid>", "<keywords>"))]
    for tag in ("<title>", "</title>", "<description>", "</description>"):
        lines = [line.replace(tag, "") for line in lines]
    return lines


def test_train_and_valid_are_those_of_fairseqs_script(archive, tmp_path):
    counts, lines = prepared(archive, tmp_path / "out")
    raw = {language: by_the_script(language) for language in ("de", "en")}
    tokens = {language: list(tokenise(raw[language], language)) for language in raw}
    kept = []
    for number, (de, en) in enumerate(zip(tokens["de"], tokens["en"], strict=True)):
        a, b = len(de.split()), len(en.split())
        if min(a, b) >= 1 and max(a, b) <= 175 and max(a, b) / min(a, b) <= 1.5:
            kept.append(number)
    assert len(kept) > 3 * 23
    for language, text in raw.items():
        valid = [text[number] for place, number in enumerate(kept, start=1) if place % 23 == 0]
        train = [text[number] for place, number in enumerate(kept, start=1) if place % 23]
        assert lines[f"valid.{language}"] == valid
        assert lines[f"train.{language}"] == train
    assert counts == {"train": len(kept) - len(kept) // 23, "valid": len(kept) // 23, "test": 25}


def test_tags_of_a_training_file(tmp_path):
    (tmp_path / "t").write_text(tags("en"))
    lines = list(iwslt14.read_training_lines(tmp_path / "t"))
    assert lines[:5] == [
        "<speaker>Jane Doe 0</speaker>",
        "A <b>title</b> 0",
        "TED Talk 0: über &amp; about",
        '<reviewer href="x">Rev 0</reviewer>',
        "<translator>Trans 0</translator>",
    ]
    assert lines[-1] == "<URL>stays 11</URL>"
    assert len(lines) == TALKS * 14


def test_cleaning_the_training_pairs_again_drops_nothing(archive, tmp_path):
    _, lines = prepared(archive, tmp_path / "out")
    for split in ("train", "valid"):
        sides = [tokenise(lines[f"{split}.{language}"], language) for language in ("de", "en")]
        for de, en in zip(*sides, strict=True):
            assert outcome(de.split(), en.split(), 1, 175, 1.5) == "kept"


def test_the_test_set_is_five_files_in_order(archive, tmp_path):
    _, lines = prepared(archive, tmp_path / "out")
    for language in ("de", "en"):
        expected = []
        for name in SETS:
            expected += [f"{name} {language} {number} &amp; it's" for number in (1, 2, 3)] + [
                "",
                "  last   one",
            ]
        assert lines[f"test.{language}"] == expected


def test_the_expected_counts(archive, tmp_path):
    counts, _ = prepared(archive, tmp_path / "out")
    assert prepared(archive, tmp_path / "again", **counts)[0] == counts
    with pytest.raises(UserError, match=r"iwslt14: test has 25 pairs, not 6,750; .*corpora\.iwslt14\.pairs"):
        prepare(
            name="iwslt14",
            format="iwslt14",
            archives=[archive],
            output=tmp_path / "new",
            pairs={"test": 6750},
        )
    assert not (tmp_path / "new").exists()


def test_the_shipped_counts_leave_room_for_a_tokeniser():
    pairs = read_all(project_files(Path(__file__).parents[2]))["corpora"]["iwslt14"]["pairs"]
    for kept in (160_239 + 7_283, 160_189 + 7_281, 160_289 + 7_285):
        check_count("iwslt14", "train", kept - kept // 23, pairs["train"])
        check_count("iwslt14", "valid", kept // 23, pairs["valid"])
    for train in (160_188, 160_290):
        with pytest.raises(UserError, match="not 160,189 to 160,289"):
            check_count("iwslt14", "train", train, pairs["train"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda f: f.pop("de-en/IWSLT14.TED.tst2011.de-en.en.xml"),
            "has no member de-en/IWSLT14.TED.tst2011",
        ),
        (
            lambda f: f.update({"de-en/train.tags.de-en.en": "one\ntwo"}),
            "line n of one must translate line n",
        ),
        (
            lambda f: f.update({"de-en/IWSLT14.TED.dev2010.de-en.de.xml": '<seg id="1"> x </seg>'}),
            "test.de has 21 lines, .*test.en has 25",
        ),
    ],
)
def test_an_archive_that_is_not_the_publishers(tmp_path, change, message):
    files = contents()
    change(files)
    archive = write_archive(tmp_path / "de-en.tgz", files)
    with pytest.raises(UserError) as error:
        prepare(name="iwslt14", format="iwslt14", archives=[archive], output=tmp_path / "out", pairs={})
    assert re.search(message, str(error.value))
    assert not (tmp_path / "out").exists()


def test_an_archive_is_known_by_its_name(archive, tmp_path):
    with pytest.raises(UserError, match=r"iwslt14: archives: iwslt14 needs de-en\.tgz"):
        prepare(
            name="iwslt14",
            format="iwslt14",
            archives=[archive.rename(tmp_path / "x.tgz")],
            output=tmp_path / "out",
            pairs={},
        )
    with pytest.raises(UserError, match=r"de-en\.tgz: no such file"):
        prepare(
            name="iwslt14",
            format="iwslt14",
            archives=[tmp_path / "de-en.tgz"],
            output=tmp_path / "out",
            pairs={},
        )

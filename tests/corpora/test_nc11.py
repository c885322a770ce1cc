"""On small archives of exactly the publisher's structure."""

import io
import tarfile

import pytest

from synmask.pipeline.corpora import nc11
from synmask.pipeline.corpora.prepare import prepare
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_lines

GERMAN = "Die Regierung hat gestern eine Verordnung über die Banken beschlossen"
ENGLISH = "The government has decided yesterday on a new regulation about the banks"
TRAIN = [  # German, English, kept
    (f"{GERMAN}.", f"{ENGLISH}.", True),
    (f"{ENGLISH}.", f"{ENGLISH}.", False),  # not German
    (f"{GERMAN}.", f"{GERMAN}.", False),  # not English
    ("", ENGLISH, False),
    (f'{GERMAN}  \t und\u00a0mehr & "so".\r', f"{ENGLISH} and more", True),
    ("12 34 5678.", "12 34 5678.", False),  # no letters: no language
    (
        " ".join([GERMAN] * 8),
        "The government has decided on banks",
        False,
    ),  # 80 tokens, but over 9 times as many
    (" ".join([GERMAN] * 8), " ".join([ENGLISH] * 6), True),
    (f"{' '.join([GERMAN] * 8)}.", " ".join([ENGLISH] * 6), False),  # 81 tokens
]
LONG = " ".join([GERMAN] * 8)


def sgm(year, language, side):
    """Attributes in any order, entities, segments over several lines or on one, tags in capitals."""
    return f'''<{side}set trglang="en" setid="newstest{year}" srclang="any">
<doc sysid="ref" docid="1-abc" genre="news" origlang="{language}">
<p>
<seg id="1">{language} {year} &amp; &quot;one&quot;  </seg>
<seg   id="2" extra='x'>
 {language} two
 lines</seg>
</p><p><SEG ID="3">{language} three</SEG><seg id="4">{language} four</seg>
<hl>
<seg id="5"></seg>
</hl>
</p>
</doc>
</{side}set>
'''


def archives():
    train = {
        "training-parallel-nc-v11/news-commentary-v11.de-en.de": "".join(f"{de}\n" for de, _, _ in TRAIN),
        "training-parallel-nc-v11/news-commentary-v11.de-en.en": "".join(f"{en}\n" for _, en, _ in TRAIN),
        "training-parallel-nc-v11/news-commentary-v11.cs-en.en": "other\n",
    }
    tests = {}
    for split, year in (("dev", 2015), ("test", 2016)):
        tests[f"{split}.tgz"] = {
            f"{split}/newstest{year}-{pair}-{side}.{language}.sgm": sgm(year, language, side)
            for pair, side, language in [
                ("deen", "src", "de"), ("deen", "ref", "en"), ("ende", "src", "en"), ("ende", "ref", "de"),
            ]
        }  # fmt: skip
    return {"training-parallel-nc-v11.tgz": train, **tests}


def written(folder, contents):
    folder.mkdir(exist_ok=True)
    for archive, files in contents.items():
        with tarfile.open(folder / archive, "w:gz") as tar:
            for name, text in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(text.encode())
                tar.addfile(info, io.BytesIO(text.encode()))
    return [folder / archive for archive in contents]


def test_pairs_of_both_languages_within_limits_are_kept(tmp_path):
    assert len(LONG.split()) == 80
    paths = written(tmp_path / "in", archives())
    counts = prepare(
        name="nc11",
        format="nc11",
        archives=paths,
        output=tmp_path / "out",
        pairs={"train": (2, 4), "valid": 5},
        threads=2,
    )
    assert counts == {"train": 3, "valid": 5, "test": 5}
    for side, language in enumerate(nc11.LANGUAGES):
        kept = [" ".join(pair[side].split()) for pair in TRAIN if pair[2]]
        assert list(read_lines(tmp_path / f"out/train.{language}")) == kept
        for split, year in (("valid", 2015), ("test", 2016)):
            assert list(read_lines(tmp_path / f"out/{split}.{language}")) == [
                f"{language} {year} &amp; &quot;one&quot;", f"{language} two lines", f"{language} three",
                f"{language} four", "",
            ]  # fmt: skip


def test_a_count_outside_its_range(tmp_path):
    paths = written(tmp_path / "in", archives())
    with pytest.raises(UserError, match="nc11: train has 3 pairs, not 230,000 to 238,000"):
        prepare(
            name="nc11",
            format="nc11",
            archives=paths,
            output=tmp_path / "out",
            pairs={"train": (230000, 238000)},
        )


def test_a_segment_that_does_not_end(tmp_path):
    contents = archives()
    text = contents["test.tgz"]["test/newstest2016-deen-ref.en.sgm"]
    contents["test.tgz"]["test/newstest2016-deen-ref.en.sgm"] = text.replace("</seg>", "", 1)
    with pytest.raises(UserError, match=r"newstest2016-deen-ref\.en\.sgm: 5 segments start and 4 end"):
        prepare(
            name="nc11",
            format="nc11",
            archives=written(tmp_path / "in", contents),
            output=tmp_path / "out",
            pairs={},
        )


def test_the_language_is_told_the_same_way_each_time():
    lines = ["in Berlin", "Bank of England", "USA", "Die", "&quot;", ""]
    first = [nc11.identify_language(line) for line in lines]
    assert first == [nc11.identify_language(line) for line in reversed(lines)][::-1]
    assert first[-2:] != [None, None]
    assert nc11.identify_language(GERMAN) == "de"
    assert nc11.identify_language(ENGLISH) == "en"
    assert nc11.identify_language("") == nc11.identify_language("1 2 3") == ""

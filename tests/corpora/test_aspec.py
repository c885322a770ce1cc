import pytest

from synmask.pipeline.corpora.prepare import prepare
from synmask.pipeline.errors import UserError
from synmask.pipeline.files import read_lines


@pytest.fixture
def licensed(tmp_path):
    def write(**kwargs):
        for name in ("train", "dev", "test"):
            lines = [f"{name}-{n} ||| これは{n}[番|目]である。 ||| 这是第{n}[个|句]。" for n in range(3)]
            (tmp_path / f"{name}.txt").write_text("\n".join(kwargs.get(name, lines)) + "\n", encoding="utf-8")
        return [tmp_path / f"{name}.txt" for name in ("train", "dev", "test")]

    return write


def test_both_sentences_as_they_are(licensed, tmp_path):
    counts = prepare(
        name="aspec", format="aspec", archives=licensed(), output=tmp_path / "out", pairs={"test": 3}
    )
    assert counts == {"train": 3, "valid": 3, "test": 3}
    assert list(read_lines(tmp_path / "out/valid.ja")) == [f"これは{n}[番|目]である。" for n in range(3)]
    assert list(read_lines(tmp_path / "out/test.zh")) == [f"这是第{n}[个|句]。" for n in range(3)]


@pytest.mark.parametrize(
    ("line", "fields"), [("0.9 ||| a ||| 1 ||| ja ||| en", 5), ("a ||| b", 2), ("a|||b|||c", 1), ("", 1)]
)
def test_another_release_is_refused(licensed, tmp_path, line, fields):
    paths = licensed(dev=["a ||| b ||| c", line])
    with pytest.raises(UserError, match=rf"dev\.txt, line 2: {fields} fields, not 3") as error:
        prepare(name="aspec", format="aspec", archives=paths, output=tmp_path / "out", pairs={})
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()

import gzip

import pytest

from synmask.pipeline.corpora.plain import write_pair
from synmask.pipeline.errors import UserError


@pytest.fixture
def pair(tmp_path):
    """A function that writes bytes as the two inputs, copies them, and returns what `write_pair` made."""

    def write(source, target, ending=""):
        inputs = [tmp_path / f"in.de{ending}", tmp_path / f"in.en{ending}"]
        for path, data in zip(inputs, (source, target), strict=True):
            path.write_bytes(gzip.compress(data) if ending else data)
        outputs = [tmp_path / "out" / "train.de", tmp_path / "out" / "train.en"]
        count = write_pair("mine", [inputs], outputs)
        return count, *(path.read_bytes().decode() for path in outputs)

    return write


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_white_space_becomes_one_space(pair, ending):
    source = "\ufeff  Grüß \t dich\u00a0,\u2028Welt \r\n\n\u3000z\u0085w\x1cei\u2009\nd\u200brei".encode()
    target = b"one\ntwo  words\nthree\nfour\n"
    count, source, target = pair(source, target, ending)
    assert count == 4
    assert source == "Grüß dich , Welt\n\nz w ei\nd\u200brei\n"
    assert target == "one\ntwo words\nthree\nfour\n"


@pytest.mark.parametrize(
    ("source", "target", "parts"),
    [
        (b"a\nb\nc\n", b"a\n", ["in.de has 3 lines", "in.en has 1"]),
        (b"a\n", b"a\nb", ["in.de has 1 lines", "in.en has 2"]),
        (b"a\n", b"", ["in.de has 1 lines", "in.en has 0"]),
        (b"", b"", ["mine", "in.de", "in.en", "empty"]),
        (b"a\nb\n", b"a\n\xff\n", ["in.en, line 2: not UTF-8"]),
    ],
)
def test_a_fault_is_one_line_and_leaves_outputs_alone(pair, tmp_path, source, target, parts):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "train.en").write_text("as it was")
    with pytest.raises(UserError) as error:
        pair(source, target)
    assert all(part in str(error.value) for part in parts)
    assert "\n" not in str(error.value)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["train.en"]
    assert (tmp_path / "out" / "train.en").read_text() == "as it was"


@pytest.mark.parametrize(("split", "said"), [("test", True), ("valid", True), ("train", False)])
def test_empty_source_lines_are_counted_and_said(tmp_path, capsys, split, said):
    """Of the sets that are translated."""
    source, target = tmp_path / "in.de", tmp_path / "in.en"
    source.write_text("a\n\n \t\nb\n")
    target.write_text("a\nb\nc\n\n")
    out = [tmp_path / f"{split}.{language}" for language in ("de", "en")]
    assert write_pair("mine", [(source, target)], out) == 4
    line = f"note: mine: 2 of 4 source lines are empty, and so are their translations: {source}\n"
    assert capsys.readouterr().err == (line if said else "")


def test_a_missing_file_is_named(tmp_path):
    (tmp_path / "a").write_text("x\n")
    with pytest.raises(UserError, match="nowhere: no such file"):
        write_pair("mine", [(tmp_path / "a", tmp_path / "nowhere")], [tmp_path / "b", tmp_path / "c"])
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_the_number_of_pairs_is_checked(tmp_path):
    (tmp_path / "a").write_text("x\ny\n")
    files = [(tmp_path / "a", tmp_path / "a")], [tmp_path / "train.de", tmp_path / "train.en"]
    assert write_pair("mine", *files, 2) == 2
    assert write_pair("mine", *files, (1, 2)) == 2
    with pytest.raises(UserError, match=r"mine: train has 2 pairs, not 3; .* corpora\.mine\.pairs"):
        write_pair("mine", *files, 3)
    with pytest.raises(UserError, match="mine: train has 2 pairs, not 3 to 1,000"):
        write_pair("mine", *files, (3, 1000))


def test_several_files_are_joined_in_their_order(tmp_path):
    names = {"one": b"a  b\nc", "two": b"d\n"}
    for name, data in names.items():
        (tmp_path / f"{name}.de.gz").write_bytes(gzip.compress(data))
        (tmp_path / f"{name}.en").write_bytes(data.upper())
    outputs = [tmp_path / "test.de", tmp_path / "test.en"]
    files = [(tmp_path / f"{name}.de.gz", tmp_path / f"{name}.en") for name in names]
    assert write_pair("mine", files, outputs, 3) == 3
    assert [path.read_text() for path in outputs] == ["a b\nc\nd\n", "A B\nC\nD\n"]
    (tmp_path / "two.en").write_bytes(b"")
    with pytest.raises(UserError, match=r"two\.de\.gz has 1 lines, .*two\.en has 0"):
        write_pair("mine", files, outputs)
    (tmp_path / "two.de.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(UserError, match=r"mine: .*two\.de\.gz and .*two\.en are empty"):
        write_pair("mine", files, outputs)

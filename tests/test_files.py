import gzip

import pytest

from synmask.files import UserError, read_json, read_lines, sha256, write_json, write_lines, writing


@pytest.mark.parametrize("name", ["text", "text.gz"])
def test_lines_come_back(tmp_path, name):
    lines = ["ä", "", "a\u2028b", " c\t"]
    assert write_lines(tmp_path / "new" / name, lines) == 4
    assert list(read_lines(tmp_path / "new" / name)) == lines
    assert [path.name for path in (tmp_path / "new").iterdir()] == [name]


def test_the_same_text_gives_the_same_gzip_bytes(tmp_path):
    write_lines(tmp_path / "a.gz", ["x"])
    write_lines(tmp_path / "b.gz", ["x"])
    assert sha256(tmp_path / "a.gz") == sha256(tmp_path / "b.gz")


@pytest.mark.parametrize("mode", ["w", "wb"])
@pytest.mark.parametrize("name", ["text", "text.gz"])
def test_a_failed_writing_leaves_the_old_file(tmp_path, mode, name):
    write_lines(tmp_path / name, ["old"])

    def fail():
        with writing(tmp_path / name, mode) as handle:
            handle.write("new" if mode == "w" else b"new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(read_lines(tmp_path / name)) == ["old"]
    assert len(list(tmp_path.iterdir())) == 1


def test_byte_order_mark_and_carriage_returns_are_dropped(tmp_path):
    (tmp_path / "text").write_bytes(b"\xef\xbb\xbfa\r\nb\r\nc")
    assert list(read_lines(tmp_path / "text")) == ["a", "b", "c"]


def damaged(tmp_path):
    whole = gzip.compress(b"some text\n" * 1000)
    broken = bytearray(whole)
    broken[20] ^= 255
    return {"cut.gz": whole[:-20], "none.gz": b"plain text", "broken.gz": bytes(broken)}


@pytest.mark.parametrize("name", ["cut.gz", "none.gz", "broken.gz"])
def test_damaged_gzip_is_named(tmp_path, name):
    (tmp_path / name).write_bytes(damaged(tmp_path)[name])
    with pytest.raises(UserError, match=rf"{name}: damaged gzip file"):
        list(read_lines(tmp_path / name))


def test_invalid_utf8_is_named_with_its_line(tmp_path):
    (tmp_path / "text").write_bytes(b"good\nb\xffad\n")
    with pytest.raises(UserError, match=r"text, line 2: not UTF-8"):
        list(read_lines(tmp_path / "text"))


def test_missing_files_and_bad_json(tmp_path):
    with pytest.raises(UserError, match="nowhere: no such file"):
        list(read_lines(tmp_path / "nowhere"))
    with pytest.raises(UserError, match="nowhere: no such file"):
        read_json(tmp_path / "nowhere")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(UserError, match=r"bad\.json: not JSON"):
        read_json(tmp_path / "bad.json")


def test_json_is_sorted_and_comes_back(tmp_path):
    write_json(tmp_path / "a.json", {"b": 1, "a": "ä"})
    assert read_json(tmp_path / "a.json") == {"a": "ä", "b": 1}
    assert (tmp_path / "a.json").read_text().index('"a"') < (tmp_path / "a.json").read_text().index('"b"')

import io
import os
import stat
import tarfile
import zipfile

import pytest

from synmask.pipeline.corpora.archive import unpack
from synmask.pipeline.corpora.download import fetch
from synmask.pipeline.disk import sha256
from synmask.pipeline.errors import UserError, machine_fault


@pytest.fixture
def make(tmp_path):
    """Writes an archive of (name, bytes or a change to the entry) and returns its path."""

    def tgz(name, entries):
        with tarfile.open(tmp_path / name, "w:gz") as tar:
            for member, content in entries:
                info = tarfile.TarInfo(member)
                if callable(content):
                    content(info)
                    tar.addfile(info)
                else:
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))
        return tmp_path / name

    def packed(name, entries):
        with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, content in entries:
                info = zipfile.ZipInfo(member)
                info.compress_type = zipfile.ZIP_DEFLATED
                if callable(content):
                    content(info)
                    content = b"/etc/passwd"
                archive.writestr(info, content)
        return tmp_path / name

    return lambda name, entries: (tgz if name.endswith(".tgz") else packed)(name, entries)


def refused(path, members, folder):
    with pytest.raises(UserError) as error:
        unpack(path, members, folder)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("name", ["a.tgz", "a.zip"])
def test_only_what_is_asked_for_is_written(make, tmp_path, name):
    path = make(name, [("x/a.txt", b"A" * 50_000), ("x/b.txt", b"B"), ("x/c.txt", b"C")])
    paths = unpack(path, ["x/b.txt", "x/a.txt"], tmp_path / "out")
    assert [path.read_bytes()[:1] for path in paths] == [b"B", b"A"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.txt", "b.txt"]


def test_a_leading_dot_in_a_tar_is_nothing(make, tmp_path):
    path = make("a.tgz", [("./x/a.txt", b"A")])
    assert unpack(path, ["x/a.txt"], tmp_path)[0].read_bytes() == b"A"


@pytest.mark.parametrize("name", ["a.tgz", "a.zip"])
@pytest.mark.parametrize("evil", ["../evil", "x/../../evil", f"{os.sep}tmp/evil"])
def test_nothing_is_written_outside_the_folder(make, tmp_path, name, evil):
    """A member is written under its base name, whatever folder the archive gives to it."""
    path = make(name, [("x/a.txt", b"A"), (evil, b"E")])
    unpack(path, ["x/a.txt"], tmp_path / "out")
    assert not list(tmp_path.rglob("evil"))
    unpack(path, [evil], tmp_path / "out")
    assert [*tmp_path.rglob("evil")] == [tmp_path / "out/evil"]


def link(kind):
    def change(info):
        info.type, info.linkname = kind, "/etc/passwd"

    return change


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_in_a_tar(make, tmp_path, kind):
    path = make("a.tgz", [("x/a.txt", link(kind)), ("x/b.txt", b"B")])
    assert "x/a.txt is a link or the like" in refused(path, ["x/a.txt"], tmp_path / "out")
    assert unpack(path, ["x/b.txt"], tmp_path / "out")[0].read_bytes() == b"B"


def test_links_in_a_zip(make, tmp_path):
    def change(info):
        info.external_attr = (stat.S_IFLNK | 0o777) << 16

    path = make("a.zip", [("x/a.txt", change)])
    assert "x/a.txt is a link or the like" in refused(path, ["x/a.txt"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["a.tgz", "a.zip"])
def test_damage(make, tmp_path, name):
    path = make(name, [("x/a.txt", bytes(range(256)) * 400)])
    whole = path.read_bytes()
    assert "has no member x/b.txt" in refused(path, ["x/a.txt", "x/b.txt"], tmp_path / "out")
    broken = bytearray(whole)
    broken[100] ^= 0xFF
    for wrong, message in [
        (whole[: len(whole) // 2], "a damaged archive, or none at all"),
        (whole[:-30], "a damaged archive, or none at all"),
        (bytes(broken), "a damaged archive, or none at all"),
        (b"hello", "a damaged archive, or none at all"),
        (b"", "an empty file"),
        (b"\n<!DOCTYPE html><html>404</html>", "a web page, not the file"),
    ]:
        path.write_bytes(wrong)
        assert message in refused(path, ["x/a.txt"], tmp_path / "out"), wrong[:20]
    path.unlink()
    assert "no such file" in refused(path, ["x/a.txt"], tmp_path / "out")


def test_a_file_that_changed_since_it_was_fetched(make, tmp_path):
    path = make("a.tgz", [("x/a.txt", b"A")])
    (tmp_path / "a.tgz.sha256").write_text(f"{sha256(path)}  a.tgz\n")
    assert unpack(path, ["x/a.txt"], tmp_path)
    make("a.tgz", [("x/a.txt", b"B")])
    assert "changed since it was fetched" in refused(path, ["x/a.txt"], tmp_path)


def altered(path, at, value):
    data = bytearray(path.read_bytes())
    data[at : at + len(value)] = value
    path.write_bytes(bytes(data))


def central(path):
    """Where a zip file's list of members begins."""
    return path.read_bytes().index(b"PK\x01\x02")


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (8, b"\x01", "is encrypted, password required for extraction); pack it again"),
        (10, b"\x09", "is packed in a way that cannot be read here ("),  # deflate64
        (42, b"\xff\xff\xff\x7f", "a damaged archive, or none at all"),  # where the member lies
        (42, b"\x05\x00\x00\x00", "a damaged archive, or none at all"),
        (20, b"\xff\xff\xff\xff", "a damaged archive, or none at all"),  # how long it is packed
    ],
)
def test_zip_files_that_cannot_be_read(make, tmp_path, at, value, message):
    path = make("a.zip", [("x/a.txt", bytes(range(256)) * 400)])
    start = central(path)
    altered(path, start + at, value)
    if at < 12:
        altered(path, at - 2, value)  # the member's own head says so, too
    assert message in refused(path, ["x/a.txt"], tmp_path / "out")


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, zipfile.ZIP_DEFLATED])
def test_any_altered_byte_of_a_zip_file_is_one_line(tmp_path, method):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("x/ä.txt", "hello hello " * 20)
    whole, message = path.read_bytes(), []
    for place in range(len(whole)):
        for wrong in (0x00, 0xFF, whole[place] ^ 0x01, whole[place] ^ 0x80):
            path.write_bytes(whole[:place] + bytes([wrong]) + whole[place + 1 :])
            try:
                unpack(path, ["x/ä.txt"], tmp_path / "out")
            except UserError as error:
                message.append(str(error))
    assert len(message) > 100
    assert all(line.startswith(str(path)) and "\n" not in line for line in message)


@pytest.mark.parametrize("garbage", [b"", b"\n", b"hello", b"\xff\xfe", b"0" * 63, b"0" * 65, b"\0" * 100])
def test_garbage_in_the_record_of_a_checksum(make, tmp_path, garbage):
    path = make("a.tgz", [("x/a.txt", b"A")])
    record = tmp_path / "a.tgz.sha256"
    record.write_bytes(garbage)
    with pytest.raises(UserError) as error:
        unpack(path, ["x/a.txt"], tmp_path)
    message = f"{record}: not a sha256 checksum; delete it, and the file beside it is trusted again"
    assert str(error.value) == message
    with pytest.raises(UserError) as error:
        fetch(name="x", url=path.as_uri(), output=tmp_path / "a.tgz")
    assert str(error.value) == message


@pytest.mark.parametrize("name", ["a.tgz", "a.zip"])
def test_a_full_disk_names_the_file(make, tmp_path, name, full_disk):
    path = make(name, [("x/a.txt", bytes(200_000))])
    full_disk()
    with pytest.raises(OSError, match="too large") as error:
        unpack(path, ["x/a.txt"], tmp_path / "out")
    assert machine_fault(error.value) == f"{tmp_path}/out/a.txt: File too large"

import errno
import gzip
import multiprocessing
import os
import stat
import subprocess
import sys
from multiprocessing import synchronize

import pytest

from synmask.pipeline.disk import raise_unreadable, replacing, sha256
from synmask.pipeline.errors import UserError, machine_fault
from synmask.pipeline.files import all_writing, read_json, read_lines, write_json, write_lines, writing


@pytest.mark.parametrize("name", ["text", "text.gz"])
def test_lines_come_back(tmp_path, name):
    lines = ["ä", "", "a\u2028b", " c\t"]
    write_lines(tmp_path / "new" / name, lines)
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


def test_of_several_files_all_are_written_or_none(tmp_path):
    paths = [tmp_path / name for name in ("new/folder/a", "new/b.gz")]

    def write(fail):
        with all_writing(paths) as (one, two):
            one.write("1\n")
            two.write("2\n")
            if fail:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write(fail=True)
    assert not list(tmp_path.iterdir())
    write(fail=False)
    assert [list(read_lines(path)) for path in paths] == [["1"], ["2"]]
    assert len([*(tmp_path / "new").iterdir()]) == 2


def test_a_full_disk_leaves_none_of_several_and_names_its_file(tmp_path):
    """The buffer is written when the file is closed: if that fails, the other file is closed, too."""
    (tmp_path / "full").symlink_to("/dev/full")

    def write():
        with all_writing([tmp_path / "a", tmp_path / "full"]) as files:
            for handle in files:
                handle.write("text")

    with pytest.raises(OSError, match="No space") as error:
        write()
    assert machine_fault(error.value).endswith("full: No space left on device")
    assert [path.name for path in tmp_path.iterdir()] == ["full"]


def test_two_outputs_are_two_files(tmp_path):
    with (
        pytest.raises(UserError, match="one file for two outputs"),
        all_writing([tmp_path / "a", tmp_path / "a"]),
    ):
        pass


@pytest.mark.parametrize("link", [False, True])
def test_what_is_no_file_is_written_into_not_replaced(tmp_path, link):
    place = pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    if link:
        place = tmp_path / "link"
        place.symlink_to(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_lines(place, ["text"])
    assert os.read(reader, 10) == b"text\n"
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert place.is_symlink() == link
    os.close(reader)


def test_a_link_stays_one(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there/file")
    write_lines(tmp_path / "link", ["text"])
    assert (tmp_path / "link").is_symlink()
    assert list(read_lines(tmp_path / "there/file")) == ["text"]


def test_a_folder_in_the_way_is_named(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="Is a directory") as error:
        write_lines(tmp_path / "folder", ["text"])
    assert machine_fault(error.value) == f"{tmp_path}/folder: a folder; give the name of a file"


def test_a_file_of_a_read_only_file_system_is_named(tmp_path, monkeypatch):
    """There, a file that does not exist cannot be removed either."""

    def refuse(path, *_, **__):
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr("pathlib.Path.unlink", refuse)
    with pytest.raises(OSError, match="Read-only") as raised, replacing([tmp_path / "out"]) as (temporary,):
        refuse(temporary)
    assert raised.value.filename == str(tmp_path / "out")


def test_what_killed_processes_left_goes_but_not_what_other_machines_write(tmp_path, monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "node")
    kept = [f".text.node-{os.getppid()}.tmp", ".text.node-2-999999999.tmp", ".text.node-mine.tmp", "text"]
    for name in [".text.node-999999999.tmp", *kept]:
        (tmp_path / name).touch()
    write_lines(tmp_path / "text", ["text"])
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)


def test_no_failure_to_read_is_taken_for_damage(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"x")
    for code in {*errno.errorcode} - {errno.EINVAL}:
        with pytest.raises(OSError) as error:  # noqa: PT011 - the next line says which
            raise_unreadable(path, OSError(code, os.strerror(code)))
        assert (error.value.errno, error.value.filename) == (code, str(path))
    for content in (ValueError(), OSError("no archive"), OSError(errno.EINVAL, "before the start")):
        raise_unreadable(path, content)
    with pytest.raises(IsADirectoryError):  # a reader that says nothing of it
        raise_unreadable(tmp_path, ValueError())


@pytest.mark.parametrize(
    ("fails", "message"),
    [
        (
            lambda: multiprocessing.get_context("spawn").Lock(),
            "making a lock between processes, in /dev/shm: ",
        ),
        (lambda: subprocess.run(["true"], check=True), "starting another program: "),
        (lambda: refuse(), "reading or writing: "),
    ],
)
def test_a_fault_without_a_file_names_what_was_done(monkeypatch, fails, message):
    for place, name in ((synchronize._multiprocessing, "SemLock"), (subprocess, "_fork_exec")):
        monkeypatch.setattr(place, name, refuse)
    with pytest.raises(OSError) as error:  # noqa: PT011
        fails()
    assert machine_fault(error.value) == f"{message}No space left on device"


def refuse(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("buffered", ["", "1"])
def test_standard_output_is_named_where_it_fails(buffered):
    call = "import synmask.pipeline.cli as cli; cli.main(['help'])"
    with open("/dev/full", "w") as full:
        kwargs = {"stdout": full, "stderr": subprocess.PIPE, "text": True, "check": False}
        done = subprocess.run(
            [sys.executable, "-c", call], env={**os.environ, "PYTHONUNBUFFERED": buffered}, **kwargs
        )
    assert done.stderr.splitlines()[0] == "synmask: standard output: No space left on device"
    assert done.returncode != 0

import os
import pty
import queue
import socket
import subprocess
import sys
import threading

import pytest

from synmask.pipeline.errors import UserError
from synmask.pipeline.text.lines import answer_lines, available_lines

ECHO = """
import sys
from pathlib import Path
from synmask.pipeline.text.lines import answer_lines
answer_lines(lambda lines, first: (f"{n} {line}" for n, line in enumerate(lines, first)),
       input=None, output=None, most=3, prompt="de>")
"""


def numbered(lines, first):
    for number, line in enumerate(lines, start=first):
        yield f"{number} {line}"


def test_lines_come_at_once_and_in_order():
    assert [*available_lines([], 2)] == []
    groups = [*available_lines(map(str, range(100)), 7)]
    assert [int(line) for group in groups for line in group] == [*range(100)]
    assert max(map(len, groups)) <= 7
    assert min(map(len, groups)) > 0
    assert [*available_lines("abc", None)] == [["a", "b", "c"]]


def test_a_line_does_not_wait_for_the_next():
    source = queue.Queue()
    groups = available_lines(iter(source.get, None), 50)
    for line in ("a", "b"):
        source.put(line)
        assert next(groups) == [line]
    source.put(None)
    assert [*groups] == []


def test_lines_that_are_there_come_together():
    there, go = threading.Event(), threading.Event()

    def lines():
        yield "a"
        go.wait()
        yield from "bcd"
        there.set()
        yield from "ef"

    groups = available_lines(lines(), 4)
    assert next(groups) == ["a"]
    go.set()
    there.wait()
    rest = [*groups]
    assert "".join(line for group in rest for line in group) == "bcdef"
    assert len(rest) < 5


def test_what_stops_the_lines_stops_the_groups_after_those_before():
    def lines():
        yield "a"
        raise UserError("line 2: no")

    seen = []
    with pytest.raises(UserError, match="line 2: no"):
        seen.extend(available_lines(lines(), 1))
    assert seen == [["a"]]


@pytest.mark.parametrize("most", [1, 3, None])
def test_a_file_is_answered_line_by_line(tmp_path, most):
    (tmp_path / "in").write_text("a\n\nb\nc\nd")
    answer_lines(numbered, input=tmp_path / "in", output=tmp_path / "out", most=most, prompt="")
    assert (tmp_path / "out").read_text() == "1 a\n2 \n3 b\n4 c\n5 d\n"


def test_a_damaged_file_is_found_before_anything_is_answered(tmp_path):
    (tmp_path / "in").write_bytes(b"a\n" * 9 + b"\xff\n")
    for path, message in (
        (tmp_path / "in", "in, line 10: not UTF-8"),
        (tmp_path / "gone", "gone: no such file"),
    ):
        with pytest.raises(UserError, match=message):
            answer_lines(lambda *_: 1 / 0, input=path, output=tmp_path / "out", most=2, prompt="")
    assert not (tmp_path / "out").exists()


def test_an_answer_that_fails_leaves_no_file(tmp_path):
    (tmp_path / "in").write_text("a\nb\n")

    def failing(lines, first):
        yield "a"
        raise UserError("no")

    with pytest.raises(UserError, match="no"):
        answer_lines(failing, input=tmp_path / "in", output=tmp_path / "out", most=1, prompt="")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def started(**kwargs):
    return subprocess.Popen(
        [sys.executable, "-c", ECHO], stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, **kwargs
    )


def test_a_pipe_that_stays_open_is_answered():
    process = started(stdin=subprocess.PIPE)
    for number, line in enumerate((b"a", b"", b"c"), start=1):
        process.stdin.write(line + b"\n")
        assert process.stdout.readline() == b"%d %s\n" % (number, line)
    assert process.communicate() == (b"", b"")
    assert process.returncode == 0


def test_a_terminal_is_asked():
    ours, theirs = pty.openpty()
    process = started(stdin=theirs)
    os.close(theirs)
    for number, line in enumerate((b"a", b"b"), start=1):
        os.write(ours, line + b"\n")
        assert process.stdout.readline() == b"%d %s\n" % (number, line)
    os.write(ours, b"\x04")
    assert process.communicate() == (b"", b"de> de> de> \n")
    assert process.returncode == 0
    os.close(ours)


def test_standard_input_is_read_from_its_descriptor(tmp_path):
    """A socket, which Node gives to a child, has no name to open; a file may have been read in part."""
    ours, theirs = socket.socketpair()
    ours.sendall("ä\nb\n".encode())
    ours.close()
    assert started(stdin=theirs).communicate() == ("1 ä\n2 b\n".encode(), b"")
    theirs.close()
    (tmp_path / "in").write_text("read before\na\nb\n")
    with open(tmp_path / "in", "rb", buffering=0) as handle:
        handle.read(len("read before\n"))
        assert started(stdin=handle).communicate() == (b"1 a\n2 b\n", b"")


def test_standard_input_that_is_closed_is_one_line():
    output = started(preexec_fn=lambda: os.close(0)).communicate()[1]
    assert output.endswith(b"UserError: standard input is closed; give a file, or a pipe\n")

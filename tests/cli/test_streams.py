"""Standard streams that do not block, are closed, or are full: all is passed on, or the exit code says it."""

import errno
import os
import subprocess
import sys
import time

import pytest

from synmask.pipeline.cli import main
from synmask.pipeline.disk import PatientFile

TOKENISE = ["tokenise", "--input", "/dev/stdin", "--output", "/dev/stdout", "--language", "en"]
LINES = b"One line, of words.\n" * 5000  # more than a pipe holds


def start(words, **streams):
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    return subprocess.Popen([sys.executable, "-m", "synmask", *words], env=environment, **streams)


def shell(command, **kwargs):
    command = command.replace("synmask", f"{sys.executable} -m synmask")
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, **kwargs)


def test_a_standard_input_that_does_not_block_is_waited_for():
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    process = start(TOKENISE, stdin=reader, stdout=subprocess.PIPE)
    for part in (b"one\n", b"two, thr", b"ee\n"):
        time.sleep(1)
        os.write(writer, part)
    os.close(writer)
    assert process.communicate()[0] == b"one\ntwo , three\n"
    assert process.returncode == 0


@pytest.mark.parametrize("words", [TOKENISE, ["steps"]])
def test_a_standard_output_that_does_not_block_gets_all(words, tmp_path):
    (tmp_path / "text").write_bytes(LINES)
    expected = subprocess.run(
        [sys.executable, "-m", "synmask", *words], input=LINES, capture_output=True, check=True
    ).stdout
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with open(tmp_path / "text") as text:
        process = start(words, stdin=text, stdout=writer)
    os.close(writer)
    time.sleep(3)  # the pipe is full
    with os.fdopen(reader, "rb") as output:
        assert output.read() == expected
    assert process.wait() == 0


@pytest.mark.parametrize(
    ("streams", "code"),
    [
        ("--output out >&-", 0),
        ("--output out 2>&-", 0),
        ("--output out 2> /dev/full", 0),
        ("--output out <&-", 0),
    ],
)
def test_a_whole_output_is_no_fault_whatever_the_other_streams_are(tmp_path, streams, code):
    (tmp_path / "text").write_text("a, b\n")
    done = shell(f"synmask tokenise --input text --language en {streams}", cwd=tmp_path)
    assert (done.returncode, (tmp_path / "out").read_text()) == (code, "a , b\n")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("synmask steps >&-", "synmask steps: standard output: it is closed; give a file, or a pipe\n"),
        ("synmask steps > /dev/full", "synmask steps: standard output: No space left on device\n"),
        (
            "synmask tokenise --input text --output /dev/stdout --language en >&-",
            "synmask tokenise: /dev/stdout: No space left on device\n",
        ),
    ],
)
def test_an_output_that_is_lost_is_a_fault(tmp_path, command, line):
    (tmp_path / "text").write_text("a, b\n")
    done = shell(command, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, line)


@pytest.mark.parametrize("number", [errno.EPIPE, errno.ESHUTDOWN, errno.ENOMEM, errno.EINVAL])
def test_a_file_that_cannot_be_written_is_named(tmp_path, monkeypatch, capsys, number):
    (tmp_path / "text").write_text("a, b\n")
    out = tmp_path / "out"

    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(SystemExit) as end:
        main(["tokenise", "--input", str(tmp_path / "text"), "--output", str(out), "--language", "en"])
    assert end.value.code == 1
    fault = "not enough memory" if number == errno.ENOMEM else f"{os.strerror(number)}\n"
    assert capsys.readouterr().err.startswith(f"synmask tokenise: {out}: {fault}")
    assert not out.exists()


def test_files_that_would_block_are_read_and_written_whole(tmp_path):
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    assert os.fork() or _write(reader, writer)
    os.close(writer)
    with PatientFile(reader, "rb") as file:
        assert file.readall() == LINES
    os.wait()
    os.close(reader)


def _write(reader, writer):
    os.close(reader)
    with PatientFile(writer, "wb") as file:
        left = memoryview(LINES)
        while left:
            left = left[file.write(left) :]
    os._exit(0)


def test_a_terminal_without_columns_gets_help(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "0")
    main(["--help"])
    assert "translate" in capsys.readouterr().out

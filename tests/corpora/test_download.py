import contextlib
import gzip
import hashlib
import io
import random
import re
import socket
import subprocess
import sys
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from synmask.pipeline.corpora import download
from synmask.pipeline.corpora.download import fetch
from synmask.pipeline.errors import UserError, machine_fault

CONTENT = random.Random(1).randbytes(300_000)
DATE = "Thu, 26 Nov 2026 01:00:00 GMT"
SUM = hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves `content` under every path but /missing; what it does wrong is set on it."""

    content = CONTENT
    honours_ranges = True
    wrong_range = False  # answers a Range with another one
    broken = 0  # so many answers break off in the middle
    faults = 0  # so many answers are 503
    kind = "application/octet-stream"
    tag = None  # ETag
    date = None  # Last-Modified
    short = 0  # bytes that answers lack at their end without a word: no length is given
    hold = None  # an event that answers wait for after 30 kB
    reply = None  # what is sent after the first answer, if it is another file

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.ranges = []  # the Range of each request
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server, wanted = self.server, self.headers.get("Range")
        hold, short = server.hold, server.short
        server.ranges.append(wanted)
        if len(server.ranges) > 1 and server.reply is not None:
            server.content, server.tag = server.reply, server.tag and '"another"'
            server.date = server.date and "Fri, 27 Nov 2026 01:00:00 GMT"
        if self.headers.get("If-Range") not in (None, server.tag, server.date):
            wanted = None
        body, size = server.content, len(server.content)
        if self.path.endswith("/missing"):
            return self.send_error(404)
        if server.faults:
            server.faults -= 1
            return self.send_error(503)
        start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1]) if wanted and server.honours_ranges else None
        if start is not None and start >= size:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{size}")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        self.send_response(200 if start is None else 206)
        if start is not None:
            start = 7 if server.wrong_range else start
            self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
            body = body[start:]
        self.send_header("Content-Type", server.kind)
        if server.tag:
            self.send_header("ETag", server.tag)
        if server.date:
            self.send_header("Last-Modified", server.date)
        if not short:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if server.broken:
            server.broken -= 1
            body = body[: len(body) // 2]
        body = body[: len(body) - short]
        for place in range(0, len(body), 30_000):
            self.wfile.write(body[place : place + 30_000])
            if hold:
                hold.wait(60)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(download, "BACK_OFF", 0.001)
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def left_over(path):
    """Where a process that was killed has left what it had of a file."""
    return path.with_name(f".{path.name}.part")


def one_line(error, *parts):
    text = str(error.value)
    assert "\n" not in text
    for part in parts:
        assert part in text
    return True


def test_download_with_one_line_on_stderr(server, tmp_path, capsys):
    fetch(
        name="toy", url=f"{server.url}/a/train.gz", output=tmp_path / "new" / "train.gz", sha256=SUM.upper()
    )
    assert (tmp_path / "new" / "train.gz").read_bytes() == CONTENT
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["train.gz"]
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(("tag", "date"), [('"first"', None), ('W/"weak"', DATE), (None, DATE)])
def test_goes_on_where_the_server_broke_off(server, tmp_path, tag, date):
    server.broken, server.tag, server.date = 2, tag, date
    fetch(name="toy", url=f"{server.url}/x", output=tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=150000-", "bytes=225000-"]


def test_starts_again_when_the_server_ignores_range(server, tmp_path):
    server.broken, server.honours_ranges = 1, False
    fetch(name="toy", url=f"{server.url}/x", output=tmp_path / "x", sha256=SUM)
    assert (tmp_path / "x").read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=150000-"]


def test_starts_again_when_the_server_sends_another_range(server, tmp_path):
    server.broken, server.wrong_range = 1, True
    fetch(name="toy", url=f"{server.url}/x", output=tmp_path / "x", sha256=SUM)
    assert (tmp_path / "x").read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=150000-", None]


def test_takes_up_the_part_of_an_earlier_run(server, tmp_path):
    left_over(tmp_path / "x").write_bytes(CONTENT[:1000])
    fetch(name="toy", url=f"{server.url}/x", output=tmp_path / "x", sha256=SUM)
    assert (tmp_path / "x").read_bytes() == CONTENT
    assert server.ranges == ["bytes=1000-"]


def test_a_complete_part_is_not_fetched_again(server, tmp_path):
    left_over(tmp_path / "x").write_bytes(CONTENT)
    fetch(name="toy", url=f"{server.url}/x", output=tmp_path / "x", sha256=SUM)
    assert (tmp_path / "x").read_bytes() == CONTENT
    assert server.ranges == [f"bytes={len(CONTENT)}-"]


@pytest.mark.parametrize("size", [1000, 400_000])
def test_a_part_of_something_else_is_dropped(server, tmp_path, size):
    left_over(tmp_path / "x").write_bytes(bytes(size))
    fetch(name="toy", url=f"{server.url}/x", output=tmp_path / "x", sha256=SUM)
    assert (tmp_path / "x").read_bytes() == CONTENT
    assert server.ranges == [f"bytes={size}-", None]


def test_without_a_checksum_an_old_part_is_not_trusted(server, tmp_path):
    left_over(tmp_path / "x").write_bytes(bytes(1000))
    fetch(name="toy", url=f"{server.url}/x", output=tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == CONTENT
    assert server.ranges == [None]


def test_a_busy_server_is_asked_again(server, tmp_path):
    server.faults = 2
    fetch(name="toy", url=f"{server.url}/x", output=tmp_path / "x", sha256=SUM)
    assert len(server.ranges) == 3


def test_gives_up_on_a_server_that_stays_broken(server, tmp_path):
    server.faults = 100
    with pytest.raises(UserError) as error:
        fetch(name="toy", url=f"{server.url}/x", output=tmp_path / "x")
    one_line(error, "toy", "503", "mirrors: {toy: <folder or URL with x>} in config.yaml")
    assert len(server.ranges) == download.ATTEMPTS


def test_a_wrong_checksum_leaves_nothing(server, tmp_path):
    (tmp_path / "x").write_text("as it was")
    with pytest.raises(UserError) as error:
        fetch(name="toy", url=f"{server.url}/x", output=tmp_path / "x", sha256="0" * 64)
    one_line(error, "toy", f"{server.url}/x", "0" * 64, SUM)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_text() == "as it was"


def test_a_web_page_is_not_an_archive(server, tmp_path):
    server.kind = "text/html; charset=utf-8"
    with pytest.raises(UserError) as error:
        fetch(name="toy", url=f"{server.url}/x.tgz", output=tmp_path / "x.tgz")
    one_line(error, "toy", "web page", "mirrors")
    assert not list(tmp_path.iterdir())
    fetch(name="toy", url=f"{server.url}/x.html", output=tmp_path / "x.html")
    assert (tmp_path / "x.html").read_bytes() == CONTENT


def test_a_missing_page_is_asked_for_once(server, tmp_path):
    with pytest.raises(UserError) as error:
        fetch(name="toy", url=f"{server.url}/missing", output=tmp_path / "x")
    one_line(error, "toy", "404", "mirrors: {toy:")
    assert len(server.ranges) == 1


def test_no_network(server, tmp_path):
    with contextlib.closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/train.gz"
    with pytest.raises(UserError) as error:
        fetch(name="toy", url=url, output=tmp_path / "x")
    one_line(error, url, "onnection refused", "mirrors: {toy: <folder or URL with train.gz>} in config.yaml")
    assert not (tmp_path / "x").exists()


def test_mirror_by_folder_and_url(server, tmp_path):
    url = "https://example.invalid/data/raw/a%20b.gz?raw=true"
    folder = tmp_path / "my mirror"
    folder.mkdir()
    (folder / "a b.gz").write_bytes(CONTENT)
    for number, mirror in enumerate([folder, str(folder), folder.as_uri(), server.url + "/base/"]):
        fetch(name="toy", url=url, output=tmp_path / str(number), sha256=SUM, mirror=mirror)
        assert (tmp_path / str(number)).read_bytes() == CONTENT
    fetch(name="toy", url=(folder / "a b.gz").as_uri(), output=tmp_path / "direct")
    assert (tmp_path / "direct").read_bytes() == CONTENT


def test_the_first_download_is_trusted_and_recorded(server, tmp_path):
    server.content = gzip.compress(CONTENT)
    path, record = tmp_path / "a.tgz", tmp_path / "a.tgz.sha256"
    fetch(name="toy", url=f"{server.url}/a.tgz", output=path)
    checksum = hashlib.sha256(server.content).hexdigest()
    assert record.read_text() == f"{checksum}  a.tgz\n"
    path.unlink()
    left_over(tmp_path / "a.tgz").write_bytes(server.content[:1000])
    fetch(
        name="toy", url=f"{server.url}/a.tgz", output=path
    )  # continues, since the checksum tells whether it fits
    assert server.ranges == [None, "bytes=1000-"]
    server.content = gzip.compress(CONTENT[::-1])
    fetch(name="toy", url=f"{server.url}/a.tgz", output=path)  # it is there
    assert len(server.ranges) == 2
    path.unlink()
    with pytest.raises(UserError) as error:
        fetch(name="toy", url=f"{server.url}/a.tgz", output=path)
    one_line(error, checksum, "recorded when it was first fetched", f"delete {record}")
    record.unlink()
    fetch(name="toy", url=f"{server.url}/a.tgz", output=path)
    assert path.read_bytes() == server.content


@pytest.mark.parametrize("name", ["a.tgz", "a.zip", "a.gz"])
def test_only_what_looks_like_an_archive_is_recorded(server, tmp_path, name):
    server.content = b"<!DOCTYPE html><title>Not found</title>"  # as application/octet-stream
    with pytest.raises(UserError) as error:
        fetch(name="toy", url=f"{server.url}/{name}", output=tmp_path / name)
    one_line(error, "toy", f"{server.url}/{name}: a web page, not the file", "mirrors")
    assert not list(tmp_path.iterdir())


def test_a_licensed_file_comes_from_a_mirror_only(tmp_path):
    with pytest.raises(UserError) as error:
        fetch(name="aspec", url=None, output=tmp_path / "out/train.txt")
    one_line(error, "aspec: train.txt is licensed", "mirrors: {aspec: <folder or URL with train.txt>}")
    with pytest.raises(UserError) as error:
        fetch(name="aspec", url=None, output=tmp_path / "out/train.txt", mirror=tmp_path / "ASPEC-JC")
    one_line(error, "aspec", "ASPEC-JC: no such folder")
    (tmp_path / "train.txt").write_text("a ||| b ||| c\n")
    fetch(name="aspec", url=None, output=tmp_path / "out/train.txt", mirror=tmp_path)
    assert (tmp_path / "out/train.txt").read_text() == "a ||| b ||| c\n"


def test_a_file_may_lie_in_a_folder_of_its_own_as_in_aspec(tmp_path):
    for name in ("train", "dev"):
        (tmp_path / f"ASPEC-JC/{name}").mkdir(parents=True)
        (tmp_path / f"ASPEC-JC/{name}/{name}.txt").write_text(name)
        fetch(name="aspec", url=None, output=tmp_path / f"out/{name}.txt", mirror=tmp_path / "ASPEC-JC")
        assert (tmp_path / f"out/{name}.txt").read_text() == name
    (tmp_path / "ASPEC-JC/dev.txt").write_text("nearer")
    (tmp_path / "out/dev.txt.sha256").unlink()
    fetch(name="aspec", url=None, output=tmp_path / "out/dev.txt", mirror=tmp_path / "ASPEC-JC")
    assert (tmp_path / "out/dev.txt").read_text() == "nearer"
    with pytest.raises(UserError) as error:
        fetch(name="aspec", url=None, output=tmp_path / "out/test.txt", mirror=tmp_path / "ASPEC-JC")
    one_line(error, "aspec", "ASPEC-JC/test.txt: no such file")


def test_mirror_faults(server, tmp_path):
    url = "https://example.invalid/train.gz"
    (tmp_path / "train.gz").write_bytes(b"not it")
    for mirror, file, checksum, part in [
        (tmp_path / "nowhere", "train.gz", None, "nowhere: no such folder"),
        (tmp_path, "other.gz", None, "other.gz: no such file"),
        (tmp_path.as_uri(), "other.gz", None, "other.gz: no such file"),
        (tmp_path, "train.gz", SUM, SUM),
        (server.url, "missing", None, "404"),
        ("ftp://example.invalid/pub", "train.gz", None, "not an http, https or file URL"),
    ]:
        with pytest.raises(UserError) as error:
            fetch(
                name="toy",
                url=url.replace("train.gz", file),
                output=tmp_path / "x",
                sha256=checksum,
                mirror=mirror,
            )
        one_line(error, "toy", part, "config.yaml")
    assert [path.name for path in tmp_path.iterdir()] == ["train.gz"]


@pytest.mark.parametrize("mirrored", [False, True])
def test_a_full_disk_names_the_file(server, tmp_path, mirrored, full_disk):
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror/x").write_bytes(CONTENT)
    full_disk()
    with pytest.raises(OSError, match="too large") as error:
        fetch(
            name="toy",
            url=f"{server.url}/x",
            output=tmp_path / "x",
            mirror=tmp_path / "mirror" if mirrored else None,
        )
    assert machine_fault(error.value) == f"{tmp_path}/x: File too large"


FETCH = """
import sys
from synmask.pipeline.cli import main
from synmask.pipeline.corpora import download
download.CHUNK_BYTES = 30_000  # bytes that are written together
main(["download", "--name", "toy", *sys.argv[1:]])
"""


def start(*words):
    return subprocess.Popen([sys.executable, "-c", FETCH, *words], stderr=subprocess.PIPE, text=True)


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("known", [True, False])
def test_of_two_processes_that_fetch_one_file_the_second_waits(server, tmp_path, known):
    server.hold = threading.Event()
    sum_ = ["--sha256", SUM] if known else []
    words = ["--url", f"{server.url}/x", "--output", str(tmp_path / "x"), *sum_]
    both = [start(*words), start(*words)]
    wait_for(lambda: server.ranges)
    server.hold.set()
    for process in both:
        assert process.communicate()[1].count("\n") == 1
        assert process.returncode == 0
    assert server.ranges == [None]  # the second one finds it there
    assert (tmp_path / "x").read_bytes() == CONTENT
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x", *([] if known else ["x.sha256"])]


def test_what_a_killed_process_left_is_taken_up(server, tmp_path):
    server.hold = held = threading.Event()
    words = ["--url", f"{server.url}/x", "--output", str(tmp_path / "x"), "--sha256", SUM]
    process = start(*words)
    wait_for(lambda: any(path.stat().st_size >= 30_000 for path in tmp_path.glob(".x.part")))
    process.kill()
    process.communicate()
    server.hold = None
    held.set()
    fetch(name="toy", url=f"{server.url}/x", output=tmp_path / "x", sha256=SUM)
    assert server.ranges == [None, "bytes=30000-"]
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_link_in_the_place_of_a_part_is_not_followed(server, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    left_over(tmp_path / "x").symlink_to(precious)
    fetch(name="toy", url=f"{server.url}/x", output=tmp_path / "x", sha256=SUM)
    assert precious.read_text() == "precious"
    assert (tmp_path / "x").read_bytes() == CONTENT
    assert not (tmp_path / "x").is_symlink()


@pytest.mark.parametrize("size", [300_000, 299_999])
@pytest.mark.parametrize(
    ("tag", "date"), [(None, None), ('W/"weak"', None), ('"first"', None), (None, DATE), ('"first"', DATE)]
)
def test_another_version_on_the_server_is_not_appended(server, tmp_path, tag, date, size):
    server.broken, server.tag, server.date = 1, tag, date
    server.reply = CONTENT[::-1][:size]
    fetch(name="toy", url=f"{server.url}/x", output=tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == server.reply


@pytest.mark.parametrize(
    ("name", "content", "kind", "message"),
    [
        ("train.de", b"", "text/plain", "an empty file"),
        ("train.de", b" \n\n", "text/plain", "an empty file"),
        ("train.de", b"\xef\xbb\xbf\n<!DOCTYPE HTML>\n<title>Sign in</title>", "text/plain", "a web page"),
        ("train.de", b"<p>Sign in</p>", "application/xhtml+xml; charset=utf-8", "a web page"),
        ("train.de", b"<?xml version='1.0'?><Error><Code>NoSuchKey", "binary/octet-stream", "a web page"),
        ("train.de", b'{"message": "rate limit"}', "text/plain", "a message in JSON"),
        ("encoder.json", b'{"error": {"code": 403}}', "application/json", "a message in JSON"),
        ("train.de", b"[1]", "application/problem+json", "application/problem+json, not the file"),
        (
            "train.de",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0",
            "text/plain",
            "a pointer of Git LFS",
        ),
    ],
)
def test_without_a_checksum_other_things_than_the_file_are_refused(
    server, tmp_path, name, content, kind, message
):
    server.content, server.kind = content, kind
    with pytest.raises(UserError) as error:
        fetch(name="toy", url=f"{server.url}/{name}", output=tmp_path / name)
    one_line(error, "toy", f"{server.url}/{name}: {message}", "mirrors")
    assert not list(tmp_path.iterdir())
    fetch(
        name="toy",
        url=f"{server.url}/{name}",
        output=tmp_path / name,
        sha256=hashlib.sha256(content).hexdigest(),
    )
    assert (tmp_path / name).read_bytes() == content


@pytest.mark.parametrize(
    ("name", "content"),
    [("train.de", b"{Ein Satz}\n"), ("encoder.json", b'{"a": 0}'), ("x.jsonl", b'{"error": 1}\n'), ("x.tmx", b"<?xml version='1.0'?><tmx>")],
)  # fmt: skip
def test_text_that_only_looks_like_a_message_is_taken(server, tmp_path, name, content):
    server.content = content
    fetch(name="toy", url=f"{server.url}/{name}", output=tmp_path / name)
    assert (tmp_path / name).read_bytes() == content


@pytest.mark.parametrize("password", ["hun/ter2", "hun#ter2", "hun?ter2", "hun:ter2", "hun/t@r2"])
def test_no_part_of_a_password_that_ends_the_address_is_said(tmp_path, monkeypatch, password):
    monkeypatch.setattr(download, "BACK_OFF", 0)
    with pytest.raises(UserError) as caught:
        fetch(name="c", url=f"http://me:{password}@127.0.0.1:9/x.gz", output=tmp_path / "x.gz")
    assert not re.search("hun|ter2|t@r2", str(caught.value))


def test_what_cannot_be_right_is_refused_before_anything_is_fetched(server, tmp_path):
    with pytest.raises(UserError, match="c: sha256 xyz: not 64 hexadecimal digits"):
        fetch(name="c", url=f"{server.url}/x.gz", output=tmp_path / "x.gz", sha256="xyz")
    with pytest.raises(UserError, match="a folder; give the name of a file"):
        fetch(name="c", url=f"{server.url}/x.gz", output=tmp_path)
    assert [*tmp_path.iterdir()] == [] == server.ranges


@pytest.mark.parametrize("place", ["missing", "x", "nowhere", "ftp"])
def test_a_password_is_never_said(server, tmp_path, place):
    login = server.url.replace("://", "://me:s3cr%40t@")
    with contextlib.closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        closed = login.replace(str(server.server_port), str(free.getsockname()[1]))
    url = {"ftp": "ftp://me:s3cr%40t@example.org/x", "nowhere": f"{closed}/x"}.get(place, f"{login}/{place}")
    with pytest.raises(UserError) as error:
        fetch(name="toy", url=f"{url}?token=s3cr", output=tmp_path / "x", sha256="0" * 64)
    one_line(error, "://***@")
    assert "s3cr" not in str(error.value)


def packed(name):
    """CONTENT as an archive with this name."""
    if not name.endswith(".zip"):
        return gzip.compress(CONTENT)
    with io.BytesIO() as whole:
        with zipfile.ZipFile(whole, "w") as archive:
            archive.writestr("train.de", CONTENT)
        return whole.getvalue()


@pytest.mark.parametrize("name", ["a.tgz", "a.zip", "a.tar.gz"])
@pytest.mark.parametrize("fault", ["cut", "flipped"])
def test_an_archive_without_a_checksum_is_tested_whole(server, tmp_path, name, fault):
    """No length is given, so an answer that ends early looks like a whole one."""
    server.content, server.short = packed(name), 1
    if fault == "flipped":
        server.content = server.content[:99_999] + b"?" + server.content[100_000:] + b"x"
    with pytest.raises(UserError) as error:
        fetch(name="toy", url=f"{server.url}/{name}", output=tmp_path / name)
    one_line(error, "toy", f"{server.url}/{name}: a damaged archive")
    assert not list(tmp_path.iterdir())
    server.content, server.short = packed(name) + b"x", 1
    fetch(name="toy", url=f"{server.url}/{name}", output=tmp_path / name)
    assert (tmp_path / name).read_bytes() == server.content[:-1]


def test_a_text_without_a_length_is_named(server, tmp_path, capsys):
    server.short = 1
    fetch(name="toy", url=f"{server.url}/train.de", output=tmp_path / "train.de")
    assert (
        f"{server.url}/train.de came without its length; see whether its end is there"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("which", ["url", "mirror"])
def test_a_malformed_url_is_one_line(tmp_path, which):
    address = {"url": "https://example.org/a"} | {which: "http://me:s3cret@[::1/a"}
    with pytest.raises(UserError) as error:
        fetch(name="toy", output=tmp_path / "a", **address)
    one_line(error, "toy: http://***@[::1/a: no URL")

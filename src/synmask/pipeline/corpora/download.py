"""Fetch a corpus' files from their publisher, or from a mirror that the user names."""

import os
import shutil
import sys
import time
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit
from urllib.request import url2pathname

import requests
import urllib3
from tqdm import tqdm

from synmask.pipeline import files
from synmask.pipeline.corpora.archive import MAGIC, recorded, what_is_wrong
from synmask.pipeline.files import UserError

ATTEMPTS = 4
BACK_OFF = 1.0  # seconds before the second attempt; doubles each time
TIMEOUT = (10, 60)  # seconds: to connect, and without a byte
CHUNK = 1 << 20  # bytes


class _Interrupted(Exception):
    """A temporary fault, worth another attempt."""


def fetch(
    name: str,
    url: str | None,
    output: str | Path,
    *,
    sha256: str | None = None,
    mirror: str | Path | None = None,
) -> None:
    """Fetch `url` (https, http or file) as `output`, whole or not at all, with progress on stderr.

    A failed download is retried a few times and resumes where it stopped. The file `output`.part of an
    interrupted run is also resumed, if there is a checksum to verify the result.

    If the publisher gives no checksum, the first download is trusted (but a file with an archive's name must
    look like one): its checksum is written to `output`.sha256, and later downloads must match it.

    Args:
        name: the corpus, for messages and as the key of `mirrors` in config.yaml.
        url: None for a licensed file, which only a `mirror` has.
        sha256: the expected checksum in hexadecimal.
        mirror: a folder, or a file, http or https URL of one, that contains the file under its base name (the
            last component of `url`, or the name of `output`); used instead of `url`. In a folder, train.txt
            may also be train/train.txt, as in ASPEC.

    Raises:
        UserError: the file does not exist, the server cannot be reached or answers with a web page, or the
            checksum differs.
    """
    output = Path(output)
    part = output.with_name(output.name + ".part")
    record = output.with_name(output.name + ".sha256")
    output.parent.mkdir(parents=True, exist_ok=True)
    advice = ""
    first = sha256 is None and not record.exists()
    if sha256 is None and not first:
        sha256 = recorded(record)
        advice = f" (recorded when it was first fetched; if the new file is right, delete {record})"
    if sha256 is None:
        part.unlink(missing_ok=True)
    else:
        sha256 = sha256.lower()
    left_over = part.exists()
    place, hint = _place(name, url, output.name, mirror)
    with files.named_errors(part):
        if isinstance(place, Path):
            _copy(name, place, part, hint)
        else:
            _download(name, place, part, hint)
            if left_over and files.sha256(part) != sha256:  # it was part of another file
                part.unlink()
                _download(name, place, part, hint)
    if sha256 is not None and (got := files.sha256(part)) != sha256:
        part.unlink()
        raise UserError(
            f"{name}: wrong checksum of {place}: expected sha256 {sha256}{advice}, got {got}; {hint}"
        )
    if first:
        _check_kind(name, place, part, output.suffix, hint)
        with files.writing(record) as handle:
            handle.write(f"{files.sha256(part)}  {output.name}\n")  # as sha256sum -c reads it
    os.replace(part, output)
    if not sys.stderr.isatty():
        print(f"{name}: fetched {output}, {output.stat().st_size / 1e6:.1f} MB", file=sys.stderr)


def _check_kind(name: str, place: str | Path, part: Path, suffix: str, hint: str) -> None:
    with open(part, "rb") as handle:
        start = handle.read(2)
    if not start.startswith(MAGIC.get(suffix, b"")):
        wrong = what_is_wrong(part)
        part.unlink()
        raise UserError(f"{name}: {place}: {wrong}; {hint}")


def _place(name: str, url: str | None, output: str, mirror: str | Path | None) -> tuple[str | Path, str]:
    """The source to fetch from (a path, or an http or https URL), and advice if that fails."""
    base = quote(output) if url is None else urlsplit(url).path.rpartition("/")[2]
    hint = f"set mirrors: {{{name}: <folder or URL with {unquote(base)}>}} in config.yaml"
    if mirror is not None:
        hint = f"put a good {unquote(base)} there, or change mirrors: {{{name}: …}} in config.yaml"
        if "://" not in str(mirror):
            path = Path(mirror).expanduser() / unquote(base)
            nested = path.with_suffix("") / path.name
            return nested if nested.is_file() and not path.exists() else path, hint
        url = str(mirror).rstrip("/") + "/" + base
    if url is None:
        raise UserError(f"{name}: {output} is licensed and cannot be downloaded; get it, then {hint}")
    scheme = urlsplit(url).scheme
    if scheme == "file":
        return Path(url2pathname(urlsplit(url).path)), hint
    if scheme not in ("http", "https"):
        raise UserError(f"{name}: {url}: not an http, https or file URL; fix it in config.yaml")
    return url, hint


def _copy(name: str, source: Path, part: Path, hint: str) -> None:
    if not source.parent.is_dir():
        raise UserError(f"{name}: {source.parent}: no such folder; {hint}")
    if not source.is_file():
        raise UserError(f"{name}: {source}: no such file; {hint}")
    with open(source, "rb") as whole, open(part, "wb") as copy:
        shutil.copyfileobj(whole, copy)  # copyfile says of a full disk that `source` is on it


def _download(name: str, url: str, part: Path, hint: str) -> None:
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(BACK_OFF * 2 ** (attempt - 1))
        try:
            return _attempt(name, url, part, hint)
        except (_Interrupted, requests.RequestException, urllib3.exceptions.HTTPError) as error:
            cause = error
            while cause.__context__ is not None:  # the root cause, such as "Connection refused"
                cause = cause.__context__
    raise UserError(f"{name}: cannot fetch {url} ({cause}); {hint}")


def _attempt(name: str, url: str, part: Path, hint: str) -> None:
    offset = part.stat().st_size if part.exists() else 0
    headers = {"Accept-Encoding": "identity"}  # the file's own bytes
    if offset:
        headers["Range"] = f"bytes={offset}-"
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
        status, reply = response.status_code, response.headers
        if status == 416 and reply.get("Content-Range") == f"bytes */{offset}":
            return  # the part is the whole file
        if status == 416 or (
            status == 206 and not reply.get("Content-Range", "").startswith(f"bytes {offset}-")
        ):
            part.unlink(missing_ok=True)
            raise _Interrupted("the server cannot resume")
        if status >= 500 or status == 429:
            raise _Interrupted(f"{status} {response.reason}")
        if status not in (200, 206):
            raise UserError(f"{name}: {url} answers {status} {response.reason}; {hint}")
        if reply.get("Content-Type", "").startswith("text/html") and not url.endswith((".html", ".htm")):
            raise UserError(f"{name}: {url} answers with a web page, not the file; {hint}")
        start = offset if status == 206 else 0
        length = reply.get("Content-Length")
        with (
            open(part, "ab" if start else "wb") as handle,
            tqdm(
                desc=name,
                initial=start,
                total=start + int(length) if length else None,
                unit="B",
                unit_scale=True,
                disable=not sys.stderr.isatty(),
            ) as bar,
        ):
            for chunk in response.raw.stream(CHUNK, decode_content=False):
                handle.write(chunk)
                bar.update(len(chunk))

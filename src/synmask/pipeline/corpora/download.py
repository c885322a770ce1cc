"""Fetch a corpus' files from their publisher, or from a mirror that the user names."""

import hashlib
import os
import re
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote, unquote, urlsplit
from urllib.request import url2pathname

import requests
import urllib3
from filelock import FileLock
from tqdm import tqdm

from synmask.pipeline import disk
from synmask.pipeline.corpora.archive import MAGIC, content_fault, find_damage, read_checksum
from synmask.pipeline.errors import UserError, without_passwords
from synmask.pipeline.files import write_lines

ATTEMPTS = 4
BACK_OFF = 1.0  # seconds before the second attempt; doubles each time
HTTP_TIMEOUT = (10, 60)  # seconds: to connect, and without a byte
CHUNK_BYTES = 1 << 20  # bytes


class _Refused(Exception):
    """Why a file cannot be fetched; `fetch` adds the corpus' name and advice."""


class _Interrupted(Exception):
    """A temporary fault, worth another attempt."""


def fetch(
    *, name: str, url: str | None = None, output: Path, sha256: str | None = None, mirror: str | None = None
) -> None:
    """Fetch one file of a corpus and check it; continue an interrupted download.

    A failed download is retried a few times and resumes where it stopped. The part that a killed process
    left is also resumed, if there is a checksum to verify the result. Processes that fetch one file at the
    same time do so one after the other.

    If the publisher gives no checksum, the first download is trusted, unless it is empty, not of the kind
    that its name says, or an archive that is not whole: its checksum is written to OUTPUT.sha256, and later
    downloads must match it.

    Args:
        name: The corpus' name, for messages and as the key of `mirrors` in config.yaml.
        url: The publisher's URL of the file (https, http or file); without it, a mirror is required.
        output: The file to write.
        sha256: Its checksum.
        mirror: Folder, or file, http or https URL of one, that holds the file instead, under the last part of
            the URL or the output's name. In a folder, train.txt may also be train/train.txt, as in ASPEC.

    Raises:
        UserError: the file does not exist, the server cannot be reached or answers with a web page, or the
            checksum differs.
    """
    if sha256 is not None and not re.fullmatch("[0-9a-fA-F]{64}", sha256):
        raise UserError(f"{name}: sha256 {sha256}: not 64 hexadecimal digits; fix it in config.yaml")
    if output.is_dir():
        raise UserError(f"{output}: a folder; give the name of a file")
    output.parent.mkdir(parents=True, exist_ok=True)
    place, hint = _source_of(name, url, output.name, mirror)
    lock, part = (output.with_name(f".{output.name}.{ending}") for ending in ("lock", "part"))
    with FileLock(lock):
        try:
            _fetch_alone(name, place, output, part, sha256 and sha256.lower())
        except _Refused as error:
            raise UserError(f"{name}: {error}; {hint}") from None
        finally:
            if part.exists() and not part.stat().st_size:
                part.unlink()
            lock.unlink(missing_ok=True)  # a waiting process creates a new one
    if not sys.stderr.isatty():
        print(f"{name}: fetched {output}, {output.stat().st_size / 1e6:.1f} MB", file=sys.stderr)


def _fetch_alone(name: str, place: str | Path, output: Path, part: Path, sha256: str | None) -> None:
    """`fetch` from a path or URL by way of the file `part`, which no other process uses."""
    record, advice = output.with_name(f"{output.name}.sha256"), ""
    if sha256 is None and record.exists():
        sha256 = read_checksum(record)
        advice = f" (recorded when it was first fetched; if the new file is right, delete {record})"
    if sha256 is None or part.is_symlink():  # nothing could verify the result
        part.unlink(missing_ok=True)
    elif output.is_file() and disk.sha256(output) == sha256:
        return
    with disk.naming_write_errors(output), open(part, "a+b") as handle:
        content_type = _receive(name, place, handle, sha256)
        handle.flush()
        os.fsync(handle.fileno())  # some file systems report a full disk only here
    if (got := disk.sha256(part)) != sha256:
        wrong = content_fault(part, output.name, content_type) or find_damage(part, output.name)
        if sha256 is not None:
            wrong = f"{wrong or 'another file'}, expected sha256 {sha256}{advice}, got {got}"
        if wrong:
            part.unlink()
            raise _Refused(f"{place}: {wrong}")
        write_lines(record, [f"{got}  {output.name}"])  # as sha256sum -c reads it
    os.replace(part, output)


def _receive(name: str, place: str | Path, part: BinaryIO, sha256: str | None) -> str:
    """Complete `part`, which may hold the file's beginning → the file's type according to the server."""
    if isinstance(place, Path):
        _copy(place, part)
        return ""
    left_over = part.seek(0, os.SEEK_END)
    content_type = _download(name, place, part, checked=sha256 is not None)
    part.seek(0)
    if left_over and hashlib.file_digest(part, "sha256").hexdigest() != sha256:
        part.truncate(0)  # it was part of another file
        content_type = _download(name, place, part, checked=True)
    return content_type


def _source_of(name: str, url: str | None, output: str, mirror: str | Path | None) -> tuple[str | Path, str]:
    """The source to fetch from (a path, or an http or https URL), and advice if that fails."""
    for address in filter(None, (url, mirror)):
        try:
            parts = urlsplit(str(address))
        except ValueError as error:
            raise UserError(f"{name}: {address}: no URL ({error}); fix it in config.yaml") from None
        try:
            _ = parts.port
        except ValueError:  # its text may have a part of a password
            advice = "no port; in a password, write / as %2F, # as %23, ? as %3F; fix it in config.yaml"
            raise UserError(f"{name}: {address}: {advice}") from None
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


def _copy(source: Path, part: BinaryIO) -> None:
    if not source.is_file():
        there = source.parent.is_dir()
        raise _Refused(f"{source}: no such file" if there else f"{source.parent}: no such folder")
    part.truncate(0)
    with open(source, "rb") as whole:
        shutil.copyfileobj(whole, part)  # on a full disk, copyfile would name `source`


def _download(name: str, url: str, part: BinaryIO, *, checked: bool) -> str:
    """Fetch the rest of a file → its type according to the server.

    Args:
        checked: a checksum will tell whether the parts of several attempts are of one file. Otherwise an
            attempt continues another only if the server confirms the file's tag or date.
    """
    seen: dict[str, str] = {}
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(BACK_OFF * 2 ** (attempt - 1))
        try:
            return _attempt(name, url, part, seen, checked)
        except (_Interrupted, requests.RequestException, urllib3.exceptions.HTTPError) as error:
            cause = error
            while cause.__context__ is not None:  # the root cause, such as "Connection refused"
                cause = cause.__context__
    raise _Refused(f"cannot fetch {url} ({cause})")


def _attempt(name: str, url: str, part: BinaryIO, seen: dict[str, str], checked: bool) -> str:
    """Fetch the rest of a file; `seen`: its version and size so far, to detect a changed file."""
    if not checked and not seen.get("version"):
        part.truncate(0)
    offset = part.seek(0, os.SEEK_END)
    headers = {"Accept-Encoding": "identity"}  # the file's own bytes
    if offset:
        headers["Range"] = f"bytes={offset}-"
        headers |= {"If-Range": seen["version"]} if seen.get("version") else {}
    with requests.get(url, headers=headers, stream=True, timeout=HTTP_TIMEOUT) as response:
        status, reply = response.status_code, response.headers
        if status == 416 and reply.get("Content-Range") == f"bytes */{offset}":
            return ""  # the part is the whole file
        if status >= 500 or status == 429:
            raise _Interrupted(f"{status} {response.reason}")
        if status not in (200, 206, 416):
            raise _Refused(f"{url} answers {status} {response.reason}")
        start, size = 0, reply.get("Content-Length", "")
        if status != 200:
            match = re.fullmatch(rf"bytes {offset}-\d+/(\d+|\*)", reply.get("Content-Range", ""))
            now = {"size": match and match[1], "version": _version_of(reply)}
            if not match or any(now[key] and seen.get(key) and now[key] != seen[key] for key in now):
                part.truncate(0)
                raise _Interrupted("the server cannot resume, or has another file by now")
            start, size = offset, match[1]
        seen |= {"size": size, "version": _version_of(reply) or seen.get("version", "")}
        part.truncate(start)
        part.seek(start)
        known = int(size) if size.isdecimal() else None
        quiet = not sys.stderr.isatty()
        with tqdm(desc=name, initial=start, total=known, unit="B", unit_scale=True, disable=quiet) as bar:
            for chunk in response.raw.stream(CHUNK_BYTES, decode_content=False):
                part.write(chunk)
                bar.update(len(chunk))
        if known is not None and part.tell() != known:
            raise _Interrupted(f"it ended after {part.tell():,} of {known:,} bytes")
        tested = checked or Path(urlsplit(url).path).suffix in MAGIC
        if known is None and not (tested or response.raw.chunked):
            place = without_passwords(url)
            print(f"{name}: {place} came without its length; see whether its end is there", file=sys.stderr)
        return reply.get("Content-Type", "").partition(";")[0].strip().lower()


def _version_of(reply: Mapping[str, str]) -> str:
    """The mark of a file's version: its tag (ETag), unless it is a weak one, or its date."""
    tag = reply.get("ETag", "")
    return tag if tag and not tag.startswith("W/") else reply.get("Last-Modified", "")

"""Extract chosen files from an archive without trusting its metadata."""

import errno
import gzip
import json
import lzma
import re
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

from synmask.pipeline.files import UserError, named_errors, sha256

# Errors of Python's readers for truncated, altered or unsupported archives.
BROKEN = (
    gzip.BadGzipFile,
    tarfile.TarError,
    zipfile.BadZipFile,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    ValueError,  # also UnicodeDecodeError: an invalid name; or an offset before the file's start
    OverflowError,
)
LIMIT = 4 << 30  # bytes that an archive may unpack to
SNIFFED = 1 << 16  # bytes that show what a file is
ERRORS = {"error", "errors", "message", "detail"}  # keys of a server's messages in JSON
MAGIC = {".tgz": b"\x1f\x8b", ".gz": b"\x1f\x8b", ".zip": b"PK"}  # first bytes of files with these suffixes


def unpack(archive: str | Path, members: Sequence[str], folder: str | Path, limit: int = LIMIT) -> list[Path]:
    """Write `members` of a .tgz or .zip file under `folder` by their base names; return their paths.

    Only regular files are written, and only those that were asked for.

    Raises:
        UserError: no such file, not an archive, damaged, or changed since it was first fetched; it names
            files outside its folder, a member is missing or a link, or it unpacks to more than `limit` bytes.
    """
    archive, folder = Path(archive), Path(folder)
    check_recorded(archive)
    advice = f"delete it (and {archive.name}.sha256 beside it) and fetch it again"
    try:
        found = (_unzip if archive.suffix == ".zip" else _untar)(archive, set(members), folder, limit)
    except FileNotFoundError:
        raise UserError(f"{archive}: no such file") from None
    except RuntimeError as error:  # a password is needed; NotImplementedError: deflate64 and the like
        what = "is packed in a way that cannot be read here"
        raise UserError(f"{archive}: {what} ({_short(error)}); pack it again as .tgz or plain .zip") from None
    except OSError as error:
        if error.errno not in (None, errno.EINVAL):  # EINVAL: an offset outside the file
            raise
        raise UserError(f"{archive}: {what_is_wrong(archive)} ({_short(error)}); {advice}") from None
    except BROKEN as error:
        raise UserError(f"{archive}: {what_is_wrong(archive)} ({_short(error)}); {advice}") from None
    if missing := [name for name in members if name not in found]:
        raise UserError(f"{archive}: has no member {missing[0]}; is it the right archive?")
    return [found[name] for name in members]


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def recorded(record: Path) -> str:
    """Read the checksum that `download.fetch` wrote beside a download.

    Raises:
        UserError: the file contains no checksum.
    """
    found = re.match(rb"([0-9a-f]{64})(\s|$)", record.read_bytes())
    if not found:
        raise UserError(
            f"{record}: not a sha256 checksum; delete it, and the file beside it is trusted again"
        )
    return found[1].decode()


def check_recorded(path: Path) -> None:
    """Compare a file with the checksum recorded beside it, if there is one (see `download.fetch`).

    Raises:
        UserError: the checksums differ, or the record contains none.
    """
    record = path.with_name(path.name + ".sha256")
    if path.is_file() and record.is_file():
        expected = recorded(record)
        if (got := sha256(path)) != expected:
            raise UserError(f"{path}: changed since it was fetched: sha256 {got}, not {expected}; delete it")


def mistaken(path: Path, name: str, kind: str) -> str | None:
    """Why a file without a known checksum is not what its name says; None if it may be.

    Args:
        kind: the type that the server gave; "" for a copy.
    """
    with open(path, "rb") as handle:
        start = handle.read(SNIFFED)
    text, suffix = start.lstrip(b"\xef\xbb\xbf \t\r\n").lower(), Path(name).suffix.lower()
    if not text:
        return "an empty file"
    if not start.startswith(MAGIC.get(suffix, b"")):
        return what_is_wrong(path)
    if text.startswith(b"version https://git-lfs"):
        return "a pointer of Git LFS, not the file"
    page = text.startswith((b"<!doctype html", b"<html", b"<head"))
    page |= text.startswith(b"<?xml") and bool(re.search(rb"<(html|error)\b", text))
    if suffix not in (".html", ".htm") and (page or "html" in kind):
        return "a web page, not the file"
    if suffix not in (".json", ".jsonl") and "json" in kind:
        return f"{kind}, not the file"
    if len(start) < SNIFFED and suffix != ".jsonl" and text.startswith((b"{", b"[")):
        with suppress(ValueError):  # it is no JSON
            found = json.loads(start.decode("utf-8-sig"))
            if suffix != ".json" or (isinstance(found, dict) and ERRORS & {*found}):
                return "a message in JSON, not the file"
    return None


def what_is_wrong(path: Path) -> str:
    """Why a file is not an archive, judged by its first bytes."""
    with open(path, "rb") as handle:
        start = handle.read(512).lstrip().lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        return "a web page, not an archive"
    return "an empty file" if not start else "a damaged archive, or none at all"


class _Limited:
    """Reads from a file until more than `limit` bytes have been asked for."""

    def __init__(self, handle: IO[bytes], limit: int, name: Path) -> None:
        self._handle, self._left, self._name, self._limit = handle, limit, name, limit

    def read(self, size: int) -> bytes:
        self._left -= size
        if self._left < 0:
            raise _too_much(self._name, self._limit)
        return self._handle.read(size)


def _too_much(archive: Path, limit: int) -> UserError:
    return UserError(f"{archive}: unpacks to more than {limit / 1e9:.3g} GB; is it the right archive?")


def _check_name(archive: Path, name: str) -> None:
    path = PureWindowsPath(name)  # which knows both slashes, and drives
    if path.anchor or ".." in path.parts:
        raise UserError(f"{archive}: names a file outside its folder ({name!r}); do not use this archive")


def _untar(archive: Path, wanted: set[str], folder: Path, limit: int) -> dict[str, Path]:
    found, size = {}, 0
    with gzip.open(archive) as raw, tarfile.open(fileobj=_Limited(raw, limit, archive), mode="r|") as tar:
        for member in tar:
            _check_name(archive, member.name)
            name = member.name.removeprefix("./")
            if name in wanted:
                if not member.isreg():
                    raise _no_file(archive, name)
                size += member.size  # of a sparse file far more than is read
                if size > limit:
                    raise _too_much(archive, limit)
                found[name] = _write(tar.extractfile(member), folder, name)
        if raw.read(1 << 16).strip(b"\0"):  # read on to the checksum at the end
            raise tarfile.ReadError("data after its end")
    return found


def _unzip(archive: Path, wanted: set[str], folder: Path, limit: int) -> dict[str, Path]:
    found = {}
    with zipfile.ZipFile(archive) as packed:
        for member in packed.infolist():
            _check_name(archive, member.filename)
        chosen = [member for member in packed.infolist() if member.filename in wanted]
        if sum(member.file_size for member in chosen) > limit:
            raise _too_much(archive, limit)
        for member in chosen:
            if stat.S_ISLNK(member.external_attr >> 16) or member.is_dir():
                raise _no_file(archive, member.filename)
            with packed.open(member) as handle:
                found[member.filename] = _write(handle, folder, member.filename)
    return found


def _no_file(archive: Path, name: str) -> UserError:
    return UserError(f"{archive}: {name} is a link or the like, not a file; do not use this archive")


def _write(handle: IO[bytes], folder: Path, name: str) -> Path:
    path = folder / PurePosixPath(name).name
    folder.mkdir(parents=True, exist_ok=True)
    with named_errors(path), open(path, "wb") as output:
        shutil.copyfileobj(handle, output)
    return path

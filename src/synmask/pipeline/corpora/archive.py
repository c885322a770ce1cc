"""Extract chosen files from an archive without trusting its metadata."""

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
from pathlib import Path, PurePosixPath
from typing import IO

from synmask.pipeline.disk import naming_write_errors, raise_unreadable, sha256
from synmask.pipeline.errors import UserError

# Errors of Python's readers for truncated, altered or unsupported archives.
ARCHIVE_ERRORS = (
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
SNIFFED_BYTES = 1 << 16  # bytes that show what a file is
JSON_ERROR_KEYS = {"error", "errors", "message", "detail"}  # keys of a server's messages in JSON
DAMAGED = "a damaged archive, or none at all"
MAGIC = {".tgz": b"\x1f\x8b", ".gz": b"\x1f\x8b", ".zip": b"PK"}  # first bytes of files with these suffixes


def unpack(archive: str | Path, members: Sequence[str], folder: str | Path) -> list[Path]:
    """Write `members` of a .tgz or .zip file under `folder` by their base names; return their paths.

    Only regular files are written, and only those in `members`.

    Raises:
        UserError: no such file, not an archive, damaged, or changed since it was first fetched; or a member
            is missing or a link.
    """
    archive, folder = Path(archive), Path(folder)
    check_checksum(archive)
    advice = f"delete it (and {archive.name}.sha256 beside it) and fetch it again"
    try:
        written = (_unzip if archive.suffix == ".zip" else _untar)(archive, set(members), folder)
    except FileNotFoundError:
        raise UserError(f"{archive}: no such file") from None
    except RuntimeError as error:  # a password is needed; NotImplementedError: deflate64 and the like
        fault = "is packed in a way that cannot be read here"
        raise UserError(
            f"{archive}: {fault} ({_error_text(error)}); pack it again as .tgz or plain .zip"
        ) from None
    except (OSError, *ARCHIVE_ERRORS) as error:
        raise_unreadable(archive, error)
        wrong = content_fault(archive, archive.name) or DAMAGED
        raise UserError(f"{archive}: {wrong} ({_error_text(error)}); {advice}") from None
    if missing := [name for name in members if name not in written]:
        raise UserError(f"{archive}: has no member {missing[0]}; is it the right archive?")
    return [written[name] for name in members]


def _error_text(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def read_checksum(record: Path) -> str:
    """Read the checksum that `download.fetch` wrote beside a download.

    Raises:
        UserError: the file contains no checksum.
    """
    match = re.match(rb"([0-9a-f]{64})(\s|$)", record.read_bytes())
    if not match:
        raise UserError(
            f"{record}: not a sha256 checksum; delete it, and the file beside it is trusted again"
        )
    return match[1].decode()


def check_checksum(path: Path) -> None:
    """Compare a file with the checksum recorded beside it, if there is one (see `download.fetch`).

    Raises:
        UserError: the checksums differ, or the record contains none.
    """
    record = path.with_name(path.name + ".sha256")
    if path.is_file() and record.is_file():
        expected = read_checksum(record)
        if (got := sha256(path)) != expected:
            raise UserError(f"{path}: changed since it was fetched: sha256 {got}, not {expected}; delete it")


def content_fault(path: Path, name: str, content_type: str = "") -> str | None:
    """Why a file's first bytes contradict its name; None if they do not.

    Args:
        content_type: the type that the server gave; "" for a copy.
    """
    with open(path, "rb") as handle:
        start = handle.read(SNIFFED_BYTES)
    text, suffix = start.lstrip(b"\xef\xbb\xbf \t\r\n").lower(), Path(name).suffix.lower()
    if not text:
        return "an empty file"
    page = text.startswith((b"<!doctype html", b"<html", b"<head"))
    page |= text.startswith(b"<?xml") and bool(re.search(rb"<(html|error)\b", text))
    if suffix not in (".html", ".htm") and (page or "html" in content_type):
        return "a web page, not the file"
    if not start.startswith(MAGIC.get(suffix, b"")):
        return DAMAGED
    if text.startswith(b"version https://git-lfs"):
        return "a pointer of Git LFS, not the file"
    if suffix not in (".json", ".jsonl") and "json" in content_type:
        return f"{content_type}, not the file"
    if len(start) < SNIFFED_BYTES and suffix != ".jsonl" and text.startswith((b"{", b"[")):
        with suppress(ValueError):  # it is no JSON
            content = json.loads(start.decode("utf-8-sig"))
            if suffix != ".json" or (isinstance(content, dict) and JSON_ERROR_KEYS & {*content}):
                return "a message in JSON, not the file"
    return None


def find_damage(path: Path, name: str) -> str | None:
    """Why the archive `name` is incomplete, after reading all of it; None if it is complete or no archive.

    Raises:
        OSError: it cannot be read.
    """
    suffix, damage = Path(name).suffix.lower(), None
    try:
        if suffix in (".gz", ".tgz"):
            with gzip.open(path) as packed:
                while packed.read(SNIFFED_BYTES):
                    pass
        elif suffix == ".zip":
            with zipfile.ZipFile(path) as packed:
                damage = packed.testzip()
    except RuntimeError:  # encrypted, or compressed by an unsupported method: `unpack` reports it
        return None
    except (OSError, *ARCHIVE_ERRORS) as error:
        raise_unreadable(path, error)
        damage = _error_text(error)
    return damage and f"{DAMAGED} ({damage})"


def _untar(archive: Path, members: set[str], folder: Path) -> dict[str, Path]:
    paths = {}
    with gzip.open(archive) as raw, tarfile.open(fileobj=raw, mode="r|") as tar:
        for member in tar:
            name = member.name.removeprefix("./")
            if name in members:
                paths[name] = _write_member(tar.extractfile(member) if member.isreg() else None, folder, name)
        if raw.read(1 << 16).strip(b"\0"):  # read on to the checksum at the end
            raise tarfile.ReadError("data after its end")
    return paths


def _unzip(archive: Path, members: set[str], folder: Path) -> dict[str, Path]:
    paths = {}
    with zipfile.ZipFile(archive) as packed:
        for member in packed.infolist():
            if (name := member.filename) in members:
                plain = not stat.S_ISLNK(member.external_attr >> 16)
                paths[name] = _write_member(packed.open(member) if plain else None, folder, name)
    return paths


def _write_member(handle: IO[bytes] | None, folder: Path, name: str) -> Path:
    """Write a member under its base name; None is a link or the like."""
    if handle is None:
        raise ValueError(f"{name} is a link or the like, not a file")
    path = folder / PurePosixPath(name).name
    folder.mkdir(parents=True, exist_ok=True)
    with naming_write_errors(path), handle, open(path, "wb") as output:
        shutil.copyfileobj(handle, output)
    return path

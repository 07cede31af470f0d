"""The staging area's file, looked at from outside: its version and its extensions (gitformat-index(5)).

For telling what kind it is, and for tests that it stays of that kind. Nothing here writes, and entries are
read by `git ls-files` alone.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

_FIXED: Final = 40  # stat data and mode before the object id
_EXTENDED: Final = 0x4000


class StagingFile(NamedTuple):
    """`version`: 2, 3 or 4, and 0 when there is no such file. `extensions`: their signatures, in order."""

    version: int
    extensions: tuple[str, ...]


def look(path: str, object_format: str = "sha1") -> StagingFile:
    """The version and the extensions of the file at `path`; what can't be read counts as none."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return StagingFile(0, ())
    try:
        signature, version, entries = struct.unpack_from(">4sII", data)
        if signature != b"DIRC":
            return StagingFile(0, ())
        width = 32 if object_format == "sha256" else 20
        return StagingFile(version, _extensions(data, _after_entries(data, version, entries, width), width))
    except (struct.error, ValueError, IndexError):
        return StagingFile(0, ())


def _after_entries(data: bytes, version: int, entries: int, width: int) -> int:
    at = 12
    for _ in range(entries):
        start, at = at, at + _FIXED + width
        (flags,) = struct.unpack_from(">H", data, at)
        at += 4 if flags & _EXTENDED else 2
        if version == 4:
            while data[at] & 0x80:  # how much of the last name is cut off, in as many bytes as it takes
                at += 1
            at = data.index(b"\0", at + 1) + 1
        else:
            end = data.index(b"\0", at)
            at = start + (end - start + 8) // 8 * 8
    return at


def _extensions(data: bytes, at: int, width: int) -> tuple[str, ...]:
    found = []
    while at + 8 <= len(data) - width:
        signature, size = struct.unpack_from(">4sI", data, at)
        found.append(signature.decode("ascii"))
        at += 8 + size
    return tuple(found)

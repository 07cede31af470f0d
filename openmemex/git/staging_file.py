"""The staging area's file, looked at from outside: its version and its extensions (gitformat-index(5)).

For telling what kind it is, which paths it surely does not hold, and for tests that it stays of its kind.
Nothing here writes, and entries are read by `git ls-files` alone.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

_FIXED: Final = 40  # stat data and mode before the object id
_EXTENDED: Final = 0x4000
_LENGTH: Final = 0x0FFF
# With these the file does not name all that is staged: another file has the rest, or a folder stands for it.
_ELSEWHERE: Final = (b"link", b"sdir")


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


def may_hold(path: str, names: Iterable[str]) -> list[str]:
    """Those of `names` (from the top of the work tree) that the file at `path` may have an entry for.

    A name that is left out has none, surely; asking git costs a process that reads all entries. Names stand
    whole in versions 2 and 3, behind two bytes with their length: a name whose bytes are nowhere so is in no
    entry. All of `names` where the file is of another kind, or can't be read.
    """
    wanted = list(names)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return []
    except OSError:
        return wanted
    if data[:4] != b"DIRC" or data[4:8] not in (b"\0\0\0\2", b"\0\0\0\3"):
        return wanted
    if any(_has_extension(data, signature) for signature in _ELSEWHERE):
        return wanted
    return [name for name in wanted if _stands_in(data, name.encode("utf-8", "surrogateescape"))]


def _has_extension(data: bytes, signature: bytes) -> bool:
    """Whether an extension of that signature may be there: the size behind it is not beyond the end."""
    at = data.find(signature)
    while at >= 0:
        size = int.from_bytes(data[at + 4 : at + 8], "big")
        if at + 8 + size <= len(data):
            return True
        at = data.find(signature, at + 1)
    return False


def _stands_in(data: bytes, name: bytes) -> bool:
    ended, length = name + b"\0", min(len(name), _LENGTH)
    at = data.find(ended)
    while at >= 0:
        # An entry of version 3 may have two bytes more between the length and the name.
        for before in (2, 4):
            if int.from_bytes(data[at - before : at - before + 2], "big") & _LENGTH == length:
                return True
        at = data.find(ended, at + 1)
    return False

"""What changed since the index last looked: one pass over each folder, one look at each branch's tip.

This is the part of a reconcile that every search pays for, so it only lists and compares. What is to be done
about a difference is in ingest.py, which imports the parser and is loaded when there is one.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from openmemex.errors import OpenMemexError
from openmemex.index.rows import key_of

if TYPE_CHECKING:
    from openmemex.index.rows import Place, TreeReader

NAME_LENGTH = 26
ENDING = ".md"
# The tip of a home of which some files must be looked at again whatever they look like, and their mark.
UNSETTLED = "?"
UNSETTLED_MARK = -1  # no tuple has this hash
# Homes that are trees in git, not folders.
TREES = ("branch", "revision")
_BY_HANDLE = os.scandir in os.supports_fd and hasattr(os, "O_DIRECTORY")
_WORD = (1 << 64) - 1
_WINDOWS = sys.platform == "win32"

# Size, time of last change, time of last change of anything at all, inode: what any way to change a file
# changes. The index keeps its hash, the *mark*: Python's hash of integers is the same in every process, and
# quicker than anything that must see text. Another Python may hash otherwise; then files are read once more.
Stamp = tuple[int, int, int, int]


class Listing(NamedTuple):
    """A folder as it stands: the names of its files, their stamps in the same order, and a digest of both.

    `readable` False: the folder is there, but can't be listed; nothing is known of it.
    """

    names: list[str]
    stamps: list[Stamp]
    digest: str
    readable: bool

    def by_key(self) -> dict[str, int]:
        """File → mark; a file `<id>.md` goes by its id, every other one by its whole name."""
        return {
            name[:NAME_LENGTH] if name[NAME_LENGTH:] == ENDING else name: hash(stamp)
            for name, stamp in zip(self.names, self.stamps, strict=True)
        }


class Stale(NamedTuple):
    """A home that differs from what the index knows; `home` is None for one that it never met.

    For a folder `listing` is what was found; for a branch `tip` is where it points now ("" when it is gone).
    """

    place: Place
    home: int | None
    known_tip: str
    version: int
    listing: Listing | None
    tip: str


class Look(NamedTuple):
    """What a look at all homes gave: the stale ones, and the folders (or repositories) that can't be read."""

    stale: list[Stale]
    unreadable: tuple[str, ...]


def stamp_of(status: os.stat_result) -> Stamp:
    """The stamp of a file."""
    # A listing on Windows has no inode, and there st_ctime is the time of creation.
    inode = 0 if _WINDOWS else status.st_ino
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, inode)


def list_folder(folder: str) -> Listing:
    """Every `*.md` in `folder` with its stamp; no link is followed. A folder that is not there is empty."""
    names: list[str] = []
    stamps: list[Stamp] = []
    handle = -1
    try:
        if _BY_HANDLE:
            # The kernel then walks the path once, not once per file: a fifth of the whole cost.
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        with os.scandir(handle if _BY_HANDLE else folder) as entries:
            for entry in entries:
                name = entry.name
                # The first test is the quick one for nearly all.
                if name[NAME_LENGTH:] == ENDING or (name[-3:].lower() == ENDING and name[0] != "."):
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue  # gone between listing and looking: as if it had gone before
                    names.append(name)
                    stamps.append((status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino))
    except (FileNotFoundError, NotADirectoryError):
        return Listing([], [], "", True)
    except OSError:
        return Listing([], [], "", False)
    finally:
        if handle >= 0:
            os.close(handle)
    if not names:
        return Listing([], [], "", True)
    data = "\n".join(names).encode("utf-8", "surrogateescape")
    digest = f"{len(names)} {zlib.crc32(data):08x} {hash(tuple(stamps)) & _WORD:016x}"
    return Listing(names, stamps, digest, True)


def look(connection: sqlite3.Connection, homes: Sequence[Place], trees: TreeReader | None) -> Look:
    """Compare every home with what the index knows of it. Reads no file and writes nothing."""
    known = {
        (kind, folder, ref): (home, tip, version)
        for home, kind, folder, ref, tip, version in connection.execute(
            "select id, kind, folder, ref, tip, version from home"
        )
    }
    stale: list[Stale] = []
    unreadable: list[str] = []
    for place in homes:
        home, known_tip, version = known.get(key_of(place), (None, "", 0))
        if place.kind in TREES:
            if trees is None:
                continue
            try:
                tip = trees.tip(place) or ""
            except OpenMemexError:
                unreadable.append(place.folder)  # what is known of it stays
                continue
            if tip != known_tip:
                stale.append(Stale(place, home, known_tip, version, None, tip))
            continue
        listing = list_folder(place.folder)
        if not listing.readable:
            unreadable.append(place.folder)
        elif listing.digest != known_tip:
            stale.append(Stale(place, home, known_tip, version, listing, listing.digest))
    return Look(stale, tuple(dict.fromkeys(unreadable)))

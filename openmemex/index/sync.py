"""What changed since the index last looked: one pass over each folder, one look at each branch's tip.

This is the part of a reconcile that every search pays for, so it only lists and compares. What is to be done
about a difference is in ingest.py, which imports the parser and is loaded when there is one.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from openmemex.index.rows import Place, TreeReader

NAME_LENGTH = 26
ENDING = ".md"
# The tip of a home some of whose files must be looked at again, whatever their stamps say.
UNSETTLED = "?"


class Listing(NamedTuple):
    """A folder as it stands: a line "<stamp> <name>" for each file, and a digest of them all.

    `readable` False: the folder is there, but can't be listed; nothing is known of it.
    """

    lines: list[str]
    digest: str
    readable: bool

    def stamps(self) -> dict[str, str]:
        """File → stamp; a file `<id>.md` goes by its id, every other one by its whole name."""
        found = {}
        for line in self.lines:
            size, modified, changed, inode, name = line.split(" ", 4)
            key = name[:NAME_LENGTH] if name[NAME_LENGTH:] == ENDING else name
            found[key] = f"{size} {modified} {changed} {inode}"
        return found


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
    """What a look at all homes gave: the stale ones, and whether every one could be looked at."""

    stale: list[Stale]
    complete: bool


def list_folder(folder: str) -> Listing:
    """Every `*.md` in `folder` with its stamp; no link is followed. A folder that is not there is empty.

    The stamp is size, times and inode as `lstat` gives them: what any way to change a file changes.
    """
    lines: list[str] = []
    # On Windows a listing has no inode, and st_ctime is the time of creation: harmless there.
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                # The first test is the quick one for nearly all.
                if name[NAME_LENGTH:] == ENDING or (name[-3:].lower() == ENDING and name[0] != "."):
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue  # gone between listing and looking: as if it had gone before
                    lines.append(
                        f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino} {name}"
                    )
    except (FileNotFoundError, NotADirectoryError):
        return Listing([], "", True)
    except OSError:
        return Listing(lines, "", False)
    # Two checksums of different make: a difference that both miss is as good as impossible, and hashlib would
    # cost more start-up time than the whole comparison.
    data = "\n".join(lines).encode("utf-8", "surrogateescape")
    return Listing(
        lines, f"{len(lines)} {zlib.crc32(data):08x}{zlib.adler32(data):08x}" if lines else "", True
    )


def look(connection: sqlite3.Connection, homes: Sequence[Place], trees: TreeReader | None) -> Look:
    """Compare every home with what the index knows of it. Reads no file and writes nothing."""
    known = {
        (kind, folder, ref): (home, tip, version)
        for home, kind, folder, ref, tip, version in connection.execute(
            "select id, kind, folder, ref, tip, version from home"
        )
    }
    stale: list[Stale] = []
    complete = True
    for place in homes:
        home, known_tip, version = known.get((place.kind, place.folder, place.ref), (None, "", 0))
        if place.kind == "branch":
            if trees is None:
                continue
            tip = trees.tip(place) or ""
            if tip != known_tip:
                stale.append(Stale(place, home, known_tip, version, None, tip))
            continue
        listing = list_folder(place.folder)
        if not listing.readable:
            complete = False
        elif listing.digest != known_tip:
            stale.append(Stale(place, home, known_tip, version, listing, listing.digest))
    return Look(stale, complete)

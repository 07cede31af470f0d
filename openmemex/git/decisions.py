"""What merges decided about one file: where both sides had changed it and one side's file was taken as it is.

`git log` tells of a merge what differs from all its parents. A deletion that a person settled on, or a merge
with `-s ours`, is the same as one of them, and still no side alone has led to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from openmemex.git.repository import Repository


class Taken(NamedTuple):
    """What a merge took: the file's path and blob (None: it is not there), and its blob in each parent."""

    path: str
    oid: str | None
    before: tuple[str | None, ...]


_State = Mapping[str, str | None]


def taken(
    repository: Repository,
    merges: Mapping[str, Sequence[str]],
    paths: Sequence[str],
    known: frozenset[str | None],
    shallow: bool,
) -> dict[str, Taken]:
    """Of `merges` (commit to parents) those that took one of two changed files, with what they took.

    `paths` are all places of the file. `known` are the blobs that changes started from: a side that had not
    changed it is at one of them. In a `shallow` clone, sides whose common beginning is not here decide
    nothing.
    """
    pairs = [(parent, commit) for commit, parents in merges.items() for parent in parents]
    seen = dict(zip(pairs, _differences(repository, pairs, paths), strict=True))
    found: dict[str, Taken] = {}
    doubts: list[_Doubt] = []
    for commit, parents in merges.items():
        sides = [seen[parent, commit] for parent in parents]
        here = {path: there for side in sides for path, (there, _) in side.items()}
        where = sorted(here)
        oid = _blob(here, where)
        before = tuple(_blob({**here, **_theirs(side)}, where) for side in sides)
        winner = next((parent for parent, side in zip(parents, sides, strict=True) if not side), None)
        lost = [(parent, blob) for parent, blob in zip(parents, before, strict=True) if blob != oid]
        if winner is None or not lost:
            continue
        path = next((path for path in where if here[path] is not None), None)
        path = path or next(path for side in sides for path, (_, was) in side.items() if was is not None)
        merge = Taken(path, oid, before)
        if not shallow and any(blob not in known for _, blob in lost):
            found[commit] = merge
        else:
            doubts += [_Doubt(commit, merge, here, parent, winner, blob) for parent, blob in lost]
    return found | _settled(repository, doubts, shallow)


class _Doubt(NamedTuple):
    """A merge whose parent `side` has another `blob` than it and `winner`: had that side changed the file?"""

    commit: str
    merge: Taken
    here: _State
    side: str
    winner: str
    blob: str | None


def _settled(repository: Repository, doubts: Sequence[_Doubt], shallow: bool) -> dict[str, Taken]:
    """Those of `doubts` in which the side had changed the file since it and the winner were one."""
    bases = [
        repository.git.run("merge-base", "--all", one.side, one.winner, allow=(0, 1)).text.split()
        for one in doubts
    ]
    pairs = [(base, one.commit) for one, several in zip(doubts, bases, strict=True) for base in several]
    paths = sorted({path for one in doubts for path in one.here})
    told = _differences(repository, pairs, paths)
    found: dict[str, Taken] = {}
    for one, several in zip(doubts, bases, strict=True):
        where = sorted(one.here)
        blobs = [_blob({**one.here, **_theirs(next(told))}, where) for _ in several]
        changed = one.blob not in blobs if several else one.blob is not None and not shallow
        if changed:
            found[one.commit] = one.merge
    return found


def _differences(
    repository: Repository, pairs: Sequence[tuple[str, str]], paths: Sequence[str]
) -> Iterator[dict[str, tuple[str | None, str | None]]]:
    """Of each pair of commits the `paths` that differ, with the blob in the second and in the first."""
    if not pairs:
        return
    # A commit with another for its parent: so git compares the two, all of them in one process.
    done = repository.git.run(
        *("--literal-pathspecs", "diff-tree", "--stdin", "-r", "--raw", "-z", "--always", "--no-renames"),
        *("--no-abbrev", "--", *paths),
        stdin="".join(f"{one} {other}\n" for one, other in pairs).encode("ascii"),
    )
    tokens = iter(done.out.decode("utf-8", "surrogateescape").split("\0"))
    current: dict[str, tuple[str | None, str | None]] | None = None
    for token in tokens:
        # The id of the commit stands on a line of its own, or behind a NUL, as versions of git have it.
        for part in token.split("\n"):
            if part.startswith(":") and current is not None:
                _, _, other, one, _ = part[1:].split(" ")
                current[next(tokens)] = (_known(other), _known(one))
            elif part:
                if current is not None:
                    yield current
                current = {}
    if current is not None:
        yield current


def _known(oid: str) -> str | None:
    return oid if oid.strip("0") else None


def _theirs(side: Mapping[str, tuple[str | None, str | None]]) -> _State:
    return {path: was for path, (_, was) in side.items()}


def _blob(state: _State, where: Iterable[str]) -> str | None:
    return next((oid for path in where if (oid := state.get(path)) is not None), None)

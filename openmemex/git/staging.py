"""The person's staging area: read it, change named entries of it and nothing else, wait for its lock.

Only `git update-index` writes here. It holds git's own lock from reading to writing, so that no `git add` of
the person is lost; libgit2 takes it for the writing alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from openmemex.errors import PartlyDone, Refused
from openmemex.git.objects import Change
from openmemex.git.process import Done, Git, GitFailed, Untrusted

_T = TypeVar("_T")
LOCK_SECONDS: Final = 5.0
_CHUNK: Final = 400  # paths on one command line: Windows allows 32,767 characters
_EMPTY_BLOBS: Final = frozenset(
    {
        "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
        "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
    }
)


class StagedEntry(NamedTuple):
    """One entry: stage 0, or 1, 2, 3 (base, ours, theirs) in a conflict; `tag` as `ls-files -t` has it."""

    mode: str
    oid: str
    stage: int
    tag: str


class FolderEntry(NamedTuple):
    """A file of a folder that differs from HEAD: untracked, added, modified, deleted or conflicted."""

    path: str
    state: str


def staged(git: Git, paths: Sequence[str]) -> dict[str, list[StagedEntry]]:
    """What the staging area holds of `paths`. Raises Refused when git can't read it."""
    found: dict[str, list[StagedEntry]] = {}
    for start in range(0, len(paths), _CHUNK):
        try:
            done = git.run(
                *("--literal-pathspecs", "ls-files", "--stage", "-t", "-z", "--"),
                *paths[start : start + _CHUNK],
            )
        except Untrusted:
            raise
        except GitFailed as error:
            reason = error.done.reason if error.done else error.message
            raise Refused(
                f"The staging area of {git.folder} can't be read: {reason}",
                "`git status` says more; `git read-tree HEAD` makes it anew, without what was staged.",
            ) from error
        for line in done.fields:
            facts, _, path = line.partition("\t")
            tag, mode, oid, stage = facts.split(" ")
            found.setdefault(path, []).append(StagedEntry(mode, oid, int(stage), tag))
    return found


def stage(git: Git, changes: Mapping[str, Change], width: int) -> None:
    """Put each path's blob into the staging area, or take the path out. Waits for the lock.

    `width`: how many digits an object id has here. Raises Refused, with nothing changed.
    """
    lines = []
    for path, change in changes.items():
        if change.oid is None:
            lines.append(f"0 {'0' * width}\t{path}\0")
        else:
            lines.append(f"{change.mode} {change.oid} 0\t{path}\0")
    _update(git, "".join(lines), "-z", "--index-info")


def put_back(git: Git, before: Mapping[str, list[StagedEntry]], paths: Iterable[str], width: int) -> None:
    """Make the entries of `paths` again what `staged` said before."""
    lines, promised = [], []
    for path in paths:
        entries = before.get(path, [])
        lines.append(f"0 {'0' * width}\t{path}\0")
        for entry in entries:
            if entry.oid in _EMPTY_BLOBS and entry.stage == 0:
                promised.append(path)
            else:
                lines.append(f"{entry.mode} {entry.oid} {entry.stage}\t{path}\0")
    _update(git, "".join(lines), "-z", "--index-info")
    if promised:
        # An empty entry is what `git add -N` leaves; its flag can't be given to update-index.
        git.run("--literal-pathspecs", "add", "-f", "-N", "--", *promised, writes=True)


def undo(
    git: Git, before: Mapping[str, list[StagedEntry]], changes: Mapping[str, Change], width: int
) -> None:
    """`put_back` after a commit that came to nothing. Raises PartlyDone when not even that can be done."""
    try:
        put_back(git, before, changes, width)
    except Refused as error:
        raise PartlyDone(
            f"Nothing was committed, but the files stay staged: {error.message}",
            f"`git restore --staged -- {' '.join(changes)}` takes them out again.",
        ) from error


def add(git: Git, changes: Mapping[str, Change], before: Mapping[str, list[StagedEntry]]) -> bool:
    """Let git take the files from the work tree, which notes their stamps in the same write.

    For files whose blob is their bytes: the caller makes sure that nobody writes to them meanwhile. False
    when an entry did not become what `changes` says (a file that git was told to take for unchanged, say):
    then nothing is promised of them. Waits for the lock; raises Refused, with nothing changed.
    """
    names = "".join(f"{path}\0" for path in changes)
    _update(git, names, "--add", "--remove", "-z", "--stdin")
    known = [path for path in changes if before.get(path)]
    if not known:
        return True
    now = staged(git, known)
    return all(
        [(entry.mode, entry.oid) for entry in now.get(path, [])]
        == ([] if changes[path].oid is None else [(changes[path].mode, changes[path].oid)])
        for path in known
    )


def refresh(git: Git, paths: Sequence[str]) -> None:
    """Note size and time of the files in their entries, so that nothing takes them for changed, if it can."""
    for start in range(0, len(paths), _CHUNK):
        chunk = paths[start : start + _CHUNK]
        git.run("--literal-pathspecs", "add", "--refresh", "--", *chunk, check=False, writes=True)


def lock_file(git: Git) -> str:
    """Where git keeps the lock of this work tree's staging area."""
    return os.path.join(git.site.git_dir, "index.lock")


def wait_for_lock(git: Git) -> None:
    """Return when nobody holds the staging area; raises Refused after LOCK_SECONDS."""
    lock = lock_file(git)
    patiently(git, lambda: None if os.path.lexists(lock) else True)


def _update(git: Git, lines: str, *how: str) -> None:
    data = lines.encode("utf-8", "surrogateescape")
    lock = lock_file(git)
    failed: list[Done] = []

    def attempt() -> bool | None:
        done = git.run("update-index", *how, stdin=data, check=False, writes=True)
        if done.code == 0:
            return True
        if os.path.lexists(lock) or "index.lock" in done.err:
            return None
        failed.append(done)
        return False

    if not patiently(git, attempt):
        raise Refused(
            f"The staging area of {git.folder} can't be written: {failed[-1].reason}",
            "Nothing was committed. `git status` says more.",
        )


def patiently(git: Git, attempt: Callable[[], _T | None]) -> _T:
    """Call `attempt` until it gives an answer, in growing steps of up to half a second, for LOCK_SECONDS.

    None is no answer: another git command held the staging area. Raises Refused when that goes on.
    """
    lock = lock_file(git)
    end, pause = time.monotonic() + LOCK_SECONDS, 0.02
    while True:
        answer = attempt()
        if answer is not None:
            return answer
        if time.monotonic() > end:
            raise locked(lock)
        time.sleep(pause)
        pause = min(pause * 2, 0.5)


def locked(lock: str) -> Refused:
    """The refusal that names a lock, how old it is, and who may hold it."""
    try:
        age = f" since {max(0, time.time() - os.stat(lock).st_mtime):.0f} s"
    except OSError:
        age = ""
    return Refused(
        f"Another git command holds {lock}{age}: nothing was changed",
        "Let it end (an open `git commit`, an editor, a GUI), then run this again. If nothing uses the "
        "repository any more, remove that file by hand.",
    )


def folder_status(git: Git, folder: str) -> list[FolderEntry]:
    """The files below `folder` (from the top of the work tree) that differ from HEAD, in order of path.

    Compares work tree, staging area and HEAD of that folder alone, without writing anything, not even git's
    own refreshed stamps. Ignored files and files outside a sparse checkout are not told; renames are an added
    and a deleted file. Costs one `git status` of the folder (in 50,000 files: about 30 ms). Raises Refused
    when bare.
    """
    if git.site.bare:
        raise Refused(
            f"{git.folder} is a bare repository: it has no work tree", "Go to a clone with a work tree."
        )
    done = git.run(
        *("--no-optional-locks", "--literal-pathspecs", "status", "--porcelain=v2", "-z"),
        *("--no-renames", "--untracked-files=all", "--ignored=no", "--ignore-submodules=all", "--"),
        folder.strip("/") or ".",
    )
    states: dict[str, str] = {}
    for line in done.fields:
        kind = line[:1]
        if kind == "?":
            path = line[2:]
            if not path.endswith("/"):  # a repository inside
                # `git rm --cached` leaves the file: gone from the staging area and untracked at once.
                states[path] = "modified" if path in states else "untracked"
        elif kind == "u":
            states[line.split(" ", 10)[10]] = "conflicted"
        elif kind == "1":
            parts = line.split(" ", 8)
            states[parts[8]] = _state(parts[1])
    return [FolderEntry(path, states[path]) for path in sorted(states)]


def _state(xy: str) -> str:
    if xy[1] == "D" or (xy[0] == "D" and xy[1] == "."):
        return "deleted"
    return "added" if "A" in xy else "modified"

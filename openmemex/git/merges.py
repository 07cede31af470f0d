"""What merges joined: for each memory file the version of the base, of both sides, and of the result.

git merges lines, and can join two edits without a conflict into a file that no side wanted. Whoever wants to
look at that again finds here what to look at. Trees are read by two processes for all merges together, so
that the cost does not grow with the history.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from openmemex.git import light
from openmemex.git.objects import REGULAR, GitObjects
from openmemex.git.process import Git
from openmemex.git.repository import Repository

LIMIT: Final = 50  # merges that joined something in a memory folder
_LOOKED_AT: Final = 500  # merge commits of the history that are looked at for these


class JoinedFile(NamedTuple):
    """One file of a merge, as blob ids (None: not there); `path` is where the result has it, else a side."""

    path: str
    base: str | None
    ours: str | None
    theirs: str | None
    result: str | None

    @property
    def text_merged(self) -> bool:
        """Whether the result is neither side's file: git put it together line by line, or a person did."""
        return self.result is not None and self.result not in (self.ours, self.theirs)


class Join(NamedTuple):
    """A merge of two sides. `commit` is None for the one that is not committed yet.

    `base` is None when there is none, or more than one. `files` (by name) are those that differ from a side
    and that nobody has changed since.
    """

    commit: str | None
    base: str | None
    ours: str
    theirs: str
    files: Mapping[str, JoinedFile]


class _Tree(NamedTuple):
    """The files of the memory folders of one commit: name to (path, blob id)."""

    files: Mapping[str, tuple[str, str]]

    def oid(self, name: str) -> str | None:
        found = self.files.get(name)
        return None if found is None else found[1]


def joined(
    repository: Repository, folders: Sequence[str], *, since: str | None = None, limit: int = LIMIT
) -> list[Join]:
    """The merge in progress, if there is one, and the last merges of HEAD that joined files of `folders`.

    Only merges of two sides; `since`: only those that are not in that commit's history. While another
    operation waits to be finished nothing is told, and in a partial clone only the merge in progress: older
    versions would have to be fetched one by one. Of each merge only files that stand in HEAD (in the
    staging area, for the one in progress) as the merge left them.
    """
    git = repository.git
    _, head = light.head(repository.site)
    pending = repository.pending_operation()
    if head is None:
        return []
    if pending == "merge":
        return _in_progress(repository, head, folders) if since is None else []
    if pending is not None or repository.partial:
        return []
    span = [f"{since}..{head}"] if since else [head]
    done = git.run(
        *("rev-list", "--merges", "--min-parents=2", "--max-parents=2", "--parents", f"-n{_LOOKED_AT}"),
        *(*span, "--"),
        check=False,
    )
    lines = [line.split() for line in done.text.splitlines()]
    trees = _Trees(git, folders, [head, *(commit for line in lines for commit in line)])
    joins = [line for line in lines if len(line) == 3 and trees.joins(*line)]
    trees.read([head, *(commit for line in joins[:limit] for commit in line)])
    found = []
    for commit, ours, theirs in joins:
        files = _files(trees, ours, theirs, trees.of(commit), trees.of(head))
        if files:
            found.append(Join(commit, None, ours, theirs, files))
        if len(found) == limit:
            break
    return _with_bases(git, folders, found)


def _in_progress(repository: Repository, head: str, folders: Sequence[str]) -> list[Join]:
    git = repository.git
    try:
        with open(os.path.join(repository.site.git_dir, "MERGE_HEAD"), encoding="ascii") as file:
            others = file.read().split()
    except (OSError, UnicodeDecodeError):
        return []
    if len(others) != 1:
        return []  # an octopus has no two sides
    staged: dict[str, tuple[str, str]] = {}
    for line in git.run("--literal-pathspecs", "ls-files", "--stage", "-z", "--", *folders).fields:
        facts, _, path = line.partition("\t")
        mode, oid, stage = facts.split(" ")
        if stage == "0" and mode in REGULAR and path.rpartition("/")[0] in folders:
            staged.setdefault(path.rpartition("/")[2], (path, oid))
    result = _Tree(staged)
    trees = _Trees(git, folders, [head, others[0]])
    files = _files(trees, head, others[0], result, result)
    return _with_bases(git, folders, [Join(None, None, head, others[0], files)]) if files else []


def _files(trees: _Trees, ours: str, theirs: str, result: _Tree, now: _Tree) -> dict[str, JoinedFile]:
    """The files that differ from a side in the result, and are `now` as the result has them."""
    a, b = trees.of(ours), trees.of(theirs)
    found = {}
    for name in {*a.files, *b.files, *result.files}:
        made = result.oid(name)
        if made != now.oid(name) or a.oid(name) == b.oid(name) == made:
            continue
        path = next(tree.files[name][0] for tree in (result, a, b) if name in tree.files)
        found[name] = JoinedFile(path, None, a.oid(name), b.oid(name), made)
    return found


def _with_bases(git: Git, folders: Sequence[str], joins: Sequence[Join]) -> list[Join]:
    """The merges with their bases' versions; not asked for where every file is one of the sides'."""
    bases: dict[int, str] = {}
    for number, join in enumerate(joins):
        if any(file.text_merged for file in join.files.values()):
            found = git.run("merge-base", "--all", join.ours, join.theirs, allow=(0, 1)).text.split()
            if len(found) == 1:
                bases[number] = found[0]
    trees = _Trees(git, folders, bases.values())
    trees.read(bases.values())
    made = list(joins)
    for number, base in bases.items():
        tree = trees.of(base)
        files = {name: file._replace(base=tree.oid(name)) for name, file in joins[number].files.items()}
        made[number] = joins[number]._replace(base=base, files=files)
    return made


class _Trees:
    """The memory folders of many commits, read at once. A commit that is not in this clone has none."""

    def __init__(self, git: Git, folders: Sequence[str], commits: Iterable[str]) -> None:
        self._git = git
        self._folders = folders
        self._ids: dict[str, tuple[str, ...]] = {}
        self._read: dict[str, dict[str, str]] = {}
        self._known: dict[str, _Tree] = {}
        wanted = list(dict.fromkeys(commits))
        asked = "".join(f"{commit}:{folder}\n" for commit in wanted for folder in folders)
        if not asked:
            return
        done = git.run(
            *("cat-file", "--batch-check=%(objectname) %(objecttype)"),
            stdin=asked.encode("utf-8", "surrogateescape"),
        )
        lines = done.text.splitlines()
        for number, commit in enumerate(wanted):
            mine = lines[number * len(folders) : (number + 1) * len(folders)]
            self._ids[commit] = tuple(line.split(" ")[0] if line.endswith(" tree") else "" for line in mine)

    def joins(self, commit: str, ours: str, theirs: str) -> bool:
        """Whether the merge left the folders as neither side has them."""
        return self._ids[commit] not in (self._ids[ours], self._ids[theirs])

    def of(self, commit: str) -> _Tree:
        """The files of a commit's folders; a name that several folders have counts in the first."""
        if commit not in self._known:
            ids = self._ids[commit]
            self.read([commit])
            files: dict[str, tuple[str, str]] = {}
            for folder, oid in zip(self._folders, ids, strict=True):
                for name, blob in self._read.get(oid, {}).items():
                    files.setdefault(name, (f"{folder}/{name}", blob))
            self._known[commit] = _Tree(files)
        return self._known[commit]

    def read(self, commits: Iterable[str]) -> None:
        """Read the folders of these commits at once, so that `of` need not ask for each."""
        oids = dict.fromkeys(oid for commit in commits for oid in self._ids[commit] if oid)
        for oid, raw in GitObjects(self._git).blobs([oid for oid in oids if oid not in self._read]):
            self._read[oid] = _entries(raw, len(oid) // 2)


def _entries(raw: bytes, width: int) -> dict[str, str]:
    """The regular files of a tree object (gitformat: mode, blank, name, NUL, id)."""
    found, at = {}, 0
    while at < len(raw):
        end = raw.index(b"\0", at)
        mode, _, name = raw[at:end].partition(b" ")
        at = end + 1 + width
        if mode.decode("ascii").zfill(6) in REGULAR:
            found[name.decode("utf-8", "surrogateescape")] = raw[end + 1 : at].hex()
    return found


def text_merge(git: Git, base: bytes | None, ours: bytes | None, theirs: bytes | None) -> bytes | None:
    """What git's merge of lines makes of three versions without any driver; None when that is a conflict."""
    with tempfile.TemporaryDirectory(prefix="open-memex-") as folder:
        names = [os.path.join(folder, name) for name in ("ours", "base", "theirs")]
        for name, raw in zip(names, (ours, base, theirs), strict=True):
            with open(name, "wb") as file:
                file.write(raw or b"")
        done = git.run("merge-file", "-p", *names, check=False)
    return done.out if done.code == 0 else None

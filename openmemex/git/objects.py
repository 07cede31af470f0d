"""git's objects, read and written: in process by libgit2, or by `git` itself where libgit2 can't.

Two makers of the same objects. libgit2 serves ordinary repositories. `git` serves those that libgit2 does not
open (sha256, reftable, partial clones, an owner whom only git's own configuration trusts) or would write with
wrong permissions (core.sharedRepository), and makes signed commits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from openmemex.errors import NotFound, Refused
from openmemex.git.process import Git
from openmemex.git.words import said

if TYPE_CHECKING:
    import pygit2

REGULAR: Final = ("100644", "100755")
_BATCH: Final = 500
SIGN_SECONDS: Final = 120.0  # a key may wait for a touch
# ssh asks for a pass phrase in a window of its own when there is no terminal.
NO_QUESTIONS: Final = {"SSH_ASKPASS_REQUIRE": "never"}


class Signature(NamedTuple):
    """Who and when, as a commit states it: `time` in seconds since 1970, `offset` in minutes east of UTC."""

    name: str
    email: str
    time: int
    offset: int


class Entry(NamedTuple):
    """One name in a tree: its mode in git's octal digits, and the id of what it names."""

    mode: str
    oid: str


class Change(NamedTuple):
    """What becomes of one path in a new tree; `oid` None takes it out."""

    mode: str
    oid: str | None


class Objects(Protocol):
    """What is needed of an object store. Ids are hexadecimal text; trees are named by their own ids.

    `durable`: each object written is on disk before the call ends. Costs one fsync an object (15 ms on a slow
    disk), so it is for what is kept nowhere else; git too leaves loose objects to the system.
    """

    engine: str
    durable: bool

    def tree_of(self, commit: str) -> str:
        """The id of a commit's tree."""

    def entries(self, tree: str) -> dict[str, Entry]:
        """The names directly in a tree."""

    def entry(self, tree: str, name: str) -> Entry | None:
        """What `name` is directly in a tree; None when there is nothing of that name."""

    def changed_tree(self, tree: str | None, changes: Mapping[str, Entry | None]) -> str | None:
        """Store the tree `tree` with these names put in or (None) taken out; None when nothing is left."""

    def blobs(self, oids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """The bytes of each blob, in order. Raises NotFound for one that is not here."""

    def write_blob(self, data: bytes) -> str:
        """Store bytes as they are."""

    def write_tree(self, entries: Mapping[str, Entry]) -> str:
        """Store a tree of these names."""

    def write_commit(
        self, tree: str, parents: list[str], message: str, author: Signature, committer: Signature
    ) -> str:
        """Store a commit object. No ref moves."""


class LibgitObjects:
    """Objects through libgit2."""

    engine = "libgit2"

    def __init__(self, handle: pygit2.Repository) -> None:
        self._handle = handle
        self.durable = False

    @contextlib.contextmanager
    def _writing(self) -> Iterator[pygit2.Repository]:
        import pygit2

        pygit2.settings.enable_fsync_gitdir(self.durable)  # libgit2 has this for the whole process only
        try:
            yield self._handle
        except (pygit2.GitError, OSError) as error:
            raise Refused(
                f"No object can be written to {self._handle.path}objects: {error}",
                "Nothing was committed. Make room there, or give yourself the right to write, and try again.",
            ) from None

    def _get(self, oid: str) -> Any:
        found = self._handle.get(oid)
        if found is None:
            raise _missing(oid, self._handle.path)
        return found

    def tree_of(self, commit: str) -> str:
        return str(self._get(commit).tree_id)

    def entries(self, tree: str) -> dict[str, Entry]:
        return {entry.name or "": Entry(f"{entry.filemode:06o}", str(entry.id)) for entry in self._get(tree)}

    def entry(self, tree: str, name: str) -> Entry | None:
        try:
            found = self._get(tree)[name]
        except KeyError:
            return None
        return Entry(f"{found.filemode:06o}", str(found.id))

    def changed_tree(self, tree: str | None, changes: Mapping[str, Entry | None]) -> str | None:
        with self._writing() as handle:
            # Neighbours are copied as they are: their names need not be UTF-8.
            builder = handle.TreeBuilder() if tree is None else handle.TreeBuilder(self._get(tree))
            for name, entry in changes.items():
                if entry is not None:
                    builder.insert(name, entry.oid, int(entry.mode, 8))
                elif builder.get(name) is not None:
                    builder.remove(name)
            return str(builder.write()) if len(builder) else None

    def blobs(self, oids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        for oid in oids:
            try:
                yield oid, self._handle.read(oid)[1]  # half the time of an object that is made and kept
            except KeyError:
                raise _missing(oid, self._handle.path) from None

    def write_blob(self, data: bytes) -> str:
        with self._writing() as handle:
            return str(handle.create_blob(data))

    def write_tree(self, entries: Mapping[str, Entry]) -> str:
        import pygit2

        with self._writing() as handle:
            builder = handle.TreeBuilder()
            try:
                for name, entry in entries.items():
                    builder.insert(name, entry.oid, int(entry.mode, 8))
            except UnicodeEncodeError:  # a neighbour whose name is no UTF-8, which the builder does not take
                return str(handle.write(pygit2.enums.ObjectType.TREE, _raw_tree(entries)))
            return str(builder.write())

    def write_commit(
        self, tree: str, parents: list[str], message: str, author: Signature, committer: Signature
    ) -> str:
        import pygit2

        by, through = pygit2.Signature(*author), pygit2.Signature(*committer)
        with self._writing() as handle:
            return str(handle.create_commit(None, by, through, message, tree, list(parents)))


def _raw_tree(entries: Mapping[str, Entry]) -> bytes:
    """A tree object's bytes, names as they are on disk: folders sort as if they ended with a slash."""
    lines = []
    for name, entry in entries.items():
        raw = name.encode("utf-8", "surrogateescape")
        line = entry.mode.lstrip("0").encode() + b" " + raw + b"\0" + bytes.fromhex(entry.oid)
        lines.append((raw + (b"/" if entry.mode == "040000" else b""), line))
    return b"".join(line for _, line in sorted(lines))


class GitObjects:
    """Objects through the `git` program. `sign`: commits carry the user's signature."""

    engine = "git"

    def __init__(self, git: Git, *, sign: bool = False) -> None:
        self._git = git
        self._sign = sign
        self.durable = False

    def tree_of(self, commit: str) -> str:
        return self._git.run("rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}").text.strip()

    def entries(self, tree: str) -> dict[str, Entry]:
        found = {}
        for line in self._git.run("ls-tree", "-z", "--full-tree", tree).fields:
            mode, _, rest = line.partition(" ")
            oid, _, name = rest.partition(" ")[2].partition("\t")
            found[name] = Entry(mode, oid)
        return found

    def entry(self, tree: str, name: str) -> Entry | None:
        return self.entries(tree).get(name)

    def changed_tree(self, tree: str | None, changes: Mapping[str, Entry | None]) -> str | None:
        entries = {} if tree is None else self.entries(tree)
        for name, entry in changes.items():
            if entry is None:
                entries.pop(name, None)
            else:
                entries[name] = entry
        return self.write_tree(entries) if entries else None

    def blobs(self, oids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        wanted = list(oids)
        for start in range(0, len(wanted), _BATCH):
            batch = wanted[start : start + _BATCH]
            asked = "".join(f"{oid}\n" for oid in batch).encode()
            out = self._git.run("cat-file", "--batch", stdin=asked).out
            at = 0
            for oid in batch:
                end = out.index(b"\n", at)
                head = out[at:end].split(b" ")
                if len(head) != 3:
                    raise _missing(oid, self._git.folder)
                size = int(head[2])
                yield oid, out[end + 1 : end + 1 + size]
                at = end + 1 + size + 1

    def write_blob(self, data: bytes) -> str:
        return self._git.run(
            "hash-object", "-w", "--stdin", stdin=data, writes=True, durable=self.durable
        ).text.strip()

    def write_tree(self, entries: Mapping[str, Entry]) -> str:
        kinds = {"040000": "tree", "160000": "commit"}
        lines = b"".join(
            f"{e.mode} {kinds.get(e.mode, 'blob')} {e.oid}\t{name}\0".encode("utf-8", "surrogateescape")
            for name, e in entries.items()
        )
        return self._git.run(
            "mktree", "-z", "--missing", stdin=lines, writes=True, durable=self.durable
        ).text.strip()

    def write_commit(
        self, tree: str, parents: list[str], message: str, author: Signature, committer: Signature
    ) -> str:
        named = [word for parent in parents for word in ("-p", parent)]
        done = self._git.run(
            *("-c", "i18n.commitEncoding=UTF-8", "commit-tree"),
            *(["-S"] if self._sign else ["--no-gpg-sign"]),
            *(tree, *named, "-F", "-"),
            stdin=message.encode("utf-8", "replace"),
            check=False,
            seconds=SIGN_SECONDS,
            writes=True,
            durable=self.durable,
            env={**_people(author, committer), **NO_QUESTIONS},
        )
        if done.code != 0:
            raise Refused(
                f"git could not make the {'signed ' if self._sign else ''}commit: {done.reason}",
                "Nothing was committed. Mend it so that `git commit` itself works here, then run this again."
                if not self._sign
                else "Nothing was committed. commit.gpgsign is set: mend it so that `git commit -S` works.",
                said(done),
            )
        return done.text.strip()


def _missing(oid: str, place: str) -> NotFound:
    return NotFound(f"git object {oid} is not in {place}", "Run `git fetch`, then try again.")


def _people(author: Signature, committer: Signature) -> dict[str, str]:
    env = {}
    for role, who in (("AUTHOR", author), ("COMMITTER", committer)):
        sign = "-" if who.offset < 0 else "+"
        zone = f"{sign}{abs(who.offset) // 60:02d}{abs(who.offset) % 60:02d}"
        env[f"GIT_{role}_NAME"] = who.name
        env[f"GIT_{role}_EMAIL"] = who.email
        env[f"GIT_{role}_DATE"] = f"{who.time} {zone}"
    return env


def tree_with(objects: Objects, tree: str | None, changes: Mapping[str, Change]) -> str | None:
    """The tree `tree` with `changes` (path: change) and nothing else changed; None when nothing is left.

    Needs no staging area, so that what a person has staged can't get in. Trees that end up empty are left
    out, as git's own are. Raises Refused where a path leads through something that is no folder.
    """
    below: dict[str, dict[str, Change]] = {}
    new: dict[str, Entry | None] = {}
    for path, change in changes.items():
        name, _, rest = path.partition("/")
        if rest:
            below.setdefault(name, {})[rest] = change
            continue
        old = None if tree is None else objects.entry(tree, name)
        if change.oid is None:
            if old is not None and old.mode != "040000":
                new[name] = None
        elif old is not None and old.mode not in REGULAR:
            raise Refused(f"{path} is no regular file in the commit that this one goes on top of")
        else:
            new[name] = Entry(change.mode, change.oid)
    for name, inner in below.items():
        old = new.get(name) if name in new or tree is None else objects.entry(tree, name)
        if old is not None and old.mode != "040000":
            if all(change.oid is None for change in inner.values()):
                continue
            raise Refused(f"{name} is no folder in the commit that this one goes on top of")
        made = tree_with(objects, None if old is None else old.oid, inner)
        new[name] = None if made is None else Entry("040000", made)
    return objects.changed_tree(tree, new)


def folder_entries(objects: Objects, commit: str, folder: str) -> dict[str, Entry]:
    """The names directly in `folder` of a commit's tree; nothing when there is no such folder."""
    tree = _folder(objects, commit, folder)
    return {} if tree is None else objects.entries(tree)


def file_entry(objects: Objects, commit: str, path: str) -> Entry | None:
    """What `path` is in a commit's tree; None when there is nothing of that name."""
    folder, _, name = path.rpartition("/")
    tree = _folder(objects, commit, folder)
    return None if tree is None else objects.entry(tree, name)


def _folder(objects: Objects, commit: str, folder: str) -> str | None:
    tree = objects.tree_of(commit)
    for part in folder.split("/"):
        if not part or part == ".":
            continue
        entry = objects.entry(tree, part)
        if entry is None or entry.mode != "040000":
            return None
        tree = entry.oid
    return tree

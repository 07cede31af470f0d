"""Conflicts that git left: which files, whose versions they are, and how one is settled so that git goes on.

What is in conflict is read from the staging area alone, never from what git says is going on: `stash pop`,
`merge --squash` and `checkout -m` leave conflicts and no state. Stages 1, 2 and 3 are base, ours and theirs.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from openmemex import faults, paths
from openmemex.errors import Refused
from openmemex.git import light, staging
from openmemex.git.locking import repository_lock
from openmemex.git.objects import REGULAR, Change, GitObjects
from openmemex.git.process import Git, GitFailed, Untrusted
from openmemex.git.repository import Repository

_STASHES: Final = 10  # stashes that are looked at for the other side of a `stash pop`
_BATCH: Final = 500


class Unmerged(NamedTuple):
    """A path in conflict: the blob ids of its base, ours and theirs (None: that side has no such file).

    `mode` is what the settled file gets; `odd` says why a side is no regular file ("" when all are).
    """

    path: str
    base: str | None
    ours: str | None
    theirs: str | None
    mode: str = REGULAR[0]
    odd: str = ""


class Sides(NamedTuple):
    """What is going on (None: nothing that git keeps a note of) and what to call each side, for people."""

    operation: str | None
    base: str
    ours: str
    theirs: str


class Settlement(NamedTuple):
    """How one path leaves its conflict.

    `data`: the content as git stores it, None to remove the file. `keep`: the work tree's file is staged as
    it stands. `looked_at`: the work tree file's bytes when that was decided (None: no file); with any other
    bytes in it now, the path is left alone. `staged` False: only the work tree's file is written.
    """

    path: str
    data: bytes | None
    looked_at: bytes | None
    mode: str = REGULAR[0]
    keep: bool = False
    staged: bool = True


class Settled(NamedTuple):
    """The paths that were settled, and why others were left as they are (path to reason)."""

    paths: tuple[str, ...]
    left: Mapping[str, str]


def unmerged(git: Git, folders: Sequence[str] = ()) -> list[Unmerged]:
    """Every path in conflict below `folders` (from the top; none: everywhere), in order of path.

    Raises Refused when git can't read the staging area.
    """
    stages: dict[str, dict[int, tuple[str, str]]] = {}
    try:
        listed = git.run("ls-files", "--unmerged", "-z", "--full-name").fields
    except Untrusted:
        raise
    except GitFailed as error:
        reason = error.done.reason if error.done else error.message
        raise Refused(
            f"The staging area of {git.folder} can't be read: {reason}", "`git status` says more."
        ) from error
    for line in listed:
        facts, _, path = line.partition("\t")
        mode, oid, stage = facts.split(" ")
        if not folders or any(path.startswith(folder.rstrip("/") + "/") for folder in folders):
            stages.setdefault(path, {})[int(stage)] = (mode, oid)
    return [_record(path, stages[path]) for path in sorted(stages)]


def _record(path: str, found: Mapping[int, tuple[str, str]]) -> Unmerged:
    base, ours, theirs = (found.get(stage, (None, None)) for stage in (1, 2, 3))
    mode = theirs[0] if ours[0] is None or (ours[0] == base[0] and theirs[0]) else ours[0]
    kinds = {"120000": "a symbolic link", "160000": "a repository of its own"}
    odd = next((kinds.get(mode, "no file") for mode, _ in found.values() if mode not in REGULAR), "")
    return Unmerged(path, base[1], ours[1], theirs[1], mode if mode in REGULAR else REGULAR[0], odd)


def contents(git: Git, oids: Iterable[str]) -> dict[str, bytes]:
    """The bytes of blobs, by id: one process, without libgit2, whose import takes longer."""
    return dict(GitObjects(git).blobs(dict.fromkeys(oids)))


# --- the names of the sides ---


def sides(repository: Repository, conflicts: Sequence[Unmerged] = ()) -> Sides:
    """Whose versions base, ours and theirs are.

    In a rebase ours is the branch that is rebased onto, and theirs the person's own commit. `conflicts` tell
    a `stash pop` from the other operations that leave no note.
    """
    git, git_dir = repository.git, repository.site.git_dir
    operation = repository.pending_operation()
    here = _here(repository)
    if operation == "rebase":
        return _rebase_sides(git, git_dir)
    if operation == "am":
        return Sides("am", "what the patch was made from", here, "the patch")
    if operation == "merge":
        return Sides("merge", "what both come from", here, _merged_side(git, git_dir))
    if operation == "cherry-pick" and (picked := light.read_ref(git.site, "CHERRY_PICK_HEAD")):
        told = _commit(git, picked)
        return Sides("cherry-pick", f"the parent of {told}", here, told)
    if operation == "revert" and (reverted := light.read_ref(git.site, "REVERT_HEAD")):
        told = _commit(git, reverted)
        return Sides("revert", told, here, f"the parent of {told}")
    stash = _stash_of(git, conflicts)
    if stash:
        return Sides(operation, "what the stash was made from", here, stash)
    squashed = _squashed(git, git_dir)
    return Sides(operation, "what both come from", here, squashed or "the other side")


def go_on(repository: Repository, known: Sides) -> str:
    """The command of git that ends what is going on once all is settled; "" where there is none to give.

    `known`: what `sides` said.
    """
    if known.operation in ("merge", "rebase", "cherry-pick", "revert", "am"):
        return f"git {known.operation} --continue"
    if known.theirs.startswith("stash@"):
        return f"git stash drop '{known.theirs}'"
    if known.operation is None and _lines(repository.site.git_dir, "SQUASH_MSG"):
        return "git commit"
    return ""


def original_blobs(
    repository: Repository, conflicts: Sequence[Unmerged], ours: Sequence[str], theirs: Sequence[str]
) -> dict[str, str]:
    """The blob ids that paths have in the two commits that are being joined; a path without one is left out.

    Where both sides renamed a file, git merges its text first and puts the result, markers and all, into
    both stages: what the sides really say stands in their commits alone.
    """
    git, git_dir = repository.git, repository.site.git_dir
    other = _other_commit(git, git_dir, repository.pending_operation(), conflicts)
    asked = [("HEAD", path) for path in ours] + [(other, path) for path in theirs if other]
    done = git.run(
        *("cat-file", "--batch-check=%(objectname) %(objecttype)"),
        stdin="".join(f"{rev}:{path}\n" for rev, path in asked).encode("utf-8", "surrogateescape"),
    )
    answers = zip(asked, done.text.splitlines(), strict=True)
    return {path: line.split(" ")[0] for (_, path), line in answers if line.endswith(" blob")}


def _other_commit(git: Git, git_dir: str, operation: str | None, conflicts: Sequence[Unmerged]) -> str:
    """The commit that theirs comes from; "" when nobody can know."""
    heads = {"merge": "MERGE_HEAD", "rebase": "REBASE_HEAD", "cherry-pick": "CHERRY_PICK_HEAD"}
    if operation in heads:
        return heads[operation]
    if operation == "revert":
        return "REVERT_HEAD^"
    stash = _stash_of(git, conflicts)
    if stash:
        return stash
    lines = (re.match(r"commit ([0-9a-f]{40,64})\b", line) for line in _lines(git_dir, "SQUASH_MSG"))
    return next((found[1] for found in lines if found), "")


def _here(repository: Repository) -> str:
    ref, commit = light.head(repository.site)
    if ref is not None:
        return ref.removeprefix("refs/heads/")
    return f"HEAD ({commit[:10]})" if commit else "HEAD"


def _rebase_sides(git: Git, git_dir: str) -> Sides:
    folder = "rebase-merge" if os.path.isdir(os.path.join(git_dir, "rebase-merge")) else "rebase-apply"
    branch = _first_line(git_dir, f"{folder}/head-name").removeprefix("refs/heads/")
    onto = _first_line(git_dir, f"{folder}/onto")
    upstream = _rebased_onto(git, onto) or _named(git, onto, but=branch, preferred=_upstream(git, branch))
    told = upstream or (_commit(git, onto) if onto else "")
    ours = f"{told} (what you rebase onto)" if told else "what you rebase onto"
    merging = _first_line(git_dir, "MERGE_HEAD")
    if merging:  # a merge commit is made again (--rebase-merges), mostly of the person's own commits, moved
        head = light.head(git.site)[1] or onto
        ours = ours if head == onto else f"your {_commit(git, head)}, rebased"
        return Sides("rebase", "what both come from", ours, _named(git, merging) or _commit(git, merging))
    names = (f"{folder}/stopped-sha", f"{folder}/original-commit")
    mine = light.read_ref(git.site, "REBASE_HEAD") or next(
        filter(None, (_first_line(git_dir, name) for name in names)), ""
    )
    told = _commit(git, mine) if mine else "your commit"
    where = f" of {branch}" if branch and branch != "detached HEAD" else ""
    return Sides("rebase", f"the parent of {told}", ours, f"your {told}{where}" if mine else told + where)


def _rebased_onto(git: Git, onto: str) -> str:
    """What the rebase was told to go on top of, from git's own note of its start; "" for a mere id."""
    done = git.run(
        "log", "-g", "-n", "200", "--no-show-signature", "--format=%H %gs", "HEAD", "--", check=False
    )
    for line in done.text.splitlines():
        commit, _, told = line.partition(" ")
        found = re.match(r"[^:]*\(start\): checkout (.+)\Z", told)
        if found:
            return "" if commit != onto or re.fullmatch(r"[0-9a-f]{7,64}", found[1]) else found[1]
    return ""


def _upstream(git: Git, branch: str) -> str:
    done = git.run("for-each-ref", "--format=%(upstream:short)", f"refs/heads/{branch}", check=False)
    return done.text.strip()


def _merged_side(git: Git, git_dir: str) -> str:
    heads = _lines(git_dir, "MERGE_HEAD")
    said = re.match(
        r"Merge (?:remote-tracking )?(branch|tag|commit) '([^']+)'(.*)", _first_line(git_dir, "MERGE_MSG")
    )
    if len(heads) > 1:
        return " and ".join(_named(git, head) or head[:10] for head in heads)
    if said and said[1] == "commit":
        # As it was typed: an id, or a way to go from a HEAD that is another one by now.
        return said[2] if heads[0].startswith(said[2]) else _commit(git, heads[0])
    if said and " of " not in said[3]:
        return said[2]
    # A branch of a server has the same name here by chance alone; a message of the person's own names none.
    return _named(git, heads[0], preferred=said[2] if said else "") or _commit(git, heads[0])


def _squashed(git: Git, git_dir: str) -> str:
    """The tip of what `merge --squash` took in, from the message that git keeps until the commit."""
    for line in _lines(git_dir, "SQUASH_MSG"):
        found = re.match(r"commit ([0-9a-f]{40,64})\b", line)
        if found:
            return _named(git, found[1]) or _commit(git, found[1])
    return ""


def _stash_of(git: Git, conflicts: Sequence[Unmerged]) -> str:
    """`stash@{N}` when the other side is what that stash holds."""
    asked = [one for one in conflicts if one.theirs is not None][:1]
    if not asked or light.read_ref(git.site, "refs/stash") is None:
        return ""
    lines = "".join(f"stash@{{{number}}}:{asked[0].path}\n" for number in range(_STASHES))
    done = git.run(
        "cat-file", "--batch-check=%(objectname)", stdin=lines.encode("utf-8", "surrogateescape"), check=False
    )
    for number, line in enumerate(done.text.splitlines()):
        if line == asked[0].theirs:
            return f"stash@{{{number}}}"
    return ""


def _named(git: Git, commit: str, *, but: str = "", preferred: str = "") -> str:
    """The branch at `commit`: `preferred` if it is one, else the local one, else a remote's.

    "" for none, and where several local ones are there: nobody knows which is meant.
    """
    if not commit:
        return ""
    done = git.run(
        *("for-each-ref", f"--points-at={commit}", "--format=%(refname)", "refs/heads", "refs/remotes"),
        check=False,
    )
    refs = [ref for ref in done.text.splitlines() if not ref.endswith("/HEAD") and ref != f"refs/heads/{but}"]
    names = [re.sub(r"^refs/(heads|remotes)/", "", ref) for ref in refs]
    if preferred in names:
        return preferred
    several = sum(ref.startswith("refs/heads/") for ref in refs) > 1
    return "" if several or not names else names[0]


def _commit(git: Git, commit: str) -> str:
    """`commit 1a2b3c4d5e "Its subject"`."""
    done = git.run("log", "-1", "--no-show-signature", "--format=%s", commit, "--", check=False)
    subject = done.out.decode("utf-8", "replace").strip()
    subject = subject if len(subject) <= 60 else subject[:59] + "…"
    return f'commit {commit[:10]} "{subject}"' if subject else f"commit {commit[:10]}"


def _lines(git_dir: str, name: str) -> list[str]:
    try:
        with open(os.path.join(git_dir, name), encoding="utf-8", errors="replace") as file:
            return file.read(1 << 16).splitlines()
    except OSError:
        return []


def _first_line(git_dir: str, name: str) -> str:
    return next(iter(_lines(git_dir, name)), "").strip()


# --- settling ---


def settle(
    repository: Repository, settlements: Sequence[Settlement], expected: Mapping[str, Unmerged]
) -> Settled:
    """Write each file into the work tree and stage it, so that `git merge --continue` and the rest go on.

    `expected`: the stages that the decision was made from; a path that has others by now is left alone, and
    so is one whose file is not the one that was looked at. The order is blobs, files, staging area: a stop
    in between leaves the conflict, with the settled file in the work tree, and the next run ends it. git
    keeps the three versions aside (`git restore --merge FILE` brings the conflict back). Makes no commit.
    Raises Refused when the staging area stays locked or can't be written.
    """
    git = repository.git
    with repository_lock(repository):
        staging.wait_for_lock(git)
        left: dict[str, str] = {}
        now = {one.path: one for one in unmerged(git)}
        chosen = []
        for one in settlements:
            if one.staged and now.get(one.path) != expected.get(one.path):
                left[one.path] = "its versions in the staging area changed in the meantime"
            else:
                chosen.append(one)
        oids = _blobs(git, [one for one in chosen if one.data is not None and not one.keep])
        kept = [one for one in chosen if one.keep]
        oids |= dict(zip((one.path for one in kept), _as_added(git, kept), strict=True))
        faults.reached("resolve.blobs-written")
        files = _as_checked_out(git, [one for one in chosen if one.path in oids and not one.keep], oids)
        changes = {}
        for one in _write_files(repository.site.root, chosen, files, left):
            if one.staged:
                changes[one.path] = Change(one.mode, oids.get(one.path))
        faults.reached("resolve.files-written")
        if changes:
            staging.stage(git, changes, _width(expected.values(), oids.values()))
            faults.reached("resolve.staged")
            staging.refresh(git, [path for path, change in changes.items() if change.oid])
        return Settled(tuple(one.path for one in chosen if one.path not in left), left)


def _width(records: Iterable[Unmerged], oids: Iterable[str]) -> int:
    ids = [oid for one in records for oid in one[1:4] if oid]
    return len(next(iter([*ids, *oids]), "")) or 40


def _blobs(git: Git, settlements: Sequence[Settlement]) -> dict[str, str]:
    """The content of each as a blob, as it is: one process for all of them."""
    found: dict[str, str] = {}
    for start in range(0, len(settlements), _BATCH):
        batch = settlements[start : start + _BATCH]
        with tempfile.TemporaryDirectory(prefix="open-memex-") as folder:
            names = [os.path.join(folder, str(number)) for number in range(len(batch))]
            for name, one in zip(names, batch, strict=True):
                with open(name, "wb") as file:
                    file.write(one.data or b"")
            done = git.run(
                *("hash-object", "-w", "--no-filters", "--stdin-paths"),
                stdin="".join(f"{name}\n" for name in names).encode("utf-8", "surrogateescape"),
                writes=True,
            )
        found |= dict(zip((one.path for one in batch), done.text.split(), strict=True))
    return found


def _as_added(git: Git, settlements: Sequence[Settlement]) -> list[str]:
    """The blob that `git add` makes of each file as it stands in the work tree."""
    if not settlements:
        return []
    names = "".join(f"{one.path}\n" for one in settlements).encode("utf-8", "surrogateescape")
    done = git.run("hash-object", "-w", "--stdin-paths", stdin=names, writes=True, check=False)
    if done.code != 0:
        raise Refused(
            f"git could not take in a file as its attributes ask: {done.reason}",
            "Nothing was changed. Stage it with `git add` to see more.",
        )
    return done.text.split()


def _as_checked_out(git: Git, settlements: Sequence[Settlement], oids: Mapping[str, str]) -> dict[str, bytes]:
    """What a checkout writes for each blob: line ends and filters as the attributes ask, in one process."""
    if not settlements:
        return {}
    # git tells the size before the conversion, so the answers are cut at a line that no file can hold.
    mark = f"open-memex-{os.urandom(16).hex()}"
    asked = "".join(f"{oids[one.path]} {one.path}\n" for one in settlements)
    out = git.run(
        *("cat-file", "--filters", f"--batch={mark}"), stdin=asked.encode("utf-8", "surrogateescape")
    ).out
    parts = out.split(mark.encode() + b"\n")[1:]
    return {one.path: part[:-1] for one, part in zip(settlements, parts, strict=True)}


def _write_files(
    root: str, settlements: Sequence[Settlement], files: Mapping[str, bytes], left: dict[str, str]
) -> Iterator[Settlement]:
    """Put each file into the work tree; gives those that are as they should be, notes the others in `left`.

    All new files are on disk before the first is renamed, and each folder is put on disk once.
    """
    ready: list[tuple[Settlement, str]] = []
    written: list[str] = []
    try:
        for one in settlements:
            path = os.path.join(root, one.path)
            left_because = _in_the_way(root, one)
            if left_because:
                left[one.path] = left_because
                continue
            data = files.get(one.path)
            temporary = ""
            if data is not None and data != one.looked_at:
                paths.make_folder(os.path.dirname(path), 0o777)
                temporary = paths.write_beside(path, data, 0o777 if one.mode == REGULAR[1] else 0o666)
                written.append(temporary)
            ready.append((one, temporary))
        paths.sync_files(written)
        faults.reached("resolve.files-prepared")
        folders = set()
        for one, temporary in ready:
            path = os.path.join(root, one.path)
            left_because = _in_the_way(root, one)
            if left_because:
                left[one.path] = left_because
                continue
            try:
                if temporary:
                    os.replace(temporary, path)
                    folders.add(os.path.dirname(path))
                elif one.data is None and not one.keep and one.looked_at is not None:
                    os.unlink(path)
                    folders.add(os.path.dirname(path))
            except OSError as error:
                raise paths.failure("write", path, error) from None
            faults.reached("resolve.file-replaced")
            yield one
        for folder in folders:
            paths.sync_folder(folder)
    finally:
        for temporary in written:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _in_the_way(root: str, one: Settlement) -> str:
    """Why the file must not be touched: a link or folder in its place, or somebody changed it; else ""."""
    folder = root
    for part in one.path.split("/")[:-1]:
        folder = os.path.join(folder, part)
        if os.path.islink(folder):
            return f"{folder} is a symbolic link"
        if os.path.lexists(folder) and not os.path.isdir(folder):
            return f"{folder} is no folder"
    path = os.path.join(root, one.path)
    try:
        found, odd = work_tree_file(path)
    except OSError as error:
        return f"it can't be read: {error.strerror}"
    if odd:
        return odd
    return "" if found == one.looked_at else "its file changed in the meantime"


def work_tree_file(path: str) -> tuple[bytes | None, str]:
    """The bytes of a file in the work tree (None: there is none), and why it is no regular file ("")."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None, ""
    if not stat.S_ISREG(mode):
        kind = "a symbolic link" if stat.S_ISLNK(mode) else "a folder" if stat.S_ISDIR(mode) else "no file"
        return None, f"{kind} is in its place"
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    handle = os.open(path, flags | getattr(os, "O_BINARY", 0))
    with open(handle, "rb") as file:
        return file.read(), ""

"""A commit that holds the named files and nothing else, whatever else the person has staged or changed.

The order is file (the caller's), objects, staging area, ref: a stop at any moment leaves the memory
untracked, staged or committed, and never a commit that the person's next one would take back. Run again it
finishes.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from filelock import FileLock, Timeout

from openmemex import faults
from openmemex.errors import NotFound, PartlyDone, Refused, UsageError
from openmemex.git import light, staging
from openmemex.git.objects import REGULAR, Change, GitObjects, Objects, Signature, file_entry, tree_with
from openmemex.git.process import HOOK_SECONDS, Done
from openmemex.git.repository import Repository

_ATTEMPTS: Final = 6
_LOCK_SECONDS: Final = 10
_REBASING: Final = ("rebase-merge/head-name", "rebase-apply/head-name")


class CommitResult(NamedTuple):
    """What a commit came to.

    `commit`: its id ("" in a dry run). `branch`: short name. `engine`: who made the objects: libgit2, git, or
    "git commit" where hooks run. `new_branch`: it was made now. `already`: the files were committed before,
    by `commit`.
    """

    commit: str
    branch: str
    files: tuple[str, ...]
    engine: str
    new_branch: bool
    already: bool
    blobs: Mapping[str, str | None]


class _Target(NamedTuple):
    """Where a commit goes. `tip`: the branch's commit, None when it has none; `base`: what to build on."""

    ref: str
    tip: str | None
    base: str | None
    here: bool

    @property
    def branch(self) -> str:
        return self.ref.removeprefix("refs/heads/")


class _Checked(NamedTuple):
    target: _Target
    author: Signature
    committer: Signature
    before: dict[str, list[staging.StagedEntry]]


def check_commit(repository: Repository, paths: Sequence[str], branch: str | None, onto: str | None) -> None:
    """Every condition that `commit` has, in the same words; changes nothing. The files need not exist yet."""
    _check(repository, list(paths), branch, onto)


def commit(
    repository: Repository,
    files: Mapping[str, bytes | None],
    *,
    message: str,
    branch: str | None = None,
    onto: str | None = None,
    dry_run: bool = False,
) -> CommitResult:
    """Commit exactly `files` (path from the top: content, None deletes) and say what came of it.

    Without `branch`: on the current branch; the work tree must hold the files already, and git's conversions
    of line ends and filters apply. With it: on that branch, made from `onto` (default HEAD; a first commit
    where HEAD has none) if it is new; neither work tree nor staging area is touched. Where every file is
    committed already, that commit is the result. Raises Refused with nothing changed; the message says why.
    """
    text = _message(message)
    with repository_lock(repository):
        checked = _check(repository, list(files), branch, onto)
        target = checked.target
        if dry_run:
            return _result(repository, files, target, commit="", already=False)
        # What goes to another branch is nowhere else once the draft is gone; here the work tree has it too.
        repository.objects.durable = not target.here
        blobs = _blobs(repository, files, target)
        if target.here and repository.commit_hooks():
            return _commit_through_git(repository, blobs, text, checked)
        return _commit_objects(repository, blobs, text, checked)


# --- conditions ---


def _check(repository: Repository, paths: list[str], branch: str | None, onto: str | None) -> _Checked:
    git, site = repository.git, repository.site
    if not paths:
        raise UsageError("No file was named to commit")
    for path in paths:
        _check_name(path)
    if site.bare:
        raise Refused(
            f"{site.git_dir} is a bare repository: it has no work tree to commit from",
            "Run this in a clone, or in a linked work tree (`git worktree add`).",
        )
    target = _target(repository, branch, onto)
    for path in paths:
        _check_place(site.root, path, target.here)
    before = staging.staged(git, paths) if target.here else {}
    _check_ignored(repository, paths)
    if target.here:
        for path, entries in before.items():
            if any(entry.stage for entry in entries):
                raise Refused(
                    f"{path} is in conflict: it has versions to choose from in the staging area",
                    "Settle it first, and `git add` it.",
                )
        _check_sparse(repository, paths, before)
        staging.wait_for_lock(git)
    elif repository.commit_hooks():
        hooks = ", ".join(repository.commit_hooks())
        raise Refused(
            f"This repository has commit hooks ({hooks}), and git runs them on the checked out branch only",
            f"Run `git switch -c {target.branch}` (or `git switch`), then this again without a branch.",
        )
    author, committer = repository.signature("AUTHOR"), repository.signature("COMMITTER")
    return _Checked(target, author, committer, before)


def _check_name(path: str) -> None:
    parts = path.split("/")
    if os.path.isabs(path) or "\0" in path or ("\\" in path and os.sep == "\\"):
        raise UsageError(f"{path!r} is no path inside the repository")
    if any(part in ("", ".", "..") or part.lower().rstrip(". ") == ".git" for part in parts):
        raise UsageError(f"{path!r} is no path inside the repository")


def _check_place(root: str, path: str, here: bool) -> None:
    """Refuse links, devices and repositories on the way to `path`, before a fifo is opened and blocks."""
    folder = root
    parts = path.split("/")
    for number, part in enumerate(parts, 1):
        full = os.path.join(folder, part)
        try:
            mode = os.lstat(full).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return
        if number == len(parts):
            if here and not stat.S_ISREG(mode):
                what = "a symbolic link" if stat.S_ISLNK(mode) else "no regular file"
                raise Refused(f"{full} is {what}", "Only regular files are committed; replace it by one.")
            return
        if stat.S_ISLNK(mode):
            raise Refused(
                f"{full} is a symbolic link: what lies beyond it is not in this repository",
                "Make it a folder, or choose another memory folder.",
            )
        if not stat.S_ISDIR(mode):
            raise Refused(f"{full} is no folder", "Move it away, or choose another memory folder.")
        if os.path.lexists(os.path.join(full, ".git")):
            raise Refused(
                f"{full} is a git repository of its own, inside {root}",
                "Commit there, or choose another memory folder.",
            )
        folder = full


def _check_ignored(repository: Repository, paths: list[str]) -> None:
    asked = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
    ignored = repository.git.run("check-ignore", "-z", "--stdin", stdin=asked, allow=(0, 1)).fields
    if ignored:
        rule = repository.git.run("check-ignore", "-v", "--", ignored[0], allow=(0, 1)).text.partition("\t")[
            0
        ]
        raise Refused(
            f"{ignored[0]} is ignored by git ({rule})",
            f"Take that rule out, or add `!/{ignored[0].split('/')[0]}/` after it.",
        )


def _check_sparse(
    repository: Repository, paths: list[str], before: Mapping[str, list[staging.StagedEntry]]
) -> None:
    if not repository.config.flag("core.sparsecheckout"):
        return
    for path in paths:
        left_out = any(entry.tag == "S" for entry in before.get(path, []))
        if left_out or not _in_sparse_checkout(repository, path):
            folder = path.rpartition("/")[0] or path
            raise Refused(
                f"{path} is outside this sparse checkout", f"Add its folder: git sparse-checkout add {folder}"
            )


def _in_sparse_checkout(repository: Repository, path: str) -> bool:
    """Whether the sparse checkout's patterns take `path` in (git-sparse-checkout(1), "INTERNALS")."""
    patterns = os.path.join(repository.site.git_dir, "info", "sparse-checkout")
    try:
        with open(patterns, encoding="utf-8", errors="surrogateescape") as file:
            lines = [line for line in file.read().splitlines() if line and not line.startswith("#")]
    except OSError:
        return True
    folder = path.rpartition("/")[0]
    if repository.config.flag("core.sparsecheckoutcone", True) and all(re.match(r"!?/", x) for x in lines):
        names = [re.sub(r"\\(.)", r"\1", line) for line in lines]
        parents = {name[2:-3] for name in names if name.startswith("!/") and name.endswith("/*/")}
        whole = {n[1:-1] for n in names if n.startswith("/") and n.endswith("/")} - parents
        if "/*" in names and "!/*/" not in names:
            return True
        above = [folder[: m.start()] for m in re.finditer("/", folder)]
        return folder == "" or folder in parents or any(part in whole for part in [folder, *above])
    if path in staging.staged(repository.git, [path]) or not os.path.lexists(
        os.path.join(repository.site.root, path)
    ):
        return True
    listed = repository.git.run(
        *("--literal-pathspecs", "ls-files", "--others", "--ignored", f"--exclude-from={patterns}", "-z"),
        *("--", path),
    )
    return path in listed.fields


def _target(repository: Repository, branch: str | None, onto: str | None) -> _Target:
    ref, commit = light.head(repository.site)
    pending = repository.pending_operation()
    if branch is None:
        if onto is not None:
            raise UsageError("`onto` says where a new branch begins", "Name that branch with --branch NAME.")
        if pending is not None:
            raise Refused(
                f"A {pending} is not finished in {repository.git.folder}",
                "Finish it or give it up (`git status` says how), then run this again. Nothing is lost.",
            )
        if ref is None:
            raise Refused(
                f"HEAD is detached in {repository.git.folder}: a commit there would be on no branch",
                "Name a branch with --branch NAME, or `git switch` to one.",
            )
        return _Target(ref, commit, commit, True)
    name = f"refs/heads/{branch}"
    _check_branch_name(repository, branch)
    where = _checked_out_at(repository, name)
    if where is not None:
        here = os.path.realpath(where) == repository.site.root
        raise Refused(
            f"Branch {branch} is checked out {'here' if here else f'in {where}'}: moving it would leave that "
            "work tree behind",
            "Run this without a branch." if here else "Run this there, or choose another branch name.",
        )
    tip = light.read_ref(repository.site, name)
    base = repository.resolve(onto) if onto is not None else None
    if tip is not None:
        if base is not None and not _is_ancestor(repository, base, tip):
            raise Refused(
                f"Branch {branch} exists already and does not contain {onto}",
                "Leave --onto away to commit on top of it, or choose another branch name.",
            )
        return _Target(name, tip, tip, False)
    _check_branch_room(repository, branch)
    if base is None:
        if pending is not None:
            raise Refused(
                f"A {pending} is not finished in {repository.git.folder}: HEAD is no place to begin a branch",
                "Say where with --onto REV, or finish it first.",
            )
        base = commit
    return _Target(name, None, base, False)


def _check_branch_name(repository: Repository, branch: str) -> None:
    done = repository.git.run("check-ref-format", "--branch", branch, check=False)
    if done.code != 0 or done.text.rstrip("\n") != branch or branch in ("@", "HEAD"):
        raise UsageError(
            f"{branch!r} is no name for a branch", "`git check-ref-format --help` has the rules."
        )


def _check_branch_room(repository: Repository, branch: str) -> None:
    """A branch `a` and a branch `a/b` can't both be."""
    parts = branch.split("/")
    above = ["/".join(parts[:n]) for n in range(1, len(parts))]
    taken = [name for name in above if light.read_ref(repository.site, f"refs/heads/{name}") is not None]
    below = repository.git.run(
        "for-each-ref", "--count=1", "--format=%(refname:short)", f"refs/heads/{branch}/"
    )
    taken += below.text.split()
    if taken:
        raise Refused(
            f"There can be no branch {branch} beside the branch {taken[0]}", "Choose another branch name."
        )


def _checked_out_at(repository: Repository, ref: str) -> str | None:
    """The work tree that has `ref` checked out, or is in the middle of rebasing it; None when none has."""
    done = repository.git.run("worktree", "list", "--porcelain")
    worktree = ""
    for line in done.text.splitlines():
        key, _, value = line.partition(" ")
        if key == "worktree":
            worktree = value
        elif key == "branch" and value == ref:
            return worktree
    common = repository.site.common_dir
    folders = [common]
    with contextlib.suppress(OSError):
        folders += [entry.path for entry in os.scandir(os.path.join(common, "worktrees"))]
    for folder in folders:
        for name in _REBASING:
            with contextlib.suppress(OSError), open(os.path.join(folder, name), encoding="utf-8") as file:
                if file.read().strip() == ref:
                    return f"{folder} (being rebased)"
    return None


def _is_ancestor(repository: Repository, old: str, new: str) -> bool:
    return repository.git.run("merge-base", "--is-ancestor", old, new, allow=(0, 1)).code == 0


# --- objects ---


def _blobs(repository: Repository, files: Mapping[str, bytes | None], target: _Target) -> dict[str, Change]:
    """Each file's blob as `git add` would store it, and its mode."""
    git = repository.git
    present = {path: data for path, data in files.items() if data is not None}
    if target.here:
        for path, data in files.items():
            _compare_with_disk(repository.site.root, path, data)
    converted = _converted_by_git(repository, present)
    objects = repository.objects
    oids = {path: objects.write_blob(data) for path, data in present.items() if path not in converted}
    if converted and target.here:
        oids.update(_add_to_a_copy(repository, sorted(converted)))
        for path in converted:
            _compare_with_disk(repository.site.root, path, present[path])
    else:
        for path in converted:
            done = git.run(
                *("hash-object", "-w", "--stdin", f"--path={path}"),
                stdin=present[path],
                check=False,
                writes=True,
                durable=True,
            )
            oids[path] = _or_refuse(done, path).text.strip()
    changes = {}
    for path, data in files.items():
        mode = _mode(repository, path, target) if data is not None else "000000"
        changes[path] = Change(mode, oids.get(path))
    return changes


def _compare_with_disk(root: str, path: str, data: bytes | None) -> None:
    found = None
    with contextlib.suppress(FileNotFoundError), open(os.path.join(root, path), "rb") as file:
        found = file.read()
    if found != data:
        raise Refused(
            f"{path} changed while it was about to be committed", "Look at it, then run this again."
        )


def _converted_by_git(repository: Repository, files: Mapping[str, bytes]) -> set[str]:
    """The files whose bytes git may store differently: filters, LFS, encodings, `$Id$`, line ends."""
    if not files:
        return set()
    asked = "".join(f"{path}\0" for path in files).encode("utf-8", "surrogateescape")
    attributes = ("filter", "working-tree-encoding", "ident")
    answer = repository.git.run("check-attr", "-z", "--stdin", *attributes, stdin=asked).fields
    found = {
        path
        for path, value in zip(answer[::3], answer[2::3], strict=True)
        if value not in ("unspecified", "unset")
    }
    careful = repository.config.flag("core.safecrlf") and repository.config.get("core.safecrlf") != "warn"
    return found | {path for path, data in files.items() if careful or b"\r" in data}


def _add_to_a_copy(repository: Repository, paths: list[str]) -> dict[str, str]:
    """Let git add the files to a copy of the staging area, which shows what it makes of each."""
    with tempfile.TemporaryDirectory(prefix="open-memex-") as folder:
        index = os.path.join(folder, "index")
        with contextlib.suppress(FileNotFoundError):
            shutil.copy2(os.path.join(repository.site.git_dir, "index"), index)
        names = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
        env = {"GIT_INDEX_FILE": index}
        done = repository.git.run(
            *("update-index", "--add", "-z", "--stdin"), stdin=names, check=False, writes=True, env=env
        )
        _or_refuse(done, paths[0])
        listed = repository.git.run("--literal-pathspecs", "ls-files", "-s", "-z", "--", *paths, env=env)
    return {line.partition("\t")[2]: line.split(" ")[1] for line in listed.fields}


def _or_refuse(done: Done, path: str) -> Done:
    if done.code != 0:
        raise Refused(
            f"git could not convert {path} as its attributes ask: {done.reason}",
            f"Nothing was committed. `git check-attr -a {path}` shows the attributes.",
        )
    return done


def _mode(repository: Repository, path: str, target: _Target) -> str:
    if target.here and repository.config.flag("core.filemode", True):
        return REGULAR[bool(os.lstat(os.path.join(repository.site.root, path)).st_mode & 0o100)]
    old = None if target.base is None else file_entry(repository.objects, target.base, path)
    return old.mode if old is not None and old.mode in REGULAR else REGULAR[0]


# --- the commit ---


def _commit_objects(
    repository: Repository, blobs: Mapping[str, Change], message: str, checked: _Checked
) -> CommitResult:
    target, objects = checked.target, repository.objects
    writer: Objects = GitObjects(repository.git, sign=True) if repository.signing else objects
    writer.durable = objects.durable
    tip, base, staged_now = target.tip, target.base, False
    deadline = time.monotonic() + staging.LOCK_SECONDS
    try:
        for attempt in range(_ATTEMPTS):
            old_tree = None if base is None else objects.tree_of(base)
            tree = tree_with(objects, old_tree, blobs)
            if tree == old_tree or (tree is None and old_tree is None):
                return _already(repository, blobs, target, base, checked)
            parents = [] if base is None else [base]
            made = writer.write_commit(
                tree or objects.write_tree({}), parents, message, checked.author, checked.committer
            )
            faults.reached("submit.objects-written")
            if target.here and not staged_now:
                staging.stage(repository.git, blobs, _width(target))
                staged_now = True
            faults.reached("submit.staged")
            if _move(repository, target, made, tip, message=message, deadline=deadline):
                faults.reached("submit.ref-moved")
                if target.here:
                    staging.refresh(repository.git, _still_there(blobs))
                return _result(repository, blobs, target, commit=made, already=False)
            time.sleep(0.01 * attempt)
            tip = base = light.read_ref(repository.site, target.ref)
            if tip is None:
                base = target.base
        raise Refused(
            f"Branch {target.branch} kept moving while the commit was made",
            "Run this again when it is quiet.",
        )
    except BaseException:
        if staged_now:
            _unstage(repository, checked, blobs)
        raise


def _move(
    repository: Repository, target: _Target, new: str, old: str | None, *, message: str, deadline: float
) -> bool:
    """Move the branch from `old` to `new`; False when somebody else moved it first. Waits for its lock."""
    subject = message.split("\n", 1)[0]
    words = (
        f"commit: {subject}" if old is not None or target.base is not None else f"commit (initial): {subject}"
    )
    lock = os.path.join(repository.site.common_dir, target.ref + ".lock")
    while True:
        done = repository.git.run(
            *("update-ref", "-m", words, target.ref, new, old or "0" * len(new)),
            check=False,
            writes=True,
        )
        if done.code == 0:
            return True
        if light.read_ref(repository.site, target.ref) != old:
            return False
        if not os.path.lexists(lock):
            raise Refused(
                f"git could not move branch {target.branch}: {done.reason}", "Nothing was committed."
            )
        if time.monotonic() > deadline:
            raise staging.locked(lock)
        time.sleep(0.1)


def _already(
    repository: Repository,
    blobs: Mapping[str, Change],
    target: _Target,
    base: str | None,
    checked: _Checked,
) -> CommitResult:
    """The result when the branch holds every file as it is: the last commit that touched one of them."""
    if base is None:
        raise NotFound("There is nothing to commit: the files to delete were never committed")
    if target.here:
        now = staging.staged(repository.git, list(blobs))
        if any([e.oid for e in now.get(path, [])] != ([c.oid] if c.oid else []) for path, c in blobs.items()):
            staging.stage(repository.git, blobs, _width(target))
        staging.refresh(repository.git, _still_there(blobs))
    done = repository.git.run(
        *("--literal-pathspecs", "log", "-1", "--format=%H", "--no-show-signature", base, "--"), *blobs
    )
    return _result(repository, blobs, target, commit=done.text.strip() or base, already=True)


def _unstage(repository: Repository, checked: _Checked, blobs: Mapping[str, Change]) -> None:
    try:
        staging.put_back(repository.git, checked.before, blobs, _width(checked.target))
    except Refused as error:
        raise PartlyDone(
            f"Nothing was committed, but the files stay staged: {error.message}",
            f"`git restore --staged -- {' '.join(blobs)}` takes them out again.",
        ) from error


def _width(target: _Target) -> int:
    """How many digits an object id has here (a first commit deletes nothing, so any will do then)."""
    return len(target.base or "") or 40


def _still_there(blobs: Mapping[str, Change]) -> list[str]:
    return [path for path, change in blobs.items() if change.oid is not None]


def _commit_through_git(
    repository: Repository, blobs: Mapping[str, Change], message: str, checked: _Checked
) -> CommitResult:
    """`git commit --only`: where hooks have a say, git alone knows how to ask them."""
    target, objects = checked.target, repository.objects
    old_tree = None if target.base is None else objects.tree_of(target.base)
    tree = tree_with(objects, old_tree, blobs)
    if tree == old_tree:
        return _already(repository, blobs, target, target.base, checked)
    faults.reached("submit.objects-written")
    staging.stage(repository.git, blobs, _width(target))
    try:
        faults.reached("submit.staged")
        # Each path is marked as literal by itself: --literal-pathspecs would reach the hooks' own git too.
        names = "".join(f":(top,literal){path}\0" for path in blobs).encode("utf-8", "surrogateescape")
        done = repository.git.run(
            *("commit", "--quiet", "--only", "--cleanup=whitespace", "-m", message),
            *("--pathspec-from-file=-", "--pathspec-file-nul"),
            stdin=names,
            check=False,
            seconds=HOOK_SECONDS,
            writes=True,
            own_language=True,
        )
        commit = light.read_ref(repository.site, target.ref)
        if done.code != 0:
            if commit is not None and commit != target.tip:
                now = objects.tree_of(commit)
                if tree_with(objects, now, blobs) == now:  # the person's own commit took the files along
                    return _already(repository, blobs, target, commit, checked)
            hooks = ", ".join(repository.commit_hooks())
            said = (done.err + done.out.decode("utf-8", "replace")).strip()[-2000:]
            raise Refused(
                f"git refused the commit (hooks here: {hooks}): {said or f'exit code {done.code}'}",
                "Nothing was committed. Do what the hook asks for, then run this again.",
            )
    except BaseException:
        # Interrupted in a hook that runs after the commit, the files are committed: nothing is to be undone.
        if light.read_ref(repository.site, target.ref) == target.tip:
            _unstage(repository, checked, blobs)
        raise
    faults.reached("submit.ref-moved")
    assert commit is not None
    # A hook may have added files of its own to the commit: the receipt names them too.
    listed = repository.git.run("show", "--format=", "--name-only", "-z", "--no-renames", commit).fields
    result = _result(repository, blobs, target, commit=commit, already=False)
    return result._replace(engine="git commit", files=tuple(dict.fromkeys((*blobs, *listed))))


def _result(
    repository: Repository, files: Mapping[str, object], target: _Target, *, commit: str, already: bool
) -> CommitResult:
    new = target.tip is None and not target.here and not already
    blobs = {path: change.oid for path, change in files.items() if isinstance(change, Change)}
    return CommitResult(commit, target.branch, tuple(files), repository.objects.engine, new, already, blobs)


def _message(text: str) -> str:
    """The message as git cleans it: LF, no blanks at line ends, one LF last; no NUL (git would cut there)."""
    lines = [line.rstrip() for line in re.sub(r"\r\n?", "\n", text.replace("\0", "")).split("\n")]
    cleaned = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
    if not cleaned:
        raise UsageError("The commit message is empty", "Say what was remembered, with -m TEXT.")
    return cleaned + "\n"


@contextlib.contextmanager
def repository_lock(repository: Repository) -> Iterator[None]:
    """One commit at a time in a repository, whichever process makes it; the lock dies with the process."""
    path = os.path.join(repository.site.common_dir, "open-memex.lock")
    lock = FileLock(path, timeout=_LOCK_SECONDS, mode=0o666 if repository.shared else 0o644)
    try:
        lock.acquire()
    except Timeout:
        raise Refused(
            f"Another OpenMemex is committing in {repository.git.folder} ({path})", "Run this again shortly."
        ) from None
    except OSError as error:
        raise Refused(
            f"{path} can't be written: {error.strerror}", "Mend the permissions of the git folder."
        ) from None
    if repository.shared:
        with contextlib.suppress(OSError):
            os.chmod(path, 0o666)  # the umask would keep the other accounts out
    try:
        yield
    finally:
        lock.release()

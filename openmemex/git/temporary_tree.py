"""A work tree for one commit on a branch that is not checked out, where hooks have a say in it.

`git commit` runs hooks in a work tree. So that they see what they would see after `git switch`, the branch is
checked out in a linked work tree of its own, in the system's folder for temporary files, and removed with
every trace afterwards. A note in the git folder says what is being made before it is made: what a kill left
behind is recognised by it and removed by the next run that holds the repository's lock.

The checkout is whole, because a hook may read any file of it; a sparse checkout stays as sparse as the
person's own. Files that LFS keeps elsewhere are not fetched. `post-checkout` is not run: this is no switch
that the person made.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Final, NamedTuple

from openmemex import faults
from openmemex.errors import Refused
from openmemex.git import light
from openmemex.git.objects import REGULAR, file_entry
from openmemex.git.process import HOOK_SECONDS
from openmemex.git.repository import COMMIT_HOOKS, Repository
from openmemex.git.targets import Target, checked_out_at
from openmemex.git.words import said

_NAME: Final = "open-memex"
_NOTE: Final = "open-memex.tree"
_WAITS: Final = (0.05, 0.2, 1.0)
_NOTHING: Final = "Nothing was committed."


class _Note(NamedTuple):
    """What is being made: the folder, and the branch with the commit where it begins ("": it was there)."""

    folder: str
    ref: str
    made_at: str


def hooks_for(repository: Repository, target: Target) -> tuple[str, ...]:
    """The commit hooks that git would run once the target's branch is checked out."""
    here = repository.commit_hooks()
    if target.here:
        return here
    there = () if target.base is None else _hooks_in(repository, target.base)
    return tuple(name for name in COMMIT_HOOKS if name in here or name in there)


def check_hooks(repository: Repository, target: Target) -> None:
    """Raise Refused where a fresh checkout of the target's branch would not run the hooks that run here."""
    hooks = repository.commit_hooks()
    if not hooks:
        return
    switch = f"git switch {'-c ' if target.tip is None else ''}{target.branch}"
    if target.base is None:
        raise Refused(
            f"This repository has commit hooks ({', '.join(hooks)}) and no commit yet: a first commit on "
            "another branch could not run them",
            f"Run `{switch}`, then this again without --branch.",
        )
    if _inside(repository) is None:
        return
    missing = [name for name in hooks if name not in _hooks_in(repository, target.base)]
    if missing:
        raise Refused(
            f"The commit hooks here ({', '.join(missing)}) are in {repository.config.get('core.hookspath')}, "
            f"which is no part of what {target.branch} is made from: a commit there would pass them over",
            f"Run `{switch}`, then this again without --branch.",
        )


def _inside(repository: Repository) -> str | None:
    """The folder of the hooks from the top of the work tree, when it belongs to the checkout."""
    configured = repository.config.get("core.hookspath")
    if not configured or os.path.isabs(os.path.expanduser(configured)):
        return None
    return os.path.normpath(configured).replace(os.sep, "/")


def _hooks_in(repository: Repository, commit: str) -> tuple[str, ...]:
    """The hooks that a fresh checkout of `commit` brings with it."""
    folder = _inside(repository)
    if folder is None or folder.startswith(".."):
        return ()
    entries = {
        name: file_entry(repository.objects, commit, name if folder == "." else f"{folder}/{name}")
        for name in COMMIT_HOOKS
    }
    return tuple(name for name, entry in entries.items() if entry is not None and entry.mode == REGULAR[1])


@contextlib.contextmanager
def temporary_tree(repository: Repository, target: Target) -> Iterator[Repository]:
    """The target's branch, made if it is new, checked out in a folder that is gone afterwards.

    A new branch that is still where it began at the end is removed too. Call it with the repository's lock
    held. Raises Refused when git can't check the branch out.
    """
    assert target.base is not None
    folder = os.path.join(
        os.path.realpath(tempfile.gettempdir()), f"{_NAME}-{os.getpid()}-{secrets.token_hex(4)}"
    )
    note = _Note(folder, target.ref, target.base if target.tip is None else "")
    _write_note(repository, note)
    faults.reached("submit.tree-noted")
    try:
        os.mkdir(folder, 0o700)
        if target.tip is None:
            done = repository.git.run(
                *("update-ref", "-m", f"branch: Created from {target.base[:12]}"),
                *(target.ref, target.base, "0" * len(target.base)),
                check=False,
                writes=True,
            )
            if done.code != 0:
                note = note._replace(made_at="")  # somebody else's, or none: nothing to remove
                raise Refused(f"git could not make branch {target.branch}: {done.reason}", _NOTHING)
        yield _checked_out(repository, folder, target)
    finally:
        _remove(repository, note)


def _checked_out(repository: Repository, folder: str, target: Target) -> Repository:
    added = repository.git.run(
        *("worktree", "add", "--quiet", "--no-checkout", folder, target.branch),
        check=False,
        writes=True,
    )
    admin = _admin_folder(folder)
    if added.code != 0 or admin is None:
        raise Refused(f"git could not make a work tree for {target.branch}: {added.reason}", _NOTHING)
    faults.reached("submit.tree-added")
    site = light.Site(folder, admin, repository.site.common_dir, False)
    tree = Repository(site, repository.environ)
    # What LFS keeps on a server stays there: a hook sees the pointers.
    done = tree.git.run(
        *(*_as_sparse(repository, admin), "reset", "--hard", "--quiet"),
        check=False,
        writes=True,
        seconds=HOOK_SECONDS,
        env={"GIT_LFS_SKIP_SMUDGE": "1"},
    )
    if done.code != 0:
        raise Refused(
            f"git could not check {target.branch} out for its hooks: {done.reason}",
            f"Nothing was committed. Look at it with `git switch {target.branch}`."
            if target.tip
            else _NOTHING,
            said(done),
        )
    unseen = [name for name in hooks_for(repository, target) if name not in tree.commit_hooks()]
    if unseen:
        raise Refused(
            f"The commit hooks here ({', '.join(unseen)}) can't be run in {folder}",
            f"Run `git switch {target.branch}` and this again without --branch, or set TMPDIR to a folder "
            "whose programs may be run.",
        )
    faults.reached("submit.tree-made")
    return tree


def _as_sparse(repository: Repository, admin: str) -> list[str]:
    """The options that make the checkout as sparse as the person's own (git does so by itself since 2.36)."""
    if not repository.config.flag("core.sparsecheckout"):
        return []
    patterns, copy = (os.path.join(f, "info", "sparse-checkout") for f in (repository.site.git_dir, admin))
    if os.path.exists(patterns) and not os.path.exists(copy):
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copyfile(patterns, copy)
    cone = repository.config.get("core.sparsecheckoutcone")  # unset, it depends on git's version
    how = ["-c", f"core.sparseCheckoutCone={cone}"] if cone else []
    return ["-c", "core.sparseCheckout=true", *how]


def clear_left(repository: Repository) -> None:
    """Remove what a run that was killed left behind. Call it with the repository's lock held: then nobody is
    using it.
    """
    try:
        with open(_note_file(repository), encoding="utf-8") as file:
            told: Any = json.load(file)
        note = _Note(str(told["folder"]), str(told["ref"]), str(told["made_at"]))
    except FileNotFoundError:
        return
    except (OSError, ValueError, KeyError, TypeError):
        # Killed while it was written: nothing had been made yet.
        os.unlink(_note_file(repository))
        return
    _remove(repository, note)


def is_left(repository: Repository) -> bool:
    """Whether a run is making a work tree right now, or was killed over it."""
    return os.path.lexists(_note_file(repository))


def _note_file(repository: Repository) -> str:
    return os.path.join(repository.site.common_dir, _NOTE)


def _write_note(repository: Repository, note: _Note) -> None:
    with open(_note_file(repository), "w", encoding="utf-8") as file:
        json.dump(note._asdict(), file)


def _remove(repository: Repository, note: _Note) -> None:
    """Remove folder, git's record of it, and a branch that nothing was committed to; last the note.

    What can't be removed now keeps its note: the next run tries again.
    """
    common = repository.site.common_dir
    # Only what this module made is ever removed, whatever a note says.
    if os.path.basename(note.folder).startswith(f"{_NAME}-"):
        admin = _record_of(common, note.folder)
        for attempt in (*_WAITS, None):  # a hook's child may still be writing there
            shutil.rmtree(note.folder, onerror=_make_writable)
            if not os.path.lexists(note.folder) or attempt is None:
                break
            time.sleep(attempt)
        if admin is not None:
            shutil.rmtree(admin, onerror=_make_writable)
            with contextlib.suppress(OSError):
                os.rmdir(os.path.dirname(admin))  # git has no such folder where there are no linked trees
    began = bool(note.made_at) and light.read_ref(repository.site, note.ref) == note.made_at
    if began and checked_out_at(repository, note.ref) is None:
        repository.git.run("update-ref", "-d", note.ref, note.made_at, check=False, writes=True)
    if not os.path.lexists(note.folder):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_note_file(repository))


def _admin_folder(folder: str) -> str | None:
    """git's own folder for the linked work tree at `folder`."""
    try:
        with open(os.path.join(folder, ".git"), encoding="utf-8", errors="surrogateescape") as file:
            return os.path.realpath(os.path.join(folder, file.read().partition("gitdir:")[2].strip()))
    except OSError:
        return None


def _record_of(common: str, folder: str) -> str | None:
    """The entry in `worktrees` that belongs to `folder`, whether that folder is still there or not."""
    wanted = os.path.join(folder, ".git")
    with contextlib.suppress(OSError):
        for entry in os.scandir(os.path.join(common, "worktrees")):
            with contextlib.suppress(OSError):
                named = os.path.join(entry.path, "gitdir")
                with open(named, encoding="utf-8", errors="surrogateescape") as file:
                    told = file.read().strip()
                if os.path.join(entry.path, told) == wanted:
                    return entry.path
    # Killed before git wrote that file: it names the entry after the folder.
    bare = os.path.join(common, "worktrees", os.path.basename(folder))
    return bare if os.path.isdir(bare) else None


def _make_writable(
    act: Callable[..., Any], path: str, error: tuple[type[BaseException], BaseException, TracebackType]
) -> None:
    """A hook may have made folders read-only: try again with the right to write."""
    if isinstance(error[1], FileNotFoundError):
        return
    with contextlib.suppress(OSError):
        os.chmod(os.path.dirname(path), stat.S_IRWXU)
        if os.path.isdir(path) and not os.path.islink(path):
            os.chmod(path, stat.S_IRWXU)
            shutil.rmtree(path, ignore_errors=True)
        else:
            act(path)

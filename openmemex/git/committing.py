"""A commit that holds the named files and nothing else, whatever else the person has staged or changed.

The order is file (the caller's), objects, staging area, ref: a stop at any moment leaves the memory
untracked, staged or committed, and never a commit that the person's next one would take back. Run again it
finishes. What must hold first is in `conditions`, a file's way into a blob in `blobs`, commits that hooks
have a say in are in `hooked`.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from openmemex import faults
from openmemex.errors import Refused, UsageError
from openmemex.git import blobs as storing
from openmemex.git import conditions, hooked, light, scratch, staging, temporary_tree
from openmemex.git.commit_result import CommitResult, already, dry_run_of, result_of, still_there
from openmemex.git.conditions import Checked
from openmemex.git.locking import repository_lock
from openmemex.git.objects import Change, GitObjects, Objects, tree_with
from openmemex.git.repository import Repository
from openmemex.git.targets import Target

__all__ = ["Checked", "CommitResult", "check_commit", "commit", "repository_lock"]

_ATTEMPTS: Final = 6


def check_commit(
    repository: Repository, paths: Sequence[str], branch: str | None, onto: str | None
) -> Checked:
    """Every condition that `commit` has, in the same words; changes nothing. The files need not exist yet.

    What it gives can be handed to `commit`, which then asks again only what may have changed since.
    """
    if branch is not None and temporary_tree.is_left(repository):
        with repository_lock(repository):
            temporary_tree.clear_left(repository)
    return conditions.check(repository, paths, branch, onto)


def commit(
    repository: Repository,
    files: Mapping[str, bytes | None],
    *,
    message: str,
    branch: str | None = None,
    onto: str | None = None,
    dry_run: bool = False,
    checked: Checked | None = None,
) -> CommitResult:
    """Commit exactly `files` (path from the top: content, None deletes) and say what came of it.

    Without `branch`: on the current branch; the work tree must hold the files already, and git's conversions
    of line ends and filters apply. With it: on that branch, made from `onto` (default HEAD; a first commit
    where HEAD has none) if it is new; neither work tree nor staging area is touched. Where every file is
    committed already, that commit is the result. `checked` is what check_commit gave for the same paths and
    branch. Raises Refused with nothing changed; the message says why.
    """
    text = _message(message)
    with repository_lock(repository), _disk_errors(repository):
        temporary_tree.clear_left(repository)
        scratch.clear_left(repository)
        if checked is None or not conditions.still_holds(checked, list(files)):
            checked = conditions.check(repository, list(files), branch, onto)
        repository, target = checked.repository, checked.target
        if dry_run:
            return dry_run_of(checked, files)
        # What goes to another branch is nowhere else once the draft is gone; here the work tree has it too.
        repository.objects.durable = not target.here
        hooks = temporary_tree.hooks_for(repository, target)
        if hooks and not target.here:
            return hooked.commit_elsewhere(checked, files, text)
        seen = storing.stamps(repository.site.root, files)
        blobs, converted = storing.blobs_of(checked, files)
        if hooks:
            return hooked.commit_here(checked, blobs, text)
        # Files that lay still since they were read, and that git stores as they are, it may take by itself.
        quiet = None if converted else seen
        return _commit_objects(checked, blobs, text, quiet)


@contextlib.contextmanager
def _disk_errors(repository: Repository) -> Iterator[None]:
    """A full or read-only disk is a refusal as any other."""
    try:
        yield
    except OSError as error:
        raise Refused(
            f"{error.filename or repository.site.git_dir} can't be read or written: {error.strerror}",
            "Make room there, or give yourself the right to. Run again, this finishes what was begun.",
        ) from error


def _commit_objects(
    checked: Checked,
    blobs: Mapping[str, Change],
    message: str,
    seen: Mapping[str, storing.Stamp | None] | None,
) -> CommitResult:
    repository, target = checked.repository, checked.target
    objects = repository.objects
    writer: Objects = GitObjects(repository.git, sign=True) if repository.signing else objects
    writer.durable = objects.durable
    tip, base, staged_now, made = target.tip, target.base, False, ""
    deadline = time.monotonic() + staging.LOCK_SECONDS
    try:
        for attempt in range(_ATTEMPTS):
            old_tree = None if base is None else objects.tree_of(base)
            tree = tree_with(objects, old_tree, blobs)
            if tree == old_tree or (tree is None and old_tree is None):
                return already(checked, blobs, base)
            parents = [] if base is None else [base]
            made = writer.write_commit(
                tree or objects.write_tree({}), parents, message, checked.author, checked.committer
            )
            faults.reached("submit.objects-written")
            if target.here and not staged_now:
                staged_now = True
                try:
                    _stage(checked, blobs, seen)
                except Refused:
                    staged_now = False
                    raise
            faults.reached("submit.staged")
            if _move(repository, target, made, tip, message=message, deadline=deadline):
                faults.reached("submit.ref-moved")
                result = result_of(checked, blobs, commit=made)
                return result._replace(engine=writer.engine)
            time.sleep(0.01 * attempt)
            tip = base = light.read_ref(repository.site, target.ref)
            if tip is None:
                base = target.base
        raise Refused(
            f"Branch {target.branch} kept moving while the commit was made",
            "Run this again when it is quiet.",
        )
    except BaseException:
        # Interrupted after the ref has moved, the files are committed: nothing is to be undone.
        if staged_now and light.read_ref(repository.site, target.ref) != made:
            staging.undo(repository.git, checked.before, blobs, target.width)
        raise


def _stage(
    checked: Checked, blobs: Mapping[str, Change], seen: Mapping[str, storing.Stamp | None] | None
) -> None:
    """Put the blobs into the staging area, with the files' stamps, so that nothing takes them for changed.

    Raises Refused, with nothing changed.
    """
    git, root = checked.repository.git, checked.repository.site.root
    if seen is not None and storing.stamps(root, blobs) == seen:
        taken = staging.add(git, blobs, checked.before)
        if taken and storing.stamps(root, blobs) == seen:
            return
        try:
            staging.stage(git, blobs, checked.target.width)
        except Refused:
            staging.undo(git, checked.before, blobs, checked.target.width)
            raise
    else:
        staging.stage(git, blobs, checked.target.width)
    staging.refresh(git, still_there(blobs))


def _move(
    repository: Repository, target: Target, new: str, old: str | None, *, message: str, deadline: float
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


def _message(text: str) -> str:
    """The message as git cleans it: LF, no blanks at line ends, one LF last; no NUL (git would cut there)."""
    lines = [line.rstrip() for line in re.sub(r"\r\n?", "\n", text.replace("\0", "")).split("\n")]
    cleaned = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
    if not cleaned:
        raise UsageError("The commit message is empty", "Say what was remembered, with -m TEXT.")
    return cleaned + "\n"

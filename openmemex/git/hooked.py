"""A commit by `git commit`: where hooks have a say, git alone knows how to ask them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from openmemex import faults
from openmemex.errors import OpenMemexError, Refused
from openmemex.git import blobs as storing
from openmemex.git import light, staging
from openmemex.git.commit_result import THROUGH_GIT, CommitResult, already, result_of, still_there
from openmemex.git.conditions import Checked, check_places
from openmemex.git.objects import NO_QUESTIONS, Change, file_entry, tree_with
from openmemex.git.process import HOOK_SECONDS, Done
from openmemex.git.repository import Repository
from openmemex.git.scratch import own_staging_area
from openmemex.git.temporary_tree import temporary_tree
from openmemex.git.words import said

_ATTEMPTS: Final = 4
_FATAL: Final = 128  # git's own refusals; a hook's are 1


def commit_here(checked: Checked, blobs: Mapping[str, Change], message: str) -> CommitResult:
    """`git commit --only` of these files on the branch that is checked out; what else is staged stays so.

    It works on a copy of the staging area: git reads it before it takes the lock, so that what a person adds
    in between would be lost, and hooks may take their time. Raises Refused with the hook's words, and the
    staging area as it was.
    """
    repository, target = checked.repository, checked.target
    if _holds(repository, target.base, blobs):
        return already(checked, blobs, target.base)
    faults.reached("submit.objects-written")
    staging.stage(repository.git, blobs, target.width)
    try:
        faults.reached("submit.staged")
        # Each path is marked as literal by itself: --literal-pathspecs would reach the hooks' own git too.
        names = "".join(f":(top,literal){path}\0" for path in blobs).encode("utf-8", "surrogateescape")
        only = ("--only", "--pathspec-from-file=-", "--pathspec-file-nul", "-m", message)
        for _ in range(_ATTEMPTS):
            with own_staging_area(repository) as env:
                done = _git_commit(repository, *only, stdin=names, env=env)
            commit = light.read_ref(repository.site, target.ref)
            if done.code != _FATAL or commit in (None, target.tip) or _holds(repository, commit, blobs):
                break
            # Somebody else's commit came first: once more, on top of it.
            target = target._replace(tip=commit, base=commit)
        if done.code != 0:
            if commit != target.tip and _holds(repository, commit, blobs):
                return already(checked, blobs, commit)  # the person's own commit took the files along
            raise _refusal(repository, done, "Do what the hook asks for, then run this again.")
    except BaseException:
        # Interrupted in a hook that runs after the commit, the files are committed: nothing is to be undone.
        if light.read_ref(repository.site, target.ref) == target.tip:
            staging.undo(repository.git, checked.before, blobs, target.width)
        raise
    faults.reached("submit.ref-moved")
    assert commit is not None
    result = _result(checked, blobs, commit, done)
    _follow(checked._replace(target=target), blobs, result)
    return result


def _follow(checked: Checked, blobs: Mapping[str, Change], result: CommitResult) -> None:
    """Bring into the staging area what hooks changed in the commit or added to it, where the person has not
    staged something else: their next commit would take it back.
    """
    repository, base = checked.repository, checked.target.base
    now = staging.staged(repository.git, result.files)
    changes = {}
    for path in result.files:
        new = file_entry(repository.objects, result.commit, path)
        if path in blobs:
            known = blobs[path].oid
        else:
            old = None if base is None else file_entry(repository.objects, base, path)
            known = None if old is None else old.oid
        wanted = None if new is None else new.oid
        if wanted != known and [entry.oid for entry in now.get(path, [])] == ([known] if known else []):
            changes[path] = Change("000000" if new is None else new.mode, wanted)
    if changes:
        staging.stage(repository.git, changes, checked.target.width)
    staging.refresh(repository.git, still_there({**blobs, **changes}))


def commit_elsewhere(checked: Checked, files: Mapping[str, bytes | None], message: str) -> CommitResult:
    """The same on a branch that is not checked out, in a temporary work tree of it.

    Nothing of the person's own work tree changes. Raises Refused with the hook's words; a branch that was to
    be new is then not there.
    """
    repository, target = checked.repository, checked.target
    stored, _ = storing.blobs_of(checked, files)
    if _holds(repository, target.base, stored):
        return already(checked, stored, target.base)
    with temporary_tree(repository, target) as tree:
        check_places(tree.site.root, list(files), True)
        for path, data in files.items():
            _write(tree.site.root, path, data)
        there = checked._replace(
            repository=tree, target=target._replace(here=True), before={}, attributes_staged=True
        )
        blobs, _ = storing.blobs_of(there, files)
        staging.stage(tree.git, blobs, target.width)
        faults.reached("submit.staged")
        done = _git_commit(tree, "-F", "-", stdin=message.encode("utf-8", "replace"))
        commit = light.read_ref(repository.site, target.ref)
        if done.code != 0 or commit is None:
            raise _refusal(
                tree,
                done,
                "Do what the hook asks for, then run this again. It ran in a fresh checkout of "
                f"{target.branch}: what it needs beside that is there after `git switch` to the branch and "
                "this without --branch.",
            )
        faults.reached("submit.ref-moved")
    return _result(checked, blobs, commit, done)


def _holds(repository: Repository, commit: str | None, blobs: Mapping[str, Change]) -> bool:
    tree = None if commit is None else repository.objects.tree_of(commit)
    return tree_with(repository.objects, tree, blobs) == tree


def _git_commit(
    repository: Repository, *options: str, stdin: bytes, env: Mapping[str, str] = MappingProxyType({})
) -> Done:
    return repository.git.run(
        # All that is handed over is UTF-8, whatever the person's own commits say that they are.
        *("-c", "i18n.commitEncoding=UTF-8", "commit", "--quiet", "--cleanup=whitespace"),
        # With commit.verbose git would cut the message at a line that looks like its own scissors.
        *("--no-verbose", *options),
        stdin=stdin,
        check=False,
        seconds=HOOK_SECONDS,
        writes=True,
        own_language=True,
        env={**NO_QUESTIONS, "GIT_ADVICE": "0", **env},  # its advice is not a hook's word
    )


def _refusal(repository: Repository, done: Done, hint: str) -> Refused:
    hooks = ", ".join(repository.commit_hooks())
    words = said(done)
    signed = "; commits are signed" if repository.signing else ""
    told = "" if words else f": exit code {done.code}, without a word"
    return Refused(
        f"git refused the commit (hooks here: {hooks}{signed}){told}", f"Nothing was committed. {hint}", words
    )


def _result(checked: Checked, blobs: Mapping[str, Change], commit: str, done: Done) -> CommitResult:
    # A hook may have added files of its own to the commit: the receipt names them too.
    listed = checked.repository.git.run(
        *("show", "--format=", "--name-only", "-z", "--no-renames", "--no-show-signature", commit)
    ).fields
    result = result_of(checked, blobs, commit=commit)
    files = tuple(dict.fromkeys((*blobs, *listed)))
    return result._replace(engine=THROUGH_GIT, files=files, words=said(done))


def _write(root: str, path: str, data: bytes | None) -> None:
    full = os.path.join(root, path)
    if data is None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(full)
        return
    try:
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb") as file:
            file.write(data)
    except OSError as error:
        raise OpenMemexError(
            f"{full} could not be written: {error.strerror}",
            "Nothing was committed. Make room there, or set TMPDIR to another folder.",
        ) from None

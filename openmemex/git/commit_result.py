"""What a commit came to, and the answer where the files are committed already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from openmemex.errors import NotFound, Refused
from openmemex.git import light, staging
from openmemex.git.conditions import Checked
from openmemex.git.objects import Change, file_entry

THROUGH_GIT = "git commit"


class CommitResult(NamedTuple):
    """What a commit came to.

    `commit`: its id ("" in a dry run). `branch`: short name. `engine`: who made it: libgit2, git, or
    "git commit" where hooks run. `new_branch`: it was made now. `already`: the files were committed before,
    by `commit`. `blobs`: what was to be stored of each file, `held`: what the commit was read back to hold
    (a hook may have changed it; None: deleted). `words`: what the hooks said.
    """

    commit: str
    branch: str
    files: tuple[str, ...]
    engine: str
    new_branch: bool
    already: bool
    blobs: Mapping[str, str | None]
    held: Mapping[str, str | None] = {}
    words: tuple[str, ...] = ()


def result_of(
    checked: Checked, blobs: Mapping[str, Change], *, commit: str, seen: str | None = None
) -> CommitResult:
    """The result for `commit`, which is read back: what it holds is told beside what it should hold.

    `seen`: the branch's commit that has everything already, where `commit` is the last of its own.
    """
    objects, target = checked.repository.objects, checked.target
    held = {}
    for path in blobs:
        entry = file_entry(objects, seen or commit, path)
        held[path] = None if entry is None else entry.oid
    return CommitResult(
        commit=commit,
        branch=target.branch,
        files=tuple(blobs),
        engine=objects.engine,
        new_branch=target.tip is None and not target.here and seen is None,
        already=seen is not None,
        blobs={path: change.oid for path, change in blobs.items()},
        held=held,
    )


def dry_run_of(checked: Checked, files: Iterable[str]) -> CommitResult:
    """The result of a commit that was only checked."""
    target, engine = checked.target, checked.repository.objects.engine
    new = target.tip is None and not target.here
    return CommitResult("", target.branch, tuple(files), engine, new, False, {})


def already(checked: Checked, blobs: Mapping[str, Change], base: str | None) -> CommitResult:
    """The result when the branch holds every file as it is: the last commit that touched one of them.

    Raises Refused for a branch that would be new: it would hold nothing of its own.
    """
    if base is None:
        raise NotFound("There is nothing to commit: the files to delete were never committed")
    repository, target = checked.repository, checked.target
    if not target.here and light.read_ref(repository.site, target.ref) is None:
        raise Refused(
            f"Commit {base[:10]} has all of it already: a new branch {target.branch} would hold nothing of "
            "its own, and was not made",
            "Name a commit that lacks it with --onto REV.",
        )
    if target.here:
        now = staging.staged(repository.git, list(blobs))
        if any([e.oid for e in now.get(path, [])] != ([c.oid] if c.oid else []) for path, c in blobs.items()):
            staging.stage(repository.git, blobs, target.width)
        staging.refresh(repository.git, still_there(blobs))
    done = repository.git.run(
        *("--literal-pathspecs", "log", "-1", "--format=%H", "--no-show-signature", base, "--"), *blobs
    )
    return result_of(checked, blobs, commit=done.text.strip() or base, seen=base)


def still_there(blobs: Mapping[str, Change]) -> list[str]:
    """The paths that are not deleted."""
    return [path for path, change in blobs.items() if change.oid is not None]

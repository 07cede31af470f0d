"""Which branch a commit goes to, and what must hold of it: a commit never lands where nobody looks."""

from __future__ import annotations

import contextlib
import os
from typing import Final, NamedTuple

from openmemex.errors import Refused, UsageError
from openmemex.git import light
from openmemex.git.repository import Repository

_REBASING: Final = ("rebase-merge/head-name", "rebase-apply/head-name")


class Target(NamedTuple):
    """Where a commit goes. `tip`: the branch's commit, None when it has none; `base`: what to build on;
    `here`: it is the branch that is checked out.
    """

    ref: str
    tip: str | None
    base: str | None
    here: bool

    @property
    def branch(self) -> str:
        """The branch's short name."""
        return self.ref.removeprefix("refs/heads/")

    @property
    def width(self) -> int:
        """How many digits an object id has here (a first commit deletes nothing, so any will do then)."""
        return len(self.base or "") or 40


def target_of(repository: Repository, branch: str | None, onto: str | None) -> Target:
    """The branch that is checked out, or `branch`, made from `onto` (default HEAD) when it is new.

    Raises Refused where HEAD is no place for a commit, and for a branch that is checked out elsewhere, does
    not contain `onto` or can't exist beside another; UsageError for a name that is none.
    """
    if branch is None:
        if onto is not None:
            raise UsageError("`onto` says where a new branch begins", "Name that branch with --branch NAME.")
        return _here(repository)
    _check_branch_name(repository, branch)
    name = branch_ref(repository, branch)
    where = checked_out_at(repository, name)
    if where is not None:
        here = os.path.realpath(where) == repository.site.root
        also = (
            "" if name == f"refs/heads/{branch}" else f" stands for {name.removeprefix('refs/heads/')}, which"
        )
        raise Refused(
            f"Branch {branch}{also} is checked out {'here' if here else f'in {where}'}: moving it would "
            "leave that work tree behind",
            "Run this without a branch." if here else "Run this there, or choose another branch name.",
        )
    return _elsewhere(repository, name, onto)


def still_there(repository: Repository, target: Target) -> bool:
    """Whether HEAD and the branch are still where `target` saw them; asks git's files alone."""
    if not target.here:
        return light.read_ref(repository.site, target.ref) == target.tip
    return light.head(repository.site) == (target.ref, target.tip) and not repository.pending_operation()


def _here(repository: Repository) -> Target:
    ref, commit = light.head(repository.site)
    pending = repository.pending_operation()
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
    named = light.symbolic_ref(repository.site, "HEAD")
    if named is not None and named != ref:
        where = checked_out_at(repository, ref, but_here=True)
        if where is not None:
            raise Refused(
                f"{named.removeprefix('refs/heads/')} stands for {ref.removeprefix('refs/heads/')}, which is "
                f"checked out in {where}: moving it would leave that work tree behind",
                "Run this there, or name another branch with --branch NAME.",
            )
    return Target(ref, commit, commit, True)


def branch_ref(repository: Repository, branch: str) -> str:
    """The full name of the ref that a commit to `branch` moves: a symbolic ref stands for another branch.

    Raises Refused where it stands for what is no branch of this repository.
    """
    name = f"refs/heads/{branch}"
    final = light.final_ref(repository.site, name)
    if not final.startswith("refs/heads/"):
        raise Refused(
            f"Branch {branch} is a symbolic ref to {final}, which is no branch of this repository",
            "Choose another branch name.",
        )
    return final


def _elsewhere(repository: Repository, ref: str, onto: str | None) -> Target:
    branch = ref.removeprefix("refs/heads/")
    tip = light.read_ref(repository.site, ref)
    base = repository.resolve(onto) if onto is not None else None
    if tip is not None:
        if base is not None and not is_ancestor(repository, base, tip):
            raise Refused(
                f"Branch {branch} exists already and does not contain {onto}",
                "Leave --onto away to commit on top of it, or choose another branch name.",
            )
        return Target(ref, tip, tip, False)
    _check_branch_room(repository, branch)
    if base is None:
        pending = repository.pending_operation()
        if pending is not None:
            raise Refused(
                f"A {pending} is not finished in {repository.git.folder}: HEAD is no place to begin a branch",
                "Say where with --onto REV, or finish it first.",
            )
        base = light.head(repository.site)[1]
    return Target(ref, None, base, False)


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


def checked_out_at(repository: Repository, ref: str, *, but_here: bool = False) -> str | None:
    """The work tree that has `ref` checked out, or is in the middle of rebasing it; None when none has.

    By whatever name: a symbolic ref counts as the branch that it stands for. `but_here`: this work tree does
    not count.
    """
    site = repository.site
    ref = light.final_ref(site, ref)
    done = repository.git.run("worktree", "list", "--porcelain")
    worktree = ""
    for line in done.text.splitlines():
        key, _, value = line.partition(" ")
        if key == "worktree":
            worktree = value
        elif but_here and os.path.realpath(worktree) == site.root:
            continue
        elif key == "branch" and light.final_ref(site, value) == ref:
            return worktree
    common = site.common_dir
    folders = [common]
    with contextlib.suppress(OSError):
        folders += [entry.path for entry in os.scandir(os.path.join(common, "worktrees"))]
    for folder in folders:
        for name in _REBASING:
            with contextlib.suppress(OSError), open(os.path.join(folder, name), encoding="utf-8") as file:
                if light.final_ref(site, file.read().strip()) == ref:
                    return f"{folder} (being rebased)"
    return None


def is_ancestor(repository: Repository, old: str, new: str) -> bool:
    """Whether the history of `new` has the commit `old`."""
    return repository.git.run("merge-base", "--is-ancestor", old, new, allow=(0, 1)).code == 0

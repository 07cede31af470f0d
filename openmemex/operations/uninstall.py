"""Uninstall: take out of a repository what `init` set up in it, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from openmemex.errors import Refused
from openmemex.git.drivers import Plan, commit_commands
from openmemex.results import Notice
from openmemex.workspace import Workspace


@dataclass(frozen=True)
class Removal:
    """What was taken out of the attributes file and of the clone's configuration, or would be.

    `next` holds commands that work as they stand, here: for others the line is gone once that is committed.
    """

    plan: Plan
    dry_run: bool
    next: tuple[str, ...]
    notices: tuple[Notice, ...]


def uninstall_git(ws: Workspace, *, force: bool = False, dry_run: bool = False) -> Removal:
    """Take out the line of attributes and this clone's configuration; memories then merge as plain text.

    Everything else in both stays byte for byte; an attributes file that held nothing else is removed. What a
    person changed by hand stays, unless `force`. With `dry_run` nothing is written; the result is the same.
    Raises Refused, with nothing changed, where there is no work tree or the memory folder is a link.
    """
    ws.require_project()
    git, home = ws.git, ws.repository_home()
    if home is None:
        raise Refused(
            f"{git.site.git_dir} is a bare repository: it has no work tree that was set up",
            "Run this in a clone, or in a linked work tree (`git worktree add`).",
        )
    plan = git.plan_driver_removal(home.shown(home.folder), force=force)
    if not dry_run:
        git.set_drivers(plan)
    return Removal(
        plan=plan,
        dry_run=dry_run,
        # A line that stays is nothing that this has to commit.
        next=()
        if plan.committed or plan.edit.action == "kept"
        else commit_commands(git.site.root, plan.edit.path, "Merge memories as plain text", ws.cwd),
        notices=tuple(Notice("git", text) for text in plan.notices),
    )

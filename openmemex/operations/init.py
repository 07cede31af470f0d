"""Init: set a repository up so that concurrent edits of memories merge by themselves and diffs read well."""

from __future__ import annotations

from dataclasses import dataclass

from openmemex.errors import Refused
from openmemex.git.drivers import Plan, commit_commands
from openmemex.results import Notice
from openmemex.workspace import Workspace


@dataclass(frozen=True)
class Setup:
    """What was done to the attributes file and to each key of the clone's configuration, or would be.

    `next` holds commands that work as they stand, here: the attributes file counts for others only once it is
    committed.
    """

    plan: Plan
    dry_run: bool
    next: tuple[str, ...]
    notices: tuple[Notice, ...]


def init_git(ws: Workspace, *, force: bool = False, dry_run: bool = False) -> Setup:
    """Write the line of attributes for the memory folder, and this clone's configuration.

    Run again it changes nothing. What a person changed by hand stays, unless `force`. With `dry_run` nothing
    is written; the result is the same. Raises Refused, with nothing changed, where there is no work tree, or
    the memory folder is a link, ignored or outside the sparse checkout.
    """
    ws.require_project()
    git, home = ws.git, ws.repository_home()
    if home is None:
        raise Refused(
            f"{git.site.git_dir} is a bare repository: there is no work tree to set up",
            "Run this in a clone, or in a linked work tree (`git worktree add`).",
        )
    plan = git.plan_drivers(home.shown(home.folder), force=force)
    if not dry_run:
        git.set_drivers(plan)
    return Setup(
        plan=plan,
        dry_run=dry_run,
        next=()
        if plan.committed
        else commit_commands(git.site.root, plan.edit.path, "Merge memories field by field", ws.cwd),
        notices=tuple(Notice("git", text) for text in plan.notices),
    )

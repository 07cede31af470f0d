"""Commands that set things up and take them out again: init, uninstall."""

from __future__ import annotations

from typing import Annotated

import typer

from openmemex.cli import setup_lines
from openmemex.cli.options import command
from openmemex.cli.session import Session
from openmemex.errors import UsageError

Git = Annotated[bool, typer.Option("--git", help="The repository: how memories merge and show in diffs.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")]

_TO_SHARE = "Commit the file, so that it counts for everyone; each clone runs `open-memex init --git` once:"
_TO_TAKE_BACK = "Commit that, so that it counts for everyone:"


def register(app: typer.Typer) -> None:
    """Add these commands to `app`."""

    @command(app, "init", example="open-memex init --git --dry-run\nopen-memex init --git")
    def init_(
        session: Session,
        *,
        git: Git = False,
        force: Annotated[
            bool, typer.Option("--force", help="Set anew what was changed by hand, too.")
        ] = False,
        dry_run: DryRun = False,
    ) -> int:
        """Set this repository up: memories then merge field by field, and read well in git diff.

        Writes one line into .gitattributes of the memory folder, to be committed for everyone, and the
        configuration of this clone, which each clone needs once. Run again it changes nothing.
        """
        if not git:
            raise UsageError(
                "init needs to know what to set up.",
                "`open-memex init --git` sets up merging and diffs in git.",
            )
        from openmemex.operations.init import init_git

        with session.workspace() as ws:
            made = init_git(ws, force=force, dry_run=dry_run)
            session.told(made.notices)
            session.show(lambda: setup_lines.document(made), lambda: setup_lines.lines(made, left=_TO_SHARE))
        return 0

    @command(app, "uninstall", example="open-memex uninstall --git --dry-run\nopen-memex uninstall --git")
    def uninstall_(
        session: Session,
        *,
        git: Git = False,
        force: Annotated[
            bool, typer.Option("--force", help="Take out what was changed by hand, too.")
        ] = False,
        dry_run: DryRun = False,
    ) -> int:
        """Take out what init set up, and nothing else. Memories and drafts stay as they are."""
        if not git:
            raise UsageError(
                "uninstall needs to know what to take out.",
                "`open-memex uninstall --git` takes out what `open-memex init --git` set up.",
            )
        from openmemex.operations.uninstall import uninstall_git

        with session.workspace() as ws:
            done = uninstall_git(ws, force=force, dry_run=dry_run)
            session.told(done.notices)
            session.show(
                lambda: setup_lines.document(done), lambda: setup_lines.lines(done, left=_TO_TAKE_BACK)
            )
        return 0

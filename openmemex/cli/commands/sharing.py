"""Commands around sharing: submit, pull, sync-status."""

from __future__ import annotations

from typing import Annotated

import typer

from openmemex.cli import render
from openmemex.cli.options import MemoryIds, command
from openmemex.cli.session import Session


def register(app: typer.Typer) -> None:
    """Add these commands to `app`."""

    @command(
        app,
        "submit",
        example='open-memex submit 4X7Q 9KTM -m "What we learned about deploys"\n'
        "open-memex submit 4X7Q --branch memories/deploy --push",
    )
    def submit_(
        session: Session,
        *,
        ids: MemoryIds,
        branch: Annotated[
            str | None,
            typer.Option("--branch", metavar="NAME", help="Commit to a new branch, without switching to it."),
        ] = None,
        onto: Annotated[
            str | None,
            typer.Option("--onto", metavar="REV", help="Where the new branch starts (default: HEAD)."),
        ] = None,
        base: Annotated[
            str | None,
            typer.Option("--base", metavar="BRANCH", help="The branch that a pull request would go to."),
        ] = None,
        message: Annotated[
            str | None, typer.Option("-m", "--message", metavar="TEXT", help="The commit's message.")
        ] = None,
        push: Annotated[
            bool, typer.Option("--push", help="Push that branch afterwards; without it nothing is pushed.")
        ] = False,
        dry_run: Annotated[
            bool,
            typer.Option("--dry-run", help="Check everything, say what would be done, change nothing."),
        ] = False,
    ) -> int:
        """Commit memories to the repository: exactly their files, nothing else of yours.

        By itself it never pushes; it prints the commands that do.
        """
        from openmemex.errors import PartlyDone
        from openmemex.operations.submit import Submitted, submit

        with session.workspace() as ws:
            try:
                done = submit(
                    ws,
                    ids,
                    branch=branch,
                    onto=onto,
                    base=base,
                    message=message,
                    push=push,
                    dry_run=dry_run,
                )
            except PartlyDone as error:
                if isinstance(error.done, Submitted):
                    session.told(error.done.notices)
                    error.document = render.submitted_json(error.done)
                raise
            session.told(done.notices)
            if done.words:
                session.screen.note("what hooks and the server said:", kind="note")
                session.screen.quote(done.words)
            session.show(lambda: render.submitted_json(done), lambda: render.submitted_lines(done))
        return 0

    @command(app, "pull", example="open-memex pull")
    def pull_(session: Session) -> int:
        """Fetch the team's memories: git fetch and a fast-forward, with a receipt of what came.

        It never merges, rebases or commits.
        """
        from openmemex.operations.pull import pull

        with session.workspace() as ws:
            pulled = pull(ws, progress=session.progress)
            session.show(
                lambda: render.pulled_json(pulled), lambda: render.pulled_lines(pulled, session.screen)
            )
        return 0

    @command(app, "sync-status", example="open-memex sync-status")
    def sync_status_(session: Session) -> int:
        """Say what waits to be shared, what is not committed yet, and how fresh the team's part is."""
        return show_sync_status(session)


def show_sync_status(session: Session) -> int:
    """What `sync-status`, and `status` without arguments, do."""
    from openmemex.operations.sync_status import sync_status

    with session.workspace() as ws:
        status = sync_status(ws, progress=session.progress)
        session.told(status.notices)
        session.show(
            lambda: render.sync_status_json(status), lambda: render.sync_status_lines(status, session.screen)
        )
    return 0

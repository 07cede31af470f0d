"""Commands that look back: history."""

from __future__ import annotations

import typer

from openmemex.cli import chronicle
from openmemex.cli.options import MemoryId, command
from openmemex.cli.session import Session


def register(app: typer.Typer) -> None:
    """Add these commands to `app`."""

    @command(app, "history", example="open-memex history 4X7Q")
    def history_(session: Session, id: MemoryId) -> int:
        """Show the life of one memory: every commit that changed it, what changed, who, and its review.

        Also of a memory that was deleted, if git's history has it.
        """
        from openmemex.operations.history import history

        with session.workspace() as ws:
            life = history(ws, id)
            session.told(life.notices)
            session.show(
                lambda: chronicle.life_json(life), lambda: chronicle.life_lines(life, session.screen)
            )
        return 0

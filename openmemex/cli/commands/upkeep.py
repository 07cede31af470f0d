"""Commands that keep things in order: reindex, doctor, config."""

from __future__ import annotations

from typing import Annotated

import typer

from openmemex.cli import completing, render
from openmemex.cli.options import HELP_NAMES, Group, command
from openmemex.cli.session import Session

KEY = typer.Argument(
    metavar="KEY",
    show_default=False,
    help="A setting, such as memoryDir; `config list` shows them all.",
    autocompletion=completing.config_keys,
)


def register(app: typer.Typer) -> None:
    """Add these commands to `app`."""

    @command(app, "reindex", example="open-memex reindex")
    def reindex_(session: Session) -> int:
        """Throw the search index away and make it again from the files; no memory is touched.

        Ends with exit code 4 when files were left out because they can't be read.
        """
        from openmemex.operations.reindex import reindex

        with session.workspace() as ws:
            made = reindex(ws, progress=session.progress)
            session.show(lambda: render.reindexed_json(made), lambda: render.reindexed_lines(made))
        return 0 if made.fresh and not made.quarantined else 4

    @command(app, "doctor", example="open-memex doctor")
    def doctor_(session: Session) -> int:
        """Check that everything works, and say how to mend what does not.

        Ends with exit code 1 when a check fails.
        """
        from openmemex.operations.doctor import doctor

        with session.workspace() as ws:
            checks = doctor(ws)
            session.show(
                lambda: {"checks": [vars(check) for check in checks]},
                lambda: render.check_lines(checks, session.screen),
            )
        return 0 if all(check.ok for check in checks) else 1

    config = typer.Typer(
        cls=Group,
        help="Read and change your settings, keeping the comments in their file.",
        rich_markup_mode=None,
        context_settings=HELP_NAMES,
        epilog="\b\nExample:\n  open-memex config list\n  open-memex config set memoryDir .ai/memory",
        no_args_is_help=False,
    )
    app.add_typer(config, name="config")

    @command(config, "list", example="open-memex config list")
    def list_(session: Session) -> int:
        """List all settings with their values."""
        from openmemex.operations.config import list_settings

        with session.workspace() as ws:
            entries = list_settings(ws)
            session.show(
                lambda: {"file": ws.config_file, "settings": [render.entry_json(entry) for entry in entries]},
                lambda: render.entry_lines(entries, ws.config_file),
            )
        return 0

    @command(config, "get", example="open-memex config get memoryDir")
    def get_(session: Session, key: Annotated[str, KEY]) -> int:
        """Show the value of one setting."""
        from openmemex.operations.config import get_setting

        with session.workspace() as ws:
            entry = get_setting(ws, key)
            session.show(lambda: render.entry_json(entry), lambda: [render.value_text(entry.value)])
        return 0

    @command(
        config,
        "set",
        example="open-memex config set memoryDir .ai/memory\nopen-memex config set captureAliases false",
    )
    def set_(
        session: Session,
        *,
        key: Annotated[str, KEY],
        value: Annotated[
            str,
            typer.Argument(
                metavar="VALUE", show_default=False, help="Its value; lists as JSON or with commas between."
            ),
        ],
    ) -> int:
        """Change one setting; everything else in the file stays as it is."""
        from openmemex.operations.config import set_setting

        with session.workspace() as ws:
            entry = set_setting(ws, key, value)
            session.show(
                lambda: {**render.entry_json(entry), "file": ws.config_file},
                lambda: render.set_lines(entry, ws.config_file),
            )
        return 0

    @command(config, "unset", example="open-memex config unset memoryDir")
    def unset_(session: Session, key: Annotated[str, KEY]) -> int:
        """Take one setting out of the file, so that its default holds again."""
        from openmemex.operations.config import unset_setting

        with session.workspace() as ws:
            changed = unset_setting(ws, key)
            session.show(
                lambda: {"key": key, "changed": changed, "file": ws.config_file},
                lambda: render.unset_lines(key, changed, ws.config_file),
            )
        return 0

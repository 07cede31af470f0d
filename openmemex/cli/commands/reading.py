"""Commands that look: search, list, show, where, scopes.

Operations are imported where they are used, here and beside: a command should not wait for what only another
one needs.
"""

from __future__ import annotations

from typing import Annotated

import typer

from openmemex.cli import render, searching, values
from openmemex.cli.options import (
    All,
    At,
    FilterScope,
    FilterTags,
    FilterType,
    Limit,
    MemoryId,
    command,
    several,
)
from openmemex.cli.session import Session
from openmemex.index.rows import Filters
from openmemex.results import memory_json

DEFAULT_LIMIT = 20


def register(app: typer.Typer) -> None:
    """Add these commands to `app`."""

    @command(app, "search", example='open-memex search "how do we rotate the staging password?"')
    def search(
        session: Session,
        *,
        words: Annotated[
            list[str] | None,
            typer.Argument(metavar="QUERY", show_default=False, help="Words, a name, or a whole question."),
        ] = None,
        limit: Limit = None,
        scope: FilterScope = None,
        type: FilterType = None,
        tag: FilterTags = None,
        all: All = False,
        at: At = None,
        explain: Annotated[
            bool, typer.Option("--explain", help="Show how each score came about and what was hidden.")
        ] = False,
    ) -> int:
        """Find the memories that answer QUERY, best first (10 unless --limit says else).

        Any text is a query; words in double quotes inside it are looked for as a phrase.
        """
        call = searching.SearchCall(
            words=several(words),
            limit=limit,
            scope=scope,
            type=type,
            tags=several(tag),
            all=all,
            at=at,
            explain=explain,
            **session.options,
        )
        return searching.run(call)

    @command(app, "list", example="open-memex list --type decision --tag database")
    def list_(
        session: Session,
        *,
        limit: Limit = None,
        scope: FilterScope = None,
        type: FilterType = None,
        tag: FilterTags = None,
        state: Annotated[
            str | None,
            typer.Option(
                "--state",
                metavar="STATE",
                help="Only memories in this state: active, superseded, deprecated, retracted, archived, "
                "or draft, proposed, approved, rejected, published; waiting: what is in the outbox.",
            ),
        ] = None,
        all: All = False,
        at: At = None,
    ) -> int:
        """List the memories of here, newest first (20 unless --limit says else)."""
        status, review_state = values.state(state)
        filters = Filters(
            scope=values.scope(scope),
            type=values.memory_type(type),
            tags=values.tags(several(tag)),
            status=status,
            review_state=review_state,
            all=all,
        )
        most = values.limit(limit, DEFAULT_LIMIT)
        waiting = (state or "").strip().lower() == values.WAITING
        from openmemex.operations.listing import list_memories

        with session.workspace() as ws:
            listed = list_memories(
                ws, filters=filters, limit=most, at=at, waiting=waiting, progress=session.progress
            )
            session.told(listed.notices, listed.freshness)
            session.show(
                lambda: {
                    "items": [memory_json(row) for row in listed.rows],
                    "shown": len(listed.rows),
                    "total": listed.total,
                    **({} if listed.then is None else searching.at_document(listed.then, listed.notices)),
                },
                lambda: render.list_lines(
                    listed, session.screen, ws.project, filtered=waiting or filters != Filters(all=all)
                ),
            )
        return 0

    @command(app, "show", example="open-memex show 4X7Q")
    def show_(session: Session, id: MemoryId, at: At = None) -> int:
        """Show one memory whole: its text and everything known of it."""
        from openmemex.operations.show import show

        with session.workspace() as ws:
            shown = show(ws, id, at=at)
            session.told(shown.notices)
            session.show(
                lambda: {
                    **memory_json(shown.row),
                    "content": shown.content,
                    "front_matter": shown.front_matter,
                    **({} if shown.then is None else searching.at_document(shown.then, shown.notices)),
                },
                lambda: render.show_lines(shown, session.screen),
            )
        return 0

    @command(app, "where", example="open-memex where")
    def where_(session: Session) -> int:
        """Say where memories are kept: data folder, configuration, this project and its folders."""
        from openmemex.operations.where import where

        with session.workspace() as ws:
            place = where(ws)
            session.show(lambda: render.where_json(place), lambda: render.where_lines(place))
        return 0

    @command(app, "scopes", example="open-memex scopes")
    def scopes_(session: Session) -> int:
        """List what memories on this computer belong to: you, this project, other projects."""
        from openmemex.operations.scopes import scopes

        with session.workspace() as ws:
            lines = scopes(ws, progress=session.progress)
            session.show(
                lambda: {"scopes": [vars(line) for line in lines]}, lambda: render.scope_lines(lines)
            )
        return 0

"""List: the memories of here, newest first, with the true total."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from openmemex import then
from openmemex.errors import UsageError
from openmemex.results import Notice
from openmemex.workspace import staleness, unseen

if TYPE_CHECKING:
    from openmemex.index.rows import Filters, Freshness, ListResult, Row
    from openmemex.results import Progress
    from openmemex.store.homes import Home
    from openmemex.then import Then
    from openmemex.workspace import Workspace


class Listed(NamedTuple):
    """The newest memories that fit, and how many fit in all.

    `hidden` more would fit, were they not replaced, retracted, archived or expired. `then` is the revision
    that was asked about, if one was.
    """

    rows: tuple[Row, ...]
    total: int
    hidden: int
    freshness: Freshness
    notices: tuple[Notice, ...] = ()
    then: Then | None = None


def list_memories(
    ws: Workspace,
    *,
    filters: Filters,
    limit: int = 20,
    at: str | None = None,
    waiting: bool = False,
    progress: Progress | None = None,
) -> Listed:
    """The newest `limit` memories that pass `filters` (active ones by default).

    `at`: those of a revision or a date instead, judged as of then. `waiting`: those of the outbox alone, in
    whatever state of review (a replacement of reviewed memory is proposed there already). Raises UsageError
    for a limit below 1 and for both, and for `at` what then.look raises.
    """
    if waiting and at is not None:
        raise UsageError(
            "What waits to be shared is in no commit: --state waiting and --at don't go together.",
            "Leave one of them away.",
        )
    if limit < 1:
        raise UsageError(f"--limit {limit} is out of range.", "Give a number from 1 on.")
    if at is not None:
        seen = then.look(ws, at, progress)
        judged = filters._replace(now=seen.now)
        result, hidden = then.answer(ws, seen, lambda: _listed(ws, [seen.home], judged, limit))
        return Listed(tuple(result.rows), result.total, hidden, seen.freshness, seen.notices, seen)
    freshness = ws.reconcile(progress)
    homes = [home for home in ws.homes() if home.kind == "outbox" or not waiting]
    result, hidden = _listed(ws, homes, filters, limit)
    return Listed(
        tuple(result.rows), result.total, hidden, freshness, (*staleness(ws, freshness), *unseen(ws))
    )


def _listed(ws: Workspace, homes: Sequence[Home], filters: Filters, limit: int) -> tuple[ListResult, int]:
    result = ws.index.list(homes, filters, limit)
    if filters.all:
        return result, 0
    return result, ws.index.list(homes, filters._replace(all=True), 1).total - result.total

"""List: the memories of here, newest first, with the true total."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from openmemex.errors import UsageError
from openmemex.results import Notice
from openmemex.workspace import staleness

if TYPE_CHECKING:
    from openmemex.index.rows import Filters, Freshness, Row
    from openmemex.results import Progress
    from openmemex.workspace import Workspace


class Listed(NamedTuple):
    """The newest memories that fit, and how many fit in all.

    `hidden` more would fit, were they not replaced, retracted, archived or expired.
    """

    rows: tuple[Row, ...]
    total: int
    hidden: int
    freshness: Freshness
    notices: tuple[Notice, ...] = ()


def list_memories(
    ws: Workspace, *, filters: Filters, limit: int = 20, progress: Progress | None = None
) -> Listed:
    """The newest `limit` memories that pass `filters` (active ones by default).

    Raises UsageError for a limit below 1.
    """
    if limit < 1:
        raise UsageError(f"--limit {limit} is out of range.", "Give a number from 1 on.")
    freshness = ws.reconcile(progress)
    result = ws.index.list(ws.homes(), filters, limit)
    hidden = 0
    if not filters.all:
        hidden = ws.index.list(ws.homes(), filters._replace(all=True), 1).total - result.total
    return Listed(tuple(result.rows), result.total, hidden, freshness, tuple(staleness(ws, freshness)))

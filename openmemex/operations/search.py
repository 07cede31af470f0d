"""Search: reconcile what changed on disk, ask the index, hand back the best hits with their receipts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from openmemex.errors import UsageError
from openmemex.results import Notice
from openmemex.workspace import staleness

if TYPE_CHECKING:
    from openmemex.index.rows import Filters, Freshness, Hit
    from openmemex.results import Progress
    from openmemex.workspace import Workspace

MAX_LIMIT = 1000


class Found(NamedTuple):
    """What a search gives: the best hits first, how many memories match in all, and how fresh that is.

    `expression` and `hidden` (reason → how many matches it kept back) say how the answer came about.
    """

    query: str
    hits: tuple[Hit, ...]
    total: int
    freshness: Freshness
    expression: str = ""
    hidden: dict[str, int] = {}  # noqa: RUF012 - a NamedTuple's default, never changed
    notices: tuple[Notice, ...] = ()


def search(
    ws: Workspace,
    query: str,
    *,
    filters: Filters,
    limit: int = 10,
    explain: bool = False,
    progress: Progress | None = None,
) -> Found:
    """The memories of here that answer `query` (any text), best first.

    Raises UsageError for an empty query or a limit below 1.
    """
    if not query.strip():
        raise UsageError(
            "The query is empty.", "Say what to look for; `open-memex list` shows the newest memories."
        )
    if not 1 <= limit <= MAX_LIMIT:
        raise UsageError(f"--limit {limit} is out of range.", f"Give a number from 1 to {MAX_LIMIT}.")
    freshness = ws.reconcile(progress)
    result = ws.index.search(
        query, ws.homes(), filters, limit, explain=explain, cwd=_inside(ws.project.root, ws.cwd)
    )
    return Found(
        query,
        tuple(result.hits),
        result.total,
        freshness,
        result.expression,
        result.hidden,
        tuple(staleness(ws, freshness)),
    )


def _inside(root: str, folder: str) -> str:
    if not root:
        return ""
    relative = os.path.relpath(os.path.realpath(folder), os.path.realpath(root))
    return "" if relative == "." or relative.startswith("..") else relative.replace(os.sep, "/")

"""Search: reconcile what changed on disk, ask the index, hand back the best hits with their receipts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from openmemex.errors import UsageError
from openmemex.results import Notice
from openmemex.workspace import staleness, unseen

if TYPE_CHECKING:
    from openmemex.index.rows import Filters, Freshness, Hit
    from openmemex.results import Progress
    from openmemex.then import Then
    from openmemex.workspace import Workspace

MAX_LIMIT = 1000


class Found(NamedTuple):
    """What a search gives: the best hits first, how many memories match in all, and how fresh that is.

    `expression` and `hidden` (reason → how many matches it kept back) say how the answer came about. `then`
    is the revision that was asked about, if one was.
    """

    query: str
    hits: tuple[Hit, ...]
    total: int
    freshness: Freshness
    expression: str = ""
    hidden: dict[str, int] = {}  # noqa: RUF012 - a NamedTuple's default, never changed
    notices: tuple[Notice, ...] = ()
    then: Then | None = None


def search(
    ws: Workspace,
    query: str,
    *,
    filters: Filters,
    limit: int = 10,
    explain: bool = False,
    at: str | None = None,
    progress: Progress | None = None,
) -> Found:
    """The memories of here that answer `query` (any text), best first.

    `at`: those of a revision or a date instead, judged as of then. Raises UsageError for an empty query or a
    limit below 1, and for `at` what then.look raises.
    """
    if not query.strip():
        raise UsageError(
            "The query is empty.", "Say what to look for; `open-memex list` shows the newest memories."
        )
    if not 1 <= limit <= MAX_LIMIT:
        raise UsageError(f"--limit {limit} is out of range.", f"Give a number from 1 to {MAX_LIMIT}.")
    if at is not None:
        return _search_then(ws, query, filters, limit, explain, at, progress)
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
        (*staleness(ws, freshness), *unseen(ws)),
    )


def _search_then(
    ws: Workspace,
    query: str,
    filters: Filters,
    limit: int,
    explain: bool,
    at: str,
    progress: Progress | None,
) -> Found:
    from openmemex import then  # not on the path of a plain search

    seen = then.look(ws, at, progress)
    judged = filters._replace(now=seen.now)
    cwd = _inside(ws.project.root, ws.cwd)
    result = then.answer(
        ws, seen, lambda: ws.index.search(query, [seen.home], judged, limit, explain=explain, cwd=cwd)
    )
    return Found(
        query,
        tuple(result.hits),
        result.total,
        seen.freshness,
        result.expression,
        result.hidden,
        seen.notices,
        seen,
    )


def _inside(root: str, folder: str) -> str:
    if not root:
        return ""
    relative = os.path.relpath(os.path.realpath(folder), os.path.realpath(root))
    return "" if relative == "." or relative.startswith("..") else relative.replace(os.sep, "/")

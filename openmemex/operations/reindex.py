"""Reindex: throw the index away and make it again from the files."""

from __future__ import annotations

from dataclasses import dataclass

from openmemex.index.rows import Unread
from openmemex.results import Progress
from openmemex.store import homes
from openmemex.workspace import Workspace


@dataclass(frozen=True)
class Reindexed:
    """How many memories the new index knows, and which files it could not read."""

    memories: int
    quarantined: tuple[Unread, ...]
    fresh: bool


def reindex(ws: Workspace, *, progress: Progress | None = None) -> Reindexed:
    """Rebuild the index of this computer: the places of here, and every other project's outbox."""
    ws.index.discard()
    ours = ws.homes()
    every = [*ours, *(home for home in homes.outbox_homes(ws.data_root) if home not in ours)]
    step = None if progress is None else lambda done, total: progress("Reading memories", done, total)
    freshness = ws.index.reconcile(every, ws.trees, progress=step)
    return Reindexed(
        ws.index.counts(every)["total"][""],
        tuple(ws.index.quarantined(every)),
        freshness.fresh,
    )

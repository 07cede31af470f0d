"""Scopes: every place on this computer that holds memories, and how many."""

from __future__ import annotations

from dataclasses import dataclass

from openmemex.errors import Refused
from openmemex.results import Progress
from openmemex.store import homes
from openmemex.workspace import Workspace


@dataclass(frozen=True)
class ScopeLine:
    """One place: whose it is, its key, its folder (of a branch: the repository's), how many memories, and
    whether a search from here looks into it."""

    kind: str
    scope: str
    key: str
    folder: str
    label: str
    count: int
    here: bool


def scopes(ws: Workspace, *, progress: Progress | None = None) -> list[ScopeLine]:
    """Personal, then what counts here, then the outboxes of other projects on this computer."""
    ours = ws.homes()
    others = [home for home in homes.outbox_homes(ws.data_root) if home not in ours]
    step = None if progress is None else lambda done, total: progress("Reading memories", done, total)
    ws.index.reconcile([*ours, *others], ws.trees, progress=step)
    lines = []
    for home in [*ours, *others]:
        count = ws.index.counts([home])["total"][""]
        label = home.ref.removeprefix("refs/heads/")
        lines.append(
            ScopeLine(home.kind, home.scope, home.scope_key, home.folder, label, count, home in ours)
        )
    if ws.project.source != "none":
        try:
            ws.repository_home()
        except Refused as error:
            lines.append(ScopeLine("repository", "project", ws.project.keys[0], error.message, "", 0, False))
    return lines

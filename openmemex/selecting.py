"""From the id, or part of one, that a person typed to the memory that is meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openmemex.errors import DecisionNeeded, NotFound, UsageError
from openmemex.memory.ids import normal_id_part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openmemex.index.rows import Row
    from openmemex.store.homes import Home
    from openmemex.workspace import Workspace

_SHOWN = 5


def select(ws: Workspace, text: str) -> Row:
    """The memory that `text` names: its id, or a prefix or suffix of 4 or more characters that fits one only.

    Call it after a reconcile. Where one id lies in several places, the repository's copy is given (then the
    outbox's, then a branch's). Raises UsageError for what can't be an id, NotFound, and DecisionNeeded with
    the candidates when several memories fit.
    """
    return copies(ws, text)[0]


def copies(ws: Workspace, text: str, homes: Sequence[Home] | None = None) -> list[Row]:
    """Every place that holds the one memory `text` names, best first; errors as `select`.

    `homes`: look there alone, not in those of here.
    """
    homes = ws.homes() if homes is None else homes
    part = normal_id_part(text)
    if part is None:
        raise UsageError(
            f"{_quoted(text)} is no memory id.",
            "An id has 26 letters and digits; 4 or more from its start or its end will do. "
            "`open-memex list` shows them.",
        )
    rows = ws.index.find(homes, part)
    if not rows:
        unreadable = [q for q in ws.index.quarantined(homes) if part in q.path.rpartition("/")[2]]
        if unreadable:
            bad = unreadable[0]
            line = f"line {bad.line}: " if bad.line else ""
            raise NotFound(
                f"{bad.path} can't be read: {line}{bad.reason}.",
                "Mend the file by hand; it was left as it is.",
            )
        raise NotFound(
            f"No memory here has the id {part}.", "`open-memex list --all` shows every memory of this place."
        )
    ids = sorted({row.id for row in rows})
    if len(ids) > 1:
        shown = ", ".join(ids[:_SHOWN]) + (f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else "")
        raise DecisionNeeded(
            f"{part} fits {len(ids)} memories: {shown}.", "Type more of the id that you mean."
        )
    return rows


def _quoted(text: str) -> str:
    # What was typed may be anything, a secret too; the finder is loaded for the sake of an error only.
    from openmemex.trust import secrets

    shown = secrets.mask(text).text
    return repr(shown if len(shown) <= 40 else shown[:40] + "…")

"""What operations give back when more than one of them gives it, and its shape for machines.

A search must start quickly, so this module imports nothing that costs time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from openmemex.trust.notices import Notice

if TYPE_CHECKING:
    from openmemex.index.rows import Hit, Row

__all__ = ["Notice", "Progress", "Written", "hit_json", "memory_json", "written_json"]

Progress = Callable[[str, int, int], None]
"""Called with what is going on, how much is done, and how much there is in all (0: not known yet)."""


class Written(NamedTuple):
    """What became of a write.

    `action` is created, duplicate, superseded, updated, unchanged or refused; `path` is relative to the
    repository or the data root, and empty when there is no file.
    """

    id: str
    action: str
    path: str
    notices: tuple[Notice, ...] = ()


def written_json(written: Written) -> dict[str, Any]:
    """The document that `add`, `supersede` and `edit` print with `--json`."""
    return {
        "id": written.id or None,
        "action": written.action,
        "path": written.path or None,
        "notices": [notice._asdict() for notice in written.notices],
    }


def memory_json(row: Row) -> dict[str, Any]:
    """A memory as every list and hit shows it with `--json`.

    Beyond the protocol's keys: `branch` names the branch that alone holds it (null: it is in a folder here),
    and `flagged` says that the file holds a secret in clear, which the index masks.
    """
    return {
        "id": row.id,
        "scope": row.scope,
        "scope_key": row.scope_key,
        "type": row.type,
        "role": row.role,
        "status": row.status,
        "review_state": row.review_state,
        "standing": row.standing,
        "importance": row.importance,
        "tags": list(row.tags),
        "source": row.source,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "path": row.rel_path,
        "summary": row.summary,
        "branch": row.place_label.removeprefix("on branch ") or None if row.place_kind == "branch" else None,
        "flagged": row.masked,
    }


def hit_json(hit: Hit) -> dict[str, Any]:
    """A search hit with `--json`: the memory, and its receipt."""
    return {
        **memory_json(hit.row),
        "score": round(hit.score, 4),
        "lane": hit.lane,
        "age_days": hit.age_days,
    }

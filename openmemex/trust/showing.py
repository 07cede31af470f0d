"""The values of a memory as they may be shown: plain, as JSON has them, with every secret masked."""

from __future__ import annotations

from typing import Any

from openmemex.memory.model import HistoryEntry, Link
from openmemex.trust import secrets


def shown_value(value: Any) -> Any:
    """`value` (of a field, known or unknown) as JSON has it, with the secrets in its texts masked."""
    if isinstance(value, str):
        return secrets.mask(value).text
    if isinstance(value, HistoryEntry):
        parts = (value.at, value.by, value.from_state, value.to_state, value.note)
        return dict(zip(("at", "by", "from", "to", "note"), map(shown_value, parts), strict=True))
    if isinstance(value, Link):
        return {"rel": shown_value(value.rel), "to": shown_value(value.to)}
    if isinstance(value, tuple | list):
        return [shown_value(part) for part in value]
    if isinstance(value, dict):
        return {str(name): shown_value(part) for name, part in value.items()}
    return value

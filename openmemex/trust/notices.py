"""What a writer is told of a write besides its result."""

from __future__ import annotations

from typing import NamedTuple


class Notice(NamedTuple):
    """Something that was done or left out on the way, for the writer to know. `kind` is one stable word."""

    kind: str
    text: str

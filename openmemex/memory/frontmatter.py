"""The codec of memory files: bytes to Memory and back, losing nothing.

Reading is lenient and typed by the table of fields (`reading`), writing is strict (`yaml_writer`), and
changing a file changes only the lines of the fields that changed (`rewriting`). The format:
docs/protocol.md, "A memory".
"""

from __future__ import annotations

import re

from openmemex.memory.fences import Unreadable, conflict_line
from openmemex.memory.model import FIELDS, REVIEW_FIELDS, HistoryEntry, Link, Memory
from openmemex.memory.reading import Document, Problem, parse
from openmemex.memory.rewriting import render, rewrite

__all__ = ["Document", "Problem", "Unreadable", "conflict_line", "parse", "render", "rewrite", "substance"]

_LINE_BREAK = re.compile(r"\r\n|\r")


def substance(memory: Memory) -> str:
    """A hash (sha256, hex) of what a review covers: every field but those that a review moves, and the body.

    Two memories with one substance say the same; line ends of the body and the spelling of the YAML don't
    count, unknown fields do.
    """
    # Reading and changing a file needs neither, and a merge driver has no time to load them.
    import hashlib
    import json

    values: dict[str, object] = {}
    for field in FIELDS:
        if field.name in REVIEW_FIELDS:
            continue
        value = memory.value(field.name)
        if isinstance(value, tuple):
            value = [item._asdict() if isinstance(item, HistoryEntry | Link) else item for item in value]
        values[field.name] = value
    values["body"] = _LINE_BREAK.sub("\n", memory.body)
    values["extra"] = memory.extra
    text = json.dumps(values, ensure_ascii=True, sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()

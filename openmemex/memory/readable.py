"""One memory as text for reviewers: what `git diff` and `git log -p` show of it (gitattributes(5)).

Each value stands on its own line, so that a diff names the one that changed; what says nothing is left out. A
reviewer must see whatever an agent could come to read, so nothing else is: unknown fields, comments, values
that were misread, the kind of line ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from openmemex.memory.fences import Parts, split
from openmemex.memory.model import FIELDS, SCHEMA_VERSION, HistoryEntry
from openmemex.memory.reading import Document, load, parse
from openmemex.memory.yaml_lines import quick_scan
from openmemex.memory.yaml_tree import Collection, Scalar

_WORDS = {
    "schema_version": "format version",
    "scope_key": "scope key",
    "project_name": "project",
    "tags": "tag",
    "aliases": "alias",
    "created_at": "made",
    "updated_at": "changed",
    "supersedes": "replaces",
    "superseded_by": "replaced by",
    "review_state": "review",
    "proposed_by": "proposed by",
    "approved_by": "approved by",
    "derived_from": "derived from",
    "review_note": "review note",
    "review_history": "review step",
    "canonical_ref": "see",
    "paths": "about",
    "valid_from": "valid from",
    "valid_until": "valid until",
    "expires_at": "expires",
    "links": "link",
}
# A value that is what a memory is anyway. (docs/protocol.md, "A memory")
_DEFAULTS = {
    "schema_version": SCHEMA_VERSION,
    "visibility": "private",
    "type": "fact",
    "role": "knowledge",
    "importance": "normal",
    "status": "active",
    "source": "user",
    "review_state": "draft",
}
_IN_NAMES = " .,@+'"
_COMMENT = re.compile(r"#[^\r\n]*")


def readable(raw: bytes, safe: Callable[[str], str]) -> str:
    """The memory in `raw`: its fields a line each, an empty line, its text as it is, with bare line feeds.

    `safe` makes of any text one line that shows all of it. Raises Unreadable for a file that is no memory.
    """
    document = parse(raw)
    parts = split(raw)
    lines = [f"{label}: {safe(value)}" for label, value in _facts(document, parts)]
    body = [safe(line) for line in re.split(r"\r\n|\n", parts.body)]
    return "\n".join([*lines, "", *body])


def _facts(document: Document, parts: Parts) -> Iterator[tuple[str, str]]:
    memory = document.memory
    misread = {problem.field for problem in document.problems}
    for field in FIELDS:
        label = _WORDS.get(field.name, field.name)
        value = memory.value(field.name)
        if field.name in misread:
            continue
        if field.kind == "list":
            yield from ((label, item) for item in value)
        elif field.kind == "history":
            yield from ((label, _step(step)) for step in value)
        elif field.kind == "links":
            yield from ((label, f"{_part(link.rel)} {link.to}") for link in value)
        elif value is not None and value != _DEFAULTS.get(field.name):
            yield label, str(value)
    for name, value in memory.extra.items():
        yield from _unknown(f"other field {_part(name)}", value)
    if misread:
        written = _as_written(parts, document.raw)
        for problem in document.problems:
            label = _WORDS.get(problem.field, problem.field)
            yield f"{label} as written", f"{written.get(problem.field, '')} [{problem.text}]"
    for comment in _comments(parts, document.raw):
        yield "comment", comment
    breaks = set(re.findall(r"\r\n|\n", parts.text))
    if "\r\n" in breaks:
        yield "line ends", "CRLF" if len(breaks) == 1 else "some CRLF, some LF"
    if parts.bom:
        yield "byte order mark", "yes"


def _step(step: HistoryEntry) -> str:
    by = "" if step.by is None else f" by {_part(step.by, _IN_NAMES)}"
    note = "" if step.note is None else f" ({step.note})"
    return f"{_part(step.at, ':')}{by}: {_part(step.from_state)} to {_part(step.to_state)}{note}"


def _part(text: str | None, more: str = "") -> str:
    """A text inside a line, in quotes where something in it could be taken for what stands around it."""
    if text is None:
        return "none"
    plain = text not in ("", "none") and all(char.isalnum() or char in "_-" or char in more for char in text)
    return text if plain else '"' + text.replace('"', '""') + '"'


def _unknown(label: str, value: Any) -> Iterator[tuple[str, str]]:
    """A field that this version does not know: a line for each text in it."""
    todo = [(label, value)]
    while todo:
        label, value = todo.pop()
        if isinstance(value, dict) and value:
            todo += reversed([(f"{label}.{_part(key)}", inner) for key, inner in value.items()])
        elif isinstance(value, list) and value:
            todo += reversed([(f"{label}[{number}]", inner) for number, inner in enumerate(value, 1)])
        elif isinstance(value, str):
            yield label, value if value[:1] not in ("(", '"', "") else _part(value)
        else:
            yield label, "(nothing)" if value is None else "(empty list)" if value == [] else "(no fields)"


def _as_written(parts: Parts, raw: bytes) -> dict[str, str]:
    """Each field's value as it stands in the file, on one line."""
    front = parts.text[parts.start : parts.end]
    pairs = load(raw).root.pairs
    ends = [key.start for key, _ in pairs[1:]] + [len(front)]
    return {
        key.value: " ".join(front[node.start : end].split())
        for (key, node), end in zip(pairs, ends, strict=True)
    }


def _comments(parts: Parts, raw: bytes) -> Iterator[str]:
    """The comments of the front matter: what stands behind a # where no value stands."""
    front = parts.text[parts.start : parts.end]
    if "#" not in front or quick_scan(parts.text, parts.start, parts.end) is not None:
        return
    spans: list[tuple[int, int]] = []
    todo: list[Any] = [load(raw).root]
    while todo:
        node = todo.pop()
        if isinstance(node, Collection):
            todo += [part for pair in node.pairs for part in pair] + node.items
        else:
            start = node.start
            if isinstance(node, Scalar) and node.style in ("|", ">"):
                # The header of a block of text may have a comment of its own.
                start = min(
                    x for x in (front.find("\n", start), front.find("\r", start), len(front)) if x >= 0
                )
            spans.append((start, node.end))
    done = 0
    for start, end in [*sorted(spans), (len(front), len(front))]:
        yield from (found[0] for found in _COMMENT.finditer(front, done, max(done, start)))
        done = max(done, end)

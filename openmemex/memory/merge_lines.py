"""From decided fields to bytes: lines are taken as they stand from the side that they came from.

What no side says (a joined list, a later time) is then written into those lines by `rewrite`, which reads
back what it wrote. So a line that nobody changed stays, and a line that one side changed is that side's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openmemex.errors import Refused
from openmemex.memory.fences import BOM, Unreadable
from openmemex.memory.merge_sides import ABSENT, SCOPE, Lines, Three, Unread, Version, field_name
from openmemex.memory.merge_values import Choice, same
from openmemex.memory.model import FIELD_BY_NAME
from openmemex.memory.reading import Document, parse
from openmemex.memory.rewriting import rewrite


def apply(three: Three, choices: Mapping[str, Choice]) -> bytes:
    """The file that says what was decided. Raises Refused when no file can (over the size limit, front matter
    that is not one field a line and holds unknown fields that differ).
    """
    ours = three.ours
    body = choices["body"].value
    reason = "its front matter is not one field a line"
    if all(version is None or version.lines is not None for version in three.versions):
        parts = ours.front.parts
        closing = parts.text[parts.end : parts.body_start]
        if body and not closing.endswith(("\n", "\r")):
            closing += parts.eol
        text = parts.text[: parts.start] + _front(three, choices) + closing + body
        raw = (BOM + text if parts.bom else text).encode()
        try:
            return _with_values(parse(raw, default_scope=SCOPE), choices)
        except (Unreadable, Refused) as error:
            reason = error.reason if isinstance(error, Unreadable) else error.message
    if any(_only_in_lines(choice, three) for choice in choices.values()):
        raise Refused(f"the two sides can't be joined ({reason})")
    return _with_values(ours.document, choices, body=body)


def _only_in_lines(choice: Choice, three: Three) -> bool:
    """Whether a value can only be taken as the lines that it stands in, and ours are others."""
    if choice.field in FIELD_BY_NAME or choice.field == "body":
        return isinstance(choice.value, Unread) and choice.side == "theirs"
    return not same(choice.field, choice.value, three.ours.value(choice.field))


def _with_values(document: Document, choices: Mapping[str, Choice], *, body: str | None = None) -> bytes:
    changes: dict[str, Any] = {}
    unread = {problem.field for problem in document.problems}
    extra = {field_name(name): value for name, value in document.memory.extra.items()}
    for name, choice in choices.items():
        if name == "body":
            continue
        if name not in FIELD_BY_NAME:
            if not same(name, extra.pop(name, ABSENT), choice.value):
                raise Refused(f"the field {name} would change its meaning")
        elif isinstance(choice.value, Unread):
            if name not in unread:
                raise Refused(f"the field {name} would change its meaning")
        elif name in unread or not same(name, document.memory.value(name), choice.value):
            changes[name] = choice.value
    if extra:
        raise Refused("an unknown field would come back")
    return rewrite(document, changes, body=body)


def _front(three: Three, choices: Mapping[str, Choice]) -> str:
    """The front matter's lines: each field's from where its value was taken, in ours' order; what theirs
    alone has stands where it stands there.
    """
    out = []
    for name in _names(three.ours, three.theirs):
        own, comments = _own_lines(name, choices[name], three)
        out.append(_above(name, three))
        out += [f"{comment}{three.ours.front.parts.eol}" for comment in comments]
        out.append(own)
    base = three.base.below if three.base else ""
    out.append(_text(base, three.ours.below, three.theirs.below))
    return "".join(out)


def _names(ours: Version, theirs: Version) -> list[str]:
    """Ours' fields in their order; those of theirs alone behind the one that they follow there."""
    known = ours.lines or {}
    behind: dict[str, list[str]] = {}
    last = ""
    for name in theirs.lines or ():
        if name in known:
            last = name
        else:
            behind.setdefault(last, []).append(name)
    names = behind.pop("", [])
    for name in known:
        names.append(name)
        names += behind.get(name, ())
    return names


def _own_lines(name: str, choice: Choice, three: Three) -> tuple[str, list[str]]:
    """The field's lines, and the comments that one side added to lines which were not taken."""
    base, ours, theirs = ("" if version is None else version.own_lines(name) for version in three.versions)
    if choice.side is not None:
        chosen = three.side(choice.side)
        own = chosen.own_lines(name) if chosen else ""
    elif theirs in (ours, base):
        own = ours
    else:
        own = theirs if base == ours or not ours else ours
    versions = [version for version in three.versions if version is not None]
    here = next((version.comments(name) for version in versions if version.own_lines(name) == own), [])
    known = {*here, *(three.base.comments(name) if three.base else ())}
    # Of a field that is gone the comments are too.
    added = [comment for version in versions[-2:] for comment in version.comments(name) if own]
    return own, [comment for comment in dict.fromkeys(added) if comment not in known]


def _above(name: str, three: Three) -> str:
    """The comments and blank lines above a field; what both sides changed has the lines of both."""
    return _text(*("" if version is None else _lines(version, name).above for version in three.versions))


def _lines(version: Version, name: str) -> Lines:
    return (version.lines or {}).get(name) or Lines("", "")


def _text(base: str, ours: str, theirs: str) -> str:
    if theirs in (ours, base):
        return ours
    if base == ours:
        return theirs
    known = {*base.splitlines(), *ours.splitlines()}
    return ours + "".join(
        line for line in theirs.splitlines(keepends=True) if line.rstrip("\r\n") not in known
    )

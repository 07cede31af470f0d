"""The file that a person finds in a conflict: merged fields merged, and both sides of every other between
markers.

It is never one side's text alone, and never a file that this program would read: a reader finds the markers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from openmemex.errors import OpenMemexError
from openmemex.memory.fences import BOM, Unreadable, fence_after, split
from openmemex.memory.merge_lines import apply
from openmemex.memory.merge_rules import decide
from openmemex.memory.merge_sides import Three, Version, in_one_form, read, with_base
from openmemex.memory.merge_values import Clash


class Labels(NamedTuple):
    """What stands behind the markers, for people: a branch, a commit."""

    base: str = "base"
    ours: str = "ours"
    theirs: str = "theirs"


_PLAIN: Final = Labels()
# As git sees lines: a lone carriage return ends none.
_LINES = re.compile(rb"[^\n]*\n|[^\n]+\Z")
_RUN = re.compile(rb"^(<+|>+|\|+|=+)(?=[ \t\r\n]|\Z)", re.MULTILINE)


def with_markers(
    base: bytes | None,
    ours: bytes | None,
    theirs: bytes | None,
    *,
    labels: Labels = _PLAIN,
    marker_size: int = 7,
    stem: str | None = None,
) -> bytes:
    """The file for a conflict, with markers as git's diff3 style has them; at least one block of them always.

    Fields in conflict and the differing middle of the body stand between markers. Where a side can't be read
    or is gone, the differing middle of the whole file does. Markers are longer than `marker_size` where the
    texts hold lines that look like markers of that size.
    """
    size = _marker_size((base, ours, theirs), max(marker_size, 7))
    marks = _Marks(labels, size)
    try:
        raw = _by_field(base, ours, theirs, marks, stem)
    except OpenMemexError:
        raw = None
    return raw if raw is not None and _is_conflict(raw) else _whole(base, ours, theirs, marks)


def text_with_markers(
    base: str | None, ours: str, theirs: str, *, labels: Labels = _PLAIN
) -> tuple[str, int]:
    """One text of three, with the differing middle between markers, and how long these are."""
    texts = [None if text is None else text.encode("utf-8", "surrogatepass") for text in (base, ours, theirs)]
    size = _marker_size(texts, 7)
    raw = _middle(texts[0], texts[1] or b"", texts[2] or b"", _Marks(labels, size), b"\n")
    return raw.decode("utf-8", "surrogatepass"), size


def holds_markers(text: str, size: int) -> bool:
    """Whether a text that a person edited still has one of the markers of this size."""
    return any(len(run) == size for run in _RUN.findall(text.encode("utf-8", "surrogatepass")))


class _Marks(NamedTuple):
    labels: Labels
    size: int

    def block(self, base: bytes, ours: bytes, theirs: bytes, eol: bytes) -> bytes:
        """The three texts between markers, each marker at the start of a line."""
        out = []
        for sign, label, text in (
            (b"<", self.labels.ours, ours),
            (b"|", self.labels.base, base),
            (b"=", "", theirs),
            (b">", self.labels.theirs, b""),
        ):
            words = " ".join(label.split()).encode("utf-8", "replace")
            out.append(sign * self.size + (b" " + words if words else b"") + eol + text)
            if text and not text.endswith(b"\n"):
                out.append(eol)
        return b"".join(out)


def _by_field(
    base: bytes | None, ours: bytes | None, theirs: bytes | None, marks: _Marks, stem: str | None
) -> bytes | None:
    """None where the conflict is not one of fields."""
    if ours is None or theirs is None:
        return None
    formed = in_one_form(base, ours, theirs)
    three = with_base(formed[0], read(formed[1], stem), read(formed[2], stem), stem)
    choices, clashes = decide(three, {})
    if not clashes or three.ours.memory.id != three.theirs.memory.id:
        return None
    merged = read(apply(three, choices), stem)
    if merged.lines is None or any(
        version is not None and version.lines is None for version in three.versions
    ):
        return None
    parts = merged.front.parts
    eol = parts.eol.encode()
    front = _front(merged, three, clashes, marks, eol)
    body = parts.body.encode()
    if any(clash.conflict.field == "body" for clash in clashes):
        bodies = [version.memory.body.encode() if version else b"" for version in three.versions]
        body = _middle(bodies[0] if three.base else None, bodies[1], bodies[2], marks, eol)
    closing = parts.text[parts.end : parts.body_start].encode()
    if not closing.endswith(b"\n"):
        closing += eol
    head = (BOM if parts.bom else "") + parts.text[: parts.start]
    return head.encode() + front + closing + body


def _front(merged: Version, three: Three, clashes: Sequence[Clash], marks: _Marks, eol: bytes) -> bytes:
    """The merged front matter's lines, with those of the fields in conflict between markers."""
    blocks: dict[str, bytes] = {}
    for clash in clashes:
        for name in clash.covers:
            base, ours, theirs = (
                b"" if version is None else version.own_lines(name).encode() for version in three.versions
            )
            if ours != theirs:
                blocks[name] = marks.block(base, ours, theirs, eol)
    out: list[bytes] = []
    for name, (above, own) in (merged.lines or {}).items():
        out += [above.encode(), blocks.pop(name, own.encode())]
    # What only the other side has comes last: the order of fields means nothing.
    return b"".join([*out, *blocks.values(), merged.below.encode()])


def _middle(base: bytes | None, ours: bytes, theirs: bytes, marks: _Marks, eol: bytes) -> bytes:
    """Common first and last lines as they are, the differing middle between markers.

    A block never begins inside a code fence, where a reader would take it for an example: then it begins
    above the fence.
    """
    texts = [_LINES.findall(text) for text in (ours, theirs, *(() if base is None else (base,)))]
    shortest = min(len(lines) for lines in texts)
    head = same = 0
    fence = ""
    # A last line without a line end stays within the block: a marker begins a line.
    while same < shortest and all(lines[same] == texts[0][same] for lines in texts):
        if not texts[0][same].endswith(b"\n"):
            break
        fence = fence_after(texts[0][same].decode("utf-8", "replace").rstrip("\r\n"), fence)
        same += 1
        if not fence:
            head = same
    tail = 0
    while tail < shortest - head and all(lines[-1 - tail] == texts[0][-1 - tail] for lines in texts):
        tail += 1
    middles = [b"".join(lines[head : len(lines) - tail]) for lines in texts]
    block = marks.block(middles[2] if base is not None else b"", middles[0], middles[1], eol)
    first, last = texts[0][:head], texts[0][len(texts[0]) - tail :]
    return b"".join([*first, block, *last])


def _whole(base: bytes | None, ours: bytes | None, theirs: bytes | None, marks: _Marks) -> bytes:
    """The differing middle of whole files, whatever they hold."""
    eol = (
        b"\r\n"
        if all(b"\r\n" in side for side in (ours, theirs) if side is not None) and (ours or theirs)
        else b"\n"
    )
    raw = _middle(base, ours or b"", theirs or b"", marks, eol)
    if _is_conflict(raw):
        return raw
    return marks.block(base or b"", ours or b"", theirs or b"", eol)


def _is_conflict(raw: bytes) -> bool:
    """Whether a reader refuses it."""
    try:
        split(raw)
    except Unreadable:
        return True
    return False


def _marker_size(versions: Sequence[bytes | None], least: int) -> int:
    """The smallest size from `least` on that no line of the texts looks like a marker of."""
    taken = {len(run) for raw in versions if raw for run in _RUN.findall(raw)}
    while least in taken:
        least += 1
    return least

"""The outermost cut of a memory file: BOM, fences, front matter, body; and what makes a file no memory at
all.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from openmemex.errors import OpenMemexError
from openmemex.memory.model import MAX_FILE_BYTES

BOM = "\ufeff"
_LINE_BREAK = re.compile(r"\r\n|\n|\r")
# The opening fence is the first line that is not blank. `---` may be followed by blanks, by nothing else.
_OPENING = re.compile(r"(?:[ \t]*(?:\r\n|\n|\r))*---[ \t]*(\r\n|\n|\r)")
# The closing fence is the first line of nothing but `---`, or `...`, which also ends a YAML document and
# which pandoc's front matter may end with. Inside YAML neither can stand at the start of a line.
_CLOSING = re.compile(r"[\r\n](?:---|\.\.\.)[ \t]*(?:\r\n|\n|\r|\Z)")

# What git holds instead of a file that Git LFS keeps elsewhere (the specification of Git LFS); the second is
# the address that its first releases wrote.
_POINTER = ("version https://git-lfs.github.com/spec/", "version https://hawser.github.com/spec/")
_MARKERS = ("<<<<<<<", ">>>>>>>", "|||||||")
# Git writes seven of a sign, or more where the attribute conflict-marker-size says so (gitattributes).
_MARKER_LINE = re.compile(r"(<{7,}|>{7,}|\|{7,}|={7,})(?:[ \t]|\Z)")
# CommonMark, "Fenced code blocks": up to three blanks, three or more of one character; a backtick fence has
# no backtick in its info string.
_FENCE = re.compile(r" {0,3}(?:(`{3,})([^`]*)|(~{3,})(.*))\Z")


class Unreadable(OpenMemexError):
    """A file that can't be read as a memory: why (`reason`) and where (`line`, from 1; 0 when nowhere in
    particular).

    Whoever knows the file's name adds it.
    """

    def __init__(self, reason: str, line: int = 0, hint: str = "") -> None:
        super().__init__(f"line {line}: {reason}" if line else reason, hint)
        self.reason = reason
        self.line = line


class Parts(NamedTuple):
    """A file's text without its BOM, and where in it the front matter and the body stand."""

    text: str
    bom: bool
    start: int
    """Where the front matter's own text begins: after the opening fence's line."""
    end: int
    """Where the closing fence's line begins."""
    body_start: int
    eol: str
    """The line end after the opening fence: the one that new lines get."""

    @property
    def body(self) -> str:
        """The text after the closing fence, exactly as it stands."""
        return self.text[self.body_start :]


def line_at(text: str, index: int) -> int:
    """The number, from 1, of the line that holds `text[index]`; a lone carriage return ends a line too."""
    return len(_LINE_BREAK.findall(text, 0, index)) + 1


def split(raw: bytes) -> Parts:
    """Cut a file at its fences.

    Raises Unreadable: over the size limit, not UTF-8, unresolved conflict markers, no or unclosed front
    matter, or only a pointer to a text elsewhere.
    """
    if len(raw) > MAX_FILE_BYTES:
        raise Unreadable(f"over the limit of {MAX_FILE_BYTES >> 20} MiB ({len(raw)} bytes)")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = line_at(raw[: error.start].decode("utf-8"), error.start)
        raise Unreadable("not UTF-8", line, "Save the file as UTF-8.") from None
    bom = text.startswith(BOM)
    if bom:
        text = text[1:]
    opening = _OPENING.match(text)
    closing = _CLOSING.search(text, opening.end() - 1) if opening else None
    if any(marker in text for marker in _MARKERS):
        line = _conflict_line(text, closing.end() if closing else 0)
        if line:
            raise Unreadable(
                "unresolved conflict markers",
                line,
                "Settle it (open-memex resolve), or remove the marker lines.",
            )
    if opening is None and text.startswith(_POINTER):
        raise Unreadable(
            "stored as a Git LFS pointer, its text is not in git",
            0,
            "`git lfs pull` brings the text; `open-memex init --git` keeps new versions out of Git LFS.",
        )
    if opening is None:
        raise Unreadable("no front matter: the file does not begin with a line ---", 1)
    if closing is None:
        raise Unreadable(
            "front matter is not closed: there is no second line ---", line_at(text, opening.end() - 1)
        )
    return Parts(text, bom, opening.end(), closing.start() + 1, closing.end(), opening[1])


def conflict_line(body: str) -> int:
    """The first line, from 1, of `body` that is an unresolved conflict's marker; 0 when there is none.

    Markers inside a closed code fence are an example, not a conflict. A line of seven `=` alone is a
    heading's underline, a row of seven `|` an empty table row: they count only together with another marker.
    """
    return _conflict_line(body, 0) if any(marker in body for marker in _MARKERS) else 0


def fence_after(line: str, fence: str) -> str:
    """The sign of the code fence that is open after `line`, when `fence` was open before it; "" for none."""
    mark = _FENCE.match(line)
    if mark is None:
        return fence
    run = mark[1] or mark[3]
    if not fence:
        return run
    rest = mark[2] if mark[1] else mark[4]
    closes = run[0] == fence[0] and len(run) >= len(fence) and not rest.strip()
    return "" if closes else fence


def _conflict_line(text: str, body_start: int) -> int:
    lines = _LINE_BREAK.split(text)
    front = line_at(text, body_start) - 1
    for number, line in enumerate(lines[:front], 1):
        if _MARKER_LINE.match(line):
            return number
    fence = ""
    fenced: list[int] = []  # markers in a fence that has not been closed yet
    ancestor = divider = 0
    longer: dict[int, tuple[int, bool]] = {}  # markers of unusual length: where they began, whether divided
    found = 0
    for number, line in enumerate(lines[front:], front + 1):
        before = fence
        fence = fence_after(line, before)
        if fence != before:
            if before:
                fenced.clear()
            continue
        marker = _MARKER_LINE.match(line)
        if marker is None:
            continue
        sign = line[0]
        size = len(marker[1])
        if size > 7:
            # Quoted mail and rules of text look like these: only all of them together are a conflict.
            began, divided = longer.get(size, (0, False))
            if sign == "<" and not fence:
                longer[size] = (number, False)
            elif sign == "=" and began:
                longer[size] = (began, True)
            elif sign == ">" and divided:
                found = min(found or began, began)
            continue
        if fence:
            if sign in "<>":
                fenced.append(number)
            continue
        if sign == "<" or (sign == ">" and (len(line.rstrip()) > 7 or divider)):
            found = found or number
        elif sign == "|":
            ancestor = ancestor or number
        elif sign == "=":
            divider = number
            if ancestor:
                found = found or ancestor
    # A fence that nothing closes is none: a conflict that cut one in two must not hide behind it.
    return found or (fenced[0] if fenced and fence else 0)

"""Where the text of a memory comes from: an argument, stdin or a file."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from openmemex.cli import values
from openmemex.cli.session import path_given
from openmemex.cli.values import shown
from openmemex.errors import OpenMemexError, UsageError
from openmemex.memory.model import MAX_FILE_BYTES, now_text, parse_time

_IN = re.compile(r"\+?(\d{1,5})\s*([hdwmy])", re.IGNORECASE)
_NAMED = 10
_DAYS = {"d": 1, "w": 7, "m": 30, "y": 365}


class Note(NamedTuple):
    """A text, and what a note's front matter says of it (by the names of a memory's fields)."""

    text: str
    fields: dict[str, Any]
    notices: tuple[str, ...] = ()


def from_stdin() -> str:
    """All of stdin as text; raises UsageError when there is none, OpenMemexError when it is no text."""
    if sys.stdin is None or sys.stdin.closed:
        raise UsageError("`-` reads the text from stdin, which is closed.", "Pipe the text in.")
    raw = getattr(sys.stdin, "buffer", None)
    if raw is None:
        return as_text(sys.stdin.read(MAX_FILE_BYTES + 1).encode("utf-8", "surrogatepass"), "stdin")
    return as_text(raw.read(MAX_FILE_BYTES + 1), "stdin")


def from_file(typed: str) -> Note:
    """The text of a file, and its front matter's tags, type, aliases and importance where it has one.

    Raises OpenMemexError when the file is not there, no file, too large or no text.
    """
    path = path_given(typed) or ""
    if "\0" in path or not path:
        raise UsageError("--file needs the name of a file.", "Give its path.")
    try:
        with open(path, "rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise OpenMemexError(
            f"{path} can't be read: {error.strerror}.",
            "Name a text file with --file, or pipe it into `add -`.",
        ) from error
    from openmemex.memory.frontmatter_handler import read_note

    note = read_note(as_text(raw, path))
    return _note(note.metadata, note.body)


def _note(metadata: dict[str, str | list[str]], body: str) -> Note:
    """What of a note's front matter a memory has a field for; the rest is named in a notice."""
    fields: dict[str, Any] = {}
    unused = []
    for key, value in metadata.items():
        name = key.strip().lower()
        texts = [value] if isinstance(value, str) else value
        if name in ("tags", "tag", "keywords"):
            fields["tags"] = (*fields.get("tags", ()), *values.tags(text.replace("#", "") for text in texts))
        elif name in ("aliases", "alias"):
            fields["aliases"] = (*fields.get("aliases", ()), *texts)
        elif name in ("type", "importance") and len(texts) == 1 and _known(name, texts[0]):
            fields[name] = _known(name, texts[0])
        else:
            unused.append(key)
    if not unused:
        return Note(body, fields)
    named = ", ".join(unused[:_NAMED]) + (f" and {len(unused) - _NAMED} more" if len(unused) > _NAMED else "")
    return Note(body, fields, (f"of the file's front matter this was not used: {named}",))


def _known(name: str, text: str) -> str:
    try:
        return values.memory_type(text) if name == "type" else values.importance(text)
    except UsageError:
        return ""


def as_text(raw: bytes, where: str) -> str:
    """The text of `raw`; raises OpenMemexError naming `where` when it is too large, binary or not UTF-8."""
    if len(raw) > MAX_FILE_BYTES:
        raise OpenMemexError(
            f"{where} is larger than {MAX_FILE_BYTES >> 20} MiB.",
            "A memory is one thing to know: save the part that matters, and point to the rest with --ref.",
        )
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in raw:
        raise OpenMemexError(f"{where} is no UTF-8 text.", "Save it as UTF-8, without binary content.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OpenMemexError(
            f"{where} is no UTF-8 text: byte {error.start + 1} can't be read.",
            "Convert it to UTF-8 (`iconv -t UTF-8` does that) and try again.",
        ) from error


def moment(typed: str) -> str:
    """--expires as a date or a time, of a date, a time or a span from now (30d); "" for `never`."""
    text = typed.strip()
    if text.lower() in ("never", ""):
        return ""
    span = _IN.fullmatch(text)
    try:
        if span is not None:
            number, unit = int(span[1]), span[2].lower()
            ahead = timedelta(hours=number) if unit == "h" else timedelta(days=number * _DAYS[unit])
            return now_text(datetime.now(UTC) + ahead)
        when = parse_time(text)
        if when is not None:
            # A day stays a day: it counts to its end.
            return text if len(text) == len("2026-12-31") else now_text(when)
    except (OverflowError, ValueError):
        pass
    raise UsageError(
        f"--expires can't be {shown(typed)}.",
        "Give a date (2026-12-31), an RFC 3339 time, a span from now such as 30d or 12w, or never.",
    )

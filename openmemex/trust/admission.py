"""The one door for every text that is stored: values checked, private parts and secrets out, doubles found.

Pure: what it must know of the stored memories comes in as values (docs/protocol.md, "Writing a memory").
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from openmemex.errors import Refused, UsageError
from openmemex.memory.model import (
    IMPORTANCES,
    MAX_ALIASES,
    MAX_TAGS,
    RESERVED_SCOPES,
    RETIRED_TYPES,
    ROLES,
    SCOPES,
    SOURCES,
    TYPES,
    Memory,
    normal_tags,
    now_text,
    parse_time,
)
from openmemex.trust import secrets
from openmemex.trust.notices import Notice

MAX_CONTENT_BYTES = 256 << 10
"""A memory is a note. Files of up to 1 MiB are still read."""
MAX_TAG_LENGTH = 64
MAX_ALIAS_LENGTH = 200
MAX_PATHS = 32
MAX_LINE_LENGTH = 1000
"""Of a reference, a path or a review note."""

SIMILAR = 0.8
"""Jaccard index of the tokens from which on a writer is told of the other memory."""
ECHO = 0.28
ECHO_SECONDS = 600
"""What an agent writes within this time of a person's own words, sharing this much with them, is those words
again. Both numbers were measured on real sessions: re-saves share 0.29 to 0.36 (docs/protocol.md)."""

REDACTED = "[REDACTED]"
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")


@dataclass(frozen=True)
class Draft:
    """A text and its fields as the writer gave them, nothing checked yet.

    An empty text or None means the default; so does None for a list, while an empty list is an empty list.
    """

    content: str
    scope: str = ""
    type: str = ""
    role: str = ""
    importance: str = ""
    tags: Sequence[str] | None = None
    aliases: Sequence[str] | None = None
    source: str = ""
    canonical_ref: str | None = None
    paths: Sequence[str] | None = None
    expires_at: str | None = None


@dataclass(frozen=True)
class Screened:
    """A draft that may be stored as it is: its values are allowed, nothing private or secret is in it."""

    content: str
    scope: str
    type: str
    role: str
    importance: str
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    source: str
    canonical_ref: str | None
    paths: tuple[str, ...]
    expires_at: str | None
    notices: tuple[Notice, ...] = ()


class Neighbour(Protocol):
    """A stored memory near the new text: active, not rejected, of its scope; `tokens` as the index cuts."""

    @property
    def id(self) -> str: ...
    @property
    def text_key(self) -> str: ...
    @property
    def tokens(self) -> frozenset[str]: ...
    @property
    def source(self) -> str: ...
    @property
    def created_at(self) -> str: ...


@dataclass(frozen=True)
class Admitted:
    """The text is new: store it."""

    screened: Screened
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True)
class Duplicate:
    """The same text is stored as `id`: nothing is written."""

    id: str
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True)
class Blocked:
    """Nothing is written: it says again what `id` says. `notices` hold the reason and what to do."""

    id: str
    reason: str
    hint: str
    notices: tuple[Notice, ...] = ()


def screen(draft: Draft, *, capture_aliases: bool = True, stored: Memory | None = None) -> Screened:
    """Check the values of `draft`, take out what is private, mask what is secret, in every text of it.

    `capture_aliases` off leaves aliases out. `stored` is the memory that the draft changes or replaces: lists
    that are as they are there keep a length that is beyond today's limits, and the text keeps its line ends.

    The text gets LF line ends, no blank lines around it, and one line end behind it. It may have 1 to 262,144
    bytes. Tags (32 of 64 characters), aliases (4 of 200), paths (32 of 1000) and the reference (1000) are cut
    with a notice. Raises UsageError, saying what is allowed, for a value that is not; Refused when nothing of
    the text is left to be stored, or the scope can't be written.
    """
    cleaner = _Cleaner()
    scope = _scope(draft.scope)
    kind = _type(draft.type, cleaner)
    role = _choice(draft.role, ROLES, "role", "knowledge")
    importance = _choice(draft.importance, IMPORTANCES, "importance", "normal")
    source = _choice(draft.source, SOURCES, "source", "user")
    expires_at = _time(draft.expires_at)
    content = _content(draft.content, cleaner, stored)
    tags = cleaner.lines(draft.tags, stored.tags if stored else ())
    aliases = cleaner.lines(draft.aliases, stored.aliases if stored else ())
    paths = cleaner.lines(draft.paths, stored.paths if stored else ())
    reference = cleaner.line(
        draft.canonical_ref or "", stored is not None and draft.canonical_ref == stored.canonical_ref
    )
    if aliases and not capture_aliases and not (stored and stored.aliases == tuple(draft.aliases or ())):
        aliases = []
        cleaner.tell("aliases", "aliases were left out: the setting captureAliases is off")
    return Screened(
        content=content,
        scope=scope,
        type=kind,
        role=role,
        importance=importance,
        tags=cleaner.cut("tags", normal_tags(tags), MAX_TAGS, MAX_TAG_LENGTH, stored.tags if stored else ()),
        aliases=cleaner.cut(
            "aliases", aliases, MAX_ALIASES, MAX_ALIAS_LENGTH, stored.aliases if stored else ()
        ),
        source=source,
        canonical_ref=next(iter(cleaner.cut("canonical_ref", [reference], 1, MAX_LINE_LENGTH, ())), None),
        paths=cleaner.cut("paths", paths, MAX_PATHS, MAX_LINE_LENGTH, stored.paths if stored else ()),
        expires_at=expires_at,
        notices=cleaner.all_notices(),
    )


def screen_line(text: str) -> tuple[str, tuple[Notice, ...]]:
    """Any other text that is stored or shown (a review note, a name), on one line, private parts and secrets
    out, at most 1000 characters. Raises UsageError for a text that can't be stored as UTF-8."""
    cleaner = _Cleaner()
    line = cleaner.line(text, False)
    return next(iter(cleaner.cut("note", [line], 1, MAX_LINE_LENGTH, ())), ""), cleaner.all_notices()


def judge(
    screened: Screened,
    neighbours: Iterable[Neighbour],
    *,
    tokens: frozenset[str],
    now: str,
    replaces: bool = False,
) -> Admitted | Duplicate | Blocked:
    """Whether the text is new among `neighbours`.

    `tokens` are its own, cut as the index cuts; `now` is an RFC 3339 time. The same text (`text_key`) is a
    Duplicate. A `tool` or `inference` text that shares at least ECHO with what a person had saved within the
    last ten minutes is Blocked, unless it `replaces` a memory: that is the way out that is named. From
    SIMILAR on the writer is told. Sharing is the Jaccard index |a and b| / |a or b|.
    """
    known = list(neighbours)
    key = text_key(screened.content)
    for one in known:
        if one.text_key == key:
            said = f"the same text is stored already as {one.id}; nothing was written"
            return Duplicate(one.id, (Notice("duplicate", said),))
    shared = sorted(((_jaccard(tokens, one.tokens), one) for one in known), key=lambda s: (-s[0], s[1].id))
    if screened.source in ("tool", "inference") and not replaces:
        for share, one in shared:
            if share >= ECHO and one.source in ("keyword", "user") and _just_before(one.created_at, now):
                return _blocked(one.id)
    notices = tuple(
        Notice("similar", f"much the same as {one.id}; to replace that one: open-memex supersede {one.id}")
        for share, one in shared[:3]
        if share >= SIMILAR
    )
    return Admitted(screened, notices)


def text_key(text: str) -> str:
    """The key that texts share which say the same letter by letter: NFKC, case folded, blanks collapsed."""
    normal = " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).split())
    return hashlib.sha256(normal.encode("utf-8", "surrogatepass")).hexdigest()[:32]


# --- duplicates ---


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    both = len(one & other)
    return both / (len(one) + len(other) - both) if both else 0.0


def _just_before(created_at: str, now: str) -> bool:
    created, present = parse_time(created_at), parse_time(now)
    # A clock that was set back in between makes the difference negative: as recent as can be.
    return created is not None and present is not None and (present - created).total_seconds() <= ECHO_SECONDS


def _blocked(memory_id: str) -> Blocked:
    reason = f"{memory_id} holds what was said here in the last ten minutes, and this mostly repeats it"
    hint = (
        "save only what is new, or replace that memory: the tool memory_supersede, "
        f"or open-memex supersede {memory_id} TEXT"
    )
    return Blocked(memory_id, reason, hint, (Notice("refused", f"{reason}; {hint}"),))


# --- values ---


def _choice(given: str, allowed: Sequence[str], name: str, default: str) -> str:
    value = given.strip().lower()
    if not value:
        return default
    if value not in allowed:
        raise UsageError(f"that is no {name}", f"allowed: {', '.join(allowed)}")
    return value


def _scope(given: str) -> str:
    value = given.strip().lower()
    if value in RESERVED_SCOPES:
        raise UsageError(f"the scope {value} is reserved for later", "allowed: personal, project")
    if value == "org":
        raise Refused(
            "memories of the organisation can be read, not written",
            "save it for the project: --scope project",
        )
    if value not in SCOPES:
        raise UsageError("that is no scope", "allowed: personal, project")
    return value


def _type(given: str, cleaner: _Cleaner) -> str:
    value = given.strip().lower()
    if value in RETIRED_TYPES:
        heir = RETIRED_TYPES[value]
        cleaner.tell("type", f"the type {value} is retired; saved as {heir}")
        return heir
    return _choice(value, TYPES, "type", "fact")


def _time(given: str | None) -> str | None:
    if given is None or not given.strip():
        return None
    moment = parse_time(given)
    if moment is None:
        raise UsageError("that is no time", "write it as 2026-12-31 or 2026-12-31T18:00:00Z")
    if _DAY.match(given.strip()) and moment.year < 9999:
        moment += timedelta(days=1, seconds=-1)  # whoever names a day as the end means all of it
    return now_text(moment)


def _content(given: str, cleaner: _Cleaner, stored: Memory | None) -> str:
    unchanged = stored is not None and _plain(given) == _plain(stored.body)
    text = given.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        text = text.replace("\0", "")
        cleaner.tell("text", "NUL characters were taken out")
    if not text.strip() and not unchanged:
        raise UsageError("there is no text to save", "give it as an argument, with --file, or - for stdin")
    size = len(_utf8(text))
    if size > MAX_CONTENT_BYTES and not unchanged:
        raise UsageError(
            f"the text has {size:,} bytes",
            f"at most {MAX_CONTENT_BYTES:,} are allowed: save what matters of it",
        )
    clean = cleaner.text(text, unchanged).strip("\n")
    if not unchanged and not clean.replace(REDACTED, "").strip():
        raise Refused("nothing was saved: all of the text is private", "put <private> around less of it")
    if unchanged and clean == text.strip("\n") and stored is not None:
        return stored.body
    line_end = "\r\n" if stored is not None and "\r\n" in stored.body else "\n"
    return (_without_blank_ends(clean) + "\n").replace("\n", line_end)


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def _without_blank_ends(text: str) -> str:
    """Without blank lines around it; the indentation of its first line stays, for it may be code."""
    return re.sub(r"\A(?:[^\S\n]*\n)+", "", text).rstrip()


def _utf8(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(
            "the text holds bytes that are no UTF-8 (half of a surrogate pair)", "give it as valid UTF-8 text"
        ) from None


class _Cleaner:
    """Takes private parts and secrets out of the texts of one draft, and counts what it took out."""

    def __init__(self) -> None:
        self._notices: list[Notice] = []
        self._masked: list[secrets.Span] = []
        self._masked_before: list[secrets.Span] = []
        self._private = 0

    def tell(self, kind: str, text: str) -> None:
        if Notice(kind, text) not in self._notices:
            self._notices.append(Notice(kind, text))

    def text(self, text: str, was_stored: bool) -> str:
        _utf8(text)
        public, count, stray = redact(text)
        self._private += count
        if stray:
            self.tell(
                "private",
                "a </private> without its <private> was taken out: check that nothing private is in the text",
            )
        masked, spans = secrets.mask(public)
        (self._masked_before if was_stored else self._masked).extend(spans)
        return masked

    def line(self, text: str, was_stored: bool) -> str:
        clean = self.text(text, was_stored)
        return " ".join(clean.replace("\0", " ").split())

    def lines(self, given: Sequence[str] | None, stored: tuple[str, ...]) -> list[str]:
        """Each text on one line; empty, doubled and wholly private ones are dropped."""
        found = [self.line(text, text in stored) for text in given or ()]
        return list(dict.fromkeys(text for text in found if text and text != REDACTED))

    def cut(
        self, name: str, texts: Iterable[str], most: int, longest: int, stored: tuple[str, ...]
    ) -> tuple[str, ...]:
        """At most `most` texts of `longest` characters; what is stored already is not cut again."""
        kept = [text for text in texts if text]
        if set(kept) <= set(stored):
            return tuple(kept)
        if len(kept) > most:
            self.tell(name, f"{name}: only the first {most} of {len(kept)} were kept")
        result = [
            text if text in stored or len(text) <= longest else text[:longest].rstrip()
            for text in kept[:most]
        ]
        if result != kept[:most]:
            self.tell(name, f"{name}: cut to {longest} characters")
        return tuple(dict.fromkeys(result))

    def all_notices(self) -> tuple[Notice, ...]:
        notices = list(self._notices)
        if self._private:
            parts = "1 private part" if self._private == 1 else f"{self._private} private parts"
            notices.append(Notice("private", f"{parts} left out"))
        if self._masked:
            notices.append(Notice("masked", f"masked: {secrets.kinds_text(self._masked)}"))
        if self._masked_before:
            kinds = secrets.kinds_text(self._masked_before)
            notices.append(
                Notice(
                    "stored-secret",
                    f"the stored memory holds {kinds} in clear; edit its text to have them masked",
                )
            )
        return tuple(notices)


# --- private parts ---

# An opening tag that lacks its own end (`<private secret</private>`) opens all the same, where no blank makes
# it a comparison (`cost < private cloud`); a closing one must be whole.
_TAG = re.compile(
    r"[<＜]\s*([/／]?)\s*private(?:[\s/／][^<>＜＞]*)?[>＞]|[<＜]private(?=[\s/／<＜]|\Z)",
    re.IGNORECASE | re.ASCII,
)


def redact(text: str) -> tuple[str, int, bool]:
    """`text` with each `<private>…</private>` replaced by [REDACTED], how many, and whether a closing tag
    stood alone.

    Fails closed: a part that is not closed goes to the end of the text, a nested one to the matching end, in
    any case and with blanks in the tags, in code as well. A closing tag that stands alone is taken out; the
    text before it stays.
    """
    pieces: list[str] = []
    at = depth = count = 0
    stray = False
    for tag in _TAG.finditer(text):
        closing = bool(tag[1])
        if not closing:
            if depth == 0:
                pieces += [text[at : tag.start()], REDACTED]
                count += 1
            depth += 1
        elif depth == 0:
            pieces.append(text[at : tag.start()])
            at = tag.end()
            stray = True
        else:
            depth -= 1
            at = tag.end()
    if depth == 0:
        pieces.append(text[at:])
    return "".join(pieces), count, stray

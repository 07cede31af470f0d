"""Where secrets stand in a text, and the text without them: one finder for all that is stored or shown.

Nothing here ever asks a server whether a value is live, and no comment in the text switches a rule off.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from openmemex.trust.rules import RULES, Rule, is_masked, kinds_of


class Span(NamedTuple):
    """One secret: `text[start:end]`, and what it is ("GitHub token"), fit to be told to a person."""

    start: int
    end: int
    kind: str


class Masked(NamedTuple):
    """A text with its secrets masked, and where they stood."""

    text: str
    spans: list[Span]


_compiled: dict[str, re.Pattern[str]] = {}


def find(text: str) -> list[Span]:
    """The secrets in `text`: sorted, not overlapping, on the original text.

    Overlapping finds become one span, so the order of the rules does not matter. What masking leaves is never
    found again: `find(mask(text).text) == []`.
    """
    spans = _merged(_found(text))
    while spans:
        # A masked text may look like something that it did not look like before: then that goes as well.
        more = _found(_without(text, spans))
        grown = _merged([*spans, *more]) if more else spans
        if grown == spans:
            break
        spans = grown
    return spans


def mask(text: str) -> Masked:
    """`text` with every secret masked in place: same length, line breaks kept.

    Of a secret of n characters the first min(4, n // 3) stay, the others become `x` (docs/protocol.md,
    "Writing a memory"). Masking twice changes nothing.
    """
    spans = find(text)
    return Masked(_without(text, spans) if spans else text, spans)


def kinds_text(spans: Iterable[Span]) -> str:
    """The spans for people, without any of their text: "2 secrets (AWS access key, GitHub token)"."""
    kinds = [span.kind for span in spans]
    noun = "secret" if len(kinds) == 1 else "secrets"
    return f"{len(kinds)} {noun} ({', '.join(sorted(set(kinds)))})"


def _found(text: str) -> list[Span]:
    spans = [span for rule in RULES if rule.literal in text for span in _by(rule, text)]
    if "PRIVATE KEY" in text:
        spans += _key_blocks(text)
    return spans


def _by(rule: Rule, text: str) -> list[Span]:
    pattern = _compiled.get(rule.pattern)
    if pattern is None:
        pattern = _compiled[rule.pattern] = re.compile(rule.pattern, re.ASCII)
    spans = []
    for match in pattern.finditer(text):
        value = match[rule.group]
        if not is_masked(value) and (rule.check is None or rule.check(value)):
            spans.append(Span(*match.span(rule.group), rule.what))
    return spans


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end, s.kind)):
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            merged[-1] = Span(last.start, max(last.end, span.end), last.kind)
        else:
            merged.append(span)
    return merged


def _without(text: str, spans: list[Span]) -> str:
    pieces = []
    at = 0
    for start, end, _ in spans:
        shown = start + min(4, (end - start) // 3)
        pieces += [text[at:shown], re.sub(r"[^\r\n]", "x", text[shown:end])]
        at = end
    return "".join(pieces) + text[at:]


# --- private key blocks ---

_BEGIN = re.compile(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_END = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_KEY_RUN = re.compile(r"[A-Za-z0-9+/=]{16,}")
_MAX_BLOCK = 1 << 16
# What may stand around a line of a key: indentation, quote and comment marks, quotes, joins, an escaped \n.
_DRESSED = re.compile(r"(?:[ \t>|+*#;,\"'`]|//|- )*+(?P<key>[A-Za-z0-9+/=]++)(?:\\[nr]|[ \t\"',;+|\\`])*+\Z")
_HEADER = re.compile(r"[ \t>|*#\"']*+(?:[A-Za-z][A-Za-z-]{2,30}: [^\r\n]{0,200}+)?+[\\nr \t\"',]*+\Z")
_ONE_LINE = re.compile(r"(?:\\[nr]|[ \t]*[A-Za-z0-9+/=]{16,}|(?<=\\[nr])[A-Za-z0-9+/=]+)+")


def _key_blocks(text: str) -> list[Span]:
    """Private keys from their BEGIN line to their END line, or to the last line of a key that was cut off."""
    spans: list[Span] = []
    done = 0
    begins = list(_BEGIN.finditer(text))
    ends = list(_END.finditer(text))
    next_end = 0
    for number, begin in enumerate(begins):
        if begin.start() < done:
            continue
        limit = begins[number + 1].start() if number + 1 < len(begins) else len(text)
        while next_end < len(ends) and ends[next_end].start() < begin.end():
            next_end += 1
        end = ends[next_end] if next_end < len(ends) else None
        if end is not None and end.start() < limit and end.end() - begin.start() <= _MAX_BLOCK:
            stop = end.end()
            body = text[begin.end() : end.start()]
        else:
            stop = _cut_off_end(text, begin.end(), limit)
            body = text[begin.end() : stop]
        if _holds_key(body):
            spans.append(Span(begin.start(), stop, "private key"))
            done = stop
    return spans


def _cut_off_end(text: str, start: int, limit: int) -> int:
    """Where the lines that look like a key end, for a block without an END line."""
    one_line = _ONE_LINE.match(text, start, limit)
    stop = at = one_line.end() if one_line else start
    in_headers = True
    line_end = _end_of_line(text, at, limit)
    if text[at:line_end].strip(" \t\r\"'`\\nr,;+|"):
        return stop  # other words on the line of BEGIN: there is no body below
    at = line_end
    while at < limit:
        line_end = _end_of_line(text, at + 1, limit)
        line = text[at:line_end].strip("\r\n")
        key = _DRESSED.match(line)
        if key is not None and _is_key_line(key["key"], not in_headers):
            in_headers = False
            stop = at + len(text[at:line_end].rstrip("\r\n"))
        elif not (in_headers and _HEADER.match(line)):
            break
        at = line_end
    return stop


def _end_of_line(text: str, at: int, limit: int) -> int:
    found = text.find("\n", at, limit)
    return limit if found < 0 else found


def _is_key_line(run: str, inside: bool) -> bool:
    if len(run) >= 16:
        return True
    # The last line of a key is short; a word on a line of its own is not.
    return inside and (
        run.endswith("=") or any(c.isdigit() for c in run) or not (run.islower() or run.istitle())
    )


def _holds_key(body: str) -> bool:
    """Whether there is key material in `body`, as opposed to dots, a stand-in, or what masking left.

    That is a line of its own, or a long run anywhere: prose between the two marks has long names as well.
    """
    lines = {match["key"] for line in body.splitlines() if (match := _DRESSED.match(line))}
    runs = _KEY_RUN.findall(body)
    return any(kinds_of(run) >= 2 and not is_masked(run) and (len(run) >= 40 or run in lines) for run in runs)

"""How text from outside is shown: nothing in it may move the cursor, turn the reading order or hide.

On the path of every search: the pattern is compiled only when a text holds something odd.
"""

from __future__ import annotations

import re

# What a terminal acts upon or does not show.
_HIDDEN = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and newline
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction marks, embeddings, overrides, isolates
    r"\u00ad\u034f\u180e\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"  # of no width
    r"\u2028\u2029"  # line and paragraph separator
    r"\U000e0000-\U000e007f"  # tags: an invisible alphabet
    r"\ud800-\udfff"  # lone surrogates: bytes that were not UTF-8
)
# Joiners and variation selectors are wanted in many scripts and in emoji, so they count as hidden only where
# they have nothing to act upon.
_JOINED = rf"[^\x00-\x7f\u200c\u200d{_HIDDEN}]"
_ODD = (
    rf"[{_HIDDEN}]|(?<!{_JOINED})[\u200c\u200d]|[\u200c\u200d](?!{_JOINED})"
    r"|(?:(?<=[\ufe00-\ufe0f])|(?<=[\U000e0100-\U000e01ef]))[\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
_SURROGATE = "[\ud800-\udfff]"
_odd: re.Pattern[str] | None = None
# Python calls these printable; all others of the pattern it does not.
_HIDDEN_BUT_PRINTABLE = frozenset(
    ["\u034f", "\u3164", "\uffa0", *map(chr, range(0xFE00, 0xFE10)), *map(chr, range(0xE0100, 0xE01F0))]
)


def visible(text: str) -> str:
    """`text` as it is shown to a person: control, bidirectional and zero-width characters stand as escapes.

    Newlines and tabs stay; CRLF becomes a newline. An escape reads as in Python ("\\x1b", "\\u202e").
    """
    if _is_harmless(text):
        return text
    return _pattern().sub(_as_escape, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """`text` on one line: runs of blanks and line breaks become one blank, the rest is made `visible`."""
    return visible(" ".join(text.split()))


def for_json(text: str) -> str:
    """A JSON document that says the same and is safe to look at.

    `text` was made by `json.dumps(…, ensure_ascii=False)`, so odd characters stand in strings only, where
    `\\uXXXX` means the same. A lone surrogate, which no UTF-8 can hold, becomes U+FFFD.
    """
    if text.isascii() and "\x7f" not in text:
        return text
    return _pattern().sub(_as_json_escape, re.sub(_SURROGATE, "\ufffd", text))


def _is_harmless(text: str) -> bool:
    """Whether nothing in `text` can match, told without compiling the pattern, which costs a millisecond."""
    return text.isprintable() and (text.isascii() or _HIDDEN_BUT_PRINTABLE.isdisjoint(text))


def _pattern() -> re.Pattern[str]:
    global _odd  # noqa: PLW0603 - compiled once, and only when needed
    if _odd is None:
        _odd = re.compile(_ODD)
    return _odd


def _as_escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:
        # What Python's file system decoding makes of a byte that is not UTF-8.
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _as_json_escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))

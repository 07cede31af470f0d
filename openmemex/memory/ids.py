"""Memory ids: ULIDs. Kept apart from the model, because a search needs ids and must start quickly."""

import os
import re
import time

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
LENGTH = 26
# The first character holds only three bits: a ULID's 128 bits are padded to 130 (ULID spec).
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}\Z")
_PART = re.compile(r"[0-9A-HJKMNP-TV-Z]{4,26}\Z")


def is_id(text: str) -> bool:
    """Whether `text` is a whole id in its one spelling: 26 characters, Crockford base 32, upper case."""
    return _ULID.match(text) is not None


def normal_id_part(text: str) -> str | None:
    """The upper-case spelling of a whole id, or of a prefix or suffix of 4 or more characters; else None.

    Lower case is accepted everywhere, blanks around it are not: an id ends up in a path, nothing is guessed.
    """
    upper = text.upper() if text.isascii() else ""
    return upper if _PART.match(upper) else None


def new_id(now_ms: int | None = None) -> str:
    """A new ULID: 48 bits of milliseconds since 1970, 80 random bits (https://github.com/ulid/spec)."""
    stamp = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    value = (stamp & ((1 << 48) - 1)) << 80 | int.from_bytes(os.urandom(10), "big")
    return "".join(ALPHABET[(value >> shift) & 31] for shift in range(125, -1, -5))


def id_time_ms(memory_id: str) -> int:
    """Milliseconds since 1970 that the id was made at, as it says itself."""
    value = 0
    for char in memory_id[:10]:
        value = value << 5 | ALPHABET.index(char)
    return value

"""From the words of an option to its value, with an error that says what is allowed.

On the path of every search: the table of fields is imported only when an option needs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from openmemex.errors import UsageError

MAX_LIMIT = 100_000


def one_of(value: str, allowed: Sequence[str], option: str) -> str:
    """`value` in the spelling of `allowed`, in which case does not count; raises UsageError naming them."""
    wanted = value.strip().lower()
    if wanted in allowed:
        return wanted
    raise UsageError(f"{option} can't be {shown(value)}.", f"Allowed: {', '.join(allowed)}.")


def scope(value: str | None) -> str:
    """A scope, or "" when none was given."""
    if value is None:
        return ""
    from openmemex.memory.model import RESERVED_SCOPES, SCOPES

    if value.strip().lower() in RESERVED_SCOPES:
        raise UsageError(
            f"--scope {value.strip().lower()} is reserved for later.", f"Allowed: {', '.join(SCOPES)}."
        )
    return one_of(value, SCOPES, "--scope")


def memory_type(value: str | None) -> str:
    """A type, a retired name read as its heir, or "" when none was given."""
    if value is None:
        return ""
    from openmemex.memory.model import RETIRED_TYPES, TYPES

    name = value.strip().lower()
    return RETIRED_TYPES.get(name) or one_of(value, TYPES, "--type")


def role(value: str | None) -> str:
    """A role, or "" when none was given."""
    if value is None:
        return ""
    from openmemex.memory.model import ROLES

    return one_of(value, ROLES, "--role")


def importance(value: str | None) -> str:
    """An importance, or "" when none was given."""
    if value is None:
        return ""
    from openmemex.memory.model import IMPORTANCES

    return one_of(value, IMPORTANCES, "--importance")


def source(value: str | None) -> str:
    """A source, or "" when none was given."""
    if value is None:
        return ""
    from openmemex.memory.model import SOURCES

    return one_of(value, SOURCES, "--source")


def status(value: str) -> str:
    """A lifecycle state that a person may set; whether it may be set is the operation's to say."""
    from openmemex.memory.model import STATUSES

    return one_of(value, STATUSES, "STATE")


WAITING = "waiting"  # no state of a memory, but of its sharing: it lies in the outbox


def state(value: str | None) -> tuple[str, str]:
    """The lifecycle state or the review state that --state names, the other one ""; both for WAITING."""
    if value is None:
        return "", ""
    from openmemex.memory.model import REVIEW_STATES, STATUSES

    name = one_of(value, (*STATUSES, *REVIEW_STATES, WAITING), "--state")
    if name == WAITING:
        return "", ""
    return (name, "") if name in STATUSES else ("", name)


def limit(value: str | None, default: int) -> int:
    """The number that --limit gives; raises UsageError when it is none, or out of range."""
    if value is None:
        return default
    digits = value.strip()
    if digits.isascii() and digits.isdigit() and 1 <= int(digits[:9]) <= MAX_LIMIT and len(digits) < 9:
        return int(digits)
    raise UsageError(f"--limit can't be {shown(value)}.", f"Give a number from 1 to {MAX_LIMIT}.")


def tags(given: Iterable[str]) -> tuple[str, ...]:
    """The tags of repeated options and comma lists as they are stored: trimmed, lower case, no doubles."""
    parts = (part.strip().lower() for text in given for part in text.split(","))
    return tuple(dict.fromkeys(part for part in parts if part))


def shown(value: str) -> str:
    """A value that was typed, short enough for a message and in quotes."""
    return "'" + (value if len(value) <= 40 else value[:40] + "...") + "'"

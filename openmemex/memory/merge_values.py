"""What a merge decides, and what its rules stand on: equality, one value three ways, two lists in one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from openmemex.memory.merge_sides import ABSENT, Side, Three, Unread, Version, shown
from openmemex.memory.model import FIELD_BY_NAME, HistoryEntry, parse_time

_NEVER: Final = datetime.min.replace(tzinfo=UTC)


class Conflict(NamedTuple):
    """What only a person can settle: one field, with its value on each side as JSON would show it.

    `field` is a field's name, `body`, or `file` (deleted on one side, a side that can't be read, ids that
    differ: the values are then words such as "deleted", "changed", "unreadable: REASON, line N").
    """

    field: str
    base: Any
    ours: Any
    theirs: Any
    why: str = ""


class Decision(NamedTuple):
    """What was decided for a field that differs: `ours`, `theirs`, `both` (joined), `later`, `proposed` (the
    text changed under an approval) or `taken:SIDE`.
    """

    field: str
    how: str


class Choice(NamedTuple):
    """A decided field: its value, how it was decided ("same" where the sides agree), and whose lines say it.

    `side` is None for a value that no side has as it is, or that both have.
    """

    field: str
    value: Any
    how: str
    side: Side | None = None


class Clash(NamedTuple):
    """A conflict, and all fields that are settled with it."""

    conflict: Conflict
    covers: tuple[str, ...]


Outcome = list[Choice | Clash]
Rule = Callable[[tuple[str, ...], Three], Outcome]


def scalar(names: tuple[str, ...], three: Three) -> Outcome:
    """One side changed it: that side. Both the same: that. Else a person."""
    return [scalar_of(name, three) for name in names]


def scalar_of(name: str, three: Three) -> Choice | Clash:
    """What `scalar` says of one field."""
    ours, theirs = three.ours.value(name), three.theirs.value(name)
    if same(name, ours, theirs):
        return agreed(name, three)
    base = value_of(three.base, name)
    if three.base is not None or not (three.blind or _has_to_be_there(name)):
        if same(name, base, ours):
            return Choice(name, theirs, "theirs", "theirs")
        if same(name, base, theirs):
            return Choice(name, ours, "ours", "ours")
    return clash_of(name, three)


def _has_to_be_there(name: str) -> bool:
    """Whether every memory has the field, so that a file that was added on both sides has no base value."""
    field = FIELD_BY_NAME.get(name)
    return field is not None and not field.optional


def agreed(name: str, three: Three) -> Choice:
    """Both say the same; of two spellings of one instant the one that is not base's, else the smaller."""
    ours, theirs = three.ours.value(name), three.theirs.value(name)
    if ours == theirs:
        return Choice(name, ours, "same")
    base = value_of(three.base, name)
    if base == ours or (base != theirs and theirs < ours):
        return Choice(name, theirs, "theirs", "theirs")
    return Choice(name, ours, "ours", "ours")


def clash_of(name: str, three: Three, why: str = "", covers: tuple[str, ...] = ()) -> Clash:
    """The conflict of one field, which is settled together with the fields that it `covers`."""
    base, ours, theirs = (shown(value_of(side, name)) for side in three.versions)
    return Clash(Conflict(name, base, ours, theirs, why), covers or (name,))


def joined(name: str, value: Any, three: Three) -> Choice:
    """A union: in the lines of a side where one has all of it in this order."""
    if three.ours.value(name) == value:
        return Choice(name, value, "ours", "ours")
    if three.theirs.value(name) == value:
        return Choice(name, value, "theirs", "theirs")
    return Choice(name, value, "both")


def all_from(side: Side, names: Sequence[str], three: Three) -> Outcome:
    """Several fields as one side has them."""
    other = three.theirs if side == "ours" else three.ours
    version = three.side(side)
    return [
        Choice(name, value_of(version, name), side, side)
        if not same(name, value_of(version, name), other.value(name))
        else agreed(name, three)
        for name in names
    ]


def value_of(version: Version | None, name: str) -> Any:
    """A field's value, or the body; what stands for nothing where there is no such version."""
    if name == "body":
        return version.memory.body if version else None
    if version is not None:
        return version.value(name)
    return None if name in FIELD_BY_NAME else ABSENT


def same(name: str, one: Any, other: Any) -> bool:
    """Whether two values of a field mean the same: times are compared as instants."""
    if one == other:
        return isinstance(one, Unread) is isinstance(other, Unread)
    field = FIELD_BY_NAME.get(name)
    if field is None or field.kind != "time" or not isinstance(one, str) or not isinstance(other, str):
        return False
    moment = parse_time(one)
    return moment is not None and moment == parse_time(other)


def interleaved_history(
    one: Iterable[HistoryEntry], other: Iterable[HistoryEntry]
) -> tuple[HistoryEntry, ...]:
    """The entries of two histories in the order of time, what both have once."""
    return tuple(interleave(one, other, _entry_key))


def interleave(one: Iterable[Any], other: Iterable[Any], key: Callable[[Any], Any]) -> list[Any]:
    """Both sequences in one, each in its own order where that can be, what both have once.

    `key` orders what no sequence orders. The result does not depend on which sequence is named first.
    """
    left, right = list(one)[::-1], list(other)[::-1]
    in_left, in_right = _counted(left), _counted(right)
    out: list[Any] = []
    done: tuple[dict[Any, int], dict[Any, int]] = ({}, {})  # what a side still has, but the result already
    while left or right:
        for source, counts, behind in ((left, in_left, done[0]), (right, in_right, done[1])):
            while source and behind.get(source[-1], 0):
                behind[source[-1]] -= 1
                counts[source.pop()] -= 1
        if not left or not right:
            if not left and not right:
                break
            from_left = bool(left)
        elif left[-1] == right[-1]:
            in_right[right.pop()] -= 1
            from_left = True
        else:
            mine, yours = left[-1], right[-1]
            mine_waits, yours_waits = in_right.get(mine, 0) > 0, in_left.get(yours, 0) > 0
            from_left = key(mine) < key(yours) if mine_waits == yours_waits else yours_waits
            if mine_waits and yours_waits:
                behind = done[1] if from_left else done[0]
                item = mine if from_left else yours
                behind[item] = behind.get(item, 0) + 1
        source, counts = (left, in_left) if from_left else (right, in_right)
        item = source.pop()
        counts[item] -= 1
        out.append(item)
    return out


def _counted(items: Iterable[Any]) -> dict[Any, int]:
    counts: dict[Any, int] = {}
    for item in items:
        counts[item] = counts.get(item, 0) + 1
    return counts


def later_entry(one: HistoryEntry, other: HistoryEntry) -> HistoryEntry:
    """The later of two steps of a review."""
    return max(one, other, key=_entry_key)


def _entry_key(entry: HistoryEntry) -> tuple[Any, ...]:
    texts = (entry.at, entry.by, entry.from_state, entry.to_state, entry.note)
    return (instant(entry.at), *((text is not None, text or "") for text in texts))


def instant(text: str) -> datetime:
    """The instant that a time names; before all others when it names none."""
    return parse_time(text) or _NEVER


def plain_ends(text: str) -> str:
    """The text with bare line feeds: line ends alone are no change."""
    return text.replace("\r\n", "\n").replace("\r", "\n")

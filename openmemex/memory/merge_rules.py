"""How each field of a memory merges: one table from field to rule, decided before a byte is written.

A rule looks at the three versions and says either a Choice (the value, and whose lines it stands in) or a
Clash (only a person can choose). docs/protocol.md, "Merging", tells the rules in words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple

from openmemex.memory.merge_sides import ABSENT, Side, Three, Unread, Version, shown
from openmemex.memory.model import (
    FIELD_BY_NAME,
    FIELDS,
    MAX_ALIASES,
    MAX_TAGS,
    HistoryEntry,
    parse_time,
)


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

# What an approval is given for.
CONTENT: Final = ("scope", "type", "role", "body")
APPROVED: Final = ("approved", "published")
_NEVER = datetime.min.replace(tzinfo=UTC)


def decide(three: Three, take: Mapping[str, Side]) -> tuple[dict[str, Choice], list[Clash]]:
    """Every field's choice, and what a person has to settle; `take` settles conflicts by their field's name.

    Names in `take` that are in no conflict settle nothing: the caller has to compare.
    """
    choices: dict[str, Choice] = {}
    clashes: list[Clash] = []
    unknown = [(name,) for name in _unknown_fields(three)]
    for names, rule in [*RULES, *((names, scalar) for names in unknown), (("body",), body)]:
        for found in rule(names, three):
            if isinstance(found, Choice):
                choices[found.field] = found
                continue
            side = take.get(found.conflict.field)
            if side is None:
                clashes.append(found)
            for name in found.covers:
                value = _value(three.side(side or "ours"), name)
                choices[name] = Choice(name, value, f"taken:{side}" if side else "conflict", side or "ours")
    _look_again_at_approval(three, choices, {name for clash in clashes for name in clash.covers})
    return choices, clashes


def notices(choices: Mapping[str, Choice]) -> list[str]:
    """What is worth telling about a merge without conflict."""
    told = []
    for name, most in (("tags", MAX_TAGS), ("aliases", MAX_ALIASES)):
        value = choices[name].value
        if not isinstance(value, Unread) and len(value) > most:
            told.append(f"{name} has {len(value)} items after the merge; a new memory may have {most}")
    if choices["review_state"].how == "proposed":
        told.append("its text changed while it was approved: it is proposed again")
    rejected = choices["review_state"].value == "rejected"
    if rejected and any(choices[name].how not in ("same", choices["review_state"].how) for name in CONTENT):
        told.append(
            "it was rejected on one side and changed on the other: it stays rejected until resubmitted"
        )
    return told


# --- the rules ---


def scalar(names: tuple[str, ...], three: Three) -> Outcome:
    """One side changed it: that side. Both the same: that. Else a person."""
    return [_scalar(name, three) for name in names]


def must_agree(names: tuple[str, ...], three: Three) -> Outcome:
    """What never changes in a memory's life: both sides have to say the same."""
    return [
        _same_choice(name, three)
        if same(name, three.ours.value(name), three.theirs.value(name))
        else _clash(name, three, "it never changes in a memory's life, but the sides differ")
        for name in names
    ]


def later(names: tuple[str, ...], three: Three) -> Outcome:
    """The later instant."""
    out: Outcome = []
    for name in names:
        ours, theirs = three.ours.value(name), three.theirs.value(name)
        if isinstance(ours, Unread) or isinstance(theirs, Unread) or same(name, ours, theirs):
            out.append(_scalar(name, three))
        elif _instant(ours) > _instant(theirs):
            out.append(Choice(name, ours, "later", "ours"))
        else:
            out.append(Choice(name, theirs, "later", "theirs"))
    return out


def as_set(names: tuple[str, ...], three: Three) -> Outcome:
    """Items that both have, or that one side added; what one side removed is gone."""
    out: Outcome = []
    for name in names:
        base = _value(three.base, name) or ()
        ours, theirs = three.ours.value(name), three.theirs.value(name)
        if any(isinstance(value, Unread) for value in (base, ours, theirs)):
            out.append(_scalar(name, three))
        elif ours == theirs:
            out.append(_same_choice(name, three))
        elif three.blind:
            out.append(_clash(name, three))
        elif base == ours:
            out.append(Choice(name, theirs, "theirs", "theirs"))
        elif base == theirs:
            out.append(Choice(name, ours, "ours", "ours"))
        else:
            known, of_ours, of_theirs = set(base), set(ours), set(theirs)
            rank = {item: number for number, item in reversed(list(enumerate(base)))}

            def place(item: Any, rank: dict[Any, int] = rank) -> tuple[int, Any]:
                return rank.get(item, len(rank)), item

            joined = interleave(
                [item for item in dict.fromkeys(ours) if item in of_theirs or item not in known],
                [item for item in dict.fromkeys(theirs) if item in of_ours or item not in known],
                place,
            )
            out.append(_joined(name, tuple(joined), three))
    return out


def history(names: tuple[str, ...], three: Three) -> Outcome:
    """Every entry of both sides, each once, in the order of time; an entry is never removed."""
    out: Outcome = []
    for name in names:
        ours, theirs = three.ours.value(name), three.theirs.value(name)
        if isinstance(ours, Unread) or isinstance(theirs, Unread):
            out.append(_scalar(name, three))
        elif ours == theirs:
            out.append(_same_choice(name, three))
        else:
            out.append(_joined(name, interleaved_history(ours, theirs), three))
    return out


def lifecycle(names: tuple[str, ...], three: Three) -> Outcome:
    """Status and successor are one statement: a memory that one side replaced and the other retired, or that
    two others replace, is a person's to settle.
    """
    status, successor = names
    ours, theirs = ([side.value(name) for name in names] for side in (three.ours, three.theirs))
    base = [_value(three.base, name) for name in names]
    if ours == theirs or (three.base and base in (ours, theirs)):
        return scalar(names, three)
    if ours[1] == theirs[1]:
        return scalar(names, three)
    if ours[1] != base[1] and theirs[1] != base[1]:
        if ours[1] and theirs[1]:
            why = "each side has another memory in its place"
        else:
            why = "one side has a memory in its place, the other has not"
        return [_clash(successor, three, why, names)]
    if ours[0] == theirs[0]:
        return scalar(names, three)
    return [_clash(status, three, "one side has a memory in its place, the other changed its status", names)]


def review(names: tuple[str, ...], three: Three) -> Outcome:
    """The state and the fields that explain it come from one side, so that no note stands under another's
    verdict.
    """
    state = names[0]
    ours, theirs = ([side.value(name) for name in names] for side in (three.ours, three.theirs))
    base = [_value(three.base, name) for name in names]
    if ours == theirs:
        return [_same_choice(name, three) for name in names]
    if three.base and base == ours:
        return _all_from("theirs", names, three)
    if three.base and base == theirs:
        return _all_from("ours", names, three)
    if ours[0] == theirs[0]:
        return _same_verdict(names, three)
    if three.base and base[0] in (ours[0], theirs[0]):
        return _one_verdict("theirs" if base[0] == ours[0] else "ours", names, three)
    pairs: tuple[tuple[Literal["ours", "theirs"], Any, Any], ...] = (
        ("ours", theirs, ours),
        ("theirs", ours, theirs),
    )
    for side, approving, other in pairs:
        if approving[0] in APPROVED and other[0] == "proposed" and _changed_content(side, three):
            # The approval does not cover the change that asks for one.
            return _all_from(side, names, three)
    return [_clash(state, three, "each side came to another verdict", names)]


def body(names: tuple[str, ...], three: Three) -> Outcome:
    """One side changed the text: that. Else a person, also where the lines do not overlap: two changes that
    each make sense need not make sense together.
    """
    ours, theirs = three.ours.memory.body, three.theirs.memory.body
    if ours == theirs:
        return [Choice("body", ours, "same")]
    if _plain_ends(ours) == _plain_ends(theirs):
        return [Choice("body", _plain_ends(ours), "same")]
    if three.base is not None:
        base = _plain_ends(three.base.memory.body)
        if base == _plain_ends(ours):
            return [Choice("body", theirs, "theirs", "theirs")]
        if base == _plain_ends(theirs):
            return [Choice("body", ours, "ours", "ours")]
    return [_clash("body", three)]


_REVIEW: Final = ("review_state", "proposed_by", "approved_by", "review_note")
_LIFECYCLE: Final = ("status", "superseded_by")
RULES: Final[tuple[tuple[tuple[str, ...], Rule], ...]] = (
    (("created_at",), must_agree),  # that ids differ is found before: then the files are not one memory
    (("id", "schema_version", "scope", "scope_key", "visibility", "project_name"), scalar),
    (("type", "role", "importance", "source"), scalar),
    (_LIFECYCLE, lifecycle),
    (("tags", "aliases", "paths", "links"), as_set),
    (("updated_at",), later),
    (("supersedes", "derived_from", "canonical_ref"), scalar),
    (("valid_from", "valid_until", "expires_at"), scalar),
    (_REVIEW, review),
    (("review_history",), history),
)


# --- what the rules stand on ---


def same(name: str, one: Any, other: Any) -> bool:
    """Whether two values of a field mean the same: times are compared as instants."""
    if one == other:
        return isinstance(one, Unread) is isinstance(other, Unread)
    field = FIELD_BY_NAME.get(name)
    if field is None or field.kind != "time" or not isinstance(one, str) or not isinstance(other, str):
        return False
    instant = parse_time(one)
    return instant is not None and instant == parse_time(other)


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


def _scalar(name: str, three: Three) -> Choice | Clash:
    ours, theirs = three.ours.value(name), three.theirs.value(name)
    if same(name, ours, theirs):
        return _same_choice(name, three)
    base = _value(three.base, name)
    if three.base is not None or not (three.blind or _has_to_be_there(name)):
        if same(name, base, ours):
            return Choice(name, theirs, "theirs", "theirs")
        if same(name, base, theirs):
            return Choice(name, ours, "ours", "ours")
    return _clash(name, three)


def _has_to_be_there(name: str) -> bool:
    """Whether every memory has the field, so that a file that was added on both sides has no base value."""
    field = FIELD_BY_NAME.get(name)
    return field is not None and not field.optional


def _value(version: Version | None, name: str) -> Any:
    if name == "body":
        return version.memory.body if version else None
    if version is not None:
        return version.value(name)
    return None if name in FIELD_BY_NAME else ABSENT


def _same_choice(name: str, three: Three) -> Choice:
    """Both say the same; of two spellings of one instant the one that is not base's, else the smaller."""
    ours, theirs = three.ours.value(name), three.theirs.value(name)
    if ours == theirs:
        return Choice(name, ours, "same")
    base = _value(three.base, name)
    if base == ours or (base != theirs and theirs < ours):
        return Choice(name, theirs, "theirs", "theirs")
    return Choice(name, ours, "ours", "ours")


def _clash(name: str, three: Three, why: str = "", covers: tuple[str, ...] = ()) -> Clash:
    base, ours, theirs = (shown(_value(side, name)) for side in three.versions)
    return Clash(Conflict(name, base, ours, theirs, why), covers or (name,))


def _joined(name: str, value: Any, three: Three) -> Choice:
    """A union: in the lines of a side where one has all of it in this order."""
    if three.ours.value(name) == value:
        return Choice(name, value, "ours", "ours")
    if three.theirs.value(name) == value:
        return Choice(name, value, "theirs", "theirs")
    return Choice(name, value, "both")


def _all_from(side: Side, names: Sequence[str], three: Three) -> Outcome:
    other = three.theirs if side == "ours" else three.ours
    version = three.side(side)
    return [
        Choice(name, _value(version, name), side, side)
        if not same(name, _value(version, name), other.value(name))
        else _same_choice(name, three)
        for name in names
    ]


def _one_verdict(side: Side, names: tuple[str, ...], three: Three) -> Outcome:
    """One side moved the state, the other only touched fields that explain it."""
    out: Outcome = []
    verdict = _value(three.side(side), names[0])
    for name in names:
        found = _scalar(name, three)
        explains = name in ("approved_by", "review_note")
        if explains and isinstance(found, Choice) and found.side not in (None, side):
            why = f"one side made it {verdict}, the other changed what explains the state before"
            found = _clash(name, three, why)
        out.append(found)
    return out


def _same_verdict(names: tuple[str, ...], three: Three) -> Outcome:
    """Both came to the same state. Explained differently, the later step explains it, if the history keeps
    the other's.
    """
    out = scalar(names, three)
    if not any(isinstance(found, Clash) for found in out):
        return out
    steps = [_own_step(side, names, three) for side in (three.ours, three.theirs)]
    first, second = steps
    if first is None or second is None or first == second:
        return out
    last = max(first, second, key=_entry_key)
    return _all_from("ours" if last == first else "theirs", names, three)


def _own_step(side: Version, names: tuple[str, ...], three: Three) -> HistoryEntry | None:
    """The newest step of this side to its state, when it says all that the explaining fields say."""
    base = _value(three.base, "review_history") or ()
    entries = side.value("review_history")
    if isinstance(entries, Unread) or isinstance(base, Unread):
        return None
    state, proposed_by, approved_by, note = (side.value(name) for name in names)
    before = [_value(three.base, name) for name in names]
    mine = [entry for entry in entries if entry not in base and entry.to_state == state]
    if not mine:
        return None
    step: HistoryEntry = mine[-1]
    kept = {entry.by for entry in mine}
    told = (
        proposed_by in (None, before[1])
        or proposed_by in kept
        or (state != "proposed" and any(entry.by == proposed_by for entry in entries))
    )
    told = told and (approved_by in (None, before[2]) or approved_by in kept)
    return step if told and note in (None, before[3], step.note) else None


def _look_again_at_approval(three: Three, choices: dict[str, Choice], open_fields: set[str]) -> None:
    """An approval covers the text that was approved. Where the merged text is another, it is proposed again,
    and the history says why.
    """
    state = choices["review_state"]
    sides = [side for side in (three.ours, three.theirs) if side.memory.review_state in APPROVED]
    entries = choices["review_history"].value
    if not sides or "review_state" in open_fields or isinstance(entries, Unread):
        return
    merged = {name: choices[name].value for name in CONTENT}
    merged["body"] = _plain_ends(merged["body"])
    changed: set[str] = set()
    for side in sides:
        differing = [
            name for name, value in _content(side).items() if name in open_fields or value != merged[name]
        ]
        if not differing and state.value in APPROVED:
            return
        changed.update(differing)
    if state.value in APPROVED:
        before = state.value
    elif state.value == "proposed" and changed and _approved_since(three, sides):
        before = sides[0].memory.review_state
    else:
        return
    names = ", ".join("text" if name == "body" else name for name in CONTENT if name in changed)
    entry = HistoryEntry(
        choices["updated_at"].value, None, before, "proposed", f"merge: {names} changed while it was {before}"
    )
    choices["review_state"] = Choice("review_state", "proposed", "proposed")
    choices["review_history"] = Choice("review_history", (*entries, entry), "both")
    note = choices["review_note"].value
    if state.value in APPROVED and note is not None and note != _value(three.base, "review_note"):
        note = _value(three.base, "review_note")
    for name, value in (("approved_by", None), ("review_note", note)):
        if choices[name].value != value:
            choices[name] = Choice(name, value, "proposed")


def _approved_since(three: Three, sides: Sequence[Version]) -> bool:
    """Whether an approval is new: only then does a merge that undoes it have to say so."""
    return any(side.memory.review_state != _value(three.base, "review_state") for side in sides)


def _changed_content(side: Literal["ours", "theirs"], three: Three) -> bool:
    """Whether a side changed what an approval is for, to something that the other side does not have."""
    mine, other = _content(three.ours), _content(three.theirs)
    if side == "theirs":
        mine, other = other, mine
    return mine != other and (three.base is None or mine != _content(three.base))


def _content(version: Version) -> dict[str, Any]:
    values = {name: version.value(name) for name in CONTENT if name != "body"}
    return {**values, "body": _plain_ends(version.memory.body)}


def _entry_key(entry: HistoryEntry) -> tuple[Any, ...]:
    texts = (entry.at, entry.by, entry.from_state, entry.to_state, entry.note)
    return (_instant(entry.at), *((text is not None, text or "") for text in texts))


def _instant(text: str) -> datetime:
    return parse_time(text) or _NEVER


def _plain_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _unknown_fields(three: Three) -> list[str]:
    names: dict[str, None] = {}
    for side in (three.ours, three.theirs, three.base):
        if side is not None:
            names.update(dict.fromkeys(side.extra))
    return list(names)


def order(name: str) -> tuple[int, str]:
    """Where a field comes in reports: the table's order, then unknown fields, then the body."""
    for number, field in enumerate(FIELDS):
        if field.name == name:
            return number, name
    return (len(FIELDS) + 1 if name == "body" else len(FIELDS)), name

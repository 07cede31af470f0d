"""How a review merges: one side's verdict with what explains it, and no approval of a text that nobody
approved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from openmemex.memory.merge_sides import Three, Unread, Version
from openmemex.memory.merge_values import (
    Choice,
    Clash,
    Outcome,
    agreed,
    all_from,
    clash_of,
    instant,
    later_entry,
    plain_ends,
    scalar,
    scalar_of,
    value_of,
)
from openmemex.memory.model import HistoryEntry

# What an approval is given for.
CONTENT: Final = ("scope", "type", "role", "body")
APPROVED: Final = ("approved", "published")


def review(names: tuple[str, ...], three: Three) -> Outcome:
    """The state and the fields that explain it come from one side, so that no note stands under another's
    verdict.
    """
    state = names[0]
    ours, theirs = ([side.value(name) for name in names] for side in (three.ours, three.theirs))
    base = [value_of(three.base, name) for name in names]
    if ours == theirs:
        return [agreed(name, three) for name in names]
    if three.base and base == ours:
        return all_from("theirs", names, three)
    if three.base and base == theirs:
        return all_from("ours", names, three)
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
            return all_from(side, names, three)
    return [clash_of(state, three, "each side came to another verdict", names)]


def _one_verdict(side: Literal["ours", "theirs"], names: tuple[str, ...], three: Three) -> Outcome:
    """One side moved the state, the other only touched fields that explain it."""
    out: Outcome = []
    verdict = value_of(three.side(side), names[0])
    asks_again = verdict == "proposed" and _changed_content(side, three)
    for name in names:
        if name == "approved_by" and asks_again:
            # Whoever approved it meanwhile approved another text.
            out += all_from(side, (name,), three)
            continue
        found = scalar_of(name, three)
        explains = name in ("approved_by", "review_note")
        if explains and isinstance(found, Choice) and found.side not in (None, side):
            why = f"one side made it {verdict}, the other changed what explains the state before"
            found = clash_of(name, three, why)
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
    last = later_entry(first, second)
    return all_from("ours" if last == first else "theirs", names, three)


def _own_step(side: Version, names: tuple[str, ...], three: Three) -> HistoryEntry | None:
    """The newest step of this side to its state, when it says all that the explaining fields say."""
    base = value_of(three.base, "review_history") or ()
    entries = side.value("review_history")
    if isinstance(entries, Unread) or isinstance(base, Unread):
        return None
    state, proposed_by, approved_by, note = (side.value(name) for name in names)
    before = [value_of(three.base, name) for name in names]
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


def look_again(three: Three, choices: dict[str, Choice], open_fields: set[str]) -> None:
    """An approval covers the text that was approved. Where the merged text is another, it is proposed again,
    and the history says why.
    """
    state = state_of(choices, three)
    sides = [side for side in (three.ours, three.theirs) if side.memory.review_state in APPROVED]
    if not sides or "review_state" in open_fields:
        return
    merged = {name: choices[name].value for name in CONTENT}
    merged["body"] = plain_ends(merged["body"])
    changed: set[str] = set()
    for side in sides:
        differing = [
            name for name, value in _content(side).items() if name in open_fields or value != merged[name]
        ]
        if not differing and state in APPROVED:
            return
        changed.update(differing)
    if state in APPROVED:
        before = state
    elif state == "proposed" and changed and _approved_since(three, sides):
        before = sides[0].memory.review_state
    else:
        return
    names = ", ".join("text" if name == "body" else name for name in CONTENT if name in changed)
    why = f"merge: {names} changed while it was {before}"
    entry = HistoryEntry(time_of(choices, three), None, before, "proposed", why)
    choices["review_state"] = Choice("review_state", "proposed", "proposed")
    entries = choices["review_history"].value
    if not isinstance(entries, Unread):
        choices["review_history"] = Choice("review_history", (*entries, entry), "both")
    note = choices["review_note"].value
    if state in APPROVED and note is not None and note != value_of(three.base, "review_note"):
        note = value_of(three.base, "review_note")
    for name, value in (("approved_by", None), ("review_note", note)):
        if choices[name].value != value:
            choices[name] = Choice(name, value, "proposed")


def state_of(choices: Mapping[str, Choice], three: Three) -> str:
    """The review state that the result reads as, also where its spelling is odd."""
    choice = choices["review_state"]
    version = three.side(choice.side or "ours") or three.ours
    return version.memory.review_state if isinstance(choice.value, Unread) else str(choice.value)


def time_of(choices: Mapping[str, Choice], three: Three) -> str:
    """The merged `updated_at`; where it can't be read, the later one that counts for it."""
    value = choices["updated_at"].value
    if isinstance(value, Unread):
        return max(three.ours.memory.updated_at, three.theirs.memory.updated_at, key=instant)
    return str(value)


def _approved_since(three: Three, sides: Sequence[Version]) -> bool:
    """Whether an approval is new: only then does a merge that undoes it have to say so."""
    names = ("review_state", "approved_by")
    return any(side.value(name) != value_of(three.base, name) for side in sides for name in names)


def _changed_content(side: Literal["ours", "theirs"], three: Three) -> bool:
    """Whether a side changed what an approval is for, to something that the other side does not have."""
    mine, other = _content(three.ours), _content(three.theirs)
    if side == "theirs":
        mine, other = other, mine
    return mine != other and (three.base is None or mine != _content(three.base))


def _content(version: Version) -> dict[str, Any]:
    values = {name: version.value(name) for name in CONTENT if name != "body"}
    return {**values, "body": plain_ends(version.memory.body)}

"""Three-way merge of one memory file by meaning: the same bytes for whoever asks, `resolve` or git's driver.

Trivial cases first, on bytes; then every field is decided by its rule (`merge_rules`), and only then the file
is put together (`merge_lines`). A conflict is a value: nothing is written on a guess. docs/protocol.md,
"Merging".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from openmemex.errors import Refused, UsageError
from openmemex.memory.fences import Unreadable
from openmemex.memory.merge_lines import apply
from openmemex.memory.merge_markers import Labels, with_markers
from openmemex.memory.merge_review import state_of, time_of
from openmemex.memory.merge_rules import decide, notices, order
from openmemex.memory.merge_sides import Side, Three, Unread, Version, in_one_form, read, with_base
from openmemex.memory.merge_values import Choice, Conflict, Decision, interleaved_history
from openmemex.memory.model import HistoryEntry
from openmemex.memory.rewriting import rewrite

__all__ = ["Conflict", "Decision", "Labels", "Merged", "Side", "merge", "with_markers"]

_NO_LABELS: Final = Labels()
_NOTHING_TAKEN: Final[Mapping[str, Side]] = {}


class Merged(NamedTuple):
    """What a merge comes to.

    `raw` is the merged file, None when it is deleted; it says nothing while there are `conflicts`.
    `decisions` has what was decided for each field that differs, `notices` what a person may want to know.
    """

    raw: bytes | None
    conflicts: tuple[Conflict, ...] = ()
    decisions: tuple[Decision, ...] = ()
    notices: tuple[str, ...] = ()


def merge(
    base: bytes | None,
    ours: bytes | None,
    theirs: bytes | None,
    *,
    stem: str | None = None,
    take: Mapping[str, Side] = _NOTHING_TAKEN,
    take_file: Literal["ours", "theirs", "delete"] | None = None,
    text: str | None = None,
    by: str | None = None,
    at: str | None = None,
    labels: Labels = _NO_LABELS,
) -> Merged:
    """Merge three versions of a file; None is a side that has none (`base`: both sides added it).

    `stem` is the file's name without `.md`, which its id must equal. `take` settles conflicts, by the name of
    the field in conflict (or `body`); `take_file` settles all of it by one side's bytes; `text` is the body
    that somebody put together from both, and settles a conflict of the body. All are written into the review
    history, as done by `by` at `at` (the merged `updated_at` when None); a `take_file` and a `text` are so
    only when one of the two is given and the file reads. `labels` name the sides in those entries.
    Raises UsageError for a name in `take` that is not in conflict, or a side that has no such value.
    """
    if take_file is not None:
        if take:
            raise UsageError("take the whole file or single fields, not both")
        return _whole_file(ours, theirs, take_file, by=by, at=at, labels=labels)
    easy = _trivial(base, ours, theirs)
    if easy is None and ours is not None and theirs is not None:
        base, ours, theirs = in_one_form(base, ours, theirs)
        easy = _trivial(base, ours, theirs)
    if easy is not None:
        _check_taken(take, ())
        return easy
    three = _read(base, ours, theirs, stem)
    if isinstance(three, Conflict):
        _check_taken(take, (three,))
        return Merged(None, (three,))
    return _by_field(three, take, text, by, at, labels)


def _by_field(
    three: Three,
    take: Mapping[str, Side],
    text: str | None,
    by: str | None,
    at: str | None,
    labels: Labels,
) -> Merged:
    """The merge of three versions that read: decide, then apply."""
    if take:
        _check_taken(take, [clash.conflict for clash in decide(three, {})[1]])
        if three.base is None and "base" in take.values():
            raise UsageError("both sides added this file: there is no base to take", "Take ours or theirs.")
    choices, clashes = decide(three, take, text)
    decisions = tuple(
        Decision(choice.field, choice.how)
        for choice in sorted(choices.values(), key=lambda choice: order(choice.field))
        if choice.how not in ("same", "conflict")
    )
    if clashes:
        conflicts = sorted((clash.conflict for clash in clashes), key=lambda conflict: order(conflict.field))
        return Merged(None, tuple(conflicts), decisions)
    told = tuple(notices(choices))
    if three.blind:
        told += ("what both sides began from can't be read: nobody knows what one of them removed",)
    joined = choices["body"].how == "taken:both" and not (by is None and at is None)
    if take or joined:
        _record(choices, three, take, joined, by, at, labels)
    try:
        return Merged(apply(three, choices), (), decisions, told)
    except Refused as error:
        there = None if three.base is None else "there"
        return Merged(None, (Conflict("file", there, "changed", "changed", error.message),), decisions)


def _trivial(base: bytes | None, ours: bytes | None, theirs: bytes | None) -> Merged | None:
    """The result where at most one side changed anything, byte for byte."""
    if ours == theirs:
        return Merged(ours)
    if base == ours:
        return Merged(theirs, (), (Decision("file", "theirs"),))
    if base == theirs:
        return Merged(ours, (), (Decision("file", "ours"),))
    return None


def _read(base: bytes | None, ours: bytes | None, theirs: bytes | None, stem: str | None) -> Three | Conflict:
    """The versions, read; or the conflict of the whole file."""
    sides: list[Version | None] = [None, None]
    words = ["deleted" if raw is None else "changed" if base else "added" for raw in (ours, theirs)]
    faults = []
    for number, (name, raw) in enumerate((("ours", ours), ("theirs", theirs))):
        try:
            if raw is not None:
                sides[number] = read(raw, stem)
        except Unreadable as error:
            place = f", line {error.line}" if error.line else ""
            words[number] = f"unreadable: {error.reason}{place}"
            faults.append(name)
    there = None if base is None else "there"
    if faults:
        return Conflict("file", there, words[0], words[1], f"{' and '.join(faults)} can't be read")
    of_ours, of_theirs = sides
    if of_ours is None or of_theirs is None:
        return Conflict("file", there, words[0], words[1], "one side deleted it, the other changed it")
    three = with_base(base, of_ours, of_theirs, stem)
    ids = [None if version is None else version.memory.id for version in three.versions]
    if ids[1] != ids[2]:
        why = "the ids differ: these are two memories in one file's place"
        return Conflict("file", ids[0], ids[1], ids[2], why)
    return three


def _check_taken(take: Mapping[str, Side], conflicts: tuple[Conflict, ...] | list[Conflict]) -> None:
    names = [conflict.field for conflict in conflicts]
    for field, side in take.items():
        if side not in ("base", "ours", "theirs"):
            raise UsageError(f"there is no side {side}", "Sides: base, ours, theirs.")
        if field == "file" and "file" in names:
            raise UsageError(
                "the file as a whole is in conflict", "Take ours, theirs or delete for the file."
            )
        if field not in names:
            listed = f"In conflict: {', '.join(names)}." if names else "Nothing is in conflict: it merges."
            raise UsageError(f"{field} is not in conflict", listed)


def _note(field: str, side: Side, labels: Labels) -> str:
    label = " ".join(getattr(labels, side).split())
    return f"merge: {field} taken from {side}" + (f" ({label})" if label not in ("", side) else "")


def _record(
    choices: dict[str, Choice],
    three: Three,
    take: Mapping[str, Side],
    joined: bool,
    by: str | None,
    at: str | None,
    labels: Labels,
) -> None:
    """Add what a person settled to the history that the result gets."""
    entries = choices["review_history"].value
    if isinstance(entries, Unread):
        return  # lines that could not be read as a history: they stay as they are
    state = state_of(choices, three)
    when = at or time_of(choices, three)
    notes = [_note(name, take[name], labels) for name in sorted(take, key=order)]
    if joined:
        notes.append("merge: body put together from both sides")
    steps = (HistoryEntry(when, by, state, state, note) for note in notes)
    choices["review_history"] = Choice("review_history", (*entries, *steps), "both")


def _whole_file(
    ours: bytes | None,
    theirs: bytes | None,
    taken: Literal["ours", "theirs", "delete"],
    *,
    by: str | None,
    at: str | None,
    labels: Labels,
) -> Merged:
    if taken not in ("ours", "theirs", "delete"):
        raise UsageError(f"there is no such whole file: {taken}", "Take ours, theirs or delete.")
    raw, other = (ours, theirs) if taken == "ours" else (theirs, ours)
    decisions = (Decision("file", f"taken:{taken}"),)
    if taken == "delete" or raw is None:
        return Merged(None, (), decisions)
    if by is None and at is None:
        return Merged(raw, (), decisions)
    try:
        version = read(raw, None)
        entries = version.memory.review_history
        if any(problem.field == "review_history" for problem in version.document.problems):
            return Merged(raw, (), decisions)
        if other is not None:
            entries = _with_entries_of(entries, other)
        state = version.memory.review_state
        entry = HistoryEntry(
            at or version.memory.updated_at, by, state, state, _note("whole file", taken, labels)
        )
        return Merged(rewrite(version.document, {"review_history": (*entries, entry)}), (), decisions)
    except (Unreadable, Refused):
        return Merged(raw, (), decisions)


def _with_entries_of(entries: tuple[HistoryEntry, ...], other: bytes) -> tuple[HistoryEntry, ...]:
    """A history is a record of what happened: it keeps the steps of the side that was not taken."""
    try:
        return interleaved_history(entries, read(other, None).memory.review_history)
    except Unreadable:
        return entries

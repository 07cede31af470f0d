"""How the life of a memory reads to a person: its steps, oldest first, what changed in words."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from openmemex.cli import plain
from openmemex.cli.escape import one_line, visible
from openmemex.cli.terminal import Screen

if TYPE_CHECKING:
    from openmemex.life import Change, Step
    from openmemex.memory.model import HistoryEntry
    from openmemex.operations.history import Life

ID_LENGTH = 10
MOST_LINES = 20
FIRST_LINES = 6
_PLACES = {
    "work tree": "in the work tree, not committed",
    "outbox": "on this computer, waiting to be shared",
    "personal": "on this computer, for you alone",
}
_ACTIONS = {
    "begins": "known from here on (this clone has nothing from before)",
    "merged": "merged from two sides",
    "kept": "one side kept in a merge",
    "returned": "came back",
    "reviewed": "",
}
_NAMES = {
    "status": "state",
    "review_state": "review",
    "supersedes": "replaces",
    "superseded_by": "replaced by",
    "canonical_ref": "see",
    "paths": "about",
    "expires_at": "expires",
    "valid_from": "valid from",
    "valid_until": "valid until",
    "proposed_by": "proposed by",
    "approved_by": "approved by",
    "review_note": "review note",
    "derived_from": "made from",
    "project_name": "project",
}
# What a step of review, told in its own line, says already.
_REVIEWED = frozenset({"review_state", "proposed_by", "approved_by", "review_note"})


def life_json(life: Life) -> dict[str, Any]:
    """What `history --json` prints."""
    return {
        "id": life.id,
        "path": life.path,
        "engine": life.engine or None,
        "steps": [_step_json(step) for step in life.steps],
        "notices": [notice._asdict() for notice in life.notices],
    }


def _step_json(step: Step) -> dict[str, Any]:
    return {
        "commit": step.commit,
        "at": step.at or None,
        "by": step.by,
        "action": step.action,
        "place": step.place,
        "branch": step.branch or None,
        "path": step.path,
        "subject": step.subject or None,
        "changes": [{"field": one.field, "from": one.before, "to": one.after} for one in step.changes],
        "review": [
            {"at": e.at, "by": e.by, "from": e.from_state, "to": e.to_state, "note": e.note}
            for e in step.review
        ],
        "unreadable": {"line": step.line, "reason": step.unreadable} if step.unreadable else None,
    }


def life_lines(life: Life, screen: Screen) -> Iterator[str]:
    """What `history` shows: each step with when, who, in which commit, and what it changed."""
    yield screen.style(life.id, "yellow") + (f"  {one_line(life.summary)}" if life.summary else "")
    yield one_line(life.path)
    for number, step in enumerate(life.steps, 1):
        yield ""
        yield f"{number}. " + _head(step, screen)
        for line in _body(step, screen):
            yield "   " + line


def _head(step: Step, screen: Screen) -> str:
    when = step.at.replace("T", " ").removesuffix("Z") or "now"
    words = [_ACTIONS.get(step.action, step.action)]
    if step.by:
        words.append(f"by {one_line(step.by)}")
    if step.place in _PLACES:
        words.append(f"({_PLACES[step.place]})")
    if step.branch:
        words.append(f"(on branch {one_line(step.branch)})")
    told = screen.style(one_line(when), "bold") + "  " + " ".join(word for word in words if word)
    if step.commit:
        subject = f' "{one_line(step.subject)}"' if step.subject else ""
        told += "  " + screen.style(step.commit[:ID_LENGTH], "yellow") + subject
    return told


def _body(step: Step, screen: Screen) -> Iterator[str]:
    if step.unreadable:
        where = f"line {step.line}: " if step.line else ""
        yield "could not be read: " + one_line(where + step.unreadable)
    for entry in step.review:
        yield one_line(_review(entry))
    fields = [
        one
        for one in step.changes
        if one.field not in ("body", "updated_at") and not (step.review and one.field in _REVIEWED)
    ]
    if step.action == "kept" and not step.unreadable:
        gone = any(one.field == "file" for one in step.changes)
        yield "the file stays, which the other side had deleted" if gone else "against the side left out:"
    for change in fields:
        if step.action != "kept" or change.field != "file":
            yield one_line(in_words(change))
    texts = [one for one in step.changes if one.field == "body"]
    for change in texts:
        yield from _text(change, screen)
    if step.action == "merged" and not (fields or texts or step.review):
        yield "both sides joined, with nothing of its own"
    elif step.changes and not (fields or texts or step.review):
        yield "only the time of its last change"
    elif step.action == "changed" and not (step.changes or step.review or step.unreadable):
        yield "a change of the file, but of no field and not of the text"


def _review(entry: HistoryEntry) -> str:
    what = entry.to_state or "reviewed"
    by = f" by {entry.by}" if entry.by else ""
    note = f": {entry.note}" if entry.note else ""
    before = f" (was {entry.from_state})" if entry.from_state else ""
    return f"{what}{by}, {entry.at}{before}{note}"


def in_words(change: Change) -> str:
    """One changed field: "importance: normal → high", "tags: + sso, − draft", "deleted"."""
    name = _NAMES.get(change.field, change.field.replace("_", " "))
    before, after = change.before, change.after
    if change.field == "file":
        return "the file was deleted" if after == "deleted" else "the file is there again"
    if change.field == "path":
        return f"moved: {before} → {after}"
    if isinstance(after, list) or isinstance(before, list):
        return f"{name}: " + _items(before or [], after or [])
    if before in (None, ""):
        return f"{name}: {_value(after)}"
    return f"{name}: {_value(before)} → {_value(after)}"


def _items(before: Sequence[Any], after: Sequence[Any]) -> str:
    if not isinstance(before, list) or not isinstance(after, list):
        return f"{_value(before)} → {_value(after)}"
    told = [f"+ {_value(one)}" for one in after if one not in before]
    told += [f"− {_value(one)}" for one in before if one not in after]
    return ", ".join(told) or "in another order"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(str(part) for part in value.values())
    if isinstance(value, list):
        return ", ".join(_value(one) for one in value) or "none"
    return "none" if value in (None, "") else str(value)


def _text(change: Change, screen: Screen) -> Iterator[str]:
    after = str(change.after or "").strip("\n").split("\n")
    if change.before is None:
        yield from _some(("  " + line for line in after), FIRST_LINES, screen)
        return
    before = str(change.before).strip("\n").split("\n")
    yield f"text changed: {plain.counted(len(before), 'line')} → {len(after)}"
    told = []
    for kind, first, last, start, end in difflib.SequenceMatcher(None, before, after, False).get_opcodes():
        if kind != "equal":
            told += ["- " + line for line in before[first:last]] + ["+ " + line for line in after[start:end]]
    if not told:
        yield "  only blank lines at its beginning or end"
    yield from _some(("  " + line for line in told), MOST_LINES, screen)


def _some(lines: Iterable[str], most: int, screen: Screen) -> Iterator[str]:
    """The first `most` lines, each on one row of the screen, and how many more there are."""
    width = screen.width()
    rows = list(lines)
    for line in rows[:most]:
        shown = visible(line)
        yield plain.cut(shown, max(20, width - 4)) if width else shown
    if len(rows) > most:
        yield f"  ... and {plain.counted(len(rows) - most, 'line')} more (--json has all)"

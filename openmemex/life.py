"""The steps in the life of a memory: what each version of its file changed, field by field."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openmemex.memory import frontmatter
from openmemex.memory.fences import Unreadable
from openmemex.memory.model import FIELDS, HistoryEntry, Memory
from openmemex.trust import secrets
from openmemex.trust.showing import shown_value

if TYPE_CHECKING:
    from openmemex.git.history import Version

NOT_HERE = "its text is not in this clone"
_LINE_BREAK = re.compile(r"\r\n|\r")
# Told by the commit itself, by the review steps, or of no interest to who asks what became of a memory.
_NOT_TOLD = ("id", "review_history")
_OF_ITS_MAKING = (
    "id",
    "schema_version",
    "scope_key",
    "visibility",
    "project_name",
    "created_at",
    "updated_at",
)


@dataclass(frozen=True)
class Change:
    """What became of one field: its name ("body" is the text, "file" and "path" the file), and its value
    before and after as JSON has it, secrets masked; None: not there.
    """

    field: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Step:
    """One step in the life of a memory, in a commit or (`commit` None) on this computer.

    `action`: added, changed, moved, merged, kept (a merge took one side's file as it was, and `changes` tell
    how that differs from the side left out), deleted, returned, reviewed, or begins (a shallow clone has
    nothing from before). `place` is where: "repository", "work tree" (not committed yet), "outbox" or
    "personal". `branch` is "" or the branch that alone has it. `review` are the steps of review that it
    brought. `unreadable` is "" or why this version can't be told as a memory, `line` where.
    """

    commit: str | None
    at: str
    by: str | None
    action: str
    place: str
    path: str
    changes: tuple[Change, ...] = ()
    review: tuple[HistoryEntry, ...] = ()
    subject: str = ""
    branch: str = ""
    unreadable: str = ""
    line: int = 0


class Teller:
    """From the versions of one memory to its steps: reads each version once and compares."""

    def __init__(self, memory_id: str) -> None:
        self.memory_id = memory_id
        self.texts: dict[str, bytes] = {}
        self.hidden = 0
        self._read: dict[str, Memory | Unreadable | None] = {}

    def memory(self, oid: str | None) -> Memory | Unreadable | None:
        """What a blob says; None when it is not here."""
        if oid is None or oid not in self.texts:
            return None
        if oid not in self._read:
            self._read[oid] = self.parsed(self.texts[oid])
        return self._read[oid]

    def parsed(self, raw: bytes) -> Memory | Unreadable:
        """What a file says, or why it says nothing. Counts the files that hold secrets."""
        self.hidden += bool(secrets.find(raw.decode("utf-8", "replace")))
        try:
            return frontmatter.parse(raw, stem=self.memory_id, default_scope="project").memory
        except Unreadable as error:
            return error

    def step(self, version: Version, older: Sequence[Version]) -> Step:
        """The step that one commit made. `older` are the versions before it, newest first."""
        action = {"A": "added", "D": "deleted", "R": "moved"}.get(version.status, "changed")
        if len(version.before) > 1:
            action = (
                "deleted" if version.oid is None else "kept" if version.oid in version.before else "merged"
            )
        if action == "added" and any(one.oid is None for one in older):
            action = "returned"
        if version.begins:
            action = "begins"
        changes: list[Change] = []
        review: tuple[HistoryEntry, ...] = ()
        unreadable, line = "", 0
        if version.came_from:
            changes.append(Change("path", version.came_from, version.path))
        now = self.memory(version.oid)
        if version.oid is None:
            changes.append(Change("file", "there", "deleted"))
        elif isinstance(now, Memory):
            left = [oid for oid in version.before if action != "kept" or oid != version.oid]
            before = [self._readable(oid, older) for oid in left]
            if action == "kept" and None in left:
                changes.append(Change("file", "deleted", "there"))
            elif action == "returned":
                changes.append(Change("file", "deleted", "there"))
                before = [self._readable(next((one.oid for one in older if one.oid), None), older)]
            known = [one for one in before if one is not None]
            if not known and any(oid not in self.texts for oid in left if oid):
                unreadable = NOT_HERE  # the text before this one: what changed can't be told
            elif action == "kept":
                # Its steps of review stand at the commits of the side that brought them.
                changes += compared(known, now) if known else []
            else:
                changes += compared(known, now)
                review = reviewed(known, now)
        else:
            unreadable = NOT_HERE if now is None else secrets.mask(now.reason).text
            line = 0 if now is None else now.line
        return Step(
            version.commit,
            version.at,
            secrets.mask(version.by).text,
            action,
            "repository",
            version.path,
            tuple(changes),
            review,
            secrets.mask(version.subject).text,
            version.branch,
            unreadable,
            line,
        )

    def _readable(self, oid: str | None, older: Sequence[Version]) -> Memory | None:
        """The memory in a blob, or the last that could be read before it."""
        seen: set[str] = set()
        while oid is not None and oid not in seen:
            found = self.memory(oid)
            if isinstance(found, Memory):
                return found
            seen.add(oid)
            made = next((one for one in older if one.oid == oid), None)
            oid = next((before for before in made.before if before), None) if made else None
        return None


def compared(before: Sequence[Memory], after: Memory) -> list[Change]:
    """The fields in which `after` differs from each of `before` (the parents of a merge are several).

    Of a memory that is new, the fields that say something of their own.
    """
    names = [field.name for field in FIELDS if field.name not in _NOT_TOLD]
    if not before:
        names = [name for name in names if name not in _OF_ITS_MAKING]
        before = [Memory(after.id, "", scope="", type="", source="")]
    changes = []
    for name in names:
        if all(one.value(name) != after.value(name) for one in before):
            changes.append(_change(name, before[0].value(name), after.value(name)))
    for name in dict.fromkeys([*(key for one in before for key in one.extra), *after.extra]):
        if all(one.extra.get(name) != after.extra.get(name) for one in before):
            changes.append(_change(secrets.mask(name).text, before[0].extra.get(name), after.extra.get(name)))
    if all(_text(one) != _text(after) for one in before):
        changes.append(Change("body", shown_value(_text(before[0])) or None, shown_value(_text(after))))
    return changes


def _change(name: str, before: Any, after: Any) -> Change:
    return Change(name, shown_value(before) or None, shown_value(after))


def _text(memory: Memory) -> str:
    return _LINE_BREAK.sub("\n", memory.body)


def reviewed(before: Sequence[Memory], after: Memory) -> tuple[HistoryEntry, ...]:
    """The steps of review in `after` that none of `before` has, secrets masked."""
    known = [entry for one in before for entry in one.review_history]
    new = [entry for entry in after.review_history if entry not in known]
    return tuple(HistoryEntry(*shown_value([e.at, e.by, e.from_state, e.to_state, e.note])) for e in new)

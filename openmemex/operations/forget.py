"""Forget: delete memories for good, or retract them softly."""

from __future__ import annotations

import os
from dataclasses import dataclass

from openmemex import faults
from openmemex.errors import DecisionNeeded, NotFound, OpenMemexError, Refused
from openmemex.index.rows import Row
from openmemex.memory import frontmatter, lifecycle
from openmemex.memory.model import now_text
from openmemex.selecting import copies, select
from openmemex.store import files, homes
from openmemex.workspace import Workspace
from openmemex.writing import Copy, lock_key, open_copy, writing


@dataclass(frozen=True)
class Item:
    """What became of one memory: `action` is deleted, retracted, unchanged or failed; `note` says what is
    left.
    """

    row: Row
    action: str
    note: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Forgotten:
    """What became of each."""

    items: tuple[Item, ...]


def plan(ws: Workspace, refs: list[str]) -> list[Row]:
    """The memories that `refs` name, each once, for a person to confirm. Raises as `select`."""
    ws.reconcile()
    return list({row.id: row for row in (select(ws, ref) for ref in refs)}.values())


def forget(ws: Workspace, rows: list[Row], *, soft: bool = False) -> Forgotten:
    """Delete the files of `rows` (from `plan`), or with `soft` retract them: kept on disk, never found again.

    Every copy in a folder of here goes. One that fails does not stop the others.
    """
    items = []
    for planned in rows:
        try:
            items.append(_one(ws, planned, soft))
        except NotFound as error:
            if os.path.lexists(planned.path):
                items.append(Item(planned, "failed", error.message, error.hint))
            else:
                items.append(Item(planned, "unchanged", "it is gone already"))
        except OpenMemexError as error:
            items.append(Item(planned, "failed", error.message, error.hint))
    return Forgotten(tuple(items))


def _one(ws: Workspace, planned: Row, soft: bool) -> Item:
    with writing(ws, lock_key(ws, planned.scope)):
        rows = copies(ws, planned.id)
        notes = []
        action = "unchanged"
        found = [(row, open_copy(ws, row)) for row in rows]
        _refuse_two_texts(planned.id, [copy for _, copy in found])
        for row, copy in found:
            if copy.file is None:
                branch = row.place_label.removeprefix("on branch ")
                where = ws.git.checked_out_at(branch)
                act = "switch there" if where is None else f"go to {where}"
                notes.append(f"branch {branch} still has it: {act} and forget it too")
                continue
            known = copy.home.kind != "repository" or _is_in_git(ws, copy.home, row.rel_path)
            if soft:
                done = _retract(copy.file)
            else:
                files.remove(copy.file)
                done = "deleted"
            faults.reached("forget.file-done")
            action = done if done != "unchanged" else action
            if copy.home.kind == "repository" and done != "unchanged" and known:
                notes.append(
                    f"for the team it is gone once you commit that: open-memex submit {row.id}; "
                    "git's history keeps it"
                )
        if action == "unchanged" and all(row.place_kind == "branch" for row in rows):
            raise Refused(f"{planned.id} is only {rows[0].place_label}", "; ".join(notes))
    return Item(planned, action, "; ".join(notes))


def _refuse_two_texts(memory_id: str, found: list[Copy]) -> None:
    """One id, two different texts: the confirmation has shown one of them only, so neither goes."""
    placed = [copy.file for copy in found if copy.file is not None]
    if len({frontmatter.substance(file.memory) for file in placed}) > 1:
        raise DecisionNeeded(
            f"{memory_id} has different texts in {' and '.join(file.path for file in placed)}",
            "compare them, and delete the file that you do not want by hand",
        )


def _is_in_git(ws: Workspace, home: homes.Home, path: str) -> bool:
    """Whether git knows the file at all; one that was never added leaves nothing to commit."""
    try:
        states = {entry.path: entry.state for entry in ws.git.folder_status(home.shown(home.folder))}
    except OpenMemexError:
        return True
    return states.get(path) != "untracked"


def _retract(file: files.MemoryFile) -> str:
    if file.memory.status == "retracted":
        return "unchanged"
    lifecycle.check_transition(file.memory.status, "retracted")
    changes = {"status": "retracted", "updated_at": now_text()}
    files.replace(file, frontmatter.rewrite(file.document, changes))
    return "retracted"

"""History: the life of one memory, step by step, from git and from this computer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openmemex.errors import DecisionNeeded, NotFound, OpenMemexError, Refused, UsageError
from openmemex.life import NOT_HERE, Change, Step, Teller, compared, reviewed
from openmemex.memory.fences import Unreadable
from openmemex.memory.ids import is_id, normal_id_part
from openmemex.memory.model import Memory, parse_time
from openmemex.results import Notice
from openmemex.store.homes import USUAL_FOLDERS
from openmemex.trust import secrets
from openmemex.workspace import Workspace, staleness

if TYPE_CHECKING:
    from openmemex.git.history import Version
    from openmemex.index.rows import Row

_CANDIDATES = 5


@dataclass(frozen=True)
class Life:
    """All steps of one memory, oldest first; `engine` is who read git's part ("" when there is none)."""

    id: str
    summary: str
    path: str
    steps: tuple[Step, ...]
    engine: str
    notices: tuple[Notice, ...] = ()


def history(ws: Workspace, ref: str) -> Life:
    """The life of the memory that `ref` names: one of here, or one that only git's history has.

    Raises UsageError for what can't be an id, NotFound, DecisionNeeded where several memories fit, and
    GitFailed where git can't walk its history.
    """
    freshness = ws.reconcile()
    notices = staleness(ws, freshness)
    part = normal_id_part(ref)
    if part is None:
        raise UsageError(
            f"{secrets.mask(ref).text[:40]!r} is no memory id.",
            "An id has 26 letters and digits; 4 or more from its start or its end will do. "
            "`open-memex list` shows them.",
        )
    rows = ws.index.find(ws.homes(), part)
    memory_id = _the_one(ws, part, rows)
    teller = Teller(memory_id)
    personal = [row for row in rows if row.place_kind == "personal"]
    drafts = [row for row in rows if row.place_kind == "outbox"]
    steps: list[Step] = []
    engine = ""
    if ws.site is not None and not personal:
        try:
            found = ws.git.versions(f"{memory_id}.md", _folders(ws))
        except OpenMemexError as error:
            # A draft has a life without git. Of anything else a part would be told as the whole.
            if not drafts or len(drafts) < len(rows):
                raise
            found = []
            notices.append(Notice("git", f"what git knows of it is not in here: {error.message}"))
        teller.texts = ws.git.texts([oid for one in found for oid in (one.oid, *one.before) if oid])
        engine = "git" if found else ""
        steps += [teller.step(one, found[at + 1 :]) for at, one in enumerate(found)][::-1]
        committed = next(((one.oid, one.path) for one in found if not one.branch), None)
        here = [(row.blob, row.rel_path) for row in rows if row.place_kind == "repository"]
        if not freshness.fresh or here != [committed]:
            steps += _work_tree(ws, teller, found)
    for row in personal + drafts:
        steps += _on_this_computer(ws, teller, row, shared=bool(steps))
    if not steps:
        raise _nothing(ws, part)
    if any(step.action == "begins" for step in steps):
        notices.append(
            Notice(
                "shallow",
                "This clone is shallow: of what was before, nothing is known here. `git fetch --unshallow` "
                "brings it.",
            )
        )
    if any(step.unreadable == NOT_HERE for step in steps):
        notices.append(
            Notice("partial", "Some texts were never fetched into this clone, and can't be fetched now.")
        )
    if teller.hidden:
        versions = "1 version holds" if teller.hidden == 1 else f"{teller.hidden} versions hold"
        notices.append(
            Notice("secret", f"{versions} a secret in clear; it is masked here only, git's history keeps it.")
        )
    return Life(
        memory_id, rows[0].summary if rows else "", _path(rows, steps), tuple(steps), engine, tuple(notices)
    )


def _path(rows: Sequence[Row], steps: Sequence[Step]) -> str:
    """Where the memory is here, else where it was last on this branch, else where other branches have it."""
    here = [row.rel_path for row in rows if row.place_kind == "repository"]
    own = [step.path for step in reversed(steps) if not step.branch]
    return [*here, *own, steps[-1].path][0]


def _folders(ws: Workspace) -> list[str]:
    return list(dict.fromkeys((ws.settings.memory_dir, *USUAL_FOLDERS)))


def _the_one(ws: Workspace, part: str, rows: Sequence[Row]) -> str:
    """The whole id that `part` means: of what is here, else of a file that can't be read, else of history."""
    found = sorted({row.id for row in rows})
    if not found:
        names = [unread.path.rpartition("/")[2][:-3] for unread in ws.index.quarantined(ws.homes())]
        found = sorted({name for name in names if is_id(name) and _fits(name, part)})
    if not found and is_id(part):
        return part
    if not found and ws.site is not None:
        found = [name for name in ws.git.names_in_history(part, _folders(ws)) if is_id(name)]
    if not found:
        raise _nothing(ws, part)
    if len(found) > 1:
        more = f" and {len(found) - _CANDIDATES} more" if len(found) > _CANDIDATES else ""
        raise DecisionNeeded(
            f"{part} fits {len(found)} memories: {', '.join(found[:_CANDIDATES])}{more}.",
            "Type more of the id that you mean.",
        )
    return found[0]


def _fits(name: str, part: str) -> bool:
    return name.startswith(part) or name.endswith(part)


def _nothing(ws: Workspace, part: str) -> NotFound:
    if ws.site is not None and ws.git.shallow:
        return NotFound(
            f"No memory here has the id {part}, and none in what this shallow clone has of git's history.",
            "`git fetch --unshallow` brings the rest; then try again.",
        )
    return NotFound(
        f"No memory here, and none in git's history, has the id {part}.",
        "`open-memex list --all` shows every memory of this place.",
    )


def _work_tree(ws: Workspace, teller: Teller, found: Sequence[Version]) -> Iterator[Step]:
    """What the work tree has that HEAD has not: the last step, which no commit holds yet."""
    # Takes as long to load as a short walk through git's history.
    from openmemex.store import files

    try:
        home = ws.repository_home()
    except Refused:
        return  # a link or a file in the place of the memory folder: nothing there is read
    if home is None:
        return
    path = home.shown(home.path_of(teller.memory_id))
    last = next((one for one in found if not one.branch), None)
    committed = teller.memory(last.oid) if last is not None else None
    state = ""
    if last is not None and last.oid is not None and last.path == path:
        # The bytes alone don't tell: git may store another form of a file (line ends, filters), and in a
        # sparse checkout a file can be absent and not deleted.
        state = _state(ws, path)
        if not state:
            return
    changes: list[Change] = []
    try:
        file = files.read(home, teller.memory_id)
    except NotFound:
        if state == "deleted":
            yield Step(None, "", None, "deleted", "work tree", path, (Change("file", "there", "deleted"),))
        return
    except Unreadable as error:
        if isinstance(committed, Memory) or last is None or last.oid is None:
            reason = secrets.mask(error.reason).text
            yield Step(None, "", None, "changed", "work tree", path, unreadable=reason, line=error.line)
        return
    action = "changed"
    if last is None:
        action = "added"
    elif last.oid is None:
        action = "returned"
        changes.append(Change("file", "deleted", "there"))
    elif last.path != path:
        action = "moved"
        changes.append(Change("path", last.path, path))
    elif committed is None:
        return  # what was committed is not in this clone
    known = [committed] if isinstance(committed, Memory) else []
    changes += compared(known, file.memory)
    review = reviewed(known, file.memory)
    if changes or review:
        teller.parsed(file.raw)
        at = file.memory.updated_at
        yield Step(None, at, None, action, "work tree", path, tuple(changes), review)


def _state(ws: Workspace, path: str) -> str:
    """How `path` differs from HEAD as git sees it; "" when it does not."""
    entries = ws.git.folder_status(path.rpartition("/")[0])
    return next((entry.state for entry in entries if entry.path == path), "")


def _on_this_computer(ws: Workspace, teller: Teller, row: Row, shared: bool) -> Iterator[Step]:
    """The steps of a memory that no commit has, as its own file tells them: its making, its review."""
    from openmemex.writing import open_copy  # loads much that only drafts and personal memories need here

    document = open_copy(ws, row).document
    memory = document.memory
    teller.parsed(document.raw)
    place, path = row.place_kind, row.rel_path
    if shared:
        last = memory.updated_at or memory.created_at
        yield Step(None, last, None, "changed", place, path, tuple(compared([], memory)))
        return
    yield Step(None, memory.created_at, None, "added", place, path, tuple(compared([], memory)))
    moments = {memory.created_at}
    for entry in reviewed([], memory):
        moments.add(entry.at)
        yield Step(None, entry.at, entry.by, "reviewed", place, path, review=(entry,))
    changed, made = parse_time(memory.updated_at), parse_time(memory.created_at)
    if memory.updated_at not in moments and changed is not None and (made is None or changed > made):
        yield Step(None, memory.updated_at, None, "changed", place, path)

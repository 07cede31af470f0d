"""Doctor: is everything here as it should be, and if not, what mends it. Read-only but for the index."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from openmemex import checking, kinds, paths, settling
from openmemex.branches import lost_branches
from openmemex.errors import OpenMemexError
from openmemex.index.rows import EVERY, Filters, Row
from openmemex.memory import frontmatter
from openmemex.memory.ids import new_id
from openmemex.store import files, journal
from openmemex.trust import secrets
from openmemex.workspace import Workspace
from openmemex.writing import open_copy

_SHOWN = 20


@dataclass(frozen=True)
class Check:
    """One thing looked at: `ok`, what was seen, and the command or act that mends it ("" when there is
    none).
    """

    name: str
    ok: bool
    text: str
    fix: str = ""


def doctor(ws: Workspace) -> list[Check]:
    """Every check, in a fixed order. A check that fails by itself is a failed check, never an error."""
    checks: list[Check] = []
    for name, look in _CHECKS:
        try:
            checks += [Check(name, *rest) for rest in look(ws)]
        except OpenMemexError as error:
            checks.append(Check(name, False, error.message, error.hint))
        except OSError as error:
            told = paths.failure("look at", str(error.filename or ws.data_root), error)
            checks.append(Check(name, False, told.message, told.hint))
    return checks


_Result = tuple[bool, str, str]


def _data_root(ws: Workspace) -> Iterator[_Result]:
    root = ws.data_root
    try:
        mode = stat.S_IMODE(os.stat(root).st_mode)
    except FileNotFoundError:
        yield True, f"{root} is made at the first write", ""
        return
    except OSError as error:
        yield False, f"{root}: {error.strerror}", "see to it that you may read and write that folder"
        return
    if not os.access(root, os.W_OK | os.X_OK):
        yield False, f"{root} is not writable", "give yourself write permission, or set OPEN_MEMEX_HOME"
    elif sys.platform != "win32" and mode & 0o077:
        yield False, f"others on this computer can read {root} (mode {mode:04o})", f"chmod 700 {root}"
    else:
        yield True, root, ""
    for intent in journal.pending(root):
        yield False, f"a {intent.kind} of {intent.at} was interrupted", "the next write finishes it"


def _config(ws: Workspace) -> Iterator[_Result]:
    if not ws.settings_problems:
        yield True, ws.config_file if os.path.exists(ws.config_file) else "no file: the defaults hold", ""
    for problem in ws.settings_problems:
        where = f"{ws.config_file}, line {problem.line}: " if problem.line else ""
        fix = (
            f"open-memex config unset {problem.key}"
            if problem.kind == "retired"
            else f"edit {ws.config_file}"
        )
        yield problem.kind == "retired", where + problem.text, fix


def _index(ws: Workspace) -> Iterator[_Result]:
    freshness = ws.reconcile()
    if ws.index.warning:
        yield False, ws.index.warning, "see docs/troubleshooting.md"
    for folder in freshness.unreadable:
        yield False, f"{folder} can't be read", "give yourself permission to read and enter that folder"
    if not freshness.fresh and not freshness.unreadable:
        yield False, "another process holds the index", "try again; `open-memex reindex` makes a new one"
    else:
        total = ws.index.counts(ws.homes())["total"][""]
        rebuilt = f" ({freshness.rebuilt})" if freshness.rebuilt else ""
        yield True, f"{total} memories of this place are indexed{rebuilt}", ""


def _quarantine(ws: Workspace) -> Iterator[_Result]:
    in_conflict = set()
    if ws.site is not None and ws.site.root:
        in_conflict = {one.path for one in ws.git.unmerged()}  # told by the check of merges
    unread = [one for one in ws.index.quarantined(ws.homes()) if one.path not in in_conflict]
    if not unread:
        others = ", apart from those in conflict" if in_conflict else ""
        yield True, f"every memory file can be read{others}", ""
    for one in unread:
        line = f", line {one.line}" if one.line else ""
        yield False, f"{one.path}{line}: {one.reason}", "mend the file by hand; it was left as it is"


def _values(ws: Workspace) -> Iterator[_Result]:
    """Values that were read leniently: a misspelt state or type counts as the default until it is mended."""
    odd = [
        (f"{file.home.shown(file.path)}, line {problem.line}: {problem.field} {problem.text}")
        for home in ws.homes()
        if home.kind != "branch"
        for file in files.scan(home)
        if isinstance(file, files.MemoryFile)
        for problem in file.document.problems
    ]
    for told in odd[:_SHOWN]:
        yield (
            False,
            secrets.mask(told).text,
            "mend that line by hand, or set the field with `open-memex edit`",
        )
    if len(odd) > _SHOWN:
        yield False, f"{len(odd) - _SHOWN} more values like that", "mend these first, then look again"


def _project(ws: Workspace) -> Iterator[_Result]:
    project = ws.project
    if project.source == "none":
        yield True, f"{project.reason}: only personal memories are here", ""
    else:
        yield True, f"{project.name} ({project.root}), known as {project.keys[0]}", ""


def _git(ws: Workspace) -> Iterator[_Result]:
    if ws.site is None:
        yield True, "not in a git repository: memories stay on this computer", ""
        return
    found = ws.git.capabilities()
    yield not found.old_git, kinds.served(found), "" if not found.old_git else "install a newer git"
    kind = kinds.kind(found)
    if kind:
        yield True, "this is " + ", ".join(kind), ""
    habits = kinds.habits(found)
    if habits:
        yield True, "; ".join(habits), ""
    if found.state:
        yield False, f"a {found.state} is not finished", kinds.way_on(found.state)
    try:
        author = ws.git.author()
        yield True, secrets.mask(f"commits are by {author.name} <{author.email}>").text, ""
    except OpenMemexError as error:
        yield False, error.message, error.hint


def _memory_folder(ws: Workspace) -> Iterator[_Result]:
    if ws.site is None or ws.project.source == "none":
        return
    home = ws.repository_home()
    if home is None:
        yield True, "a bare repository has no memory folder to write to", ""
        return
    shown = home.shown(home.folder)
    if ws.git.pending_operation() is None:  # else told by the check of git
        example = new_id()
        try:
            ws.git.check_commit([f"{shown}/{example}.md"])
        except OpenMemexError as error:
            # The folder is meant: there is no such memory.
            message, hint = (text.replace(f"/{example}.md", "") for text in (error.message, error.hint))
            yield False, f"nothing could be submitted now: {message}", hint
            return
    otherwise = ws.git.stored_otherwise(shown)
    if otherwise is not None:
        yield False, *otherwise
    if not os.path.isdir(home.folder):
        yield True, f"{shown} is made by the first submit", ""
    else:
        total = ws.index.counts([home])["total"][""]
        yield True, f"{shown} holds {total} memories", ""


def _merge_driver(ws: Workspace) -> Iterator[_Result]:
    """Whether git merges concurrent edits of memories by field here."""
    if ws.site is None or ws.project.source == "none":
        return
    home = ws.repository_home()
    if home is not None:
        yield ws.git.driver_health(home.shown(home.folder))


def _merges(ws: Workspace) -> Iterator[_Result]:
    """What is in conflict now, and what merges joined without a conflict and should be looked at."""
    if ws.site is None or not ws.site.root:
        return
    unmerged = ws.git.unmerged()
    folders = settling.folders_of(ws, unmerged)
    open_ = [one for one in unmerged if settling.memory_id_of(one.path, folders)]
    if open_:
        yield False, f"in conflict: {', '.join(one.path for one in open_[:_SHOWN])}", "open-memex resolve"
    checked = checking.check(ws)
    if checked.failed:
        yield False, checked.failed, "git fsck"
    for problem in checked.problems[:_SHOWN]:
        yield False, secrets.mask(f"{problem.ids[0]}: {problem.text}").text, problem.fix
    if len(checked.problems) > _SHOWN:
        yield False, f"{len(checked.problems) - _SHOWN} more like that", "open-memex resolve"
    if not (open_ or checked.problems or checked.failed):
        joined = f"; {checked.count} were joined by merges, as they should be" if checked.count else ""
        if checked.texts:
            joined += f" (two edits of one text line by line: {', '.join(checked.texts[:_SHOWN])})"
        yield True, f"no memory is in conflict{joined}", ""


def _two_texts(ws: Workspace) -> Iterator[_Result]:
    """One id with a draft here and another text in the repository: a person has to choose."""
    places: dict[str, dict[str, Row]] = {"outbox": {}, "repository": {}}
    for home in ws.homes():
        if home.kind in places:
            rows = ws.index.list([home], Filters(all=True), EVERY).rows
            places[home.kind] |= {row.id: row for row in rows}
    for memory_id in sorted(places["outbox"].keys() & places["repository"].keys()):
        draft, shared = (open_copy(ws, places[kind][memory_id]) for kind in ("outbox", "repository"))
        if frontmatter.substance(draft.document.memory) != frontmatter.substance(shared.document.memory):
            both = f"{places['outbox'][memory_id].path} and {places['repository'][memory_id].path}"
            yield False, f"{memory_id} has different texts in {both}", "compare them, and delete one"
        else:
            told = f"{memory_id} is shared already, its draft is still here"
            yield False, told, f"open-memex submit {memory_id}"


def _branches(ws: Workspace) -> Iterator[_Result]:
    for lost in lost_branches(ws):
        yield False, lost.told, lost.remedy


_CHECKS: tuple[tuple[str, Callable[[Workspace], Iterator[_Result]]], ...] = (
    ("data root", _data_root),
    ("settings", _config),
    ("project", _project),
    ("index", _index),
    ("memory files", _quarantine),
    ("values", _values),
    ("git", _git),
    ("memory folder", _memory_folder),
    ("merge driver", _merge_driver),
    ("merges", _merges),
    ("drafts", _two_texts),
    ("branches", _branches),
)

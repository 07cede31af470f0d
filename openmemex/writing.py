"""What every write shares: the copy that is changed, the lock, the journal of interrupted steps, who writes.

Each operation that writes does it inside `writing(ws, home)`: one process at a time a home, the interrupted
steps of earlier runs finished first, the index up to date before the decision and after the write.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from openmemex import faults, paths
from openmemex.errors import IndexBusy, NotFound, OpenMemexError, Refused
from openmemex.git import light
from openmemex.index import segment
from openmemex.index.rows import EVERY, Filters, Row
from openmemex.memory import frontmatter, lifecycle
from openmemex.memory.ids import new_id
from openmemex.memory.model import HistoryEntry, Memory, now_text, parse_time
from openmemex.results import Notice
from openmemex.store import files, homes, journal, locks
from openmemex.trust import admission, secrets
from openmemex.workspace import Workspace

Document = frontmatter.Document


@dataclass(frozen=True)
class Copy:
    """One place's copy of a memory: its home, and the file as it was read (None: only a branch has it)."""

    home: homes.Home
    document: Document
    file: files.MemoryFile | None


def open_copy(ws: Workspace, row: Row) -> Copy:
    """Read the copy that `row` stands for, whole: from its file, or from git for one that only a branch
    has.
    """
    home = _home_of_path(ws, row)
    if home.kind != "branch":
        file = files.read(home, row.id)
        return Copy(home, file.document, file)
    for _, raw in ws.git.blobs([row.blob]):
        return Copy(home, frontmatter.parse(raw, stem=row.id, default_scope="project"), None)
    raise NotFound(f"{row.id} is no longer on {row.place_label.removeprefix('on ')}", "run the command again")


def writable_copy(ws: Workspace, row: Row) -> files.MemoryFile:
    """As `open_copy`, for a change: raises Refused for a memory that only a branch not checked out has."""
    copy = open_copy(ws, row)
    if copy.file is None:
        branch = row.place_label.removeprefix("on branch ")
        where = ws.git.checked_out_at(branch)
        if where is not None:
            # git lets no second work tree have it.
            raise Refused(
                f"{row.id} is on branch {branch}, which is checked out in {where}",
                "run the same command there",
            )
        raise Refused(
            f"{row.id} is on branch {branch}, which is not checked out here",
            f"run `git switch {shlex.quote(branch)}` first, then try again",
        )
    return copy.file


def _home_of_path(ws: Workspace, row: Row) -> homes.Home:
    for home in ws.homes():
        if home.kind != row.place_kind:
            continue
        if home.kind == "branch":
            if row.place_label == "on branch " + home.ref.removeprefix("refs/heads/"):
                return home
        elif home.path_of(row.id) == row.path:
            return home
    raise NotFound(f"the place of {row.id} is gone", "run the command again")


def lock_key(ws: Workspace, scope: str) -> str:
    """The name of the lock that writes to a scope take: one for the personal home, one a project."""
    return "personal" if scope == "personal" else ws.project.keys[0]


def scope_homes(ws: Workspace, scope: str) -> list[homes.Home]:
    """The homes of here that hold memories of `scope`: the places where the same text may already be."""
    return [home for home in ws.homes() if (home.kind == "personal") == (scope == "personal")]


def chains(ws: Workspace, scope: str) -> lifecycle.Chains:
    """Who replaces whom among the memories of `scope` here. Rejected and retracted ones replace nothing.

    Call it after a reconcile.
    """
    listed = ws.index.list(scope_homes(ws, scope), Filters(all=True), EVERY)
    return lifecycle.Chains(
        {
            row.id: lifecycle.Pointers(row.supersedes, row.superseded_by, row.status)
            for row in listed.rows
            if row.review_state != "rejected" and row.status != "retracted"
        }
    )


@contextmanager
def writing(ws: Workspace, key: str) -> Iterator[bool]:
    """Hold the lock of the home whose scope key is `key`, with nothing half done and the index up to date.

    Gives whether the index could be brought up to date; afterwards it is brought up to date again.
    """
    _keep_out_of_git(ws)
    with locks.lock(ws.data_root, key):
        finish_interrupted(ws, key)
        fresh = ws.reconcile().fresh
        yield fresh
        if fresh:
            ws.reconcile()


def late_index(fresh: bool) -> list[Notice]:
    """The notice for a write that stands although the index was held by another process."""
    if fresh:
        return []
    return [Notice("index-busy", "saved; the index is busy and catches up at the next read")]


def already_expired(expires_at: str | None) -> list[Notice]:
    """The notice for a memory whose end lies in the past: it is saved, and found by nobody."""
    end = parse_time(expires_at)
    if end is None or end > datetime.now(UTC):
        return []
    return [Notice("expired", f"it expired on {expires_at}: only `list --all` and `search --all` show it")]


def _keep_out_of_git(ws: Workspace) -> None:
    """Let git ignore a data root that lies in a work tree: personal memories are never to be committed."""
    try:
        site = light.find_site(ws.data_root, ws.environ)
    except light.BrokenSite:
        return  # a .git that leads nowhere commits nothing
    ignore = os.path.join(ws.data_root, ".gitignore")
    if site is not None and site.root and not os.path.lexists(ignore):
        paths.make_folder(ws.data_root)
        paths.atomic_write(ignore, b"*\n")


def writer(ws: Workspace) -> str:
    """Who writes here, for review entries: the setting `identity`, else git's user.name, else the login name.

    Secrets in it are masked like in any other text.
    """
    name = ws.settings.identity
    if not name and ws.site is not None:
        try:
            name = ws.git.author().name
        except OpenMemexError:
            name = ""
    if not name:
        name = ws.environ.get("USER") or ws.environ.get("USERNAME") or "unknown"
    return secrets.mask(name).text


def history_with(
    memory: Memory, by: str, to_state: str, note: str | None, at: str
) -> tuple[HistoryEntry, ...]:
    """The review history of `memory` with one more step at its end."""
    return (*memory.review_history, HistoryEntry(at, by, memory.review_state, to_state, note))


def link_pair(
    ws: Workspace, home: homes.Home, new: Memory, old: files.MemoryFile, at: str
) -> files.MemoryFile:
    """Write `new`, which supersedes `old` in the same home, and mark `old`: both, or after a kill the rest
    later.

    The journal says that this computer began it; `finish_interrupted` completes the half that a kill left.
    """
    intent = journal.begin(
        ws.data_root,
        "supersede",
        lock=lock_key(ws, home.scope),
        folder=home.folder,
        key=home.scope_key,
        place=home.kind,
        new=new.id,
        old=old.memory.id,
        at=at,
    )
    faults.reached("supersede.begun")
    written = files.write_new(home, new)
    faults.reached("supersede.new-written")
    _mark_superseded(old, new.id, at)
    faults.reached("supersede.old-marked")
    journal.finish(intent)
    return written


def superseded_changes(new_id: str, at: str) -> dict[str, Any]:
    """The front matter changes that mark a memory as replaced by `new_id`."""
    return {"status": "superseded", "superseded_by": new_id, "updated_at": at}


def _mark_superseded(old: files.MemoryFile, new_id: str, at: str) -> None:
    if old.memory.superseded_by == new_id and old.memory.status == "superseded":
        return
    files.replace(old, frontmatter.rewrite(old.document, superseded_changes(new_id, at)))


def finish_interrupted(ws: Workspace, key: str) -> None:
    """Finish what an earlier run began under the lock `key` and was killed in. Call it with that lock held:
    only then is a step without an end a step whose process is gone."""
    for intent in journal.pending(ws.data_root):
        if intent.kind == "supersede" and intent.values.get("lock") == key:
            _finish_supersede(ws, intent)


def _finish_supersede(ws: Workspace, intent: journal.Intent) -> None:
    def value(name: str) -> str:
        return str(intent.values.get(name) or "")

    home = homes.Home(value("place"), value("folder"), "", value("key"), ws.data_root)
    try:
        new = files.read(home, value("new"))
        old = files.read(home, value("old"))
    except OpenMemexError:
        # The new text was never written, or a person has moved or broken one of the two since: files rule.
        journal.finish(intent)
        return
    if new.memory.supersedes == old.memory.id and old.memory.superseded_by is None:
        try:
            _mark_superseded(old, new.memory.id, value("at") or now_text())
        except OpenMemexError:
            return
    journal.finish(intent)


def judged(
    ws: Workspace, screened: admission.Screened, replaces: str = ""
) -> admission.Admitted | admission.Duplicate | admission.Blocked:
    """Whether `screened` says something new in its scope here, apart from the memory that it `replaces`."""
    try:
        near = ws.index.neighbours(screened.content, scope_homes(ws, screened.scope))
    except IndexBusy:
        near = []  # the write stands; a double that it makes is told by nobody until the index is free
    return admission.judge(
        screened,
        [one for one in near if one.id != replaces],
        tokens=frozenset(segment.tokens(screened.content)),
        now=now_text(),
        replaces=bool(replaces),
    )


def new_memory(ws: Workspace, screened: admission.Screened, scope_key: str) -> Memory:
    """The memory that `screened` becomes: a new id, now, the project's name, a draft."""
    at = now_text()
    personal = screened.scope == "personal"
    return Memory(
        id=new_id(),
        body=screened.content,
        scope=screened.scope,
        scope_key="personal" if personal else scope_key,
        visibility="private" if personal else "internal",
        project_name=None if personal else secrets.mask(ws.project.name).text,
        type=screened.type,
        role=screened.role,
        importance=screened.importance,
        tags=screened.tags,
        aliases=screened.aliases,
        source=screened.source,
        created_at=at,
        updated_at=at,
        canonical_ref=screened.canonical_ref,
        paths=screened.paths,
        expires_at=screened.expires_at,
    )


def shown_path(ws: Workspace, memory_id: str) -> str:
    """The path of a memory of here as output shows it; empty when the index does not know it."""
    rows = ws.index.find(ws.homes(), memory_id)
    return rows[0].rel_path if rows else ""


def repository_notice(home: homes.Home, memory_id: str) -> list[Notice]:
    """What to do next after a change to a file in the work tree: only a commit brings it to the team."""
    if home.kind != "repository":
        return []
    return [Notice("submit", f"changed in your work tree; to share it: open-memex submit {memory_id}")]

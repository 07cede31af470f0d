"""How the results of the commands read to a person."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from openmemex.cli import plain, render_resolve
from openmemex.cli.escape import one_line, visible
from openmemex.cli.terminal import Screen
from openmemex.memory.model import parse_time
from openmemex.results import Written, memory_json

if TYPE_CHECKING:
    from openmemex.index.rows import Row, Unread
    from openmemex.operations.config import Entry
    from openmemex.operations.doctor import Check
    from openmemex.operations.forget import Forgotten
    from openmemex.operations.listing import Listed
    from openmemex.operations.pull import Pulled
    from openmemex.operations.reindex import Reindexed
    from openmemex.operations.scopes import ScopeLine
    from openmemex.operations.show import Shown
    from openmemex.operations.submit import Submitted
    from openmemex.operations.sync_status import SyncStatus
    from openmemex.operations.where import Where
    from openmemex.workspace import Project

SECTIONS = (
    ("personal", "On this computer, for you alone"),
    ("outbox", "Waiting to be shared"),
    ("repository", "In the repository, shared with the team"),
    ("branch", "On other branches"),
    ("revision", "In the repository then"),
)

SHOWN = 20
SOURCES = {
    "option": "named by --project",
    "environment": "named by OPEN_MEMEX_PROJECT",
    "repository": "this folder's repository",
    "folder": "this folder; it is in no repository",
}


def age_of(row: Row, now: float | None = None) -> str:
    """When a memory last changed, in the words of a person; seen from `now`, or from the clock."""
    when = parse_time(row.updated_at) or parse_time(row.created_at)
    if when is None:
        return "at an unknown time"
    return plain.age((time.time() if now is None else now) - when.timestamp())


def sections(
    rows: Iterable[Row], screen: Screen, *, first: int = 1, now: float | None = None
) -> Iterator[str]:
    """Rows under a heading for each kind of place, numbered through all of them."""
    rows = list(rows)
    number = first
    for kind, title in SECTIONS:
        here = [row for row in rows if row.place_kind == kind]
        if not here:
            continue
        if number > first:
            yield ""
        yield screen.style(f"{title}:", "bold")
        for row in here:
            yield from plain.row_lines(number, row, age_of(row, now), screen, where=False)
            number += 1


def list_lines(listed: Listed, screen: Screen, project: Project, *, filtered: bool) -> Iterator[str]:
    """What a list shows: the rows in sections, the true total, and how to see the rest."""
    here = one_line(f"in {project.name}" if project.name else "on this computer")
    if listed.then is not None:
        here += f" at {listed.then.commit[:10]}"
    fitting = " that fit" if filtered else ""
    yield from sections(listed.rows, screen, now=None if listed.then is None else listed.then.now)
    shown = len(listed.rows)
    if not shown:
        yield f"No memories {here}{fitting}."
        yield from _hidden_lines(listed)
        return
    yield ""
    left = listed.total - shown
    if left:
        yield (
            f"The newest {shown} of {plain.memories(listed.total)} {here}{fitting}; "
            f"{left} not shown: --limit {listed.total}"
        )
    else:
        yield f"{plain.memories(listed.total)} {here}{fitting}."
    if listed.then is not None:
        yield plain.see_then(listed.rows[0], listed.then)
    yield from _hidden_lines(listed)


def _hidden_lines(listed: Listed) -> Iterator[str]:
    if listed.hidden:
        others = "1 more is" if listed.hidden == 1 else f"{listed.hidden} more are"
        yield f"{others} replaced, retracted, archived or expired: --all"


def body_lines(text: str) -> Iterator[str]:
    """A memory's text as it stands, with nothing in it taken for markup or for a terminal's command."""
    yield from visible(text).rstrip("\n").split("\n")


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows of cells in columns that stand below each other; the last column is not padded."""
    if not rows:
        return
    shown = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(plain.columns(row[at]) for row in shown) for at in range(len(shown[0]) - 1)]
    for row in shown:
        cells = [cell + " " * (width - plain.columns(cell)) for cell, width in zip(row, widths, strict=False)]
        yield "  ".join([*cells, row[-1]]).rstrip()


def unread_lines(files: Iterable[Unread]) -> Iterator[str]:
    """Files that can't be read as memories, each with its place and reason."""
    for file in files:
        where = f"{file.path}, line {file.line}" if file.line else file.path
        yield "  " + one_line(f"{where}: {file.reason}")


def show_lines(shown: Shown, screen: Screen) -> Iterator[str]:
    """One memory whole: what it is, then its text."""
    row, memory = shown.row, shown.memory
    state = row.status if row.status == "active" else screen.style(row.status, "yellow")
    facts = [
        ("type", row.type + (" (instruction)" if row.role == "instruction" else "")),
        ("where", f"{plain.place(row)}: {row.rel_path}"),
        ("scope", row.scope + (f" ({row.project_name})" if row.project_name else "")),
        ("state", f"{state}, {row.review_state}"),
        ("importance", row.importance if row.importance != "normal" else ""),
        ("changed", f"{age_of(row)} ({row.updated_at})"),
        ("made", f"{row.created_at}, by {row.source}"),
        ("tags", ", ".join(row.tags)),
        ("aliases", ", ".join(row.aliases)),
        ("about", ", ".join(row.paths)),
        ("see", memory.canonical_ref or ""),
        ("valid", " to ".join(filter(None, (memory.valid_from, memory.valid_until)))),
        ("expires", row.expires_at or ""),
        ("replaces", row.supersedes or ""),
        ("replaced by", row.superseded_by or ""),
        ("links", ", ".join(f"{link.rel} {link.to}" for link in memory.links)),
        ("review", memory.review_note or ""),
        ("also at", ", ".join(f"{plain.place(other)}: {other.rel_path}" for other in shown.others)),
    ]
    yield screen.style(row.id, "yellow")
    yield from table([(name, value) for name, value in facts if value])
    yield ""
    yield from body_lines(shown.content)


def where_json(place: Where) -> dict[str, Any]:
    """What `where --json` prints."""
    return {**vars(place), "scope_keys": list(place.scope_keys)}


def where_lines(place: Where) -> Iterator[str]:
    """The folders of here."""
    if place.project:
        project = f"{place.project_name}, in {place.project} ({SOURCES.get(place.source, place.source)})"
    else:
        project = f"none: {place.reason}"
    yield from table(
        [
            ("project", project),
            ("shared with the team", place.repository or "nowhere: no repository's work tree here"),
            ("waiting to be shared", place.outbox or "nowhere: no project"),
            ("on this computer", place.personal),
            ("data folder", place.data_root),
            ("index", place.index),
            ("configuration", place.config_file),
        ]
    )
    if place.project and place.reason:
        yield one_line(f"Not used: {place.reason}")


def scope_lines(lines: Sequence[ScopeLine]) -> Iterator[str]:
    """What memories on this computer belong to."""
    words = dict(SECTIONS)
    yield from table(
        [
            (
                f"{number}.",
                plain.memories(line.count),
                words.get(line.kind, line.kind) + (f": {line.label}" if line.label else ""),
                "here" if line.here else "elsewhere",
                line.key,
                line.folder,
            )
            for number, line in enumerate(lines, 1)
        ]
    )


def unread_json(files: Iterable[Unread]) -> list[dict[str, Any]]:
    """Files that can't be read as memories, for --json."""
    return [file._asdict() for file in files]


def pulled_json(pulled: Pulled) -> dict[str, Any]:
    """What `pull --json` prints."""
    return {
        "branch": pulled.branch,
        "remote": pulled.remote,
        "before": pulled.before,
        "after": pulled.after,
        "engine": pulled.engine,
        "fetched_at": pulled.fetched_at,
        "authors": list(pulled.authors),
        "added": [memory_json(row) for row in pulled.added],
        "changed": [memory_json(row) for row in pulled.changed],
        "removed": list(pulled.removed),
        "quarantined": unread_json(pulled.quarantined),
        "flagged": [memory_json(row) for row in pulled.flagged],
        "checked": pulled.checked.count,
        "problems": [render_resolve.problem_json(problem) for problem in pulled.checked.problems],
    }


def pulled_lines(pulled: Pulled, screen: Screen) -> Iterator[str]:
    """The receipt of a pull."""
    if pulled.before == pulled.after:
        yield one_line(f"{pulled.branch} is up to date with {pulled.remote}.")
    else:
        span = f"{(pulled.before or 'nothing')[:10]}..{pulled.after[:10]}"
        by = f", by {', '.join(pulled.authors)}" if pulled.authors else ""
        yield one_line(f"{pulled.branch} is now at {pulled.remote}'s newest commit ({span}){by}.")
    number = 1
    for title, rows in (("New", pulled.added), ("Changed", pulled.changed)):
        if rows:
            yield screen.style(f"{title}:", "bold")
        for row in rows:
            yield from plain.row_lines(number, row, age_of(row), screen)
            number += 1
    if pulled.removed:
        yield screen.style("Removed:", "bold")
    for path in pulled.removed:
        yield f"{number}. {one_line(path)}"
        number += 1
    if not (pulled.added or pulled.changed or pulled.removed) and pulled.before != pulled.after:
        yield "It brought no change to the team's memories."
    if pulled.flagged:
        yield "Their files hold secrets in clear: " + ", ".join(row.id for row in pulled.flagged)
    if pulled.quarantined:
        yield "Can't be read as memories:"
        yield from unread_lines(pulled.quarantined)
    yield from render_resolve.problem_lines(pulled.checked.problems, screen)


def written_lines(written: Written, project: Project) -> Iterator[str]:
    """What became of a write, and the next step."""
    if written.action == "duplicate":
        yield f"Nothing was written: {written.id} says the same already."
        return
    if written.action == "unchanged":
        yield f"Nothing changed: {written.id} is like that already."
        return
    folder = written.path.split("/")
    waits = folder[0] == "memories" and folder[1:2] != ["personal"]
    done = {"created": "Saved", "superseded": "Saved, in the place of the old one:", "updated": "Changed"}
    yield f"{done.get(written.action, written.action)} {written.id}"
    if waits:
        yield "  " + one_line(f"waiting to be shared, in {project.name}: {written.path}")
        if written.action != "updated":
            yield f"  share it with the team: open-memex submit {written.id}"
    elif folder[0] == "memories":
        yield "  " + one_line(f"on this computer, for you alone: {written.path}")
    else:
        yield "  " + one_line(f"in the repository: {written.path}")


def forgotten_json(done: Forgotten) -> dict[str, Any]:
    """What `forget --json` prints."""
    return {
        "items": [
            {
                "id": item.row.id,
                "action": item.action,
                "path": item.row.rel_path,
                "note": item.note or None,
                "hint": item.hint or None,
            }
            for item in done.items
        ],
        "done": sum(item.action != "failed" for item in done.items),
        "total": len(done.items),
    }


def forgotten_lines(done: Forgotten) -> Iterator[str]:
    """What became of each memory that was to be forgotten; what failed is told on stderr instead."""
    words = {
        "deleted": "Deleted",
        "retracted": "Retracted, kept in its file but no longer found:",
        "unchanged": "Nothing to do for",
    }
    for item in done.items:
        if item.action in words:
            yield f"{words[item.action]} {item.row.id}" + (f" ({one_line(item.note)})" if item.note else "")


def sync_status_json(status: SyncStatus) -> dict[str, Any]:
    """What `sync-status --json` prints."""
    project = status.project
    return {
        "project": {
            "name": project.name or None,
            "root": project.root or None,
            "source": project.source,
            "scope_key": project.keys[0] if project.keys else None,
            "reason": project.reason or None,
        },
        "outbox": [memory_json(row) for row in status.outbox],
        "on_branches": [memory_json(row) for row in status.on_branches],
        "uncommitted": [entry.path for entry in status.uncommitted],
        "states": status.states,
        "quarantined": unread_json(status.quarantined),
        "last_sync": status.last_sync,
        "fetched_at": status.fetched_at,
        "unpushed": status.unpushed,
        "git": status.git or None,
    }


def sync_status_lines(status: SyncStatus, screen: Screen) -> Iterator[str]:
    """Where the memories of this project stand, and the next step."""
    project = status.project
    if project.root:
        yield one_line(f"Project {project.name}, in {project.root}")
    else:
        yield one_line(f"No project here: {project.reason}")
    shared = sum(status.states.values())
    if status.states:
        detail = ", ".join(f"{number} {state}" for state, number in status.states.items())
        yield f"Shared with the team: {plain.memories(shared)} ({one_line(detail)})"
    elif not status.git:
        yield "Shared with the team: no memories yet"
    if status.unpushed:
        count = plain.counted(status.unpushed, "commit")
        yield f"Not pushed yet: {count} with memories; the team gets them by: git push"
    if status.git:
        yield one_line(f"Git: {status.git}")
    if status.fetched_at:
        when = parse_time(status.fetched_at)
        if when is not None:
            yield f"Last pull: {plain.age(time.time() - when.timestamp())}"
    number = 1
    for title, rows, how in (
        ("Waiting to be shared", status.outbox, "open-memex list --all --state waiting --limit"),
        ("On other branches", status.on_branches, ""),
    ):
        if not rows:
            continue
        yield ""
        yield screen.style(f"{title}: {len(rows)}", "bold")
        for row in rows[:SHOWN]:
            yield from plain.row_lines(number, row, age_of(row), screen)
            number += 1
        if len(rows) > SHOWN:
            number += len(rows) - SHOWN
            rest = f"{how} {len(rows)}" if how else "open-memex sync-status --json"
            yield f"{len(rows) - SHOWN} more, not shown: {rest}"
    if status.outbox:
        yield "Share with the team: open-memex submit ID..."
    if status.uncommitted:
        yield ""
        yield screen.style(f"Changed in the repository, not committed: {len(status.uncommitted)}", "bold")
        for entry in status.uncommitted:
            yield f"{number}. " + one_line(f"{entry.path} ({entry.state})")
            number += 1
        yield "Commit them: open-memex submit ID..."
        if any(entry.state == "conflicted" for entry in status.uncommitted):
            yield "Settle the conflicts first: open-memex resolve"
    if status.quarantined:
        yield ""
        yield screen.style(f"Can't be read as memories: {len(status.quarantined)}", "bold")
        yield from unread_lines(status.quarantined)
    if not (status.outbox or status.on_branches or status.uncommitted):
        yield "Nothing waits to be shared."


def reindexed_json(made: Reindexed) -> dict[str, Any]:
    """What `reindex --json` prints."""
    return {"memories": made.memories, "quarantined": unread_json(made.quarantined), "fresh": made.fresh}


def reindexed_lines(made: Reindexed) -> Iterator[str]:
    """How many memories the new index knows, and what it could not read."""
    left = len(made.quarantined)
    if not made.fresh:
        yield "Not finished: another process holds the index. The next search goes on."
    elif left:
        yield f"Made the index again from {made.memories} of {made.memories + left} files; left out:"
    else:
        yield f"Made the index again from {plain.memories(made.memories)}."
    yield from unread_lines(made.quarantined)


def check_lines(checks: Sequence[Check], screen: Screen) -> Iterator[str]:
    """Each check, what it found, and how to mend it."""
    for check in checks:
        mark = screen.style("ok", "green") if check.ok else screen.style("bad", "red")
        yield f"{mark:<4}" + one_line(f"{check.name}: {check.text}")
        if not check.ok and check.fix:
            yield "    " + one_line(check.fix)
    bad = sum(not check.ok for check in checks)
    yield f"{bad} of {plain.counted(len(checks), 'check')} failed." if bad else "All is well."


def value_text(value: Any) -> str:
    """A setting's value as a person types it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (tuple, list)):
        return one_line(", ".join(map(str, value)))
    return one_line(str(value))


def entry_json(entry: Entry) -> dict[str, Any]:
    """A setting for --json."""
    plain_value = list(entry.value) if isinstance(entry.value, tuple) else entry.value
    default = list(entry.default) if isinstance(entry.default, tuple) else entry.default
    return {"key": entry.key, "value": plain_value, "default": default, "set": entry.is_set, "doc": entry.doc}


def entry_lines(entries: Sequence[Entry], config_file: str) -> Iterator[str]:
    """All settings, those of the file marked."""
    yield from table(
        [
            (entry.key, value_text(entry.value) or "(empty)", "*" if entry.is_set else "", entry.doc)
            for entry in entries
        ]
    )
    yield one_line(f"* differs from the default, by {config_file}")


def set_lines(entry: Entry, config_file: str) -> Iterator[str]:
    """What `config set` did."""
    yield one_line(f"{entry.key} is now {value_text(entry.value) or '(empty)'}, in {config_file}")


def unset_lines(key: str, changed: bool, config_file: str) -> Iterator[str]:
    """What `config unset` did."""
    if changed:
        yield one_line(f"{key} is no longer in {config_file}: its default holds")
    else:
        yield one_line(f"Nothing changed: {key} is not in {config_file}")


def submitted_json(done: Submitted) -> dict[str, Any]:
    """What `submit --json` prints."""
    return {
        "commit": done.commit or None,
        "branch": done.branch,
        "files": list(done.files),
        "pushed": done.pushed,
        "pr": done.pr,
        "next": list(done.next),
        "already": done.already,
        "engine": done.engine or None,
        "words": list(done.words),
        "dry_run": done.dry_run,
        "notices": [notice._asdict() for notice in done.notices],
    }


def submitted_lines(done: Submitted) -> Iterator[str]:
    """What a submit committed, and the commands that go on from there."""
    files = plain.counted(len(done.files), "file")
    if done.already and done.dry_run:
        yield one_line(f"Nothing new to commit: {done.branch} has it already:")
    elif done.dry_run:
        yield one_line(f"Would commit {files} to {done.branch}; nothing was changed:")
    elif done.already:
        yield one_line(f"Nothing new to commit: {done.branch} has it already ({(done.commit or '')[:10]}):")
    elif done.commit:
        yield one_line(f"Committed {files} to {done.branch} ({done.commit[:10]}):")
    else:
        yield "Nothing was left to commit."
    for number, path in enumerate(done.files, 1):
        yield f"  {number}. " + one_line(path)
    if done.pushed:
        yield one_line(f"Pushed {done.branch}.")
    if done.next:
        yield "Next:"
    for step in done.next:
        yield "  " + one_line(step)

"""How the results of the commands read to a person (docs/cli.md holds an example of each)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from openmemex.cli import plain
from openmemex.cli.escape import one_line, visible
from openmemex.cli.terminal import Screen
from openmemex.memory.model import parse_time
from openmemex.results import memory_json

if TYPE_CHECKING:
    from openmemex.index.rows import Row, Unread
    from openmemex.operations.listing import Listed
    from openmemex.operations.pull import Pulled
    from openmemex.operations.scopes import ScopeLine
    from openmemex.operations.show import Shown
    from openmemex.operations.where import Where
    from openmemex.workspace import Project

SECTIONS = (
    ("personal", "On this computer, for you alone"),
    ("outbox", "Waiting to be shared"),
    ("repository", "Shared with the team"),
    ("branch", "On other branches"),
)

SOURCES = {
    "option": "named by --project",
    "environment": "named by OPEN_MEMEX_PROJECT",
    "repository": "this folder's repository",
    "folder": "this folder; it is in no repository",
}


def age_of(row: Row) -> str:
    """When a memory last changed, in the words of a person."""
    when = parse_time(row.updated_at) or parse_time(row.created_at)
    return plain.age(time.time() - when.timestamp()) if when is not None else "at an unknown time"


def sections(rows: Iterable[Row], screen: Screen, *, first: int = 1) -> Iterator[str]:
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
            yield from plain.row_lines(number, row, age_of(row), screen)
            number += 1


def list_lines(listed: Listed, screen: Screen, project: Project, *, filtered: bool, every: bool) -> Iterator[str]:
    """What a list shows: the rows in sections, the true total, and how to see the rest."""
    here = one_line(f"in {project.name}" if project.name else "on this computer")
    fitting = " that fit" if filtered else ""
    yield from sections(listed.rows, screen)
    shown = len(listed.rows)
    if not shown:
        yield f"No memories {here}{fitting}."
        yield "--all also shows replaced, retracted, archived and expired ones." if not every else ""
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
        "fetched_at": pulled.fetched_at,
        "authors": list(pulled.authors),
        "added": [memory_json(row) for row in pulled.added],
        "changed": [memory_json(row) for row in pulled.changed],
        "removed": list(pulled.removed),
        "quarantined": unread_json(pulled.quarantined),
        "flagged": [memory_json(row) for row in pulled.flagged],
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


ACTIONS = {
    "created": "Saved as {id}, {place}.",
    "superseded": "Saved as {id}, in the place of the old one, {place}.",
    "updated": "Changed {id}.",
    "unchanged": "Nothing changed: {id} is like that already.",
    "duplicate": "Nothing was written: {id} says the same already.",
}

"""Which of the stored memories a reader of some homes may find: by place, by lifecycle, by filter.

The index holds more than one reader may see: other projects, branches that were left, older texts. What is
visible is worked out once for a state of the index and kept as a temporary table, of the hidden or of the
visible ones, whichever are fewer; a search then asks for each match whether it is in there.

Rules of lifecycle (docs/protocol.md, "Lifecycle"; memory/lifecycle.py has them for a handful of memories): a
memory is hidden when one other memory that is here supersedes it, whichever of the two files says so. A chain
that forks, leads into a loop or points at nothing hides nothing. Of one id with different texts in several
homes the best home's counts.

Part of every search's start-up: light imports only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from openmemex.index.rows import key_of

if TYPE_CHECKING:
    from openmemex.index.rows import Filters, Place

# Where one id lies in several homes, this says whose text counts.
RANK = {"repository": 0, "outbox": 1, "personal": 2, "branch": 3, "revision": 4}
_FOREVER = 1 << 62


class Homes(NamedTuple):
    """The homes of a reader that the index knows: their row ids, best first, and the places themselves."""

    ids: tuple[int, ...]
    places: Mapping[int, Place]

    @property
    def listed(self) -> str:
        """The row ids as SQL (they are integers of our own)."""
        return ", ".join(map(str, self.ids))


class View(NamedTuple):
    """What a reader may find.

    `table` is a temporary table of content ids: those hidden (`hides`) or those visible; "" when nothing is
    hidden. `total` memories are visible. It holds from `since` up to `until` (microseconds; things expire).
    `statuses` and `successors` complete what files say (content → status that counts, id of its successor);
    `reasons`: content → why lifecycle hides it.
    """

    table: str
    hides: bool
    total: int
    since: int
    until: int
    statuses: Mapping[int, str]
    successors: Mapping[int, str]
    reasons: Mapping[int, str]

    def clause(self, column: str) -> str:
        """An SQL condition (with its leading `and`) that `column`, a content id, is visible."""
        if not self.table:
            return ""
        # The plus keeps SQLite from asking the full-text table once per id.
        return f" and +{column} {'not in' if self.hides else 'in'} (select id from {self.table})"


def known_homes(connection: sqlite3.Connection, homes: Sequence[Place]) -> Homes:
    """Those of `homes` that the index has met, best first."""
    known = {
        (kind, folder, ref): home
        for home, kind, folder, ref in connection.execute("select id, kind, folder, ref from home")
    }
    found = {
        known[key]: place
        for place in sorted(homes, key=lambda place: RANK.get(place.kind, 9))
        if (key := key_of(place)) in known
    }
    return Homes(tuple(found), found)


def build(connection: sqlite3.Connection, homes: Homes, filters: Filters, now: int, name: str) -> View:
    """Work out what a reader of `homes` may find at `now` (microseconds); no table is called `name` yet."""
    table = f"temp.{name}"
    connection.execute(f"create temp table {name} (id integer primary key)")
    hides = _by_place(connection, homes, table)
    shadowed = _shadowed(connection, homes)
    here = f"{'not in' if hides else 'in'} (select id from {table})"
    statuses, successors = _chains(connection, here, shadowed)
    reasons: dict[int, str] = {}
    since, until = -_FOREVER, _FOREVER
    if not filters.all and filters.status in ("", "active", "deprecated"):
        reasons = _by_status(connection, statuses)
        since, until = _add_expired(connection, reasons, now)
    _hide(connection, table, hides, shadowed)
    _hide(connection, table, hides, reasons)
    condition, values = _condition(filters, f"temp.{name}_s")
    if condition:
        connection.execute(f"create temp table {name}_s (id integer primary key, status text)")
        connection.executemany(f"insert into temp.{name}_s values (?, ?)", statuses.items())
        picked = f"temp.{name}_f"
        connection.execute(f"create temp table {name}_f (id integer primary key)")
        connection.execute(
            f"insert into {picked} select id from content where {condition} and id {here}", values
        )
        connection.execute(f"drop table {table}")
        connection.execute(f"drop table temp.{name}_s")
        table, hides = picked, False
    (count,) = connection.execute(f"select count(*) from {table}").fetchone()
    if hides:
        (rows,) = connection.execute("select rows from total").fetchone()
        if count == 0:
            connection.execute(f"drop table {table}")
            table = ""
        count = rows - count
    return View(table, hides, count, since, until, statuses, successors, reasons)


def _by_place(connection: sqlite3.Connection, homes: Homes, table: str) -> bool:
    """Fill `table` with what lies in no home of `homes` (True), or with what lies there (False)."""
    # What only old revisions name counts as left, for all but their own readers.
    counts = dict(connection.execute("select id, count from home where kind <> 'revision'"))
    here = sum(counts.get(home, 0) for home in homes.ids)
    (orphans,) = connection.execute("select count(*) from orphan").fetchone()
    others = [home for home in counts if home not in homes.places]
    old = any(home not in counts for home in homes.ids)
    if old or orphans + sum(counts[home] for home in others) > here:
        connection.execute(
            f"insert or ignore into {table} select content from place"
            f" where home in ({homes.listed}) and content is not null"
        )
        return False
    connection.execute(f"insert into {table} select content from orphan")
    if others:
        connection.execute(
            f"insert or ignore into {table} select content from place"
            f" where home in ({', '.join(map(str, others))}) and content is not null and not exists (select 1"
            f" from place as mine where mine.content = place.content and mine.home in ({homes.listed}))"
        )
    return True


def _hide(connection: sqlite3.Connection, table: str, hides: bool, contents: Iterable[int]) -> None:
    statement = f"insert or ignore into {table} values (?)" if hides else f"delete from {table} where id = ?"
    connection.executemany(statement, [(content,) for content in contents])


def _shadowed(connection: sqlite3.Connection, homes: Homes) -> set[int]:
    """Contents of an id that a better home has with another text."""
    if not homes.ids:
        return set()
    rank = {home: position for position, home in enumerate(homes.ids)}
    best: dict[str, tuple[int, int]] = {}
    copies: list[tuple[str, int]] = []
    for memory, content, home in connection.execute(
        "select twin.memory, content.id, place.home from twin cross join content using (memory)"
        f" cross join place on place.content = content.id where place.home in ({homes.listed})"
    ):
        copies.append((memory, content))
        best[memory] = min(best.get(memory, (_FOREVER, 0)), (rank[home], content))
    return {content for memory, content in copies if best[memory][1] != content}


def _chains(
    connection: sqlite3.Connection, here: str, shadowed: set[int]
) -> tuple[dict[int, str], dict[int, str]]:
    """How the supersede pointers of here change what files say: (status that counts, successor).

    `here` is the end of an SQL condition that a content id lies in the reader's homes.
    Both by content: the first holds only contents whose own status says something else, the second those
    whose file names no successor although there is one.
    """
    both = f"older.id {here} and newer.id {here}"
    columns = "older.id, older.memory, older.status, older.superseded_by, newer.id, newer.memory"
    # A draft that was given up may not hide what it was going to replace; a file that says it was replaced,
    # was.
    edges = connection.execute(
        f"select {columns} from content as newer"
        " cross join content as older on older.memory = newer.supersedes"
        " where newer.supersedes is not null and newer.status <> 'retracted'"
        f" and newer.review_state <> 'rejected' and {both}"
        f" union all select {columns} from content as older"
        " cross join content as newer on newer.memory = older.superseded_by"
        f" where older.superseded_by is not null and {both}"
    ).fetchall()
    successors: dict[str, set[str]] = {}
    olds: dict[int, tuple[str, str, str | None]] = {}
    may_loop = False
    for content, older, status, named, other, newer in edges:
        if older != newer and content not in shadowed and other not in shadowed:
            successors.setdefault(older, set()).add(newer)
            olds[content] = (older, status, named)
            # Ids grow with time: where every link leads to a newer id there can be no loop.
            may_loop = may_loop or newer < older
    astray = _leading_into_loops(successors) if may_loop else frozenset()

    counts: dict[int, str] = {}
    named_by_others: dict[int, str] = {}
    for content, (older, status, named) in olds.items():
        if older in astray or len(successors[older]) > 1:
            if status == "superseded":
                counts[content] = "active"
        elif status in ("active", "deprecated"):
            counts[content] = "superseded"
        if named is None and older not in astray and len(successors[older]) == 1:
            named_by_others[content] = next(iter(successors[older]))
    for content, named in connection.execute(
        "select id, superseded_by from content where status in ('superseded', 'retracted', 'archived')"
        " and status = 'superseded'"
    ):
        if named is not None and content not in olds:
            counts[content] = "active"  # what it names is not here
    return counts, named_by_others


def _leading_into_loops(successors: Mapping[str, set[str]]) -> frozenset[str]:
    """The ids from which a walk to newer ones never ends: no one newest memory can be named for them.

    What is left when ids without successors are taken away, again and again (A. B. Kahn, "Topological
    sorting of large networks", 1962); nothing recurses, so a chain may be thousands long.
    """
    left = {older: len(newer) for older, newer in successors.items()}
    predecessors: dict[str, list[str]] = {}
    for older, newer in successors.items():
        for one in newer:
            predecessors.setdefault(one, []).append(older)
    ends = [one for one in predecessors if one not in left]
    while ends:
        for older in predecessors.get(ends.pop(), ()):
            left[older] -= 1
            if not left[older]:
                del left[older]
                ends.append(older)
    return frozenset(left)


def _by_status(connection: sqlite3.Connection, counts: Mapping[int, str]) -> dict[int, str]:
    """Content → the status that hides it."""
    reasons = dict(
        connection.execute(
            "select id, status from content where status in ('superseded', 'retracted', 'archived')"
        )
    )
    for content, status in counts.items():
        if status == "superseded":
            reasons[content] = status
        else:
            reasons.pop(content, None)
    return reasons


def _add_expired(connection: sqlite3.Connection, reasons: dict[int, str], now: int) -> tuple[int, int]:
    """Note in `reasons` what has expired at `now`; the moments between which exactly that has."""
    for (content,) in connection.execute("select id from content where until <= ?", (now,)):
        reasons.setdefault(content, "expired")
    (last,) = connection.execute("select max(until) from content where until <= ?", (now,)).fetchone()
    (following,) = connection.execute("select min(until) from content where until > ?", (now,)).fetchone()
    return -_FOREVER if last is None else last, _FOREVER if following is None else following


def _condition(filters: Filters, completed: str) -> tuple[str, list[object]]:
    """The SQL condition on `content` that `filters` mean; "" when they let everything through.

    `completed` is the table of contents whose status is another one than their file says.
    """
    parts: list[str] = []
    values: list[object] = []
    for column, value in (
        ("scope", filters.scope),
        ("type", filters.type),
        ("review_state", filters.review_state),
    ):
        if value:
            parts.append(f"{column} = ?")
            values.append(value)
    for tag in filters.tags:
        parts.append("instr(tags, ?) > 0")
        values.append(f"\x1f{tag}\x1f")
    if filters.status:
        parts.append(
            f"(status = ? and id not in (select id from {completed})"
            f" or id in (select id from {completed} where status = ?))"
        )
        values += [filters.status, filters.status]
    return " and ".join(parts), values

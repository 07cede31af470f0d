"""Take into the index what a look found changed: read, mask, cut and store it, in small transactions.

Everything slow (reading, parsing, looking for secrets) is done before the lock is taken, so that another
process waits for one short insert at most. A place is replaced only if it still is what was compared with,
so two processes that do the same work do it once, and one that is late undoes nothing. A run that is killed
leaves whole batches; the next one goes on with what is missing.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import sqlite3
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from openmemex import faults
from openmemex.errors import OpenMemexError
from openmemex.index import schema, segment
from openmemex.index.rows import Progress, as_stored, key_of
from openmemex.index.sync import TREES, UNSETTLED, UNSETTLED_MARK, Stale, stamp_of
from openmemex.memory import frontmatter, ids
from openmemex.memory.fences import split
from openmemex.memory.model import MAX_FILE_BYTES, Memory, parse_time
from openmemex.trust import secrets
from openmemex.trust.admission import text_key

if TYPE_CHECKING:
    from openmemex.index.rows import Place, TreeReader

BATCH = 400
SUMMARY_LENGTH = 160
SEPARATOR = "\x1f"
# Contents that no place names are kept for a while: a branch that is left is often come back to.
ORPHANS_KEPT = 20_000
ORPHAN_SECONDS = 30 * 86_400
HOME_SECONDS = 90 * 86_400
PRUNED_AT_ONCE = 1_000
# Old revisions whose list of memories is kept, so that a second look costs no tree.
REVISIONS_KEPT = 16
OPTIMIZE_FROM = 2_000
ODD_NAME = "the file's name is no memory id in upper case followed by .md"
LINK = "a symbolic link, which is not followed"

_COLUMNS = (
    "id, blob, memory, scope, scope_key, type, role, status, review_state, importance, tags, aliases, source,"
    " created_at, updated_at, expires_at, valid_until, supersedes, superseded_by, project_name, paths,"
    " summary, masked, text_key, created, until, length"
)
_INSERT_CONTENT = f"insert into content ({_COLUMNS}) values ({', '.join('?' * 27)})"
_ID_FIELD = re.compile(r"^id[ \t]*:", re.MULTILINE)
_READ_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)  # opening a pipe must not wait for its other end
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
# How long after a change the same stamp may come again. Kernels stamp by their tick (at most 16 ms); file
# systems that round, to 10 ms (exFAT) up to 2 s (FAT), show round stamps. As git's "racily clean" entries
# (https://git-scm.com/docs/racy-git).
_FINE_NS = 100_000_000
_COARSE_NS = 2_100_000_000
_ROUND_NS = 10_000_000


# The hash of a file's stamp, or the blob of a file in a tree.
Mark = int | str


class Outcome(NamedTuple):
    """What was taken in. `settled` False: something changed meanwhile, and another look is worth while."""

    read: int = 0
    added: int = 0
    changed: int = 0
    removed: int = 0
    settled: bool = True


class Content(NamedTuple):
    """One parsed memory, masked, as the tables take it (`values` without the row id)."""

    memory_id: str
    values: tuple[object, ...]
    stream: str
    length: int


class _Wanted(NamedTuple):
    """A file or blob to read: its key, the mark that the index has of it (None: none) and the one found."""

    name: str
    known: Mark | None
    mark: Mark


class _Plan(NamedTuple):
    """What differs in one home: what to read, and what is gone (key, the mark that the index has of it)."""

    stale: Stale
    version: int
    changed: list[_Wanted]
    gone: list[tuple[str, Mark]]


class _Item(NamedTuple):
    """One file or blob that was read: where it goes, and what it is or why it is none."""

    name: str
    known: Mark | None
    mark: Mark
    blob: bytes | None
    content: Content | None
    line: int
    reason: str | None


class _Stored(NamedTuple):
    """What one batch did."""

    added: int
    changed: int
    removed: int
    inserted: int
    late: bool


def ingest(
    connection: sqlite3.Connection,
    stale: Sequence[Stale],
    trees: TreeReader | None,
    *,
    rules: schema.Rules,
    full_text: bool,
    progress: Progress | None = None,
) -> Outcome:
    """Bring the homes in `stale` up to date; `progress(done, total)` is called after every batch.

    Raises sqlite3.OperationalError when another process holds the index for longer than the limit; the
    batches before that are kept. A branch whose tree can't be read stays as it was (`settled` is then
    False).
    """
    plans = []
    unreadable = False
    for home in stale:
        try:
            plans.append(_plan(connection, home, trees))
        except OpenMemexError:
            unreadable = True
    total = sum(len(plan.changed) for plan in plans)
    done = added = changed = removed = inserted = 0
    late = False
    for plan in plans:
        for batch, last in _batches(plan):
            items = list(_read(connection, plan.stale.place, batch.changed, trees, rules.cjk))
            stored = _store(connection, plan, items, batch.gone, rules=rules, last=last, full_text=full_text)
            done += len(items)
            added += stored.added
            changed += stored.changed
            removed += stored.removed
            inserted += stored.inserted
            late = late or stored.late
            faults.reached("index.batch-committed")
            if stored.late:
                # Someone else is at work here: what is left is compared anew instead of done twice.
                break
            plan = plan._replace(version=plan.version + 1)
            if progress is not None and total:
                progress(done, total)
    _tidy(connection, full_text)
    if inserted >= OPTIMIZE_FROM and full_text:
        connection.execute("insert into full_text (full_text) values ('optimize')")
    return Outcome(done, added, changed, removed, not late and not unreadable)


def _plan(connection: sqlite3.Connection, stale: Stale, trees: TreeReader | None) -> _Plan:
    version = stale.version
    known: dict[str, Mark] = {}
    if stale.home is not None:
        connection.execute("begin")  # version and places must be of one moment
        try:
            row = connection.execute("select version from home where id = ?", (stale.home,)).fetchone()
            version = row[0] if row else 0
            known = dict(connection.execute("select name, mark from place where home = ?", (stale.home,)))
        finally:
            connection.execute("commit")
    found: Mapping[str, Mark] = {}
    if stale.listing is not None:
        found = stale.listing.by_key()
    elif stale.tip and trees is not None:
        found = {
            key: oid
            for name, oid in trees.entries(stale.place).items()
            if name.endswith(".md") and ids.is_id(key := os.path.basename(name)[:-3])
        }
    get = known.get
    wanted = [_Wanted(key, get(as_stored(key)), mark) for key, mark in found.items()]
    changed = [one for one in wanted if one.known != one.mark]
    gone = [(key, known[key]) for key in known.keys() - {as_stored(key) for key in found}]
    return _Plan(stale, version, changed, gone)


def _batches(plan: _Plan) -> Iterator[tuple[_Plan, bool]]:
    """`plan` cut into batches, each with whether it is the last; an empty plan is one empty batch."""
    steps = max(1, -(-max(len(plan.changed), len(plan.gone)) // BATCH))
    for step in range(steps):
        part = slice(step * BATCH, (step + 1) * BATCH)
        yield plan._replace(changed=plan.changed[part], gone=plan.gone[part]), step == steps - 1


def _read(
    connection: sqlite3.Connection,
    place: Place,
    names: Sequence[_Wanted],
    trees: TreeReader | None,
    cjk: str,
) -> Iterator[_Item]:
    if place.kind in TREES:
        yield from _read_blobs(connection, place, names, trees, cjk)
        return
    files: list[tuple[_Wanted, bytes, bytes]] = []
    for wanted in names:
        odd = not ids.is_id(wanted.name)
        file = wanted.name if wanted.name[-3:].lower() == ".md" else wanted.name + ".md"
        raw, reason, settled = read_file(os.path.join(place.folder, file), wanted.mark)
        if odd and (raw is not None or reason):
            # Noted, so that it is not read again; quarantined only if it means to be a memory.
            meant = raw is not None and _names_an_id(raw)
            kept = wanted if settled else wanted._replace(mark=UNSETTLED_MARK)
            kept = kept._replace(name=as_stored(kept.name))
            yield _Item(*kept, None, None, 0, ODD_NAME if meant else None)
        elif raw is not None:
            files.append((wanted if settled else wanted._replace(mark=UNSETTLED_MARK), _blob_id(raw), raw))
        elif reason:
            yield _Item(*wanted, None, None, 0, reason)
        # Without a reason it vanished after the look: the next look says so.
    stored = _stored_contents(connection, [blob for _, blob, _ in files])
    for wanted, blob, raw in files:
        if _holds(stored, blob, wanted.name):
            yield _Item(*wanted, blob, None, 0, None)
        else:
            yield _parsed(wanted, blob, raw, place.scope, cjk)


def _names_an_id(raw: bytes) -> bool:
    try:
        parts = split(raw)
    except frontmatter.Unreadable:
        return False
    return _ID_FIELD.search(parts.text, parts.start, parts.end) is not None


def _read_blobs(
    connection: sqlite3.Connection,
    place: Place,
    names: Sequence[_Wanted],
    trees: TreeReader | None,
    cjk: str,
) -> Iterator[_Item]:
    # In a tree the blob's id is the mark.
    oids = {one.name: str(one.mark) for one in names}
    stored = _stored_contents(connection, [bytes.fromhex(oid) for oid in oids.values()])
    unknown = [oid for name, oid in oids.items() if not _holds(stored, bytes.fromhex(oid), name)]
    texts = _texts(trees, unknown) if trees is not None and unknown else {}
    for wanted in names:
        oid = oids[wanted.name]
        blob = bytes.fromhex(oid)
        if _holds(stored, blob, wanted.name):
            yield _Item(*wanted, blob, None, 0, None)
        elif oid not in texts:
            # The next look asks again: it may have been fetched by then.
            later = wanted._replace(mark=UNSETTLED_MARK)
            yield _Item(*later, None, None, 0, "its text is not in this clone")
        elif len(texts[oid]) > MAX_FILE_BYTES:
            yield _Item(*wanted, None, None, 0, _too_large(len(texts[oid])))
        else:
            yield _parsed(wanted, blob, texts[oid], place.scope, cjk)


def _texts(trees: TreeReader, oids: list[str]) -> dict[str, bytes]:
    """The texts of those blobs that are here: a partial clone may lack some."""
    try:
        return dict(trees.blobs(oids))
    except OpenMemexError:
        found: dict[str, bytes] = {}
        for oid in oids:
            try:
                found.update(trees.blobs([oid]))
            except OpenMemexError:
                pass
        return found


def _holds(stored: dict[bytes, tuple[int, str]], blob: bytes, name: str) -> bool:
    return blob in stored and stored[blob][1] == name


def _parsed(wanted: _Wanted, blob: bytes, raw: bytes, scope: str, cjk: str) -> _Item:
    try:
        document = frontmatter.parse(raw, stem=wanted.name, default_scope=scope or "personal")
    except frontmatter.Unreadable as error:
        return _Item(*wanted, None, None, error.line, secrets.mask(error.reason).text)
    content = content_of(document.memory, blob, cjk)
    if b"\\u" in raw or b"\\U" in raw:
        # YAML's escapes can bring half a surrogate pair, which is no text for SQLite.
        values = tuple(_storable(value) for value in content.values)
        content = content._replace(values=values, stream=str(_storable(content.stream)))
    return _Item(*wanted, blob, content, 0, None)


def _blob_id(raw: bytes) -> bytes:
    return hashlib.sha1(b"blob %d\0" % len(raw) + raw, usedforsecurity=False).digest()


def _stored_contents(connection: sqlite3.Connection, blobs: Sequence[bytes]) -> dict[bytes, tuple[int, str]]:
    marks = ", ".join("?" * len(blobs))
    rows = connection.execute(f"select blob, id, memory from content where blob in ({marks})", blobs)
    return {blob: (content, memory) for blob, content, memory in rows}


def read_file(path: str, mark: Mark) -> tuple[bytes | None, str, bool]:
    """The bytes of the file that had `mark` when it was listed: (bytes, why there are none, settled).

    Only a regular file is read, never through a link. No bytes and no reason: it is not there. Not settled:
    it is not the file that was listed, or so new that a further change might leave the same stamp.
    """
    now = time.time_ns()
    try:
        if not hasattr(os, "O_NOFOLLOW") and stat.S_ISLNK(os.lstat(path).st_mode):
            return None, LINK, True
        handle = os.open(path, _READ_FLAGS)
    except FileNotFoundError:
        return None, "", False
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None, LINK, True
        return None, f"can't be opened: {error.strerror}", True
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            what = "a folder, not a file" if stat.S_ISDIR(status.st_mode) else "no regular file"
            return None, what, True
        if status.st_size > MAX_FILE_BYTES:
            return None, _too_large(status.st_size), True
        raw = os.read(handle, MAX_FILE_BYTES + 1)
        while len(raw) < status.st_size and (more := os.read(handle, MAX_FILE_BYTES + 1)):
            raw += more
    except OSError as error:
        return None, f"can't be read: {error.strerror}", True
    finally:
        os.close(handle)
    # On Windows st_ctime is the time of creation.
    moment = status.st_mtime_ns if os.name == "nt" else status.st_ctime_ns
    doubt = _FINE_NS if moment % _ROUND_NS else _COARSE_NS
    return raw, "", hash(stamp_of(status)) == mark and moment < now - doubt


def _too_large(size: int) -> str:
    return f"over the limit of {MAX_FILE_BYTES >> 20} MiB ({size} bytes)"


def content_of(memory: Memory, blob: bytes, cjk: str) -> Content:
    """`memory` as the index keeps it: every text masked first, then cut; nothing of a secret gets further."""
    body, tags, aliases = memory.body, memory.tags, memory.aliases
    project_name, scope_key, paths = memory.project_name, memory.scope_key or "", memory.paths
    masked = False
    texts = (body, *tags, *aliases, project_name or "", scope_key, *paths)
    # Most memories hold no secret: one pass over everything says so, at a fraction of the price of one each.
    if secrets.find("\n".join(texts)):
        shown = [secrets.mask(text) for text in texts]
        masked = any(one.spans for one in shown)
        rest = iter([one.text for one in shown])
        body = next(rest)
        tags, aliases = tuple(next(rest) for _ in tags), tuple(next(rest) for _ in aliases)
        project_name = next(rest) if project_name is not None else (next(rest), None)[1]
        scope_key = next(rest)
        paths = tuple(rest)
    indexed = segment.index_text(body, tags, aliases, cjk=cjk)
    ends = [_micros(text) for text in (memory.expires_at, memory.valid_until) if text]
    values = (
        blob,
        memory.id,
        memory.scope,
        scope_key,
        memory.type,
        memory.role,
        memory.status,
        memory.review_state,
        memory.importance,
        _joined(tags),
        _joined(aliases),
        memory.source,
        memory.created_at,
        memory.updated_at,
        memory.expires_at,
        memory.valid_until,
        memory.supersedes,
        memory.superseded_by,
        project_name,
        _joined(paths),
        summary(body),
        masked,
        text_key(body),
        created if (created := _micros(memory.created_at)) is not None else ids.id_time_ms(memory.id) * 1000,
        min((end for end in ends if end is not None), default=None),
        indexed.length,
    )
    return Content(memory.id, values, indexed.stream, indexed.length)


def _joined(parts: Sequence[str]) -> str:
    """`parts` with a separator on every side, so that a whole part can be looked for; "" for none."""
    if not parts:
        return ""
    return SEPARATOR + SEPARATOR.join(part.replace(SEPARATOR, " ") for part in parts) + SEPARATOR


def _storable(value: object) -> object:
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else value


def _micros(text: str | None) -> int | None:
    moment = parse_time(text)
    if moment is None:
        return None
    try:
        return int(moment.timestamp() * 1_000_000)
    except (OverflowError, ValueError):
        return None


_FURNITURE = re.compile(r"(?:#{1,6}\s+|[-*_=~`]{3,}.*$|>\s?)")


def summary(body: str) -> str:
    """The first words of a body, on one line: at most SUMMARY_LENGTH characters, without Markdown's
    furniture.
    """
    words: list[str] = []
    size = 0
    for line in body[: 20 * SUMMARY_LENGTH].splitlines():
        plain = (
            " ".join(_FURNITURE.sub("", line.strip(), count=1).split())
            if line[:1] in "#-*_=~`> "
            else (" ".join(line.split()))
        )
        if plain:
            words.append(plain)
            size += len(plain) + 1
            if size > SUMMARY_LENGTH:
                break
    text = " ".join(words)
    if len(text) <= SUMMARY_LENGTH:
        return text
    cut = text[: SUMMARY_LENGTH - 1]
    at = cut.rfind(" ")
    return (cut[:at] if at > SUMMARY_LENGTH // 2 else cut) + "…"


def _store(
    connection: sqlite3.Connection,
    plan: _Plan,
    items: Sequence[_Item],
    gone: Sequence[tuple[str, Mark]],
    *,
    rules: schema.Rules,
    last: bool,
    full_text: bool,
) -> _Stored:
    stale = plan.stale
    if not items and not gone and stale.home is not None:
        # Nothing to store but the tip; often another process has stored it already.
        row = connection.execute("select tip from home where id = ?", (stale.home,)).fetchone()
        if row and row[0] == stale.tip:
            return _Stored(0, 0, 0, 0, False)
    connection.execute("begin immediate")
    try:
        schema.check_rules(connection, rules)
        stored = _write(connection, plan, items, gone, last=last, full_text=full_text)
        faults.reached("index.batch-written")
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise
    return stored


def _write(
    connection: sqlite3.Connection,
    plan: _Plan,
    items: Sequence[_Item],
    gone: Sequence[tuple[str, Mark]],
    *,
    last: bool,
    full_text: bool,
) -> _Stored:
    home, version = _home(connection, plan.stale.place)
    contents = _stored_contents(connection, [item.blob for item in items if item.blob is not None])
    fresh: dict[bytes, Content] = {
        item.blob: item.content
        for item in items
        if item.blob is not None and item.content is not None and item.blob not in contents
    }
    inserted = _insert(connection, fresh, full_text)
    here = _places(connection, home, [item.name for item in items] + [name for name, _ in gone])

    upserts: list[tuple[object, ...]] = []
    placed: set[int] = set()
    left: set[int] = set()
    added = changed = 0
    late = False
    settled = version == plan.version
    for item in items:
        known, old = here.get(item.name, (None, None))
        content = inserted.get(item.blob) or contents.get(item.blob, (None,))[0] if item.blob else None
        if known != item.known or (item.blob is not None and content is None):
            late = True
            continue
        settled = settled and item.mark != UNSETTLED_MARK
        upserts.append((home, item.name, content, item.mark, item.line, item.reason))
        if content is not None:
            placed.add(content)
            added += old is None
            changed += old is not None and old != content
        if old is not None and old != content:
            left.add(old)
    connection.executemany(
        "insert or replace into place (home, name, content, mark, line, reason) values (?, ?, ?, ?, ?, ?)",
        upserts,
    )
    removed = 0
    dropped: list[tuple[object, ...]] = []
    for name, mark in gone:
        known, old = here.get(name, (None, None))
        if known != mark:
            late = late or known is not None
            continue
        dropped.append((home, name))
        if old is not None:
            removed += 1
            left.add(old)
    connection.executemany("delete from place where home = ? and name = ?", dropped)

    if plan.stale.place.kind == "revision":
        _keep_for_a_while(connection, placed)
    else:
        connection.executemany("delete from orphan where content = ?", [(content,) for content in placed])
    _leave(connection, left - placed, plan.stale.place.kind, full_text)
    # Inserted for a place that another process has changed meanwhile.
    _leave(connection, set(inserted.values()) - placed, "branch", full_text)
    whole = last and settled and not late
    connection.execute(
        "update home set tip = ?, version = version + 1, seen = ?, count = count + ? where id = ?",
        (
            plan.stale.tip if whole else UNSETTLED,
            int(time.time()),
            sum(row[2] is not None for row in upserts)
            - sum(here.get(str(row[1]), (None, None))[1] is not None for row in upserts)
            - removed,
            home,
        ),
    )
    return _Stored(added, changed, removed, len(inserted), late)


def _home(connection: sqlite3.Connection, place: Place) -> tuple[int, int]:
    key = key_of(place)
    connection.execute("insert or ignore into home (kind, folder, ref) values (?, ?, ?)", key)
    home, version = connection.execute(
        "select id, version from home where kind = ? and folder = ? and ref = ?", key
    ).fetchone()
    return home, version


def _places(
    connection: sqlite3.Connection, home: int, names: Sequence[str]
) -> dict[str, tuple[Mark, int | None]]:
    marks = ", ".join("?" * len(names))
    rows = connection.execute(
        f"select name, mark, content from place where home = ? and name in ({marks})", (home, *names)
    )
    return {name: (mark, content) for name, mark, content in rows}


def _insert(
    connection: sqlite3.Connection, fresh: dict[bytes, Content], full_text: bool
) -> dict[bytes | None, int]:
    """Store new contents; blob → row id."""
    if not fresh:
        return {}
    (first,) = connection.execute("select coalesce(max(id), 0) + 1 from content").fetchone()
    rows = list(enumerate(fresh.values(), first))
    connection.executemany(_INSERT_CONTENT, [(rowid, *content.values) for rowid, content in rows])
    streams = [(rowid, content.stream) for rowid, content in rows]
    connection.executemany("insert into stream (id, stream) values (?, ?)", streams)
    if full_text:
        connection.executemany("insert into full_text (rowid, stream) values (?, ?)", streams)
    connection.execute(
        "update total set rows = rows + ?, length = length + ?",
        (len(rows), sum(content.length for _, content in rows)),
    )
    marks = ", ".join("?" * len(rows))
    connection.execute(
        f"insert or ignore into twin select memory from content where memory in ({marks})"
        " group by memory having count(*) > 1",
        [content.memory_id for _, content in rows],
    )
    return {blob: rowid for blob, (rowid, _) in zip(fresh, rows, strict=True)}


_LASTING = (
    "select 1 from place cross join home on home.id = place.home"
    " where place.content = ? and home.kind <> 'revision'"
)


def _leave(connection: sqlite3.Connection, contents: set[int], kind: str, full_text: bool) -> None:
    """Note which of `contents` no lasting place names any more.

    What left a private folder is forgotten at once, unless an old revision of the repository says the same.
    """
    alone = [one for one in contents if not connection.execute(_LASTING, (one,)).fetchone()]
    if kind in ("personal", "outbox"):
        held = [
            one
            for one in alone
            if connection.execute("select 1 from place where content = ?", (one,)).fetchone()
        ]
        forget_contents(connection, [one for one in alone if one not in held], full_text)
        alone = held
    now = int(time.time())
    connection.executemany("insert or replace into orphan values (?, ?)", [(one, now) for one in alone])


def _keep_for_a_while(connection: sqlite3.Connection, contents: set[int]) -> None:
    """Note what only old revisions name as left: no other reader is to see it or pay for it."""
    now = int(time.time())
    connection.executemany(
        f"insert or ignore into orphan select ?, ? where not exists ({_LASTING})",
        [(one, now, one) for one in contents],
    )


def forget_contents(connection: sqlite3.Connection, contents: Sequence[int], full_text: bool) -> None:
    """Remove contents with their full-text rows, each by its own old text; the caller is in a transaction."""
    for content in contents:
        row = connection.execute(
            "select stream, memory, length from stream join content using (id) where id = ?", (content,)
        ).fetchone()
        connection.execute("delete from orphan where content = ?", (content,))
        if row is None:
            continue
        stream, memory, length = row
        if full_text:
            connection.execute(
                "insert into full_text (full_text, rowid, stream) values ('delete', ?, ?)", (content, stream)
            )
        connection.execute("delete from stream where id = ?", (content,))
        connection.execute("delete from content where id = ?", (content,))
        connection.execute("update total set rows = rows - 1, length = length - ?", (length,))
        connection.execute(
            "delete from twin where memory = ?1 and (select count(*) from content where memory = ?1) < 2",
            (memory,),
        )


def _tidy(connection: sqlite3.Connection, full_text: bool) -> None:
    """Remove some of the orphans that are too old or too many, homes that are gone, revisions looked at long
    ago or before many others.
    """
    now = int(time.time())
    (count,) = connection.execute("select count(*) from orphan").fetchone()
    (rows,) = connection.execute("select rows from total").fetchone()
    excess = count - max(ORPHANS_KEPT, (rows - count) // 2)
    old = connection.execute(
        "select 1 from orphan where since < ? limit 1", (now - ORPHAN_SECONDS,)
    ).fetchone()
    homes = [
        (home,)
        for home, kind, folder in connection.execute(
            "select id, kind, folder from home where seen < ?", (now - HOME_SECONDS,)
        )
        if kind == "branch" or not os.path.isdir(folder)
    ]
    homes += connection.execute(
        "select id from home where kind = 'revision' and (seen < ?1 or id not in"
        " (select id from home where kind = 'revision' order by seen desc, id desc limit ?2))",
        (now - ORPHAN_SECONDS, REVISIONS_KEPT),
    ).fetchall()
    if excess <= 0 and not old and not homes:
        return
    connection.execute("begin immediate")
    try:
        for (home,) in homes:
            rows_left = connection.execute(
                "select distinct content from place where home = ? and content is not null", (home,)
            ).fetchall()
            connection.execute("delete from place where home = ?", (home,))
            connection.execute("delete from home where id = ?", (home,))
            _leave(connection, {content for (content,) in rows_left}, "branch", full_text)
        # A revision that is kept keeps its texts.
        left = "content not in (select content from place where content = orphan.content)"
        going = connection.execute(
            f"select content from orphan where since < ? and {left} order by since limit ?",
            (now - ORPHAN_SECONDS, PRUNED_AT_ONCE),
        ).fetchall()
        if excess > 0:
            going += connection.execute(
                f"select content from orphan where since >= ? and {left} order by since limit ?",
                (now - ORPHAN_SECONDS, min(excess, PRUNED_AT_ONCE)),
            ).fetchall()
        forget_contents(connection, [content for (content,) in going], full_text)
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise

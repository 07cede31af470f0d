"""The file of the memory index: its tables, its versions, and what happens when it can't be used as it is.

The index is a cache, so every trouble has the same cure, which is to make it again from the files. What
differs is how to do that without harm to another process that has it open:

- older tables or rules: dropped and made again inside one transaction;
- newer ones, or a Python without FTS5: left alone, this program keeps its own file beside them;
- damage: the file is unlinked, under a lock and only if it is still the file that was found damaged. A
  process that has it open goes on with its own unlinked copy (SQLite leaves a write-ahead log alone whose
  database was moved: `databaseIsUnmoved` in its pager.c);
- a place that can't be written: a file in the user's cache folder, else memory.

Part of every search's start-up: light imports only.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
import zlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from openmemex.index import segment

SCHEMA_VERSION = 2
# To be raised when trust/rules.py changes: texts must be masked by the new rules. It stands here because
# those rules cost more start-up time than a search may take; a test holds the two together.
SECRETS_VERSION = 1
BUSY_SECONDS = 5.0

# `content` is one parsed memory, once per blob (git's id of its bytes); `place` says where it lies now, and
# by its mark what the file there looked like.
# `stream` is what the full-text row was made of, which is needed to delete that row. `orphan` are contents
# that no place names; `twin` are ids with more than one content. `total` has what ranking must know of all.
# The indexes on pointers hold everything that chains need, so that a search need not fetch the wide rows.
_TABLES = """
create table meta (key text primary key, value text not null) without rowid;
create table home (id integer primary key, kind text not null, folder text not null, ref text not null,
  tip text not null default '', version integer not null default 0, count integer not null default 0,
  seen integer not null default 0, unique (kind, folder, ref));
create table content (id integer primary key, blob blob not null unique, memory text not null,
  scope text not null, scope_key text not null, type text not null, role text not null, status text not null,
  review_state text not null, importance text not null, tags text not null, aliases text not null,
  source text not null, created_at text not null, updated_at text not null, expires_at text, valid_until text,
  supersedes text, superseded_by text, project_name text, paths text not null, summary text not null,
  masked integer not null, text_key text not null, created integer not null, until integer,
  length integer not null);
create table stream (id integer primary key, stream text not null);
create table place (home integer not null, name text not null, content integer, mark not null,
  line integer not null default 0, reason text, primary key (home, name)) without rowid;
create table orphan (content integer primary key, since integer not null);
create table twin (memory text primary key) without rowid;
create table total (id integer primary key check (id = 1), rows integer not null, length integer not null);
create table cache (key text primary key, value text not null, at integer not null) without rowid;
create index content_memory on content (memory, status, superseded_by);
create index content_created on content (created desc, memory desc);
create index content_text_key on content (text_key);
create index content_hidden on content (status) where status in ('superseded', 'retracted', 'archived');
create index content_supersedes on content (supersedes, memory, status, review_state)
  where supersedes is not null;
create index content_superseded_by on content (superseded_by, memory, status)
  where superseded_by is not null;
create index content_until on content (until) where until is not null;
create index place_content on place (content, home) where content is not null;
create index place_unread on place (home) where reason is not null;
insert into total values (1, 0, 0);
"""
# Contentless: phrases are looked up in `stream` when ranking. `segment` says which detail it needs.
_FULL_TEXT = """
create virtual table full_text using fts5 (stream, {options});
create virtual table vocabulary using fts5vocab (full_text, row);
"""

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_SCHEMA)
_UNUSABLE = (
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_NOLFS,
)


class Rules(NamedTuple):
    """What decides how a file becomes a row: rows made by other rules are made again."""

    schema: int
    segment: int
    secrets: int
    cjk: str

    @property
    def text(self) -> str:
        """As the meta table keeps it."""
        return f"{self.segment} {self.secrets} {self.cjk}"

    def newer_than(self, other: Rules) -> bool:
        """Whether these were made by a newer program. The tokenizer is a setting and says nothing of age."""
        return self[:3] != other[:3] and all(
            mine >= its for mine, its in zip(self[:3], other[:3], strict=True)
        )


class Opened(NamedTuple):
    """An index ready for use.

    `full_text` False: this SQLite has no FTS5. `rebuilt` is why it was made anew ("" when it was not, or when
    there was none). `warning` is "" or one line for people. `identity` tells a replaced file from this one.
    """

    connection: sqlite3.Connection
    path: str
    full_text: bool
    rebuilt: str
    warning: str
    identity: tuple[int, int]
    rules: Rules


class Replaced(Exception):
    """Another program has made the tables anew, by other rules than ours, while we had them open."""


class Damaged(Exception):
    """The file holds tables that are not ours, although its version says so."""


def current_rules(cjk: str) -> Rules:
    """The rules of this program under the setting `cjk` ("bigram" or "trigram")."""
    return Rules(SCHEMA_VERSION, segment.RULES_VERSION, SECRETS_VERSION, cjk)


def trouble(error: Exception) -> str:
    """What `error` says of the index: "busy", "damaged", "replaced", "unusable", "full", "no fts5".

    "" when it says nothing of the index: the fault is ours.
    """
    if isinstance(error, Damaged):
        return "damaged"
    if isinstance(error, Replaced):
        return "replaced"
    if not isinstance(error, sqlite3.Error):
        return "unusable" if isinstance(error, OSError) else ""
    text = str(error)
    if "no such module: fts5" in text:
        return "no fts5"
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if code is not None else None
    if primary in _BUSY or "database is locked" in text:
        return "busy"
    if primary in _DAMAGED or text.startswith(("no such table", "no such column")) or "malformed" in text:
        return "damaged"
    if primary == sqlite3.SQLITE_FULL:
        return "full"
    if primary in _UNUSABLE or "locking protocol" in text or "disk I/O error" in text or "readonly" in text:
        return "unusable"
    return ""


def open_index(
    path: str,
    cjk: str,
    environ: Mapping[str, str],
    *,
    elsewhere: str = "",
    full_text: bool = True,
    patience: float | None = None,
) -> Opened:
    """The index at `path`, made or made anew where needed.

    `elsewhere` is why `path` itself can't be used ("" when it may be); `full_text` False says that there is
    no FTS5; `patience` is how many seconds to wait for another process (BUSY_SECONDS). Falls back as the
    module says, at last to memory. Raises sqlite3.Error only for a bug or an index that another process holds
    for longer.
    """
    rules = current_rules(cjk)
    wait = BUSY_SECONDS if patience is None else patience
    cause = elsewhere
    for candidate in _candidates(path, environ, skip_first=bool(elsewhere)):
        for _ in range(3):
            warning = (
                f"the memory index can't be kept at {path} ({cause}): using {candidate}" if cause else ""
            )
            try:
                return _open(candidate, rules, full_text, warning, wait)
            except (sqlite3.Error, OSError, Damaged) as error:
                kind = trouble(error)
                if kind == "no fts5" and full_text:
                    full_text = False
                elif kind in ("unusable", "full"):
                    cause = cause or str(error)
                    break
                else:
                    raise
    raise sqlite3.OperationalError("no place for the memory index")  # pragma: no cover - memory always opens


def _candidates(path: str, environ: Mapping[str, str], *, skip_first: bool) -> Iterator[str]:
    if not skip_first:
        yield path
    if sys.platform == "win32":
        cache = environ.get("LOCALAPPDATA", "")
    else:
        cache = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME", ""), ".cache")
    if os.path.isabs(cache):
        # One cache folder may serve several data roots.
        name = f"index-{zlib.crc32(os.path.abspath(path).encode('utf-8', 'surrogateescape')):08x}.db"
        yield os.path.join(cache, "open-memex", name)
    yield ":memory:"


def _open(path: str, rules: Rules, full_text: bool, warning: str, wait: float) -> Opened:
    rebuilt = ""
    if not full_text:
        path = _beside(path, "plain")
        warning = warning or "this Python's SQLite has no FTS5: searching is slower and ranks plainly"
    for _ in range(4):
        connection = _connect(path, wait)
        identity = _identity(path)
        try:
            # A lost cache costs a rebuild: a power cut may take the last transactions, but not tear the file.
            connection.execute("pragma synchronous = normal")
            connection.execute("pragma temp_store = memory")
            # What was forgotten must not stay in the file's free pages.
            connection.execute("pragma secure_delete = on")
            stored = _stored_rules(connection)
            if stored == rules:
                (mode,) = connection.execute("pragma journal_mode").fetchone()
                journal = "" if mode in ("wal", "memory") else _choose_journal(connection, wait)
                return Opened(connection, path, full_text, rebuilt, warning or journal, identity, rules)
            if stored is not None and stored.newer_than(rules):
                connection.close()
                path = _beside(path, "-".join(str(part) for part in rules))
                continue
            if stored is not None:
                rebuilt = rebuilt or "its rules changed"
            journal = _choose_journal(connection, wait)
            make_tables(connection, rules, full_text)
            return Opened(connection, path, full_text, rebuilt, warning or journal, identity, rules)
        except (sqlite3.Error, Damaged) as error:
            if trouble(error) != "damaged":
                connection.close()
                raise
            discard(connection, path, identity)
            rebuilt = "it was damaged"
        except BaseException:
            connection.close()
            raise
    raise sqlite3.OperationalError(f"{path} is damaged again and again")


def _connect(path: str, wait: float) -> sqlite3.Connection:
    if path != ":memory:":
        _make_private_file(path)
    return sqlite3.connect(path, timeout=wait, isolation_level=None, check_same_thread=False)


def _make_private_file(path: str) -> None:
    """Make `path` for its owner alone (SQLite gives its side files the same mode), or raise OSError."""
    if os.path.exists(path):
        if not (os.access(path, os.W_OK) and os.access(os.path.dirname(path), os.W_OK)):
            raise PermissionError(13, "not writable", path)
        return
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def _identity(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return (0, 0)
    return (status.st_dev, status.st_ino)


def _beside(path: str, word: str) -> str:
    if path == ":memory:":
        return path
    root, extension = os.path.splitext(path)
    return f"{root}-{word}{extension}"


def _stored_rules(connection: sqlite3.Connection) -> Rules | None:
    """The rules that the rows were made by; None for an empty file. Raises Damaged for anything else."""
    (version,) = connection.execute("pragma user_version").fetchone()
    if version == SCHEMA_VERSION:
        row = connection.execute("select value from meta where key = 'rules'").fetchone()
        parts = row[0].split(" ") if row else []
        if len(parts) != 3 or not (parts[0].isdigit() and parts[1].isdigit()):
            raise Damaged
        return Rules(version, int(parts[0]), int(parts[1]), parts[2])
    if version == 0:
        if connection.execute("select 1 from sqlite_master").fetchone():
            raise Damaged
        return None
    # Another schema's rules can't be read; the version alone says which program is newer.
    return Rules(version, 0, 0, "") if version < SCHEMA_VERSION else Rules(version, 1 << 62, 1 << 62, "")


def check_rules(connection: sqlite3.Connection, rules: Rules) -> None:
    """Raise Replaced when the tables are no longer those of `rules`; a write transaction keeps them so."""
    if _stored_rules(connection) != rules:
        raise Replaced


def _choose_journal(connection: sqlite3.Connection, wait: float) -> str:
    """Turn on the write-ahead log, under which readers never wait; the warning when that can't be had.

    Network drives and some mounts can't: SQLite's usual journal does then, and readers may have to wait.
    """
    end = time.monotonic() + wait
    while True:
        try:
            (mode,) = connection.execute("pragma journal_mode = wal").fetchone()
        except sqlite3.Error as error:
            if trouble(error) == "busy" and time.monotonic() < end:
                # SQLite does not wait here by itself: the change needs the file alone.
                time.sleep(0.02)
                continue
            if trouble(error) == "damaged":
                raise
            return f"the memory index works without a write-ahead log ({error}): readers may have to wait"
        if mode in ("wal", "memory"):
            return ""
        return f"the memory index works with the journal mode {mode}: readers may have to wait"


def make_tables(connection: sqlite3.Connection, rules: Rules, full_text: bool, *, anew: bool = False) -> None:
    """Make the tables that `rules` need, empty, unless they are there; with `anew` in any case."""
    connection.execute("begin immediate")
    try:
        # Another process may have been here between our look and our lock.
        if anew or _stored_rules(connection) != rules:
            _drop_all(connection)
            for statement in _TABLES.split(";\n"):
                connection.execute(statement)
            if full_text:
                for statement in _FULL_TEXT.format(options=segment.FTS_OPTIONS).split(";\n"):
                    connection.execute(statement)
            connection.execute("insert into meta values ('rules', ?)", (rules.text,))
            connection.execute(f"pragma user_version = {rules.schema}")
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise


def _drop_all(connection: sqlite3.Connection) -> None:
    rows = connection.execute("select name, sql from sqlite_master where type = 'table'").fetchall()
    virtual = [name for name, sql in rows if sql.lower().startswith("create virtual")]
    # A virtual table takes its own shadow tables along, and only the vocabulary needs another one.
    for name in sorted(virtual, key=lambda name: name != "vocabulary"):
        connection.execute(f'drop table "{name}"')
    left = connection.execute("select name from sqlite_master where type = 'table'").fetchall()
    for (name,) in left:
        if not name.startswith("sqlite_"):
            connection.execute(f'drop table "{name}"')


def discard(connection: sqlite3.Connection, path: str, identity: tuple[int, int]) -> None:
    """Close `connection` and unlink the damaged file behind it, unless another process has replaced it
    already.

    Raises OSError where it can't be removed (Windows, while another process has it open).
    """
    if path == ":memory:":
        connection.close()
        return
    # Only where something is damaged, so it stays off the path of a search.
    from filelock import FileLock

    lock = FileLock(path + ".lock", timeout=BUSY_SECONDS)
    with lock:
        # While our connection is open the file system can't give its number to a new file.
        mine = _identity(path) == identity
        if sys.platform == "win32":
            connection.close()
        if mine:
            for ending in ("", "-wal", "-shm", "-journal"):
                try:
                    os.unlink(path + ending)
                except FileNotFoundError:
                    pass
        connection.close()

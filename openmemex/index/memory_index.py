"""The memory index: what is known of all memories of a data root, kept in step with the files, and searched.

The files are the truth; everything here can be deleted and comes back. `reconcile` brings the index up to
date with the homes of here, and every other question is answered for given homes from what it then knows. A
damaged or unusable index mends itself on the way (schema.py says how), so callers only meet `IndexBusy`.

Part of every search's start-up: light imports only; what is needed when something changed is imported then.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from openmemex.errors import IndexBusy, OpenMemexError
from openmemex.index import query as queries
from openmemex.index import ranking, schema, segment, sync, visibility
from openmemex.index.rows import (
    Filters,
    Freshness,
    Hit,
    Judged,
    ListResult,
    Neighbour,
    Progress,
    Row,
    SearchResult,
    Unread,
    as_stored,
)

if TYPE_CHECKING:
    from openmemex.index.rows import Place, TreeReader

LANE = "words"
MOST_VIEWS = 8
MOST_REMEMBERED = 500
LOOKS = 4
NEIGHBOUR_TERMS = 32
MOST_PARAMETERS = 900
SEPARATOR = "\x1f"
IMPATIENT_SECONDS = 10.0
SHORT_WAIT = 0.05
_COLUMNS = (
    "id, memory, scope, scope_key, type, role, status, review_state, importance, tags, aliases, source,"
    " created_at, updated_at, expires_at, valid_until, supersedes, superseded_by, project_name, paths,"
    " summary, masked, blob, text_key"
)
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_Answer = TypeVar("_Answer")


class MemoryIndex:
    """One index file; it is opened at its first use. Not for two threads at once."""

    def __init__(self, path: str, cjk: str) -> None:
        self._asked_path = path
        self._cjk = cjk
        self._opened: schema.Opened | None = None
        self._elsewhere = ""
        self._full_text = True
        self._rebuilt = ""
        self._unsaid = ""
        self._last: tuple[Sequence[Place], TreeReader | None] | None = None
        self._views: dict[tuple[Any, ...], visibility.View] = {}
        self._views_made = 0
        self._written = 0
        self._impatient_until = 0.0
        self._timeout = -1
        self.warning = ""

    @classmethod
    def open(cls, path: str, *, cjk: str = "bigram") -> MemoryIndex:
        """The index at `path`, made at its first use if it is not there. `cjk` is the setting cjkTokenizer.

        `.warning` is "" or, after the first use, one line for people: that the index can't be where or what
        it should be, and what is done instead.
        """
        return cls(path, cjk)

    @property
    def path(self) -> str:
        """Where the index really is (":memory:" when no place could be written)."""
        return self._ready().path

    def close(self) -> None:
        """Let go of the file. The index can be used again and opens anew."""
        if self._opened is not None:
            self._forget_views()
            self._opened.connection.close()
            self._opened = None

    def discard(self) -> None:
        """Throw away all that is known; the next reconcile reads every file anew. Raises IndexBusy."""
        self._forget_views()
        self._written += 1
        self._guarded(
            lambda opened: schema.make_tables(opened.connection, opened.rules, opened.full_text, anew=True)
        )

    def scrub(self) -> None:
        """Leave no trace, in the file itself, of what was removed before. Raises IndexBusy.

        A removed memory is never found again, but its words stay in old parts of the full-text index until
        those are merged, and in the write-ahead log until that is used again.
        """

        def write(opened: schema.Opened) -> None:
            if opened.full_text:
                opened.connection.execute("insert into full_text (full_text) values ('optimize')")
            opened.connection.execute("pragma wal_checkpoint(truncate)").fetchall()

        self._guarded(write)

    # -- keeping in step ------------------------------------------------------------------------------------

    def reconcile(
        self, homes: Sequence[Place], trees: TreeReader | None = None, *, progress: Progress | None = None
    ) -> Freshness:
        """Bring the index up to date with `homes`, reading only what changed.

        `trees` reads the homes of kind "branch"; without it they stay as they are. `progress(done, total)` is
        called while many files are read. Never raises for a file, a folder or a lock: what can't be read is
        quarantined, and when the index is held by another process `fresh` is False.
        """
        self._last = (homes, trees)
        try:
            return self._guarded(lambda opened: self._reconcile(opened, homes, trees, progress))
        except IndexBusy:
            return Freshness(fresh=False, places=len(homes))

    def _reconcile(
        self,
        opened: schema.Opened,
        homes: Sequence[Place],
        trees: TreeReader | None,
        progress: Progress | None,
    ) -> Freshness:
        connection = opened.connection
        schema.check_rules(connection, opened.rules)
        self.warning = opened.warning
        fresh = True
        unreadable: tuple[str, ...] = ()
        read = added = changed = removed = 0
        for _ in range(LOOKS):
            look = sync.look(connection, homes, trees)
            fresh, unreadable = not look.unreadable, look.unreadable
            if not look.stale:
                break
            # The parser, YAML and the rules for secrets cost more start-up time than a search may take.
            from openmemex.index.ingest import ingest

            try:
                outcome = ingest(
                    connection,
                    look.stale,
                    trees,
                    rules=opened.rules,
                    full_text=opened.full_text,
                    progress=progress,
                )
            except sqlite3.OperationalError as error:
                if schema.trouble(error) not in ("busy", "full"):
                    raise
                self._lose_patience()
                if schema.trouble(error) == "full":
                    self.warning = f"the memory index at {opened.path} can't grow: the disk is full"
                fresh = False
                break
            finally:
                self._written += 1
            read += outcome.read
            added += outcome.added
            changed += outcome.changed
            removed += outcome.removed
            if outcome.settled:
                break
        here = visibility.known_homes(connection, homes)
        (quarantined,) = connection.execute(
            f"select count(*) from place where home in ({here.listed}) and reason is not null"
        ).fetchone()
        rebuilt, self._unsaid = self._unsaid, ""
        if self._rebuilt:
            files = "1 file" if read == 1 else f"{read} files"
            rebuilt = f"the memory index was rebuilt from {files}: {self._rebuilt}"
            self._rebuilt = ""
        return Freshness(fresh, len(homes), read, added, changed, removed, rebuilt, quarantined, unreadable)

    # -- questions ------------------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        homes: Sequence[Place],
        filters: Filters | None = None,
        limit: int = 10,
        *,
        explain: bool = False,
        cwd: str = "",
    ) -> SearchResult:
        """The visible memories of `homes` that answer `query` (any text), best first.

        `cwd` is where the reader stands, relative to the repository's root. `explain` fills `why` of every
        hit and says how many matches lifecycle kept back. An empty query finds nothing.
        """
        built = queries.build(query, cjk=self._cjk)
        wanted = filters or Filters()

        def answer(opened: schema.Opened) -> SearchResult:
            now = wanted.now or time.time()
            known, view = self._view(opened, homes, wanted)
            corpus = _corpus(opened, known, view)
            ranked = ranking.rank(
                built, corpus, limit=limit, context=ranking.Context(now, cwd), explain=explain
            )
            if not ranked.expression:
                return SearchResult((), 0, "", {})
            rows = _rows(opened.connection, known, view, [hit[0] for hit in ranked.hits])
            hits = [
                Hit(rows[content], score, LANE, _age_days(rows[content], now), why)
                for content, score, why in ranked.hits
                if content in rows
            ]
            hidden = corpus.hidden(ranked.expression) if explain else {}
            return SearchResult(tuple(hits), corpus.count(ranked.expression), ranked.expression, hidden)

        return self._guarded(answer, snapshot=True)

    def holds(self, home: Place) -> bool:
        """Whether the index knows `home` now: of old revisions only the newest few are kept."""
        return bool(self._guarded(lambda opened: visibility.known_homes(opened.connection, [home]).ids))

    def find(self, homes: Sequence[Place], part: str) -> list[Row]:
        """Every copy of every memory whose id is, begins or ends with `part` (upper case), in any state.

        One row a place, the best home's first; a branch's copy only where its text differs from all before.
        """

        def answer(opened: schema.Opened) -> list[Row]:
            connection = opened.connection
            known, view = self._view(opened, homes, Filters(all=True))
            contents = connection.execute(
                "select id, memory from content where (memory >= ?1 and memory < ?1 || '~')"
                " or substr(memory, -length(?1)) = ?1",
                (part,),
            ).fetchall()
            found: list[Row] = []
            for home in known.ids:
                place = known.places[home]
                here = [
                    content
                    for content, memory in contents
                    if connection.execute(
                        "select 1 from place where home = ? and name = ? and content = ?",
                        (home, memory, content),
                    ).fetchone()
                ]
                only = visibility.Homes((home,), {home: place})
                rows = _rows(connection, only, view, here).values()
                seen = {row.blob for row in found}
                found += [row for row in rows if place.kind != "branch" or row.blob not in seen]
            order = {home.kind: rank for rank, home in enumerate(known.places.values())}
            return sorted(found, key=lambda row: (row.id, order[row.place_kind]))

        return self._guarded(answer, snapshot=True)

    def neighbours(self, text: str, homes: Sequence[Place], limit: int = 20) -> list[Neighbour]:
        """Stored memories that may say the same as `text`: those of the same text first, then the closest.

        Only active ones that no review rejected.
        """
        # Only a write asks this, and it has loaded the module already.
        from openmemex.trust.admission import text_key

        key = text_key(text)
        words = dict.fromkeys(segment.tokens(text, cjk=self._cjk))

        def answer(opened: schema.Opened) -> list[Neighbour]:
            known, view = self._view(opened, homes, Filters(status="active"))
            corpus = _corpus(opened, known, view)
            contents = [
                content
                for (content,) in opened.connection.execute(
                    f"select id from content where text_key = ?{view.clause('id')}", (key,)
                )
            ]
            frequency = corpus.document_frequency(list(words))
            rarest = sorted(frequency, key=lambda term: (frequency[term], term))[:NEIGHBOUR_TERMS]
            if rarest:
                contents += [row[0] for row in corpus.matching(_any_of(rarest), 2 * limit)]
            found = []
            for content in dict.fromkeys(contents):
                memory, state, own_key, source, created_at, stream = opened.connection.execute(
                    "select memory, review_state, text_key, source, created_at, stream"
                    " from content join stream using (id) where id = ?",
                    (content,),
                ).fetchone()
                if state != "rejected":
                    found.append(Neighbour(memory, own_key, _body_tokens(stream), source, created_at))
            return sorted(found, key=lambda one: (one.text_key != key, -_likeness(one.tokens, words.keys())))[
                :limit
            ]

        return self._guarded(answer, snapshot=True)

    def quarantined(self, homes: Sequence[Place]) -> list[Unread]:
        """The files of `homes` that can't be read as memories, with line and reason, by path."""

        def answer(opened: schema.Opened) -> list[Unread]:
            known = visibility.known_homes(opened.connection, homes)
            found = opened.connection.execute(
                "select home, name, line, reason from place"
                f" where home in ({known.listed}) and reason is not null order by name"
            )
            shelves = {home: _shelf(place).shown_before for home, place in known.places.items()}
            return sorted(
                Unread(shelves[home] + (name if name[-3:].lower() == ".md" else name + ".md"), line, reason)
                for home, name, line, reason in found
            )

        return self._guarded(answer)

    def counts(self, homes: Sequence[Place]) -> dict[str, dict[str, int]]:
        """How many memories of `homes` there are, in any state: by `scope`, `type`, `status`, `review_state`.

        Further `total` ("": n), `quarantined` ("": n), and `place`: files by kind of home.
        """

        def answer(opened: schema.Opened) -> dict[str, dict[str, int]]:
            connection = opened.connection
            known, view = self._view(opened, homes, Filters(all=True))
            found: dict[str, dict[str, int]] = {
                "scope": {},
                "type": {},
                "status": {},
                "review_state": {},
                "place": {},
            }
            names = ("scope", "type", "status", "review_state")
            for *values, count in connection.execute(
                "select scope, type, status, review_state, count(*) from content"
                f" where true{view.clause('id')} group by 1, 2, 3, 4"
            ):
                for name, value in zip(names, values, strict=True):
                    found[name][value] = found[name].get(value, 0) + count
            files = connection.execute(
                f"select kind, sum(count) from home where id in ({known.listed}) and count > 0 group by 1"
            )
            found["place"] = dict(files)
            (unread,) = connection.execute(
                f"select count(*) from place where home in ({known.listed}) and reason is not null"
            ).fetchone()
            return {**found, "total": {"": view.total}, "quarantined": {"": unread}}

        return self._guarded(answer, snapshot=True)

    # -- a small memory for others ---------------------------------------------------------------------------

    def remember(self, key: str, value: str) -> None:
        """Keep `value` under `key` for later processes, if that can be done at once; it may be forgotten."""

        def write(opened: schema.Opened) -> None:
            connection = opened.connection
            connection.execute("pragma busy_timeout = 100")
            try:
                connection.execute(
                    "insert or replace into cache values (?, ?, ?)",
                    (as_stored(key), as_stored(value), int(time.time())),
                )
                connection.execute(
                    "delete from cache where at < (select at from cache order by at desc limit 1 offset ?)",
                    (MOST_REMEMBERED,),
                )
            except sqlite3.OperationalError as error:
                # Not worth waiting for, and no reason for what comes next not to wait.
                if schema.trouble(error) != "busy":
                    raise
            finally:
                self._timeout = -1

        try:
            self._guarded(write)
        except (IndexBusy, OpenMemexError):
            pass

    def recall(self, key: str) -> str | None:
        """What `remember` kept under `key`; None when nothing is known."""

        def read(opened: schema.Opened) -> str | None:
            row = opened.connection.execute(
                "select value from cache where key = ?", (as_stored(key),)
            ).fetchone()
            return row[0] if row else None

        try:
            return self._guarded(read)
        except IndexBusy:
            return None

    def list(self, homes: Sequence[Place], filters: Filters | None = None, limit: int = 20) -> ListResult:
        """The newest `limit` visible memories of `homes` (by created_at, then id), and how many there are."""
        wanted = filters or Filters()

        def answer(opened: schema.Opened) -> ListResult:
            known, view = self._view(opened, homes, wanted)
            order = "order by created desc, memory desc limit ?"
            if view.table and not view.hides:
                statement = f"select content.id from {view.table} cross join content using (id) {order}"
            else:
                statement = f"select id from content where true{view.clause('id')} {order}"
            contents = [content for (content,) in opened.connection.execute(statement, (limit,))]
            rows = _rows(opened.connection, known, view, contents)
            return ListResult(tuple(rows[one] for one in contents if one in rows), view.total)

        return self._guarded(answer, snapshot=True)

    # -- inside ---------------------------------------------------------------------------------------------

    def _ready(self) -> schema.Opened:
        if self._opened is None:
            self._opened = schema.open_index(
                self._asked_path,
                self._cjk,
                os.environ,
                elsewhere=self._elsewhere,
                full_text=self._full_text,
                patience=self._patience(),
            )
            self._timeout = -1
            self._rebuilt = self._rebuilt or self._opened.rebuilt
            self.warning = self._opened.warning or self.warning
        return self._opened

    def _guarded(self, action: Callable[[schema.Opened], _Answer], *, snapshot: bool = False) -> _Answer:
        """Run `action` on the open index, and once more after mending what can be mended.

        `snapshot`: all that it reads is of one moment.
        """
        for attempt in range(3):
            try:
                opened = self._ready()
                self._set_timeout(opened)
                if not snapshot:
                    return action(opened)
                opened.connection.execute("begin")
                try:
                    return action(opened)
                finally:
                    if opened.connection.in_transaction:
                        opened.connection.execute("commit")
            except (sqlite3.Error, OSError, schema.Damaged, schema.Replaced) as error:
                self._mend(error, last=attempt == 2)
                if snapshot and self._last is not None:
                    # What was mended is empty now. The next reconcile has to say so.
                    self._unsaid = self.reconcile(*self._last).rebuilt
        raise AssertionError("the last attempt raises")  # pragma: no cover

    def _patience(self) -> float:
        """How many seconds to wait for another process: once it was too long, the rest of a command is not
        kept waiting as well.
        """
        return SHORT_WAIT if time.monotonic() < self._impatient_until else schema.BUSY_SECONDS

    def _lose_patience(self) -> None:
        self._impatient_until = time.monotonic() + IMPATIENT_SECONDS

    def _set_timeout(self, opened: schema.Opened) -> None:
        timeout = int(self._patience() * 1000)
        if timeout != self._timeout:
            opened.connection.execute(f"pragma busy_timeout = {timeout}")
            self._timeout = timeout

    def _mend(self, error: Exception, *, last: bool) -> None:
        """Make the next attempt worth while, or raise what stands in the way."""
        kind = schema.trouble(error)
        if kind == "busy":
            self._lose_patience()
            raise IndexBusy(
                f"another process holds the memory index {self._asked_path}", "try again in a moment"
            ) from error
        if last or kind in ("", "full"):
            if isinstance(error, OSError) or kind == "full":
                raise OpenMemexError(
                    f"the memory index {self._asked_path} can't be used: {error}",
                    "delete it; it is made again from the files",
                ) from error
            raise error
        opened = self._opened
        self._opened = None
        self._forget_views()
        if opened is None:
            return
        if kind == "damaged":
            try:
                schema.check_rules(opened.connection, opened.rules)
            except schema.Replaced:
                kind = "replaced"  # tables of other columns look like damage to us
            except (sqlite3.Error, schema.Damaged):
                pass
        if kind == "damaged":
            try:
                schema.discard(opened.connection, opened.path, opened.identity)
                self._rebuilt = "it was damaged"
            except Exception as failure:
                # Windows keeps an open file; filelock has its own errors for a lock that is held.
                self._elsewhere = f"it is damaged and can't be removed: {failure}"
        elif kind == "no fts5":
            self._full_text = False
        elif kind == "unusable":
            self._elsewhere = str(error)
        opened.connection.close()

    def _view(
        self, opened: schema.Opened, homes: Sequence[Place], filters: Filters
    ) -> tuple[visibility.Homes, visibility.View]:
        """What a reader of `homes` may see now; the caller is inside a transaction."""
        connection = opened.connection
        known = visibility.known_homes(connection, homes)
        now = int((filters.now or time.time()) * 1_000_000)
        (state,) = connection.execute("pragma data_version").fetchone()
        key = (state, self._written, known.ids, filters._replace(now=0.0), bool(filters.now))
        view = self._views.get(key)
        if view is None or not view.since <= now < view.until:
            if len(self._views) >= MOST_VIEWS or any(old[:2] != key[:2] for old in self._views):
                self._forget_views()
            self._views_made += 1
            view = visibility.build(connection, known, filters, now, f"view_{self._views_made}")
            self._views[key] = view
        return known, view

    def _forget_views(self) -> None:
        if self._opened is not None:
            for view in self._views.values():
                if view.table:
                    self._opened.connection.execute(f"drop table if exists {view.table}")
        self._views = {}


class _Corpus:
    """The visible memories as ranking sees them, over FTS5."""

    def __init__(
        self, connection: sqlite3.Connection, homes: visibility.Homes, view: visibility.View
    ) -> None:
        self._connection = connection
        self._homes = homes
        self._view = view
        self._counted: dict[str, int] = {}
        self.size, length = connection.execute("select rows, length from total").fetchone()
        self.average_length: float = length / self.size if self.size else 0.0

    def document_frequency(self, terms: Sequence[str]) -> dict[str, int]:
        """How many stored memories hold each of `terms`; those that none holds are left out."""
        found: dict[str, int] = {}
        for term in terms:
            row = self._connection.execute("select doc from vocabulary where term = ?", (term,)).fetchone()
            if row:
                found[term] = row[0]
        return found

    def matching(self, expression: str, limit: int) -> list[tuple[int, float]]:
        """The visible contents that match, best first by FTS5's bm25 (smaller is better)."""
        found = self._connection.execute(
            "select rowid, bm25(full_text) from full_text where full_text match ?"
            # Ordering by the function itself is a third faster than by the hidden column `rank`.
            f"{self._view.clause('full_text.rowid')} order by bm25(full_text) limit ?",
            (expression, limit),
        ).fetchall()
        if len(found) < limit:
            self._counted[expression] = len(found)
        return found

    def load(self, rowids: Sequence[int]) -> list[ranking.Candidate]:
        """The candidates for these contents, in the same order."""
        own = self._personal(rowids)
        statuses = self._view.statuses
        found: dict[int, ranking.Candidate] = {}
        # A hundred are weighed for ten that are shown, so only what is weighed is fetched.
        for content, stream, length, memory, scope, type_, status, *rest in _each(
            self._connection,
            "select stream.id, stream, length, memory, scope, type, status, review_state, importance, source,"
            " updated_at, paths from stream cross join content using (id) where stream.id in",
            rowids,
        ):
            state, importance, source, updated_at, paths = rest
            status = statuses.get(content, status)
            standing = "own" if content in own else "unreviewed"
            fits = _split(paths)
            judged = Judged(
                memory, scope, type_, status, state, importance, source, updated_at, fits, standing
            )
            found[content] = ranking.Candidate(content, stream, length, judged)
        return [found[one] for one in rowids if one in found]

    def _personal(self, rowids: Sequence[int]) -> set[int]:
        personal = [home for home, place in self._homes.places.items() if place.kind == "personal"]
        if not personal:
            return set()
        listed = ", ".join(map(str, personal))
        statement = f"select content from place where home in ({listed}) and content in"
        return {content for (content,) in _each(self._connection, statement, rowids)}

    def count(self, expression: str) -> int:
        """How many visible contents match."""
        if expression in self._counted:
            return self._counted[expression]
        (count,) = self._connection.execute(
            f"select count(*) from full_text where full_text match ?{self._view.clause('full_text.rowid')}",
            (expression,),
        ).fetchone()
        return int(count)

    def hidden(self, expression: str) -> dict[str, int]:
        """Why lifecycle keeps back matches of here: reason → how many."""
        return _tally(
            self._connection,
            self._homes,
            self._view,
            (
                row[0]
                for row in self._connection.execute(
                    "select rowid from full_text where full_text match ?", (expression,)
                )
            ),
        )


class _PlainCorpus(_Corpus):
    """The same over the stored streams, for a SQLite without FTS5: slower, and matches count alike."""

    def _visible(self) -> dict[int, frozenset[str]]:
        if self._held is None:
            self._held = {
                content: frozenset(stream.split(" "))
                for content, stream in self._connection.execute(
                    f"select id, stream from stream where true{self._view.clause('id')}"
                )
            }
        return self._held

    _held: dict[int, frozenset[str]] | None = None

    def document_frequency(self, terms: Sequence[str]) -> dict[str, int]:
        """How many visible memories hold each of `terms`; those that none holds are left out."""
        counts = {term: sum(term in words for words in self._visible().values()) for term in terms}
        return {term: count for term, count in counts.items() if count}

    def matching(self, expression: str, limit: int) -> list[tuple[int, float]]:
        """The visible contents that hold any of the expression's terms, the most and the rarest first."""
        terms = set(_QUOTED.findall(expression))
        frequency = self.document_frequency(sorted(terms))
        scores = {
            content: -sum(1.0 / frequency[term] for term in terms & words)
            for content, words in self._visible().items()
        }
        return sorted(((c, s) for c, s in scores.items() if s), key=lambda one: (one[1], one[0]))[:limit]

    def count(self, expression: str) -> int:
        """How many visible contents match."""
        terms = set(_QUOTED.findall(expression))
        return sum(not terms.isdisjoint(words) for words in self._visible().values())

    def hidden(self, expression: str) -> dict[str, int]:
        """Why lifecycle keeps back matches of here: reason → how many."""
        terms = set(_QUOTED.findall(expression))
        streams = self._connection.execute("select id, stream from stream")
        matching = (content for content, stream in streams if not terms.isdisjoint(stream.split(" ")))
        return _tally(self._connection, self._homes, self._view, matching)


def _any_of(terms: Iterable[str]) -> str:
    """The FTS5 expression that finds any of `terms` (tokens of our own cutting)."""
    return " OR ".join('"' + term.replace('"', '""') + '"' for term in terms)


def _corpus(opened: schema.Opened, homes: visibility.Homes, view: visibility.View) -> _Corpus:
    kind = _Corpus if opened.full_text else _PlainCorpus
    return kind(opened.connection, homes, view)


def _tally(
    connection: sqlite3.Connection, homes: visibility.Homes, view: visibility.View, contents: Iterable[int]
) -> dict[str, int]:
    counts: dict[str, int] = {}
    for content in contents:
        reason = view.reasons.get(content)
        if (
            reason
            and connection.execute(
                f"select 1 from place where content = ? and home in ({homes.listed})", (content,)
            ).fetchone()
        ):
            counts[reason] = counts.get(reason, 0) + 1
    return counts


def _rows(
    connection: sqlite3.Connection, homes: visibility.Homes, view: visibility.View, contents: Sequence[int]
) -> dict[int, Row]:
    """Content → row, for those of `contents` that lie in `homes`."""
    rank = {home: position for position, home in enumerate(homes.ids)}
    best: dict[int, int] = {}
    statement = f"select content, home from place where home in ({homes.listed}) and content in"
    for content, home in _each(connection, statement, contents):
        if content not in best or rank[home] < rank[best[content]]:
            best[content] = home
    shelves = {home: _shelf(homes.places[home]) for home in set(best.values())}
    found: dict[int, Row] = {}
    for content, *values in _each(connection, f"select {_COLUMNS} from content where id in", contents):
        if content in best:
            found[content] = _row(
                values, shelves[best[content]], view.statuses.get(content), view.successors.get(content)
            )
    return found


def _each(
    connection: sqlite3.Connection, statement: str, contents: Sequence[int]
) -> Iterator[tuple[Any, ...]]:
    """The rows of `statement` (it ends with `in`) for these contents.

    In parts, because older versions of SQLite take 999 parameters at most.
    """
    for start in range(0, len(contents), MOST_PARAMETERS):
        part = contents[start : start + MOST_PARAMETERS]
        yield from connection.execute(f"{statement} ({', '.join('?' * len(part))})", part)


class _Shelf(NamedTuple):
    """What the rows of one home share; `before` stands before their files' names, in full and as shown."""

    kind: str
    label: str
    before: str
    shown_before: str
    standing: str


def _shelf(place: Place) -> _Shelf:
    if place.kind in sync.TREES:
        inside = f"{place.base}/" if place.base else ""
        label = f"on branch {place.ref.removeprefix('refs/heads/')}"
        if place.kind == "revision":
            label = f"at {place.ref[:10]}"
        return _Shelf(place.kind, label, inside, inside, "unreviewed")
    before = place.folder.rstrip(os.sep) + os.sep
    base = place.base.rstrip(os.sep) + os.sep
    shown = before[len(base) :].replace(os.sep, "/") if before.startswith(base) else before
    return _Shelf(place.kind, "", before, shown, "own" if place.kind == "personal" else "unreviewed")


def _row(values: list[Any], shelf: _Shelf, counts: str | None, successor: str | None) -> Row:
    """A row from the columns of `_COLUMNS`; by position, because a search makes a hundred."""
    memory, scope, key, type_, role, status, state, importance, tags, aliases, source, *rest = values
    created, updated, expires, until, supersedes, superseded_by, project, paths, summary, *last = rest
    masked, blob, text_key = last
    name = f"{memory}.md"
    return Row(
        memory,
        scope,
        key,
        type_,
        role,
        counts or status,
        state,
        importance,
        _split(tags),
        _split(aliases),
        source,
        created,
        updated,
        expires,
        until,
        supersedes,
        superseded_by or successor,
        project,
        _split(paths),
        shelf.kind,
        shelf.label,
        shelf.before + name,
        shelf.shown_before + name,
        summary,
        masked != 0,
        blob.hex(),
        text_key,
        shelf.standing,
    )


def _split(joined: str) -> tuple[str, ...]:
    return tuple(joined[1:-1].split(SEPARATOR)) if joined else ()


def _body_tokens(stream: str) -> frozenset[str]:
    words = stream.partition(segment.FIELD_MARK)[0].replace(segment.GAP, " ").split()
    return frozenset(word for word in words if not segment.is_function(word)) or frozenset(words)


def _likeness(tokens: frozenset[str], others: Set[str]) -> float:
    """Jaccard index of two sets of tokens: what both hold of what either holds."""
    both = len(tokens & others)
    return both / (len(tokens) + len(others) - both) if both else 0.0


def _age_days(row: Row, now: float) -> int:
    """Whole days since the memory was last changed; 0 for the future or a time that can't be read."""
    from datetime import UTC, datetime  # sqlite3 has loaded it already

    try:
        moment = datetime.fromisoformat(row.updated_at or row.created_at)
    except ValueError:
        return 0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0, int((now - moment.timestamp()) // 86_400))

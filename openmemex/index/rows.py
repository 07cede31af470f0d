"""What the memory index takes and gives: plain values, light to import, because every search starts here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    # Classes that only types speak of cost start-up time like all others.
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Protocol

    class Place(Protocol):
        """A home of memories, as the index needs to know it (the store's `Home` is one).

        `kind` is "personal", "outbox", "repository", "branch" or "revision". `folder` is the absolute folder
        of the files; of the last two it is the repository's common git folder, `ref` the full name of the ref
        or `COMMIT:FOLDER`, and `base` the memory folder inside the tree. `base` of the others is what paths
        in output are relative to. `scope` is what a file that names none belongs to.
        """

        @property
        def kind(self) -> str: ...
        @property
        def folder(self) -> str: ...
        @property
        def scope(self) -> str: ...
        @property
        def scope_key(self) -> str: ...
        @property
        def base(self) -> str: ...
        @property
        def ref(self) -> str: ...

    class TreeReader(Protocol):
        """How the index reads the memories of a branch or a revision without a checkout."""

        def tip(self, home: Any) -> str | None:
            """What changes whenever the tree may have (the commit); None when the ref is gone. Cheap. Of a
            revision, its commit.

            Raises OpenMemexError for a repository that can't be read.
            """

        def entries(self, home: Any) -> Mapping[str, str]:
            """File name → blob id (hex) of the memory folder of that tree; only regular files."""

        def blobs(self, oids: Sequence[str]) -> Iterable[tuple[str, bytes]]:
            """The bytes of these blobs, in any order. Those that are not here are left out, or the first of
            them raises OpenMemexError.
            """


Progress = Callable[[int, int], None]
EVERY = 10_000_000
"""A limit that no list reaches."""
"""Called with how much is done and how much there is in all."""


def as_stored(text: str) -> str:
    """`text` as SQLite can hold it: of a file name that is not UTF-8, the odd bytes stand as escapes."""
    return (
        text
        if text.isascii()
        else text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    )


def key_of(place: Place) -> tuple[str, str, str]:
    """What the index knows a place by: its kind, its folder, its ref."""
    return (place.kind, as_stored(place.folder), as_stored(place.ref))


class Row(NamedTuple):
    """One memory as lists and searches show it; secrets are masked here whatever the file holds.

    `status` and `superseded_by` are completed: a memory that another one of here supersedes says so,
    whether or not its file does yet. `place_label` is "", "on branch NAME" or "at COMMIT". `path` is absolute
    (of a branch or revision: inside the tree), `rel_path` is as output shows it. `masked`: the file holds a
    secret in clear. `blob` is git's id of the file's bytes. `standing` is "own" in the personal home, else
    "unreviewed".
    """

    id: str
    scope: str
    scope_key: str
    type: str
    role: str
    status: str
    review_state: str
    importance: str
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    source: str
    created_at: str
    updated_at: str
    expires_at: str | None
    valid_until: str | None
    supersedes: str | None
    superseded_by: str | None
    project_name: str | None
    paths: tuple[str, ...]
    place_kind: str
    place_label: str
    path: str
    rel_path: str
    summary: str
    masked: bool
    blob: str
    text_key: str
    standing: str


class Judged(NamedTuple):
    """What ranking weighs of a memory beside its words; the values are those of its `Row`."""

    id: str
    scope: str
    type: str
    status: str
    review_state: str
    importance: str
    source: str
    updated_at: str
    paths: tuple[str, ...]
    standing: str


class Hit(NamedTuple):
    """A row that a search found: its score, the lane that found it, its age, and why (`explain` only)."""

    row: Row
    score: float
    lane: str
    age_days: int
    why: dict[str, Any]


class SearchResult(NamedTuple):
    """The best hits, how many visible memories match in all, and how that came about.

    `hidden` (reason → number of matches kept back) is filled for `explain` only.
    """

    hits: tuple[Hit, ...]
    total: int
    expression: str
    hidden: dict[str, int]


class ListResult(NamedTuple):
    """The newest rows that fit, and how many fit in all."""

    rows: tuple[Row, ...]
    total: int


class Freshness(NamedTuple):
    """What a reconcile did. `fresh` False: the index could not be brought up to date, answers may be old.

    `places`: homes looked at; `read`: files or blobs read; `rebuilt`: "" or one line for people;
    `quarantined`: files of these homes that can't be read as memories, now. `unreadable`: folders that
    can't be looked into: of these the answer is what was known before.
    """

    fresh: bool = True
    places: int = 0
    read: int = 0
    added: int = 0
    changed: int = 0
    removed: int = 0
    rebuilt: str = ""
    quarantined: int = 0
    unreadable: tuple[str, ...] = ()


class Filters(NamedTuple):
    """Which memories may be found. Empty fields do not filter; `tags` must all be there.

    By default only what is current is found: not superseded, retracted, archived or expired. `all` lifts
    that, and so does a `status` that names one of those. `now` is the moment expiry is judged at (0: the
    clock's).
    """

    scope: str = ""
    type: str = ""
    tags: tuple[str, ...] = ()
    status: str = ""
    review_state: str = ""
    all: bool = False
    now: float = 0.0


class Neighbour(NamedTuple):
    """A stored memory that may say the same as a new text; `tokens` are its body's, cut as the index cuts."""

    id: str
    text_key: str
    tokens: frozenset[str]
    source: str
    created_at: str


class Unread(NamedTuple):
    """A quarantined file: its path as output shows it, the line (0: none) and the reason."""

    path: str
    line: int
    reason: str

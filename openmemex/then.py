"""What was known at a revision: a place in git that the index reads without a checkout.

Only `--at` needs it, so a plain search does not load it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from openmemex.errors import NotFound
from openmemex.index.rows import Freshness, Row
from openmemex.memory.ids import is_id, normal_id_part
from openmemex.memory.model import parse_time
from openmemex.results import Notice, Progress
from openmemex.selecting import copies
from openmemex.store import homes
from openmemex.store.homes import USUAL_FOLDERS, Home
from openmemex.workspace import Workspace, staleness

_NAMED = 5
_TRIES = 3
_Answer = TypeVar("_Answer")


class Then(NamedTuple):
    """A revision, looked at: the place of its memories, and what a reader has to be told.

    `when` is the commit's time (RFC 3339) and `now` the same in seconds: what ages and ends are judged by.
    `asked` are the words that named it, `engine` who read its trees.
    """

    home: Home
    commit: str
    when: str
    now: float
    asked: str
    engine: str
    freshness: Freshness
    notices: tuple[Notice, ...]

    def json(self) -> dict[str, Any]:
        """The key `at` of a document."""
        return {
            "commit": self.commit,
            "when": self.when,
            "asked": self.asked,
            "folder": self.home.base,
            "engine": self.engine,
        }


def look(ws: Workspace, asked: str, progress: Progress | None = None) -> Then:
    """The memories as a commit has them: the newest by `asked`, a revision or a date (git/history.py).

    Nothing of the work tree, of drafts or of personal memories is in it. Raises NotFound where nothing is
    meant, Refused outside of a repository.
    """
    revision = ws.git.revision(asked)
    folder, engine = _folder(ws, revision.commit)
    assert ws.site is not None
    key = next(iter(ws.project.keys), "")
    home = homes.revision_home(ws.site.common_dir, revision.commit, folder, key)
    freshness = _reconcile(ws, home, progress)
    moment = parse_time(revision.at)
    return Then(
        home,
        revision.commit,
        revision.at,
        # 0 would mean the clock.
        max(1.0, moment.timestamp()) if moment is not None else 1.0,
        revision.text,
        engine,
        freshness._replace(quarantined=0),
        (*staleness(ws, freshness), _told(revision.commit, revision.at), *_unread(ws, home)),
    )


def select(ws: Workspace, then: Then, text: str) -> Row:
    """The memory that `text` names (as in selecting.select) among those of the revision."""
    part = normal_id_part(text)
    if part is not None and not answer(ws, then, lambda: ws.index.find([then.home], part)):
        for file in ws.index.quarantined([then.home]):
            name = file.path.rpartition("/")[2].removesuffix(".md")
            if name.startswith(part) or name.endswith(part):
                raise NotFound(
                    f"{file.path} can't be read as a memory at {then.commit[:10]}: {file.reason}.",
                    f"`git show` has its bytes; `open-memex history {name}` other versions of it.",
                )
        raise NotFound(
            f"No memory had the id {text} at {then.commit[:10]}.",
            f"`open-memex list --at {then.commit[:10]} --all` shows every memory of then; "
            "`open-memex history` when one came and went.",
        )
    return copies(ws, text, [then.home])[0]


def answer(ws: Workspace, then: Then, ask: Callable[[], _Answer]) -> _Answer:
    """What `ask` finds in the revision. Others who look at many may have pushed it out of the index."""
    found = ask()
    for _ in range(_TRIES):
        if ws.index.holds(then.home):
            break
        _reconcile(ws, then.home, None)
        found = ask()
    return found


def _folder(ws: Workspace, commit: str) -> tuple[str, str]:
    """Where the memories lie at `commit`, and who read that: the configured folder, else a usual one.

    A commit never changes, so what was found is remembered.
    """
    assert ws.site is not None
    wanted = ws.settings.memory_dir
    key = f"at\0{ws.site.common_dir}\0{commit}\0{wanted}"
    known = (ws.index.recall(key) or "").split("\0")
    if len(known) == 2:
        return known[0], known[1]
    found = wanted
    for folder in dict.fromkeys((wanted, *USUAL_FOLDERS)):
        if any(name.endswith(".md") and is_id(name[:-3]) for name in ws.git.entries(commit, folder)):
            found = folder
            break
    engine = ws.git.reading_engine
    ws.index.remember(key, f"{found}\0{engine}")
    return found, engine


def _reconcile(ws: Workspace, home: Home, progress: Progress | None) -> Freshness:
    step = None if progress is None else lambda done, total: progress("Reading memories", done, total)
    return ws.index.reconcile([home], ws.trees, progress=step)


def _told(commit: str, when: str) -> Notice:
    return Notice(
        "at",
        f"as of commit {commit[:10]} of {when}: drafts, personal memories and what was not committed then "
        "are not in it, and ages count from then",
    )


def _unread(ws: Workspace, home: Home) -> list[Notice]:
    files = ws.index.quarantined([home])
    notices = []
    for file in files[:_NAMED]:
        line = f"line {file.line}: " if file.line else ""
        notices.append(Notice("unreadable", f"left out: {file.path}, {line}{file.reason}"))
    if len(files) > _NAMED:
        notices.append(Notice("unreadable", f"left out: {len(files) - _NAMED} more that can't be read"))
    return notices

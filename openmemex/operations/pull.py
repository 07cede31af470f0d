"""Pull: fetch, fast-forward, and say what it brought to the team's memory."""

from __future__ import annotations

from dataclasses import dataclass

from openmemex import checking
from openmemex.index.rows import EVERY, Filters, Row, Unread
from openmemex.memory.ids import is_id
from openmemex.results import Progress
from openmemex.store import state
from openmemex.workspace import Workspace


@dataclass(frozen=True)
class Pulled:
    """The receipt: the commits before and after, the memories that came, changed or went, by whom.

    `removed` and the paths of `quarantined` are as output shows them; `flagged` memories hold a secret in
    clear. `checked`: what the merges that came had joined, looked at again.
    """

    branch: str
    remote: str
    before: str
    after: str
    engine: str
    fetched_at: str
    authors: tuple[str, ...]
    added: tuple[Row, ...]
    changed: tuple[Row, ...]
    removed: tuple[str, ...]
    quarantined: tuple[Unread, ...]
    flagged: tuple[Row, ...]
    checked: checking.Checked


def pull(ws: Workspace, *, progress: Progress | None = None) -> Pulled:
    """Fetch and fast-forward the current branch. Never merges, never rebases, never commits.

    Raises Refused, with nothing changed, where the branch can't be fast-forwarded: the message says why.
    """
    ws.require_project()
    home = ws.repository_home()
    folder = "" if home is None else home.shown(home.folder)
    got = ws.git.pull(folder)
    pulled = state.Pulled(got.fetched_at, got.remote, got.default_branch or "")
    state.set_pulled(ws.data_root, ws.git.site.common_dir, pulled)
    ws.reconcile(progress)
    prefix = folder + "/"
    known = () if home is None else ws.index.list([home], Filters(all=True), EVERY).rows
    rows = {row.rel_path: row for row in known}
    added: list[Row] = []
    changed: list[Row] = []
    removed: list[str] = []
    for status, path in got.changes:
        name = path.removeprefix(prefix)
        if not path.startswith(prefix) or not name.endswith(".md") or not is_id(name[:-3]):
            continue
        if status == "D":
            removed.append(path)
        elif path in rows:
            (added if status == "A" else changed).append(rows[path])
    touched = {path for _, path in got.changes}
    came = got.before != got.after
    return Pulled(
        branch=got.branch,
        remote=got.remote,
        before=got.before,
        after=got.after,
        engine=got.engine,
        fetched_at=got.fetched_at,
        authors=got.authors,
        added=tuple(added),
        changed=tuple(changed),
        removed=tuple(removed),
        quarantined=tuple(q for q in ws.index.quarantined(ws.homes()) if q.path in touched),
        flagged=tuple(row for row in (*added, *changed) if row.masked),
        checked=checking.check(ws, since=got.before or None) if came else checking.Checked(),
    )

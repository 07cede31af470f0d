"""Submit: bring drafts and changed memories into the repository, in one commit of exactly their files.

Read from top to bottom: what is meant, what each file becomes, what could be in the way, then file, objects,
staging area, ref, and last the outbox. Killed anywhere and run again, it finishes: a copy in the repository that
says the same as the draft (apart from its review) is the draft's own, from the run before.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from openmemex import faults
from openmemex.errors import DecisionNeeded, NotFound, OpenMemexError, Refused, UsageError
from openmemex.git.provider import CommitResult
from openmemex.index.rows import Row
from openmemex.memory import frontmatter
from openmemex.memory.ids import normal_id_part
from openmemex.memory.model import Memory, now_text
from openmemex.results import Notice
from openmemex.selecting import copies
from openmemex.store import files, homes, state
from openmemex.trust import secrets
from openmemex.workspace import Workspace
from openmemex.writing import (
    history_with,
    lock_key,
    open_copy,
    superseded_changes,
    writer,
    writing,
)


@dataclass(frozen=True)
class Submitted:
    """What was committed. `commit` is None for a dry run; `next` holds commands that work as they stand."""

    commit: str | None
    branch: str | None
    files: tuple[str, ...]
    engine: str
    dry_run: bool
    next: tuple[str, ...]
    notices: tuple[Notice, ...]
    pushed: bool = False
    pr: str | None = None


@dataclass
class _Step:
    """One file of the commit: its path in the repository, its bytes then (None: deleted), and where they come
    from. `before` is the work tree's copy now; `outbox` the draft that is deleted when all is done."""

    memory_id: str
    path: str
    raw: bytes | None
    summary: str
    before: files.MemoryFile | None = None
    outbox: files.MemoryFile | None = None
    created: bool = field(default=False, compare=False)


def submit(
    ws: Workspace,
    refs: list[str],
    *,
    branch: str | None = None,
    onto: str | None = None,
    base: str | None = None,
    message: str | None = None,
    dry_run: bool = False,
) -> Submitted:
    """Commit the memories that `refs` name: outbox drafts, and repository memories with an uncommitted change.

    On the current branch, or on `branch`, which is made from `onto` (default HEAD) without switching to it. All
    or nothing; the user's other changes, staged or not, stay exactly as they are. Never pushes.

    Raises as `select`; Refused with the precondition that failed; DecisionNeeded where one id has two texts.
    """
    if not refs:
        raise UsageError("no memory was named", "open-memex sync-status shows what waits to be shared")
    if onto and not branch:
        raise UsageError("--onto needs --branch", "name the new branch with --branch NAME")
    ws.require_project()
    git = ws.git
    home = ws.repository_home()
    if home is None:
        raise Refused("a bare repository has no work tree to commit from", "run submit in a clone of it")
    with writing(ws, lock_key(ws, "project")):
        target = None if branch is None else f"refs/heads/{branch}"
        steps = _plan(ws, home, refs, target, onto)
        _refuse_secrets(steps)
        paths = [step.path for step in steps]
        git.check_commit(paths, branch=branch, onto=onto)
        next_steps = _next(ws, branch, base)
        if dry_run:
            return Submitted(None, branch or git.head().branch, tuple(paths), "", True, next_steps, ())
        text = secrets.mask(message).text if message else _message(steps)
        result = _commit(ws, home, steps, text, branch, onto)
        if target is not None:
            assert ws.site is not None
            state.add_branch(ws.data_root, ws.site.common_dir, target)
            faults.reached("submit.branch-noted")
        _verify(ws, home, result, steps)
        notices = _empty_outbox(steps)
        faults.reached("submit.outbox-removed")
    return Submitted(
        result.commit, result.branch, tuple(result.files), result.engine, False, next_steps, tuple(notices)
    )


def _plan(
    ws: Workspace, home: homes.Home, refs: list[str], target: str | None, onto: str | None
) -> list[_Step]:
    steps: dict[str, _Step] = {}
    changed = {entry.path: entry.state for entry in ws.git.folder_status(home.shown(home.folder))}
    by, at = writer(ws), now_text()
    for ref in refs:
        deleted = _deleted(home, ref, changed)
        if deleted is not None:
            memory_id, path = deleted
            steps[memory_id] = _Step(memory_id, path, None, "deleted")
            continue
        rows = {row.place_kind: row for row in copies(ws, ref)}
        step = _one(ws, home, rows, changed, target, by, at)
        steps[step.memory_id] = step
    revs = () if target is None else (target, onto or "HEAD")
    for step in list(steps.values()):
        other = _other_half(ws, home, step, steps, revs, at)
        if other is not None:
            steps[other.memory_id] = other
    return list(steps.values())


def _deleted(home: homes.Home, ref: str, changed: dict[str, str]) -> tuple[str, str] | None:
    """A memory whose file is gone from the work tree can only be named by git's own list of changes."""
    part = normal_id_part(ref)
    if part is None:
        return None
    found = [
        path
        for path, how in changed.items()
        if how == "deleted" and _stem(path).startswith(part) | _stem(path).endswith(part)
    ]
    if len(found) > 1:
        raise DecisionNeeded(
            f"{part} fits {len(found)} deleted memories: {', '.join(map(_stem, found))}", "type more of the id"
        )
    return (_stem(found[0]), found[0]) if found else None


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md")


def _one(
    ws: Workspace,
    home: homes.Home,
    rows: dict[str, Row],
    changed: dict[str, str],
    target: str | None,
    by: str,
    at: str,
) -> _Step:
    row = next(iter(rows.values()))
    path = home.shown(home.path_of(row.id))
    if row.scope == "personal":
        raise Refused(f"{row.id} is personal and never leaves this computer", "")
    here = open_copy(ws, rows["repository"]).file if "repository" in rows else None
    draft = open_copy(ws, rows["outbox"]).file if "outbox" in rows else None
    _refuse_private(here or draft)
    if draft is None and here is None:
        raise Refused(f"{row.id} is already {row.place_label}", "push that branch, or switch to it")
    if draft is None:
        assert here is not None
        if path not in changed:
            raise Refused(f"{path} has no change to commit", "open-memex sync-status shows what waits")
        return _Step(row.id, path, here.raw, row.summary, before=here)
    earlier = _committed(ws, home, row.id, target) if target else here and here.document
    if earlier is not None:
        if frontmatter.substance(earlier.memory) != frontmatter.substance(draft.memory):
            place = f"on {target.removeprefix('refs/heads/')}" if target else f"in {path}"
            raise DecisionNeeded(
                f"{row.id} has one text waiting on this computer and another {place}",
                f"compare the two ({draft.path}), keep one and forget the other",
            )
        return _Step(row.id, path, earlier.raw, row.summary, before=None if target else here, outbox=draft)
    return _Step(row.id, path, _as_shared(draft, by, at), row.summary, outbox=draft)


def _committed(ws: Workspace, home: homes.Home, memory_id: str, ref: str) -> frontmatter.Document | None:
    try:
        oid = ws.git.entries(ref, home.shown(home.folder)).get(memory_id + ".md")
    except NotFound:
        return None
    if oid is None:
        return None
    return next(frontmatter.parse(raw, stem=memory_id) for _, raw in ws.git.blobs([oid]))


def _refuse_private(file: files.MemoryFile | None) -> None:
    if file is not None and (file.memory.visibility == "private" or file.memory.scope == "personal"):
        raise Refused(
            f"{file.home.shown(file.path)} is marked private and never enters a repository",
            "if the team may read it, set `visibility: internal` in the file first",
        )


def _as_shared(draft: files.MemoryFile, by: str, at: str) -> bytes:
    """The draft as it enters the repository: proposed, unless its review has gone on already."""
    memory = draft.memory
    if memory.review_state != "draft":
        return draft.raw
    return frontmatter.rewrite(
        draft.document,
        {
            "review_state": "proposed",
            "proposed_by": by,
            "review_history": history_with(memory, by, "proposed", None, at),
            "updated_at": at,
        },
    )


def _other_half(
    ws: Workspace, home: homes.Home, step: _Step, steps: dict[str, _Step], revs: tuple[str, ...], at: str
) -> _Step | None:
    """The file of the memory that `step` replaces, marked as replaced, when it lies in the repository.

    It is read from the work tree, or with a branch from the first of `revs` that is there: what the work tree
    has uncommitted does not belong on another branch.
    """
    if step.raw is None:
        return None
    old_id = frontmatter.parse(step.raw, stem=step.memory_id).memory.supersedes
    if old_id is None or old_id == step.memory_id or old_id in steps:
        return None
    path = home.shown(home.path_of(old_id))
    file = None
    if revs:
        document = next(filter(None, (_committed(ws, home, old_id, rev) for rev in revs)), None)
    else:
        try:
            file = files.read(home, old_id)
        except OpenMemexError:
            return None
        document = file.document
    if document is None:
        return None
    old = document.memory
    if old.superseded_by not in (None, step.memory_id):
        raise DecisionNeeded(
            f"{path} is already replaced by {old.superseded_by}, not by {step.memory_id}",
            f"replace that one instead: open-memex supersede {old.superseded_by} TEXT",
        )
    raw = document.raw
    if old.superseded_by is None or old.status != "superseded":
        raw = frontmatter.rewrite(document, superseded_changes(step.memory_id, at))
    return _Step(old_id, path, raw, "replaced", before=file)


def _refuse_secrets(steps: list[_Step]) -> None:
    for step in steps:
        text = (step.raw or b"").decode("utf-8", "replace")
        for span in secrets.find(text):
            line = text.count("\n", 0, span.start) + 1
            raise Refused(
                f"{step.path}, line {line}: holds a secret ({span.kind})",
                f"take it out first: open-memex edit {step.memory_id}",
            )


def _message(steps: list[_Step]) -> str:
    """The commit's message where none was given: a subject of one line, then one line a memory."""
    lines = [f"{step.memory_id} {secrets.mask(step.summary).text[:100]}" for step in steps]
    if len(steps) == 1:
        subject = "Remove memory" if steps[0].raw is None else "Memory"
        return f"{subject}: {steps[0].summary[:60] if steps[0].raw else steps[0].memory_id}\n\n{lines[0]}\n"
    return f"Share {len(steps)} memories\n\n" + "\n".join(lines) + "\n"


def _commit(
    ws: Workspace, home: homes.Home, steps: list[_Step], message: str, branch: str | None, onto: str | None
) -> CommitResult:
    """File first, then git. If git refuses after all, the files are as they were before."""
    if branch is None:
        try:
            for step in steps:
                _write(home, step)
        except BaseException:
            _undo(home, steps)
            raise
        faults.reached("submit.files-written")
    try:
        return ws.git.commit(
            {step.path: step.raw for step in steps}, message=message, branch=branch, onto=onto
        )
    except BaseException:
        _undo(home, steps)
        raise


def _write(home: homes.Home, step: _Step) -> None:
    if step.raw is None:
        return
    if step.before is None:
        files.write_raw(home, step.memory_id, step.raw)
        step.created = True
    elif step.before.raw != step.raw:
        files.replace(step.before, step.raw)
        step.created = True


def _undo(home: homes.Home, steps: list[_Step]) -> None:
    for step in steps:
        if step.created and step.raw is not None:
            try:
                now = files.read(home, step.memory_id)
                if now.raw == step.raw:
                    files.remove(now) if step.before is None else files.replace(now, step.before.raw)
            except OpenMemexError:
                continue


def _verify(ws: Workspace, home: homes.Home, result: CommitResult, steps: list[_Step]) -> None:
    """Read the commit back before any draft is deleted: every text must really be in it."""
    entries = ws.git.entries(result.commit, home.shown(home.folder))
    for step in steps:
        oid = entries.get(step.memory_id + ".md")
        if step.raw is None:
            good = oid is None
        else:
            raw = next((raw for _, raw in ws.git.blobs([oid])), None) if oid else None
            good = raw is not None and _lines(raw) == _lines(step.raw)
        if not good:
            raise OpenMemexError(
                f"commit {result.commit} does not hold {step.path} as it was submitted; the draft was kept",
                "look at the commit (a hook may have changed it), then run submit again",
            )


def _lines(raw: bytes) -> bytes:
    return raw.replace(b"\r\n", b"\n")


def _empty_outbox(steps: list[_Step]) -> list[Notice]:
    notices = []
    for step in steps:
        if step.outbox is None:
            continue
        try:
            files.remove(step.outbox)
        except OpenMemexError as error:
            notices.append(Notice("draft-kept", f"the draft {step.memory_id} was kept: {error.message}"))
    return notices


def _next(ws: Workspace, branch: str | None, base: str | None) -> tuple[str, ...]:
    """The commands that bring the commit to the team, for this very remote and branch."""
    git = ws.git
    here = git.head().branch
    head = branch or here
    if head is None:
        return ()
    target = base or (here if branch else git.default_branch())
    if base is not None and base == head:
        raise Refused(
            f"a pull request from {head} into {base} would be empty",
            f"name another branch: open-memex submit ID --branch NAME --base {base}",
        )
    commands = git.push_command(head)
    if target is not None and target != head:
        commands = [*commands, *git.pull_request_command(head, target)]
    return tuple(commands)

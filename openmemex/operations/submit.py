"""Submit: bring drafts and changed memories into the repository, in one commit of exactly their files.

Read from top to bottom: what is meant, what each file becomes, what could be in the way, then file, objects,
staging area, ref, the outbox, and last the push, where one was asked for. Killed anywhere and run again, it
finishes: a copy in the repository that says the same as the draft (apart from its review) is the draft's own,
from the run before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from openmemex import faults
from openmemex.errors import Interrupted, OpenMemexError, PartlyDone, Refused, UsageError
from openmemex.git import light
from openmemex.git.commit_result import THROUGH_GIT, CommitResult
from openmemex.memory import frontmatter
from openmemex.results import Notice
from openmemex.sharing import Plan, Step
from openmemex.store import files, homes, state
from openmemex.trust import admission, secrets
from openmemex.workspace import Workspace
from openmemex.writing import lock_key, writing


@dataclass(frozen=True)
class Submitted:
    """What was committed. `commit` is None for a dry run; `already`: an earlier commit holds it all as it is;
    `engine`: who made it (libgit2, git, or "git commit" where hooks run); `next` holds commands that work as
    they stand; `words`: what hooks and the server said.
    """

    commit: str | None
    branch: str | None
    files: tuple[str, ...]
    engine: str
    dry_run: bool
    next: tuple[str, ...]
    notices: tuple[Notice, ...]
    already: bool = False
    pushed: bool = False
    pr: str | None = None
    words: tuple[str, ...] = ()


def submit(
    ws: Workspace,
    refs: list[str],
    *,
    branch: str | None = None,
    onto: str | None = None,
    base: str | None = None,
    message: str | None = None,
    push: bool = False,
    dry_run: bool = False,
) -> Submitted:
    """Commit the memories that `refs` name: outbox drafts, and repository memories with an uncommitted
    change.

    On the current branch, or on `branch`, which is made from `onto` (default HEAD) without switching to it.
    All or nothing; the user's other changes, staged or not, stay exactly as they are. `push`: that branch is
    pushed afterwards; without it nothing ever is.

    Raises as `select`; Refused with the precondition that failed; DecisionNeeded where one id has two texts;
    PartlyDone when it was committed and the push was refused, or a hook spoilt a memory; Interrupted when it
    was stopped after the commit.
    """
    if not refs:
        raise UsageError("no memory was named", "open-memex sync-status shows what waits to be shared")
    if onto and not branch:
        raise UsageError("--onto needs --branch", "name the new branch with --branch NAME")
    if branch and secrets.find(branch):
        # A branch's name can't be masked: it is what the person has to type again.
        raise UsageError("the branch's name holds a secret", "choose another name: --branch NAME")
    ws.require_project()
    git = ws.git
    home = ws.repository_home()
    if home is None:
        raise Refused("a bare repository has no work tree to commit from", "run submit in a clone of it")
    with writing(ws, lock_key(ws, "project")):
        target = "" if branch is None else f"refs/heads/{branch}"
        plan = Plan(ws, home, target, onto or "HEAD")
        steps = plan.steps(refs)
        plan.refuse_secrets(steps)
        paths = [step.path for step in steps]
        checked = git.check_commit(paths, branch=branch, onto=onto)
        if branch:
            plan.refuse_empty_branch(steps, base)
        next_steps = _next(ws, branch, base)
        if push and not git.push_command(branch or git.head().branch or ""):
            raise Refused("this repository has no remote to push to", "add one: git remote add origin URL")
        held = plan.held_already(steps)
        new = [step for step in steps if step not in held] or steps
        notices = [
            Notice("unchanged", f"{step.memory_id} is so already: the commit has nothing of it")
            for step in steps
            if step not in new
        ]
        if dry_run:
            return Submitted(
                commit=None,
                branch=branch or git.head().branch,
                files=tuple(step.path for step in new),
                engine="",
                dry_run=True,
                next=next_steps,
                notices=tuple(notices),
                already=len(held) == len(steps),
            )
        text = secrets.mask(admission.redact(message)[0]).text if message else plan.message(new)
        before = _tip(ws, target)
        if branch is None:
            _write_files(home, steps)
        try:
            result = git.commit(
                {step.path: step.raw for step in steps},
                message=text,
                branch=branch,
                onto=onto,
                checked=checked,
            )
        except BaseException as error:
            # git refused after all: the files are as they were before. Unless it had committed them already.
            after = _tip(ws, target)
            if after == before or after is None:
                _undo(home, steps)
            elif isinstance(error, KeyboardInterrupt):
                raise Interrupted(
                    f"interrupted, but committed: {branch or git.head().branch} is at {after[:10]} now",
                    "Run the same command again: it finishes what was begun.",
                ) from error
            raise
        if target:
            state.add_branch(ws.data_root, git.site.common_dir, target, _tip(ws, target) or result.commit)
            faults.reached("submit.branch-noted")
        unchanged = {step.path for step in steps if step not in new}
        done = Submitted(
            commit=result.commit,
            branch=result.branch,
            files=tuple(path for path in result.files if path not in unchanged),
            engine=result.engine,
            dry_run=False,
            next=next_steps,
            notices=tuple(notices),
            already=result.already,
            words=_masked(result.words),
        )
        done = replace(done, notices=(*notices, *_verify(ws, plan, done, result, steps)))
        done = replace(done, notices=(*done.notices, *_empty_outbox(steps)))
        faults.reached("submit.outbox-removed")
    return _push(ws, done) if push else done


def _tip(ws: Workspace, target: str) -> str | None:
    """The commit of the branch that is committed to."""
    return light.read_ref(ws.git.site, target) if target else ws.git.head().commit


def _masked(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(secrets.mask("\n".join(words)).text.split("\n")) if words else ()


def _write_files(home: homes.Home, steps: list[Step]) -> None:
    try:
        for step in steps:
            _write(home, step)
    except BaseException:
        _undo(home, steps)
        raise
    faults.reached("submit.files-written")


def _write(home: homes.Home, step: Step) -> None:
    if step.raw is None:
        return
    if step.before is None:
        files.write_raw(home, step.memory_id, step.raw)
        step.written = True
    elif step.before.raw != step.raw:
        files.replace(step.before, step.raw)
        step.written = True


def _undo(home: homes.Home, steps: list[Step]) -> None:
    for step in steps:
        if step.written and step.raw is not None:
            try:
                now = files.read(home, step.memory_id)
                if now.raw == step.raw:
                    files.remove(now) if step.before is None else files.replace(now, step.before.raw)
            except OpenMemexError:
                continue


def _verify(
    ws: Workspace, plan: Plan, done: Submitted, result: CommitResult, steps: list[Step]
) -> list[Notice]:
    """Before any draft is deleted: the commit, read back, must hold what was made of each text.

    Gives a notice for each file that a commit hook changed. Raises PartlyDone where it is no memory any more.
    """
    notices = []
    stored = ws.git.here([oid for oid in result.held.values() if oid is not None])
    for step in steps:
        found = result.held.get(step.path)
        if found == result.blobs[step.path]:
            notices += _otherwise(step, stored.get(found or ""))
            continue
        # A hook may change the file (a formatter, say) as long as it still is this memory.
        text = None if result.engine != THROUGH_GIT or step.raw is None else stored.get(found or "")
        if text is None or _unreadable(step, text):
            kept = "; the draft was kept" if step.outbox is not None else ""
            raise PartlyDone(
                f"committed to {result.branch} as {result.commit[:10]}, but that does not hold {step.path} "
                f"as it was submitted{kept}",
                f"Look at it (git show {result.commit[:10]}): a commit hook may have changed it. Then submit "
                "it again.",
                result.words,
                done=done,
            )
        notices.append(
            Notice("changed-by-hook", f"a commit hook changed {step.path}{plan.left_behind(step)}")
        )
    return notices


def _otherwise(step: Step, stored: bytes | None) -> list[Notice]:
    """The notice for a memory that a filter turned into something else in git."""
    why = "" if stored is None or stored == step.raw else _unreadable(step, stored)
    if not why:
        return []
    told = f"git has {step.path} not as a memory: {why}; `open-memex doctor` says what mends it"
    return [Notice("stored-otherwise", told)]


def _unreadable(step: Step, stored: bytes) -> str:
    try:
        frontmatter.parse(stored, stem=step.memory_id, default_scope="project")
    except OpenMemexError as error:
        return error.message
    return ""


def _empty_outbox(steps: list[Step]) -> list[Notice]:
    notices = []
    for step in steps:
        if step.outbox is None:
            continue
        try:
            files.remove(step.outbox)
        except OpenMemexError as error:
            notices.append(Notice("draft-kept", f"the draft {step.memory_id} was kept: {error.message}"))
    return notices


def _push(ws: Workspace, done: Submitted) -> Submitted:
    """Push the branch. Raises PartlyDone, or Interrupted: the commit is made, whatever the server says."""
    assert done.branch is not None and done.commit is not None
    commands = ws.git.push_command(done.branch)
    again = f"To try again: {' && '.join(commands)}"
    committed = f"committed to {done.branch} as {done.commit[:10]}"
    try:
        words = ws.git.push(done.branch).words
    except OpenMemexError as error:
        raise PartlyDone(
            f"{committed}, but not pushed: {error.message}",
            f"{error.hint} {again}".strip(),
            error.words,
            done=done,
        ) from error
    except KeyboardInterrupt as stop:
        raise Interrupted(f"{committed}; interrupted while it was pushed", again, done=done) from stop
    return replace(done, pushed=True, next=done.next[len(commands) :], words=(*done.words, *_masked(words)))


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

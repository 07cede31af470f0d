"""Submit: bring drafts and changed memories into the repository, in one commit of exactly their files.

Read from top to bottom: what is meant, what each file becomes, what could be in the way, then file, objects,
staging area, ref, the outbox, and last the push, where one was asked for. Killed anywhere and run again, it
finishes: a copy in the repository that says the same as the draft (apart from its review) is the draft's own,
from the run before.
"""

from __future__ import annotations

from dataclasses import dataclass

from openmemex import faults
from openmemex.errors import OpenMemexError, PartlyDone, Refused, UsageError
from openmemex.git import light
from openmemex.git.commit_result import CommitResult
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
    PartlyDone when it was committed and the push was refused.
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
        _refuse_secrets(steps)
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
        before = git.head().commit
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
        except BaseException:
            # git refused after all: the files are as they were before. Unless it had committed them already.
            if git.head().commit == before:
                _undo(home, steps)
            raise
        made = None if not target else light.read_ref(git.site, target)
        if made is not None:
            state.add_branch(ws.data_root, git.site.common_dir, target, made)
            faults.reached("submit.branch-noted")
        notices += _verify(ws, result, steps)
        notices += _empty_outbox(steps)
        faults.reached("submit.outbox-removed")
    unchanged = {step.path for step in steps if step not in new}
    committed_to = branch or git.head().branch
    words = result.words
    if push and committed_to is not None:
        words += _push(ws, committed_to, result)
        next_steps = next_steps[len(git.push_command(committed_to)) :]
    return Submitted(
        commit=result.commit,
        branch=committed_to,
        files=tuple(path for path in result.files if path not in unchanged),
        engine=result.engine,
        dry_run=False,
        next=next_steps,
        notices=tuple(notices),
        already=result.already,
        pushed=push and committed_to is not None,
        words=tuple(secrets.mask("\n".join(words)).text.split("\n")) if words else (),
    )


def _refuse_secrets(steps: list[Step]) -> None:
    for step in steps:
        text = (step.raw or b"").decode("utf-8", "replace")
        for span in secrets.find(text):
            line = text.count("\n", 0, span.start) + 1
            raise Refused(
                f"{step.path}, line {line}: holds a secret ({span.kind})",
                f"take it out first: open-memex edit {step.memory_id}",
            )


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


def _verify(ws: Workspace, result: CommitResult, steps: list[Step]) -> list[Notice]:
    """Before any draft is deleted: the commit, read back, must hold what was made of each text.

    Gives a notice for each file that a commit hook changed.
    """
    notices = []
    for step in steps:
        found = result.held.get(step.path)
        if found == result.blobs[step.path]:
            continue
        if not _is_a_hooks_work(ws, result, step, found):
            raise OpenMemexError(
                f"commit {result.commit} does not hold {step.path} as it was submitted; the draft was kept",
                "look at the commit, then run submit again",
            )
        notices.append(Notice("changed-by-hook", f"a commit hook changed {step.path}"))
    return notices


def _is_a_hooks_work(ws: Workspace, result: CommitResult, step: Step, oid: str | None) -> bool:
    """Whether a commit hook changed the file (a formatter, say) and it still is this memory."""
    if result.engine != "git commit" or step.raw is None or oid is None:
        return False
    try:
        for _, raw in ws.git.blobs([oid]):
            frontmatter.parse(raw, stem=step.memory_id, default_scope="project")
    except OpenMemexError:
        return False
    return True


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


def _push(ws: Workspace, branch: str, result: CommitResult) -> tuple[str, ...]:
    """Push the branch; what the server said. Raises PartlyDone: the commit is made, whatever it says."""
    try:
        return ws.git.push(branch).words
    except OpenMemexError as error:
        again = " && ".join(ws.git.push_command(branch))
        raise PartlyDone(
            f"committed to {branch} as {result.commit[:10]}, but not pushed: {error.message}",
            f"{error.hint} To try again: {again}".strip(),
            error.words,
        ) from error


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

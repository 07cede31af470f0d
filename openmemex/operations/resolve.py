"""Resolve: what is in conflict, field by field, and merging it so that git goes on.

Everything is decided before a byte is written, and nothing is committed: that is the person's own step.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from openmemex import checking, faults, settling
from openmemex.checking import Problem
from openmemex.errors import DecisionNeeded, NotFound, Refused, UsageError
from openmemex.git.conflicts import Sides, Unmerged
from openmemex.memory.ids import normal_id_part
from openmemex.memory.merge import Labels
from openmemex.memory.model import now_text
from openmemex.results import Notice
from openmemex.settling import NOTHING, Decided, Takes
from openmemex.store import files
from openmemex.trust import secrets
from openmemex.workspace import Workspace
from openmemex.writing import late_index, lock_key, writer, writing

__all__ = ["Resolution", "preview", "resolve"]


@dataclass(frozen=True)
class Resolution:
    """Where the conflicts stand.

    `done`: settled now, and staged. `mended`: written into the work tree alone, where a merge that is
    committed had joined them wrongly. `ready`: would be settled by `resolve ID`. `open`: only a person can.
    `left`: why a memory that was to be settled was not (id to reason). `problems`: what merges joined without
    a conflict and should be looked at. `still`: ids of others like these, which were not asked for. `others`:
    files in conflict that are no memories. `next`: the commands that go on.
    """

    sides: Sides
    done: tuple[Decided, ...] = ()
    mended: tuple[Decided, ...] = ()
    ready: tuple[Decided, ...] = ()
    open: tuple[Decided, ...] = ()
    left: tuple[tuple[str, str], ...] = ()
    problems: tuple[Problem, ...] = ()
    checked: int = 0
    still: tuple[str, ...] = ()
    misplaced: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()
    next: tuple[str, ...] = ()

    @property
    def needs_a_person(self) -> bool:
        """Whether something is still in conflict, or was joined wrongly."""
        waiting = self.open or self.ready or self.left or self.problems or self.still
        return bool(waiting or self.misplaced)


@dataclass(frozen=True)
class _Found:
    """What is in conflict now, and what each memory would come to."""

    unmerged: Sequence[Unmerged]
    folders: Sequence[str]
    sides: Sides
    decided: tuple[Decided, ...]
    checked: checking.Checked
    misplaced: tuple[str, ...]
    others: tuple[str, ...]


def preview(ws: Workspace, refs: Sequence[str] = ()) -> Resolution:
    """What is in conflict (only the memories that `refs` name; none: all), with nothing changed.

    Raises Refused outside of a work tree, NotFound for a memory that is not in conflict.
    """
    _check_place(ws)
    found = _look(ws)
    chosen = _chosen(found, refs)
    decided = [one for one in found.decided if one.case.memory_id in chosen]
    return Resolution(
        found.sides,
        ready=tuple(one for one in decided if one.how != "conflict"),
        open=tuple(one for one in decided if one.how == "conflict"),
        problems=tuple(one for one in found.checked.problems if one.ids[0] in chosen),
        checked=found.checked.count,
        still=tuple(sorted(_waiting(found) - chosen)),
        misplaced=found.misplaced,
        others=found.others,
        notices=(*_elsewhere(found), *_unchecked(found)),
        next=_next(ws, found, found.decided),
    )


def resolve(
    ws: Workspace,
    refs: Sequence[str] = (),
    takes: Takes = NOTHING,
    answers: Mapping[str, Takes] | None = None,
) -> Resolution:
    """Merge the memories that `refs` name (none: all), write them into the work tree, and stage them.

    `takes` hold for each of them that has such a conflict, `answers` for one (by id). A memory whose
    conflicts are not all settled by these is left as it is, file and stages. Makes no commit. Raises as
    `preview`; UsageError for a take that fits no conflict.
    """
    _check_place(ws)
    with writing(ws, lock_key(ws, "project")) as fresh:
        found = _look(ws)
        chosen = _chosen(found, refs)
        _check_takes(found, chosen, takes)
        by, at = writer(ws), now_text()
        labels = Labels(*(secrets.mask(name).text for name in found.sides[1:4]))

        def with_takes(one: Decided, names: Labels) -> Decided:
            own = (answers or {}).get(one.case.memory_id)
            its = Takes({**takes.fields, **own.fields}, own.file or takes.file, own.text) if own else takes
            if not one.conflicts or its == NOTHING:
                return one
            return settling.decide(one.case, its, labels=names, by=by, at=at)

        decided = [with_takes(one, labels) for one in found.decided if one.case.memory_id in chosen]
        open_groups = {one.case.group for one in decided if one.how == "conflict"}
        settled = [one for one in decided if one.case.group not in open_groups]
        still_open = [one for one in decided if one.case.group in open_groups]
        problems = [one for one in found.checked.problems if one.ids[0] in chosen]
        uncommitted = found.sides.operation == "merge"
        # An old merge is not mended on the way, where something else waits to be committed.
        wanted = problems if refs or uncommitted or not found.unmerged else []
        mending = [
            with_takes(settling.decide(one.case), Labels("base", one.ours, one.theirs))
            for one in wanted
            if one.case is not None
        ]
        mending = [one for one in mending if one.how != "conflict"]
        faults.reached("resolve.decided")
        rescued = _rescue(ws, [*settled, *mending])
        left = _write(ws, found, settled, mending, staged=uncommitted)
        done = tuple(one for one in settled if one.case.memory_id not in left)
        mended = tuple(one for one in mending if one.case.memory_id not in left)
    now_fine = {one.case.memory_id for one in mended}
    return Resolution(
        found.sides,
        done=done,
        mended=mended,
        open=tuple(one for one in still_open if one.how == "conflict"),
        ready=tuple(one for one in still_open if one.how != "conflict"),
        left=tuple(sorted(left.items())),
        problems=tuple(one for one in problems if one.ids[0] not in now_fine),
        checked=found.checked.count,
        still=tuple(sorted(_waiting(found) - chosen)),
        misplaced=found.misplaced,
        others=found.others,
        notices=(
            *rescued,
            *settling.told(done + mended),
            *_elsewhere(found),
            *late_index(fresh),
            *_unchecked(found),
        ),
        next=_after(ws, found, done, mended, staged=uncommitted),
    )


def _check_place(ws: Workspace) -> None:
    if not ws.git.site.root:
        raise Refused(
            f"{ws.git.site.git_dir} is a bare repository: nothing is in conflict without a work tree",
            "Run this in a clone with a work tree.",
        )


def _look(ws: Workspace) -> _Found:
    unmerged = ws.git.unmerged()
    folders = settling.memory_folders(ws)
    cases = settling.cases(ws, unmerged)
    taken = {path for case in cases for path in case.records}
    rest = [one.path for one in unmerged if one.path not in taken]
    aside = tuple(path for path in rest if settling.misplaced(path, folders))
    return _Found(
        unmerged,
        folders,
        ws.git.sides(unmerged),
        tuple(settling.decide(case) for case in cases),
        checking.check(ws),
        aside,
        tuple(path for path in rest if path not in aside),
    )


def _chosen(found: _Found, refs: Sequence[str]) -> set[str]:
    """The ids that `refs` name among what is in conflict or joined wrongly; all of them without `refs`."""
    ids = _waiting(found)
    if not refs:
        return ids
    chosen = set()
    for ref in refs:
        part = normal_id_part(ref)
        if part is None:
            raise UsageError(
                f"{secrets.mask(ref).text[:40]!r} is no memory id.",
                "An id has 26 letters and digits; 4 or more from its start or its end will do.",
            )
        fitting = sorted(one for one in ids if one.startswith(part) or one.endswith(part))
        if len(fitting) > 1:
            raise DecisionNeeded(
                f"{part} fits {len(fitting)} memories: {', '.join(fitting[:5])}.",
                "Type more of the id that you mean.",
            )
        if not fitting:
            raise NotFound(f"No memory {part} is in conflict.", "`open-memex resolve` lists those that are.")
        chosen.update(fitting)
    # Memories that git mixed up with each other leave their conflict together.
    groups = {one.case.group for one in found.decided if one.case.memory_id in chosen}
    return chosen | {one.case.memory_id for one in found.decided if one.case.group in groups}


def _waiting(found: _Found) -> set[str]:
    """The ids of all that is in conflict or was joined wrongly."""
    return {one.case.memory_id for one in found.decided} | {one.ids[0] for one in found.checked.problems}


def _check_takes(found: _Found, chosen: set[str], takes: Takes) -> None:
    """Raise UsageError for a take that fits no conflict of the chosen memories."""
    known = [one for one in found.decided if one.case.memory_id in chosen]
    for problem in found.checked.problems:
        if problem.case is not None and problem.ids[0] in chosen:
            known.append(Decided(problem.case, "conflict", None, problem.conflicts))
    if known:  # run again when all is settled, the same command is done
        settling.check_takes(known, takes)


def _rescue(ws: Workspace, settled: Sequence[Decided]) -> list[Notice]:
    """Keep what a person typed into a file that is about to be replaced or removed."""
    home = ws.repository_home()
    notices = []
    for one in settled:
        for path in one.rescue:
            raw = one.case.files[path]
            if home is not None and raw is not None:
                kept = files.rescue(home, one.case.memory_id, raw)
                told = f"{path} held lines that no side has: the file is kept in {kept}"
                notices.append(Notice("rescued", told))
    return notices


def _write(
    ws: Workspace, found: _Found, settled: Sequence[Decided], mending: Sequence[Decided], *, staged: bool
) -> dict[str, str]:
    """Write and stage; gives why a memory was left after all (by id)."""
    owner: dict[str, str] = {}
    steps = []
    for one, in_git in [*((each, True) for each in settled), *((each, staged) for each in mending)]:
        for step in settling.settlements(one, staged=in_git):
            owner[step.path] = one.case.memory_id
            steps.append(step)
    if not steps:
        return {}
    result = ws.git.settle(steps, {record.path: record for record in found.unmerged})
    return {owner[path]: f"{path}: {reason}" for path, reason in result.left.items()}


def _unchecked(found: _Found) -> tuple[Notice, ...]:
    failed = found.checked.failed
    return (Notice("unchecked", failed),) if failed else ()


def _elsewhere(found: _Found) -> Iterator[Notice]:
    """Memories end up in a folder that the settings do not name: nobody would see them there."""
    folders = {one.case.path.rpartition("/")[0] for one in found.decided if one.how != "deleted"}
    for folder in sorted(folders - set(found.folders)):
        command = f"open-memex config set memoryDir {shlex.quote(folder)}"
        told = (
            f"{folder} holds memories in conflict, and is not your memory folder; if it is to be: {command}"
        )
        yield Notice("folder", told)


def _after(
    ws: Workspace, found: _Found, done: Sequence[Decided], mended: Sequence[Decided], *, staged: bool
) -> tuple[str, ...]:
    settled = {one.case.memory_id for one in done}
    remaining = [one for one in found.decided if one.case.memory_id not in settled]
    commands = list(_next(ws, found, remaining))
    if mended and not staged:
        commands.append(f"open-memex submit {' '.join(one.case.memory_id for one in mended)}")
    elif mended and not commands:
        commands.append("git merge --continue")
    return tuple(commands)


def _next(ws: Workspace, found: _Found, remaining: Sequence[Decided]) -> tuple[str, ...]:
    """The commands that come next, with these memories still in conflict."""
    go_on = ws.git.go_on(found.sides) if found.unmerged else ""
    return settling.next_commands(remaining, (*found.misplaced, *found.others), go_on)

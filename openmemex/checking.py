"""Memories that a merge joined without a conflict, held against our own merge of the same three versions.

git merges lines. It can put a key in twice, join an approval to a text that nobody approved, or leave two
memories that both replace a third, and say nothing. What it made is looked at again here: while the merge
waits to be committed, and for as long as nobody has changed the file since.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from openmemex.errors import OpenMemexError
from openmemex.git.conflicts import work_tree_file
from openmemex.git.merges import Join, JoinedFile
from openmemex.memory import frontmatter, lifecycle, merge
from openmemex.memory.fences import Unreadable
from openmemex.memory.ids import is_id
from openmemex.memory.merge import Conflict, Merged
from openmemex.memory.model import FIELDS, Memory
from openmemex.settling import Case, Version, folders_of, memory_folders, memory_id_of, plain, take_command
from openmemex.workspace import Workspace

_POINTERS: Final = re.compile(rb"^supersede(?:s|d_by)[ \t]*:[^\n]*[0-9A-Z]{26}", re.MULTILINE)


@dataclass(frozen=True)
class Problem:
    """Something that a merge joined wrongly.

    `rule` is unreadable, meaning (git's result says something else than a merge by meaning), conflict (the
    two sides contradict each other), renamed (git took a new memory for another one renamed) or chain.
    `ids`: the memories concerned, the one to mend first. `merge`: the commit ("" for the one that is not
    committed yet); `ours` and `theirs`: its two sides, in words. `case`: what mends it, None when only
    another command can; `conflicts`: what a person has to decide for that.
    """

    rule: str
    ids: tuple[str, ...]
    path: str
    text: str
    fix: str
    merge: str
    ours: str = ""
    theirs: str = ""
    case: Case | None = None
    conflicts: tuple[Conflict, ...] = ()


@dataclass(frozen=True)
class Checked:
    """How many memories were looked at, as both sides of a merge had a part in them, and what is wrong.

    `texts`: those whose text git joined line by line from two edits: what git's users expect, and no fault.
    `failed`: why nothing could be looked at ("" when it could).
    """

    count: int = 0
    problems: tuple[Problem, ...] = ()
    texts: tuple[str, ...] = ()
    failed: str = ""


def check(ws: Workspace, *, since: str | None = None) -> Checked:
    """Look at what the merge in progress and the last merges joined; `since`: at what came after a commit.

    Changes nothing, and never raises: whoever calls it has something else to do. Each memory is told once, of
    its last merge.
    """
    if ws.site is None or not ws.site.root:
        return Checked()
    try:
        return _check(ws, since)
    except OpenMemexError as error:
        return Checked(failed=f"what merges joined could not be looked at: {error.message}")


def _check(ws: Workspace, since: str | None) -> Checked:
    joins = ws.git.joined(memory_folders(ws), since=since)
    wanted = {
        oid for join in joins for file in join.files.values() for oid in file[1:] if oid and _is_memory(file)
    }
    raws = ws.git.contents(sorted(wanted)) if wanted else {}
    count, problems = 0, []
    texts: dict[str, None] = {}
    told: set[str] = set()
    for join in joins:
        files = {name: file for name, file in join.files.items() if _is_memory(file)}
        count += sum(file.text_merged for file in files.values())
        for problem in _file_problems(ws, join, files, raws, texts):
            if problem.ids[0] not in told and _untouched(ws, files[f"{problem.ids[0]}.md"], raws):
                told.add(problem.ids[0])
                problems.append(_with_sides(join, problem))
        for problem in _chain_problems(ws, files, raws):
            if problem.text not in told:
                told.add(problem.text)
                problems.append(_with_sides(join, problem))
    if problems:
        # A memory that is in conflict is told as such, and what hangs together with it is not known yet.
        unmerged = ws.git.unmerged()
        folders = folders_of(ws, unmerged)
        open_ = {memory_id_of(one.path, folders) for one in unmerged}
        problems = [one for one in problems if open_.isdisjoint(one.ids)]
    return Checked(count, tuple(problems), tuple(sorted(texts)))


def _is_memory(file: JoinedFile) -> bool:
    name = file.path.rpartition("/")[2]
    return name.endswith(".md") and is_id(name[:-3])


def _file_problems(
    ws: Workspace,
    join: Join,
    files: Mapping[str, JoinedFile],
    raws: Mapping[str, bytes],
    texts: dict[str, None],
) -> Iterator[Problem]:
    """What git joined wrongly; notes in `texts` whose text it joined line by line."""
    for name, file in sorted(files.items()):
        if not file.text_merged:
            continue
        memory_id = name[:-3]
        case = _case(ws, memory_id, file, raws)
        base, ours, theirs, result = (raws[oid] if oid else None for oid in file[1:])
        assert result is not None
        problem = _unreadable(ws, memory_id, file, case, result)
        if problem is not None and join.base is None:
            # Without the one base that both sides come from a merge would bring back what a side removed.
            problem = replace(problem, case=None, conflicts=(), fix=f"mend {file.path} by hand")
        if problem is None and join.base is not None:
            merged = merge.merge(base, ours, theirs, stem=memory_id)
            told = _difference(merged, result, memory_id)
            if told is not None and _is_gits_work(ws, base, ours, theirs, result):
                if any(one.field == "body" for one in merged.conflicts):
                    texts[memory_id] = None
                    case = _with_text(ws, case)
                    merged = merge.merge(base, ours, theirs, stem=memory_id, text=case.text)
                    told = _difference(merged, result, memory_id)
                if told is not None:
                    problem = _differing(memory_id, file, case, merged, told)
            elif told is not None and (base is None) and (ours is None) != (theirs is None):
                yield from _renamed(ws, memory_id, files, case, raws)
        if problem is not None:
            yield problem


def _case(ws: Workspace, memory_id: str, file: JoinedFile, raws: Mapping[str, bytes]) -> Case:
    def version(oid: str | None) -> Version | None:
        return None if oid is None else Version(file.path, oid, raws[oid])

    found, odd = _work_tree(ws, file.path)
    return Case(
        memory_id,
        file.path,
        version(file.base),
        version(file.ours),
        version(file.theirs),
        {},
        files={file.path: found},
        odd=odd,
        joined=True,
    )


def _work_tree(ws: Workspace, path: str) -> tuple[bytes | None, str]:
    try:
        return work_tree_file(os.path.join(ws.git.site.root, path))
    except OSError as error:
        return None, f"its file can't be read: {error.strerror}"


def _with_text(ws: Workspace, case: Case) -> Case:
    """The case with the body as git's merge of lines has it, where that is no conflict: two edits of one text
    that do not touch are joined as in every other file.
    """
    bodies = [
        None if one is None else frontmatter.parse(one.raw, stem=case.memory_id).memory.body.encode()
        for one in (case.base, case.ours, case.theirs)
    ]
    made = ws.git.text_merge(*(None if body is None else plain(body) for body in bodies))
    return case if made is None else replace(case, text=made.decode())


def _unreadable(ws: Workspace, memory_id: str, file: JoinedFile, case: Case, result: bytes) -> Problem | None:
    """The result can't be read although both sides can: git made it so."""
    try:
        frontmatter.parse(result, stem=memory_id, default_scope="project")
        return None
    except Unreadable as error:
        reason = f"line {error.line}: {error.reason}" if error.line else error.reason
    for version in (case.ours, case.theirs):
        try:
            if version is not None:
                frontmatter.parse(version.raw, stem=memory_id, default_scope="project")
        except Unreadable:
            return None  # it was so before the merge: `doctor` tells it
    versions = [None if one is None else one.raw for one in (case.base, case.ours, case.theirs)]
    try:
        merged = merge.merge(*versions, stem=memory_id)
        if any(one.field == "body" for one in merged.conflicts):
            case = _with_text(ws, case)
            merged = merge.merge(*versions, stem=memory_id, text=case.text)
    except (OpenMemexError, Unreadable):
        merged = Merged(None, (), (), ())
    text = f"git joined both sides' lines into a file that can't be read ({reason})"
    if "conflict markers" in reason:
        text = f"it was staged before its conflict was settled ({reason})"
    return Problem(
        *("unreadable", (memory_id,), file.path, text, _fix(memory_id, merged.conflicts, file.path), ""),
        case=case,
        conflicts=merged.conflicts,
    )


def _difference(merged: Merged, result: bytes, memory_id: str) -> tuple[str, ...] | None:
    """The fields in which git's result says something else than our merge; None when it says the same."""
    if merged.conflicts:
        return tuple(one.field for one in merged.conflicts)
    if merged.raw is None:
        return ("file",)
    if plain(merged.raw) == plain(result):
        return None
    try:
        ours = frontmatter.parse(merged.raw, stem=memory_id, default_scope="project").memory
    except Unreadable:
        return ("file",)
    gits = frontmatter.parse(result, stem=memory_id, default_scope="project").memory
    differing = _differing_fields(ours, gits)
    return differing or None


def _differing_fields(one: Memory, other: Memory) -> tuple[str, ...]:
    names = [field.name for field in FIELDS if one.value(field.name) != other.value(field.name)]
    if one.body.replace("\r\n", "\n") != other.body.replace("\r\n", "\n"):
        names.append("body")
    names += [key for key in {*one.extra, *other.extra} if one.extra.get(key) != other.extra.get(key)]
    return tuple(names)


def _is_gits_work(
    ws: Workspace, base: bytes | None, ours: bytes | None, theirs: bytes | None, result: bytes
) -> bool:
    """Whether git made the result by itself: what a person decided in a conflict is none of our business."""
    made = ws.git.text_merge(base, ours, theirs)
    return made is not None and plain(made) == plain(result)


def _differing(
    memory_id: str, file: JoinedFile, case: Case, merged: Merged, names: tuple[str, ...]
) -> Problem:
    if merged.conflicts:
        rule, text = "conflict", f"both sides changed what belongs together ({', '.join(names)})"
    else:
        rule = "meaning"
        text = f"git's merge of lines and a merge by meaning differ in {', '.join(names)}"
        if "review_state" in names:
            text = f"git joined an approval to a changed text ({', '.join(names)} differ)"
    fix = _fix(memory_id, merged.conflicts)
    return Problem(rule, (memory_id,), file.path, text, fix, "", case=case, conflicts=merged.conflicts)


def _fix(memory_id: str, conflicts: Sequence[Conflict], path: str = "") -> str:
    """How to mend it, for people: what merges by meaning by one command; else that with the sides to choose,
    or a person's own words. `path`: of a file that no command can edit, as it does not read.
    """
    command = take_command(memory_id, conflicts)
    if not conflicts:
        return command
    sides = "ours, theirs or delete" if conflicts[0].field == "file" else "ours or theirs"
    own = f"edit {path}" if path else f"open-memex edit {memory_id}"
    return f"{command} (SIDE: {sides})" + ("" if conflicts[0].field == "file" else f", or {own}")


def _renamed(
    ws: Workspace,
    memory_id: str,
    files: Mapping[str, JoinedFile],
    case: Case,
    raws: Mapping[str, bytes],
) -> Iterator[Problem]:
    """A new memory of one side that git took for an old one renamed: the other side's edit of the old one
    went into the new one."""
    new = case.ours or case.theirs
    mine = 1 if case.ours is not None else 2  # the side that has the new memory, as place in ours, theirs
    result = next(raws[file.result] for file in files.values() if file.path == case.path and file.result)
    for name, old in sorted(files.items()):
        if old.result is not None or old.base is None or old[mine + 1] is not None:
            continue
        edited = old[4 - mine]
        if edited is None or edited == old.base or new is None:
            continue
        pair = (new.raw, raws[edited]) if mine == 1 else (raws[edited], new.raw)
        made = ws.git.text_merge(raws[old.base], *pair)
        if made is None or plain(made) != plain(result):
            continue
        text = f"git took it for {name[:-3]} renamed, and put the other side's edit of that one into it"
        yield Problem(
            *("renamed", (memory_id, name[:-3]), case.path, text, f"open-memex resolve {memory_id}", ""),
            case=replace(case, around=(raws[old.base], raws[edited])),
        )
        lost = _case(ws, name[:-3], old, raws)
        text = f"deleted on one side, changed on the other; the change went into {memory_id}"
        conflicts = merge.merge(
            *(None if one is None else one.raw for one in (lost.base, lost.ours, lost.theirs)),
            stem=name[:-3],
        ).conflicts
        yield Problem(
            *("renamed", (name[:-3], memory_id), old.path, text, _fix(name[:-3], conflicts), ""),
            case=lost,
            conflicts=conflicts,
        )
        return


def _chain_problems(
    ws: Workspace, files: Mapping[str, JoinedFile], raws: Mapping[str, bytes]
) -> Iterator[Problem]:
    """Who replaces whom, where it is wrong now and neither side had it so: each brought a part of it."""
    concerned: dict[str, str] = {}
    for name, file in files.items():
        folder = file.path.rpartition("/")[0]
        for line in _POINTERS.findall(raws[file.result] if file.result else b""):
            partner = f"{line[-26:].decode('ascii')}.md"
            concerned |= {
                one: files[one].path if one in files else f"{folder}/{one}" for one in (name, partner)
            }
    if not concerned:
        return
    current = {name: _work_tree(ws, path)[0] for name, path in concerned.items()}
    now = lifecycle.Chains(_pointers(current))
    before = set()
    for side in ("ours", "theirs"):
        oids = {name: getattr(files[name], side) for name in concerned if name in files}
        versions = current | {name: raws[oid] if oid else None for name, oid in oids.items()}
        before |= {(fault.kind, fault.ids) for fault in lifecycle.Chains(_pointers(versions)).faults()}
    found = now.faults()
    forks = [frozenset(fault.ids) for fault in found if fault.kind == "fork"]
    for fault in found:
        touched = [files[f"{one}.md"] for one in fault.ids if f"{one}.md" in files]
        joined = any(one.ours != one.result for one in touched) and any(
            one.theirs != one.result for one in touched
        )
        # `dangling` is left to those who know every memory: only some are looked at here.
        if fault.kind == "dangling" or not joined or (fault.kind, fault.ids) in before:
            continue
        # Of several successors one at most is half of a pair: the fork says it all.
        if fault.kind in ("half", "uneven") and any(fork.issuperset(fault.ids) for fork in forks):
            continue
        fix = "`open-memex show ID` each, then retract the one that is wrong: open-memex status ID retracted"
        yield Problem("chain", fault.ids, concerned[f"{fault.ids[0]}.md"], fault.text, fix, "")


def _pointers(versions: Mapping[str, bytes | None]) -> dict[str, lifecycle.Pointers]:
    """What each memory (by its file's name) says of its place in a chain, of those that are there.

    One that can't be read says nothing.
    """
    found = {}
    for name, raw in versions.items():
        if raw is None:
            continue
        try:
            memory = frontmatter.parse(raw, stem=name[:-3], default_scope="project").memory
        except Unreadable:
            found[name[:-3]] = lifecycle.Pointers(None, None, "active")
            continue
        if memory.review_state != "rejected" and memory.status != "retracted":
            found[memory.id] = lifecycle.Pointers(memory.supersedes, memory.superseded_by, memory.status)
    return found


def _untouched(ws: Workspace, file: JoinedFile, raws: Mapping[str, bytes]) -> bool:
    """Whether the work tree still has what the merge made: a file that was mended waits to be submitted."""
    found, odd = _work_tree(ws, file.path)
    made = raws[file.result] if file.result else None
    if odd or found is None or made is None:
        return not odd and found is made
    return plain(found) == plain(made)


def _with_sides(join: Join, problem: Problem) -> Problem:
    ours, theirs = f"commit {join.ours[:10]}", f"commit {join.theirs[:10]}"
    return replace(problem, merge=join.commit or "", ours=ours, theirs=theirs)

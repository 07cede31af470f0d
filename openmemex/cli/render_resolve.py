"""How conflicts and what came of them read to a person, and for machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from openmemex.cli import plain
from openmemex.cli.escape import one_line
from openmemex.cli.terminal import Screen
from openmemex.trust.showing import shown_value

if TYPE_CHECKING:
    from openmemex.checking import Problem
    from openmemex.memory.merge import Conflict, Side
    from openmemex.operations.resolve import Resolution
    from openmemex.settling import Case, Decided

_LINES = 12  # of a text that a conflict shows
_WIDE = 400
_NAMES = 5  # of files or memories that one line names


def resolution_json(result: Resolution) -> dict[str, Any]:
    """What `resolve --json` prints. Secrets in the values are masked, as in every output."""
    return {
        "resolved": [one.case.memory_id for one in result.done],
        "conflicts": [
            _conflict_json(one.case.memory_id, one.case.path, one.case, conflict)
            for one in result.open
            for conflict in one.conflicts
        ],
        "operation": result.sides.operation,
        "sides": {
            "base": shown_value(result.sides.base),
            "ours": shown_value(result.sides.ours),
            "theirs": shown_value(result.sides.theirs),
        },
        "details": [
            {
                "id": one.case.memory_id,
                "path": one.case.path,
                "action": one.how,
                "decisions": [] if one.merged is None else [d._asdict() for d in one.merged.decisions],
            }
            for one in result.done
        ],
        "still": list(result.still),
        "settles": [one.case.memory_id for one in result.ready],
        "left": [{"id": memory_id, "reason": reason} for memory_id, reason in result.left],
        "mended": [one.case.memory_id for one in result.mended],
        "checked": result.checked,
        "problems": [problem_json(problem) for problem in result.problems],
        "misplaced": list(result.misplaced),
        "others": list(result.others),
        "next": list(result.next),
        "engine": "git",
        "notices": [notice._asdict() for notice in result.notices],
    }


def problem_json(problem: Problem) -> dict[str, Any]:
    """Something that a merge joined without a conflict and should be looked at, for --json."""
    return {
        "id": problem.ids[0],
        "ids": list(problem.ids),
        "path": problem.path,
        "rule": problem.rule,
        "text": shown_value(problem.text),
        "fix": problem.fix,
        "merge": problem.merge or None,
        "conflicts": [
            _conflict_json(problem.ids[0], problem.path, problem.case, one) for one in problem.conflicts
        ],
    }


def _conflict_json(memory_id: str, path: str, case: Case | None, conflict: Conflict) -> dict[str, Any]:
    from openmemex.settling import beside

    sides: tuple[Side, ...] = ("ours", "theirs")
    return {
        "id": memory_id,
        "field": conflict.field,
        "base": shown_value(conflict.base),
        "ours": shown_value(conflict.ours),
        "theirs": shown_value(conflict.theirs),
        "why": shown_value(conflict.why),
        "beside": {
            side: {name: shown_value(words) for name, words in beside(case, conflict, side)}
            for side in sides
            if case is not None
        },
        "path": path,
    }


def resolution_lines(result: Resolution, screen: Screen) -> Iterator[str]:
    """Where the conflicts stand, and the next step."""
    number = 1
    for title, decided in (("Settled and staged", result.done), ("Mended in the work tree", result.mended)):
        if decided:
            yield screen.style(f"{title}: {plain.memories(len(decided))}", "bold")
        for one in decided:
            yield f"{number}. {one.case.memory_id}  {_what_became(one)}"
            number += 1
    for memory_id, reason in result.left:
        yield f"Left as it was: {memory_id} ({one_line(reason)})"
    if result.open:
        yield screen.style(f"Only a person can decide: {plain.memories(len(result.open))}", "bold")
        for one in result.open:
            yield f"{number}. {one_line(one.case.path)}"
            number += 1
            for conflict in one.conflicts:
                yield from _conflict_lines(one.case, conflict, result.sides.ours, result.sides.theirs)
        yield "Decide with --take FIELD=SIDE, --take-body SIDE or --take-file SIDE (SIDE: ours, theirs, base;"
        yield "of a file: ours, theirs, delete). Or edit the file, and run `open-memex resolve ID`."
    if result.ready:
        yield screen.style(f"In conflict, and merge without a question: {len(result.ready)}", "bold")
        waits_for = {one.case.group: one.case.memory_id for one in result.open}
        for one in result.ready:
            other = waits_for.get(one.case.group)
            together = f" (together with {other}, which a person has to decide)" if other else ""
            yield f"{number}. {one.case.memory_id}  {_what_became(one)}{together}"
            number += 1
    yield from problem_lines(result.problems, screen, first=number)
    for path in result.misplaced:
        yield one_line(
            f"A file stands where the other side has a folder: {path}; settle that with git itself."
        )
    if result.still:
        yield f"More that waits for you: {plain.memories(len(result.still))} ({_some(result.still)})"
    if result.others:
        count = plain.counted(len(result.others), "other file")
        yield one_line(
            f"Still in conflict, and no memories: {count} ({_some(result.others)}); settle them as usual."
        )
    if not (result.done or result.mended or result.needs_a_person):
        yield "No memory is in conflict."
    if result.next:
        yield f"Next: {one_line('; then '.join(result.next))}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(names[:_NAMES]) + more


def problem_lines(problems: Sequence[Problem], screen: Screen, *, first: int = 1) -> Iterator[str]:
    """What merges joined without a conflict."""
    if problems:
        yield screen.style(f"Merged without a conflict, but look at: {len(problems)}", "bold")
    for number, problem in enumerate(problems, first):
        when = f" (merge {problem.merge[:10]})" if problem.merge else ""
        yield one_line(f"{number}. {problem.ids[0]}{when}: {shown_value(problem.text)}")
        for conflict in problem.conflicts:
            yield from _conflict_lines(problem.case, conflict, problem.ours, problem.theirs)
        yield f"   {one_line(problem.fix)}"


def question_lines(
    memory_id: str, case: Case | None, conflict: Conflict, ours: str, theirs: str
) -> Iterator[str]:
    """What a person is shown before being asked."""
    yield memory_id
    yield from _conflict_lines(case, conflict, ours, theirs)


def _what_became(one: Decided) -> str:
    if one.how == "by hand":
        return "as it was settled by hand"
    if one.how == "deleted":
        return "deleted"
    decisions = () if one.merged is None else one.merged.decisions
    return one_line(", ".join(f"{d.field}: {d.how}" for d in decisions)) or "merged"


def _conflict_lines(case: Case | None, conflict: Conflict, ours: str, theirs: str) -> Iterator[str]:
    from openmemex.settling import beside

    why = f" ({shown_value(conflict.why)})" if conflict.why else ""
    yield "   " + one_line(f"{conflict.field}{why}")
    sides: tuple[tuple[Side, str, Any], ...] = (
        ("base", "", conflict.base),
        ("ours", ours, conflict.ours),
        ("theirs", theirs, conflict.theirs),
    )
    for name, side, value in sides:
        label = one_line(f"{name}, {shown_value(side)}" if side else name)
        yield from _labelled(label, _value_lines(value), "     ")
        for detail, more in () if case is None else beside(case, conflict, name):
            yield from _labelled(one_line(detail), _value_lines(more), "       ")


def _labelled(label: str, shown: Sequence[str], indent: str) -> Iterator[str]:
    if len(shown) == 1:
        yield f"{indent}{label}: {shown[0]}"
        return
    yield f"{indent}{label}:"
    for line in shown:
        yield f"{indent}  {line}"


def _value_lines(value: Any) -> list[str]:
    if value is None:
        return ["nothing"]
    if isinstance(value, list | tuple):
        return [one_line(", ".join(str(shown_value(one)) for one in value)) or "nothing"]
    lines = str(shown_value(value)).strip("\n").split("\n")
    shown = [one_line(line)[:_WIDE] for line in lines[:_LINES]]
    if len(lines) > _LINES:
        shown.append(f"… {len(lines) - _LINES} more lines")
    return shown

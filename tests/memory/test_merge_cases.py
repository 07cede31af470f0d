"""The written-out cases of `fixtures/merge/`: one folder each, with base, ours, theirs and what is expected.

A missing file is a side that has none. `conflicts.json` lists the conflicts of a case that has any; what is
expected then is the file with markers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openmemex.memory.fences import Unreadable
from openmemex.memory.frontmatter import parse
from openmemex.memory.merge import Conflict, merge, with_markers
from openmemex.memory.model import FIELDS, parse_time

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "merge"
CASES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())


def file(case: str, name: str) -> bytes | None:
    path = FOLDER / case / f"{name}.md"
    return path.read_bytes() if path.exists() else None


def conflicts(case: str) -> tuple[Conflict, ...]:
    path = FOLDER / case / "conflicts.json"
    return tuple(Conflict(**one) for one in json.loads(path.read_text("utf-8"))) if path.exists() else ()


def says(raw: bytes | None) -> Any:
    """What a file says, apart from its spelling and the order of its fields."""
    if raw is None:
        return None
    try:
        memory = parse(raw, default_scope="project").memory
    except Unreadable as error:
        return error.reason
    instants = {f.name: parse_time(memory.value(f.name)) for f in FIELDS if f.kind == "time"}
    return memory._replace(**dict.fromkeys(instants)), instants, memory.extra


@pytest.mark.parametrize("case", CASES)
def test_a_case_merges_as_written(case: str) -> None:
    base, ours, theirs = (file(case, name) for name in ("base", "ours", "theirs"))
    merged = merge(base, ours, theirs)
    assert merged.conflicts == conflicts(case)
    if merged.conflicts:
        assert with_markers(base, ours, theirs) == file(case, "expected")
    else:
        assert merged.raw == file(case, "expected")


@pytest.mark.parametrize("case", CASES)
def test_a_case_merges_the_same_with_the_sides_swapped(case: str) -> None:
    base, ours, theirs = (file(case, name) for name in ("base", "ours", "theirs"))
    merged = merge(base, theirs, ours)
    swapped = [(c.field, c.base, c.theirs, c.ours) for c in conflicts(case)]
    assert [tuple(conflict)[:4] for conflict in merged.conflicts] == swapped
    if not swapped:
        assert says(merged.raw) == says(file(case, "expected"))


def test_there_are_cases_of_every_kind() -> None:
    assert len(CASES) >= 50
    settled = [case for case in CASES if not conflicts(case)]
    assert len(settled) >= 25
    fields = {conflict.field for case in CASES for conflict in conflicts(case)}
    assert {"body", "file", "review_state", "status", "superseded_by", "type", "x_team"} <= fields

"""What `init` and `uninstall` did, or would do: for machines, and in lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from openmemex.cli.escape import one_line

if TYPE_CHECKING:
    from openmemex.operations.init import Setup
    from openmemex.operations.uninstall import Removal

_DONE = {
    "added": "added",
    "changed": "set anew",
    "removed": "taken out",
    "unchanged": "there already",
    "absent": "not there",
    "kept": "kept, changed by hand",
}


def document(made: Setup | Removal) -> dict[str, Any]:
    """What `init --json` and `uninstall --json` print."""
    plan = made.plan
    return {
        "dry_run": made.dry_run,
        "attributes": {"path": plan.edit.path, "action": plan.edit.action},
        "config": [value._asdict() for value in plan.values],
        "next": list(made.next),
        "notices": [notice._asdict() for notice in made.notices],
    }


def lines(made: Setup | Removal, *, left: str) -> Iterator[str]:
    """Each file and key with what became of it; `left` says what the commands after it are for."""
    plan = made.plan
    if made.dry_run:
        yield "Nothing was written; this is what would be done:"
    yield one_line(f"{plan.edit.path}: {_DONE[plan.edit.action]}")
    for value in plan.values:
        yield one_line(f"git config {value.key}: {_DONE[value.action]}")
    if made.next:
        yield left
        yield from (f"  {one_line(command)}" for command in made.next)

"""What a shell offers when a person presses the tab key. Offers nothing rather than an error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from openmemex.cli.escape import one_line
from openmemex.memory import model


def _among(values: Iterable[str]) -> Callable[[str], list[str]]:
    known = tuple(values)

    def offer(incomplete: str) -> list[str]:
        return [value for value in known if value.startswith(incomplete.lower())]

    return offer


scopes = _among(model.SCOPES)
types = _among(model.TYPES)
roles = _among(model.ROLES)
importances = _among(model.IMPORTANCES)
sources = _among(model.SOURCES)
states = _among(("active", "deprecated", "retracted", "archived"))


def config_keys(incomplete: str) -> list[str]:
    """The keys of the configuration."""
    from openmemex.setting_keys import KEYS

    return [key for key in KEYS if key.lower().startswith(incomplete.lower())]


def ids(incomplete: str) -> list[tuple[str, str]]:
    """The newest memories of here, whatever their state, each with what it says."""
    try:
        found = list(_newest(incomplete.upper()))
    except Exception:
        # A shell would show the error in the middle of the line that is being typed.
        return []
    # The shell keeps only what begins with the very letters that were typed.
    return [(memory_id.lower(), text) for memory_id, text in found] if incomplete.islower() else found


def _newest(start: str) -> Iterator[tuple[str, str]]:
    from openmemex.index.rows import Filters
    from openmemex.workspace import Workspace

    ws = Workspace.open()
    try:
        ws.reconcile()
        for row in ws.index.list(ws.homes(), Filters(all=True), 1000).rows:
            if row.id.startswith(start):
                yield row.id, one_line(row.summary)[:60]
    finally:
        ws.close()

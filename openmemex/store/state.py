"""What this computer remembers of repositories between runs: branches with submitted memories, last pulls.

Kept in `<data root>/sync-state.json`. Losing it loses no memory: searches then no longer look at those
branches. Reading `branches` is part of a search's start-up.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from openmemex import paths

if TYPE_CHECKING:
    from collections.abc import Callable

FILE_NAME = "sync-state.json"
_REF = re.compile(r"refs/[^\x00-\x20\x7f~^:?*\\[]+\Z")
_SIMPLE_PATH = re.compile(r'[^"\\\x00-\x1f]+\Z')


class Pulled(NamedTuple):
    """The last pull of a repository: when (RFC 3339, UTC), from which remote, what the remote's HEAD was."""

    at: str
    remote: str
    default_branch: str


def branches(data_root: str, common_dir: str) -> list[str]:
    """Full names of the refs of this repository (its common git folder) that memories were submitted to.

    A missing or broken file means none.
    """
    raw = _raw(data_root)
    head, _, rest = raw.partition('"pulled"')
    # Parsing costs a search several milliseconds; a repository that is not named in the file needs none.
    plain = _SIMPLE_PATH.match(common_dir) and "\\" not in head and '"branches"' not in rest
    if plain and f'"{common_dir}"' not in head:
        return []
    found = _table(_parse(raw), "branches").get(common_dir)
    return (
        [ref for ref in found if isinstance(ref, str) and _REF.match(ref)] if isinstance(found, list) else []
    )


def pulled(data_root: str, common_dir: str) -> Pulled | None:
    """The last pull of that repository on this computer, or None."""
    found = _table(_parse(_raw(data_root)), "pulled").get(common_dir)
    if not isinstance(found, dict):
        return None
    values = [found.get(name) for name in ("at", "remote", "default_branch")]
    return Pulled(*(value if isinstance(value, str) else "" for value in values))


def branch_tips(data_root: str, common_dir: str) -> dict[str, str]:
    """The commit that each remembered branch pointed at when memories were last submitted to it."""
    found = _table(_parse(_raw(data_root)), "tips").get(common_dir)
    known = found if isinstance(found, dict) else {}
    refs = branches(data_root, common_dir)
    return {ref: tip for ref, tip in known.items() if ref in refs and isinstance(tip, str)}


def add_branch(data_root: str, common_dir: str, ref: str, tip: str) -> None:
    """Remember that memories were submitted to `ref` (a full name), in the commit `tip`. Doing it twice
    changes nothing.
    """
    if not _REF.match(ref):
        raise ValueError("not a full ref name")

    def change(state: dict[str, Any]) -> None:
        refs = state["branches"].setdefault(common_dir, [])
        if ref not in refs:
            refs.append(ref)
        state["tips"].setdefault(common_dir, {})[ref] = tip

    _update(data_root, change)


def drop_branch(data_root: str, common_dir: str, ref: str) -> None:
    """Forget `ref`: it is gone, or merged, and its memories are found elsewhere."""

    def change(state: dict[str, Any]) -> None:
        refs = state["branches"].get(common_dir, [])
        if ref in refs:
            refs.remove(ref)
        if not refs:
            state["branches"].pop(common_dir, None)
        state["tips"].get(common_dir, {}).pop(ref, None)
        if not state["tips"].get(common_dir):
            state["tips"].pop(common_dir, None)

    _update(data_root, change)


def set_pulled(data_root: str, common_dir: str, pull: Pulled) -> None:
    """Remember the last pull of that repository."""

    def change(state: dict[str, Any]) -> None:
        state["pulled"][common_dir] = pull._asdict()

    _update(data_root, change)


def _update(data_root: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Apply `change` under a lock. What others wrote into the file stays; a broken file is set aside."""
    import copy
    import json

    from openmemex.store.locks import lock  # writing may wait; a search never gets here

    path = os.path.join(data_root, FILE_NAME)
    paths.make_folder(data_root)
    with lock(data_root, "sync-state"):
        raw = _raw(data_root)
        old = _parse(raw)
        if old is None and raw.strip():
            os.replace(path, _aside(path))
        state = copy.deepcopy(old or {})
        for name in ("branches", "pulled", "tips"):
            state[name] = {k: v for k, v in _table(state, name).items() if _well_formed(name, v)}
        change(state)
        if state != old:
            text = json.dumps(state, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
            paths.atomic_write(path, text.encode("utf-8", "surrogatepass"))


def _well_formed(name: str, value: Any) -> bool:
    return isinstance(value, list if name == "branches" else dict)


def _aside(path: str) -> str:
    number = 1
    while os.path.lexists(f"{path}.broken-{number}"):
        number += 1
    return f"{path}.broken-{number}"


def _raw(data_root: str) -> str:
    try:
        with open(os.path.join(data_root, FILE_NAME), "rb") as file:
            return file.read().decode("utf-8", "surrogatepass")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        return "not UTF-8"
    except OSError as error:
        raise paths.failure("read", os.path.join(data_root, FILE_NAME), error) from None


def _parse(raw: str) -> dict[str, Any] | None:
    if not raw.strip():
        return None
    import json  # only where there is something to read

    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _table(state: dict[str, Any] | None, name: str) -> dict[str, Any]:
    found = (state or {}).get(name)
    return found if isinstance(found, dict) else {}

"""Branches that memories were submitted to: what is lost when one of them is deleted before it was merged."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass

from openmemex.errors import NotFound
from openmemex.git import light
from openmemex.store import state
from openmemex.workspace import Workspace


@dataclass(frozen=True)
class LostBranch:
    """A deleted branch, the commit that it pointed at, and the memories of it that are nowhere else here."""

    name: str
    commit: str
    ids: tuple[str, ...]

    @property
    def told(self) -> str:
        """One line for people."""
        count = "1 memory that is" if len(self.ids) == 1 else f"{len(self.ids)} memories that are"
        return f"branch {self.name} is gone, with {count} nowhere else here"

    @property
    def remedy(self) -> str:
        """The command that brings the branch back, while git still has its commits."""
        return f"git branch {shlex.quote(self.name)} {self.commit}"


def lost_branches(ws: Workspace) -> list[LostBranch]:
    """The deleted branches whose memories are missed. One that was merged, or whose commits git has thrown
    away, is forgotten.
    """
    if ws.site is None or not ws.site.root:
        return []
    home = ws.repository_home()
    assert home is not None
    folder = home.shown(home.folder)
    here = set(os.listdir(home.folder)) if os.path.isdir(home.folder) else set()
    committed: dict[str, str] | None = None
    lost = []
    for ref, commit in state.branch_tips(ws.data_root, ws.site.common_dir).items():
        if light.read_ref(ws.site, ref) is not None:
            continue
        if committed is None:
            committed = {} if ws.git.head().unborn else ws.git.entries("HEAD", folder)
        try:
            held = ws.git.entries(commit, folder)
        except NotFound:
            held = {}
        missing = [name for name, oid in held.items() if name not in here and committed.get(name) != oid]
        if missing:
            ids = tuple(sorted(name.removesuffix(".md") for name in missing))
            lost.append(LostBranch(ref.removeprefix("refs/heads/"), commit, ids))
        else:
            state.drop_branch(ws.data_root, ws.site.common_dir, ref)
    return lost

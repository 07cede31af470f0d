"""Where: the folders and names that this place resolves to."""

from __future__ import annotations

from dataclasses import dataclass

from openmemex.errors import Refused
from openmemex.workspace import Workspace


@dataclass(frozen=True)
class Where:
    """Which project is meant here and where its memories, the settings and the index lie.

    `outbox` and `repository` are None where there is no project, or no work tree.
    """

    project: str | None
    project_name: str | None
    source: str
    reason: str
    scope_keys: tuple[str, ...]
    data_root: str
    config_file: str
    index: str
    personal: str
    outbox: str | None
    repository: str | None


def where(ws: Workspace) -> Where:
    """The places of here; asks git only for the project's identity."""
    project = ws.project
    repository = None
    reason = project.reason
    if project.source != "none":
        try:
            home = ws.repository_home()
            repository = None if home is None else home.folder
        except Refused as error:
            reason = str(error.message)
    return Where(
        project=project.root or None,
        project_name=project.name or None,
        source=project.source,
        reason=reason,
        scope_keys=project.keys,
        data_root=ws.data_root,
        config_file=ws.config_file,
        index=ws.index.path,
        personal=ws.personal_home().folder,
        outbox=None if project.source == "none" else ws.outbox_home().folder,
        repository=repository,
    )

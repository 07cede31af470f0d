"""Trees of other revisions, and which branch counts as the project's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from openmemex.git import light
from openmemex.git.objects import REGULAR, folder_entries
from openmemex.git.repository import Repository


def entries(repository: Repository, rev: str, folder: str) -> dict[str, str]:
    """File name to blob id of the regular files directly in `folder` at `rev`; {} without such a folder."""
    commit = repository.resolve(rev)
    found = folder_entries(repository.objects, commit, folder.strip("/"))
    return {name: entry.oid for name, entry in found.items() if entry.mode in REGULAR}


def blobs(repository: Repository, oids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """The bytes of each blob, in order."""
    return repository.objects.blobs(oids)


def base_remote(repository: Repository) -> str | None:
    """The remote whose repository pull requests go to: `upstream`, else `origin`, else the only one."""
    names = remotes(repository)
    for name in ("upstream", "origin"):
        if name in names:
            return name
    return names[0] if len(names) == 1 else None


def remotes(repository: Repository) -> list[str]:
    """The remotes that have an address."""
    keys = repository.config.keys("remote.")
    return [key[len("remote.") : -len(".url")] for key in keys if key.endswith(".url")]


def unpushed(repository: Repository, folder: str) -> int:
    """How many commits of HEAD that touch `folder` no remote has, as this clone knows it; 0 without one."""
    if not remotes(repository):
        return 0
    done = repository.git.run(
        "rev-list", "--count", "HEAD", "--not", "--remotes", "--", folder, allow=(0, 128), check=False
    )
    return int(done.text) if done.code == 0 and done.text.strip().isdigit() else 0


def default_branch(repository: Repository, said: str | None = None) -> str | None:
    """The short name of the default branch of where pull requests go to (docs/protocol.md, "Standing").

    The remote's HEAD as this clone knows it, else `said` (what the remote said at the last pull), else the
    first of init.defaultBranch, main and master that is there. None when none is.
    """
    remote = base_remote(repository)
    site = repository.site
    if remote is not None:
        prefix = f"refs/remotes/{remote}/"
        target = light.symbolic_ref(site, f"{prefix}HEAD")
        if target is not None and target.startswith(prefix):
            return target[len(prefix) :]
    else:
        prefix = "refs/heads/"
    for name in (said, repository.config.get("init.defaultbranch"), "main", "master"):
        if name and light.read_ref(site, prefix + name) is not None:
            return name
    return None

"""Which paths a sparse checkout takes in."""

from __future__ import annotations

import os
import re

from openmemex.git import staging
from openmemex.git.repository import Repository


def holds(repository: Repository, path: str) -> bool:
    """Whether the sparse checkout's patterns take `path` in (git-sparse-checkout(1), "INTERNALS")."""
    patterns = os.path.join(repository.site.git_dir, "info", "sparse-checkout")
    try:
        with open(patterns, encoding="utf-8", errors="surrogateescape") as file:
            lines = [line for line in file.read().splitlines() if line and not line.startswith("#")]
    except OSError:
        return True
    folder = path.rpartition("/")[0]
    if repository.config.flag("core.sparsecheckoutcone", True) and all(re.match(r"!?/", x) for x in lines):
        names = [re.sub(r"\\(.)", r"\1", line) for line in lines]
        parents = {name[2:-3] for name in names if name.startswith("!/") and name.endswith("/*/")}
        whole = {n[1:-1] for n in names if n.startswith("/") and n.endswith("/")} - parents
        if "/*" in names and "!/*/" not in names:
            return True
        above = [folder[: m.start()] for m in re.finditer("/", folder)]
        return folder == "" or folder in parents or any(part in whole for part in [folder, *above])
    if path in staging.staged(repository.git, [path]) or not os.path.lexists(
        os.path.join(repository.site.root, path)
    ):
        return True
    listed = repository.git.run(
        *("--literal-pathspecs", "ls-files", "--others", "--ignored", f"--exclude-from={patterns}", "-z"),
        *("--", path),
    )
    return path in listed.fields

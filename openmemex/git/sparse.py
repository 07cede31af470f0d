"""Which paths a sparse checkout takes in."""

from __future__ import annotations

import os
import re

from openmemex.git import staging
from openmemex.git.repository import Repository
from openmemex.memory.ids import is_id


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


def left_out(repository: Repository, folder: str) -> int:
    """How many memories directly in `folder` (from the top) git has that the checkout leaves out."""
    if not repository.config.flag("core.sparsecheckout"):
        return 0
    # "S" stands before a file that is not to be in the work tree (git-ls-files(1), "-t").
    listed = repository.git.run("--literal-pathspecs", "ls-files", "-t", "-z", "--", folder + "/").fields
    absent = [field[2:] for field in listed if field.startswith("S ")]
    names = [path.rpartition("/") for path in absent if path.endswith(".md")]
    return sum(parent == folder and is_id(name[:-3]) for parent, _, name in names)

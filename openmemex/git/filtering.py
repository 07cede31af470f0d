"""Whether git would store memories as their text, or as what a filter makes of it (gitattributes(5)).

Behind a filter a memory is there in the work tree alone: other branches, history, merges and every clone
without that filter have something else.
"""

from __future__ import annotations

import shlex
from typing import Final

from openmemex.git import attributes
from openmemex.git.repository import Repository

# Git LFS registers itself under this name (`git lfs install`).
_LFS: Final = "lfs"
_TRIAL: Final = f"---\nid: {attributes.SAMPLE[:-3]}\n---\nA trial.\n".encode()


def stored_otherwise(repository: Repository, folder: str) -> tuple[str, str] | None:
    """What git would store of a memory in `folder` (from the top) instead of its text, and what mends that.

    None where it would store the text. Runs the filter on a trial, but for LFS, which keeps what it is given.
    Writes nothing.
    """
    said = attributes.effective(repository, folder)
    name, encoding = (
        said[one].replace("unset", "unspecified") for one in ("filter", "working-tree-encoding")
    )
    if name != "unspecified" and _is_lfs(repository, name):
        told = f"git would store memories as Git LFS pointers (filter={name})"
    elif encoding.lower() not in ("unspecified", "utf-8", "utf8"):
        told = f"git would take memories for {encoding} (working-tree-encoding), and they are UTF-8"
    else:
        wrong = "" if name == "unspecified" else _trial(repository, f"{folder}/{attributes.SAMPLE}")
        if not wrong:
            return None
        told = f"git would store memories as something else than their text (filter={name}): {wrong}"
    place = shlex.quote(folder)
    if attributes.promised(repository, folder)[0]:
        return (
            told,
            "take that rule out, of .git/info/attributes or a later line of the folder's .gitattributes",
        )
    again = f"git add --renormalize -- {place}"
    return told, f"open-memex init --git (and for what is stored already: {again}, and a commit)"


def _is_lfs(repository: Repository, name: str) -> bool:
    commands = (repository.config.get(f"filter.{name}.{part}") for part in ("clean", "process"))
    return name == _LFS or any("git-lfs" in command or "git lfs" in command for command in commands)


def _trial(repository: Repository, path: str) -> str:
    """What is wrong with what git makes of a trial memory at `path`; "" when it stays as it is."""
    made, plain = (
        repository.git.run("hash-object", *how, "--stdin", stdin=_TRIAL, check=False)
        for how in (("--path", path), ("--no-filters",))
    )
    if made.code != 0:
        return made.reason
    return "" if made.out == plain.out else "a trial memory came out changed"

"""What kind of repository this is, what each commit starts here, how an operation of git's ends: in words."""

from __future__ import annotations

from openmemex.git.process import oldest
from openmemex.git.repository import Capabilities


def way_on(operation: str) -> str:
    """The commands that end an operation of git's, each as it stands."""
    if operation == "bisect":
        return "git bisect reset, when it has found what you look for"
    return f"git {operation} --continue (git {operation} --abort gives it up)"


def served(found: Capabilities) -> str:
    """Which git is here, and who reads and writes its objects."""
    if found.old_git:
        return f"git {found.git_version} is too old: {oldest()} is the oldest that works with OpenMemex"
    if found.engine == "libgit2":
        return f"git {found.git_version}; objects are read and written by libgit2, all else by git"
    return f"git {found.git_version}; everything goes through git itself, because of: {found.reason}"


def kind(found: Capabilities) -> list[str]:
    """What is special about this repository, in a person's words; nothing for an ordinary one."""
    told = (
        (found.bare, "a bare repository"),
        (found.linked, "a linked work tree"),
        (found.elsewhere, "one whose git folder is elsewhere (a submodule's, or a separate one)"),
        (found.shallow, "a shallow clone (older commits are not here)"),
        (found.partial, "a partial clone (objects are fetched when they are needed)"),
        (found.sparse, "a sparse checkout" + (" with a sparse index" if found.sparse_index else "")),
        (found.shared, "shared with other accounts (core.sharedRepository)"),
        (found.alternates, "borrowing objects of another repository (alternates)"),
        (found.replaced, "one with replaced objects (git replace)"),
        (found.object_format != "sha1", f"one with {found.object_format} ids"),
        (found.ref_storage != "files", f"one that keeps its refs in a {found.ref_storage}"),
        (found.ignore_case, "on a disk that takes a.md and A.md for one name (core.ignoreCase)"),
        (found.split_index, "with a split staging area"),
        (found.index_version > 3, f"with a staging area of version {found.index_version}"),
        (found.fsmonitor, "with a file system monitor"),
    )
    return [words for holds, words in told if holds]


def habits(found: Capabilities) -> list[str]:
    """What is started or asked for at each commit and push here."""
    told = []
    if found.signing:
        told.append(f"commits are signed ({found.signing_kind})")
    if found.hooks:
        told.append("commit hooks: " + ", ".join(found.hooks))
    if found.push_hook:
        told.append("a pre-push hook")
    if found.filters:
        told.append("filters: " + ", ".join(found.filters))
    return told

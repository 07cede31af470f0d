"""The places where memories live: personal, outbox, repository, and the branches of a repository.

Part of a search's start-up: plain paths, nothing parsed.
"""

from __future__ import annotations

import os
import re
import stat
from typing import NamedTuple

from openmemex.errors import OpenMemexError, Refused
from openmemex.memory import ids

# `project__<slug>__<12 hex>`, `org__<slug>__<12 hex>`: a key becomes a folder's name, so nothing else passes.
_SCOPE_KEY = re.compile(r"(?:project|org)__\w[\w.-]{0,99}__[0-9a-f]{12}\Z")

# Where a repository's memories are looked for beside the configured folder (docs/protocol.md, "Homes and
# identity"): other programs' and older defaults.
USUAL_FOLDERS = (".ai/open-memex", ".open-memex", ".ai/memory")


class Home(NamedTuple):
    """One place that holds memories.

    `kind` is "personal", "outbox", "repository", "branch" or "revision". The last two are trees in git, no
    folders: `folder` is then the repository's common git folder, and `ref` the full name of the branch's ref,
    or `COMMIT:FOLDER` as git writes it. `folder` is absolute; `base` is what paths in output are relative to:
    the data root, or the root of the work tree.
    """

    kind: str
    folder: str
    scope: str
    scope_key: str
    base: str
    ref: str = ""

    def path_of(self, memory_id: str) -> str:
        """The absolute path of the file of `memory_id`. Raises OpenMemexError for anything but a whole id."""
        if not ids.is_id(memory_id):
            raise OpenMemexError(
                "that is no memory id", "an id has 26 characters; `open-memex list` shows them"
            )
        return os.path.join(self.folder, memory_id + ".md")

    def shown(self, path: str) -> str:
        """`path` as output shows it: relative to `base`, with `/`; outside of `base` it stays absolute."""
        prefix = self.base.rstrip(os.sep) + os.sep
        return path[len(prefix) :].replace(os.sep, "/") if path.startswith(prefix) else path


def is_scope_key(text: str) -> bool:
    """Whether `text` is a well-formed scope key: "personal", or a project's or organisation's."""
    return text == "personal" or (_SCOPE_KEY.match(text) is not None)


def personal_home(data_root: str) -> Home:
    """The owner's own memories, which never leave this computer."""
    folder = os.path.join(data_root, "memories", "personal")
    return Home("personal", folder, "personal", "personal", data_root)


def outbox_home(data_root: str, scope_key: str) -> Home:
    """The drafts of one project, waiting to be shared. OpenMemexError when `scope_key` is malformed."""
    if scope_key == "personal" or not is_scope_key(scope_key):
        raise OpenMemexError("that is no scope key of a project", "`open-memex scopes` lists the known keys")
    folder = os.path.join(data_root, "memories", scope_key)
    return Home("outbox", folder, scope_key.partition("__")[0], scope_key, data_root)


def outbox_homes(data_root: str) -> list[Home]:
    """Every outbox on this computer, in the order of their keys. Links and odd names are left out."""
    try:
        with os.scandir(os.path.join(data_root, "memories")) as entries:
            keys = sorted(
                entry.name
                for entry in entries
                if _SCOPE_KEY.match(entry.name) and entry.is_dir(follow_symlinks=False)
            )
    except OSError:
        return []
    return [outbox_home(data_root, key) for key in keys]


def holds_files(home: Home) -> bool:
    """Whether a memory file lies in the folder of `home`."""
    try:
        with os.scandir(home.folder) as entries:
            return any(entry.name.endswith(".md") and ids.is_id(entry.name[:-3]) for entry in entries)
    except OSError:
        return False


def repository_home(root: str, memory_dir: str, scope_key: str) -> Home:
    """The memory folder of the work tree `root`, whether or not it exists yet.

    `memory_dir` is relative, with `/`. Raises Refused when it would lead out of the work tree: an absolute
    path, `..`, or a component below `root` that is a symbolic link or a file.
    """
    parts = memory_dir.split("/")
    if not memory_dir or any(part in ("", ".", "..") or part.lower() == ".git" for part in parts):
        raise Refused(
            "the memory folder must be a relative path inside the repository, without .. and outside of .git",
            "set it with: open-memex config set memoryDir .ai/open-memex",
        )
    folder = root
    for part in parts:
        folder = os.path.join(folder, part)
        _refuse_odd_folder(folder)
    return Home("repository", folder, "project", scope_key, root)


def check_folder(home: Home) -> None:
    """Raise Refused when a folder of a repository has become a link or a file since `home` was made.

    Only a repository brings folders that its owner did not make; a link inside the data root is the owner's.
    """
    if home.kind != "repository":
        return
    prefix = home.base.rstrip(os.sep) + os.sep
    if not home.folder.startswith(prefix):
        return
    folder = home.base
    for part in home.folder[len(prefix) :].split(os.sep):
        folder = os.path.join(folder, part)
        _refuse_odd_folder(folder)


def branch_home(common_dir: str, ref: str, memory_dir: str, scope_key: str) -> Home:
    """The memories at `ref` of the repository whose common git folder is `common_dir`, read from its trees.

    `base` is `memory_dir`: the folder inside the tree, with `/`.
    """
    return Home("branch", common_dir, "project", scope_key, memory_dir, ref)


def revision_home(common_dir: str, commit: str, folder: str, scope_key: str) -> Home:
    """The memories that `folder` (inside the tree, with `/`) held at `commit`: a place that never changes."""
    return Home("revision", common_dir, "project", scope_key, folder, f"{commit}:{folder}")


def _refuse_odd_folder(folder: str) -> None:
    try:
        mode = os.lstat(folder).st_mode
    except OSError:
        return  # not there yet (or not readable: whoever reads it says so)
    if stat.S_ISLNK(mode):
        raise Refused(
            f"{folder} is a symbolic link: memories are neither read nor written through it",
            "replace the link by a real folder, or choose another: open-memex config set memoryDir DIR",
        )
    if not stat.S_ISDIR(mode):
        raise Refused(f"{folder} is no folder", "move it away, or choose another one (memoryDir)")

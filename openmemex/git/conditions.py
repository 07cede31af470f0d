"""What must hold before a commit: each condition refused by name, with nothing changed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from openmemex.errors import Refused, UsageError
from openmemex.git import sparse, staging, staging_file, targets, temporary_tree
from openmemex.git.objects import Signature
from openmemex.git.repository import Repository
from openmemex.git.targets import Target

_NO_STAGING_AREA = {"GIT_INDEX_FILE": os.path.join(os.sep, "nonexistent", "open-memex")}
_PEOPLE = ("NAME", "EMAIL", "DATE")


class Checked(NamedTuple):
    """A commit that nothing is in the way of, and what was seen on the way.

    `before`: what the staging area held of the paths (nothing for a branch that is not checked out).
    `attributes_staged`: a `.gitattributes` on the way is in the staging area only, and still counts.
    """

    repository: Repository
    paths: tuple[str, ...]
    target: Target
    author: Signature
    committer: Signature
    before: Mapping[str, list[staging.StagedEntry]]
    attributes_staged: bool

    @property
    def attribute_env(self) -> dict[str, str]:
        """The environment for git commands that read attributes: they need the staging area only for what
        lies nowhere else, and reading it is most of their time in a large repository.
        """
        return {} if self.attributes_staged else _NO_STAGING_AREA


def check(repository: Repository, paths: Sequence[str], branch: str | None, onto: str | None) -> Checked:
    """Every condition of a commit of `paths` (from the top; they need not exist yet); changes nothing.

    Raises Refused with the first one that does not hold, UsageError for a path or a name that is none.
    """
    if not paths:
        raise UsageError("No file was named to commit")
    for path in paths:
        _check_name(path)
    if repository.site.bare:
        raise Refused(
            f"{repository.site.git_dir} is a bare repository: it has no work tree to commit from",
            "Run this in a clone, or in a linked work tree (`git worktree add`).",
        )
    repository.require_git()
    target = targets.target_of(repository, branch, onto)
    check_places(repository.site.root, paths, target.here)
    _check_case(repository, paths, target)
    before: dict[str, list[staging.StagedEntry]] = {}
    hidden = True
    if target.here:
        rules = [path for path in rule_files(paths) if path not in paths]
        asked = staging_file.may_hold(os.path.join(repository.site.git_dir, "index"), [*paths, *rules])
        before = staging.staged(repository.git, asked)
        hidden = any(
            path in before and not os.path.lexists(os.path.join(repository.site.root, path)) for path in rules
        )
        before = {path: entries for path, entries in before.items() if path not in rules}
    # What git follows already is not ignored.
    _check_ignored(repository, [path for path in paths if path not in before], hidden)
    if target.here:
        for path, entries in before.items():
            if any(entry.stage for entry in entries):
                raise Refused(
                    f"{path} is in conflict: it has versions to choose from in the staging area",
                    "Settle it first: open-memex resolve",
                )
        _check_sparse(repository, paths, before)
        staging.wait_for_lock(repository.git)
    else:
        temporary_tree.check_hooks(repository, target)
    author, committer = _people(repository)
    return Checked(repository, tuple(paths), target, author, committer, before, hidden)


def still_holds(checked: Checked, paths: Sequence[str]) -> bool:
    """Whether what was checked a moment ago is still so, as far as git's files tell without starting git.

    Raises Refused where something came in the way of a file.
    """
    if set(paths) != set(checked.paths) or not targets.still_there(checked.repository, checked.target):
        return False
    check_places(checked.repository.site.root, paths, checked.target.here)
    if checked.target.here:
        staging.wait_for_lock(checked.repository.git)
    return True


def _people(repository: Repository) -> tuple[Signature, Signature]:
    """Author and committer as git has them; asked once where nothing tells them apart."""
    author = repository.signature("AUTHOR")
    apart = any(
        repository.config.get(f"{role}.{part.lower()}") or f"GIT_{role.upper()}_{part}" in repository.environ
        for role in ("author", "committer")
        for part in _PEOPLE
    )
    return author, repository.signature("COMMITTER") if apart else author


def rule_files(paths: Sequence[str]) -> Iterator[str]:
    """The files on the way to `paths` that say what git ignores and converts."""
    folders = {""}
    for path in paths:
        parts = path.split("/")[:-1]
        folders |= {"/".join(parts[: n + 1]) + "/" for n in range(len(parts))}
    for folder in sorted(folders):
        yield folder + ".gitattributes"
        yield folder + ".gitignore"


def _check_name(path: str) -> None:
    parts = path.split("/")
    if os.path.isabs(path) or "\0" in path or ("\\" in path and os.sep == "\\"):
        raise UsageError(f"{path!r} is no path inside the repository")
    if any(part in ("", ".", "..") or part.lower().rstrip(". ") == ".git" for part in parts):
        raise UsageError(f"{path!r} is no path inside the repository")


def _check_case(repository: Repository, paths: Sequence[str], target: Target) -> None:
    """Refuse where the disk takes two spellings for one name, and the commit below has the other spelling:
    with both in one tree git could check out only one of them.
    """
    if target.base is None or not repository.config.flag("core.ignorecase"):
        return
    objects = repository.objects
    for folder in sorted({path.rpartition("/")[0] for path in paths}):
        tree, done = objects.tree_of(target.base), ""
        for name in folder.split("/"):
            entries = objects.entries(tree)
            if name not in entries:
                other = next((one for one in entries if one.casefold() == name.casefold()), None)
                if other is not None:
                    raise Refused(
                        f"{folder} would stand beside {done}{other} in git, and this disk takes both for one "
                        "name (core.ignoreCase)",
                        f"Let memoryDir in the settings name it as git does ({done}{other}), or `git mv` it.",
                    )
                break
            tree, done = entries[name].oid, f"{done}{name}/"
            if entries[name].mode != "040000":
                break


def check_places(root: str, paths: Sequence[str], here: bool) -> None:
    """Refuse links, devices and repositories on the way to each path, before a fifo is opened and blocks.

    `here`: the paths themselves count too, and may only be regular files.
    """
    for path in paths:
        _check_place(root, path, here)


def _check_place(root: str, path: str, here: bool) -> None:
    folder = root
    parts = path.split("/")
    for number, part in enumerate(parts, 1):
        full = os.path.join(folder, part)
        try:
            mode = os.lstat(full).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return
        if number == len(parts):
            if here and not stat.S_ISREG(mode):
                what = "a symbolic link" if stat.S_ISLNK(mode) else "no regular file"
                raise Refused(f"{full} is {what}", "Only regular files are committed; replace it by one.")
            return
        if stat.S_ISLNK(mode):
            raise Refused(
                f"{full} is a symbolic link: what lies beyond it is not in this repository",
                "Make it a folder, or choose another memory folder.",
            )
        if not stat.S_ISDIR(mode):
            raise Refused(f"{full} is no folder", "Move it away, or choose another memory folder.")
        if os.path.lexists(os.path.join(full, ".git")):
            raise Refused(
                f"{full} is a git repository of its own, inside {root}",
                "Commit there, or choose another memory folder.",
            )
        folder = full


def _check_ignored(repository: Repository, paths: Sequence[str], hidden: bool) -> None:
    """`hidden`: a rule may be in the staging area only, which then has to be read."""
    if not paths:
        return
    env = {} if hidden else _NO_STAGING_AREA
    # A colon in front it would take for the magic of a pattern, and --literal-pathspecs it does not know.
    asked = "".join(f"./{path}\0" for path in paths).encode("utf-8", "surrogateescape")
    done = repository.git.run("check-ignore", "-z", "--stdin", stdin=asked, allow=(0, 1), env=env)
    ignored = [path.removeprefix("./") for path in done.fields]
    if ignored:
        told = repository.git.run("check-ignore", "-v", "--", f"./{ignored[0]}", allow=(0, 1), env=env)
        raise Refused(
            f"{ignored[0]} is ignored by git ({told.text.partition(chr(9))[0]})",
            f"Take that rule out, or add `!/{ignored[0].split('/')[0]}/` after it.",
        )


def _check_sparse(
    repository: Repository, paths: Sequence[str], before: Mapping[str, list[staging.StagedEntry]]
) -> None:
    if not repository.config.flag("core.sparsecheckout"):
        return
    for path in paths:
        left_out = any(entry.tag == "S" for entry in before.get(path, []))
        if left_out or not sparse.holds(repository, path):
            folder = path.rpartition("/")[0] or path
            raise Refused(
                f"{path} is outside this sparse checkout", f"Add its folder: git sparse-checkout add {folder}"
            )

"""Which repository, where HEAD is, whether a ref has moved: read from git's own files, without libgit2.

A search asks these questions each time, within a few milliseconds; starting `git` costs two of them and
importing libgit2's binding a hundred. What git's files can't answer (reftable, an include in a config) is
asked of `git`. Formats: gitrepository-layout(5), gitglossary(7), git(1) "ENVIRONMENT VARIABLES".
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from openmemex.errors import OpenMemexError

_TRUE = frozenset({"true", "yes", "on", "1", ""})
# Refs that each work tree has for itself (gitrepository-layout(5), "refs").
_OWN_REFS = ("refs/bisect/", "refs/worktree/", "refs/rewritten/")
_MAX_SYMREFS = 5  # as git itself


class BrokenSite(OpenMemexError):
    """A `.git` is here that leads nowhere. Looking further up would find somebody else's repository."""


class Site(NamedTuple):
    """Where a repository is, by absolute real paths.

    `root`: top of the work tree ("" when bare). `git_dir`: this work tree's own git folder. `common_dir`:
    what all work trees share (equal to `git_dir` but in a linked work tree).
    """

    root: str
    git_dir: str
    common_dir: str
    bare: bool


def find_site(start: str, environ: Mapping[str, str] = os.environ) -> Site | None:
    """The repository that `start` (a folder or file, existing or not) lies in, or None.

    Walks up as git does, so that linked work trees, submodules, separate git folders and bare repositories
    are found, and stops at GIT_CEILING_DIRECTORIES and file system borders. GIT_DIR and GIT_WORK_TREE count
    only when `start` is inside the work tree they name: inside a hook git sets them for its own repository,
    not for every folder that the hook's children are asked about. Raises BrokenSite when the nearest `.git`
    file leads nowhere.
    """
    start = os.path.realpath(start)
    named = _named_by_environment(start, environ)
    if named is not None and environ.get("GIT_WORK_TREE"):
        return named
    walked = _walk_up(start, environ)
    if named is None:
        return walked
    if walked is None or (walked.git_dir != named.git_dir and len(walked.root) < len(named.root)):
        return named
    return walked


def _named_by_environment(start: str, environ: Mapping[str, str]) -> Site | None:
    """The site that GIT_DIR, GIT_WORK_TREE and GIT_COMMON_DIR name, if it is one around `start`."""
    git_dir, work_tree = environ.get("GIT_DIR"), environ.get("GIT_WORK_TREE")
    if git_dir:
        git_dir = os.path.realpath(git_dir)
        common = environ.get("GIT_COMMON_DIR")
        common = os.path.realpath(common) if common else _common_dir(git_dir)
        if not _is_git_dir(git_dir, common):
            return None
        site = _site_of_git_dir(git_dir, common)
        if site.bare and not work_tree:
            # Neither the environment nor the config names a work tree.
            return site if _inside(start, git_dir) else None
    elif work_tree:
        found = _walk_up(start, environ)
        if found is None:
            return None
        site = found
    else:
        return None
    if work_tree:
        site = site._replace(root=os.path.realpath(work_tree), bare=False)
    return site if _inside(start, site.root) else None


def _walk_up(start: str, environ: Mapping[str, str]) -> Site | None:
    ceilings = _ceilings(environ)
    across = environ.get("GIT_DISCOVERY_ACROSS_FILESYSTEM", "false").lower() in _TRUE
    folder, device = start, _device(start)
    while True:
        site = _site_at(folder)
        if site is not None:
            return site
        parent = os.path.dirname(folder)
        if parent == folder or parent in ceilings:
            return None
        folder = parent
        if across:
            continue
        here = _device(folder)
        if device is not None and here is not None and here != device:
            return None
        device = here if device is None else device


def _site_at(folder: str) -> Site | None:
    """The site whose `.git` is in `folder`, or that `folder` is the git folder of."""
    dot_git = os.path.join(folder, ".git")
    pointed = _read(dot_git)
    if pointed is not None:
        if not pointed.startswith("gitdir:"):
            raise BrokenSite(f"{dot_git} is a file, but no pointer to a repository", _REPAIR)
        git_dir = os.path.realpath(os.path.join(folder, pointed[len("gitdir:") :].strip()))
        common = _common_dir(git_dir)
        if not _is_git_dir(git_dir, common):
            raise BrokenSite(f"{dot_git} points to {git_dir}, which is no repository", _REPAIR)
        if common != git_dir:
            # In a linked work tree core.worktree and core.bare of the shared config don't count.
            return Site(folder, git_dir, common, False)
        return _with_config(folder, git_dir, common)
    git_dir = os.path.realpath(dot_git)
    if os.path.isdir(git_dir):
        common = _common_dir(git_dir)
        if _is_git_dir(git_dir, common):
            return _with_config(folder, git_dir, common)
    common = _common_dir(folder)
    if _is_git_dir(folder, common):
        return _site_of_git_dir(folder, common)
    return None


_REPAIR = "If it was a linked work tree that moved, run `git worktree repair` there; else remove the file."


def _site_of_git_dir(git_dir: str, common: str) -> Site:
    """The site of a git folder that was named itself: its work tree is told by its own files."""
    if common != git_dir:
        back = _read(os.path.join(git_dir, "gitdir"))
        if back:
            return Site(
                os.path.realpath(os.path.dirname(os.path.join(git_dir, back.strip()))), git_dir, common, False
            )
    parent = os.path.dirname(git_dir) if os.path.basename(git_dir) == ".git" else ""
    return _with_config(parent, git_dir, common)


def _with_config(root: str, git_dir: str, common: str) -> Site:
    """The site as core.bare and core.worktree want it; `root` is the work tree if they say nothing."""
    values: dict[str, str] = {}
    for name in ("config", "config.worktree"):
        text = _read(os.path.join(git_dir, name))
        if text is None:
            continue
        # The line that git writes into every config says nothing new.
        lowered = text.lower().replace("bare = false", "")
        if "worktree" in lowered or "bare" in lowered:
            values.update(_core_values(text))
    work_tree = values.get("worktree")
    if work_tree is not None:
        if any(char in work_tree for char in '"\\#;'):
            work_tree = _ask_work_tree(git_dir)
        return Site(os.path.realpath(os.path.join(git_dir, work_tree)), git_dir, common, False)
    if values.get("bare", "false").lower() in _TRUE or not root:
        return Site("", git_dir, common, True)
    return Site(root, git_dir, common, False)


def _core_values(text: str) -> dict[str, str]:
    """`worktree` and `bare` of the section [core] of a config file's text, raw; the last one wins."""
    values: dict[str, str] = {}
    section = ""
    for line in text.splitlines():
        match = re.match(r"\s*\[\s*([^\]\s\"]+)\s*(\"[^\"]*\")?\s*\]\s*", line)
        if match:
            section = match[1].lower() + (match[2] or "")
            line = line[match.end() :]
        if section != "core":
            continue
        key, equals, value = line.partition("=")
        key = key.strip().lower()
        if key in ("worktree", "bare"):
            values[key] = value.strip() if equals else "true"
    return values


def _ask_work_tree(git_dir: str) -> str:
    from openmemex.git import (
        process,
    )  # start-up: only a config with quotes or comments needs git's own parser

    done = process.run_git(["--git-dir", git_dir, "config", "--type=path", "core.worktree"], cwd=git_dir)
    return os.fsdecode(done.out).rstrip("\n")


def _is_git_dir(git_dir: str, common: str) -> bool:
    """Whether git takes this for a git folder: a HEAD that reads, with `objects` and `refs` (setup.c)."""
    head = _raw_head(git_dir)
    if head is None or not (head.startswith("ref:") or _is_oid(head)):
        return False
    return os.path.isdir(os.path.join(common, "objects")) and os.path.isdir(os.path.join(common, "refs"))


def _common_dir(git_dir: str) -> str:
    text = _read(os.path.join(git_dir, "commondir"))
    return git_dir if text is None else os.path.realpath(os.path.join(git_dir, text.strip()))


def _ceilings(environ: Mapping[str, str]) -> frozenset[str]:
    """GIT_CEILING_DIRECTORIES; entries after an empty one are taken as they stand, as git(1) says."""
    found, real = set(), True
    for entry in environ.get("GIT_CEILING_DIRECTORIES", "").split(os.pathsep):
        if not entry:
            real = False
        elif os.path.isabs(entry):
            found.add(os.path.realpath(entry) if real else os.path.normpath(entry))
    return frozenset(found)


def _device(folder: str) -> int | None:
    try:
        return os.stat(folder).st_dev
    except OSError:
        return None


def _inside(path: str, folder: str) -> bool:
    return bool(folder) and (path == folder or path.startswith(folder.rstrip(os.sep) + os.sep))


def _read(path: str) -> str | None:
    """The text of a small file, or None when there is no such regular file or it can't be read."""
    if not os.path.isfile(path):  # a fifo would block for ever
        return None
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(1 << 20)
    except OSError:
        return None


def _is_oid(text: str) -> bool:
    # No pattern: compiling one at import costs a fifth of a millisecond of each search.
    return len(text) in (40, 64) and not text.strip("0123456789abcdef")


def _raw_head(git_dir: str) -> str | None:
    """What HEAD holds: `ref: NAME` or an object id; None when there is none. It can be a link (old git)."""
    path = os.path.join(git_dir, "HEAD")
    if os.path.islink(path):
        target = os.readlink(path)
        if target.startswith("refs/"):
            return f"ref: {target}"
    text = _read(path)
    return None if text is None else text.strip()


def head(site: Site) -> tuple[str | None, str | None]:
    """(full name of the branch, None when HEAD is detached; id of its commit, None when it has none yet).

    The branch is the one that moves: where HEAD names a symbolic ref, what that stands for, as git has it.
    """
    raw = _raw_head(site.git_dir) or ""
    if not raw.startswith("ref:"):
        return None, raw if _is_oid(raw) else None
    ref = raw[len("ref:") :].strip()
    if ref == "refs/heads/.invalid":  # what reftable puts there, so that older programs stop
        return _ask_head(site)
    ref = final_ref(site, ref)
    return ref, read_ref(site, ref)


def _ask_head(site: Site) -> tuple[str | None, str | None]:
    # Start-up: only reftable repositories need it.
    from openmemex.git import process

    git = process.Git(site)
    named = git.run("symbolic-ref", "--quiet", "HEAD", check=False)
    ref = named.text.strip() if named.code == 0 else None
    return ref, _ask_ref(site, "HEAD")


def _ask_ref(site: Site, ref: str) -> str | None:
    # Start-up: only reftable repositories need it.
    from openmemex.git import process

    done = process.Git(site).run("rev-parse", "--verify", "--quiet", "--end-of-options", ref, allow=(0, 1))
    return done.text.strip() or None


def read_ref(site: Site, ref: str) -> str | None:
    """The object id that the full ref name `ref` (or `HEAD`) stands at, or None when there is no such ref."""
    for _ in range(_MAX_SYMREFS):
        if not _plain_ref(ref):
            return None
        own = not ref.startswith("refs/") or ref.startswith(_OWN_REFS)
        text = (
            _raw_head(site.git_dir)
            if ref == "HEAD"
            else _read(os.path.join(site.git_dir if own else site.common_dir, ref))
        )
        if text is None:
            packed = _packed_ref(site.common_dir, ref)
            if packed is None and os.path.isdir(os.path.join(site.common_dir, "reftable")):
                return _ask_ref(site, ref)
            return packed
        text = text.strip()
        if not text.startswith("ref:"):
            return text if _is_oid(text) else None
        ref = text[len("ref:") :].strip()
        if ref == "refs/heads/.invalid":
            return _ask_ref(site, "HEAD")
    return None


def symbolic_ref(site: Site, ref: str) -> str | None:
    """The full name that the symbolic ref `ref` (say `refs/remotes/origin/HEAD`) points to, else None."""
    own = not ref.startswith("refs/") or ref.startswith(_OWN_REFS)
    folder = site.git_dir if own else site.common_dir
    text = _read(os.path.join(folder, ref)) if _plain_ref(ref) else None
    if text is not None:
        text = text.strip()
        target = text[len("ref:") :].strip() if text.startswith("ref:") else None
        if target != "refs/heads/.invalid":
            return target
    elif not os.path.isdir(os.path.join(site.common_dir, "reftable")):
        return None
    # Start-up: only reftable repositories need it.
    from openmemex.git import process

    return process.Git(site).run("symbolic-ref", "--quiet", ref, allow=(0, 1, 128)).text.strip() or None


def final_ref(site: Site, ref: str) -> str:
    """The full name of the ref that moves when `ref` does: where symbolic refs lead, else `ref` itself."""
    for _ in range(_MAX_SYMREFS):
        target = symbolic_ref(site, ref)
        if not target:
            break
        ref = target
    return ref


def _plain_ref(ref: str) -> bool:
    """Whether `ref` can be joined to a folder without leaving it."""
    return bool(ref) and not ref.startswith("/") and ".." not in ref and "\\" not in ref and "\0" not in ref


def _packed_ref(common_dir: str, ref: str) -> str | None:
    try:
        with open(os.path.join(common_dir, "packed-refs"), "rb") as file:
            packed = file.read()
    except OSError:
        return None
    at = packed.find(b" " + os.fsencode(ref) + b"\n")
    if at < 0:
        return None
    oid = packed[packed.rfind(b"\n", 0, at) + 1 : at].decode("ascii", "replace")
    return oid if _is_oid(oid) else None


def identity_stamp(site: Site, environ: Mapping[str, str] = os.environ) -> str:
    """A text that changes whenever the project's identity may have: keep what was worked out under it.

    Made of the stamps of the config files that can hold an origin or an `insteadOf` (with the files they
    include), of the environment's own config, of whether HEAD has a commit, and of shallowness. Holds no
    value of any of them.
    """
    files = [os.path.join(site.common_dir, "config"), os.path.join(site.git_dir, "config.worktree")]
    home = environ.get("HOME") or os.path.expanduser("~")
    if environ.get("GIT_CONFIG_GLOBAL") is not None:
        files.append(environ["GIT_CONFIG_GLOBAL"])
    else:
        files.append(os.path.join(home, ".gitconfig"))
        files.append(
            os.path.join(environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "git", "config")
        )
    if environ.get("GIT_CONFIG_NOSYSTEM", "false").lower() not in _TRUE:
        files.append(environ.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig")
    try:
        commits = "commits" if head(site)[1] else "unborn"
    except OpenMemexError:  # no git that can read these refs: another stamp than when there is one
        commits = "unknown"
    parts = [site.common_dir, commits]
    parts += [_file_stamp(path, home) for path in files]
    parts.append(_stat_stamp(os.path.join(site.common_dir, "shallow")))
    own = "\0".join(f"{k}={environ[k]}" for k in sorted(environ) if k.startswith("GIT_CONFIG"))
    parts.append(f"{zlib.crc32(own.encode('utf-8', 'surrogateescape')):08x}")
    return "|".join(parts)


def _file_stamp(path: str, home: str) -> str:
    stamp = _stat_stamp(path)
    text = "" if stamp == "-" else _read(path) or ""
    if "[include" in text.lower():
        # The condition of an includeIf is not judged: a stamp may change too often, never too rarely.
        for match in re.finditer(r"^\s*path\s*=\s*(.*?)\s*$", text, re.MULTILINE | re.IGNORECASE):
            named = match[1].strip('"')
            named = home + named[1:] if named.startswith("~/") else named
            stamp += "+" + _stat_stamp(os.path.join(os.path.dirname(path), named))
    return stamp


def _stat_stamp(path: str) -> str:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return "-"
    return f"{found.st_size:x}.{found.st_mtime_ns:x}.{found.st_ino:x}"


def main_folder(site: Site) -> str:
    """The top of the main work tree, the same from each linked one; the git folder where none is known."""
    return _site_of_git_dir(site.common_dir, site.common_dir).root or site.common_dir


def folder_key(folder: str) -> str:
    """The scope key of a folder that no repository is around: `project__<slug>__<12 hex>`."""
    real = os.path.realpath(folder)
    return scope_key(os.path.basename(real), real)


def scope_key(name: str, seed: str) -> str:
    """`project__<slug of name>__<first 12 hex digits of sha256(seed)>` (docs/protocol.md, "Identity")."""
    sha256 = _sha256()
    return f"project__{slug(name)}__{sha256(seed.encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"


def _sha256() -> Any:
    """The hash alone, from where random.py takes its own: hashlib would load all of OpenSSL at start-up."""
    for module in ("_sha2", "_sha256"):
        try:
            return __import__(module).sha256
        except ImportError:
            continue
    return __import__("hashlib").sha256


def slug(name: str) -> str:
    """`name` in lower-case ASCII letters, digits and single hyphens; "repo" when nothing is left of it."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:60].strip("-") or "repo"

"""From a file's bytes to the blob that `git add` would make of them, filters and line ends included."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from openmemex.errors import Refused
from openmemex.git.conditions import Checked, rule_files
from openmemex.git.objects import REGULAR, Change, file_entry
from openmemex.git.process import Done, Git
from openmemex.git.repository import Repository
from openmemex.git.scratch import own_staging_area, scratch
from openmemex.git.staging import StagedEntry
from openmemex.git.targets import Target
from openmemex.git.words import said

_CONVERTING: Final = ("filter", "working-tree-encoding", "ident")
Stamp = tuple[int, int, int, int]


def blobs_of(checked: Checked, files: Mapping[str, bytes | None]) -> tuple[dict[str, Change], set[str]]:
    """Store each file's blob; gives each path's change, and the paths whose blob is not simply their bytes.

    Here the files must lie in the work tree with just these bytes. For another branch that branch's own
    attributes count, as they would once it is checked out. Raises Refused as `git add` would.
    """
    repository, target = checked.repository, checked.target
    present = {path: data for path, data in files.items() if data is not None}
    if target.here:
        for path, data in files.items():
            compare_with_disk(repository.site.root, path, data)
        converted = _converted_by_git(repository, repository.git, present, checked.attribute_env)
        oids = _added_to_a_copy(repository, sorted(converted)) if converted else {}
        for path in converted:
            compare_with_disk(repository.site.root, path, present[path])
    else:
        with _twin(checked, present) as (twin, env):
            converted = _converted_by_git(repository, twin, present, env)
            oids = _added(twin, sorted(converted), env, durable=True) if converted else {}
    for path, data in present.items():
        if path not in converted:
            oids[path] = repository.objects.write_blob(data)
    changes = {}
    for path, data in files.items():
        mode = "000000" if data is None else _mode(repository, path, target, checked.before.get(path))
        changes[path] = Change(mode, oids.get(path))
    return changes, converted


def stamps(root: str, paths: Iterable[str]) -> dict[str, Stamp | None]:
    """What changes when a file is written again; None for one that is not there."""
    found: dict[str, Stamp | None] = {}
    for path in paths:
        try:
            seen = os.lstat(os.path.join(root, path))
        except (FileNotFoundError, NotADirectoryError):
            found[path] = None
        else:
            found[path] = (seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino)
    return found


def compare_with_disk(root: str, path: str, data: bytes | None) -> None:
    """Raise Refused unless the work tree's file holds `data` (None: is not there)."""
    found = None
    with contextlib.suppress(FileNotFoundError), open(os.path.join(root, path), "rb") as file:
        found = file.read()
    if found != data:
        raise Refused(
            f"{path} changed while it was about to be committed", "Look at it, then run this again."
        )


def _converted_by_git(
    repository: Repository, git: Git, files: Mapping[str, bytes], env: Mapping[str, str]
) -> set[str]:
    """The files whose bytes git may store differently: filters, LFS, encodings, `$Id$`, line ends."""
    if not files:
        return set()
    asked = "".join(f"{path}\0" for path in files).encode("utf-8", "surrogateescape")
    answer = git.run("check-attr", "-z", "--stdin", *_CONVERTING, stdin=asked, env=env).fields
    found = {
        path
        for path, value in zip(answer[::3], answer[2::3], strict=True)
        if value not in ("unspecified", "unset")
    }
    careful = repository.config.flag("core.safecrlf") and repository.config.get("core.safecrlf") != "warn"
    return found | {path for path, data in files.items() if careful or b"\r" in data}


def _added_to_a_copy(repository: Repository, paths: Sequence[str]) -> dict[str, str]:
    """Let git add the files to a copy of the staging area, which shows what it makes of each."""
    with own_staging_area(repository) as env:
        return _added(repository.git, paths, env)


def _added(
    git: Git, paths: Sequence[str], env: Mapping[str, str], *, durable: bool = False
) -> dict[str, str]:
    names = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
    done = git.run(
        *("update-index", "--add", "-z", "--stdin"),
        stdin=names,
        check=False,
        writes=True,
        env=env,
        durable=durable,
    )
    _or_refuse(done, paths[0])
    listed = git.run("--literal-pathspecs", "ls-files", "-s", "-z", "--", *paths, env=env)
    return {line.partition("\t")[2]: line.split(" ")[1] for line in listed.fields}


@contextlib.contextmanager
def _twin(checked: Checked, files: Mapping[str, bytes]) -> Iterator[tuple[Git, dict[str, str]]]:
    """A work tree of these files and of the branch's attributes alone, with a staging area of its own.

    What git adds there, it would add in a full checkout of the branch: line ends look at the attributes and
    at the version that is there already, and at nothing else.
    """
    repository, base = checked.repository, checked.target.base
    objects = repository.objects
    with scratch(repository) as place:
        folder = os.path.join(place, "tree")
        os.mkdir(folder)
        twin = Git(repository.site._replace(root=folder), repository.environ)
        env = {"GIT_INDEX_FILE": os.path.join(place, "index")}
        entries = []
        for path in [*files, *rule_files(list(files))] if base is not None else []:
            assert base is not None
            entry = file_entry(objects, base, path)
            if entry is None or entry.mode not in REGULAR:
                continue
            if path in files:
                entries.append(f"{entry.mode} {entry.oid} 0\t{path}\0")
            elif path.endswith(".gitattributes"):
                _put(folder, path, b"".join(data for _, data in objects.blobs([entry.oid])))
        for path, data in files.items():
            _put(folder, path, data)
        if entries:
            lines = "".join(entries).encode("utf-8", "surrogateescape")
            twin.run("update-index", "-z", "--index-info", stdin=lines, writes=True, env=env)
        yield twin, env


def _put(folder: str, path: str, data: bytes) -> None:
    full = os.path.join(folder, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "wb") as file:
        file.write(data)


def _or_refuse(done: Done, path: str) -> None:
    if done.code != 0:
        raise Refused(
            f"git could not convert {path} as its attributes ask: {done.reason}",
            f"Nothing was committed. `git check-attr -a {path}` shows the attributes.",
            said(done) if len(done.err.strip().splitlines()) > 1 else (),
        )


def _mode(repository: Repository, path: str, target: Target, staged: Sequence[StagedEntry] | None) -> str:
    """The file's mode as git would note it: where the file system has none, as it was."""
    if target.here and repository.config.flag("core.filemode", True):
        return REGULAR[bool(os.lstat(os.path.join(repository.site.root, path)).st_mode & 0o100)]
    if staged and staged[0].mode in REGULAR:
        return staged[0].mode
    old = None if target.base is None else file_entry(repository.objects, target.base, path)
    return old.mode if old is not None and old.mode in REGULAR else REGULAR[0]

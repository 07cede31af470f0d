"""Memory files on disk: read whole or named as unreadable, written whole, changed only if still as read."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import NamedTuple

from openmemex import faults, paths
from openmemex.errors import NotFound, OpenMemexError, Refused
from openmemex.memory import frontmatter, ids
from openmemex.memory.fences import Unreadable, split
from openmemex.memory.frontmatter import Document
from openmemex.memory.model import MAX_FILE_BYTES, Memory
from openmemex.store import homes
from openmemex.store.homes import Home
from openmemex.store.locks import lock
from openmemex.trust import secrets

__all__ = [
    "ChangedUnderneath",
    "MemoryFile",
    "Quarantined",
    "Stamp",
    "lock",
    "read",
    "remove",
    "replace",
    "rescue",
    "scan",
    "write_new",
    "write_raw",
]

_READ_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)  # a named pipe would wait for a writer for ever
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_ID_FIELD = re.compile(r"^id[ \t]*:", re.MULTILINE)
_MEND = "mend it by hand, or move it away; it was left as it is"


class Stamp(NamedTuple):
    """What tells a changed file from an unchanged one without reading it."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class MemoryFile(NamedTuple):
    """One memory file as it was read: where it is, its bytes, and the memory in them."""

    home: Home
    path: str
    raw: bytes
    stamp: Stamp
    document: Document

    @property
    def memory(self) -> Memory:
        """The memory in the file."""
        return self.document.memory


class Quarantined(NamedTuple):
    """A file that can't be read as a memory and is left as it is: absolute path, line (0: none), reason."""

    path: str
    line: int
    reason: str


class ChangedUnderneath(Refused):
    """The file is no longer the one that was read. Nothing is lost: the hint says where a new text is."""


def read(home: Home, memory_id: str) -> MemoryFile:
    """The file of `memory_id` in `home`.

    Raises NotFound; Unreadable, with path, line and reason, for a file that is quarantined (a link, a device,
    over 1 MiB, broken front matter, another id inside); OpenMemexError for what is no id.
    """
    path = home.path_of(memory_id)
    if home.kind in ("branch", "revision"):
        raise NotFound(f"{memory_id} is on {home.ref}, which has no files here", "read it from git")
    homes.check_folder(home)
    try:
        raw, stamp = _read_bytes(path)
        document = frontmatter.parse(raw, stem=memory_id, default_scope=home.scope or "personal")
    except FileNotFoundError:
        raise NotFound(
            f"no memory {memory_id} in {home.folder}", "`open-memex list` shows what is there"
        ) from None
    except Unreadable as error:
        raise _named(path, error) from None
    except OSError as error:
        raise paths.failure("read", path, error) from None
    return MemoryFile(home, path, raw, stamp, document)


def scan(home: Home) -> Iterator[MemoryFile | Quarantined]:
    """Every memory file of `home`, by name; what can't be read as one comes as Quarantined and stops nothing.

    A missing folder is empty. Dot files, other endings, and Markdown that is no memory (a README) are passed
    over: a file whose name is no id counts only when its front matter has an `id`. Raises Refused when the
    folder is a link, OpenMemexError when it can't be listed.
    """
    if home.kind == "branch":
        return
    homes.check_folder(home)
    try:
        names = sorted(os.listdir(home.folder))
    except FileNotFoundError:
        return
    except OSError as error:
        raise paths.failure("read", home.folder, error) from None
    for name in names:
        stem, ending = os.path.splitext(name)
        if name.startswith(".") or ending.lower() != ".md":
            continue
        path = os.path.join(home.folder, name)
        if ending != ".md" or not ids.is_id(stem):
            if _names_an_id(path):
                yield Quarantined(path, 0, "the file's name is no memory id in upper case followed by .md")
            continue
        try:
            yield read(home, stem)
        except NotFound:
            continue  # gone since it was listed
        except Unreadable as error:
            yield Quarantined(path, error.line, error.reason)
        except OpenMemexError as error:
            yield Quarantined(path, 0, error.message)


def write_new(home: Home, memory: Memory) -> MemoryFile:
    """Write `memory` as a new file of `home`, and read it back.

    On disk when this returns. Never over another file: Refused when there is one of that id. Folders and file
    are private in the data root, and have the usual modes in a repository.
    """
    return write_raw(home, memory.id, frontmatter.render(memory))


def write_raw(home: Home, memory_id: str, raw: bytes) -> MemoryFile:
    """As `write_new`, for the bytes of a file. Raises Unreadable when they are no memory of that id."""
    path = home.path_of(memory_id)
    homes.check_folder(home)
    _parsed(path, memory_id, raw, home)
    shared = home.kind == "repository"
    paths.make_folder(home.folder, 0o777 if shared else paths.PRIVATE_FOLDER)
    try:
        paths.create_exclusively(path, raw, 0o666 if shared else paths.PRIVATE_FILE)
    except FileExistsError:
        raise Refused(
            f"{path} exists already; it was left as it is", f"open-memex show {memory_id}"
        ) from None
    return read(home, memory_id)


def replace(file: MemoryFile, raw: bytes) -> MemoryFile:
    """Give `file` the new bytes `raw`, in one step, and only if it still has the bytes that were read.

    Equal bytes write nothing. Raises ChangedUnderneath when somebody changed or removed it in between: the
    file is then as they left it, and `raw` is kept in `<data root>/rescued/`. Two OpenMemex processes can't
    both win; an editor that saves in the instant between the last look and the rename could be overwritten.
    """
    if raw == file.raw:
        return file
    memory_id = file.memory.id
    _parsed(file.path, memory_id, raw, file.home)
    homes.check_folder(file.home)
    with _folder_lock(file.home):
        try:
            paths.atomic_write(file.path, raw, before_rename=lambda: _check_unchanged(file))
        except ChangedUnderneath as changed:
            kept = rescue(file.home, memory_id, raw)
            raise ChangedUnderneath(
                changed.message, f"your text is kept in {kept}; look at both, then try again"
            ) from None
    return read(file.home, memory_id)


def remove(file: MemoryFile) -> None:
    """Remove `file`, only if it still has the bytes that were read, and make sure that it is gone.

    Raises ChangedUnderneath when somebody changed it in between. A file that is gone already is fine.
    """
    homes.check_folder(file.home)
    with _folder_lock(file.home):
        if not os.path.lexists(file.path):
            return
        _check_unchanged(file)
        paths.remove_file(file.path)
        faults.reached("remove.done")
        if os.path.lexists(file.path):
            raise OpenMemexError(f"{file.path} is still there after it was removed", "remove it by hand")


def _folder_lock(home: Home) -> AbstractContextManager[None]:
    """One writer a folder; named by the folder, because two work trees of one repository are two folders."""
    name = hashlib.sha256(os.fsencode(home.folder)).hexdigest()[:16]
    return lock(_data_root(home), f"folder-{name}")


def _data_root(home: Home) -> str:
    return home.base if home.kind in ("personal", "outbox") else paths.data_root()


def _check_unchanged(file: MemoryFile) -> None:
    try:
        raw, _ = _read_bytes(file.path)
    except FileNotFoundError:
        raise ChangedUnderneath(f"{file.path} was removed by someone else in the meantime") from None
    except Unreadable:
        raw = b""
    except OSError as error:
        raise paths.failure("read", file.path, error) from None
    if raw != file.raw:
        raise ChangedUnderneath(
            f"{file.path} was changed by someone else in the meantime",
            "read it again, then repeat the change",
        )


def rescue(home: Home, memory_id: str, raw: bytes) -> str:
    """Keep `raw`, which is about to be lost, in `<data root>/rescued/`, and return the new file's path."""
    folder = os.path.join(_data_root(home), "rescued")
    paths.make_folder(folder)
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    number = 0
    while True:
        ending = f"-{number}" if number else ""
        path = os.path.join(folder, f"{memory_id}-{moment}{ending}.md")
        try:
            paths.create_exclusively(path, raw)
            return path
        except FileExistsError:
            number += 1


def _read_bytes(path: str) -> tuple[bytes, Stamp]:
    """The bytes of a regular file and its stamp. Raises Unreadable for anything else, or more than 1 MiB."""
    if not hasattr(os, "O_NOFOLLOW") and stat.S_ISLNK(os.lstat(path).st_mode):
        raise Unreadable("a symbolic link, which is not followed", 0, _MEND)
    try:
        handle = os.open(path, _READ_FLAGS)
    except OSError as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            raise
        # ELOOP for a link; ENXIO for a socket. Whatever it is, it is no file.
        mode = os.lstat(path).st_mode
        if stat.S_ISREG(mode):
            raise
        raise Unreadable(_what(mode), 0, _MEND) from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable(_what(status.st_mode), 0, _MEND)
        if status.st_size > MAX_FILE_BYTES:
            raise Unreadable(f"over the limit of 1 MiB ({status.st_size} bytes)", 0, _MEND)
        raw = b""
        while len(raw) <= MAX_FILE_BYTES and (piece := os.read(handle, MAX_FILE_BYTES + 1)):
            raw += piece
    finally:
        os.close(handle)
    return raw, Stamp(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def _what(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a symbolic link, which is not followed"
    return "a folder, not a file" if stat.S_ISDIR(mode) else "no regular file"


def _parsed(path: str, memory_id: str, raw: bytes, home: Home) -> Document:
    try:
        return frontmatter.parse(raw, stem=memory_id, default_scope=home.scope or "personal")
    except Unreadable as error:
        raise _named(path, error) from None


def _named(path: str, error: Unreadable) -> Unreadable:
    """`error` with the file's name in its message; a reason quotes the file, so a secret in it is masked."""
    reason = secrets.mask(error.reason).text
    named = Unreadable(reason, error.line, error.hint or _MEND)
    where = f"{path}, line {error.line}" if error.line else path
    named.message = f"{where}: {reason}"
    return named


def _names_an_id(path: str) -> bool:
    try:
        parts = split(_read_bytes(path)[0])
    except (Unreadable, OSError):
        return False
    return _ID_FIELD.search(parts.text, parts.start, parts.end) is not None

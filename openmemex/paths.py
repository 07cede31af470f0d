"""Where OpenMemex keeps its files, and how a file is written so that no moment shows half of it.

Part of every command's start-up: it imports nothing that is not loaded anyway.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import time
from typing import TYPE_CHECKING

from openmemex import faults
from openmemex.errors import OpenMemexError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

APP = "open-memex"
PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600
LEFTOVER_SECONDS = 3600
SYNCED_ALONE = 4
SYNC_THREADS = 16
_LEFTOVER = re.compile(r"\..+\.[0-9a-f]{16}\.tmp\Z")
_swept: set[str] = set()

_HINTS = {
    errno.ENOSPC: "free some space on that disk, then try again",
    errno.EDQUOT: "free some of your quota on that disk, then try again",
    errno.EROFS: "that file system is read-only; `open-memex where` shows which folders are used",
    errno.EACCES: "give yourself permission there; `open-memex where` shows which folders are used",
    errno.EPERM: "give yourself permission there; `open-memex where` shows which folders are used",
    errno.ENOTDIR: "something on that path is a file: move it away, or choose another folder",
    errno.EISDIR: "a folder has that name: move it away",
    errno.ENOENT: "make the folder, or choose one that exists",
    errno.ELOOP: "a symbolic link is in the way: replace it by a real file or folder",
    errno.ENAMETOOLONG: "choose a folder with a shorter path",
}


def failure(action: str, path: str, error: OSError) -> OpenMemexError:
    """`error`, met while doing `action` ("write", "make the folder") to `path`, as an error for people."""
    cause = error.strerror or type(error).__name__
    return OpenMemexError(f"cannot {action} {path}: {cause}", _HINTS.get(error.errno or 0, ""))


def data_root(environ: Mapping[str, str] | None = None, platform: str = sys.platform) -> str:
    """The absolute folder that holds memories, index and state (docs/protocol.md, "Homes and identity").

    `OPEN_MEMEX_HOME`, else the older name `MY_O_MEMORY_HOME`, else `%APPDATA%\\open-memex` on Windows, else
    `$XDG_DATA_HOME/open-memex`, else `~/.local/share/open-memex`. Empty variables count as unset, and a
    relative XDG value too (XDG Base Directory Specification). The folder is not made here. Raises
    OpenMemexError when no home folder is known.
    """
    env = os.environ if environ is None else environ
    named = env.get("OPEN_MEMEX_HOME") or env.get("MY_O_MEMORY_HOME")
    if named:
        return _named_path(named, env)
    if platform == "win32":
        return os.path.join(_roaming(env), APP)
    return os.path.join(_xdg(env, "XDG_DATA_HOME") or os.path.join(_user_home(env), ".local", "share"), APP)


def config_file(environ: Mapping[str, str] | None = None, platform: str = sys.platform) -> str:
    """The absolute path of the settings file, whether or not it exists.

    `OPEN_MEMEX_CONFIG`, else the older name `MY_O_MEMORY_CONFIG`, else `open-memex/config.jsonc` in the
    platform's folder: `%APPDATA%` on Windows, else `$XDG_CONFIG_HOME`, else `~/Library/Application Support`
    on macOS and `~/.config` elsewhere.
    """
    env = os.environ if environ is None else environ
    named = env.get("OPEN_MEMEX_CONFIG") or env.get("MY_O_MEMORY_CONFIG")
    if named:
        return _named_path(named, env)
    if platform == "win32":
        folder = _roaming(env)
    else:
        usual = ("Library", "Application Support") if platform == "darwin" else (".config",)
        folder = _xdg(env, "XDG_CONFIG_HOME") or os.path.join(_user_home(env), *usual)
    return os.path.join(folder, APP, "config.jsonc")


def make_folder(path: str, mode: int = PRIVATE_FOLDER) -> None:
    """Make the folder `path` and its missing parents, each with `mode`; folders that exist stay as they are.

    Raises OpenMemexError naming the path that could not be made.
    """
    missing: list[str] = []
    at = os.path.abspath(path)
    while not os.path.isdir(at):
        missing.append(at)
        parent = os.path.dirname(at)
        if parent == at:
            break
        at = parent
    for folder in reversed(missing):
        try:
            os.mkdir(folder, mode)
        except FileExistsError:
            if not os.path.isdir(folder):
                raise failure("make the folder", folder, _not_a_folder()) from None
        except OSError as error:
            raise failure("make the folder", folder, error) from None
    if missing:
        # Without this a power cut could forget the new folder together with the first file in it.
        sync_folder(at)


def atomic_write(
    path: str,
    data: bytes,
    *,
    mode: int = PRIVATE_FILE,
    fsync: bool = True,
    before_rename: Callable[[], None] | None = None,
) -> None:
    """Replace the file `path` by `data` in one step: a reader finds the old file or the new one, whole.

    A file that exists keeps its permission bits, a new one gets `mode` (less the umask). A symbolic link at
    `path` is replaced, not followed. The folder must exist. Raises OpenMemexError; the old file is then
    intact and no temporary file is left. After a kill a `.<name>.<random>.tmp` may be left: readers skip dot
    files, and a later write in that folder removes those older than an hour. `before_rename` is called when
    all is ready; what it raises ends the write, with the old file as it was.
    """
    _remove_leftovers(os.path.dirname(path) or ".")
    temporary = ""
    try:
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            kept = None
        else:
            if stat.S_ISDIR(status.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            kept = stat.S_IMODE(status.st_mode) & 0o777 if stat.S_ISREG(status.st_mode) else None
        temporary = _temporary_name(path)
        _write_whole(temporary, data, mode, fsync, kept)
        faults.reached("write.temp-written")
        if before_rename is not None:
            before_rename()
        os.replace(temporary, path)
        temporary = ""
        faults.reached("write.renamed")
        if fsync:
            sync_folder(os.path.dirname(path) or ".")
    except OSError as error:
        raise failure("write", path, error) from None
    finally:
        if temporary:
            _discard(temporary)


def create_exclusively(path: str, data: bytes, mode: int = PRIVATE_FILE, *, fsync: bool = True) -> None:
    """Write the new file `path` whole in one step, never over another: FileExistsError when there is one.

    As `atomic_write` otherwise. Where the file system knows no hard links, two writers of one name at the
    same instant could both succeed; the names here are random, so that is left at a check.
    """
    _remove_leftovers(os.path.dirname(path) or ".")
    temporary = _temporary_name(path)
    try:
        _write_whole(temporary, data, mode, fsync, None)
        faults.reached("write.temp-written")
        try:
            os.link(temporary, path, follow_symlinks=False)
        except FileExistsError:
            raise
        except (OSError, NotImplementedError):
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path) from None
            os.replace(temporary, path)
        faults.reached("write.renamed")
        _discard(temporary)
        if fsync:
            sync_folder(os.path.dirname(path) or ".")
    except FileExistsError:
        raise
    except OSError as error:
        raise failure("write", path, error) from None
    finally:
        _discard(temporary)


def write_beside(path: str, data: bytes, mode: int = PRIVATE_FILE) -> str:
    """Write `data` to a temporary file beside `path`, and return its name.

    For whoever replaces many files in one pass: `sync_files` puts them on disk, a rename makes each the file,
    `sync_folder` keeps the renames. Modes and leftovers as with `atomic_write`. Raises OpenMemexError.
    """
    _remove_leftovers(os.path.dirname(path) or ".")
    temporary = _temporary_name(path)
    try:
        try:
            status = os.lstat(path)
            kept = stat.S_IMODE(status.st_mode) & 0o777 if stat.S_ISREG(status.st_mode) else None
        except FileNotFoundError:
            kept = None
        _write_whole(temporary, data, mode, False, kept)
    except OSError as error:
        raise failure("write", path, error) from None
    return temporary


def sync_files(files: list[str]) -> None:
    """Put the content of files on disk. Many at once: a disk writes what waits together in one go."""
    if len(files) > SYNCED_ALONE:
        from concurrent.futures import ThreadPoolExecutor  # start-up: only a big batch needs it

        with ThreadPoolExecutor(SYNC_THREADS) as pool:
            list(pool.map(_sync_file, files))
    else:
        for file in files:
            _sync_file(file)


def _sync_file(path: str) -> None:
    try:
        handle = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise failure("write", path, error) from None


def remove_file(path: str) -> None:
    """Remove the file `path`, and put the folder without it on disk. Raises OpenMemexError."""
    try:
        os.unlink(path)
        sync_folder(os.path.dirname(path) or ".")
    except OSError as error:
        raise failure("remove", path, error) from None


def _named_path(text: str, env: Mapping[str, str]) -> str:
    # A value from an editor's settings file reaches us without a shell that expands "~".
    if text == "~" or text.startswith(("~/", "~" + os.sep)):
        return os.path.join(_user_home(env), text[2:]).rstrip(os.sep)
    return os.path.abspath(text)


def _xdg(env: Mapping[str, str], name: str) -> str:
    value = env.get(name, "")
    return value if os.path.isabs(value) else ""


def _roaming(env: Mapping[str, str]) -> str:
    return env.get("APPDATA") or os.path.join(_user_home(env), "AppData", "Roaming")


def _user_home(env: Mapping[str, str]) -> str:
    home = env.get("HOME") or env.get("USERPROFILE") or os.path.expanduser("~")
    if not os.path.isabs(home):
        raise OpenMemexError(
            "no home folder is known for this user", "set OPEN_MEMEX_HOME and OPEN_MEMEX_CONFIG"
        )
    return home


def _not_a_folder() -> OSError:
    return NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))


def _temporary_name(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{os.urandom(8).hex()}.tmp")


def _write_whole(path: str, data: bytes, mode: int, fsync: bool, kept_mode: int | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    handle = os.open(path, flags, mode)
    try:
        try:
            if kept_mode is not None and hasattr(os, "fchmod"):
                os.fchmod(handle, kept_mode)
            view = memoryview(data)
            while view:
                view = view[os.write(handle, view) :]
            if fsync:
                os.fsync(handle)
        finally:
            os.close(handle)
    except OSError:
        _discard(path)
        raise


def sync_folder(folder: str) -> None:
    """Put a rename on disk. Windows has no such call and some network file systems refuse it: no harm."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(handle)


def _discard(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def _remove_leftovers(folder: str) -> None:
    """Remove temporary files of killed writers; once a process and folder: a big one takes time."""
    if folder in _swept:
        return
    _swept.add(folder)
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if _LEFTOVER.match(entry.name)]
        for name in names:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode) and time.time() - status.st_mtime > LEFTOVER_SECONDS:
                _discard(path)
    except OSError:
        pass  # the write itself will say what is wrong with the folder

"""The lock of a repository: one process of ours at a time changes it, in whichever work tree."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Final

from openmemex.errors import Refused
from openmemex.git.repository import Repository

_LOCK_SECONDS: Final = 10


@contextlib.contextmanager
def repository_lock(repository: Repository) -> Iterator[None]:
    """One commit at a time in a repository, whichever process makes it; the lock dies with the process."""
    # Most commands take no lock, and this takes longer to load than they need for their work.
    from filelock import FileLock, Timeout

    path = os.path.join(repository.site.common_dir, "open-memex.lock")
    lock = FileLock(path, timeout=_LOCK_SECONDS, mode=0o666 if repository.shared else 0o644)
    try:
        lock.acquire()
    except Timeout:
        raise Refused(
            f"Another OpenMemex is committing in {repository.git.folder} ({path})", "Run this again shortly."
        ) from None
    except OSError as error:
        raise Refused(
            f"{path} can't be written: {error.strerror}", "Mend the permissions of the git folder."
        ) from None
    if repository.shared:
        with contextlib.suppress(OSError):
            os.chmod(path, 0o666)  # the umask would keep the other accounts out
    try:
        yield
    finally:
        lock.release()

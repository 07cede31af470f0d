"""Locks between processes: one file a lock, held by the operating system, gone with the holder."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from openmemex import paths
from openmemex.errors import Refused

WAIT_SECONDS = 10.0
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}\Z")


@contextmanager
def lock(data_root: str, key: str, wait: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold the lock `key` (any text) of this data root. A killed holder leaves no lock behind.

    Not reentrant: the same process asking twice waits for itself. Raises Refused naming the file when another
    process holds it longer than `wait` seconds, OpenMemexError when the data root cannot be written.
    """
    # Most commands take no lock, and this takes longer to load than they need for their work.
    from filelock import FileLock, Timeout

    folder = os.path.join(data_root, "locks")
    name = key if _PLAIN.match(key) else hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    path = os.path.join(folder, name + ".lock")
    paths.make_folder(folder)
    held = FileLock(path, timeout=wait, mode=paths.PRIVATE_FILE)
    try:
        held.acquire()
    except Timeout:
        raise Refused(
            f"another OpenMemex process has held {path} for {wait:.0f} seconds",
            "let it finish (or end it), then try again",
        ) from None
    except OSError as error:
        raise paths.failure("lock", path, error) from None
    try:
        yield
    finally:
        held.release()

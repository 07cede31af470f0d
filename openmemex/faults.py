"""Named points at which a test may kill the process, to prove that no promise depends on luck.

A workflow calls `reached("submit.objects-written")` right after the step of that name. With
`OPEN_MEMEX_FAULT=submit.objects-written` in the environment the process dies there by SIGKILL, as at a power
cut: no clean-up code runs. `OPEN_MEMEX_FAULT=name:3` dies at the third time. Unset, a point costs one
compare.
"""

import os
import signal

_WANTED, _, _count = os.environ.get("OPEN_MEMEX_FAULT", "").partition(":")
_left = int(_count) if _count.isdigit() else 1


def reached(name: str) -> None:
    """Die here if the environment asks for it; else do nothing."""
    global _left  # noqa: PLW0603 - one counter a process is the whole point
    if not _WANTED or name != _WANTED:
        return
    _left -= 1
    if _left <= 0:
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))

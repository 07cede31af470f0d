"""A bar for work that takes longer than a second, on a terminal only.

On the path of every search: the library that draws is imported when the second is over.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from openmemex.cli.terminal import Screen

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE_SECONDS = 1.0


class Bar:
    """Called by an operation with what is going on, how much is done and how much there is in all."""

    def __init__(self, screen: Screen) -> None:
        self._wanted = screen.shows_progress()
        self._began = time.monotonic()
        self._drawn: tuple[Progress, TaskID] | None = None

    def __call__(self, what: str, done: int, total: int) -> None:
        """Take a step; total 0 means that it is not known yet."""
        if not self._wanted:
            return
        if self._drawn is None:
            if time.monotonic() - self._began < PATIENCE_SECONDS:
                return
            self._drawn = _draw(what)
        drawing, task = self._drawn
        drawing.update(task, description=what, completed=done, total=total or None)

    def close(self) -> None:
        """Take the bar away."""
        if self._drawn is not None:
            self._drawn[0].stop()
            self._drawn = None


def _draw(what: str) -> tuple[Progress, TaskID]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    drawing = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    drawing.start()
    return drawing, drawing.add_task(what, total=None)

"""One run of one command: its screen, its workspace, and how its result is shown.

On the path of every search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from openmemex.cli.progress import Bar
from openmemex.cli.terminal import Screen
from openmemex.results import Notice

if TYPE_CHECKING:
    from openmemex.index.rows import Freshness
    from openmemex.workspace import Workspace


class Session:
    """What the options that every command has ask for."""

    def __init__(
        self, *, json: bool = False, project: str | None = None, verbose: bool = False, plain: bool = False
    ) -> None:
        self.options: dict[str, Any] = {
            "json": json,
            "project": project,
            "verbose": verbose,
            "plain": plain,
        }
        self.screen = Screen(json=json, plain=plain, verbose=verbose)
        self.project = project
        self.progress = Bar(self.screen)

    @contextmanager
    def workspace(self) -> Iterator[Workspace]:
        """The workspace of here, closed at the end. What is wrong in the configuration is told on stderr."""
        # Not at the top: help must be given even where SQLite can't be loaded.
        from openmemex.workspace import Workspace

        ws = Workspace.open(project=path_given(self.project))
        try:
            for problem in ws.settings_problems:
                self.screen.note(problem.text, kind="config")
            if self.screen.verbose:
                project = ws.project
                self.screen.note(f"data: {ws.data_root}")
                self.screen.note(
                    f"project: {project.name} at {project.root} (by {project.source})"
                    if project.root
                    else f"project: none ({project.reason})"
                )
            yield ws
        finally:
            self.progress.close()
            ws.close()

    def told(self, notices: Iterable[Notice], freshness: Freshness | None = None) -> None:
        """Tell on stderr what an operation has to say beside its result."""
        self.progress.close()
        for notice in notices:
            self.screen.note(notice.text, kind="note")
        if freshness is None:
            return
        if freshness.quarantined:
            files = "1 file was" if freshness.quarantined == 1 else f"{freshness.quarantined} files were"
            self.screen.note(f"{files} left out as not readable: `open-memex doctor` says why", kind="note")
        if self.screen.verbose:
            self.screen.note(
                f"index: {freshness.places} places, {freshness.read} files read, {freshness.added} added, "
                f"{freshness.changed} changed, {freshness.removed} removed"
            )

    def show(self, document: Callable[[], Any], lines: Callable[[], Iterable[str]]) -> None:
        """Write the result on stdout: the document with --json, else the lines."""
        self.progress.close()
        if self.screen.json:
            self.screen.document(document())
        else:
            self.screen.lines(lines())


def path_given(text: str | None) -> str | None:
    """A path that was typed, in the form that the file system functions take in any locale."""
    if text is None or text.isascii():
        return text
    import os

    return os.fsdecode(text.encode("utf-8", "surrogateescape"))

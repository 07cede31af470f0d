"""A folder for what is needed only while a commit is made, in the git folder: a kill leaves no mess."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from typing import Final

from openmemex.git.repository import Repository

_NAME: Final = "open-memex.scratch."


@contextlib.contextmanager
def scratch(repository: Repository) -> Iterator[str]:
    """A new folder that is gone afterwards. Call it with the repository's lock held."""
    folder = os.path.join(repository.site.git_dir, f"{_NAME}{os.getpid()}")
    os.mkdir(folder, 0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def own_staging_area(repository: Repository) -> Iterator[dict[str, str]]:
    """The environment for git commands that see a copy of the staging area and write to that alone."""
    with scratch(repository) as folder:
        copy = os.path.join(folder, "index")
        with contextlib.suppress(FileNotFoundError):
            shutil.copy2(os.path.join(repository.site.git_dir, "index"), copy)
        yield {"GIT_INDEX_FILE": copy}


def clear_left(repository: Repository) -> None:
    """Remove what a run that was killed left behind. Call it with the repository's lock held: then nobody is
    using it.
    """
    for place in {repository.site.git_dir, repository.site.common_dir}:
        with contextlib.suppress(OSError):
            for entry in os.scandir(place):
                if entry.name.startswith(_NAME):
                    shutil.rmtree(entry.path, ignore_errors=True)

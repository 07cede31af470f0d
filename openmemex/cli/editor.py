"""Let a person write in their own editor, in a folder that nobody else can look into."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from openmemex import paths
from openmemex.cli.boundary import describe
from openmemex.cli.content import as_text
from openmemex.errors import OpenMemexError, Refused

_FALLBACKS = ("sensible-editor", "nano", "vi") if os.name != "nt" else ("notepad",)


@contextmanager
def edited(data_root: str, text: str) -> Iterator[str]:
    """The text as the person left it. Its file goes when the block ends well, and stays when it does not.

    The file lies in a folder of mode 0700 below the data root, never in a shared folder for temporary files.
    When the block raises and the text had been changed, the error's hint names the file that was kept.
    """
    words = _editor()
    holder = os.path.join(data_root, "editing")
    paths.make_folder(holder)
    folder = tempfile.mkdtemp(dir=holder)
    path = os.path.join(folder, "memory.md")
    paths.atomic_write(path, text.encode("utf-8", "surrogatepass"))
    kept = False
    try:
        _wait_for(words, path)
        with open(path, "rb") as file:
            raw = file.read()
        yield as_text(raw, "The edited text")
    except Exception as error:
        told = describe(error)
        kept = _differs(path, text)
        if kept:
            told.hint = f"{told.hint} Your text is kept in {path}.".strip()
        if told is error:
            raise
        raise told from error
    except BaseException:
        kept = _differs(path, text)
        raise
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)


def _editor() -> list[str]:
    for name in ("VISUAL", "EDITOR"):
        wanted = os.environ.get(name, "").strip()
        if wanted:
            try:
                return shlex.split(wanted, posix=os.name != "nt")
            except ValueError as error:
                raise OpenMemexError(
                    f"${name} is no command: {error}.", f"Set {name} to your editor's command."
                ) from error
    for name in _FALLBACKS:
        found = shutil.which(name)
        if found:
            return [found]
    raise OpenMemexError(
        "No editor is known.", "Set EDITOR to your editor's command, or give the text itself."
    )


def _wait_for(words: list[str], path: str) -> None:
    try:
        ended = subprocess.run([*words, path]).returncode
    except OSError as error:
        raise OpenMemexError(
            f"The editor {words[0]} can't be started: {error.strerror}.",
            "Set EDITOR to your editor's command, or give the text itself.",
        ) from error
    if ended != 0:
        raise Refused(
            f"The editor {words[0]} ended with {ended}, so nothing was saved.", "Run the command again."
        )


def _differs(path: str, text: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read() != text.encode("utf-8", "surrogatepass")
    except OSError:
        return False

"""Where every run begins. Searches and what git starts go straight to their command; all else goes through
the full reader.

Reading options with typer costs more time than a whole search, so this module and what it imports keep away
from it (`tests/test_startup.py` names what may be imported).
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from openmemex.cli.boundary import guarded
from openmemex.errors import UsageError

_GLOBAL_FLAGS = ("--json", "--verbose", "--plain")
# What git starts by itself, once for each file of a merge or a diff.
_BY_GIT = ("merge-driver", "textconv")
_GROUPS = {"config": ("get", "set", "unset", "list")}


def main(argv: list[str] | None = None) -> int:
    """Run one command with the words that follow the program's name; returns its exit code, never exits."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return guarded(lambda: _dispatch(arguments), arguments)


def run() -> NoReturn:
    """The console entry point: `main`, then an exit that no broken stream can turn into noise.

    Everything that was opened is closed and written by then, so the process ends at once: taking the
    interpreter down in order would cost a search a sixth of its time.
    """
    if next((word for word in sys.argv[1:] if not word.startswith("-")), "") in ("search", *_BY_GIT):
        _start_lightly()
    code = main()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            # The boundary has told it where it could.
            pass
    if sys.gettrace() is not None:
        # Whoever measures or debugs this wants to see the end.
        sys.exit(code)
    os._exit(code)


def _dispatch(arguments: list[str]) -> int:
    if arguments[:1] and arguments[0] in _BY_GIT:
        return _for_git(arguments)
    arguments = behind_the_command([as_utf8(text, at) for at, text in enumerate(arguments, 1)])
    if arguments[:1] == ["search"]:
        from openmemex.cli import searching

        call = searching.parse(arguments[1:])
        if call is not None:
            return searching.run(call)
    from openmemex.cli import app

    return app.start(arguments, program_name())


def _for_git(arguments: list[str]) -> int:
    if arguments[0] == "merge-driver":
        from openmemex_hooks.merge_driver import main as started
    else:
        from openmemex_hooks.textconv import main as started
    code: int = started(arguments[1:])
    return code


def _start_lightly() -> None:
    """Take from a short run's start what it does not need: of a search a tenth of its time.

    sqlite3 imports datetime, and Python 3.11 runs all of that module's own code before it takes the C
    version's classes instead; 3.12 takes them at once. A short run makes no cycles worth collecting.
    """
    if sys.version_info < (3, 12) and "datetime" not in sys.modules:
        sys.modules["datetime"] = __import__("_datetime")
    import gc

    gc.disable()


def as_utf8(text: str, position: int) -> str:
    """An argument as the text that its bytes are in UTF-8, in any locale; raises UsageError for others."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
        return text
    except UnicodeEncodeError:
        pass
    try:
        return os.fsencode(text).decode("utf-8")
    except UnicodeError as error:
        raise UsageError(
            f"Argument {position} is not valid UTF-8 text.",
            "Check the encoding of the terminal, or hand the text over in a file (`add --file`).",
        ) from error


def behind_the_command(arguments: list[str]) -> list[str]:
    """Options that every command has may stand before the command too: move them behind its name."""
    at = 0
    while at < len(arguments):
        word = arguments[at]
        if word in _GLOBAL_FLAGS or word.startswith("--project="):
            at += 1
        elif word == "--project":
            at += 2
        else:
            break
    if at == 0 or at >= len(arguments) or arguments[at].startswith("-"):
        return arguments
    end = at + 1
    if arguments[at] in _GROUPS and arguments[end : end + 1] and arguments[end] in _GROUPS[arguments[at]]:
        end += 1
    return arguments[at:end] + arguments[:at] + arguments[end:]


def program_name() -> str:
    """The name that this program was started under: shown in help, and what shell completion is made for."""
    name = os.path.basename(sys.argv[0] if sys.argv else "").removesuffix(".exe")
    return name if name in ("open-memex", "openmemex") else "open-memex"

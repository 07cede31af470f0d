"""The one place where an error becomes lines for a person and an exit code.

On the path of every search.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from openmemex.cli.terminal import Screen, write
from openmemex.errors import OpenMemexError, UsageError

DONE, FAILED, USAGE, DECISION, PARTLY, INTERRUPTED = 0, 1, 2, 3, 4, 130

_READ_HELP = "`open-memex --help` shows how it is used."
_ASK_DOCTOR = "`open-memex doctor` checks that everything here works."
_DISK_HINTS = {
    "ENOSPC": "Make room on that disk and try again; what was there is unchanged.",
    "EDQUOT": "Make room in your quota and try again; what was there is unchanged.",
    "EACCES": "Give yourself the right to read and write it; `open-memex where` shows the folders in use.",
    "EPERM": "Give yourself the right to read and write it; `open-memex where` shows the folders in use.",
    "EROFS": "That disk is read-only; `open-memex where` shows the folders in use.",
}


def guarded(action: Callable[[], int], argv: list[str]) -> int:
    """Run `action` and return its exit code; whatever it raises becomes one too, with its lines on stderr.

    With `--json` among `argv` the error is also the one JSON document on stdout. OPEN_MEMEX_DEBUG=1 shows
    the traceback of anything that is no plain refusal.
    """
    try:
        code = action()
        _flush()
        return code
    except BrokenPipeError:
        # Whoever read the output has seen enough (`| head`); the work itself was done.
        return DONE
    except KeyboardInterrupt:
        _quietly(lambda: write(sys.stderr, "interrupted\n"))
        return INTERRUPTED
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else (DONE if stop.code is None else FAILED)
    except Exception as error:
        raised = error
        return _quietly(lambda: _report(raised, argv), FAILED)


def describe(error: Exception) -> OpenMemexError:
    """The error for people that stands for any exception."""
    if isinstance(error, OpenMemexError):
        return error
    if isinstance(error, OSError):
        import errno

        name = errno.errorcode.get(error.errno or 0, "")
        where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, (str, bytes)) else ""
        reason = error.strerror or type(error).__name__
        return OpenMemexError(
            f"{where}{reason}.", _DISK_HINTS.get(name, "See that the file or folder is there and yours.")
        )
    # The exception's own text may hold a memory's: only its kind is told.
    return OpenMemexError(
        f"This is a fault in open-memex ({type(error).__name__}).",
        "Run it again with OPEN_MEMEX_DEBUG=1 in the environment to see where, and report it.",
    )


def _report(error: Exception, argv: list[str]) -> int:
    if os.environ.get("OPEN_MEMEX_DEBUG") == "1":
        import traceback

        write(sys.stderr, traceback.format_exc())
    told = _without_secrets(describe(error))
    options = argv[: argv.index("--")] if "--" in argv else argv
    screen = Screen(json="--json" in options, plain="--plain" in options)
    if screen.json:
        screen.document(error_json(told))
        _flush()
    usage = isinstance(told, UsageError)
    screen.note(told.message, kind="usage" if usage else "error")
    screen.quote(told.words)
    screen.note(told.hint or (_READ_HELP if usage else _ASK_DOCTOR))
    return told.exit_code


def _without_secrets(error: OpenMemexError) -> OpenMemexError:
    """The error with what was typed by mistake masked: a message may repeat a word of the command."""
    from openmemex.trust.secrets import mask  # only an error pays for it

    error.message, error.hint = mask(error.message).text, mask(error.hint).text
    if error.words:
        error.words = tuple(mask("\n".join(error.words)).text.split("\n"))  # a key can go over several lines
    return error


def error_json(error: OpenMemexError) -> dict[str, object]:
    """The document that stands on stdout when a command with `--json` fails; `words` only where there are
    some. What was done before stands beside the error.
    """
    said = {"words": list(error.words)} if error.words else {}
    told = {"message": error.message, "hint": error.hint, "code": error.exit_code, **said}
    return {**error.document, "error": told}


def _flush() -> None:
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()


def _quietly(action: Callable[[], int | None], code: int = DONE) -> int:
    """Run `action` where its own failure must not hide what it tells of: streams may be gone or full."""
    try:
        result = action()
    except (OSError, ValueError):
        return code
    return code if result is None else result

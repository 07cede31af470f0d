"""All commands put together, and the reader of their options: its mistakes are told in our own two lines."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from openmemex import __version__
from openmemex.cli.boundary import DONE, FAILED, INTERRUPTED
from openmemex.cli.commands import merging, past, reading, setup, sharing, upkeep, writing
from openmemex.cli.options import HELP_NAMES, Group
from openmemex.errors import OpenMemexError, UsageError

# Where the option reader keeps its errors moved between versions; this class stayed where it is.
_WRONG_USAGE: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    cls=Group,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=HELP_NAMES,
    epilog="\b\nExample:\n"
    '  open-memex add "Deploys need the VPN" --type gotcha\n'
    '  open-memex search "how do we deploy?"\n'
    "`open-memex COMMAND --help` tells more of each.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"open-memex {__version__}")
        raise typer.Exit()


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Memory for coding agents and the people they work with: Markdown files, shared through git."""


for group in (writing, reading, past, sharing, merging, setup, upkeep):
    group.register(app)


def start(arguments: list[str], program: str) -> int:
    """Read `arguments` (without the program's name) and run their command; returns its exit code.

    Raises UsageError for arguments that make no sense, and whatever the command raises.
    """
    streams = sys.stdout, sys.stderr
    try:
        ended: Any = typer.main.get_command(app).main(
            arguments or ["--help"], prog_name=program, standalone_mode=False
        )
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    except _WRONG_USAGE as error:
        raise _told(error, program) from error
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):
            raise stop.__context__ from None
        ended = stop.code
    finally:
        # The option reader puts others in their place when the reader of a pipe is gone.
        sys.stdout, sys.stderr = streams
    if ended == INTERRUPTED:
        raise KeyboardInterrupt
    if ended == FAILED and "-completion" in " ".join(arguments):
        raise _no_shell()
    return ended if isinstance(ended, int) else DONE


def _told(error: Any, program: str) -> OpenMemexError:
    message: str = error.format_message()
    path = error.ctx.command_path if getattr(error, "ctx", None) is not None else program
    hint = f"`{path} --help` shows what it takes."
    if message.startswith("No such option"):
        hint += " Put -- before text that begins with a dash."
    return UsageError(message, hint)


def _no_shell() -> OpenMemexError:
    return OpenMemexError(
        "This shell is not known, so there is no completion for it.",
        "Run it from bash, zsh, fish or PowerShell.",
    )

"""Options that more than one command has, each written once, and the frame that every command stands in."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from openmemex.cli import completing
from openmemex.cli.session import Session

HELP_NAMES = {"help_option_names": ["-h", "--help"]}

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Project = Annotated[
    str | None,
    typer.Option(
        "--project", metavar="DIR", help="Work for the project in DIR instead of that of the working folder."
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", help="Say more of what was used and done.")]
Plain = Annotated[bool, typer.Option("--plain", help="No colour and nothing that moves.")]

Limit = Annotated[str | None, typer.Option("--limit", metavar="N", help="Show at most N memories.")]
All = Annotated[bool, typer.Option("--all", help="Also replaced, retracted, archived and expired memories.")]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="REV|DATE",
        help="What was known then: a branch, tag or commit, 2026-09-26, or '2 weeks ago'.",
    ),
]
FilterScope = Annotated[
    str | None,
    typer.Option(
        "--scope",
        metavar="SCOPE",
        help="Only memories of this scope: personal, project or org.",
        autocompletion=completing.scopes,
    ),
]
FilterType = Annotated[
    str | None,
    typer.Option(
        "--type",
        metavar="TYPE",
        help="Only memories of this type, such as fact, decision or gotcha.",
        autocompletion=completing.types,
    ),
]
FilterTags = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TAG", help="Only memories with this tag; repeatable, or a comma list."),
]

Scope = Annotated[
    str | None,
    typer.Option(
        "--scope",
        metavar="SCOPE",
        help="project (the default in a project) or personal (never leaves this computer).",
        autocompletion=completing.scopes,
    ),
]
Type = Annotated[
    str | None,
    typer.Option(
        "--type",
        metavar="TYPE",
        help="fact (default), preference, decision, constraint, todo, knowledge, howto, gotcha, lesson, "
        "observation or reference.",
        autocompletion=completing.types,
    ),
]
Role = Annotated[
    str | None,
    typer.Option(
        "--role",
        metavar="ROLE",
        help="knowledge (default) or instruction.",
        autocompletion=completing.roles,
    ),
]
Importance = Annotated[
    str | None,
    typer.Option(
        "--importance",
        metavar="LEVEL",
        help="low, normal (default) or high.",
        autocompletion=completing.importances,
    ),
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="A tag; repeatable, or a comma list.")
]
Aliases = Annotated[
    list[str] | None,
    typer.Option("--alias", metavar="WORDS", help="Other words to find it by; repeatable, at most 4."),
]
Source = Annotated[
    str | None,
    typer.Option(
        "--source",
        metavar="SOURCE",
        help="Who it comes from: user (default), tool, keyword, inference or import.",
        autocompletion=completing.sources,
    ),
]
Ref = Annotated[
    str | None,
    typer.Option("--ref", metavar="REF", help="Where the full text lives: a path or a URL."),
]
Paths = Annotated[
    list[str] | None,
    typer.Option("--path", metavar="GLOB", help="Files that it is about, such as 'src/**/*.ts'; repeatable."),
]
Expires = Annotated[
    str | None,
    typer.Option(
        "--expires", metavar="WHEN", help="When it stops counting: 2026-12-31, an RFC 3339 time, 30d or 12w."
    ),
]
File = Annotated[
    str | None,
    typer.Option("--file", metavar="F", help="Take the text from a file, such as a Markdown note."),
]

MemoryId = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        show_default=False,
        help="A memory's id, or 4 or more characters of its start or end.",
        autocompletion=completing.ids,
    ),
]
MemoryIds = Annotated[
    list[str],
    typer.Argument(
        metavar="ID",
        show_default=False,
        help="Ids, or 4 or more characters of their starts or ends.",
        autocompletion=completing.ids,
    ),
]


class _AsTyped:
    """What typer is handed instead of its own conversion: every option here is a text, texts or a switch."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as the option reader found it."""
        if value is None and (param.multiple or param.nargs == -1):
            return ()
        return value


class _TakesTexts:
    """A command or group without typer's own conversion of values; our commands check theirs.

    In newer versions that conversion is pydantic's, whose import takes longer than most commands do. Where
    the name below means nothing, values are just converted: texts to texts.
    """

    def get_params(self, ctx: Any) -> Any:
        params = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "_runtime_param", False) is None:
                param._runtime_param = _AsTyped()
        return params


class Group(_TakesTexts, TyperGroup):
    """A group of commands."""


class _Command(_TakesTexts, TyperCommand):
    """A command whose help names arguments as people do, without the types of the code behind them."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        super().format_help(ctx, formatter)
        formatter.buffer = [
            _CODE_TYPE.sub(lambda found: " " * len(found[0]), part) for part in formatter.buffer
        ]


_CODE_TYPE = re.compile(r"(?<=[A-Z.|-]) <(?:str|list\[str\])>")
_EVERY_COMMAND = {"json": Json, "project": Project, "verbose": Verbose, "plain": Plain}
_DEFAULTS = {"json": False, "project": None, "verbose": False, "plain": False}


def command(
    app: typer.Typer, name: str, *, example: str
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Make a function a command of `app`. Its docstring is the help; `example` stands below the options.

    The function takes a `Session` first, then its own options; those that every command has are added here.
    """

    def register(function: Callable[..., int]) -> Callable[..., int]:
        def started(**given: Any) -> int:
            own = {key: value for key, value in given.items() if key not in _EVERY_COMMAND}
            return function(Session(**{key: given[key] for key in _EVERY_COMMAND}), **own)

        hints = get_type_hints(function, include_extras=True)
        own = list(inspect.signature(function).parameters.values())[1:]
        every = [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=_DEFAULTS[key], annotation=kind)
            for key, kind in _EVERY_COMMAND.items()
        ]
        shown = [
            p.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[p.name]) for p in own
        ] + every
        started.__signature__ = inspect.Signature(shown, return_annotation=int)  # type: ignore[attr-defined]
        started.__annotations__ = {p.name: p.annotation for p in shown} | {"return": int}
        started.__doc__ = function.__doc__
        lines = "\n".join("  " + line for line in example.splitlines())
        first = inspect.cleandoc(function.__doc__ or "").split("\n\n")[0].replace("\n", " ")
        app.command(
            name,
            cls=_Command,
            context_settings=HELP_NAMES,
            short_help=first.partition(". ")[0].removesuffix("."),
            epilog=f"\b\nExample:\n{lines}",
        )(started)
        return function

    return register


def several(given: list[str] | None) -> tuple[str, ...]:
    """The values of a repeatable option."""
    return tuple(given or ())

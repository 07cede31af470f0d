"""The command that settles conflicts: resolve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from openmemex.cli import completing, render_resolve
from openmemex.cli.options import command, several
from openmemex.cli.session import Session
from openmemex.cli.values import one_of, shown
from openmemex.errors import UsageError

if TYPE_CHECKING:
    from openmemex.operations.resolve import Resolution
    from openmemex.settling import Decided, Takes

_SIDES = ("ours", "theirs", "base")
_FILE_SIDES = ("ours", "theirs", "delete")
_ANSWERS = {"o": "ours", "t": "theirs", "b": "base", "d": "delete"}


def register(app: typer.Typer) -> None:
    """Add these commands to `app`."""

    @command(
        app,
        "resolve",
        example="open-memex resolve\n"
        "open-memex resolve --all\n"
        "open-memex resolve 4X7Q --take type=theirs --take-body ours\n"
        "open-memex resolve 4X7Q --take-file theirs",
    )
    def resolve_(
        session: Session,
        *,
        ids: Annotated[
            list[str] | None,
            typer.Argument(
                metavar="ID",
                show_default=False,
                help="Memories in conflict: ids, or 4 or more characters of their starts or ends. "
                "None: list them all, and change nothing.",
                autocompletion=completing.ids,
            ),
        ] = None,
        everything: Annotated[
            bool, typer.Option("--all", help="Settle every memory that is in conflict.")
        ] = False,
        take: Annotated[
            list[str] | None,
            typer.Option(
                "--take",
                metavar="FIELD=SIDE",
                help="Settle a field by one side: ours, theirs or base; repeatable.",
            ),
        ] = None,
        take_body: Annotated[
            str | None,
            typer.Option("--take-body", metavar="SIDE", help="Settle the text by ours, theirs or base."),
        ] = None,
        take_file: Annotated[
            str | None,
            typer.Option(
                "--take-file",
                metavar="SIDE",
                help="Settle the whole memory: ours, theirs or delete (deleted on one side, added on both).",
            ),
        ] = None,
    ) -> int:
        """List the memories that a merge left in conflict, or settle them field by field and stage them.

        Without ID and --all it changes nothing. What only a person can decide is asked on a terminal, or
        taken from --take. Then git goes on with its own command: `git merge --continue` and the like. Ends
        with exit code 3 while something needs a person.
        """
        from openmemex.operations.resolve import preview, resolve

        takes = _takes(several(take), take_body, take_file)
        wanted = several(ids)
        if everything and wanted:
            raise UsageError(
                "Either --all or ids, not both.", "`open-memex resolve` lists what is in conflict."
            )
        given = bool(takes.fields or takes.file)
        if given and not (everything or wanted):
            raise UsageError("A side is taken for named memories.", "Name them by id, or say --all.")
        with session.workspace() as ws:
            if not (everything or wanted):
                result = preview(ws)
            elif session.screen.can_ask() and not session.screen.json and not given:
                answers = _asked(session, preview(ws, wanted))
                if answers is None:
                    session.screen.note("Nothing was changed.")
                    result = preview(ws, wanted)
                else:
                    result = resolve(ws, wanted, answers=answers)
            else:
                result = resolve(ws, wanted, takes)
            session.told(result.notices)
            session.show(
                lambda: render_resolve.resolution_json(result),
                lambda: render_resolve.resolution_lines(result, session.screen),
            )
        return 3 if result.needs_a_person else 0


def _takes(fields: tuple[str, ...], body: str | None, file: str | None) -> Takes:
    """What the options say, checked as far as that goes without looking at a conflict."""
    from openmemex.settling import Takes

    chosen: dict[str, Any] = {}
    for text in fields:
        name, equals, side = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise UsageError(f"--take can't be {shown(text)}.", "Write FIELD=SIDE, such as type=theirs.")
        if name == "file":
            raise UsageError("--take has no field for the whole file.", "Use --take-file ours|theirs|delete.")
        side = one_of(side, _SIDES, f"--take {name}")
        if chosen.setdefault(name, side) != side:
            raise UsageError(f"--take gives {name} two sides.", "Name one.")
    if body is not None:
        side = one_of(body, _SIDES, "--take-body")
        if chosen.setdefault("body", side) != side:
            raise UsageError("The body is given two sides.", "Name one.")
    whole = None if file is None else one_of(file, _FILE_SIDES, "--take-file")
    if whole and chosen:
        raise UsageError("--take-file settles the whole memory.", "Leave --take and --take-body away.")
    return Takes(chosen, cast(Any, whole))


def _asked(session: Session, found: Resolution) -> dict[str, Takes] | None:
    """What a person answers to each conflict, by memory; None when they quit."""
    from openmemex.settling import Takes

    answers: dict[str, Takes] = {}
    problems = [(one.ids[0], one.conflicts, one.ours, one.theirs) for one in found.problems if one.conflicts]
    open_: list[tuple[str, Any, str, str]] = [
        (one.case.memory_id, one.conflicts, found.sides.ours, found.sides.theirs)
        for one in found.open
        if not _hopeless(one)
    ]
    for memory_id, conflicts, ours, theirs in [*open_, *problems]:
        fields: dict[str, Any] = {}
        whole: Any = None
        for conflict in conflicts:
            for line in render_resolve.question_lines(memory_id, conflict, ours, theirs):
                session.screen.note(line)
            answer = _answer(session, file=conflict.field == "file", base=conflict.base is not None)
            if answer == "quit":
                return None
            if answer == "skip":
                fields, whole = {}, None
                break
            if conflict.field == "file":
                whole = answer
            else:
                fields[conflict.field] = answer
        if fields or whole:
            answers[memory_id] = Takes(fields, whole)
    return answers


def _hopeless(one: Decided) -> bool:
    """Whether no answer can settle it: something that is no file is in the way."""
    return bool(one.case.odd)


def _answer(session: Session, *, file: bool, base: bool) -> str:
    if file:
        letters, words = "otd", "(o)urs, (t)heirs, (d)elete, (s)kip, (q)uit?"
    elif base:
        letters, words = "otb", "(o)urs, (t)heirs, (b)ase, (s)kip, (q)uit?"
    else:
        letters, words = "ot", "(o)urs, (t)heirs, (s)kip, (q)uit?"
    while True:
        answer = session.screen.ask(words).lower()
        letter = answer[:1]
        if letter == "q" or not answer:
            return "quit"  # the end of the input, or nothing said: nothing is guessed
        if letter == "s":
            return "skip"
        if letter and letter in letters:
            return _ANSWERS[letter]

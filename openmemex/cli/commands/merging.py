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
    from openmemex.memory.merge import Conflict
    from openmemex.operations.resolve import Resolution
    from openmemex.settling import Decided, Takes

_SIDES = ("ours", "theirs", "base")
_FILE_SIDES = ("ours", "theirs", "delete")


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
                answers = _asked(session, ws.data_root, preview(ws, wanted))
                if answers is None:
                    session.screen.note("Nothing was changed. Answers that were given are not kept.")
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
    return Takes(chosen, cast(Any, whole))


def _asked(session: Session, data_root: str, found: Resolution) -> dict[str, Takes] | None:
    """What a person answers to each conflict, by memory; None when they quit."""
    from openmemex.settling import Takes

    answers: dict[str, Takes] = {}
    problems = [
        (one.ids[0], one.case, one.conflicts, one.ours, one.theirs) for one in found.problems if one.conflicts
    ]
    open_: list[tuple[str, Any, Any, str, str]] = [
        (one.case.memory_id, one.case, one.conflicts, found.sides.ours, found.sides.theirs)
        for one in found.open
        if not _hopeless(one)
    ]
    for memory_id, case, conflicts, ours, theirs in [*open_, *problems]:
        fields: dict[str, Any] = {}
        whole: Any = None
        text: str | None = None
        for conflict in conflicts:
            for line in render_resolve.question_lines(memory_id, case, conflict, ours, theirs):
                session.screen.note(line)
            answer, edited_text = _answer(session, data_root, conflict, ours, theirs)
            if answer == "quit":
                return None
            if answer == "skip":
                fields, whole, text = {}, None, None
                break
            if answer == "edit":
                text = edited_text
            elif conflict.field == "file":
                whole = answer
            else:
                fields[conflict.field] = answer
        if fields or whole or text is not None:
            answers[memory_id] = Takes(fields, whole, text)
    return answers


def _hopeless(one: Decided) -> bool:
    """Whether no answer can settle it: something that is no file is in the way."""
    return bool(one.case.odd)


def _answer(
    session: Session, data_root: str, conflict: Conflict, ours: str, theirs: str
) -> tuple[str, str | None]:
    """What a person says to one conflict, and the text that they put together when that is "edit".

    Nothing is guessed: whole words, or their first letters.
    """
    choices = ["ours", "theirs"]
    if conflict.field == "file":
        choices.append("delete")
    elif conflict.base is not None:
        choices.append("base")
    if conflict.field == "body":
        choices.append("edit")
    choices += ["skip", "quit"]
    question = ", ".join(f"({word[0]}){word[1:]}" for word in choices) + "?"
    draft: str | None = None
    while True:
        said = session.screen.answer(question)
        if said is None:
            return "quit", None  # the end of the input
        wanted = said.lower()
        found = next((word for word in choices if wanted in (word, word[0])), None)
        if found is None:
            session.screen.note(f"Type one of these words, or its first letter: {', '.join(choices)}.")
            continue
        if found != "edit":
            return found, None
        draft, fault = _edited(session, data_root, conflict, ours, theirs, draft)
        if not fault:
            return "edit", draft
        session.screen.note(fault)


def _edited(
    session: Session, data_root: str, conflict: Conflict, ours: str, theirs: str, draft: str | None
) -> tuple[str | None, str]:
    """Both texts in the person's editor (`draft`: as they left it before), and why that is no result ("")."""
    from openmemex.cli.editor import edited
    from openmemex.errors import OpenMemexError
    from openmemex.memory.merge_markers import Labels, holds_markers, text_with_markers
    from openmemex.trust.admission import Draft, screen

    labels = Labels("base", f"ours, {ours}", f"theirs, {theirs}")
    start, size = text_with_markers(conflict.base, conflict.ours, conflict.theirs, labels=labels)
    try:
        with edited(data_root, start if draft is None else draft) as text:
            pass
    except OpenMemexError as error:
        return draft, " ".join(filter(None, (error.message, error.hint)))
    if holds_markers(text, size):
        return text, "There are markers in it yet: it has to be one text. Choose edit again to go on with it."
    try:
        screened = screen(Draft(text, scope="project"))
    except OpenMemexError as error:
        return text if text.strip() else None, f"That can't be the text: {error.message}"
    session.told(screened.notices)
    return screened.content, ""

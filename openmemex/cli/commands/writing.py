"""Commands that write on this computer: add, edit, supersede, forget, status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from openmemex.cli import completing, content, plain, render, values
from openmemex.cli.commands import sharing
from openmemex.cli.editor import edited
from openmemex.cli.options import (
    Aliases,
    Expires,
    File,
    Importance,
    MemoryId,
    MemoryIds,
    Paths,
    Ref,
    Role,
    Scope,
    Source,
    Tags,
    Type,
    command,
    several,
)
from openmemex.cli.session import Session
from openmemex.errors import Refused, UsageError
from openmemex.results import Written, written_json

if TYPE_CHECKING:
    from openmemex.index.rows import Row
    from openmemex.trust.admission import Draft
    from openmemex.workspace import Workspace

Texts = Annotated[
    list[str] | None,
    typer.Argument(metavar="TEXT|-", show_default=False, help="The text, in quotes; - reads it from stdin."),
]


class Given(NamedTuple):
    """The options of a new or changed memory as they were typed."""

    scope: str | None
    type: str | None
    role: str | None
    importance: str | None
    tags: list[str] | None
    aliases: list[str] | None
    source: str | None
    ref: str | None
    paths: list[str] | None
    expires: str | None


def register(app: typer.Typer) -> None:
    """Add these commands to `app`."""

    @command(
        app,
        "add",
        example='open-memex add "Deploys need the VPN" --type gotcha --tag deploy,vpn\n'
        "open-memex add --file docs/adr/0001.md --type decision\n"
        "git log -1 --format=%B | open-memex add -",
    )
    def add_(
        session: Session,
        *,
        text: Texts = None,
        file: File = None,
        scope: Scope = None,
        type: Type = None,
        role: Role = None,
        importance: Importance = None,
        tag: Tags = None,
        alias: Aliases = None,
        source: Source = None,
        ref: Ref = None,
        path: Paths = None,
        expires: Expires = None,
    ) -> int:
        """Remember TEXT: one Markdown file on this computer, waiting to be shared.

        Without TEXT, - or --file it opens your editor ($VISUAL or $EDITOR). Secrets in the text are masked,
        and what stands between <private> and </private> is left out.
        """
        given = Given(scope, type, role, importance, tag, alias, source, ref, path, expires)
        return _add(session, several(text), file, given)

    @command(
        app,
        "edit",
        example="open-memex edit 4X7Q\n"
        "open-memex edit 4X7Q --type decision --importance high\n"
        'open-memex edit 4X7Q --body "Deploys need the VPN and a ticket"',
    )
    def edit_(
        session: Session,
        *,
        id: MemoryId,
        body: Annotated[
            str | None,
            typer.Option("--body", metavar="TEXT|-", help="The new text; - reads it from stdin."),
        ] = None,
        file: File = None,
        scope: Scope = None,
        type: Type = None,
        role: Role = None,
        importance: Importance = None,
        tag: Tags = None,
        alias: Aliases = None,
        source: Source = None,
        ref: Ref = None,
        path: Paths = None,
        expires: Expires = None,
    ) -> int:
        """Change a memory: its fields by options, its text by --body, --file or your editor.

        Options that are not given leave their field as it is; a list is replaced by what is given.
        """
        given = Given(scope, type, role, importance, tag, alias, source, ref, path, expires)
        return _edit(session, id, body, file, given)

    @command(
        app,
        "supersede",
        example='open-memex supersede 4X7Q "Deploys need no VPN any more" --tag deploy',
    )
    def supersede_(
        session: Session,
        *,
        id: MemoryId,
        text: Texts = None,
        file: File = None,
        scope: Scope = None,
        type: Type = None,
        role: Role = None,
        importance: Importance = None,
        tag: Tags = None,
        alias: Aliases = None,
        source: Source = None,
        ref: Ref = None,
        path: Paths = None,
        expires: Expires = None,
    ) -> int:
        """Replace a memory by a new one with TEXT. The old one stays, marked, and is no longer found.

        What no option gives is taken from the old one.
        """
        given = Given(scope, type, role, importance, tag, alias, source, ref, path, expires)
        return _supersede(session, id, several(text), file, given)

    @command(app, "forget", example="open-memex forget 4X7Q\nopen-memex forget 4X7Q 9KTM --soft --yes")
    def forget_(
        session: Session,
        *,
        ids: MemoryIds,
        soft: Annotated[
            bool, typer.Option("--soft", help="Keep the file, but retract it: it is no longer found.")
        ] = False,
        yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    ) -> int:
        """Delete memories for good. Shows what would go and asks; where nobody can answer it needs --yes."""
        return _forget(session, ids, soft=soft, yes=yes)

    @command(app, "status", example="open-memex status 4X7Q archived\nopen-memex status")
    def status_(
        session: Session,
        *,
        id: Annotated[
            str | None,
            typer.Argument(
                metavar="ID", show_default=False, help="A memory's id.", autocompletion=completing.ids
            ),
        ] = None,
        state: Annotated[
            str | None,
            typer.Argument(
                metavar="STATE",
                show_default=False,
                help="active, deprecated, retracted or archived.",
                autocompletion=completing.states,
            ),
        ] = None,
    ) -> int:
        """Set a memory's state; without arguments, say what waits to be shared (as sync-status)."""
        if id is None:
            return sharing.show_sync_status(session)
        if state is None:
            raise UsageError(
                "Say which state the memory shall have.",
                "`open-memex status ID STATE`; STATE is active, deprecated, retracted or archived.",
            )
        from openmemex.operations.status import set_status

        with session.workspace() as ws:
            return _written(session, ws, set_status(ws, id, values.status(state)))


def _add(session: Session, words: tuple[str, ...], file: str | None, given: Given) -> int:
    from openmemex.operations.add import add

    fields = _fields(given)
    note = _text_given(session, words, file, "add")
    with session.workspace() as ws:
        if note is not None:
            return _written(session, ws, add(ws, _draft(note, fields)))
        with edited(ws.data_root, "") as text:
            _refuse_blank(text)
            return _written(session, ws, add(ws, _draft(content.Note(text, {}), fields)))


def _supersede(session: Session, ref: str, words: tuple[str, ...], file: str | None, given: Given) -> int:
    from openmemex.operations.edit import editable_text
    from openmemex.operations.supersede import supersede

    fields = _fields(given)
    note = _text_given(session, words, file, "supersede")
    with session.workspace() as ws:
        if fields.get("scope"):
            _same_scope(ws, ref, fields["scope"])
        if note is not None:
            return _written(session, ws, supersede(ws, ref, _draft(note, fields)))
        memory_id, text = editable_text(ws, ref)
        with edited(ws.data_root, text) as text:
            _refuse_blank(text)
            return _written(session, ws, supersede(ws, memory_id, _draft(content.Note(text, {}), fields)))


def _edit(session: Session, ref: str, body: str | None, file: str | None, given: Given) -> int:
    from openmemex.operations.edit import Changes, edit, editable_text

    if body is not None and file is not None:
        raise UsageError("--body and --file both give a text.", "Give one of them.")
    fields = _fields(given)
    if file is not None:
        note = content.from_file(file)
        _tell_unused(session, note)
        fields = {**note.fields, **fields, "body": note.text}
    elif body is not None:
        fields["body"] = content.from_stdin() if body == "-" else body
    scope = fields.pop("scope", None)
    with session.workspace() as ws:
        if scope is not None:
            _same_scope(ws, ref, scope)
        if fields or scope is not None:
            return _written(session, ws, edit(ws, ref, Changes(**fields)))
        if not session.screen.can_ask():
            raise UsageError(
                "Nothing to change was given.",
                "Give a field (such as --type decision) or --body TEXT; on a terminal your editor opens.",
            )
        memory_id, text = editable_text(ws, ref)
        with edited(ws.data_root, text) as new:
            _refuse_blank(new)
            return _written(session, ws, edit(ws, memory_id, Changes(body=new, body_before=text)))


def _same_scope(ws: Workspace, ref: str, scope: str) -> None:
    from openmemex.selecting import select

    ws.reconcile()
    row = select(ws, ref)
    if row.scope != scope:
        raise Refused(
            f"{row.id} is a {row.scope} memory, and no change makes it a {scope} one.",
            f"Save it anew with `open-memex add --scope {scope}`, then forget the old one.",
        )


def _forget(session: Session, refs: list[str], *, soft: bool, yes: bool) -> int:
    from openmemex.operations.forget import forget, plan

    with session.workspace() as ws:
        rows = plan(ws, refs)
        if not yes:
            _confirm(session, rows, soft)
        done = forget(ws, rows, soft=soft)
        session.show(lambda: render.forgotten_json(done), lambda: render.forgotten_lines(done))
        failed = [item for item in done.items if item.action == "failed"]
        if not failed:
            return 0
        for item in failed:
            session.screen.note(f"{item.row.id}: {item.note}. {item.hint}", kind="error")
        session.screen.note(f"{len(done.items) - len(failed)} of {len(done.items)} done.")
        return 1 if len(failed) == len(done.items) else 4


def _confirm(session: Session, rows: list[Row], soft: bool) -> None:
    screen = session.screen
    what = "be retracted" if soft else "be deleted for good"
    screen.note(f"{'This' if len(rows) == 1 else 'These'} would {what}:")
    for number, row in enumerate(rows, 1):
        screen.note(f"{number}. {row.summary}")
        screen.note(f"   {row.id}, {plain.place(row)}: {row.rel_path}")
    if not screen.can_ask():
        raise Refused("Nobody is there to answer, so nothing was forgotten.", "Give --yes to go on.")
    if screen.ask("Go on? [y/N]").lower() not in ("y", "yes"):
        raise Refused("Nothing was forgotten.", "Answer y to go on.")


def _text_given(session: Session, words: tuple[str, ...], file: str | None, name: str) -> content.Note | None:
    """The text that the command line gives; None when a person is to write it in an editor."""
    if len(words) > 1:
        # The words are not repeated: they may be anything.
        raise UsageError(
            f"`{name}` takes one text, and {len(words)} words were given.", "Put the text in quotes."
        )
    if file is not None:
        if words:
            raise UsageError("A text and --file were both given.", "Give one of them.")
        note = content.from_file(file)
        _tell_unused(session, note)
        return note
    if words:
        return content.Note(content.from_stdin() if words[0] == "-" else words[0], {})
    if not session.screen.can_ask():
        raise UsageError(
            "There is no text to remember.", "Give it in quotes, or - to read it from stdin, or --file F."
        )
    return None


def _tell_unused(session: Session, note: content.Note) -> None:
    for text in note.notices:
        session.screen.note(text, kind="note")


def _refuse_blank(text: str) -> None:
    if not text.strip():
        raise Refused(
            "The text is empty, so nothing was saved.", "Write something and save it in the editor."
        )


def _fields(given: Given) -> dict[str, Any]:
    """The fields that options give, checked; those that were not given are left out."""
    fields: dict[str, Any] = {
        "scope": values.scope(given.scope),
        "type": values.memory_type(given.type),
        "role": values.role(given.role),
        "importance": values.importance(given.importance),
        "source": values.source(given.source),
    }
    fields = {name: value for name, value in fields.items() if value}
    if given.tags is not None:
        fields["tags"] = values.tags(given.tags)
    if given.aliases is not None:
        fields["aliases"] = tuple(given.aliases)
    if given.ref is not None:
        fields["canonical_ref"] = given.ref
    if given.paths is not None:
        fields["paths"] = tuple(given.paths)
    if given.expires is not None:
        fields["expires_at"] = content.moment(given.expires)
    return fields


def _draft(note: content.Note, fields: dict[str, Any]) -> Draft:
    from openmemex.trust.admission import Draft

    return Draft(content=note.text, **{**note.fields, **fields})


def _written(session: Session, ws: Workspace, written: Written) -> int:
    """Show what became of a write; a refused one ends with exit code 1."""
    refused = written.action == "refused"
    if refused and not session.screen.json:
        reasons = " ".join(notice.text for notice in written.notices)
        raise Refused(
            reasons or f"{written.id} was not changed.", f"`open-memex show {written.id}` shows it."
        )
    # That it is there already is what the result itself says.
    session.told(notice for notice in written.notices if notice.kind != "duplicate")
    session.show(lambda: written_json(written), lambda: render.written_lines(written, ws.project))
    return 1 if refused else 0

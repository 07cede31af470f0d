"""What a resolve makes of each memory in conflict, decided before anything is done.

A memory is known by its id, so what git shows path by path (three paths after both sides renamed the folder,
a new memory that git took for a renamed old one) is put together here by id, and then merged field by field.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple

from openmemex.errors import OpenMemexError, UsageError
from openmemex.git.conflicts import Settlement, Unmerged, work_tree_file
from openmemex.memory import frontmatter, merge, merge_sides
from openmemex.memory.fences import Unreadable
from openmemex.memory.ids import is_id
from openmemex.memory.merge import Conflict, Labels, Merged, Side
from openmemex.memory.merge_values import plain_ends
from openmemex.memory.model import FIELDS
from openmemex.results import Notice
from openmemex.store import homes
from openmemex.trust import secrets
from openmemex.workspace import Workspace

_ID_LINE = re.compile(rb"^id[ \t]*:[ \t]*[\"']?([0-9A-Z]{26})\b", re.MULTILINE)
_MARKER = re.compile(r"(<{7,}|>{7,}|\|{7,}|={7,})(?: |\Z)")

FileChoice = Literal["ours", "theirs", "delete"]


class Takes(NamedTuple):
    """What a person has decided: for a field or "body" the side, for the whole file a side or its end, and
    `text`: the body, put together from both sides.
    """

    fields: Mapping[str, Side] = {}
    file: FileChoice | None = None
    text: str | None = None


NOTHING: Final = Takes()
_PLAIN_LABELS: Final = Labels()


class Version(NamedTuple):
    """One side of a memory: where it lies, its blob, its bytes."""

    path: str
    oid: str
    raw: bytes


@dataclass(frozen=True)
class Case:
    """One memory in conflict, whole.

    `path`: where it belongs when it is settled. `records`: the paths whose stages are settled with it, by
    path. `elsewhere`: paths without stages that it leaves. `files`: what the work tree has at each of these
    (None: nothing). `odd`: why nobody but a person with git can settle it ("" for all others). `group`: cases
    that share a record, which leave their conflict together. `around`: what else stands in its records,
    versions of memories that git mixed it up with. `joined`: git joined it without a conflict, and `files`
    has what came of that; `text`: the body as git joined it, where that is as it should be.
    """

    memory_id: str
    path: str
    base: Version | None
    ours: Version | None
    theirs: Version | None
    records: Mapping[str, Unmerged]
    elsewhere: tuple[str, ...] = ()
    files: Mapping[str, bytes | None] = field(default_factory=dict)
    odd: str = ""
    group: int = 0
    around: tuple[bytes, ...] = ()
    joined: bool = False
    text: str | None = None

    @property
    def file(self) -> bytes | None:
        """What the work tree has where the memory belongs."""
        return self.files.get(self.path)

    @property
    def own_paths(self) -> tuple[str, ...]:
        """Every path of this memory; of a path that git mixed it up with, the other memory is the owner."""
        paths = dict.fromkeys((self.path, *self.records, *self.elsewhere))
        return tuple(path for path in paths if path.endswith(f"/{self.memory_id}.md"))


@dataclass(frozen=True)
class Decided:
    """What becomes of a case.

    `how`: merged, deleted, by hand (a person's own file is staged as it stands), or conflict (nothing is
    done). `conflicts` are the fields that only a person can settle (by hand: that one has settled). `rescue`:
    the files that are replaced or removed and hold words that are nowhere else.
    """

    case: Case
    how: str
    merged: Merged | None = None
    conflicts: tuple[Conflict, ...] = ()
    rescue: tuple[str, ...] = ()


def beside(case: Case, conflict: Conflict, side: Side) -> list[tuple[str, str]]:
    """What to know of a side beside its value in `conflict`: of a changed file what changed, of a verdict who
    came to it and why.

    Pairs of a name and words for people; texts of memories, so that secrets have yet to be masked.
    """
    versions = {"base": case.base, "ours": case.ours, "theirs": case.theirs}
    base, own = (None if one is None else _read(case, one) for one in (case.base, versions[side]))
    if own is None or conflict.field not in ("file", "review_state"):
        return []
    if conflict.field == "review_state":
        names = ("proposed_by", "approved_by", "review_note")
        return [(name, str(own.value(name))) for name in names if own.value(name) is not None]
    if base is None or side == "base" or None not in (case.ours, case.theirs):
        return []
    fields = (*(field.name for field in FIELDS), *dict.fromkeys((*base.extra, *own.extra)))
    told = [
        (name, f"{_words(base.value(name))} → {_words(own.value(name))}")
        for name in fields
        if name not in ("updated_at", "review_history") and base.value(name) != own.value(name)
    ]
    before, after = (plain_ends(one.memory.body).splitlines() for one in (base, own))
    if before != after:
        import difflib  # not on the way of a resolve that asks nobody

        lines = list(difflib.unified_diff(before, after, n=0, lineterm=""))[2:]
        told.append(("body", "\n".join(line for line in lines if not line.startswith("@@"))))
    return told


def _read(case: Case, version: Version) -> merge_sides.Version | None:
    try:
        return merge_sides.read(version.raw, case.memory_id)
    except Unreadable:
        return None


def _words(value: Any) -> str:
    told = merge_sides.shown(value)
    return ", ".join(map(str, told)) or "nothing" if isinstance(told, list) else str(told or "nothing")


# --- putting together what is in conflict ---


def memory_folders(ws: Workspace) -> tuple[str, ...]:
    """The folders (from the top of the work tree) that hold memories here, the configured one first."""
    return tuple(dict.fromkeys((ws.settings.memory_dir.strip("/"), *homes.USUAL_FOLDERS)))


def memory_id_of(path: str, folders: Iterable[str]) -> str | None:
    """The id that a path names when it is a memory's file in one of `folders`."""
    folder, _, name = path.rpartition("/")
    return name[:-3] if folder in folders and name.endswith(".md") and is_id(name[:-3]) else None


def folders_of(ws: Workspace, unmerged: Iterable[Unmerged]) -> tuple[str, ...]:
    """`memory_folders`, and the others in which memories are in conflict.

    A side may have renamed the folder to one that the settings here do not name. A file counts as a memory
    where its name is an id that one of its versions holds.
    """
    folders = memory_folders(ws)
    unknown = [one for one in unmerged if not one.odd and _folder_of_id(one.path) not in (*folders, "")]
    raws = ws.git.contents(oid for one in unknown for oid in one[1:4] if oid)
    more = (
        _folder_of_id(one.path)
        for one in unknown
        if any(_id_in(raws[oid]) == one.path[-29:-3] for oid in one[1:4] if oid)
    )
    return tuple(dict.fromkeys((*folders, *more)))


def _folder_of_id(path: str) -> str:
    """The folder of a file that an id names; "" for every other file, and at the top."""
    folder = path.rpartition("/")[0]
    return folder if memory_id_of(path, (folder,)) else ""


def misplaced(path: str, folders: Iterable[str]) -> bool:
    """Whether git put a memory, or a memory folder, aside under another name (`ID.md~HEAD`): a file stands
    where the other side has a folder."""
    folders = tuple(folders)
    plain = re.sub(r"~[^/]*\Z", "", path)
    if plain != path and memory_id_of(plain, folders) is not None:
        return True
    return any(folder == plain or folder.startswith(plain + "/") for folder in folders)


def cases(ws: Workspace, unmerged: Sequence[Unmerged]) -> list[Case]:
    """Every memory in conflict, in order of id, with its three versions and its file in the work tree."""
    folders = folders_of(ws, unmerged)
    records = [one for one in unmerged if memory_id_of(one.path, folders)]
    oids = [oid for one in records if not one.odd for oid in one[1:4] if oid]
    raws = ws.git.contents(oids)
    found: dict[str, dict[int, list[Version]]] = {}
    members: dict[str, dict[str, Unmerged]] = {}
    odd: list[Case] = []
    for one in records:
        stem = memory_id_of(one.path, folders) or ""
        if one.odd:
            odd.append(Case(stem, one.path, None, None, None, {one.path: one}, odd=f"a side is {one.odd}"))
            continue
        for stage, owner in _owners(one, stem, raws, records).items():
            oid = one[stage] or ""
            found.setdefault(owner, {}).setdefault(stage, []).append(Version(one.path, oid, raws[oid]))
            members.setdefault(owner, {})[one.path] = one
    made: list[Case] = []
    for memory_id, versions in sorted(found.items()):
        made += _put_together(memory_id, versions, members[memory_id], folders)
    made = [
        replace(case, around=tuple(raws[oid] for one in case.records.values() for oid in one[1:4] if oid))
        for case in made
    ]
    made = _with_moved(ws, _with_originals(ws, made, unmerged), folders)
    root = ws.git.site.root
    return [_with_files(root, case) for case in _grouped([*made, *odd])]


def _owners(
    one: Unmerged, stem: str, raws: Mapping[str, bytes], records: Sequence[Unmerged]
) -> dict[int, str]:
    """Whose version each stage of a path is (1, 2, 3 to id).

    git pairs a deleted file with a new one that resembles it, and memories resemble each other: the path of
    the new memory then carries the old one's versions. They go back to the memory whose id they hold, unless
    that one is in conflict by itself, or no stage here is the path's own memory.
    """
    own = {stage: stem for stage in (1, 2, 3) if one[stage]}
    ids = {stage: _id_in(raws[one[stage] or ""]) or stem for stage in own}
    if stem not in ids.values():
        return own
    folder = one.path.rpartition("/")[0]
    taken = {record.path for record in records}
    foreign = {owner for owner in ids.values() if owner != stem and f"{folder}/{owner}.md" not in taken}
    return {stage: owner if owner in foreign else stem for stage, owner in ids.items()}


def _id_in(raw: bytes) -> str | None:
    found = _ID_LINE.search(raw, 0, 4096)
    text = found[1].decode("ascii") if found else ""
    return text if is_id(text) else None


def _put_together(
    memory_id: str,
    versions: Mapping[int, Sequence[Version]],
    members: Mapping[str, Unmerged],
    folders: Sequence[str],
) -> Iterator[Case]:
    if all(len(found) == 1 for found in versions.values()):
        base, ours, theirs = (next(iter(versions.get(stage, ())), None) for stage in (1, 2, 3))
        path = _place(memory_id, base, ours, theirs, folders)
        yield Case(memory_id, path, base, ours, theirs, members)
        return
    # One side has the id in two folders: nobody can say which is meant, so each path is a case of its own.
    for path, record in members.items():
        own = {stage: next((v for v in found if v.path == path), None) for stage, found in versions.items()}
        yield Case(memory_id, path, own.get(1), own.get(2), own.get(3), {path: record})


def _place(
    memory_id: str,
    base: Version | None,
    ours: Version | None,
    theirs: Version | None,
    folders: Sequence[str],
) -> str:
    """Where the memory lies when settled: the folder is merged like a field, the configured one at last."""
    name = f"{memory_id}.md"
    at = [None if one is None else one.path.rpartition("/")[0] for one in (base, ours, theirs)]
    there = [folder for folder in at[1:] if folder is not None] or [at[0] or ""]
    if len(set(there)) == 1:
        return f"{there[0]}/{name}"
    moved = [folder for folder in there if folder != at[0]]
    if len(moved) == 1:
        return f"{moved[0]}/{name}"
    return f"{folders[0] if folders[0] in there else there[0]}/{name}"


def _with_originals(ws: Workspace, made: list[Case], unmerged: Sequence[Unmerged]) -> list[Case]:
    """Cases with what each side really says, where git may have put a merge of its own into a stage.

    It does so where it takes one file for renamed to two places: each place then has one stage alone.
    """
    alone = {one.path for one in unmerged if [bool(oid) for oid in one[1:4]].count(True) == 1}
    ours = [case.ours.path for case in made if case.ours and case.ours.path in alone]
    theirs = [case.theirs.path for case in made if case.theirs and case.theirs.path in alone]
    if not ours and not theirs:
        return made
    oids = ws.git.original_blobs(unmerged, ours, theirs)
    raws = ws.git.contents(oids.values())

    def original(version: Version | None) -> Version | None:
        oid = oids.get(version.path) if version is not None and version.path in alone else None
        return version if oid is None or version is None else Version(version.path, oid, raws[oid])

    return [replace(case, ours=original(case.ours), theirs=original(case.theirs)) for case in made]


def _with_moved(ws: Workspace, made: list[Case], folders: Sequence[str]) -> list[Case]:
    """Cases whose missing side only moved to another memory folder, where it lies without a conflict."""
    lacking = [case for case in made if case.base and (case.ours is None) != (case.theirs is None)]
    asked = [f"{folder}/{case.memory_id}.md" for case in lacking for folder in folders]
    if not asked:
        return made
    staged = ws.git.staged(asked)
    found: dict[str, Case] = {}
    for case in lacking:
        paths = [f"{folder}/{case.memory_id}.md" for folder in folders]
        at = [path for path in paths if path in staged]
        if len(at) != 1:
            continue
        oid = staged[at[0]]
        there = Version(at[0], oid, ws.git.contents([oid])[oid])
        case_ours, case_theirs = case.ours or there, case.theirs or there
        path = _place(case.memory_id, case.base, case_ours, case_theirs, folders)
        elsewhere = () if path == at[0] else (at[0],)
        found[case.memory_id] = replace(
            case, ours=case_ours, theirs=case_theirs, path=path, elsewhere=elsewhere
        )
    return [found.get(case.memory_id, case) for case in made]


def _grouped(made: list[Case]) -> Iterator[Case]:
    """The cases with a number that those have in common whose paths do."""
    group_of: dict[str, int] = {}
    for number, case in enumerate(made):
        for path in case.records:
            group_of.setdefault(path, number)
    for number, case in enumerate(made):
        yield replace(case, group=min([group_of[path] for path in case.records] or [number]))


def _with_files(root: str, case: Case) -> Case:
    files, odd = {}, case.odd
    for path in case.own_paths:
        try:
            files[path], in_the_way = work_tree_file(os.path.join(root, path))
        except OSError as error:
            files[path], in_the_way = None, f"{path} can't be read: {error.strerror}"
        odd = odd or in_the_way
    return replace(case, files=files, odd=odd)


# --- deciding ---


def decide(
    case: Case,
    takes: Takes = NOTHING,
    *,
    labels: Labels = _PLAIN_LABELS,
    by: str | None = None,
    at: str | None = None,
) -> Decided:
    """What becomes of `case` with what a person decided. Pure: nothing is read or written.

    `takes` that this memory has no conflict for are passed over; `check_takes` tells those that fit none.
    """
    if case.odd:
        return Decided(case, "conflict", None, (Conflict("file", None, None, None, case.odd),))
    sides = [None if one is None else one.raw for one in (case.base, case.ours, case.theirs)]
    base, ours, theirs = sides
    merged = merge.merge(base, ours, theirs, stem=case.memory_id)
    chosen = {
        name: side for name, side in takes.fields.items() if name in {one.field for one in merged.conflicts}
    }
    whole = takes.file if merged.conflicts else None
    if whole is not None and takes.fields and not any(one.field == "file" for one in merged.conflicts):
        whole = None  # given with fields, the side of a file is for those that are in conflict as a whole
    text = None
    if whole is None and "body" not in chosen and any(one.field == "body" for one in merged.conflicts):
        text = case.text if takes.text is None else takes.text
    if not chosen and whole is None and takes.text is None and _made_by_hand(case, merged):
        return Decided(case, "by hand", None, merged.conflicts)
    if chosen or whole is not None or text is not None:
        merged = merge.merge(
            base,
            ours,
            theirs,
            stem=case.memory_id,
            take=chosen,
            take_file=whole,
            text=text,
            by=by,
            at=at,
            labels=labels,
        )
    if merged.conflicts:
        return Decided(case, "conflict", merged, merged.conflicts)
    if merged.raw is not None:
        unreadable = _unreadable(case, merged.raw)
        if unreadable and whole is not None:
            raise UsageError(
                f"{whole} of {case.memory_id} can't be read as a memory ({unreadable}).",
                f"Take the other side, or mend {case.path} by hand, then run resolve again.",
            )
        if unreadable:
            clash = Conflict("file", *(f"unreadable: {unreadable}",) * 3, "no side can be read")
            return Decided(case, "conflict", None, (clash,))
    how = "deleted" if merged.raw is None else "merged"
    return Decided(case, how, merged, (), _other_words(case, merged))


def check_takes(decided: Iterable[Decided], takes: Takes) -> None:
    """Raise UsageError for a field of `takes` that is in conflict in none of the memories, naming those that
    are. `decided` is what was decided without them.
    """
    open_fields = sorted({one.field for each in decided for one in each.conflicts})
    for name in takes.fields:
        if name not in open_fields:
            told = (
                f"In conflict: {', '.join(open_fields)}." if open_fields else "Nothing here is in conflict."
            )
            raise UsageError(f"{name} is not in conflict in any of these memories.", told)
    if takes.file is not None and takes.fields and "file" not in open_fields:
        raise UsageError(
            "--take-file settles the whole memory, and none here is in conflict as a whole.",
            "Leave --take and --take-body away, or --take-file.",
        )
    if takes.file is not None and not open_fields:
        raise UsageError("No file here is in conflict.", "`open-memex resolve` lists what is.")


def take_command(memory_id: str, conflicts: Iterable[Conflict]) -> str:
    """The command that settles a memory, with all that a person has to decide in it.

    It has SIDE where that is said: as it stands, it settles nothing, so that nobody drops a side's words by
    copying it.
    """
    names = dict.fromkeys(one.field for one in conflicts)
    options = {"file": "--take-file SIDE", "body": "--take-body SIDE"}
    words = [options.get(name) or f"--take {shlex.quote(name)}=SIDE" for name in names]
    return " ".join(["open-memex resolve", memory_id, *words])


def next_commands(remaining: Sequence[Decided], others: Sequence[str], go_on: str) -> tuple[str, ...]:
    """The commands that come next, with these memories and these other files still in conflict.

    `go_on`: the command of git that ends its operation, "" for none.
    """
    open_ = [one for one in remaining if one.how == "conflict"]
    waiting = {one.case.group for one in open_}
    if any(one.case.group not in waiting for one in remaining):
        return ("open-memex resolve --all",)
    for one in open_:
        # Memories that leave their conflict together are decided together.
        group = [each for each in open_ if each.case.group == one.case.group]
        if not any(each.case.odd for each in group):
            return (take_command(one.case.memory_id, [c for each in group for c in each.conflicts]),)
    if remaining or others:
        return ("git status",)
    return (go_on,) if go_on else ()


def settlements(decided: Decided, *, staged: bool = True) -> list[Settlement]:
    """What has to be written for a case that is decided, and `staged`."""
    case = decided.case
    mode = next((record.mode for record in case.records.values()), "100644")
    keep = decided.how == "by hand"
    steps = []
    for path in case.own_paths:
        file = case.files.get(path)
        data = None
        if path == case.path:
            data = file if keep else decided.merged.raw if decided.merged is not None else None
        if data is not None or file is not None or path in case.records or path in case.elsewhere:
            steps.append(Settlement(path, data, file, mode, keep and path == case.path, staged))
    return steps


def told(decided: Sequence[Decided]) -> list[Notice]:
    """What must be known of settled memories beside that they are settled."""
    notices = []
    for one in decided:
        memory_id = one.case.memory_id
        raw = one.case.file if one.merged is None else one.merged.raw
        if one.how == "by hand":
            told = f"{memory_id}: the file was settled by hand already; it is staged as it stands"
            notices.append(Notice("by-hand", told))
        if one.merged is not None:
            notices += [Notice("merge", f"{memory_id}: {text}") for text in one.merged.notices]
        spans = secrets.find(raw.decode("utf-8", "replace")) if raw else []
        if spans:
            told = (
                f"{one.case.path} holds {secrets.kinds_text(spans)} in clear; git brought it, it was left so"
            )
            notices.append(Notice("secret", told))
    return notices


def _unreadable(case: Case, raw: bytes) -> str:
    """Why `raw` can't be read as this memory; "" when it can."""
    try:
        frontmatter.parse(raw, stem=case.memory_id, default_scope="project")
    except Unreadable as error:
        return f"{error.reason}, line {error.line}" if error.line else error.reason
    return ""


def _made_by_hand(case: Case, merged: Merged) -> bool:
    """Whether the work tree's file is a person's (or rerere's) own resolution: it has no markers, reads as
    this memory, and is none of the sides. A file that equals a side is what git leaves when a driver fails.
    """
    if case.file is None or case.joined:
        return False
    text = plain(case.file)
    versions = [one.raw for one in (case.base, case.ours, case.theirs) if one is not None]
    if any(text == plain(raw) for raw in versions):
        return False
    if merged.raw is not None and text == plain(merged.raw):
        return False
    return not _unreadable(case, case.file)


def _other_words(case: Case, merged: Merged) -> tuple[str, ...]:
    """The paths whose file has lines that neither a side nor the merge has."""
    versions = [one.raw for one in (case.base, case.ours, case.theirs) if one is not None]
    known = _lines([*versions, *case.around, *([merged.raw] if merged.raw is not None else [])])
    found = []
    for path, file in case.files.items():
        others = {
            line
            for line in _lines([file] if file is not None else []) - known
            # An entry of the history that says what was taken is from a resolve that was interrupted.
            if line.strip() and not _MARKER.match(line) and 'note: "merge: ' not in line
        }
        if others and not others <= _lines([_marked(case)]):
            found.append(path)
    return tuple(found)


def _marked(case: Case) -> bytes:
    """The file that the merge driver leaves in this conflict; nothing where there can be none."""
    base, ours, theirs = (None if one is None else one.raw for one in (case.base, case.ours, case.theirs))
    try:
        return merge.with_markers(base, ours, theirs, stem=case.memory_id)
    except OpenMemexError:
        return b""


def plain(raw: bytes) -> bytes:
    """A file's bytes as they count when two are compared: without a byte order mark, with LF."""
    return raw.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")


def _lines(raws: Iterable[bytes]) -> set[str]:
    return {line.rstrip("\r") for raw in raws for line in raw.decode("utf-8", "replace").split("\n")}

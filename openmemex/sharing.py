"""What a submit makes of each memory: which file, which bytes, where they come from. Decides; changes
nothing.

A copy in the repository that says the same as the draft (apart from its review) is the draft's own, left by
an earlier run that was interrupted: its bytes are taken as they are, so that running again duplicates
nothing.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field

from openmemex.errors import DecisionNeeded, NotFound, OpenMemexError, Refused
from openmemex.index.rows import Row
from openmemex.memory import frontmatter
from openmemex.memory.ids import normal_id_part
from openmemex.memory.model import Memory, now_text
from openmemex.selecting import copies
from openmemex.store import files, homes
from openmemex.workspace import Workspace
from openmemex.writing import chains, history_with, open_copy, superseded_changes, writer


@dataclass
class Step:
    """One file of the commit: its path in the repository and its bytes then (None: deleted).

    `before` is the work tree's copy now, `outbox` the draft that is deleted when all is done. `replaced`:
    nobody named it, it is the memory that another one replaces. `written`: this run changed the work tree's
    file to `raw`.
    """

    memory_id: str
    path: str
    raw: bytes | None
    summary: str
    before: files.MemoryFile | None = None
    outbox: files.MemoryFile | None = None
    replaced: bool = False
    written: bool = field(default=False, compare=False)


class Plan:
    """Decides what each named memory becomes, for a commit on HEAD's branch, or on another one.

    `target` is the full ref of that other branch ("" for HEAD's own), `onto` where it starts when it is new.
    """

    def __init__(self, ws: Workspace, home: homes.Home, target: str, onto: str) -> None:
        self._ws = ws
        self._home = home
        self._target = target
        self._revisions = (target, onto) if target else ()
        self._folder = home.shown(home.folder)
        self._status: dict[str, str] | None = None
        self._by = writer(ws)
        self._at = now_text()

    @property
    def _changed(self) -> dict[str, str]:
        """What git says of the memory folder: asked once, and not at all for most submits."""
        if self._status is None:
            entries = self._ws.git.folder_status(self._folder)
            self._status = {entry.path: entry.state for entry in entries}
        return self._status

    def steps(self, refs: list[str]) -> list[Step]:
        """One step for each memory that `refs` name, and for the one that it replaces in the repository.

        Raises as `selecting.select`; Refused for what may not or need not be committed; DecisionNeeded
        where one id has two texts or two successors.
        """
        steps: dict[str, Step] = {}
        for ref in refs:
            step = self._deleted(ref) or self._named(ref)
            steps[step.memory_id] = step
        for draft in self._halves_in_outbox(steps):
            steps.setdefault(draft.memory_id, draft)
        for step in list(steps.values()):
            other = self._replaced_by(step)
            if other is not None and other.memory_id not in steps:
                steps[other.memory_id] = other
        return list(steps.values())

    def _halves_in_outbox(self, steps: dict[str, Step]) -> list[Step]:
        """The drafts that the drafts of `steps` replace or are replaced by: a pair is shared together."""
        found: dict[str, Step] = {}
        waiting = list(steps.values())
        while waiting:
            step = waiting.pop()
            if step.outbox is None:
                continue
            for other in (step.outbox.memory.supersedes, step.outbox.memory.superseded_by):
                if other is None or other in found or other in steps:
                    continue
                row = next((row for row in self._rows(other) if row.place_kind == "outbox"), None)
                if row is not None:
                    found[other] = self._named(other)
                    waiting.append(found[other])
        return list(found.values())

    def _rows(self, memory_id: str) -> list[Row]:
        return self._ws.index.find(self._ws.homes(), memory_id)

    def nothing_new(self, steps: list[Step]) -> bool:
        """Whether HEAD's branch has all of `steps` already."""
        return not self._target and all(
            step.path not in self._changed and step.before is not None and step.before.raw == step.raw
            for step in steps
        )

    def _deleted(self, ref: str) -> Step | None:
        """A memory whose file is gone from the work tree can only be named by git's own list of changes.

        Where any copy is left, a draft too, nothing was deleted that a commit should tell of.
        """
        part = normal_id_part(ref)
        if part and self._rows(part):
            return None
        gone = [path for path, how in self._changed.items() if how == "deleted" and path.endswith(".md")]
        found = [
            path for path in gone if part and (_stem(path).startswith(part) or _stem(path).endswith(part))
        ]
        if len(found) > 1:
            raise DecisionNeeded(
                f"{part} fits {len(found)} deleted memories: {', '.join(map(_stem, found))}",
                "type more of the id",
            )
        return Step(_stem(found[0]), found[0], None, "deleted") if found else None

    def _named(self, ref: str) -> Step:
        rows = {row.place_kind: row for row in copies(self._ws, ref)}
        row = next(iter(rows.values()))
        if row.scope == "personal":
            raise Refused(
                f"{row.id} is personal and never leaves this computer",
                "if the team may know it, save it again with --scope project",
            )
        here = self._file(rows.get("repository"))
        draft = self._file(rows.get("outbox"))
        if draft is None and here is None:
            return self._already_there(row)
        _refuse_private(here if draft is None else draft)
        path = self._home.shown(self._home.path_of(row.id))
        if draft is not None:
            return self._shared(row, path, draft, here)
        assert here is not None
        return Step(row.id, path, here.raw, row.summary, before=here)

    def _already_there(self, row: Row) -> Step:
        """Only a branch has it: fine when it is the one that is asked for, then nothing is new to commit."""
        there = self._at_revision(row.id, self._target) if self._target else None
        if there is None:
            branch = row.place_label.removeprefix("on branch ")
            raise Refused(
                f"{row.id} is {row.place_label} already", f"push it: git push -u origin {shlex.quote(branch)}"
            )
        path = f"{self._folder}/{row.id}.md"
        return Step(row.id, path, there.raw, row.summary)

    def _file(self, row: Row | None) -> files.MemoryFile | None:
        return None if row is None else open_copy(self._ws, row).file

    def _shared(self, row: Row, path: str, draft: files.MemoryFile, here: files.MemoryFile | None) -> Step:
        if self._target:
            here = None
            earlier = self._at_revision(row.id, self._target)
        else:
            earlier = here.document if here is not None else None
        if earlier is None:
            return Step(row.id, path, self._proposed(draft), row.summary, outbox=draft)
        if frontmatter.substance(earlier.memory) != frontmatter.substance(draft.memory):
            place = f"on branch {self._target.removeprefix('refs/heads/')}" if self._target else f"in {path}"
            raise DecisionNeeded(
                f"{row.id} has one text waiting on this computer and another {place}",
                f"compare them, and delete the draft or make it say the same: {draft.path}",
            )
        return Step(row.id, path, earlier.raw, row.summary, before=here, outbox=draft)

    def _proposed(self, draft: files.MemoryFile) -> bytes:
        """The draft as it enters the repository: proposed, unless its review has gone on already."""
        memory = draft.memory
        if memory.review_state != "draft":
            return draft.raw
        changes = {
            "review_state": "proposed",
            "proposed_by": self._by,
            "review_history": history_with(memory, self._by, "proposed", None, self._at),
            "updated_at": self._at,
        }
        return frontmatter.rewrite(draft.document, changes)

    def _at_revision(self, memory_id: str, revision: str) -> frontmatter.Document | None:
        git = self._ws.git
        try:
            oid = git.entries(revision, self._folder).get(memory_id + ".md")
        except NotFound:
            return None
        found = next(git.blobs([oid]), None) if oid else None
        return None if found is None else frontmatter.parse(found[1], stem=memory_id, default_scope="project")

    def _replaced_by(self, step: Step) -> Step | None:
        """The file of the memory that `step` replaces, marked as replaced, when it lies in the repository.

        For another branch it is read from there: what the work tree has uncommitted does not belong on it.
        """
        if step.raw is None:
            return None
        old_id = frontmatter.parse(step.raw, stem=step.memory_id, default_scope="project").memory.supersedes
        if old_id is None or old_id == step.memory_id:
            return None
        path = self._home.shown(self._home.path_of(old_id))
        file = None
        if self._revisions:
            document = next(filter(None, (self._at_revision(old_id, rev) for rev in self._revisions)), None)
        else:
            try:
                file = files.read(self._home, old_id)
            except OpenMemexError:
                return None
            document = file.document
        if document is None:
            return None
        old = document.memory
        raw = document.raw
        if old.superseded_by == step.memory_id and old.status == "superseded":
            if file is None or path not in self._changed:
                return None
        elif step.outbox is None:
            # A change to a shared memory is that change alone. Only a replacement that is shared now, or
            # whose sharing was interrupted, marks what it replaces: a half pair may be meant otherwise.
            return None
        else:
            self._check_only_successor(old, path, step.memory_id)
            raw = frontmatter.rewrite(document, superseded_changes(step.memory_id, self._at))
        return Step(old_id, path, raw, f"replaced by {step.memory_id}", before=file, replaced=True)

    def _check_only_successor(self, old: Memory, path: str, new_id: str) -> None:
        if old.superseded_by not in (None, new_id, old.id):
            raise DecisionNeeded(
                f"{path} is already replaced by {old.superseded_by}, not by {new_id}",
                f"forget this draft (open-memex forget {new_id}) and replace that one instead: "
                f"open-memex supersede {old.superseded_by} TEXT",
            )
        known = chains(self._ws, "project")
        loop = known.loop(old.id)
        if loop:
            raise DecisionNeeded(
                f"these memories replace each other in a loop: {', '.join(loop)}",
                f"take `supersedes` out of {path} or of {new_id}.md by hand, then try again",
            )
        others = [one for one in known.successors(old.id) if one != new_id]
        if others:
            raise DecisionNeeded(
                f"{path} is already replaced by {', '.join(others)}, not only by {new_id}",
                f"keep one of them: open-memex forget {new_id}, or forget {others[0]}",
            )


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md")


def _refuse_private(file: files.MemoryFile | None) -> None:
    if file is not None and (file.memory.visibility == "private" or file.memory.scope == "personal"):
        raise Refused(
            f"{file.home.shown(file.path)} is marked private and never enters a repository",
            "if the team may read it, set `visibility: internal` in the file first",
        )

"""What a submit makes of each memory: which file, which bytes, where they come from. Decides; changes
nothing.

A copy in the repository that says the same as the draft (apart from its review) is the draft's own, left by
an earlier run that was interrupted: its bytes are taken as they are, so that running again duplicates
nothing.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from functools import cached_property

from openmemex.errors import DecisionNeeded, NotFound, OpenMemexError, Refused
from openmemex.git import light
from openmemex.index.rows import EVERY, Filters, Row
from openmemex.memory import frontmatter
from openmemex.memory.ids import normal_id_part
from openmemex.memory.model import Memory, now_text
from openmemex.selecting import copies
from openmemex.store import files, homes
from openmemex.trust import secrets
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
        self._onto = onto
        self._revisions = (target, onto) if target else ()
        self._folder = home.shown(home.folder)
        self._by = writer(ws)
        self._at = now_text()

    @cached_property
    def _changed(self) -> dict[str, str]:
        """What git says of the memory folder: not asked at all for most submits."""
        return {entry.path: entry.state for entry in self._ws.git.folder_status(self._folder)}

    @cached_property
    def _waiting(self) -> dict[str, list[str]]:
        """The replacements that wait in the outbox, by what they replace; rejected and retracted ones replace
        nothing.
        """
        outbox = [home for home in self._ws.homes() if home.kind == "outbox"]
        found: dict[str, list[str]] = {}
        for row in self._ws.index.list(outbox, Filters(all=True), EVERY).rows:
            if row.supersedes and row.review_state != "rejected" and row.status != "retracted":
                found.setdefault(row.supersedes, []).append(row.id)
        return found

    def steps(self, refs: list[str]) -> list[Step]:
        """One step for each memory that `refs` name, and for the other half of a pair that it is one of:
        what it replaces in the repository, or a replacement that waits in the outbox.

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
            other = self._replaced_by(step, steps)
            if other is not None:
                steps[other.memory_id] = other
        return list(steps.values())

    def _halves_in_outbox(self, steps: dict[str, Step]) -> list[Step]:
        """The drafts that those of `steps` replace or are replaced by: a pair is shared together."""
        found: dict[str, Step] = {}
        waiting = list(steps.values())
        while waiting:
            step = waiting.pop()
            others = list(self._waiting.get(step.memory_id, ())) if step.raw is not None else []
            if step.outbox is not None:
                memory = step.outbox.memory
                others += filter(None, (memory.supersedes, memory.superseded_by))
            for other in others:
                if other in found or other in steps:
                    continue
                row = next((row for row in self._rows(other) if row.place_kind == "outbox"), None)
                if row is not None:
                    found[other] = self._named(other)
                    waiting.append(found[other])
        return list(found.values())

    def _rows(self, memory_id: str) -> list[Row]:
        return self._ws.index.find(self._ws.homes(), memory_id)

    def held_already(self, steps: list[Step], rev: str | None = None) -> list[Step]:
        """Those of `steps` that need no commit: where it would go to, or at `rev`, they are so already."""
        if rev is None and not self._target:
            return [step for step in steps if self._as_in_head(step)]
        start = rev or self._start
        there, here = self._entries(start), self._entries("HEAD")
        held = []
        for step in steps:
            name = step.path.rpartition("/")[2]
            oid = there.get(name)
            if step.raw is None or oid is None:
                same = step.raw is None and oid is None
            else:
                # What git converts (line ends, filters) is told by git alone: its own comparison with HEAD.
                same = self._ws.git.here([oid]).get(oid) == step.raw or (
                    oid == here.get(name) and self._as_in_head(step)
                )
            if same:
                held.append(step)
        return held

    @property
    def _start(self) -> str:
        """What the commit on the other branch builds upon."""
        return self._target if light.read_ref(self._ws.git.site, self._target) is not None else self._onto

    def _entries(self, rev: str) -> dict[str, str]:
        try:
            return self._ws.git.entries(rev, self._folder)
        except NotFound:
            return {}

    def _as_in_head(self, step: Step) -> bool:
        """Whether the work tree's file is what the step makes of it, and what HEAD has."""
        same = step.before is not None and step.before.raw == step.raw
        return same and step.path not in self._changed

    def refuse_empty_branch(self, steps: list[Step], base: str | None) -> None:
        """Raise Refused where a new branch would differ in nothing from where it starts.

        It would carry commits to a pull request that nobody named, and none of its own.
        """
        if self._start != self._onto or len(self.held_already(steps)) < len(steps):
            return
        branch = self._target.removeprefix("refs/heads/")
        start = self._ws.git.head().branch or "HEAD" if self._onto == "HEAD" else self._onto
        ids = " ".join(step.memory_id for step in steps)
        published = self._ws.git.published(base)
        if published is None:
            hint = "name a commit that lacks it with --onto REV, or submit a change of it"
        elif len(self.held_already(steps, published)) < len(steps):
            words = shlex.join(["--branch", branch, "--onto", published])
            hint = f"for a branch with this alone: open-memex submit {ids} {words}"
        else:
            hint = f"{published} has it too: there is nothing to share"
        raise Refused(
            f"{start} has {', '.join(step.memory_id for step in steps)} just so already: a new branch "
            f"{branch} would hold nothing of its own, and was not made",
            hint,
        )

    @staticmethod
    def refuse_secrets(steps: list[Step]) -> None:
        """Raise Refused for a secret in what would be committed, with its line."""
        for step in steps:
            text = (step.raw or b"").decode("utf-8", "replace")
            for span in secrets.find(text):
                line = text.count("\n", 0, span.start) + 1
                raise Refused(
                    f"{step.path}, line {line}: holds a secret ({span.kind})",
                    f"take it out first: open-memex edit {step.memory_id}",
                )

    def message(self, steps: list[Step]) -> str:
        """The commit's message where none was given: a subject of one line, then one line a memory."""
        lines = [f"{step.memory_id} {secrets.mask(step.summary).text[:100]}" for step in steps]
        named = [step for step in steps if not step.replaced] or steps
        if len(named) > 1:
            subject = f"Share {len(named)} memories"
        elif named[0].raw is None:
            subject = f"Remove memory {named[0].memory_id}"
        else:
            subject = f"Memory: {secrets.mask(named[0].summary).text[:100][:60]}"
        return f"{subject}\n\n" + "\n".join(lines) + "\n"

    def left_behind(self, step: Step) -> str:
        """What to say where the work tree still has the text from before a hook's change of the commit."""
        now = () if self._target else self._ws.git.folder_status(self._folder)
        if step.path not in {entry.path for entry in now}:
            return ""
        return (
            "; the file here is not what was committed, and a commit of it would take that back: "
            f"git checkout HEAD -- {shlex.quote(':/' + step.path)} brings it here"
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
            push = self._ws.git.push_command(branch)
            raise Refused(f"{row.id} is {row.place_label} already", f"push it: {push[0]}" if push else "")
        path = f"{self._folder}/{row.id}.md"
        return Step(row.id, path, there.raw, row.summary)

    def _file(self, row: Row | None) -> files.MemoryFile | None:
        return None if row is None else open_copy(self._ws, row).file

    def _shared(self, row: Row, path: str, draft: files.MemoryFile, here: files.MemoryFile | None) -> Step:
        if self._target:
            here = None
            earlier = self._at_revision(row.id, self._start)
        else:
            earlier = here.document if here is not None else None
        if earlier is None:
            return Step(row.id, path, self._proposed(draft), row.summary, outbox=draft)
        if frontmatter.substance(earlier.memory) != frontmatter.substance(draft.memory):
            start = self._start.removeprefix("refs/heads/") if self._target else ""
            place = f"at {start}" if start else f"in {path}"
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

    def _replaced_by(self, step: Step, steps: dict[str, Step]) -> Step | None:
        """The file of the memory that `step` replaces, marked as replaced, when it lies in the repository.

        Where that one was named too, the mark is added to what becomes of it. For another branch it is read
        from there otherwise: what the work tree has uncommitted does not belong on it.
        """
        if step.raw is None:
            return None
        old_id = _parsed(step).memory.supersedes
        if old_id is None or old_id == step.memory_id:
            return None
        path = self._home.shown(self._home.path_of(old_id))
        file = None
        named = steps.get(old_id)
        document: frontmatter.Document | None
        if named is not None:
            if named.raw is None:
                return None
            file, document = named.before, _parsed(named)
        elif self._revisions:
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
        told = f"replaced by {step.memory_id}"
        if old.superseded_by == step.memory_id and old.status == "superseded":
            if named is not None:
                return replace(named, summary=told, replaced=True)
            if file is None or path not in self._changed:
                return None
        elif step.outbox is None and not self._marked_here(old_id, step):
            # A change to a shared memory is that change alone. Only a replacement that is shared now, or
            # whose sharing was interrupted, marks what it replaces: a half pair may be meant otherwise.
            return None
        else:
            self._check_only_successor(old, path, step.memory_id)
            raw = frontmatter.rewrite(document, superseded_changes(step.memory_id, self._at))
        if named is not None:
            return replace(named, raw=raw, summary=told, replaced=True)
        return Step(old_id, path, raw, told, before=file, replaced=True)

    def _marked_here(self, old_id: str, step: Step) -> bool:
        """Whether the work tree has the pair whole, which then goes to another branch as it is."""
        if not self._target:
            return False
        try:
            return files.read(self._home, old_id).memory.superseded_by == step.memory_id
        except OpenMemexError:
            return False

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


def _parsed(step: Step) -> frontmatter.Document:
    assert step.raw is not None
    return frontmatter.parse(step.raw, stem=step.memory_id, default_scope="project")


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md")


def _refuse_private(file: files.MemoryFile | None) -> None:
    if file is not None and (file.memory.visibility == "private" or file.memory.scope == "personal"):
        raise Refused(
            f"{file.home.shown(file.path)} is marked private and never enters a repository",
            "if the team may read it, set `visibility: internal` in the file first",
        )

"""GitProvider: the one door to git for everything above. Each method is one question or one act."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from openmemex.git import (
    committing,
    conflicts,
    drivers,
    filtering,
    history,
    identity,
    light,
    merges,
    pushing,
    sparse,
    staging,
    targets,
    transport,
)
from openmemex.git.committing import Checked, CommitResult
from openmemex.git.conflicts import Settled, Settlement, Sides, Unmerged
from openmemex.git.history import Revision, Version
from openmemex.git.identity import RepositoryIdentity
from openmemex.git.light import Site
from openmemex.git.merges import Join
from openmemex.git.objects import Signature
from openmemex.git.pushing import PushResult
from openmemex.git.repository import Capabilities, Repository
from openmemex.git.staging import FolderEntry
from openmemex.git.transport import Progress, PullResult


class Head(NamedTuple):
    """Where HEAD is: the short name of the branch (None when detached), its commit (None when unborn)."""

    branch: str | None
    commit: str | None
    detached: bool
    unborn: bool


class GitProvider:
    """One repository, as the rest of OpenMemex sees it.

    Every method raises OpenMemexError (Refused, NotFound) with a sentence for people, git's own words
    included and credentials taken out; none asks anything on a terminal or waits for ever.
    """

    def __init__(self, site: Site, environ: Mapping[str, str] = os.environ) -> None:
        self.site = site
        self._environ = environ
        self._opened: Repository | None = None
        self._known: tuple[str, Repository] | None = None

    @classmethod
    def at(cls, site: Site, environ: Mapping[str, str] = os.environ) -> GitProvider:
        """The provider of a site that light.find_site found."""
        return cls(site, environ)

    @classmethod
    def open(cls, start: str, environ: Mapping[str, str] = os.environ) -> GitProvider | None:
        """The provider of the repository around the folder `start`, or None when there is none."""
        site = light.find_site(start, environ)
        return None if site is None else cls(site, environ)

    @property
    def _repository(self) -> Repository:
        """One open handle for reading: objects never change, and opening costs more than most reads."""
        if self._opened is None:
            self._opened = Repository(self.site, self._environ) if self._known is None else self._known[1]
        return self._opened

    @property
    def _current(self) -> Repository:
        """A handle that knows git's configuration as it is now: kept while no file of it has changed."""
        stamp = f"{light.head(self.site)[0]}|{light.identity_stamp(self.site, self._environ)}"
        if self._known is None or self._known[0] != stamp:
            self._known = (stamp, Repository(self.site, self._environ))
        return self._known[1]

    def identity(self) -> RepositoryIdentity:
        """What the repository is known by: name, normal origin, root commit, folder, scope keys."""
        return identity.of_repository(self._repository.git)

    def capabilities(self) -> Capabilities:
        """What kind of repository this is, and which engine serves it, read anew."""
        return Repository(self.site, self._environ).capabilities()

    def author(self) -> Signature:
        """Who a commit made now would be by. Raises Refused naming the two `git config` commands."""
        return self._current.signature("AUTHOR")

    def head(self) -> Head:
        """Where HEAD is now."""
        ref, commit = light.head(self.site)
        branch = None if ref is None else ref.removeprefix("refs/heads/")
        return Head(branch, commit, detached=ref is None, unborn=commit is None)

    def pending_operation(self) -> str | None:
        """merge, rebase, am, cherry-pick, revert or bisect when one waits to be finished; else None."""
        return self._repository.pending_operation()

    def unmerged(self, folders: Sequence[str] = ()) -> list[Unmerged]:
        """Every path in conflict below `folders` (from the top; none: everywhere), in order of path."""
        return conflicts.unmerged(self._repository.git, folders)

    def sides(self, unmerged: Sequence[Unmerged] = ()) -> Sides:
        """What to call the base, ours and theirs of a conflict; see conflicts.sides."""
        return conflicts.sides(Repository(self.site, self._environ), unmerged)

    def go_on(self, sides: Sides) -> str:
        """The command of git that ends what is going on; see conflicts.go_on."""
        return conflicts.go_on(self._repository, sides)

    def contents(self, oids: Iterable[str]) -> dict[str, bytes]:
        """The bytes of blobs by id, as `blobs`, for a process that needs no libgit2 otherwise."""
        return conflicts.contents(self._repository.git, oids)

    def original_blobs(
        self, unmerged: Sequence[Unmerged], ours: Sequence[str], theirs: Sequence[str]
    ) -> dict[str, str]:
        """The blobs of paths in the two commits that are being joined; see conflicts.original_blobs."""
        repository = Repository(self.site, self._environ)
        return conflicts.original_blobs(repository, unmerged, ours, theirs)

    def staged(self, paths: Sequence[str]) -> dict[str, str]:
        """The blob id of each of `paths` that the staging area has, and not in conflict."""
        entries = staging.staged(self._repository.git, paths)
        return {path: found[0].oid for path, found in entries.items() if [e.stage for e in found] == [0]}

    def joined(self, folders: Sequence[str], *, since: str | None = None) -> list[Join]:
        """What the merge in progress and the last merges of HEAD joined in `folders`; see merges.joined."""
        return merges.joined(Repository(self.site, self._environ), folders, since=since)

    def text_merge(self, base: bytes | None, ours: bytes | None, theirs: bytes | None) -> bytes | None:
        """What git's merge of lines makes of three versions; None when that is a conflict."""
        return merges.text_merge(self._repository.git, base, ours, theirs)

    def settle(self, settlements: Sequence[Settlement], expected: Mapping[str, Unmerged]) -> Settled:
        """Write and stage what each file in conflict came to; see conflicts.settle."""
        return conflicts.settle(Repository(self.site, self._environ), settlements, expected)

    def checked_out_at(self, branch: str) -> str | None:
        """The work tree that has `branch` checked out, or is in the middle of rebasing it; else None."""
        return targets.checked_out_at(self._repository, f"refs/heads/{branch}")

    def merged(self, ref: str) -> bool:
        """Whether HEAD has every commit of the ref `ref`; False when either has none."""
        commit, here = light.read_ref(self.site, ref), light.head(self.site)[1]
        if commit is None or here is None:
            return False
        return targets.is_ancestor(self._repository, commit, here)

    def folder_status(self, folder: str) -> list[FolderEntry]:
        """What differs from HEAD below `folder` (from the top), and nothing of the rest; writes nothing."""
        return staging.folder_status(self._repository.git, folder)

    def check_commit(
        self, paths: Sequence[str], branch: str | None = None, onto: str | None = None
    ) -> Checked:
        """Raise what `commit` would raise, and change nothing. The files need not exist yet.

        What it gives can be handed to `commit`, which then asks only what may have changed since.
        """
        return committing.check_commit(self._current, paths, branch, onto)

    def commit(
        self,
        files: Mapping[str, bytes | None],
        *,
        message: str,
        branch: str | None = None,
        onto: str | None = None,
        dry_run: bool = False,
        checked: Checked | None = None,
    ) -> CommitResult:
        """Commit exactly these files (path from the top: bytes, None deletes); see committing.commit."""
        return committing.commit(
            self._current,
            files,
            message=message,
            branch=branch,
            onto=onto,
            dry_run=dry_run,
            checked=checked,
        )

    def resolve(self, rev: str) -> str:
        """The id of the commit that `rev` names. Raises NotFound."""
        return self._repository.resolve(rev)

    def entries(self, rev: str, folder: str) -> dict[str, str]:
        """File name to blob id of the regular files directly in `folder` (from the top) at `rev`."""
        return history.entries(self._repository, rev, folder)

    def blobs(self, oids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """The bytes of each blob, in order. Raises NotFound for one that is not in this clone."""
        return history.blobs(self._repository, oids)

    def texts(self, oids: Sequence[str]) -> dict[str, bytes]:
        """The bytes of those of `oids` that are here or can be fetched, by one `git cat-file`."""
        return history.texts_by_git(self._repository, oids)

    def here(self, oids: Sequence[str]) -> dict[str, bytes]:
        """As `blobs`, but what is not here and can't be fetched is left out."""
        return history.texts(self._repository, oids)

    def versions(self, name: str, folders: Sequence[str]) -> list[Version]:
        """The life of `<ID>.md`, newest first, across renames of its folder and branches; see history."""
        return history.versions(Repository(self.site, self._environ), name, folders)

    def names_in_history(self, part: str, folders: Sequence[str]) -> list[str]:
        """The ids in git's history that begin or end with `part`; walks all of it."""
        return history.names_in_history(self._repository, part, folders)

    def revision(self, text: str) -> Revision:
        """The commit that a revision or a date means. Raises NotFound for neither; see history.revision."""
        return history.revision(self._repository, text)

    def left_out(self, folder: str) -> int:
        """How many memories in `folder` (from the top) a sparse checkout leaves out."""
        return sparse.left_out(self._repository, folder)

    @property
    def shallow(self) -> bool:
        """Whether this clone's history is cut off somewhere."""
        return bool(history.shallow_commits(self._repository))

    @property
    def reading_engine(self) -> str:
        """Who reads trees and texts here: "libgit2" or "git"."""
        return self._repository.objects.engine

    def unpushed(self, folder: str) -> int:
        """How many commits of HEAD that touch `folder` no remote has yet, as far as this clone knows."""
        return history.unpushed(Repository(self.site, self._environ), folder)

    def default_branch(self, said: str | None = None) -> str | None:
        """The default branch of where pull requests go to; `said`: what the remote said at a pull."""
        return history.default_branch(self._current, said)

    def published(self, branch: str | None = None) -> str | None:
        """The remote's `branch` (default: its default branch) as this clone knows it, as `origin/main`."""
        return history.published(self._current, branch)

    def pull(self, folder: str = "", *, progress: Progress | None = None) -> PullResult:
        """Fetch and fast-forward the current branch, or refuse and change nothing; see transport.pull."""
        return transport.pull(Repository(self.site, self._environ), folder, progress=progress)

    def push(self, branch: str, *, remote: str | None = None, set_upstream: bool = True) -> PushResult:
        """Push `branch` to its namesake at `remote`, never by force; see pushing.push."""
        repository = Repository(self.site, self._environ)
        return pushing.push(repository, branch, remote=remote, set_upstream=set_upstream)

    def push_command(self, branch: str) -> list[str]:
        """The shell command that pushes `branch` to where this repository pushes; [] without a remote."""
        return transport.push_command(self._current, branch)

    def pull_request_command(self, branch: str, base: str) -> list[str]:
        """The shell command that opens a pull request from `branch` to `base`; [] where `gh` can't."""
        return transport.pull_request_command(self._current, branch, base)

    def plan_drivers(self, folder: str, *, force: bool = False) -> drivers.Plan:
        """What sets up merging and showing of the memories in `folder` (from the top); nothing is written."""
        return drivers.plan_setup(Repository(self.site, self._environ), folder, force=force)

    def plan_driver_removal(self, folder: str, *, force: bool = False) -> drivers.Plan:
        """What takes that out again; nothing is written."""
        return drivers.plan_removal(Repository(self.site, self._environ), folder, force=force)

    def set_drivers(self, plan: drivers.Plan) -> None:
        """Do what one of the two planned."""
        drivers.carry_out(Repository(self.site, self._environ), plan)

    def stored_otherwise(self, folder: str) -> tuple[str, str] | None:
        """What git would store of memories in `folder` instead of their text; see filtering."""
        return filtering.stored_otherwise(Repository(self.site, self._environ), folder)

    def driver_health(self, folder: str) -> drivers.Health:
        """Whether memories in `folder` merge by field in this clone, found out by a trial."""
        return drivers.health(Repository(self.site, self._environ), folder)

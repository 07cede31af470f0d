"""The one place that wires settings, homes, git and the index together for the folder that a command runs in.

On the path of every search, so git's library and the store are imported only when a command needs them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from openmemex import paths, settings_file
from openmemex.errors import OpenMemexError, Refused
from openmemex.git import light
from openmemex.index.memory_index import MemoryIndex
from openmemex.results import Notice
from openmemex.store import homes, state
from openmemex.store.homes import Home

if TYPE_CHECKING:
    from openmemex.git.provider import GitProvider
    from openmemex.index.rows import Freshness
    from openmemex.results import Progress


class Project(NamedTuple):
    """Which project a command works for, and how that was decided.

    `source` is option, environment, repository, folder or none; with none, `root` is empty and `reason` says
    why this place is no project. `keys` are the scope keys that name it, best first: a repository is known by
    its origin, its first commit and its folder (docs/protocol.md, "Identity").
    """

    root: str
    source: str
    name: str = ""
    keys: tuple[str, ...] = ()
    reason: str = ""


class Workspace:
    """Everything a command needs to know of the place that it was started in."""

    def __init__(self, environ: Mapping[str, str], cwd: str, project: str | None) -> None:
        self.environ = environ
        self.cwd = cwd
        self.data_root = paths.data_root(environ)
        self.config_file = paths.config_file(environ)
        self.settings, self.settings_problems = settings_file.load(self.config_file, environ)
        self.site: light.Site | None = None
        self._root, self._source, self._reason = self._place(project)
        self._project: Project | None = None
        self._index: MemoryIndex | None = None
        self._git: GitProvider | None = None

    @classmethod
    def open(
        cls,
        *,
        project: str | None = None,
        cwd: str | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Workspace:
        """The workspace of `cwd` (default: the working folder), or of the folder that `project` names.

        Raises OpenMemexError when a named project folder is not there or the working folder was deleted.
        """
        env = os.environ if environ is None else environ
        if cwd is None:
            try:
                cwd = os.getcwd()
            except OSError as error:
                raise OpenMemexError(
                    "The working folder is gone.", "Change to a folder that exists and try again."
                ) from error
        return cls(env, cwd, project or env.get("OPEN_MEMEX_PROJECT") or None)

    def _place(self, named: str | None) -> tuple[str, str, str]:
        start = os.path.abspath(os.path.join(self.cwd, os.path.expanduser(named))) if named else self.cwd
        if named and not os.path.isdir(start):
            raise OpenMemexError(f"There is no folder {start}.", "Name an existing folder with --project.")
        site = light.find_site(start, self.environ)
        if named:
            source = "environment" if named == self.environ.get("OPEN_MEMEX_PROJECT") else "option"
        else:
            source = "repository" if site else "folder"
        if site is not None and not named and self._is_no_project(site.root or site.git_dir):
            # A home folder kept in git (dotfiles) must not swallow every folder below it.
            site, source = None, "folder"
        self.site = site
        root = (site.root or site.common_dir) if site is not None else os.path.realpath(start)
        if not named and self._is_no_project(root):
            what = "the home folder" if self._is_home(root) else "a file system's root"
            return "", "none", f"{root} is {what}, which is no project"
        return root, source, ""

    def _is_home(self, folder: str) -> bool:
        home = self.environ.get("HOME") or os.path.expanduser("~")
        return os.path.realpath(folder) == os.path.realpath(home)

    def _is_no_project(self, folder: str) -> bool:
        real = os.path.realpath(folder)
        return os.path.dirname(real) == real or self._is_home(real)

    @property
    def project(self) -> Project:
        """The project of here. Its keys are remembered while git's configuration is unchanged."""
        if self._project is None:
            self._project = self._identify()
        return self._project

    def _identify(self) -> Project:
        if self._source == "none":
            return Project("", "none", reason=self._reason)
        if self.site is None:
            name = _shown(os.path.basename(self._root)) or "folder"
            return Project(self._root, self._source, name, (light.folder_key(self._root),))
        cache = f"identity\0{self.site.common_dir}\0{light.identity_stamp(self.site, self.environ)}"
        known = self.index.recall(cache)
        if known:
            name, *keys = known.split("\0")
            return Project(self._root, self._source, name, tuple(keys))
        identity = self.git.identity()
        name = _shown(identity.name)
        if identity.whole:
            self.index.remember(cache, "\0".join((name, *identity.keys)))
        return Project(self._root, self._source, name, identity.keys)

    def require_project(self) -> Project:
        """The project of here; raises Refused, with the way out, where there is none."""
        project = self.project
        if project.source == "none":
            raise Refused(
                f"{project.reason}, so there is nothing here to save a project memory for.",
                "Go to the project's folder, name it with --project DIR, or use --scope personal.",
            )
        return project

    @property
    def git(self) -> GitProvider:
        """The repository of here; raises Refused where there is none."""
        if self._git is None:
            # pygit2 costs more start-up time than a whole search may take.
            from openmemex.git.provider import GitProvider

            if self.site is None:
                place = self._root or self.cwd
                raise Refused(
                    f"{place} is not in a git repository.", "Run `git init` there, or go to a repository."
                )
            self._git = GitProvider.at(self.site, self.environ)
        return self._git

    @property
    def index(self) -> MemoryIndex:
        """The memory index of this data root, opened at its first use."""
        if self._index is None:
            self._index = MemoryIndex.open(
                os.path.join(self.data_root, "index.db"), cjk=self.settings.cjk_tokenizer
            )
        return self._index

    def personal_home(self) -> Home:
        """Where personal memories live."""
        return homes.personal_home(self.data_root)

    def outbox_home(self) -> Home:
        """Where a new draft of this project goes: to where drafts already are, else under the best key."""
        project = self.require_project()
        used = (home for home in self._outboxes() if homes.holds_files(home))
        return next(used, homes.outbox_home(self.data_root, project.keys[0]))

    def _outboxes(self) -> Iterator[Home]:
        for key in self.project.keys:
            home = homes.outbox_home(self.data_root, key)
            if os.path.isdir(home.folder):
                yield home

    def repository_home(self) -> Home | None:
        """The memory folder of the repository's work tree; None without a work tree.

        Raises Refused when the folder is a link or leads out of the work tree.
        """
        if self.site is None or not self.site.root:
            return None
        return homes.repository_home(self.site.root, self.settings.memory_dir, self.project.keys[0])

    def homes(self) -> list[Home]:
        """Every place whose memories count here: personal, outboxes, repository, branches submitted to."""
        found = [self.personal_home()]
        if self.project.source == "none":
            return found
        found += self._outboxes()
        repository = None
        try:
            repository = self.repository_home()
        except Refused:
            # `doctor` and every write say why; a read goes on with what may be read.
            pass
        if repository is not None:
            found.append(repository)
            found += self._branches(repository)
        return found

    def _branches(self, repository: Home) -> Iterator[Home]:
        assert self.site is not None
        refs = state.branches(self.data_root, self.site.common_dir)
        if not refs:
            return
        try:
            here, _ = light.head(self.site)
        except OpenMemexError:
            return  # no git that reads these refs: what is in files is shown all the same
        for ref in refs:
            if ref != here:
                yield homes.branch_home(
                    self.site.common_dir, ref, self.settings.memory_dir, repository.scope_key
                )

    def reconcile(self, progress: Progress | None = None) -> Freshness:
        """Bring the index up to date with every home of here. Reads only what changed."""
        step = None if progress is None else lambda done, total: progress("Reading memories", done, total)
        freshness = self.index.reconcile(self.homes(), self.trees, progress=step)
        if freshness.read or freshness.removed:
            self.index.remember("last-sync", str(int(time.time())))
        return freshness

    @property
    def trees(self) -> _Trees:
        """How the index reads branches that are not checked out."""
        return _Trees(self)

    def close(self) -> None:
        """Let go of the index."""
        if self._index is not None:
            self._index.close()
            self._index = None


class _Trees:
    """How the index reads the memories of a branch that is not checked out, or of an old revision."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def tip(self, home: Home) -> str | None:
        """The commit that the branch points at now, read from git's files; None when it is gone."""
        site = self._workspace.site
        if home.kind == "revision":
            return home.ref.partition(":")[0]
        return None if site is None else light.read_ref(site, home.ref)

    def entries(self, home: Home) -> Mapping[str, str]:
        """File name to blob id of the memory folder in that tree."""
        return self._workspace.git.entries(self.tip(home) or home.ref, home.base)

    def blobs(self, oids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """The bytes of those blobs that are here or can be fetched."""
        return iter(self._workspace.git.here(oids).items())


def _shown(name: str) -> str:
    """A folder's name as text, whatever bytes it is made of and whatever locale this is."""
    return os.fsencode(name).decode("utf-8", "replace")


def staleness(ws: Workspace, freshness: Freshness) -> list[Notice]:
    """What a reader must know: that the index was rebuilt, is not where or what it should be, or is held."""
    notices = []
    if freshness.rebuilt:
        notices.append(Notice("rebuilt", freshness.rebuilt))
    if ws.index.warning:
        notices.append(Notice("index", ws.index.warning))
    for folder in freshness.unreadable:
        notices.append(
            Notice("unreadable", f"{folder} can't be read: of its memories this knows what it knew before.")
        )
    if not freshness.fresh and not freshness.unreadable:
        notices.append(
            Notice(
                "stale",
                "Another process holds the index: this answers from what it knew before. Try again shortly.",
            )
        )
    return notices


def unseen(ws: Workspace) -> list[Notice]:
    """That this place has no files of the memories that its repository holds, and how to see them."""
    site = ws.site
    if site is None or ws.project.source == "none":
        return []
    if not site.root:
        return [
            Notice(
                "bare",
                "This is a bare repository: the memories in it are read with --at, for example --at HEAD.",
            )
        ]
    # Nothing but a look whether this file is there may be a part of each search.
    patterns = os.path.join(site.git_dir, "info", "sparse-checkout")
    if not os.path.exists(patterns):
        return []
    try:
        home = ws.repository_home()
        if home is None or homes.holds_files(home):
            return []
        folder = home.shown(home.folder)
        number = _left_out(ws, site, folder, patterns)
    except (OpenMemexError, OSError):
        return []  # a folder that nothing is read from, or no git that can say more
    if not number:
        return []
    import shlex  # not on the path of a search that has its folder

    what = "1 memory" if number == 1 else f"{number} memories"
    return [
        Notice(
            "sparse",
            f"This sparse checkout leaves out {folder} with {what}: `git sparse-checkout add "
            f"{shlex.quote(folder)}` brings the folder; --at HEAD reads it where it is.",
        )
    ]


def _left_out(ws: Workspace, site: light.Site, folder: str, patterns: str) -> int:
    """How many memories of `folder` the patterns leave out; remembered for as long as HEAD and they stay."""
    stamp = os.stat(patterns).st_mtime_ns
    key = f"left out\0{site.git_dir}\0{folder}\0{light.head(site)[1]}\0{stamp}"
    known = ws.index.recall(key)
    if known is None:
        known = str(ws.git.left_out(folder))
        ws.index.remember(key, known)
    return int(known)

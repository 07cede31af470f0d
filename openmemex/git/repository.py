"""One repository, opened: its git program, its objects, its configuration, what it can and can't do."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from typing import Final, NamedTuple

from openmemex.errors import NotFound, Refused
from openmemex.git import light, process, staging_file
from openmemex.git.light import Site
from openmemex.git.objects import GitObjects, LibgitObjects, Objects, Signature
from openmemex.git.process import Git, Untrusted

COMMIT_HOOKS: Final = ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit")
_SAME_MOMENT_SECONDS: Final = 1.0
_FALSE: Final = frozenset({"false", "no", "off", "0", ""})

# What is there while an operation waits for the person (wt-status.c), most telling first.
_OPERATIONS: Final = (
    ("rebase-merge", "rebase"),
    ("rebase-apply/applying", "am"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer", "cherry-pick"),
    ("BISECT_LOG", "bisect"),
)


class Config:
    """git's configuration of one repository at one moment, from git itself: every include and variable
    counts.
    """

    def __init__(self, values: dict[str, list[str | None]]) -> None:
        self._values = values

    def get(self, key: str, default: str = "") -> str:
        """The value that counts (the last one), else `default`. `key` in the case in which git prints it."""
        found = self._values.get(key)
        return default if not found else found[-1] or ""

    def flag(self, key: str, default: bool = False) -> bool:
        """The value as git reads a boolean: a key without a value is true."""
        found = self._values.get(key)
        if not found:
            return default
        last = found[-1]
        return True if last is None else last.lower() not in _FALSE

    def values(self, key: str) -> list[str]:
        """Every value of a key that may stand several times, in order."""
        return [value or "" for value in self._values.get(key, [])]

    def keys(self, prefix: str) -> list[str]:
        """The keys that begin with `prefix`."""
        return [key for key in self._values if key.startswith(prefix)]


class Capabilities(NamedTuple):
    """What kind of repository this is, and who does what in it.

    `engine`: "libgit2" or "git", who reads and writes objects; `reason`: why it is not libgit2. `old_git`:
    the git here is below the oldest that is supported. `linked`: a linked work tree; `elsewhere`: the git
    folder is not in the work tree, for another reason. `index_version`: of the staging area's file, 0 without
    one. `state`: the operation that waits to be finished. `hooks`: executable hooks that a commit would
    start; `push_hook`: a push would. `signing`: commit.gpgsign; `signing_kind`: openpgp, ssh or x509 then.
    `filters`: the filter drivers that the repository's attributes name.
    """

    git_version: str
    engine: str
    reason: str
    object_format: str
    ref_storage: str
    bare: bool
    shallow: bool
    partial: bool
    sparse: bool
    shared: bool
    signing: bool
    hooks: tuple[str, ...]
    old_git: bool = False
    linked: bool = False
    elsewhere: bool = False
    state: str | None = None
    signing_kind: str = ""
    push_hook: bool = False
    index_version: int = 0
    sparse_index: bool = False
    split_index: bool = False
    fsmonitor: bool = False
    replaced: bool = False
    alternates: bool = False
    ignore_case: bool = False
    filters: tuple[str, ...] = ()


_seen: dict[str | None, str] = {}


def _version_on(environ: Mapping[str, str]) -> str:
    """The version of the git on this PATH; asked once in a process: each step of a command wants it."""
    path = environ.get("PATH")
    if path not in _seen:
        _seen[path] = process.version(environ)
    return _seen[path]


class Repository:
    """A repository at `site`. Opens libgit2 at the first use of `objects`; `config` is read anew for each
    instance.

    Make one for each operation: it sees the configuration of that moment.
    """

    def __init__(self, site: Site, environ: Mapping[str, str] = os.environ) -> None:
        self.site = site
        self.environ = environ
        self.git = Git(site, environ)
        self._config: Config | None = None
        self._objects: Objects | None = None
        self._people: dict[str, tuple[float, Signature]] = {}
        self.engine_reason = ""

    @property
    def config(self) -> Config:
        """git's configuration, read once. Raises GitFailed when git does not take this repository."""
        if self._config is None:
            values: dict[str, list[str | None]] = {}
            for line in self.git.run("config", "--list", "-z").fields:
                key, has_value, value = line.partition("\n")
                values.setdefault(key, []).append(value if has_value else None)
            if "core.repositoryformatversion" not in values:
                # git lists what is left when it does not trust a repository; any other command says so.
                self.git.run("rev-parse", "--git-dir")
            self._config = Config(values)
        return self._config

    @property
    def objects(self) -> Objects:
        """Who reads and writes objects here: libgit2 where it does it right, else git."""
        if self._objects is None:
            self._objects = self._open_objects()
        return self._objects

    def _open_objects(self) -> Objects:
        if self.shared:
            self.engine_reason = "core.sharedRepository"
            return GitObjects(self.git)
        if self.partial:
            self.engine_reason = "a partial clone"
            return GitObjects(self.git)
        if self.replaced:
            # libgit2 reads the replaced objects: what it commits would take the replacements back.
            self.engine_reason = "replaced objects"
            return GitObjects(self.git)
        import pygit2

        try:
            # NO_SEARCH: nothing but this very repository will do.
            handle = pygit2.Repository(self.site.git_dir, pygit2.enums.RepositoryOpenFlag.NO_SEARCH)
        except (pygit2.GitError, KeyError, ValueError) as error:
            # Whether git itself takes it, and if not why, is what counts.
            self.git.run("rev-parse", "--git-dir")
            self.engine_reason = str(error)
            return GitObjects(self.git)
        return LibgitObjects(handle)

    @property
    def shared(self) -> bool:
        """Whether other accounts must be able to write here too."""
        return self.config.get("core.sharedrepository", "umask").lower() not in {"umask", *_FALSE}

    @property
    def partial(self) -> bool:
        """Whether objects may be missing here because they were never fetched."""
        config = self.config
        return bool(config.get("extensions.partialclone")) or any(
            key.endswith(".promisor") and config.flag(key) for key in config.keys("remote.")
        )

    @property
    def replaced(self) -> bool:
        """Whether git shows other objects here than those that are named (git-replace(1), grafts)."""
        if not self.config.flag("core.usereplacerefs", True):
            return False
        common = self.site.common_dir
        with contextlib.suppress(OSError):
            if any(os.scandir(os.path.join(common, "refs", "replace"))):
                return True
        with contextlib.suppress(OSError), open(os.path.join(common, "packed-refs"), "rb") as file:
            if b" refs/replace/" in file.read():
                return True
        if os.path.isdir(os.path.join(common, "reftable")):
            listed = self.git.run("for-each-ref", "--count=1", "--format=x", "refs/replace/")
            return bool(listed.text)
        return os.path.exists(os.path.join(common, "info", "grafts"))

    @property
    def signing(self) -> bool:
        """Whether the user wants every commit signed."""
        return self.config.flag("commit.gpgsign")

    def require_git(self) -> None:
        """Raise Refused where the git on the PATH is missing, or older than this program can work with."""
        told = _version_on(self.environ)
        if process.is_old(told):
            raise Refused(
                f"git {told} is too old: git {process.oldest()} is the oldest that does what is needed here",
                "Install a newer git (https://git-scm.com/downloads). Nothing was changed.",
            )

    def capabilities(self) -> Capabilities:
        """Everything that decides how this repository is served."""
        engine = self.objects.engine
        config, common = self.config, self.site.common_dir
        told = process.version(self.environ)
        index = staging_file.look(os.path.join(self.site.git_dir, "index"), self.object_format)
        return Capabilities(
            git_version=told,
            engine=engine,
            reason=self.engine_reason,
            object_format=self.object_format,
            ref_storage=config.get("extensions.refstorage", "files"),
            bare=self.site.bare,
            shallow=os.path.exists(os.path.join(common, "shallow")),
            partial=self.partial,
            sparse=config.flag("core.sparsecheckout"),
            shared=self.shared,
            signing=self.signing,
            signing_kind=config.get("gpg.format", "openpgp").lower() if self.signing else "",
            hooks=self.commit_hooks(),
            old_git=process.is_old(told),
            linked=self.site.git_dir != common,
            elsewhere=self.site.git_dir == common and os.path.isfile(os.path.join(self.site.root, ".git")),
            state=self.pending_operation(),
            push_hook=self.hook("pre-push") is not None,
            index_version=index.version,
            sparse_index="sdir" in index.extensions,
            split_index="link" in index.extensions,
            fsmonitor=config.get("core.fsmonitor", "false").lower() not in _FALSE,
            replaced=self.replaced,
            alternates=os.path.exists(os.path.join(common, "objects", "info", "alternates")),
            ignore_case=config.flag("core.ignorecase"),
            filters=self._filters(),
        )

    @property
    def object_format(self) -> str:
        """sha1 or sha256."""
        return self.config.get("extensions.objectformat", "sha1")

    def _filters(self) -> tuple[str, ...]:
        """The filter drivers that attributes for the whole repository name."""
        own = self.config.get("core.attributesfile")
        files = [os.path.join(self.site.common_dir, "info", "attributes")]
        files += [os.path.join(self.site.root, ".gitattributes")] if self.site.root else []
        files += [os.path.expanduser(own)] if own else []
        named: dict[str, None] = {}
        for path in files:
            # A pipe of that name would block.
            if os.path.isfile(path):
                with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
                    for line in file:
                        rules = [] if line.lstrip().startswith("#") else line.split()[1:]
                        named.update({rule[7:]: None for rule in rules if rule.startswith("filter=")})
        return tuple(named)

    def commit_hooks(self) -> tuple[str, ...]:
        """The hooks that `git commit` would start here."""
        return tuple(name for name in COMMIT_HOOKS if self.hook(name) is not None)

    def hook(self, name: str) -> str | None:
        """The path of the hook `name` that git would start here (githooks(5)); None when it would not."""
        configured = self.config.get("core.hookspath")
        if configured:
            folder = os.path.join(self.site.root or self.site.git_dir, os.path.expanduser(configured))
        else:
            folder = os.path.join(self.site.common_dir, "hooks")
        path = os.path.join(folder, name)
        return path if os.path.isfile(path) and os.access(path, os.X_OK) else None

    def pending_operation(self) -> str | None:
        """What waits to be finished: merge, rebase, am, cherry-pick, revert or bisect; None when nothing."""
        for name, operation in _OPERATIONS:
            if os.path.lexists(os.path.join(self.site.git_dir, name)):
                return self._sequence() if name == "sequencer" else operation
        if os.path.isdir(os.path.join(self.site.common_dir, "reftable")):
            # There these are refs, and no files of their own.
            for name, operation in (("CHERRY_PICK_HEAD", "cherry-pick"), ("REVERT_HEAD", "revert")):
                if light.read_ref(self.site, name) is not None:
                    return operation
        return None

    def _sequence(self) -> str:
        """What several commits are picked or reverted one by one with, once the one in conflict is done: git
        then keeps only the list of those that are left, each with the word for what is done with it.
        """
        with contextlib.suppress(OSError):
            todo = os.path.join(self.site.git_dir, "sequencer", "todo")
            with open(todo, encoding="utf-8", errors="replace") as file:
                words = (line.split()[0] for line in file if line.strip() and not line.startswith("#"))
                return "revert" if next(words, "") == "revert" else "cherry-pick"
        return "cherry-pick"

    def resolve(self, rev: str) -> str:
        """The commit that `rev` names, in any spelling that git knows. Raises NotFound."""
        done = self.git.run(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}", check=False
        )
        oid = done.text.strip()
        if done.code != 0 or not oid:
            where = self.git.folder
            failed = process.failure("rev-parse", where, done)
            if done.code not in (1, 128) or isinstance(failed, Untrusted):
                raise failed
            raise NotFound(f"{rev!r} names no commit in {where}", "`git log --oneline --all` lists them.")
        return oid

    def signature(self, role: str) -> Signature:
        """The AUTHOR or COMMITTER of a commit made now, as git itself has it. Raises Refused when unknown.

        Asked once for what one command does: an answer of the last second still holds.
        """
        when_asked, known = self._people.get(role, (0.0, None))
        if known is not None and time.monotonic() - when_asked < _SAME_MOMENT_SECONDS:
            return known
        done = self.git.run("var", f"GIT_{role}_IDENT", check=False)
        name, _, rest = done.out.decode("utf-8", "replace").strip().rpartition(" <")
        email, _, when = rest.partition("> ")
        stamp, _, zone = when.partition(" ")
        if done.code != 0 or not zone:
            raise Refused(
                f"git does not know who commits in {self.git.folder}",
                'Run: git config --global user.name "Your Name"'
                " && git config --global user.email you@example.org",
            )
        minutes = int(zone[1:3]) * 60 + int(zone[3:5])
        found = Signature(name, email, int(stamp), -minutes if zone[0] == "-" else minutes)
        self._people[role] = (time.monotonic(), found)
        return found

    def branch_ref(self) -> tuple[str | None, str | None]:
        """light.head: the current branch's full name, and the commit it is at."""
        return light.head(self.site)

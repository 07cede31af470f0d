"""Repositories of every kind, made by real git, each a clone of one remote that a teammate pushes to."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import needed

FOLDER = ".ai/open-memex"
OLD, NEW = "01K6AB3XZQ7WVD9J1M2N4P5Q6A", "01K6AB3XZQ7WVD9J1M2N4P5Q6B"


def memory_text(memory: str, body: str) -> str:
    return (
        f"---\nid: {memory}\nschema_version: 2\nscope: project\ntype: decision\nrole: knowledge\n"
        "importance: normal\nstatus: active\ntags: []\nsource: user\n"
        'created_at: "2026-09-26T12:00:00Z"\nupdated_at: "2026-09-26T12:00:00Z"\n'
        f"supersedes: null\nsuperseded_by: null\nreview_state: approved\nreview_history: []\n---\n{body}\n"
    )


SetEnv = Callable[[str, str], None]


class Stage:
    """A bare remote with one memory, the teammate's clone of it, and the variables of who works here."""

    def __init__(self, git, folder: Path, init: tuple[str, ...] = ()) -> None:
        self.git, self.folder = git, folder
        self.environ: dict[str, str] = {}
        self.remote, self.mate = folder / "remote.git", folder / "mate"
        git("init", "-q", "-b", "main", *init, str(self.mate))
        (self.mate / "app.txt").write_text("1\n")
        (self.mate / "far" / "off").mkdir(parents=True)
        (self.mate / "far" / "off" / "x.txt").write_text("x\n")
        self.remember(OLD, "The old decision: cedar for every fence.")
        git("clone", "-q", "--bare", str(self.mate), str(self.remote))
        git("remote", "add", "origin", str(self.remote), cwd=self.mate)
        git("config", "uploadpack.allowFilter", "true", cwd=self.remote)

    def remember(self, memory: str, body: str) -> None:
        """A memory of the teammate's, committed in the teammate's clone."""
        path = self.mate / FOLDER / f"{memory}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(memory_text(memory, body))
        self.git("add", "-A", cwd=self.mate)
        self.git("commit", "-q", "-m", f"Remember {memory}", cwd=self.mate)

    def share(self, memory: str, body: str) -> None:
        """The same, pushed."""
        self.remember(memory, body)
        self.git("push", "-q", "origin", "HEAD:main", cwd=self.mate)

    def clone(self, *options: str, name: str = "here", address: str = "") -> Path:
        self.git("clone", "-q", *options, address or str(self.remote), str(self.folder / name))
        return self.folder / name


class Kind(NamedTuple):
    """`make` gives the folder to work in. `engine`: who must serve it; `told`: words that doctor must say of
    it; `stays`: an extension that the staging area's file must keep, "" for none; `new`: needs a newer git.
    """

    make: Callable[[Stage], Path]
    engine: str = "libgit2"
    told: str = ""
    stays: str = ""
    new: tuple[int, int] | None = None
    init: tuple[str, ...] = ()


def _worktree(stage: Stage) -> Path:
    main = stage.clone(name="main")
    stage.git("worktree", "add", "-q", str(stage.folder / "here"), "-b", "side", "origin/main", cwd=main)
    return stage.folder / "here"


def _bare_with_worktree(stage: Stage) -> Path:
    bare = stage.clone("--bare", name="here.git")
    stage.git("config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*", cwd=bare)
    stage.git("fetch", "-q", cwd=bare)
    stage.git("worktree", "add", "-q", str(stage.folder / "here"), "-b", "side", "origin/main", cwd=bare)
    stage.git("branch", "-q", "--set-upstream-to=origin/main", "side", cwd=bare)
    return stage.folder / "here"


def _relative_worktree(stage: Stage) -> Path:
    main = stage.clone(name="main")
    stage.git("config", "worktree.useRelativePaths", "true", cwd=main)
    stage.git("worktree", "add", "-q", "../here", "-b", "side", "origin/main", cwd=main)
    assert stage.git("config", "extensions.relativeWorktrees", cwd=main) == "true"
    return stage.folder / "here"


def _worktree_config(stage: Stage) -> Path:
    here = _worktree(stage)
    stage.git("config", "extensions.worktreeConfig", "true", cwd=here)
    stage.git("config", "--worktree", "user.name", "Only Here", cwd=here)
    return here


def _submodule(stage: Stage) -> Path:
    stage.git("config", "--global", "protocol.file.allow", "always")
    stage.git("init", "-q", str(stage.folder / "super"))
    stage.git("submodule", "--quiet", "add", str(stage.remote), "lib", cwd=stage.folder / "super")
    return stage.folder / "super" / "lib"


def _separate(stage: Stage) -> Path:
    return stage.clone(f"--separate-git-dir={stage.folder}/elsewhere.git")


def _core_worktree(stage: Stage) -> Path:
    git_dir = stage.clone("--bare", name="dot-files.git")
    here = stage.folder / "here"
    here.mkdir()
    for key, value in (("core.bare", "false"), ("core.worktree", "../here")):
        stage.git("config", key, value, cwd=git_dir)
    stage.git("config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*", cwd=git_dir)
    stage.git("--git-dir", str(git_dir), "fetch", "-q")
    stage.git("--git-dir", str(git_dir), "branch", "-q", "--set-upstream-to=origin/main", "main")
    stage.git("--git-dir", str(git_dir), "--work-tree", str(here), "reset", "-q", "--hard")
    (here / ".git").write_text(f"gitdir: {git_dir}\n")
    return here


def _named_by_environment(stage: Stage) -> Path:
    here = stage.clone()
    (here / ".git").rename(stage.folder / "hidden.git")
    stage.environ["GIT_DIR"] = str(stage.folder / "hidden.git")
    stage.environ["GIT_WORK_TREE"] = str(here)
    return here


def _inside_a_hook(stage: Stage) -> Path:
    """As the children of a hook find it: git's own names for the repository, and an index of its own."""
    here = stage.clone()
    stage.environ["GIT_DIR"] = str(here / ".git")
    stage.environ["GIT_INDEX_FILE"] = str(here / ".git" / "next-index-1.lock")
    stage.environ["GIT_PREFIX"] = ""
    return here


def _under_a_ceiling(stage: Stage) -> Path:
    here = stage.clone()
    stage.environ["GIT_CEILING_DIRECTORIES"] = str(stage.folder)
    (here / "deep" / "down").mkdir(parents=True)
    return here / "deep" / "down"


def _foreign_and_trusted(stage: Stage) -> Path:
    here = stage.clone()
    for folder, _, names in os.walk(here):
        for name in ["", *names]:
            os.chown(Path(folder, name), 4242, 4242)
    stage.git("config", "--global", "safe.directory", str(here))
    return here


def _trusted_by_a_pattern(stage: Stage) -> Path:
    here = _foreign_and_trusted(stage)
    stage.git("config", "--global", "--unset", "safe.directory")
    stage.git("config", "--global", "safe.directory", f"{stage.folder}/*")
    return here


def _unborn(stage: Stage) -> Path:
    here = stage.folder / "here"
    stage.git("init", "-q", "-b", "main", str(here))
    stage.git("remote", "add", "origin", str(stage.remote), cwd=here)
    return here


def _shallow(stage: Stage) -> Path:
    stage.remember(OLD, "The old decision, once more: cedar for every fence.")
    stage.git("push", "-q", "origin", "HEAD:main", cwd=stage.mate)
    return stage.clone("--depth=1", address=f"file://{stage.remote}")


def _partial(stage: Stage) -> Path:
    return stage.clone("--filter=blob:none", address=f"file://{stage.remote}")


def _sparse(stage: Stage) -> Path:
    here = stage.clone()
    stage.git("sparse-checkout", "set", "--cone", ".ai", cwd=here)
    assert not (here / "far").exists()
    return here


def _sparse_index(stage: Stage) -> Path:
    here = stage.clone()
    stage.git("sparse-checkout", "set", "--cone", "--sparse-index", ".ai", cwd=here)
    return here


def _split_index(stage: Stage) -> Path:
    here = stage.clone()
    stage.git("config", "core.splitIndex", "true", cwd=here)
    stage.git("update-index", "--split-index", cwd=here)
    return here


def _index_v4(stage: Stage) -> Path:
    here = stage.clone()
    stage.git("config", "index.version", "4", cwd=here)
    stage.git("update-index", "--index-version=4", cwd=here)
    return here


def _untracked_cache(stage: Stage) -> Path:
    here = stage.clone()
    stage.git("update-index", "--untracked-cache", cwd=here)
    stage.git("status", cwd=here)
    return here


def _fsmonitor(stage: Stage) -> Path:
    here = stage.clone()
    # The second version of the hook's protocol: a token, then "everything may have changed".
    hook = stage.folder / "monitor"
    hook.write_text("#!/bin/sh\nprintf 'token\\0/\\0'\n")
    hook.chmod(0o755)
    stage.git("config", "core.fsmonitor", str(hook), cwd=here)
    stage.git("status", cwd=here)
    return here


def _plain(stage: Stage) -> Path:
    return stage.clone()


def _alternates(stage: Stage) -> Path:
    return stage.clone("--shared")


def _packed(stage: Stage) -> Path:
    here = stage.clone()
    stage.git("pack-refs", "--all", cwd=here)
    stage.git("repack", "-q", "-a", "-d", "--write-bitmap-index", cwd=here)
    stage.git("multi-pack-index", "write", cwd=here)
    stage.git("commit-graph", "write", "--reachable", "--changed-paths", cwd=here)
    assert not (here / ".git" / "refs" / "heads" / "main").exists()
    return here


def _replaced(stage: Stage) -> Path:
    """HEAD's commit is shown with another tree: what git commits next goes on top of that one."""
    here = stage.clone()
    head = stage.git("rev-parse", "HEAD", cwd=here)
    (here / "app.txt").write_text("as it should have been\n")
    stage.git("add", "app.txt", cwd=here)
    tree = stage.git("write-tree", cwd=here)
    other = stage.git("commit-tree", "-m", "Another past", tree, cwd=here)
    stage.git("replace", head, other, cwd=here)
    assert stage.git("status", "--porcelain", cwd=here) == ""
    return here


def _ignore_case(stage: Stage) -> Path:
    here = stage.clone()
    stage.git("config", "core.ignorecase", "true", cwd=here)
    return here


def _odd_neighbours(stage: Stage) -> Path:
    here = stage.clone()
    folder = os.fsencode(here / FOLDER)
    for name in (b"caf\xe9.md", b"tab\there.md", b"new\nline.md"):
        Path(os.fsdecode(os.path.join(folder, name))).write_text("a neighbour\n")
    stage.git("add", "-A", cwd=here)
    stage.git("commit", "-q", "-m", "neighbours", cwd=here)
    stage.git("push", "-q", cwd=here)
    stage.git("pull", "-q", "origin", "main", cwd=stage.mate)
    return here


def _crlf(stage: Stage) -> Path:
    here = stage.clone("-c", "core.autocrlf=true")
    assert b"\r\n" in (here / FOLDER / f"{OLD}.md").read_bytes()
    return here


def _group(stage: Stage) -> Path:
    here = stage.clone()
    stage.git("config", "core.sharedRepository", "group", cwd=here)
    return here


def _reftable(stage: Stage) -> Path:
    here = stage.clone("--ref-format=reftable")
    assert stage.git("rev-parse", "--show-ref-format", cwd=here) == "reftable"
    return here


KINDS: dict[str, Kind] = {
    "plain": Kind(_plain),
    "linked work tree": Kind(_worktree, told="a linked work tree"),
    "work tree of a bare repository": Kind(_bare_with_worktree, told="a linked work tree"),
    "relative work tree": Kind(_relative_worktree, told="a linked work tree", new=(2, 48)),
    "worktreeConfig": Kind(_worktree_config, told="a linked work tree"),
    "submodule": Kind(_submodule, told="whose git folder is elsewhere"),
    "separate git dir": Kind(_separate, told="whose git folder is elsewhere"),
    "core.worktree": Kind(_core_worktree),
    "GIT_DIR and GIT_WORK_TREE": Kind(_named_by_environment),
    "inside a hook": Kind(_inside_a_hook),
    "GIT_CEILING_DIRECTORIES": Kind(_under_a_ceiling),
    "foreign owner, trusted": Kind(_foreign_and_trusted),
    "foreign owner, trusted by a pattern": Kind(_trusted_by_a_pattern, engine="git", new=(2, 46)),
    "unborn": Kind(_unborn),
    "shallow": Kind(_shallow, told="a shallow clone"),
    "partial": Kind(_partial, engine="git", told="a partial clone"),
    "sparse": Kind(_sparse, told="a sparse checkout"),
    "sparse index": Kind(_sparse_index, told="with a sparse index", stays="sdir"),
    "split index": Kind(_split_index, told="a split staging area", stays="link"),
    "index version 4": Kind(_index_v4, told="version 4"),
    "untracked cache": Kind(_untracked_cache, stays="UNTR"),
    "fsmonitor": Kind(_fsmonitor, told="a file system monitor", stays="FSMN"),
    "alternates": Kind(_alternates, told="borrowing objects"),
    "packed, commit-graph, bitmap": Kind(_packed),
    "replaced objects": Kind(_replaced, engine="git", told="replaced objects"),
    "ignoreCase": Kind(_ignore_case, told="takes a.md and A.md for one name"),
    "neighbours that are no UTF-8": Kind(_odd_neighbours),
    "CRLF checkout": Kind(_crlf),
    "shared by a group": Kind(_group, engine="git", told="shared with other accounts"),
    "sha256": Kind(_plain, engine="git", told="sha256", init=("--object-format=sha256",)),
    "reftable": Kind(_reftable, engine="git", told="refs in a reftable", new=(2, 45)),
}


def git_for(kind: Kind, setenv: SetEnv) -> None:
    """Put the newer git first on the PATH where a kind needs it."""
    if kind.new is not None:
        folder = needed.new_git()
        assert needed.version(folder) >= kind.new, f"{folder} is too old for this"
        setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

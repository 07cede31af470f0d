"""What the tests of commits share: two memories, a repository full of unfinished work, and what must stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from openmemex.errors import OpenMemexError
from openmemex.git.provider import GitProvider

M1 = ".ai/open-memex/01ARZ3NDEKTSV4RRFFQ69G5FAV.md"
M2 = ".ai/open-memex/01BX5ZZKBKACTAV9WEVGEMMVRZ.md"
FIRST = b"---\nid: one\n---\nfirst\n"
SECOND = b"---\nid: one\n---\nsecond\n"


def provider(repo):
    found = GitProvider.open(str(repo))
    assert found is not None
    return found


def write(repo: Path, path: str, data: bytes) -> bytes:
    file = repo / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return data


def remember(repo: Path, path: str = M1, data: bytes = FIRST, **options):
    return provider(repo).commit({path: write(repo, path, data)}, message=f"Remember {path[-9:]}", **options)


def own_work(git, repo: Path) -> list[str]:
    """Everything of the staging area and the work tree but the memories: whole outputs, line by line."""
    lines = git("ls-files", "-s", "-t", cwd=repo).splitlines()
    lines += git("status", "--porcelain=v2", "-uall", cwd=repo).splitlines()
    for cached in ([], ["--cached"]):
        lines += git("diff", *cached, "--", ".", ":!.ai", cwd=repo).splitlines()
    return [line for line in lines if ".ai/" not in line]


def busy_repo(git, make_repo) -> Path:
    """Staged, partly staged, added, promised (`add -N`), deleted, unstaged and untracked work at once."""
    repo = make_repo()
    for name in ("staged", "partly", "unstaged", "gone"):
        (repo / name).write_text("0\n")
    git("add", ".", cwd=repo)
    git("commit", "-qm", "work", cwd=repo)
    (repo / "staged").write_text("1\n")
    (repo / "partly").write_text("1\n")
    (repo / "new").write_text("1\n")
    git("add", "staged", "partly", "new", cwd=repo)
    (repo / "partly").write_text("2\n")
    (repo / "unstaged").write_text("1\n")
    (repo / "promised").write_text("full\n")
    git("add", "-N", "promised", cwd=repo)
    git("rm", "-q", "gone", cwd=repo)
    (repo / "untracked").write_text("1\n")
    return repo


def changed_by(git, repo, rev="HEAD"):
    return git("show", "--format=", "--name-only", "--no-renames", rev, cwd=repo).splitlines()


def head(git, repo, rev="HEAD"):
    return git("rev-parse", "--verify", rev, cwd=repo)


def same(git, repo, act):
    """Run `act`, which must be refused and change nothing at all; return the refusal."""
    before = (own_work(git, repo), git("for-each-ref", cwd=repo), git("ls-files", "-s", "-t", cwd=repo))
    with pytest.raises(OpenMemexError) as refused:
        act()
    assert before == (
        own_work(git, repo),
        git("for-each-ref", cwd=repo),
        git("ls-files", "-s", "-t", cwd=repo),
    )
    return refused.value


def hook(repo, name, script, folder=None):
    """Install an executable hook, in `.git/hooks` or in `folder`."""
    place = folder or repo / ".git" / "hooks"
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_text(f"#!/bin/sh\n{script}\n")
    (place / name).chmod(0o755)


def everything(git, repo: Path) -> list[str]:
    """All that a commit elsewhere must leave alone: work tree, staging area, HEAD, stash, work trees."""
    return [
        *own_work(git, repo),
        git("ls-files", "-s", "-t", cwd=repo),
        git("rev-parse", "--symbolic-full-name", "HEAD", cwd=repo),
        *git("reflog", "--format=%H %gs", cwd=repo).splitlines(),
        git("stash", "list", cwd=repo),
        git("worktree", "list", "--porcelain", cwd=repo),
        *sorted(str(p.relative_to(repo)) for p in repo.rglob("*") if ".git/" not in str(p)),
    ]

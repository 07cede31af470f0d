"""What a project is known by outlives everything that one clone does with its own history."""

from __future__ import annotations

import pytest

from tests.git.commits import provider

DONE = {
    "a root that is replaced": lambda git, repo, root: git(
        *("replace", root, git("commit-tree", "-m", "another past", f"{root}^{{tree}}", cwd=repo)), cwd=repo
    ),
    "a root that is grafted onto another": lambda git, repo, root: git(
        *("replace", "--graft", root, git("commit-tree", "-m", "older", f"{root}^{{tree}}", cwd=repo)),
        cwd=repo,
    ),
    "a history that is cut short": lambda git, repo, root: git("replace", "--graft", "HEAD", cwd=repo),
    "refs and objects packed": lambda git, repo, root: (
        git("pack-refs", "--all", cwd=repo),
        git("gc", "-q", "--prune=now", cwd=repo),
    ),
    "another branch checked out": lambda git, repo, root: git("switch", "-q", "-c", "other", cwd=repo),
    "HEAD detached": lambda git, repo, root: git("switch", "-q", "--detach", root, cwd=repo),
    "colours, formats, dates": lambda git, repo, root: [
        git("config", key, value, cwd=repo)
        for key, value in (
            ("color.ui", "always"),
            ("format.pretty", "fuller"),
            ("log.date", "relative"),
            ("log.decorate", "full"),
            ("log.showRoot", "true"),
            ("log.abbrevCommit", "true"),
            ("core.abbrev", "5"),
        )
    ],
}


@pytest.mark.parametrize("what", DONE)
def test_the_root_commit_and_the_keys_stay(git, make_repo, what):
    repo = make_repo(commits=3)
    before = provider(repo).identity()
    root = git("rev-list", "--max-parents=0", "HEAD", cwd=repo)
    assert before.root_commit == root
    DONE[what](git, repo, root)
    assert provider(repo).identity() == before

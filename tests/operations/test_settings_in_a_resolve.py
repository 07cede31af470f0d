"""Resolve where the person's own settings or a rarer command made the conflict look otherwise."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from merging_repos import Conflicts, memory_id, text_of

from openmemex.memory import frontmatter
from openmemex.operations.resolve import preview, resolve
from openmemex.settling import Takes
from openmemex.workspace import Workspace

ID = memory_id(1)
BASE = text_of(1, tags="[a]")
OURS = text_of(1, tags="[a, b]", type="gotcha", updated_at='"2026-09-27T12:00:00Z"')
THEIRS = text_of(1, tags="[a, c]", importance="high", updated_at='"2026-09-28T12:00:00Z"')


@pytest.fixture
def conflicts(make_repo, git, monkeypatch) -> Conflicts:
    monkeypatch.setenv("GIT_EDITOR", ":")
    return Conflicts(make_repo(), git)


@pytest.fixture
def here() -> Iterator[Callable[[Path], Workspace]]:
    opened: list[Workspace] = []

    def open_(folder: Path) -> Workspace:
        opened.append(Workspace.open(cwd=str(folder), environ=os.environ))
        return opened[-1]

    yield open_
    for one in opened:
        one.close()


def read(file: Path):
    return frontmatter.parse(file.read_bytes(), stem=file.stem).memory


SETTINGS = {
    "zdiff3": ["merge.conflictStyle=zdiff3"],
    "short ids": ["core.abbrev=4", "log.abbrevCommit=true"],
    "colours and columns": ["color.ui=always", "column.ui=always", "core.pager=false"],
    "quoted names": ["core.quotePath=true", "status.relativePaths=true", "diff.noprefix=true"],
    "no renames": ["merge.renames=false", "diff.renames=false"],
    "signatures shown": ["log.showSignature=true", "merge.verifySignatures=false"],
    "recorded resolutions": ["rerere.enabled=true", "rerere.autoUpdate=true"],
}


@pytest.mark.parametrize("driver", [False, True], ids=["git alone", "with the driver"])
@pytest.mark.parametrize("name", SETTINGS)
def test_the_same_comes_of_it_with_every_setting(name, driver, conflicts, here, git, home):
    for setting in SETTINGS[name]:
        key, _, value = setting.partition("=")
        git("config", key, value, cwd=conflicts.repo)
    theirs = (
        THEIRS.replace("the VPN", "no VPN") if not driver else THEIRS.replace("type: fact", "type: howto")
    )
    if driver:
        (conflicts.repo / ".gitattributes").write_text("*.md merge=openmemex\n")
        line = f"{sys.executable} -m openmemex merge-driver %O %A %B %P"
        git("config", "merge.openmemex.driver", line, cwd=conflicts.repo)
    conflicts.apart({1: BASE}, {1: OURS}, {1: theirs})
    assert git.run("merge", "topic", cwd=conflicts.repo).returncode == 1
    found = preview(here(conflicts.repo))
    assert (found.sides.ours, found.sides.theirs) == ("main", "topic")
    takes = Takes({"type": "ours"}) if driver else Takes()
    done = resolve(here(conflicts.repo), [ID], takes)
    assert [one.case.memory_id for one in done.done] == [ID] and done.next == ("git merge --continue",)
    assert not (home.data / "rescued").exists(), "git's own lines are nobody's words"
    memory = read(conflicts.file(1))
    assert (memory.type, memory.importance, memory.tags) == ("gotcha", "high", ("a", "b", "c"))
    assert memory.body == ("Deploys need the VPN.\n" if driver else "Deploys need no VPN.\n")
    git("merge", "--continue", cwd=conflicts.repo)
    assert conflicts.status() == "" and git("fsck", "--strict", "--no-dangling", cwd=conflicts.repo) == ""


def test_a_merge_commit_that_a_rebase_makes_again_is_resolved_and_goes_on(conflicts, here, git):
    repo = conflicts.repo
    conflicts.commit({1: BASE}, "base")
    git("switch", "-q", "-c", "side", cwd=repo)
    conflicts.commit({1: THEIRS}, "of side")
    git("switch", "-q", "-c", "work", "main", cwd=repo)
    conflicts.commit({1: OURS}, "of work")
    assert git.run("merge", "side", cwd=repo).returncode == 1
    resolve(here(repo))
    git("merge", "--continue", cwd=repo)
    settled = conflicts.file(1).read_bytes()
    git("switch", "-q", "main", cwd=repo)
    (repo / "app.txt").write_text("main went on\n")
    git("commit", "-q", "-a", "-m", "went on", cwd=repo)
    git("switch", "-q", "work", cwd=repo)
    assert git.run("rebase", "--rebase-merges", "main", cwd=repo).returncode == 1
    found = preview(here(repo))
    assert found.sides.operation == "rebase" and [one.case.memory_id for one in found.ready] == [ID]
    done = resolve(here(repo))
    assert done.next == ("git rebase --continue",)
    git("rebase", "--continue", cwd=repo)
    assert conflicts.status() == "" and conflicts.file(1).read_bytes() == settled
    assert git("log", "-1", "--format=%p", cwd=repo).count(" ") == 1, "it is a merge again"
    assert git("symbolic-ref", "--short", "HEAD", cwd=repo) == "work"


def test_commits_that_are_picked_in_a_row_are_each_resolved(conflicts, here, git):
    repo = conflicts.repo
    conflicts.commit({1: BASE}, "base")
    git("switch", "-q", "-c", "topic", cwd=repo)
    conflicts.commit({1: THEIRS}, "first")
    conflicts.commit({1: THEIRS.replace("[a, c]", "[a, c, d]")}, "second")
    git("switch", "-q", "main", cwd=repo)
    conflicts.commit({1: OURS}, "ours")
    assert git.run("cherry-pick", "topic~1", "topic", cwd=repo).returncode == 1
    for number in range(2):
        found = preview(here(repo))
        assert found.sides.operation == "cherry-pick"
        assert ('"first"', '"second"')[number] in found.sides.theirs
        assert resolve(here(repo)).next == ("git cherry-pick --continue",)
        went_on = git.run("cherry-pick", "--continue", cwd=repo)
        assert went_on.returncode == (1 if number == 0 else 0), went_on.stderr
    memory = read(conflicts.file(1))
    assert (memory.type, memory.importance, set(memory.tags)) == ("gotcha", "high", {"a", "b", "c", "d"})
    assert conflicts.status() == "" and git("log", "-2", "--format=%s", cwd=repo) == "second\nfirst"

"""A branch that is a symbolic ref stands for another one: it is that one that moves or is checked out."""

from __future__ import annotations

import pytest

from openmemex.errors import Refused
from tests.git.commits import FIRST, M1, M2, SECOND, changed_by, everything, head, hook, provider, same, write


@pytest.fixture
def repo(git, make_repo):
    """`alias` stands for `main`, which is checked out; `short` for `topic`, which is not."""
    repo = make_repo(commits=2)
    git("branch", "topic", "main~1", cwd=repo)
    git("symbolic-ref", "refs/heads/alias", "refs/heads/main", cwd=repo)
    git("symbolic-ref", "refs/heads/short", "refs/heads/topic", cwd=repo)
    git("symbolic-ref", "refs/heads/twice", "refs/heads/alias", cwd=repo)
    return repo


@pytest.mark.parametrize("hooks", [False, True], ids=["no hooks", "hooks"])
@pytest.mark.parametrize("branch", ["alias", "twice"])
def test_the_branch_that_is_checked_out_does_not_move_by_another_name(git, repo, hooks, branch):
    if hooks:
        hook(repo, "pre-commit", "exit 0")
    before = everything(git, repo)
    refusal = same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x", branch=branch))
    assert refusal.message.startswith(f"Branch {branch} stands for main, which is checked out here")
    assert everything(git, repo) == before


def test_nor_does_one_that_is_checked_out_under_the_other_name(git, repo):
    git("symbolic-ref", "HEAD", "refs/heads/alias", cwd=repo)
    refusal = same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x", branch="main"))
    assert "Branch main is checked out here" in refusal.message
    provider(repo).commit({M1: write(repo, M1, FIRST)}, message="x")
    assert changed_by(git, repo, "main") == [M1] and git("status", "--porcelain", cwd=repo) == ""


def test_the_current_branch_is_the_one_that_it_stands_for_as_git_itself_has_it(git, repo, make_remote, clone):
    remote = make_remote(repo)
    git("symbolic-ref", "HEAD", "refs/heads/alias", cwd=repo)
    assert git("status", "--short", "--branch", cwd=repo).splitlines()[0].startswith("## main")
    assert provider(repo).head().branch == "main"
    made = provider(repo).commit({M1: write(repo, M1, FIRST)}, message="x")
    assert (made.branch, provider(repo).push("main").after) == ("main", made.commit)
    mate = clone(remote, "mate")
    write(mate, M2, SECOND)
    git("add", ".", cwd=mate)
    git("commit", "-qm", "of the mate", cwd=mate)
    git("push", "-q", "origin", "HEAD:main", cwd=mate)
    got = provider(repo).pull()
    assert (got.branch, got.after) == ("main", head(git, mate)) == ("main", head(git, repo, "main"))
    assert (repo / ".git" / "HEAD").read_text() == "ref: refs/heads/alias\n"


@pytest.mark.parametrize("rebasing", [False, True], ids=["checked out", "being rebased"])
def test_nor_does_one_of_another_work_tree(git, repo, tmp_path, rebasing):
    other = tmp_path / "other"
    git("worktree", "add", "-q", str(other), "topic", cwd=repo)
    if rebasing:
        write(other, "a.txt", b"of topic\n")
        git("add", "a.txt", cwd=other)
        git("commit", "-qm", "topic", cwd=other)
        git.run("rebase", "-q", "-x", "false", "main", cwd=other)
    refusal = same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x", branch="short"))
    assert "Branch short stands for topic, which is checked out in" in refusal.message
    found = provider(repo).checked_out_at("short")
    assert found is not None and ("rebased" in found) is rebasing


def test_a_work_tree_whose_branch_stands_for_that_of_another_commits_nothing(git, repo, tmp_path):
    other = tmp_path / "other"
    git("worktree", "add", "-q", "--detach", str(other), cwd=repo)
    git("symbolic-ref", "HEAD", "refs/heads/alias", cwd=other)
    write(other, M1, FIRST)
    refusal = same(git, other, lambda: provider(other).commit({M1: FIRST}, message="x"))
    assert "alias stands for main, which is checked out in" in refusal.message
    assert str(repo) in refusal.message and git("status", "--porcelain", cwd=repo) == ""


@pytest.mark.parametrize("hooks", [False, True], ids=["no hooks", "hooks"])
def test_one_that_is_free_gets_the_commit_and_stays_a_symbolic_ref(git, repo, hooks):
    if hooks:
        hook(repo, "pre-commit", "exit 0")
    before, tip = everything(git, repo), head(git, repo, "topic")
    made = provider(repo).commit({M1: FIRST}, message="x", branch="short")
    assert made.branch == "topic" and head(git, repo, "topic") == made.commit
    assert head(git, repo, "topic~1") == tip
    assert git("symbolic-ref", "refs/heads/short", cwd=repo) == "refs/heads/topic"
    assert everything(git, repo) == before


@pytest.mark.parametrize("hooks", [False, True], ids=["no hooks", "hooks"])
def test_one_that_stands_for_a_branch_to_come_makes_that_branch(git, repo, hooks):
    git("symbolic-ref", "refs/heads/soon", "refs/heads/memex/new", cwd=repo)
    if hooks:
        hook(repo, "pre-commit", "exit 0")
    made = provider(repo).commit({M1: FIRST}, message="x", branch="soon")
    assert made.branch == "memex/new" and head(git, repo, "refs/heads/memex/new") == made.commit
    provider(repo).commit({M2: SECOND}, message="y", branch="soon")
    assert head(git, repo, "memex/new~1") == made.commit


def test_one_that_stands_for_no_branch_is_refused(git, repo):
    git("update-ref", "refs/remotes/origin/main", "HEAD", cwd=repo)
    git("symbolic-ref", "refs/heads/far", "refs/remotes/origin/main", cwd=repo)
    refusal = same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x", branch="far"))
    assert "refs/remotes/origin/main" in refusal.message
    with pytest.raises(Refused, match="no branch of this repository"):
        provider(repo).push("far")


def test_a_push_goes_to_the_namesake_of_what_it_stands_for_as_gits_own_does(git, repo, make_remote):
    remote = make_remote(repo)
    git("update-ref", "-d", "refs/heads/alias", cwd=remote)
    git("update-ref", "--no-deref", "-d", "refs/heads/short", cwd=remote)
    made = provider(repo).commit({M1: FIRST}, message="x", branch="short")
    pushed = provider(repo).push("short")
    assert (pushed.ref, pushed.after) == ("refs/heads/topic", made.commit)
    assert head(git, remote, "topic") == made.commit
    assert git.run("rev-parse", "--verify", "refs/heads/short", cwd=remote).returncode != 0

"""The fixtures keep their word: a test sees neither the person's configuration nor their memories."""

from __future__ import annotations

import os
import subprocess
import sys

import pygit2
import pytest


def test_git_sees_only_the_tests_own_configuration(home, git, make_repo):
    repo = make_repo()
    origins = git("config", "--list", "--show-origin", cwd=repo).splitlines()
    files = {line.split("\t")[0].removeprefix("file:") for line in origins}
    assert files == {str(home / ".gitconfig"), ".git/config"}
    assert git("log", "-1", "--format=%an <%ae>", cwd=repo) == "Ada Example <ada@example.org>"


def test_libgit2_sees_only_the_tests_own_configuration(home, git, make_repo):
    repo = make_repo()
    git("config", "--global", "memex.canary", "here")
    values = {entry.name: entry.value for entry in pygit2.Repository(str(repo)).config}
    assert values["memex.canary"] == "here"
    assert values["user.name"] == "Ada Example"
    shared = {entry.name for entry in pygit2.Repository(str(repo)).config if entry.level.value in (1, 2, 3)}
    assert shared == set()


@pytest.mark.parametrize("number", [1, 2])
def test_each_test_begins_with_an_empty_home(home, number):
    assert sorted(p.name for p in home.iterdir()) == [".gitconfig"]
    assert not home.data.exists() and not home.config.exists()
    (home / f"left-by-{number}").touch()


def test_processes_inherit_the_tests_home(home):
    code = "import os,sys; print(os.path.expanduser('~')); print(os.environ['OPEN_MEMEX_HOME'])"
    lines = subprocess.check_output([sys.executable, "-c", code], text=True).splitlines()
    assert lines == [str(home), str(home.data)]


def test_no_foreign_variables_are_left():
    ours = {n for n in os.environ if n.startswith(("GIT_", "OPEN_MEMEX_"))}
    assert ours == {
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_TERMINAL_PROMPT",
        "GIT_CEILING_DIRECTORIES",
        "OPEN_MEMEX_HOME",
        "OPEN_MEMEX_CONFIG",
    }


def test_fixed_dates_fix_the_commit_id(fixed_dates, git, make_repo):
    first, second = make_repo("one"), make_repo("two")
    assert git("rev-parse", "HEAD", cwd=first) == git("rev-parse", "HEAD", cwd=second)


def test_a_remote_and_a_clone_carry_a_commit_over(git, make_repo, make_remote, clone):
    repo = make_repo()
    copy = clone(make_remote(repo))
    (repo / "b.txt").write_text("b\n")
    git("add", "b.txt", cwd=repo)
    git("commit", "-qm", "Add b", cwd=repo)
    git("push", "-q", cwd=repo)
    git("pull", "-q", "--ff-only", cwd=copy)
    assert (copy / "b.txt").read_text() == "b\n"


def test_a_failing_git_fails_the_test(git, make_repo):
    with pytest.raises(AssertionError, match="exit"):
        git("no-such-command", cwd=make_repo())

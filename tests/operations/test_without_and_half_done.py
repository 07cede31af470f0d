"""What can't be done, or was done in part, never looks like done."""

from __future__ import annotations

import pytest

from tests.git.commits import hook


@pytest.mark.parametrize(
    "words",
    [["resolve"], ["search", "kettle", "--at", "HEAD"], ["list", "--at", "2039-01-01"], ["init", "--git"]],
    ids=" ".join,
)
def test_what_needs_git_says_so_where_there_is_none(run_cli, om, make_repo, tmp_path, words):
    repo = make_repo()
    om("add", "the kettle is red", cwd=repo)
    (tmp_path / "nothing").mkdir()
    without = {"PATH": str(tmp_path / "nothing")}
    done = run_cli(*words, cwd=repo, env=without)
    assert (done.returncode, done.stdout) == (1, "")
    assert "git was not found on the PATH" in done.stderr and "Install git" in done.stderr
    assert "Traceback" not in done.stderr and not (repo / ".ai").exists()
    assert om("search", "kettle", cwd=repo, env=without)["total"] == 1


@pytest.mark.parametrize("branch", [None, "memex/out"])
def test_after_a_refused_push_no_line_says_that_it_is_done(run_cli, om, make_repo, make_remote, git, branch):
    repo = make_repo()
    remote = make_remote(repo)
    hook(remote, "pre-receive", "echo 'not today'; exit 1", remote / "hooks")
    before = git("for-each-ref", cwd=remote)
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    done = run_cli("submit", memory, "--push", *(["--branch", branch] if branch else []), cwd=repo)
    assert (done.returncode, done.stdout) == (4, "")
    first, *rest = done.stderr.splitlines()
    assert "not pushed" in first and "  | not today" in rest
    assert git("for-each-ref", cwd=remote) == before

"""A whole life of memories in a repository whose path has all that a shell or git could trip over."""

from __future__ import annotations

import os

from merging_repos import Conflicts, text_of

from tests.git.commits import hook

NAME = '-it\'s "[a]" b*\n%20 $(x) \\ ~é\udce9'


def test_all_that_git_does_works_in_a_folder_of_any_name(
    om, git, make_repo, make_remote, monkeypatch, tmp_path
):
    monkeypatch.setenv("GIT_EDITOR", ":")
    (tmp_path / "root").mkdir()
    repo = make_repo(f"root/{NAME}")
    remote = make_remote(repo, f"root/{NAME} remote.git")

    def add(text, cwd=repo):
        return om("add", text, cwd=cwd)["id"]

    assert om("submit", add("the kettle is red"), cwd=repo)["engine"] == "libgit2"
    hook(repo, "pre-commit", "exit 0")
    done = om("submit", add("the cup is blue"), "--branch", "memex/out", "--push", cwd=repo)
    assert (done["engine"], done["pushed"]) == ("git commit", True)
    assert git("rev-parse", "memex/out", cwd=remote) == done["commit"]
    (repo / ".git" / "hooks" / "pre-commit").unlink()
    om("init", "--git", cwd=repo)
    git("add", "-A", cwd=repo)
    git("commit", "-qm", "attributes", cwd=repo)
    c = Conflicts(repo, git)
    c.apart({1: text_of(1)}, {1: text_of(1, type="gotcha")}, {1: text_of(1, type="lesson", tags="[x]")})
    told = git.run("merge", "topic", cwd=repo)
    assert told.returncode == 1 and "`open-memex resolve" in told.stderr  # the driver was found and ran
    assert om("resolve", "--all", "--take", "type=ours", cwd=repo)["next"] == ["git merge --continue"]
    git("merge", "--continue", cwd=repo)
    assert c.status() == "" and "tags: [x]" in c.file(1).read_text()
    assert "+tag: x\n" in git("diff", "HEAD^1", cwd=repo)
    tree = tmp_path / "root" / f"{NAME} tree"
    git("worktree", "add", "-q", "-b", "side", str(tree), cwd=repo)
    refused = om("submit", add("the fork is green"), "--branch", "side", cwd=repo, code=1)["error"]
    assert "checked out in" in refused["message"]
    assert om("submit", add("the spoon is long", tree), cwd=tree)["branch"] == "side"
    assert om("search", "kettle", "--at", "HEAD", cwd=tree)["total"] == 1
    assert all(check["ok"] for check in om("doctor", cwd=repo)["checks"])
    assert len(os.listdir(tmp_path / "root")) == 3 and git("fsck", "--no-dangling", cwd=repo) == ""

"""Submit in real repositories: each change of a shared memory, each way to a branch, one memory in all."""

from __future__ import annotations

import subprocess

import pytest

from tests.git.commits import everything, hook


def path_of(memory: str) -> str:
    return f".ai/open-memex/{memory}.md"


@pytest.fixture
def kettle(om, make_repo):
    """A repository with one shared memory; gives the repository and the memory's id."""
    repo = make_repo()
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    om("submit", memory, cwd=repo)
    return repo, memory


def changed(git, repo, rev="HEAD") -> list[str]:
    return git("show", "--format=", "--name-status", "--no-renames", rev, cwd=repo).splitlines()


def seen(om, cwd, word="kettle") -> dict[str, object]:
    """Where each surface finds the memory: once, and the same in all of them."""
    hits = om("search", word, cwd=cwd)["hits"]
    items = [row for row in om("list", cwd=cwd)["items"] if word in row["summary"]]
    assert [hit["id"] for hit in hits] == [row["id"] for row in items], (hits, items)
    assert len(hits) == 1
    shown = om("show", hits[0]["id"], cwd=cwd)
    assert shown["branch"] == hits[0]["branch"] == items[0]["branch"]
    return {"id": hits[0]["id"], "branch": hits[0]["branch"], "state": hits[0]["review_state"]}


# --- what a submit may be of ---


def test_a_changed_memory(om, git, kettle) -> None:
    repo, memory = kettle
    om("edit", memory, "--tag", "kitchen", cwd=repo)
    done = om("submit", memory, cwd=repo)
    assert changed(git, repo) == [f"M\t{path_of(memory)}"] and done["engine"] == "libgit2"
    assert git("status", "--porcelain", cwd=repo) == "" and "kitchen" in git("show", cwd=repo)


@pytest.mark.parametrize("how", ["forget", "by hand", "git rm"])
def test_a_deleted_memory(om, git, kettle, how) -> None:
    repo, memory = kettle
    if how == "forget":
        om("forget", memory, "--yes", cwd=repo)
    elif how == "by hand":
        (repo / path_of(memory)).unlink()
    else:
        git("rm", "-q", path_of(memory), cwd=repo)
    om("submit", memory, cwd=repo)
    assert changed(git, repo) == [f"D\t{path_of(memory)}"]
    assert git("status", "--porcelain", cwd=repo) == "" and om("search", "kettle", cwd=repo)["hits"] == []


def test_a_retracted_memory(om, git, kettle) -> None:
    repo, memory = kettle
    om("forget", memory, "--soft", "--yes", cwd=repo)
    om("submit", memory, cwd=repo)
    assert changed(git, repo) == [f"M\t{path_of(memory)}"]
    assert om("search", "kettle", cwd=repo)["hits"] == []


@pytest.mark.parametrize("branch", [None, "memex/pair"])
def test_a_pair_goes_together(om, git, kettle, branch) -> None:
    repo, old = kettle
    new = om("supersede", old, "the kettle is blue", cwd=repo)["id"]
    om("submit", new, *(["--branch", branch] if branch else []), cwd=repo)
    rev = branch or "HEAD"
    assert sorted(changed(git, repo, rev)) == sorted([f"M\t{path_of(old)}", f"A\t{path_of(new)}"])
    assert f"superseded_by: {new}" in git("show", f"{rev}:{path_of(old)}", cwd=repo)
    assert seen(om, repo)["id"] == new


def test_several_at_once_are_one_commit_or_none(om, git, make_repo) -> None:
    repo = make_repo()
    ids = [om("add", f"fact {n} about kettles", cwd=repo)["id"] for n in range(3)]
    (repo / ".ai" / "open-memex").mkdir(parents=True)
    (repo / path_of(ids[1])).symlink_to("nowhere")
    assert "error" in om("submit", *ids, cwd=repo, code=1)
    assert git("log", "--oneline", cwd=repo).count("\n") == 0
    assert [p.name for p in (repo / ".ai" / "open-memex").iterdir()] == [f"{ids[1]}.md"]
    (repo / path_of(ids[1])).unlink()
    om("submit", *ids, cwd=repo)
    assert len(changed(git, repo)) == 3


# --- another branch ---


@pytest.mark.parametrize("hooks", [False, True], ids=["no hooks", "hooks"])
@pytest.mark.parametrize("place", ["clean", "dirty", "worktree"])
def test_on_a_branch_then_found_then_merged_it_is_one_memory(
    om, git, make_repo, tmp_path, monkeypatch, hooks, place
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    repo = make_repo()
    if hooks:
        hook(repo, "pre-commit", "exit 0")
    here = repo
    if place == "worktree":
        git("worktree", "add", "-q", "../wt", "-b", "side", cwd=repo)
        here = tmp_path / "wt"
    if place == "dirty":
        (repo / "app.txt").write_text("staged\n")
        git("add", "app.txt", cwd=repo)
        (repo / "app.txt").write_text("not staged\n")
        (repo / "notes.txt").write_text("untracked\n")
    memory = om("add", "the kettle is red", cwd=here)["id"]
    before = everything(git, here)
    done = om("submit", memory, "--branch", "memex/kettle", cwd=here)
    assert everything(git, here) == before
    assert done["branch"] == "memex/kettle" and done["files"] == [path_of(memory)]
    assert done["engine"] == ("git commit" if hooks else "libgit2")
    assert om("sync-status", cwd=here)["outbox"] == []
    assert seen(om, here) == {"id": memory, "branch": "memex/kettle", "state": "proposed"}
    if place == "worktree":
        assert seen(om, repo)["branch"] == "memex/kettle"
    if place == "dirty":
        git("commit", "-qam", "my own", cwd=repo)
    git("merge", "-q", "--no-ff", "-m", "merge", "memex/kettle", cwd=here)
    assert seen(om, here) == {"id": memory, "branch": None, "state": "proposed"}
    status = om("sync-status", cwd=here)
    assert status["outbox"] == [] and status["on_branches"] == []
    om("edit", memory, "--tag", "kitchen", cwd=here)
    om("submit", memory, cwd=here)
    assert om("sync-status", cwd=here)["on_branches"] == []
    git("branch", "-q", "-d", "memex/kettle", cwd=here)
    assert seen(om, here)["id"] == memory


def test_a_branch_that_is_checked_out_elsewhere_is_left_alone(om, git, make_repo, tmp_path) -> None:
    repo = make_repo()
    git("worktree", "add", "-q", "../wt", "-b", "memex/out", cwd=repo)
    deep = tmp_path / "wt" / "src" / "deep"
    deep.mkdir(parents=True)
    memory = om("add", "the kettle is red", cwd=deep)["id"]
    for env in ({}, {"GIT_DIR": str(repo / ".git")}):
        error = om("submit", memory, "--branch", "memex/out", cwd=repo, env=env, code=1)["error"]
        assert str(tmp_path / "wt") in error["message"]
        assert git("status", "--porcelain", cwd=tmp_path / "wt") == ""
    om("submit", memory, cwd=deep)
    assert changed(git, tmp_path / "wt") == [f"A\t{path_of(memory)}"]
    assert git("log", "--format=%s", "main", cwd=repo) == "Commit 1"


# --- conditions, in the words of the command ---


def test_without_an_identity_the_two_commands_are_named_and_nothing_is_lost(
    om, run_cli, git, make_repo, home
) -> None:
    repo = make_repo(commits=0)
    (home / ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n[init]\n\tdefaultBranch = main\n")
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    done = run_cli("submit", memory, cwd=repo)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "user.name" in done.stderr and "user.email" in done.stderr
    assert len(om("sync-status", cwd=repo)["outbox"]) == 1
    git("config", "user.name", "Ada", cwd=repo)
    git("config", "user.email", "ada@example.org", cwd=repo)
    om("submit", memory, cwd=repo)
    assert git("log", "--format=%P|%an", "main", cwd=repo) == "|Ada"


def test_words_of_a_hook_stay_lines_on_the_terminal_and_in_json(om, run_cli, git, make_repo) -> None:
    repo = make_repo()
    hook(repo, "pre-commit", "printf 'check a: ok\\ncheck b:\\033[31m no\\007\\n'; exit 1")
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    done = run_cli("submit", memory, cwd=repo)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[1:3] == ["  | check a: ok", "  | check b: no\\x07"]
    assert om("submit", memory, cwd=repo, code=1)["error"]["words"][0] == "check a: ok"
    assert git("status", "--porcelain", cwd=repo) == "" and len(om("sync-status", cwd=repo)["outbox"]) == 1


def test_words_of_a_hook_that_says_yes_are_shown_and_its_changes_told(om, run_cli, git, make_repo) -> None:
    repo = make_repo()
    hook(repo, "pre-commit", "echo all is well; sed -i s/red/green/ .ai/open-memex/*.md; git add .ai")
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    done = run_cli("submit", memory, cwd=repo)
    assert done.returncode == 0 and "  | all is well" in done.stderr.splitlines()
    assert f"a commit hook changed {path_of(memory)}" in done.stderr
    assert "green" in git("show", "HEAD", cwd=repo)


# --- push ---


def test_a_push_only_when_it_is_asked_for(om, git, make_repo, make_remote) -> None:
    repo = make_repo()
    remote = make_remote(repo)
    first, second = (om("add", f"kettle {n} is red", cwd=repo)["id"] for n in "ab")
    done = om("submit", first, cwd=repo)
    assert done["pushed"] is False and done["next"][0].startswith("git push")
    assert git("rev-parse", "main~1", cwd=repo) == git("rev-parse", "main", cwd=remote)
    done = om("submit", second, "--push", cwd=repo)
    assert done["pushed"] is True and not any("push" in step for step in done["next"])
    assert git("rev-parse", "main", cwd=repo) == git("rev-parse", "main", cwd=remote) == done["commit"]


def test_a_new_branch_is_pushed_without_being_checked_out(om, git, make_repo, make_remote) -> None:
    repo = make_repo()
    remote = make_remote(repo)
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    done = om("submit", memory, "--branch", "memex/out", "--push", cwd=repo)
    assert git("rev-parse", "memex/out", cwd=remote) == done["commit"]
    assert git("rev-parse", "main", cwd=remote) == git("rev-parse", "main", cwd=repo)


@pytest.mark.parametrize("branch", [None, "memex/out"])
def test_a_push_that_the_server_refuses_is_half_done_and_done_by_the_next(
    om, run_cli, git, make_repo, make_remote, branch
) -> None:
    repo = make_repo()
    remote = make_remote(repo)
    hook(remote, "pre-receive", "echo 'not today'; echo 'come back tomorrow'; exit 1", remote / "hooks")
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    words = ["submit", memory, "--push", *(["--branch", branch] if branch else [])]
    error = om(*words, cwd=repo, code=4)["error"]
    rev = branch or "main"
    commit = git("rev-parse", rev, cwd=repo)
    assert commit[:10] in error["message"] and rev in error["message"]
    assert "not today" in error["words"] and "come back tomorrow" in error["words"]
    again = error["hint"].rpartition(": ")[2]
    assert changed(git, repo, rev) == [f"A\t{path_of(memory)}"]
    assert om("sync-status", cwd=repo)["outbox"] == []
    (remote / "hooks" / "pre-receive").unlink()
    assert subprocess.run(again, shell=True, cwd=repo, capture_output=True).returncode == 0
    assert git("rev-parse", rev, cwd=remote) == commit


def test_without_a_remote_a_push_is_refused_before_anything_is_committed(om, git, make_repo) -> None:
    repo = make_repo()
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    assert "remote" in om("submit", memory, "--push", cwd=repo, code=1)["error"]["message"]
    assert git("log", "--format=%s", cwd=repo) == "Commit 1" and git("status", "--porcelain", cwd=repo) == ""


def test_a_dry_run_pushes_nothing(om, git, make_repo, make_remote) -> None:
    repo = make_repo()
    remote = make_remote(repo)
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    done = om("submit", memory, "--push", "--dry-run", "--branch", "x", cwd=repo)
    assert done["pushed"] is False and git("branch", "--list", "x", cwd=remote) == ""


# --- killed ---


@pytest.mark.parametrize(
    "point",
    ["tree-noted", "tree-added", "tree-made", "staged", "ref-moved", "branch-noted", "outbox-removed"],
)
def test_killed_with_a_branch_and_hooks_the_next_submit_finishes(
    point, om, run_cli, git, make_repo, tmp_path, monkeypatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    repo = make_repo()
    hook(repo, "pre-commit", "exit 0")
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    before = everything(git, repo)
    words = ["submit", memory, "--branch", "memex/kettle"]
    killed = run_cli(*words, cwd=repo, env={"OPEN_MEMEX_FAULT": f"submit.{point}"})
    assert killed.returncode == -9
    assert len(om("search", "kettle", cwd=repo)["hits"]) == 1
    if point == "outbox-removed":
        assert om("submit", memory, "--branch", "memex/kettle", cwd=repo)["already"]
    else:
        om(*words, cwd=repo)
    assert changed(git, repo, "memex/kettle") == [f"A\t{path_of(memory)}"]
    assert git("rev-parse", "memex/kettle~1", cwd=repo) == git("rev-parse", "main", cwd=repo)
    assert everything(git, repo) == before and list(temporary.iterdir()) == []
    assert om("sync-status", cwd=repo)["outbox"] == [] and seen(om, repo)["branch"] == "memex/kettle"
    assert git("fsck", "--strict", "--no-dangling", cwd=repo) == ""

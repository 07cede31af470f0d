"""Which project a command works for, and where its memories lie."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def test_sub_folders_worktrees_and_clones_of_one_repository_are_one_project(
    om, make_repo, make_remote, clone, git
) -> None:
    repo = make_repo()
    remote = make_remote(repo)
    deep = repo / "src" / "deep"
    deep.mkdir(parents=True)
    git("worktree", "add", "-q", "../tree", "-b", "topic", cwd=repo)
    other = clone(remote)
    keys = {om("where", cwd=place)["scope_keys"][0] for place in (repo, deep, repo.parent / "tree", other)}
    assert len(keys) == 1
    om("add", "the kettle is red", cwd=deep)
    for place in (repo, repo.parent / "tree", other):
        assert om("search", "kettle", cwd=place)["total"] == 1


def test_an_origin_that_comes_later_empties_no_outbox(om, make_repo, git) -> None:
    repo = make_repo()
    om("add", "before the origin", cwd=repo)
    git("remote", "add", "origin", "https://example.org/acme/kettle.git", cwd=repo)
    assert om("search", "before", cwd=repo)["total"] == 1
    second = om("add", "after the origin", cwd=repo)
    assert len(om("sync-status", cwd=repo)["outbox"]) == 2
    assert Path(second["path"]).parent == Path(om("list", cwd=repo)["items"][-1]["path"]).parent


def test_a_repository_without_a_commit_is_a_project(om, make_repo) -> None:
    repo = make_repo(commits=0)
    om("add", "first words", cwd=repo)
    assert om("list", cwd=repo)["total"] == 1


def test_the_home_folder_and_the_root_are_no_projects(om, run_cli, home, tmp_path) -> None:
    for place in (home, Path("/")):
        done = run_cli("add", "x y z", "--scope", "project", cwd=place)
        assert done.returncode == 1
        assert "--project" in done.stderr
        assert len(done.stderr.strip().splitlines()) == 2
        assert om("add", f"kept in {place.name or 'root'}", cwd=place)["action"] == "created"
        assert om("list", cwd=place)["items"][0]["scope"] == "personal"
    assert not (home.data / "memories").is_dir() or os.listdir(home.data / "memories") == ["personal"]
    named = om("add", "on purpose", "--scope", "project", "--project", str(home), cwd=tmp_path)
    assert named["action"] == "created"


def test_a_home_folder_kept_in_git_does_not_swallow_the_folders_below_it(om, home, git) -> None:
    git("init", "-q", cwd=home)
    project = home / "code" / "kettle"
    project.mkdir(parents=True)
    assert om("where", cwd=project)["project"] == str(project)
    om("add", "in the project", cwd=project)
    assert om("list", "--scope", "project", cwd=home)["total"] == 0


def test_project_option_and_variable_name_another_project(om, make_repo, tmp_path) -> None:
    repo = make_repo()
    om("add", "named by option", "--project", str(repo), cwd=tmp_path)
    assert om("search", "named", cwd=repo)["total"] == 1
    found = om("search", "named", cwd=tmp_path, env={"OPEN_MEMEX_PROJECT": str(repo)})
    assert found["total"] == 1


def test_a_project_folder_that_is_not_there_is_said(run_cli, tmp_path) -> None:
    done = run_cli("list", "--project", str(tmp_path / "nowhere"), cwd=tmp_path)
    assert done.returncode == 1
    assert "nowhere" in done.stderr


def test_git_dir_set_as_in_a_hook_gives_the_same_project(om, make_repo, git) -> None:
    repo = make_repo()
    git("worktree", "add", "-q", "../tree", "-b", "topic", cwd=repo)
    tree = repo.parent / "tree"
    deep = tree / "src"
    deep.mkdir()
    plain = om("where", cwd=deep)
    hook = om("where", cwd=deep, env={"GIT_DIR": git("rev-parse", "--git-dir", cwd=tree)})
    assert hook == plain


def test_personal_memories_are_found_everywhere_and_project_memories_only_at_home(
    om, make_repo, tmp_path
) -> None:
    one, other = make_repo("one"), make_repo("other")
    om("add", "mine alone is green", "--scope", "personal", cwd=one)
    om("add", "project one is green", cwd=one)
    assert {hit["scope"] for hit in om("search", "green", cwd=other)["hits"]} == {"personal"}
    assert {hit["scope"] for hit in om("search", "green", cwd=one)["hits"]} == {"personal", "project"}


@pytest.mark.parametrize("folder", ["../out", "/tmp/out", ".git/memories", "a/../../b"])
def test_a_memory_folder_outside_of_the_work_tree_is_not_taken(folder, run_cli, om, make_repo) -> None:
    repo = make_repo()
    assert run_cli("config", "set", "memoryDir", folder, cwd=repo).returncode == 2
    om("config", "set", "memoryDir", ".memories", cwd=repo)
    added = om("add", "kept elsewhere", cwd=repo)
    assert om("submit", added["id"], cwd=repo)["files"] == [f".memories/{added['id']}.md"]


def test_a_memory_folder_that_is_a_link_is_neither_read_nor_written(om, run_cli, make_repo, tmp_path) -> None:
    repo = make_repo()
    outside = tmp_path / "outside"
    outside.mkdir()
    (repo / ".ai").mkdir()
    (repo / ".ai" / "open-memex").symlink_to(outside)
    added = om("add", "stays in the outbox", cwd=repo)
    done = run_cli("submit", added["id"], cwd=repo)
    assert done.returncode == 1
    assert "symbolic link" in done.stderr
    assert list(outside.iterdir()) == []
    assert om("search", "outbox", cwd=repo)["total"] == 1
    checks = om("doctor", cwd=repo, code=1)["checks"]
    assert any("symbolic link" in check["text"] for check in checks if not check["ok"])

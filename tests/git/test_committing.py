"""A memory commit holds the named files, and the person's own work is afterwards exactly as it was."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from openmemex.errors import Refused, UsageError
from openmemex.git import committing, staging
from openmemex.git.repository import Repository
from tests.git.commits import (
    FIRST,
    M1,
    M2,
    SECOND,
    busy_repo,
    changed_by,
    head,
    hook,
    own_work,
    provider,
    remember,
    same,
    write,
)

# --- only the named files ---


def test_only_the_named_file_is_committed_and_all_other_work_stays(git, make_repo):
    repo = busy_repo(git, make_repo)
    write(repo, M2, SECOND)
    before = own_work(git, repo)
    result = remember(repo)
    assert changed_by(git, repo) == [M1]
    assert own_work(git, repo) == before
    assert result[:6] == (head(git, repo), "main", (M1,), "libgit2", False, False)
    assert result.held == result.blobs
    assert result.blobs == {M1: git("rev-parse", f"HEAD:{M1}", cwd=repo)}
    assert git("status", "--porcelain", "-uall", ".ai", cwd=repo) == f"?? {M2}"
    assert git("fsck", "--strict", "--no-dangling", cwd=repo) == ""


def test_promised_files_do_not_become_empty_ones(git, make_repo):
    repo = busy_repo(git, make_repo)
    remember(repo)
    assert "promised" not in git("ls-tree", "-r", "--name-only", "HEAD", cwd=repo).splitlines()
    assert git("diff", "--name-only", "--diff-filter=A", cwd=repo) == "promised"


def test_a_memory_that_is_partly_staged_is_committed_as_it_is_on_disk(git, make_repo):
    repo = make_repo()
    write(repo, M1, b"staged\n")
    git("add", M1, cwd=repo)
    remember(repo)
    assert git("show", f"HEAD:{M1}", cwd=repo).encode() + b"\n" == FIRST
    assert git("status", "--porcelain", cwd=repo) == ""


def test_head_and_branch_have_one_new_reflog_entry_by_the_right_person(git, make_repo, monkeypatch):
    repo = make_repo()
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Writer")
    monkeypatch.setenv("GIT_COMMITTER_NAME", "Keeper")
    monkeypatch.setenv("GIT_COMMITTER_EMAIL", "keeper@example.org")
    remember(repo)
    for ref in ("HEAD", "main"):
        log = git("reflog", "show", "--format=%gn <%ge> %gs", ref, cwd=repo).splitlines()
        assert len(log) == 2 and log[0] == f"Keeper <keeper@example.org> commit: Remember {M1[-9:]}"
    assert git("log", "-1", "--format=%an %cn", cwd=repo) == "Writer Keeper"


def test_deleting_the_last_memory_takes_the_folder_out(git, make_repo):
    repo = make_repo()
    remember(repo)
    before = own_work(git, repo)
    (repo / M1).unlink()
    result = provider(repo).commit({M1: None}, message="Forget")
    assert git("ls-tree", "-r", "--name-only", "HEAD", cwd=repo) == "app.txt"
    assert own_work(git, repo) == before and changed_by(git, repo, result.commit) == [M1]
    assert git("status", "--porcelain", cwd=repo) == ""


@pytest.mark.parametrize("engine", ["libgit2", "git"])
def test_a_folder_takes_the_place_of_a_file_and_back(git, make_repo, engine):
    repo = make_repo()
    if engine == "git":
        git("config", "core.sharedRepository", "group", cwd=repo)
    here = provider(repo)
    assert here.commit({"a/b": FIRST, "c": FIRST}, message="x", branch="b").engine == engine
    here.commit({"c": None, "c/d/e": SECOND}, message="x", branch="b")
    here.commit({"c/d/e": None, "a/b": None}, message="x", branch="b")
    assert git("ls-tree", "-r", "--name-only", "b", cwd=repo) == "app.txt"
    assert git("ls-tree", "-r", "--name-only", "b~1", cwd=repo).split() == ["a/b", "app.txt", "c/d/e"]
    assert git("fsck", "--strict", "--no-dangling", cwd=repo) == ""


def test_several_files_at_once_with_a_deletion(git, make_repo):
    repo = make_repo()
    remember(repo)
    (repo / M1).unlink()
    provider(repo).commit({M1: None, M2: write(repo, M2, SECOND)}, message="Both")
    assert changed_by(git, repo) == [M1, M2]
    assert git("status", "--porcelain", cwd=repo) == ""


def test_the_first_commit_of_an_unborn_branch(git, make_repo):
    repo = make_repo(commits=0)
    (repo / "own").write_text("x\n")
    git("add", "own", cwd=repo)
    before = own_work(git, repo)
    result = remember(repo)
    assert git("log", "--format=%H|%P", cwd=repo) == f"{result.commit}|"
    assert changed_by(git, repo) == [M1] and own_work(git, repo) == before
    assert git("reflog", "--format=%gs", cwd=repo) == f"commit (initial): Remember {M1[-9:]}"


def test_plumbing_sees_a_clean_file_too(git, make_repo):
    repo = make_repo()
    remember(repo)
    assert git("diff-files", cwd=repo) == "" and git("diff-index", "HEAD", cwd=repo) == ""


def test_what_is_committed_already_makes_no_empty_commit(git, make_repo):
    repo = make_repo()
    first = remember(repo)
    git("commit", "-q", "--allow-empty", "-m", "later", cwd=repo)
    again = remember(repo)
    assert again.already and again.commit == first.commit
    assert git("rev-list", "--count", "HEAD", cwd=repo) == "3"


def test_a_memory_that_the_person_committed_first_is_found_there(git, make_repo):
    repo = make_repo()
    write(repo, M1, FIRST)
    git("add", M1, cwd=repo)
    git("commit", "-qm", "mine", cwd=repo)
    assert remember(repo)[:6] == (head(git, repo), "main", (M1,), "libgit2", False, True)


def test_an_executable_memory_keeps_its_mode(git, make_repo):
    repo = make_repo()
    write(repo, M1, FIRST)
    (repo / M1).chmod(0o755)
    remember(repo)
    assert git("ls-files", "-s", M1, cwd=repo).startswith("100755")
    assert git("status", "--porcelain", cwd=repo) == ""
    git("config", "core.fileMode", "false", cwd=repo)
    (repo / M1).chmod(0o644)
    remember(repo, data=SECOND)
    assert git("ls-tree", "HEAD", M1, cwd=repo).startswith("100755")


def test_names_that_git_would_read_as_patterns(git, make_repo):
    repo = make_repo()
    odd, neighbour = ".ai/open-memex/[n] *:é.md", ".ai/open-memex/n and:é.md"
    for path in (odd, neighbour):
        write(repo, path, b"first\n")
    git("add", ".", cwd=repo)
    git("commit", "-qm", "both", cwd=repo)
    write(repo, neighbour, b"other\n")
    assert git("ls-files", "-m", "-z", "--", odd, cwd=repo) == f"{neighbour}\0", "the pattern fits it"
    remember(repo, odd)
    assert git("-c", "core.quotePath=false", "show", "--format=", "--name-only", cwd=repo) == odd
    assert provider(repo).folder_status(".ai/open-memex") == [(neighbour, "modified")]
    assert git("show", f"HEAD:{neighbour}", cwd=repo) == "first"


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../x", "a/../../x", ".git/config", "a/.GIT/x", "", "a//b", "a/./b", ".git./x"]
)
def test_paths_that_lead_out_are_wrong_usage(make_repo, path):
    with pytest.raises(UsageError):
        provider(make_repo()).commit({path: b""}, message="x")


def test_a_message_is_cleaned_and_never_empty(git, make_repo):
    repo = make_repo()
    provider(repo).commit(
        {M1: write(repo, M1, FIRST)}, message="\r\n Sub\0ject \r\n\r\n\r\n\r\nbody\t\r\n# kept"
    )
    assert git("log", "-1", "--format=%B", cwd=repo) == " Subject\n\nbody\n# kept\n"
    with pytest.raises(UsageError):
        provider(repo).commit({M1: write(repo, M1, SECOND)}, message="\0 \n")


def test_a_dry_run_changes_nothing(git, make_repo):
    repo = make_repo()
    write(repo, M1, FIRST)
    before = (git("for-each-ref", cwd=repo), git("ls-files", "-s", cwd=repo), git("count-objects", cwd=repo))
    result = provider(repo).commit({M1: FIRST}, message="x", dry_run=True)
    assert (result.commit, result.files) == ("", (M1,))
    assert before == (
        git("for-each-ref", cwd=repo),
        git("ls-files", "-s", cwd=repo),
        git("count-objects", cwd=repo),
    )


# --- another branch ---


def test_a_new_branch_touches_neither_work_tree_nor_staging_area(git, make_repo):
    repo = busy_repo(git, make_repo)
    before = own_work(git, repo)
    tip = head(git, repo)
    result = provider(repo).commit({M1: FIRST}, message="On a branch", branch="memex/out")
    assert own_work(git, repo) == before and not (repo / ".ai").exists()
    assert git("symbolic-ref", "HEAD", cwd=repo) == "refs/heads/main" and head(git, repo) == tip
    assert changed_by(git, repo, "memex/out") == [M1] and head(git, repo, "memex/out~1") == tip
    assert result.new_branch and result.branch == "memex/out"
    again = provider(repo).commit({M2: SECOND}, message="More", branch="memex/out")
    assert not again.new_branch and head(git, repo, "memex/out~1") == result.commit
    assert git("fsck", "--strict", "--no-dangling", cwd=repo) == ""


def test_a_new_branch_from_another_revision(git, make_repo):
    repo = make_repo(commits=3)
    base = head(git, repo, "HEAD~2")
    for _ in range(2):  # run again, it is done already
        result = provider(repo).commit({M1: FIRST}, message="x", branch="b", onto="main~2")
        assert head(git, repo, "b~1") == base and result.commit == head(git, repo, "b")
    refusal = same(
        git, repo, lambda: provider(repo).commit({M2: FIRST}, message="x", branch="b", onto="main")
    )
    assert "does not contain main" in refusal.message


def test_a_branch_that_is_checked_out_anywhere_is_not_moved(git, make_repo, tmp_path):
    repo = make_repo()
    git("worktree", "add", "-q", "../wt", "-b", "memex/out", cwd=repo)
    refusal = same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x", branch="memex/out"))
    assert str(tmp_path / "wt") in refusal.message
    assert git("status", "--porcelain", cwd=tmp_path / "wt") == ""
    refusal = same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x", branch="main"))
    assert "checked out here" in refusal.message


def test_a_branch_that_is_being_rebased_is_not_moved(git, make_repo, tmp_path):
    repo = make_repo(commits=2)
    git("worktree", "add", "-q", "../wt", "-b", "topic", cwd=repo)
    git("-c", "sequence.editor=sed -i 1s/pick/edit/", "rebase", "-q", "-i", "HEAD~1", cwd=tmp_path / "wt")
    refusal = same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x", branch="topic"))
    assert "being rebased" in refusal.message


def test_an_unborn_head_begins_a_branch_with_a_root_commit(git, make_repo):
    repo = make_repo(commits=0)
    provider(repo).commit({M1: FIRST}, message="x", branch="memex")
    assert git("log", "--format=%P", "memex", cwd=repo) == ""
    assert git.run("rev-parse", "--verify", "-q", "HEAD", cwd=repo).returncode == 1


@pytest.mark.parametrize("name", ["-x", "a..b", "a b", "", "@{-1}", "a.lock", "a/", "HEAD~1", "@", "HEAD"])
def test_names_that_are_no_branch(make_repo, name):
    with pytest.raises(UsageError):
        provider(make_repo()).commit({M1: FIRST}, message="x", branch=name)


def test_branches_that_can_not_stand_beside_each_other(git, make_repo):
    repo = make_repo()
    git("branch", "a/b", cwd=repo)
    for name in ("a", "a/b/c"):
        refusal = same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x", branch=name))  # noqa: B023
        assert "a/b" in refusal.message


def test_a_file_where_the_folder_should_be_in_the_other_branch(git, make_repo):
    repo = make_repo()
    git("checkout", "-q", "-b", "odd", cwd=repo)
    (repo / ".ai").write_text("a file\n")
    git("add", ".ai", cwd=repo)
    git("commit", "-qm", "odd", cwd=repo)
    git("checkout", "-q", "main", cwd=repo)
    refusal = same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x", branch="odd"))
    assert ".ai is no folder" in refusal.message


# --- kinds of repositories ---


def test_a_linked_work_tree_commits_to_its_own_branch(git, make_repo, tmp_path):
    repo = make_repo()
    git("worktree", "add", "-q", "../wt", "-b", "side", cwd=repo)
    main = head(git, repo)
    remember(tmp_path / "wt")
    assert head(git, repo) == main and changed_by(git, tmp_path / "wt") == [M1]
    assert git("status", "--porcelain", cwd=tmp_path / "wt") == git("status", "--porcelain", cwd=repo) == ""


def test_with_git_dir_set_as_in_a_hook_the_result_is_the_same(git, make_repo, tmp_path, monkeypatch):
    repo = make_repo()
    git("worktree", "add", "-q", "../wt", "-b", "side", cwd=repo)
    (tmp_path / "wt" / "src" / "deep").mkdir(parents=True)
    monkeypatch.chdir(repo)
    monkeypatch.setenv("GIT_DIR", str(repo / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "stray-index"))
    wt = tmp_path / "wt"
    write(wt, M1, FIRST)
    provider(wt / "src" / "deep").commit({M1: FIRST}, message="x")
    remember(repo, M2)
    for name in ("GIT_DIR", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name)
    assert changed_by(git, wt) == [M1] and changed_by(git, repo) == [M2]
    assert not (tmp_path / "stray-index").exists()
    assert git("status", "--porcelain", cwd=wt) == git("status", "--porcelain", cwd=repo) == ""


def test_submodule_separate_git_folder_and_work_tree_of_a_bare_one(git, make_repo, tmp_path):
    inner, outer = make_repo("inner"), make_repo("outer")
    git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "sub", cwd=outer)
    (tmp_path / "work").mkdir()
    git("init", "-q", "--separate-git-dir", str(tmp_path / "apart"), cwd=tmp_path / "work")
    git("clone", "-q", "--bare", str(inner), "bare.git", cwd=tmp_path)
    git("worktree", "add", "-q", "../of-bare", "-b", "side", cwd=tmp_path / "bare.git")
    for place in (outer / "sub", tmp_path / "work", tmp_path / "of-bare"):
        remember(place)
        assert changed_by(git, place) == [M1] and git("status", "--porcelain", cwd=place) == ""
    assert git("log", "--format=%s", cwd=outer) == "Commit 1"


def test_a_work_tree_that_only_the_environment_names(git, tmp_path, monkeypatch):
    (tmp_path / "dots").mkdir()
    git("init", "-q", "--bare", "-b", "main", "store.git", cwd=tmp_path)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "store.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "dots"))
    remember(tmp_path / "dots")
    assert git("status", "--porcelain", cwd=tmp_path / "dots") == ""
    assert changed_by(git, tmp_path / "dots") == [M1]


def test_sha256_is_served_by_git(git, tmp_path):
    git("init", "-q", "-b", "main", "--object-format=sha256", "r", cwd=tmp_path)
    repo = tmp_path / "r"
    assert remember(repo).engine == "git"
    remember(repo, M2)
    (repo / M1).unlink()
    provider(repo).commit({M1: None}, message="x")
    provider(repo).commit({M1: SECOND}, message="x", branch="b")
    assert git("ls-tree", "-r", "--name-only", "HEAD", cwd=repo) == M2
    assert git("status", "--porcelain", cwd=repo) == "" and git("fsck", cwd=repo) == ""
    here = provider(repo)
    found = here.entries("b", ".ai/open-memex")
    assert sorted(found) == sorted([Path(M1).name, Path(M2).name])
    assert dict(here.blobs(found.values())) == {found[Path(M1).name]: SECOND, found[Path(M2).name]: FIRST}


def test_a_shared_repository_stays_writable_for_the_others(git, make_repo):
    repo = make_repo()
    git("config", "core.sharedRepository", "group", cwd=repo)
    before = {p for p in (repo / ".git" / "objects").rglob("*") if p.is_file()}
    assert remember(repo).engine == "git"
    new = {p for p in (repo / ".git" / "objects").rglob("*") if p.is_file()} - before
    assert len(new) == 5 and all(p.stat().st_mode & 0o040 for p in new)
    assert (repo / ".git" / "refs" / "heads" / "main").stat().st_mode & 0o020
    assert (repo / ".git" / "index").stat().st_mode & 0o020
    assert (repo / ".git" / "open-memex.lock").stat().st_mode & 0o022


@pytest.mark.parametrize("kind", ["split", "sparse", "v4", "untracked-cache"])
def test_kinds_of_staging_areas(git, make_repo, kind):
    repo = busy_repo(git, make_repo)
    if kind == "split":
        git("update-index", "--split-index", cwd=repo)
    elif kind == "sparse":
        git("reset", "-q", "--hard", cwd=repo)
        (repo / "far" / "off").mkdir(parents=True)
        (repo / "far" / "off" / "x").write_text("x")
        git("add", "far", cwd=repo)
        git("commit", "-qm", "far", cwd=repo)
        git("sparse-checkout", "set", "--cone", "--sparse-index", ".ai", cwd=repo)
        (repo / "app.txt").write_text("changed\n")
    elif kind == "v4":
        git("update-index", "--index-version=4", cwd=repo)
    else:
        git("update-index", "--untracked-cache", cwd=repo)
    before = own_work(git, repo)
    remember(repo)
    assert own_work(git, repo) == before and changed_by(git, repo) == [M1]
    data = (repo / ".git" / "index").read_bytes()
    assert {"split": b"link", "sparse": b"sdir"}.get(kind, b"DIRC") in data


# --- refusals ---


def test_a_bare_repository(git, make_repo, tmp_path):
    git("clone", "-q", "--bare", str(make_repo()), "bare.git", cwd=tmp_path)
    with pytest.raises(Refused, match="bare repository"):
        provider(tmp_path / "bare.git").commit({M1: FIRST}, message="x", branch="b")


def test_a_detached_head_needs_a_branch(git, make_repo):
    repo = make_repo(commits=2)
    git("checkout", "-q", "--detach", "HEAD~1", cwd=repo)
    refusal = same(git, repo, lambda: remember(repo))
    assert "detached" in refusal.message and "--branch" in refusal.hint
    provider(repo).commit({M1: FIRST}, message="x", branch="b")
    assert head(git, repo, "b~1") == head(git, repo, "main~1")


def conflicting(git, make_repo):
    repo = make_repo()
    remember(repo)
    git("checkout", "-q", "-b", "side", cwd=repo)
    remember(repo, data=b"side\n")
    git("checkout", "-q", "main", cwd=repo)
    remember(repo, data=b"main\n")
    return repo


@pytest.mark.parametrize(
    ("operation", "command"),
    [
        ("merge", ["merge", "side"]),
        ("rebase", ["rebase", "side"]),
        ("cherry-pick", ["cherry-pick", "side"]),
        ("revert", ["revert", "--no-edit", "HEAD~1"]),
        ("rebase", ["rebase", "--apply", "side"]),
        ("bisect", ["bisect", "start"]),
    ],
)
def test_a_pending_operation_is_named(git, make_repo, operation, command):
    repo = conflicting(git, make_repo)
    git.run(*command, cwd=repo)
    assert provider(repo).pending_operation() == operation
    write(repo, M2, SECOND)
    refusal = same(git, repo, lambda: provider(repo).commit({M2: SECOND}, message="x"))
    assert operation in refusal.message and (repo / M2).read_bytes() == SECOND
    with pytest.raises(Refused, match=operation):
        provider(repo).check_commit([M2], "b", None)
    provider(repo).commit({M2: SECOND}, message="x", branch="b", onto="main")
    assert provider(repo).pending_operation() == operation


def test_an_applied_mailbox_is_named(git, make_repo):
    repo = conflicting(git, make_repo)
    patch = git("format-patch", "-1", "--stdout", "side", cwd=repo) + "\n"
    git.run("am", cwd=repo, stdin=patch)
    assert provider(repo).pending_operation() == "am"


def test_conflicts_without_an_operation_are_seen_by_file(git, make_repo):
    repo = conflicting(git, make_repo)
    git.run("merge", "--squash", "side", cwd=repo)
    assert provider(repo).pending_operation() is None
    refusal = same(git, repo, lambda: provider(repo).commit({M1: (repo / M1).read_bytes()}, message="x"))
    assert M1 in refusal.message and "conflict" in refusal.message
    assert provider(repo).folder_status(".ai/open-memex") == [(M1, "conflicted")]
    result = remember(repo, M2)
    assert changed_by(git, repo, result.commit) == [M2]
    assert len(git("ls-files", "-u", cwd=repo).splitlines()) == 3


def test_without_an_identity_nothing_happens(git, make_repo, home):
    repo = make_repo()
    (home / ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n")
    write(repo, M1, FIRST)
    refusal = same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x"))
    assert "user.name" in refusal.hint and "user.email" in refusal.hint


def test_ignored_memories_are_refused_with_the_rule(git, make_repo):
    repo = make_repo()
    (repo / ".gitignore").write_text("build\n.ai/\n")
    for options in ({}, {"branch": "b"}):
        refusal = same(git, repo, lambda: remember(repo, **options))  # noqa: B023
        assert ".gitignore:2:.ai/" in refusal.message
    git("add", "-f", M1, cwd=repo)
    remember(repo)  # what git follows already is not ignored
    assert changed_by(git, repo) == [M1]


def test_links_pipes_and_nested_repositories_are_refused_at_once(git, make_repo, tmp_path):
    outside = tmp_path / "outside"
    (outside / "open-memex").mkdir(parents=True)
    for number, target in enumerate((outside, "inside")):
        repo = make_repo(f"r{number}")
        (repo / "inside" / "open-memex").mkdir(parents=True)
        (repo / ".ai").symlink_to(target)
        write(repo, M1, FIRST)
        refusal = same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x"))  # noqa: B023
        assert "symbolic link" in refusal.message
    repo = make_repo("r2")
    write(repo, M2, FIRST)
    (repo / M1).symlink_to(repo / M2)
    assert "symbolic link" in same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x")).message
    (repo / M1).unlink()
    os.mkfifo(repo / M1)
    assert "regular" in same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x")).message
    (repo / M1).unlink()
    git("init", "-q", ".ai", cwd=repo)
    write(repo, M1, FIRST)
    refusal = same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x"))
    assert "repository of its own" in refusal.message


def test_a_file_that_changed_since_it_was_read_is_not_committed(git, make_repo):
    repo = make_repo()
    write(repo, M1, SECOND)
    assert "changed" in same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x")).message
    assert "changed" in same(git, repo, lambda: provider(repo).commit({M1: None}, message="x")).message


def test_outside_the_sparse_checkout(git, make_repo):
    repo = make_repo()
    remember(repo)
    (repo / "src").mkdir()
    (repo / "src" / "a").write_text("a")
    git("add", "src", cwd=repo)
    git("commit", "-qm", "src", cwd=repo)
    for cone in ("--cone", "--no-cone"):
        git("sparse-checkout", "set", cone, "src", cwd=repo)
        assert not (repo / M1).exists()
        assert provider(repo).folder_status(".ai/open-memex") == []
        refusal = same(git, repo, lambda: remember(repo, M2))
        assert "sparse" in refusal.message and "sparse-checkout add .ai/open-memex" in refusal.hint
        (repo / M2).unlink()
        git("sparse-checkout", "add", ".ai/open-memex", cwd=repo)
        assert remember(repo, M2, cone.encode()).files == (M2,)
        (repo / M2).unlink()
        provider(repo).commit({M2: None}, message="x")


def test_a_staging_area_that_can_not_be_read(git, make_repo):
    repo = make_repo()
    write(repo, M1, FIRST)
    tip = head(git, repo)
    (repo / ".git" / "index").write_bytes(b"DIRC nonsense")
    with pytest.raises(Refused, match="can't be read"):
        provider(repo).commit({M1: FIRST}, message="x")
    assert head(git, repo) == tip and (repo / ".git" / "index").read_bytes() == b"DIRC nonsense"


# --- locks and other processes ---


def test_a_lock_that_goes_away_is_waited_for(git, make_repo):
    repo = make_repo()
    lock = repo / ".git" / "index.lock"
    lock.touch()
    release = threading.Timer(0.6, lock.unlink)
    release.start()
    remember(repo)
    release.join()
    assert changed_by(git, repo) == [M1]


def test_a_lock_that_stays_is_named_and_left_alone(git, make_repo, monkeypatch):
    repo = busy_repo(git, make_repo)
    monkeypatch.setattr(staging, "LOCK_SECONDS", 0.3)
    lock = repo / ".git" / "index.lock"
    lock.touch()
    tip = head(git, repo)
    with pytest.raises(Refused) as refused:
        remember(repo)
    assert str(lock) in refused.value.message and lock.exists() and head(git, repo) == tip
    lock.unlink()
    assert M1 not in git("ls-files", cwd=repo)


def test_a_ref_lock_that_stays_leaves_the_staging_area_as_it_was(git, make_repo, monkeypatch):
    repo = busy_repo(git, make_repo)
    monkeypatch.setattr(staging, "LOCK_SECONDS", 0.3)
    write(repo, M1, b"staged before\n")
    write(repo, M2, b"promised before\n")
    git("add", M1, cwd=repo)
    git("add", "-N", M2, cwd=repo)
    (repo / ".git" / "refs" / "heads" / "main.lock").touch()
    files = {M1: write(repo, M1, FIRST), M2: write(repo, M2, SECOND)}
    git("status", cwd=repo)
    refusal = same(git, repo, lambda: provider(repo).commit(files, message="x"))
    assert "main.lock" in refusal.message
    (repo / ".git" / "refs" / "heads" / "main.lock").unlink()
    assert changed_by(git, repo, provider(repo).commit(files, message="x").commit) == [M1, M2]


def test_a_branch_that_moved_meanwhile_is_built_upon(git, make_repo, monkeypatch):
    repo = busy_repo(git, make_repo)
    real, moved = staging.add, []

    def stage_late(*args):
        moved.append(git("commit-tree", "-p", "HEAD", "-m", "theirs", "HEAD^{tree}", cwd=repo))
        git("update-ref", "refs/heads/main", moved[0], cwd=repo)
        return real(*args)

    monkeypatch.setattr(staging, "add", stage_late)
    result = remember(repo)
    assert [head(git, repo, f"{result.commit}~1")] == moved and changed_by(git, repo) == [M1]


def test_a_person_who_commits_the_staged_memory_first_wins(git, make_repo, monkeypatch):
    repo = busy_repo(git, make_repo)
    real = staging.add

    def commit_between(*args):
        taken = real(*args)
        git("commit", "-qm", "mine takes it along", cwd=repo)
        return taken

    monkeypatch.setattr(staging, "add", commit_between)
    result = remember(repo)
    assert result.already and result.commit == head(git, repo)
    assert git("log", "-1", "--format=%s", cwd=repo) == "mine takes it along"


def test_a_branch_that_never_stops_moving_is_given_up_cleanly(git, make_repo, monkeypatch):
    repo = busy_repo(git, make_repo)
    real = committing._move

    def move_away(*args, **options):
        new = git("commit-tree", "-p", "HEAD", "-m", f"{time.time_ns()}", "HEAD^{tree}", cwd=repo)
        git("update-ref", "refs/heads/main", new, cwd=repo)
        return real(*args, **options)

    monkeypatch.setattr(committing, "_move", move_away)
    before = own_work(git, repo)
    with pytest.raises(Refused, match="kept moving"):
        remember(repo)
    assert [x for x in own_work(git, repo) if "branch.oid" not in x] == before
    assert git("ls-files", ".ai", cwd=repo) == ""


def test_two_hundred_git_adds_meanwhile_lose_nothing(git, make_repo):
    repo = make_repo()
    names = [f"f{n:03}" for n in range(200)]
    for name in names:
        (repo / name).write_text(name)
    script = 'for f in "$@"; do until git add "$f" 2>/dev/null; do :; done; done'
    adding = subprocess.Popen(["sh", "-c", script, "sh", *names], cwd=repo)
    made = []
    while adding.poll() is None:
        path = f".ai/open-memex/{len(made):026}.md"
        made.append(path)
        remember(repo, path, path.encode())
    assert adding.returncode == 0 and len(made) > 3
    staged_now = git("diff", "--cached", "--name-only", cwd=repo).splitlines()
    assert staged_now == names
    assert git("ls-tree", "-r", "--name-only", "HEAD", ".ai", cwd=repo).splitlines() == made


def test_two_processes_that_commit_at_once_both_get_through(git, make_repo):
    repo = make_repo()
    code = (
        "import sys; from openmemex.git.provider import GitProvider\n"
        "for n in range(12):\n"
        "    path = f'.ai/open-memex/{sys.argv[1]}{n}.md'; data = path.encode()\n"
        "    open(path, 'wb').write(data)\n"
        "    GitProvider.open('.').commit({path: data}, message=path)\n"
    )
    (repo / ".ai" / "open-memex").mkdir(parents=True)
    running = [subprocess.Popen([sys.executable, "-c", code, name], cwd=repo) for name in "ab"]
    assert [process.wait() for process in running] == [0, 0]
    assert git("rev-list", "--count", "HEAD", cwd=repo) == "25"
    assert len(git("ls-files", ".ai", cwd=repo).splitlines()) == 24
    assert git("status", "--porcelain", cwd=repo) == "" and git("fsck", cwd=repo) == ""


# --- stopped anywhere ---

KILLED = (
    "import sys; from openmemex.git.provider import GitProvider\n"
    "path, data, branch = sys.argv[1], open(sys.argv[1], 'rb').read(), sys.argv[2] or None\n"
    "GitProvider.open('.').commit({path: data}, message='Remember', branch=branch)\n"
)


@pytest.mark.parametrize("point", ["submit.objects-written", "submit.staged", "submit.ref-moved"])
@pytest.mark.parametrize("way", ["here", "branch", "hooks"])
def test_killed_at_any_point_a_rerun_finishes_and_nothing_of_the_persons_is_lost(git, make_repo, point, way):
    repo = busy_repo(git, make_repo)
    if way == "hooks":
        hook(repo, "pre-commit", "exit 0")
    write(repo, M1, FIRST)
    before, tip = own_work(git, repo), head(git, repo)
    branch = "memex" if way == "branch" else ""
    command = [sys.executable, "-c", KILLED, M1, branch]
    done = subprocess.run(command, cwd=repo, env={**os.environ, "OPEN_MEMEX_FAULT": point})
    assert done.returncode == -9
    assert own_work(git, repo) == [
        line.replace(tip, head(git, repo)) if "branch.oid" in line else line for line in before
    ]
    assert git("fsck", "--strict", "--no-dangling", cwd=repo) == ""
    subprocess.run(command, cwd=repo, check=True)
    rev = branch or "HEAD"
    assert head(git, repo, f"{rev}~1") == tip and changed_by(git, repo, rev) == [M1]
    assert own_work(git, repo) == before
    assert git("fsck", "--strict", "--no-dangling", cwd=repo) == ""


@pytest.mark.parametrize("point", ["submit.objects-written", "submit.staged", "submit.ref-moved"])
def test_killed_at_any_point_the_persons_next_commit_never_takes_the_memory_back(git, make_repo, point):
    repo = busy_repo(git, make_repo)
    write(repo, M1, FIRST)
    command = [sys.executable, "-c", KILLED, M1, ""]
    assert subprocess.run(command, cwd=repo, env={**os.environ, "OPEN_MEMEX_FAULT": point}).returncode == -9
    git("commit", "-qm", "my own work", cwd=repo)
    result = provider(repo).commit({M1: FIRST}, message="Remember")
    log = git("log", "--format=", "--name-status", "HEAD", "--", M1, cwd=repo).split()
    assert log == ["A", M1] and result.commit
    assert git("show", f"HEAD:{M1}", cwd=repo).encode() + b"\n" == FIRST
    assert git("status", "--porcelain", ".ai", cwd=repo) == ""


# --- hooks, signatures, conversions ---


def test_a_hook_that_says_no_is_obeyed_and_heard(git, make_repo):
    repo = busy_repo(git, make_repo)
    write(repo, M1, FIRST)
    hook(repo, "pre-commit", "echo no such day; git diff --cached --name-only >.git/seen; exit 1")
    refusal = same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x"))
    assert refusal.words == ("no such day",) and "pre-commit" in refusal.message
    assert (repo / ".git" / "seen").read_text().splitlines() == [M1]


def test_a_hook_that_says_yes_sees_the_named_files_only(git, make_repo, home):
    repo = busy_repo(git, make_repo)
    hook(repo, "commit-msg", 'echo "Checked-By: hook" >>"$1"', home / "h")
    git("config", "core.hooksPath", "~/h", cwd=repo)
    before = own_work(git, repo)
    result = remember(repo)
    assert result.engine == "git commit" and changed_by(git, repo) == [M1]
    assert git("log", "-1", "--format=%B", cwd=repo).splitlines()[-1] == "Checked-By: hook"
    assert own_work(git, repo) == before
    (repo / M1).unlink()
    provider(repo).commit({M1: None, M2: write(repo, M2, SECOND)}, message="both")
    assert changed_by(git, repo) == [M1, M2] and own_work(git, repo) == before
    assert remember(repo, M2, SECOND).already


def test_a_hook_on_ref_updates_is_asked(git, make_repo):
    repo = make_repo()
    write(repo, M1, FIRST)
    asked = repo / ".git" / "asked"
    hook(repo, "reference-transaction", f"cat >>'{asked}'; test \"$1\" != prepared")
    tip = head(git, repo)
    refusal = same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x"))
    assert refusal.message.startswith("git could not move branch main: ") and "hook" in refusal.message
    assert refusal.hint == "Nothing was committed."
    old, new, ref = asked.read_text().splitlines()[0].split()
    assert (old, ref) == (tip, "refs/heads/main") and new not in ("0" * 40, tip)
    assert git("show", f"{new}:{M1}", cwd=repo) == FIRST.decode().strip()


def test_a_signature_is_made_where_it_is_asked_for(git, make_repo, home):
    repo = make_repo()
    key = home / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    (home / "signers").write_text(f"ada@example.org {(home / 'key.pub').read_text()}")
    for name, value in (
        ("gpg.format", "ssh"),
        ("user.signingKey", str(key)),
        ("gpg.ssh.allowedSignersFile", str(home / "signers")),
        ("commit.gpgsign", "true"),
    ):
        git("config", name, value, cwd=repo)
    git("verify-commit", remember(repo).commit, cwd=repo)
    git("verify-commit", provider(repo).commit({M2: FIRST}, message="x", branch="b").commit, cwd=repo)


def test_a_signature_that_fails_makes_no_unsigned_commit(git, make_repo):
    repo = busy_repo(git, make_repo)
    write(repo, M1, FIRST)
    git("config", "commit.gpgsign", "true", cwd=repo)
    git("config", "gpg.program", "false", cwd=repo)
    refusal = same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x"))
    assert "commit.gpgsign" in refusal.hint


CRLF = b"---\r\nid: x\r\n---\r\ntext\r\n"


CONTENTS = dict(zip("abcde", [FIRST, CRLF, b"mixed\r\nends\n", b"$Id$\n", b"nul\0\r\n"], strict=True))


@pytest.mark.parametrize("existing", [None, CRLF], ids=["new", "CRLF in the repository"])
@pytest.mark.parametrize(
    "setting",
    [
        "",
        "autocrlf=true",
        "autocrlf=input",
        "*.md text=auto",
        "*.md text",
        "*.md text eol=crlf",
        "*.md -text",
        "*.md ident",
        "*.md filter=loud",
        "*.md working-tree-encoding=ISO-8859-1",
    ],
)
def test_the_blob_is_the_one_that_git_add_would_make(git, make_repo, setting, existing):
    repo = make_repo()
    files = {f".ai/open-memex/{name}.md": data for name, data in CONTENTS.items()}
    if existing is not None:
        for path in files:
            write(repo, path, existing)
        git("add", ".ai", cwd=repo)
        git("commit", "-qm", "was there", cwd=repo)
    git("config", "filter.loud.clean", "tr a-z A-Z", cwd=repo)
    if setting.startswith("autocrlf"):
        git("config", f"core.{setting.partition('=')[0]}", setting.partition("=")[2], cwd=repo)
    elif setting:
        (repo / ".git" / "info" / "attributes").write_text(setting + "\n")
    for path, data in files.items():
        write(repo, path, data)
    index = {"GIT_INDEX_FILE": str(repo / ".git" / "trial")}
    shutil.copy2(repo / ".git" / "index", index["GIT_INDEX_FILE"])
    git("add", ".ai", cwd=repo, env=index)

    def blobs(*command, env=None):
        lines = git(*command, cwd=repo, env=env).splitlines()
        return {
            line.partition("\t")[2]: line.partition("\t")[0].replace("blob ", "").split()[1] for line in lines
        }

    wanted = blobs("ls-files", "-s", ".ai", env=index)
    result = provider(repo).commit(files, message="x")
    assert blobs("ls-tree", "-r", "HEAD", ".ai") == result.blobs == wanted
    unchanged = {path for path, data in files.items() if data == existing}
    dirty = {line[3:] for line in git("status", "--porcelain", cwd=repo).splitlines()}
    assert dirty <= unchanged  # a file that git takes for unchanged it does not convert anew
    if existing is None:
        provider(repo).commit(
            {f"other/{path}": data for path, data in files.items()}, message="x", branch="b"
        )
        there = blobs("ls-tree", "-r", "b", "other")
        assert {path.removeprefix("other/"): oid for path, oid in there.items()} == wanted


@pytest.mark.parametrize("branch", [None, "b"])
def test_a_required_filter_that_fails_is_a_refusal(git, make_repo, branch):
    repo = busy_repo(git, make_repo)
    write(repo, M1, FIRST)
    (repo / ".git" / "info" / "attributes").write_text("*.md filter=broken\n")
    git("config", "filter.broken.clean", "false", cwd=repo)
    git("config", "filter.broken.required", "true", cwd=repo)
    refusal = same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x", branch=branch))
    assert "convert" in refusal.message


def test_safecrlf_is_obeyed(git, make_repo):
    repo = make_repo()
    write(repo, M1, FIRST)
    git("config", "core.autocrlf", "true", cwd=repo)
    git("config", "core.safecrlf", "true", cwd=repo)
    assert git.run("add", "-n", M1, cwd=repo).returncode == 0
    assert git.run("hash-object", "-w", M1, cwd=repo).returncode != 0
    assert "LF" in same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x")).message


# --- status of the folder ---


def test_the_folders_status_and_nothing_else(git, make_repo):
    repo = busy_repo(git, make_repo)
    ids = [f".ai/open-memex/{n}.md" for n in "abcdefgh"]
    for path in ids[:5]:
        write(repo, path, FIRST)
    provider(repo).commit(dict.fromkeys(ids[:5], FIRST), message="x")
    write(repo, ids[0], SECOND)  # modified
    write(repo, ids[1], SECOND)
    git("add", ids[1], cwd=repo)  # modified, staged
    (repo / ids[2]).unlink()  # deleted
    git("rm", "-q", ids[3], cwd=repo)  # deleted, staged
    git("rm", "-q", "--cached", ids[4], cwd=repo)  # out of the staging area, still there
    write(repo, ids[5], FIRST)  # untracked
    write(repo, ids[6], FIRST)
    git("add", ids[6], cwd=repo)  # added
    write(repo, ids[7], FIRST)
    git("add", "-N", ids[7], cwd=repo)  # promised
    (repo / ".gitignore").write_text("*.tmp\n")
    write(repo, ".ai/open-memex/x.tmp", b"")
    git("config", "status.showUntrackedFiles", "no", cwd=repo)
    git("config", "status.showStash", "true", cwd=repo)
    os.utime(repo / "app.txt", (1, 1))
    stamp = (repo / ".git" / "index").stat().st_mtime_ns
    assert [(entry.path[-4], entry.state) for entry in provider(repo).folder_status(".ai/open-memex")] == [
        ("a", "modified"),
        ("b", "modified"),
        ("c", "deleted"),
        ("d", "deleted"),
        ("e", "modified"),
        ("f", "untracked"),
        ("g", "added"),
        ("h", "added"),
    ]
    assert (repo / ".git" / "index").stat().st_mtime_ns == stamp


def test_the_status_of_an_unborn_repository_and_of_no_folder(make_repo):
    repo = make_repo(commits=0)
    assert provider(repo).folder_status(".ai/open-memex") == []
    write(repo, M1, FIRST)
    assert provider(repo).folder_status(".ai/open-memex/") == [(M1, "untracked")]


def test_capabilities_name_what_is_special(git, make_repo):
    repo = make_repo()
    plain = Repository(provider(repo).site).capabilities()
    assert (plain.engine, plain.hooks, plain.signing, plain.shallow) == ("libgit2", (), False, False)
    hook(repo, "pre-commit", "exit 0")
    git("config", "commit.gpgsign", "yes", cwd=repo)
    odd = provider(repo).capabilities()
    assert odd.hooks == ("pre-commit",) and odd.signing

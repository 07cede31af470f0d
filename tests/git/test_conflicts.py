"""Conflicts as real git leaves them: which versions, whose they are, and how git goes on afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from openmemex.errors import Refused
from openmemex.git.conflicts import Settlement, Unmerged
from openmemex.git.provider import GitProvider

FILE = "notes/a.md"


@pytest.fixture(autouse=True)
def _no_editor(monkeypatch):
    monkeypatch.setenv("GIT_EDITOR", ":")


def provider(repo: Path) -> GitProvider:
    found = GitProvider.open(str(repo))
    assert found is not None
    return found


def commit(git, repo: Path, text: str | None, message: str) -> str:
    file = repo / FILE
    if text is None:
        file.unlink()
    else:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    git("add", "-A", cwd=repo)
    git("commit", "-q", "-m", message, cwd=repo)
    return git("rev-parse", "HEAD", cwd=repo)


@pytest.fixture
def apart(make_repo, git) -> Callable[..., Path]:
    """A repository whose branches main (checked out) and topic changed one file in two ways."""

    def make(
        base: str | None = "base\n", ours: str | None = "ours\n", theirs: str | None = "theirs\n", **options
    ) -> Path:
        repo = make_repo(**options)
        if base is not None:
            commit(git, repo, base, "the base")
        git("switch", "-q", "-c", "topic", cwd=repo)
        commit(git, repo, theirs, "of topic")
        git("switch", "-q", "main", cwd=repo)
        commit(git, repo, ours, "of main")
        return repo

    return make


def blob(git, repo: Path, text: str) -> str:
    return git("hash-object", "--stdin", cwd=repo, stdin=text)


def as_is(one: Unmerged, repo: Path, data: bytes | None) -> Settlement:
    file = repo / one.path
    return Settlement(one.path, data, file.read_bytes() if file.exists() else None, one.mode)


# --- what is in conflict ---


def test_nothing_is_in_conflict_in_a_clean_repository(make_repo):
    assert provider(make_repo()).unmerged() == []


def test_the_three_versions_of_a_conflict_are_told_by_their_blobs(apart, git):
    repo = apart()
    git.run("merge", "topic", cwd=repo)
    base, ours, theirs = (blob(git, repo, text) for text in ("base\n", "ours\n", "theirs\n"))
    assert provider(repo).unmerged() == [Unmerged(FILE, base, ours, theirs)]


def test_only_the_folders_that_are_asked_for_are_told(apart, git):
    repo = apart()
    git.run("merge", "topic", cwd=repo)
    assert provider(repo).unmerged(["other"]) == []
    assert provider(repo).unmerged(["note"]) == [], "a folder's name is no prefix of another's"
    assert [one.path for one in provider(repo).unmerged(["notes"])] == [FILE]


def test_a_side_without_the_file_has_no_blob(apart, git):
    repo = apart(theirs=None)
    git.run("merge", "topic", cwd=repo)
    (one,) = provider(repo).unmerged()
    assert one.theirs is None and one.base and one.ours
    git("merge", "--abort", cwd=repo)
    git("switch", "-q", "topic", cwd=repo)
    git.run("merge", "main", cwd=repo)
    (one,) = provider(repo).unmerged()
    assert one.ours is None and one.base and one.theirs


def test_a_file_that_both_added_has_no_base(apart, git):
    repo = apart(base=None)
    git.run("merge", "topic", cwd=repo)
    (one,) = provider(repo).unmerged()
    assert one.base is None and one.ours and one.theirs


def test_a_link_on_one_side_is_named(apart, git):
    repo = apart(base=None)
    git("switch", "-q", "-c", "link", "main~1", cwd=repo)
    (repo / FILE).parent.mkdir(exist_ok=True)
    (repo / FILE).symlink_to("elsewhere")
    git("add", "-A", cwd=repo)
    git("commit", "-q", "-m", "a link", cwd=repo)
    git.run("merge", "-s", "recursive", "main", cwd=repo)
    found = provider(repo).unmerged()
    assert found and any(one.odd == "a symbolic link" for one in found)


@pytest.mark.parametrize("kind", ["plain", "sparse index", "split index", "version 4", "sha256"])
def test_conflicts_are_read_and_settled_in_every_kind_of_staging_area(kind, tmp_path, git, make_repo):
    if kind == "sha256":
        repo = tmp_path / "sha256"
        repo.mkdir()
        git("init", "-q", "-b", "main", "--object-format=sha256", cwd=repo)
        (repo / "app.txt").write_text("1\n")
        git("add", ".", cwd=repo)
        git("commit", "-q", "-m", "Commit 1", cwd=repo)
    else:
        repo = make_repo()
    (repo / "far").mkdir()
    (repo / "far" / "x.txt").write_text("x\n")
    commit(git, repo, "base\n", "the base")
    git("switch", "-q", "-c", "topic", cwd=repo)
    commit(git, repo, "theirs\n", "of topic")
    git("switch", "-q", "main", cwd=repo)
    commit(git, repo, "ours\n", "of main")
    if kind == "sparse index":
        git("sparse-checkout", "set", "--cone", "--sparse-index", "notes", cwd=repo)
        assert not (repo / "far").exists()
    if kind == "split index":
        git("update-index", "--split-index", cwd=repo)
    if kind == "version 4":
        git("update-index", "--index-version", "4", cwd=repo)
    assert git.run("merge", "topic", cwd=repo).returncode == 1
    git_ = provider(repo)
    (one,) = git_.unmerged()
    assert git_.contents([one.ours or ""])[one.ours or ""] == b"ours\n"
    settled = git_.settle([as_is(one, repo, b"both\n")], {one.path: one})
    assert settled.paths == (FILE,) and settled.left == {}
    assert (repo / FILE).read_text() == "both\n"
    assert git("status", "--porcelain", cwd=repo) == f"M  {FILE}"
    git("merge", "--continue", cwd=repo)
    assert git("show", f"HEAD:{FILE}", cwd=repo) == "both"
    git("fsck", "--strict", cwd=repo)


# --- whose versions they are ---


def test_in_a_merge_ours_is_the_branch_and_theirs_the_merged_one(apart, git):
    repo = apart()
    git.run("merge", "topic", cwd=repo)
    sides = provider(repo).sides()
    assert (sides.operation, sides.ours, sides.theirs) == ("merge", "main", "topic")


def test_of_two_branches_at_one_commit_the_one_that_was_named_is_told(apart, git):
    repo = apart()
    git("branch", "another", "topic", cwd=repo)
    git.run("merge", "topic", cwd=repo)
    assert provider(repo).sides().theirs == "topic"


def test_a_merged_commit_without_a_branch_is_told_by_its_id(apart, git):
    repo = apart()
    oid = git("rev-parse", "topic", cwd=repo)
    git("branch", "-q", "-D", "topic", cwd=repo)
    git.run("merge", oid, cwd=repo)
    assert provider(repo).sides().theirs == oid


def test_a_merged_tag_is_told_by_its_name_though_branches_are_at_its_commit(apart, git):
    repo = apart()
    git("tag", "bob-side", "topic", cwd=repo)
    git("branch", "cm", "topic", cwd=repo)
    git.run("merge", "bob-side", cwd=repo)
    assert provider(repo).sides().theirs == "bob-side"


def test_a_commit_that_was_named_by_the_way_to_it_is_told_by_what_it_is(apart, git):
    repo = apart()
    git("switch", "-q", "topic", cwd=repo)
    tip = git("rev-parse", "HEAD", cwd=repo)
    git("commit", "-q", "--allow-empty", "-m", "more", cwd=repo)
    git("switch", "-q", "main", cwd=repo)
    git.run("merge", "topic^{commit}~1", cwd=repo)
    assert provider(repo).sides().theirs == f'commit {tip[:10]} "of topic"'


@pytest.mark.parametrize("how", ["merge -m", "merge --squash"])
def test_where_nothing_names_the_side_a_branch_is_told_only_when_it_is_the_only_one(how, apart, git):
    repo = apart()
    tip = git("rev-parse", "topic", cwd=repo)
    git.run(*how.split(" "), *(["words"] if how == "merge -m" else []), "topic", cwd=repo)
    conflicts = provider(repo).unmerged()
    assert provider(repo).sides(conflicts).theirs == "topic"
    git("branch", "another", "topic", cwd=repo)
    assert provider(repo).sides(conflicts).theirs == f'commit {tip[:10]} "of topic"'


def test_a_branch_of_a_server_is_not_told_as_the_one_here_of_that_name(apart, git, make_remote, clone):
    repo = apart()
    remote = make_remote(repo)
    mate = clone(remote, "mate")
    commit(git, mate, "mate's\n", "of the mate")
    git("push", "-q", cwd=mate)
    commit(git, repo, "mine\n", "of mine")
    assert git.run("pull", "--no-rebase", "--no-edit", cwd=repo).returncode == 1
    assert provider(repo).sides()[2:] == ("main", "origin/main")


@pytest.mark.parametrize("named", ["mark", "main"])
def test_a_rebase_is_onto_what_was_named_though_others_are_at_that_commit(named, apart, git):
    repo = apart()
    git("tag", "mark", "main", cwd=repo)
    git("branch", "a-branch", "main", cwd=repo)
    git("switch", "-q", "topic", cwd=repo)
    assert git.run("rebase", named, cwd=repo).returncode == 1
    assert provider(repo).sides().ours == f"{named} (what you rebase onto)"


def test_a_pull_with_rebase_is_onto_the_upstream_though_a_branch_is_at_that_commit(
    apart, git, make_remote, clone
):
    repo = apart()
    mate = clone(make_remote(repo), "mate")
    commit(git, mate, "mate's\n", "of the mate")
    git("push", "-q", cwd=mate)
    commit(git, repo, "mine\n", "of mine")
    git("fetch", "-q", cwd=repo)
    git("branch", "-q", "a-branch", "origin/main", cwd=repo)
    assert git.run("pull", "--rebase", cwd=repo).returncode == 1
    assert provider(repo).sides().ours == "origin/main (what you rebase onto)"


@pytest.mark.parametrize("backend", ["--merge", "--apply"])
def test_in_a_rebase_ours_is_the_upstream_and_theirs_the_persons_own_commit(backend, apart, git):
    repo = apart()
    git("switch", "-q", "topic", cwd=repo)
    mine = git("rev-parse", "HEAD", cwd=repo)
    assert git.run("rebase", backend, "main", cwd=repo).returncode == 1
    sides = provider(repo).sides()
    assert sides.operation == "rebase"
    assert sides.ours == "main (what you rebase onto)"
    assert sides.theirs == f'your commit {mine[:10]} "of topic" of topic'
    (one,) = provider(repo).unmerged()
    assert one.ours == blob(git, repo, "ours\n"), "ours is main's, although topic is being rebased"


def test_in_a_merge_that_a_rebase_makes_again_ours_is_the_persons_own_commit_that_was_moved(apart, git):
    repo = apart()
    git("switch", "-q", "-c", "side", "main~1", cwd=repo)
    commit(git, repo, "side\n", "of side")
    git("switch", "-q", "topic", cwd=repo)
    assert git.run("merge", "side", cwd=repo).returncode == 1
    commit(git, repo, "both\n", "both joined")
    git("switch", "-q", "-c", "target", "main~1", cwd=repo)
    (repo / "app.txt").write_text("of the target\n")
    git("commit", "-q", "-am", "of the target", cwd=repo)
    git("switch", "-q", "topic", cwd=repo)
    assert git.run("rebase", "--rebase-merges", "target", cwd=repo).returncode == 1
    sides, (one,) = provider(repo).sides(), provider(repo).unmerged()
    head, other = (git("rev-parse", name, cwd=repo) for name in ("HEAD", "MERGE_HEAD"))
    assert git("log", "-1", "--format=%s", head, cwd=repo) == "of topic"
    assert sides.ours == f'your commit {head[:10]} "of topic", rebased'
    assert sides.theirs == f'commit {other[:10]} "of side"'
    assert (one.ours, one.theirs) == (blob(git, repo, "theirs\n"), blob(git, repo, "side\n"))


def test_in_a_pull_with_rebase_ours_is_the_remote_branch(apart, git, make_remote, clone):
    repo = apart()
    mate = clone(make_remote(repo), "mate")
    commit(git, mate, "mate's\n", "of the mate")
    git("push", "-q", cwd=mate)
    commit(git, repo, "mine\n", "of mine")
    assert git.run("pull", "--rebase", cwd=repo).returncode == 1
    sides = provider(repo).sides()
    assert sides.ours == "origin/main (what you rebase onto)"
    assert sides.theirs.startswith("your commit ") and sides.theirs.endswith('"of mine" of main')


def test_in_a_cherry_pick_theirs_is_the_picked_commit(apart, git):
    repo = apart()
    picked = git("rev-parse", "topic", cwd=repo)
    git.run("cherry-pick", "topic", cwd=repo)
    sides = provider(repo).sides()
    told = f'commit {picked[:10]} "of topic"'
    assert sides == ("cherry-pick", f"the parent of {told}", "main", told)


def test_in_a_revert_theirs_is_the_parent_of_the_reverted_commit(make_repo, git):
    repo = make_repo()
    commit(git, repo, "first\n", "the first")
    second = commit(git, repo, "second\n", "the second")
    commit(git, repo, "third\n", "the third")
    assert git.run("revert", "--no-edit", second, cwd=repo).returncode == 1
    told = f'commit {second[:10]} "the second"'
    assert provider(repo).sides() == ("revert", told, "main", f"the parent of {told}")
    (one,) = provider(repo).unmerged()
    assert one.theirs == blob(git, repo, "first\n")


@pytest.mark.parametrize("operation", ["revert", "cherry-pick"])
def test_what_goes_on_is_known_when_the_conflict_of_one_of_several_was_committed(operation, apart, git):
    repo = apart()
    for name in ("x.txt", "y.txt"):
        (repo / name).write_text(f"{name}\n")
        git("add", name, cwd=repo)
        git("commit", "-q", "-m", name, cwd=repo)
    if operation == "revert":
        commit(git, repo, "more\n", "more of main")
        several = ["main~3", "main~1"]
    else:
        git("switch", "-q", "topic", cwd=repo)
        several = ["main~2", "main~1"]
    assert git.run(operation, *several, cwd=repo).returncode == 1
    assert provider(repo).pending_operation() == operation
    commit(git, repo, "by hand\n", "settled by hand")
    git_dir = repo / ".git"
    assert (git_dir / "sequencer" / "todo").exists()
    assert not (git_dir / "REVERT_HEAD").exists() and not (git_dir / "CHERRY_PICK_HEAD").exists()
    sides = provider(repo).sides()
    assert provider(repo).pending_operation() == sides.operation == operation
    git(operation, "--continue", cwd=repo)
    assert provider(repo).pending_operation() is None


def stash_conflict(repo: Path, git) -> None:
    (repo / FILE).write_text("stashed\n")
    git("stash", cwd=repo)
    commit(git, repo, "after\n", "after the stash")
    git.run("stash", "pop", cwd=repo)


def test_a_stash_that_was_popped_into_a_conflict_is_named(apart, git):
    repo = apart()
    stash_conflict(repo, git)
    conflicts = provider(repo).unmerged()
    sides = provider(repo).sides(conflicts)
    assert (sides.operation, sides.ours, sides.theirs) == (None, "main", "stash@{0}")
    assert provider(repo).sides().theirs == "the other side", "without the conflict nobody can know"


def test_a_squashed_branch_is_named(apart, git):
    repo = apart()
    git.run("merge", "--squash", "topic", cwd=repo)
    sides = provider(repo).sides(provider(repo).unmerged())
    assert (sides.operation, sides.ours, sides.theirs) == (None, "main", "topic")


def test_an_edit_carried_to_another_branch_is_the_other_side(apart, git):
    repo = apart()
    (repo / FILE).write_text("not committed\n")
    git("checkout", "-q", "-m", "topic", cwd=repo)
    conflicts = provider(repo).unmerged()
    assert [one.path for one in conflicts] == [FILE]
    sides = provider(repo).sides(conflicts)
    assert (sides.operation, sides.ours, sides.theirs) == (None, "topic", "the other side")


def test_a_detached_head_is_told_by_its_commit(apart, git):
    repo = apart()
    git("switch", "-q", "--detach", "main", cwd=repo)
    git.run("merge", "topic", cwd=repo)
    assert provider(repo).sides().ours == f"HEAD ({git('rev-parse', 'HEAD', cwd=repo)[:10]})"


def test_an_octopus_names_all_its_branches(apart, git):
    repo = apart()
    git("switch", "-q", "-c", "other", "main~1", cwd=repo)
    (repo / "other.txt").write_text("other\n")
    git("add", "other.txt", cwd=repo)
    git("commit", "-q", "-m", "of other", cwd=repo)
    git("switch", "-q", "main", cwd=repo)
    assert git.run("merge", "other", "topic", cwd=repo).returncode == 1
    sides = provider(repo).sides()
    assert (sides.operation, sides.ours, sides.theirs) == ("merge", "main", "other and topic")
    (one,) = provider(repo).unmerged()
    assert (one.ours, one.theirs) == (blob(git, repo, "ours\n"), blob(git, repo, "theirs\n"))


# --- settling ---


def test_a_settled_file_leaves_other_conflicts_and_staged_files_as_they_are(apart, git):
    repo = apart()
    git("switch", "-q", "topic", cwd=repo)
    (repo / "app.txt").write_text("topic\n")
    git("commit", "-q", "-am", "app", cwd=repo)
    git("switch", "-q", "main", cwd=repo)
    (repo / "app.txt").write_text("main\n")
    git("commit", "-q", "-am", "app", cwd=repo)
    git.run("merge", "topic", cwd=repo)
    (repo / "mine.txt").write_text("mine\n")
    git("add", "mine.txt", cwd=repo)
    before = git("ls-files", "-s", "--", "app.txt", "mine.txt", cwd=repo)
    git_ = provider(repo)
    (one,) = git_.unmerged(["notes"])
    git_.settle([as_is(one, repo, b"both\n")], {one.path: one})
    assert git("ls-files", "-s", "--", "app.txt", "mine.txt", cwd=repo) == before
    assert [other.path for other in git_.unmerged()] == ["app.txt"]
    assert git.run("merge", "--continue", cwd=repo).returncode == 128


def test_a_settled_path_has_one_entry_and_none_of_the_three_versions(apart, git):
    repo = apart()
    git.run("merge", "topic", cwd=repo)
    git_ = provider(repo)
    (one,) = git_.unmerged()
    git_.settle([as_is(one, repo, b"both\n")], {FILE: one})
    (line,) = git("ls-files", "--stage", "--", FILE, cwd=repo).splitlines()
    assert line == f"100644 {blob(git, repo, 'both' + chr(10))} 0\t{FILE}"


@pytest.mark.parametrize("restore", [("restore", "--merge"), ("checkout", "-m")])
def test_git_brings_a_settled_conflict_back(restore, apart, git):
    repo = apart()
    git.run("merge", "topic", cwd=repo)
    git_ = provider(repo)
    before = git_.unmerged()
    git_.settle([as_is(before[0], repo, b"both\n")], {FILE: before[0]})
    assert git_.unmerged() == []
    git(*restore, "--", FILE, cwd=repo)
    assert git_.unmerged() == before
    assert "<<<<<<<" in (repo / FILE).read_text()


def test_a_file_settled_as_deleted_is_gone_from_work_tree_and_staging_area(apart, git):
    repo = apart(theirs=None)
    git.run("merge", "topic", cwd=repo)
    git_ = provider(repo)
    (one,) = git_.unmerged()
    git_.settle([as_is(one, repo, None)], {FILE: one})
    assert not (repo / FILE).exists()
    assert git("status", "--porcelain", cwd=repo) == f"D  {FILE}"


def test_line_ends_are_those_of_a_checkout(apart, git):
    repo = apart()
    git("config", "core.autocrlf", "true", cwd=repo)
    git.run("merge", "topic", cwd=repo)
    git_ = provider(repo)
    (one,) = git_.unmerged()
    git_.settle([as_is(one, repo, b"one\ntwo\n")], {FILE: one})
    assert (repo / FILE).read_bytes() == b"one\r\ntwo\r\n"
    assert git("cat-file", "blob", f":{FILE}", cwd=repo) == "one\ntwo"
    assert git("status", "--porcelain", cwd=repo) == f"M  {FILE}"


def test_filters_are_those_of_a_checkout(apart, git):
    repo = apart()
    (repo / ".gitattributes").write_text("*.md filter=shout\n")
    git("add", ".gitattributes", cwd=repo)
    git("commit", "-q", "-m", "attributes", cwd=repo)
    git("config", "filter.shout.smudge", "tr a-z A-Z", cwd=repo)
    git("config", "filter.shout.clean", "tr A-Z a-z", cwd=repo)
    git.run("merge", "topic", cwd=repo)
    git_ = provider(repo)
    (one,) = git_.unmerged()
    git_.settle([as_is(one, repo, b"both\n")], {FILE: one})
    assert (repo / FILE).read_text() == "BOTH\n"
    assert git("cat-file", "blob", f":{FILE}", cwd=repo) == "both"


def test_a_file_that_is_kept_is_staged_as_git_add_would(apart, git):
    repo = apart()
    git("config", "core.autocrlf", "true", cwd=repo)
    git.run("merge", "topic", cwd=repo)
    (repo / FILE).write_bytes(b"by hand\r\n")
    git_ = provider(repo)
    (one,) = git_.unmerged()
    git_.settle([Settlement(FILE, b"by hand\r\n", b"by hand\r\n", keep=True)], {FILE: one})
    assert (repo / FILE).read_bytes() == b"by hand\r\n"
    assert git("cat-file", "blob", f":{FILE}", cwd=repo) == "by hand"
    assert git_.unmerged() == []


def test_an_executable_file_stays_executable(apart, git):
    repo = apart(base="base\n")
    git("update-index", "--chmod=+x", FILE, cwd=repo)
    git("commit", "-q", "-m", "mode", cwd=repo)
    git("checkout", "-q", "--", FILE, cwd=repo)
    git.run("merge", "topic", cwd=repo)
    git_ = provider(repo)
    (one,) = git_.unmerged()
    git_.settle([as_is(one, repo, b"both\n")], {FILE: one})
    assert git("ls-files", "-s", FILE, cwd=repo).startswith("100755 ")
    assert os.access(repo / FILE, os.X_OK)


def test_a_file_that_changed_since_it_was_looked_at_is_left_alone(apart, git):
    repo = apart()
    git.run("merge", "topic", cwd=repo)
    git_ = provider(repo)
    (one,) = git_.unmerged()
    chosen = as_is(one, repo, b"both\n")
    (repo / FILE).write_text("an editor saved this\n")
    settled = git_.settle([chosen], {FILE: one})
    assert settled.paths == () and "changed in the meantime" in settled.left[FILE]
    assert (repo / FILE).read_text() == "an editor saved this\n"
    assert git_.unmerged() == [one]
    assert not list((repo / "notes").glob(".*")), "no temporary file is left"


def test_a_conflict_that_became_another_one_is_left_alone(apart, git):
    repo = apart()
    git.run("merge", "topic", cwd=repo)
    git_ = provider(repo)
    (one,) = git_.unmerged()
    settled = git_.settle([as_is(one, repo, b"both\n")], {FILE: one._replace(ours=one.base)})
    assert settled.paths == () and "staging area" in settled.left[FILE]
    assert git_.unmerged() == [one] and "<<<<<<<" in (repo / FILE).read_text()


def test_a_link_in_the_files_place_is_not_followed(apart, git, tmp_path):
    repo = apart()
    git.run("merge", "topic", cwd=repo)
    git_ = provider(repo)
    (one,) = git_.unmerged()
    outside = tmp_path / "outside.txt"
    outside.write_text("outside\n")
    (repo / FILE).unlink()
    (repo / FILE).symlink_to(outside)
    settled = git_.settle([Settlement(FILE, b"both\n", None)], {FILE: one})
    assert "symbolic link" in settled.left[FILE]
    assert outside.read_text() == "outside\n" and git_.unmerged() == [one]


def test_a_folder_that_became_a_link_is_not_followed(apart, git, tmp_path):
    repo = apart()
    git.run("merge", "topic", cwd=repo)
    git_ = provider(repo)
    (one,) = git_.unmerged()
    (tmp_path / "outside").mkdir()
    (repo / FILE).unlink()
    (repo / "notes").rmdir()
    (repo / "notes").symlink_to(tmp_path / "outside")
    settled = git_.settle([Settlement(FILE, b"both\n", None)], {FILE: one})
    assert "symbolic link" in settled.left[FILE]
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_staging_area_that_stays_locked_changes_nothing(apart, git, monkeypatch):
    monkeypatch.setattr("openmemex.git.staging.LOCK_SECONDS", 0.2)
    repo = apart()
    git.run("merge", "topic", cwd=repo)
    git_ = provider(repo)
    (one,) = git_.unmerged()
    before = (repo / FILE).read_bytes()
    lock = repo / ".git" / "index.lock"
    lock.write_text("")
    with pytest.raises(Refused, match=r"index\.lock"):
        git_.settle([as_is(one, repo, b"both\n")], {FILE: one})
    assert lock.exists(), "it is somebody else's"
    assert (repo / FILE).read_bytes() == before
    lock.unlink()
    assert git_.settle([as_is(one, repo, b"both\n")], {FILE: one}).paths == (FILE,)


def test_files_added_by_the_person_meanwhile_are_all_there(apart, git):
    repo = apart()
    git.run("merge", "topic", cwd=repo)
    names = [f"n{number}.txt" for number in range(40)]
    for name in names:
        (repo / name).write_text(name)
    failed: list[str] = []

    def add() -> None:
        for name in names:
            while git.run("add", name, cwd=repo).returncode:
                pass

    adding = threading.Thread(target=add)
    adding.start()
    git_ = provider(repo)
    for _ in range(6):
        (one,) = git_.unmerged()
        settled = git_.settle([as_is(one, repo, b"both\n")], {FILE: one})
        if settled.paths != (FILE,) or git_.unmerged():
            failed.append(str(settled))
        while git.run("checkout", "-q", "-m", "--", FILE, cwd=repo).returncode:
            pass
    adding.join()
    assert failed == []
    assert set(names) <= set(git("ls-files", cwd=repo).splitlines())


def test_reading_conflicts_and_settling_them_does_not_load_libgit2(apart, git):
    repo = apart()
    git.run("merge", "topic", cwd=repo)
    code = (
        "import sys\n"
        "from openmemex.git.provider import GitProvider\n"
        "from openmemex.git.conflicts import Settlement\n"
        f"git = GitProvider.open({str(repo)!r})\n"
        "one = git.unmerged()[0]\n"
        "git.contents([one.base, one.ours, one.theirs]); git.sides([one])\n"
        f"raw = open({str(repo / FILE)!r}, 'rb').read()\n"
        "assert git.settle([Settlement(one.path, b'x', raw)], {one.path: one}).paths\n"
        "assert 'pygit2' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

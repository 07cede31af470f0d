"""Hooks have their say in a commit on a branch that is not checked out, and nothing of the person's moves."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from openmemex.errors import Refused
from openmemex.git import temporary_tree
from tests.git.commits import (
    FIRST,
    M1,
    M2,
    SECOND,
    busy_repo,
    changed_by,
    everything,
    head,
    hook,
    provider,
    same,
    write,
)


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch) -> Path:
    """An own folder for temporary files, so that what is left there is seen."""
    folder = tmp_path.resolve() / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def out(repo, files=None, branch="memex/out", **options):
    return provider(repo).commit(files or {M1: FIRST}, message="On a branch", branch=branch, **options)


def test_hooks_run_in_a_checkout_of_the_branch_and_nothing_of_the_persons_changes(git, make_repo, temporary):
    repo = busy_repo(git, make_repo)
    hook(
        repo,
        "pre-commit",
        "pwd; ls -A; git diff --cached --name-only; git symbolic-ref HEAD",
    )
    hook(repo, "commit-msg", 'echo "Checked-By: hook" >>"$1"')
    before, tip = everything(git, repo), head(git, repo)
    result = out(repo)
    assert everything(git, repo) == before and head(git, repo) == tip
    assert result.engine == "git commit" and result.new_branch and result.branch == "memex/out"
    assert changed_by(git, repo, "memex/out") == [M1] and head(git, repo, "memex/out~1") == tip
    assert git("log", "-1", "--format=%B", "memex/out", cwd=repo).splitlines()[-1] == "Checked-By: hook"
    place, *seen = result.words
    assert os.path.dirname(place) == str(temporary) and f"-{os.getpid()}-" in place
    # What HEAD has, and none of the work that is not committed.
    files = [".ai", ".git", "app.txt", "gone", "partly", "staged", "unstaged"]
    assert seen == [*files, M1, "refs/heads/memex/out"]
    assert os.listdir(temporary) == [] and not (repo / ".git" / "worktrees").exists()
    assert not (repo / ".git" / "open-memex.tree").exists()
    assert git("fsck", "--strict", "--no-dangling", cwd=repo) == ""


def test_a_branch_that_is_there_gets_the_commit_on_its_tip(git, make_repo, temporary):
    repo = busy_repo(git, make_repo)
    first = out(repo)
    hook(repo, "pre-commit", "exit 0")
    before = everything(git, repo)
    second = out(repo, {M2: SECOND, M1: None})
    assert not second.new_branch and head(git, repo, "memex/out~1") == first.commit
    assert changed_by(git, repo, "memex/out") == [M1, M2]
    assert git("ls-tree", "-r", "--name-only", "memex/out", ".ai", cwd=repo) == M2
    again = out(repo, {M2: SECOND})
    assert again.already and again.commit == second.commit
    assert everything(git, repo) == before and os.listdir(temporary) == []


def test_another_revision_to_begin_at(git, make_repo):
    repo = make_repo(commits=3)
    hook(repo, "pre-commit", "cat app.txt")
    result = out(repo, onto="main~2")
    assert result.words == ("1",) and head(git, repo, "memex/out~1") == head(git, repo, "main~2")


def test_a_hook_that_says_no_leaves_no_branch_behind_and_its_words_are_passed_on(git, make_repo, temporary):
    repo = busy_repo(git, make_repo)
    hook(repo, "pre-commit", 'echo "first line"; echo >&2; echo "  second line" >&2; exit 7')
    before = everything(git, repo)
    refusal = same(git, repo, lambda: out(repo))
    assert refusal.words == ("first line", "", "  second line")
    assert "pre-commit" in refusal.message and "git switch" in refusal.hint
    assert git("for-each-ref", "refs/heads", "--format=%(refname:short)", cwd=repo) == "main"
    assert everything(git, repo) == before and os.listdir(temporary) == []
    assert not (repo / ".git" / "logs" / "refs" / "heads" / "memex").exists()


def test_a_branch_of_the_persons_stays_when_the_hook_says_no(git, make_repo):
    repo = make_repo()
    git("branch", "memex/out", cwd=repo)
    hook(repo, "pre-commit", "exit 1")
    with pytest.raises(Refused):
        out(repo)
    assert head(git, repo, "memex/out") == head(git, repo)


def test_what_a_hook_makes_of_the_file_is_what_the_branch_holds(git, make_repo):
    repo = make_repo()
    hook(repo, "pre-commit", f"sed -i s/first/better/ {M1}; git add {M1}; echo x >more; git add more")
    result = out(repo)
    assert "better" in git("show", f"memex/out:{M1}", cwd=repo)
    assert result.held != result.blobs and result.files == (M1, "more")


def test_hooks_that_are_no_part_of_the_checkout_are_not_passed_over(git, make_repo, temporary):
    repo = busy_repo(git, make_repo)
    hook(repo, "pre-commit", "exit 0", repo / ".husky" / "_")
    (repo / ".husky" / "_" / ".gitignore").write_text("*\n")
    git("config", "core.hooksPath", ".husky/_", cwd=repo)
    for act in (lambda: out(repo), lambda: provider(repo).check_commit([M1], "memex/out", None)):
        refusal = same(git, repo, act)
        assert ".husky/_" in refusal.message and "pre-commit" in refusal.message
        assert "git switch -c memex/out" in refusal.hint
    assert os.listdir(temporary) == []


def test_hooks_that_are_part_of_the_checkout_run_from_it(git, make_repo):
    repo = make_repo()
    hook(repo, "pre-commit", "echo committed version", repo / ".githooks")
    git("config", "core.hooksPath", ".githooks", cwd=repo)
    git("add", ".githooks", cwd=repo)
    git("commit", "-qm", "hooks", cwd=repo)
    hook(repo, "pre-commit", "echo changed version; exit 1", repo / ".githooks")
    assert out(repo).words == ("committed version",)
    # A branch from before there were hooks would pass over them.
    refusal = same(git, repo, lambda: out(repo, branch="old", onto="main~1"))
    assert "pre-commit" in refusal.message


def test_hooks_that_only_the_other_branch_brings_run_too(git, make_repo):
    repo = make_repo()
    git("config", "core.hooksPath", ".githooks", cwd=repo)
    git("checkout", "-qb", "side", cwd=repo)
    hook(repo, "pre-commit", "echo no; exit 1", repo / ".githooks")
    git("add", ".githooks", cwd=repo)
    git("commit", "-qm", "hooks", "--no-verify", cwd=repo)
    git("checkout", "-q", "main", cwd=repo)
    assert same(git, repo, lambda: out(repo, branch="side")).words == ("no",)


def test_a_first_commit_can_not_be_checked_out_and_that_is_said(git, make_repo):
    repo = make_repo(commits=0)
    hook(repo, "pre-commit", "exit 0")
    with pytest.raises(Refused, match="first commit") as refused:
        out(repo)
    assert "git switch -c memex/out" in refused.value.hint
    git("switch", "-q", "-c", "memex/out", cwd=repo)
    assert provider(repo).commit({M1: write(repo, M1, FIRST)}, message="x").commit


def test_no_switch_is_announced_to_the_post_checkout_hook(git, make_repo):
    repo = make_repo()
    hook(repo, "pre-commit", "exit 0")
    hook(repo, "post-checkout", "touch switched; exit 1")
    hook(repo, "post-commit", "echo after")
    assert out(repo).words == ("after",) and not (repo / "switched").exists()


def test_from_a_linked_work_tree_and_from_a_detached_head(git, make_repo, tmp_path):
    repo = make_repo(commits=2)
    git("worktree", "add", "-q", "--detach", "../wt", "HEAD~1", cwd=repo)
    hook(repo, "pre-commit", "cat app.txt")
    before = git("worktree", "list", "--porcelain", cwd=repo)
    assert out(tmp_path / "wt").words == ("1",)
    assert git("worktree", "list", "--porcelain", cwd=repo) == before
    assert git("status", "--porcelain", cwd=tmp_path / "wt") == ""


def test_the_blob_is_the_one_that_git_add_makes_on_that_branch(git, make_repo):
    repo = make_repo()
    git("config", "filter.loud.clean", "tr a-z A-Z", cwd=repo)
    git("checkout", "-qb", "loud", cwd=repo)
    (repo / ".gitattributes").write_text("*.md filter=loud\n")
    git("add", ".gitattributes", cwd=repo)
    git("commit", "-qm", "loud", cwd=repo)
    git("checkout", "-q", "main", cwd=repo)
    for hooks in (False, True):
        if hooks:
            hook(repo, "pre-commit", "exit 0")
        path = M2 if hooks else M1
        out(repo, {path: FIRST}, branch="loud")
        assert "FIRST" in git("show", f"loud:{path}", cwd=repo)
        out(repo, {path: FIRST}, branch=f"quiet{hooks}")
        assert "first" in git("show", f"quiet{hooks}:{path}", cwd=repo)


def test_a_folder_that_a_hook_locks_is_removed_all_the_same(git, make_repo, temporary):
    repo = make_repo()
    hook(repo, "pre-commit", "mkdir -p made/in; touch made/in/x; chmod 500 made/in made")
    out(repo)
    assert os.listdir(temporary) == [] and "memex" not in git("worktree", "list", cwd=repo)


def test_a_sparse_checkout_stays_as_sparse(git, make_repo):
    repo = make_repo()
    for name in ("far", "near"):
        (repo / name).mkdir()
        (repo / name / "x").write_text("x")
    git("add", ".", cwd=repo)
    git("commit", "-qm", "two folders", cwd=repo)
    git("sparse-checkout", "set", "near", cwd=repo)
    hook(repo, "pre-commit", "ls")
    result = out(repo)
    assert result.words == tuple(sorted(x.name for x in repo.iterdir() if x.name[0] != "."))
    assert "near" in result.words and "far" not in result.words
    assert changed_by(git, repo, "memex/out") == [M1]


# --- stopped anywhere ---

KILLED = (
    "import sys; from openmemex.git.provider import GitProvider\n"
    f"GitProvider.open('.').commit({{{M1!r}: {FIRST!r}}}, message='Remember', branch='memex/out')\n"
)
POINTS = ["tree-noted", "tree-added", "tree-made", "staged", "ref-moved"]


def test_every_point_of_the_temporary_work_tree_is_killed_at():
    source = (Path(temporary_tree.__file__)).read_text(encoding="utf-8")
    assert set(re.findall(r'reached\("submit\.([a-z-]+)"\)', source)) <= set(POINTS)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("branch", ["new", "old"])
def test_what_a_kill_leaves_is_removed_by_the_next_run_which_finishes(
    git, make_repo, temporary, point, branch
):
    repo = busy_repo(git, make_repo)
    if branch == "old":
        git("branch", "memex/out", cwd=repo)
    hook(repo, "pre-commit", "exit 0")
    before, tip = everything(git, repo), head(git, repo)
    command = [sys.executable, "-c", KILLED]
    done = subprocess.run(command, cwd=repo, env={**os.environ, "OPEN_MEMEX_FAULT": f"submit.{point}"})
    assert done.returncode == -signal.SIGKILL
    if point != "tree-noted":
        assert len(os.listdir(temporary)) == 1
    assert git("fsck", "--strict", "--no-dangling", cwd=repo) == ""
    git("commit", "-qm", "my own work", cwd=repo)
    assert M1 not in changed_by(git, repo)
    git("reset", "-q", "--soft", tip, cwd=repo)
    subprocess.run(command, cwd=repo, check=True)
    assert changed_by(git, repo, "memex/out") == [M1] and head(git, repo, "memex/out~1") == tip
    assert os.listdir(temporary) == [] and not (repo / ".git" / "worktrees").exists()
    # The person's own commit and reset are all that HEAD's log has more.
    own = (" commit: my own work", f" reset: moving to {tip}")
    assert [line for line in everything(git, repo) if not line.endswith(own)] == before
    assert git("fsck", "--strict", "--no-dangling", cwd=repo) == ""


def test_a_branch_that_a_kill_left_empty_goes_when_another_one_is_named(git, make_repo, temporary):
    repo = make_repo()
    hook(repo, "pre-commit", "exit 0")
    env = {**os.environ, "OPEN_MEMEX_FAULT": "submit.tree-made"}
    assert subprocess.run([sys.executable, "-c", KILLED], cwd=repo, env=env).returncode == -signal.SIGKILL
    assert git("branch", "--list", "memex/out", cwd=repo) != ""
    out(repo, branch="other")
    assert git("branch", "--list", "--format=%(refname:short)", cwd=repo).split() == ["main", "other"]
    assert os.listdir(temporary) == []


def test_killed_while_the_hook_runs(git, make_repo, temporary, tmp_path):
    repo = make_repo()
    hook(repo, "pre-commit", f"test -e {tmp_path}/once && exit 0; touch {tmp_path}/once; sleep 3")
    process = subprocess.Popen([sys.executable, "-c", KILLED], cwd=repo)
    while not (tmp_path / "once").exists():
        time.sleep(0.02)
    process.kill()
    process.wait()
    result = out(repo)
    time.sleep(4)  # the hook that was left alone comes to its end
    assert head(git, repo, "memex/out") == result.commit and head(git, repo, "memex/out~1") == head(git, repo)
    assert changed_by(git, repo, "memex/out") == [M1] and os.listdir(temporary) == []
    assert git("worktree", "list", cwd=repo).count("\n") == 0
    assert git("fsck", "--strict", "--no-dangling", cwd=repo) == ""


def test_an_interrupt_while_the_hook_runs_leaves_nothing(git, make_repo, temporary, tmp_path):
    repo = make_repo()
    hook(repo, "pre-commit", f"touch {tmp_path}/begun; sleep 60")
    process = subprocess.Popen([sys.executable, "-c", KILLED], cwd=repo, stderr=subprocess.DEVNULL)
    while not (tmp_path / "begun").exists():
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) != 0
    assert os.listdir(temporary) == [] and git("branch", "--list", "memex/out", cwd=repo) == ""
    assert not (repo / ".git" / "open-memex.tree").exists()


def test_a_note_that_is_no_note_of_ours_removes_nothing(git, make_repo, tmp_path):
    repo = make_repo()
    precious = tmp_path / "precious"
    precious.mkdir()
    note = repo / ".git" / "open-memex.tree"
    for text in (
        "",
        "{",
        '{"folder": 3}',
        f'{{"folder": "{precious}", "ref": "refs/heads/main", "made_at": ""}}',
    ):
        note.write_text(text)
        assert out(repo, branch=f"b{len(text)}").commit
    assert precious.is_dir() and head(git, repo)


# --- on the branch that is checked out ---


def test_what_hooks_changed_and_added_is_not_taken_back_by_the_persons_next_commit(git, make_repo):
    repo = busy_repo(git, make_repo)
    write(repo, M1, FIRST)
    hook(
        repo,
        "pre-commit",
        f"sed -i s/first/better/ {M1}; echo x >more; echo y >staged; git add {M1} more staged",
    )
    before = git("ls-files", "-s", "staged", cwd=repo)
    result = provider(repo).commit({M1: FIRST}, message="x")
    assert sorted(result.files) == [M1, "more", "staged"]
    # What the person has staged of a file stays, whatever the hook committed of it.
    assert git("ls-files", "-s", "staged", cwd=repo) == before
    assert git("diff", "--cached", "--name-only", "--", M1, "more", cwd=repo) == ""
    (repo / ".git" / "hooks" / "pre-commit").unlink()
    git("commit", "-qm", "mine", cwd=repo)
    assert "better" in git("show", f"HEAD:{M1}", cwd=repo) and git("show", "HEAD:more", cwd=repo) == "x"


def test_a_hook_may_take_its_time_while_the_person_goes_on(git, make_repo, tmp_path):
    repo = make_repo()
    hook(repo, "pre-commit", f"touch {tmp_path}/begun; while test ! -e {tmp_path}/go; do sleep 0.05; done")
    write(repo, M1, FIRST)
    (repo / "own").write_text("x")
    code = "import sys; from openmemex.git.provider import GitProvider\n"
    code += f"GitProvider.open('.').commit({{{M1!r}: {FIRST!r}}}, message='x')\n"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=repo)
    while not (tmp_path / "begun").exists():
        time.sleep(0.02)
    git("add", "own", cwd=repo)  # not even a lock is in the way
    (tmp_path / "go").touch()
    assert process.wait(timeout=60) == 0
    assert changed_by(git, repo) == [M1] and git("diff", "--cached", "--name-only", cwd=repo) == "own"


@pytest.mark.parametrize("kind", ["split", "sparse", "v4"])
def test_hooks_and_special_staging_areas(git, make_repo, kind):
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
    else:
        git("update-index", "--index-version=4", cwd=repo)
    hook(repo, "pre-commit", "git diff --cached --name-only")
    write(repo, M1, FIRST)
    before = git("ls-files", "-s", "-t", "--", ".", ":!.ai", cwd=repo)
    assert provider(repo).commit({M1: FIRST}, message="x").words == (M1,)
    assert git("ls-files", "-s", "-t", "--", ".", ":!.ai", cwd=repo) == before
    assert (
        git("status", "--porcelain", ".ai", cwd=repo) == "" and git("fsck", "--no-dangling", cwd=repo) == ""
    )

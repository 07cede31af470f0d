"""A person works in the repository while memories are committed: neither side loses anything."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from openmemex.git import staging
from openmemex.git.repository import Repository
from tests.git.commits import FIRST, M1, SECOND, busy_repo, changed_by, head, hook, own_work, provider, write

# A person who adds one file after the other, again when the staging area is locked, with the times of it.
ADDING = """
import subprocess, sys, time
for name in sys.argv[1:]:
    for _ in range(2000):
        if subprocess.run(["git", "add", name], capture_output=True).returncode == 0:
            break
        time.sleep(0.005)
    else:
        sys.exit(f"{name} could never be added")
"""


def race(git, repo: Path, adds: int, submits: int, *, hooks: bool = False, ways=("here",)) -> None:
    if hooks:
        hook(repo, "pre-commit", "exit 0")
    git("branch", "memex", cwd=repo)
    names = [f"f{n:03}" for n in range(adds)]
    for name in names:
        (repo / name).write_text(name)
    adding = subprocess.Popen([sys.executable, "-c", ADDING, *names], cwd=repo)
    made: dict[str, list[str]] = {"here": [], "branch": []}
    for number in range(submits):
        way = ways[number % len(ways)]
        path = f".ai/open-memex/{number:026}.md"
        branch = None if way == "here" else "memex"
        data = path.encode() if branch else write(repo, path, path.encode())
        provider(repo).commit({path: data}, message=path, branch=branch)
        made[way].append(path)
    assert adding.wait() == 0
    assert git("diff", "--cached", "--name-only", cwd=repo).splitlines() == names
    assert [git("show", f":{name}", cwd=repo) for name in names[:: max(1, adds // 10)]] == (
        names[:: max(1, adds // 10)]
    )
    for way, rev in (("here", "HEAD"), ("branch", "memex")):
        if made[way]:
            assert git("ls-tree", "-r", "--name-only", rev, ".ai", cwd=repo).splitlines() == made[way]
            assert git("rev-list", "--count", rev, cwd=repo) == str(len(made[way]) + 1)
    assert git("status", "--porcelain", "--", ".ai", cwd=repo) == ""
    assert git("fsck", "--strict", "--no-dangling", cwd=repo) == ""


@pytest.mark.parametrize("hooks", [False, True], ids=["no hooks", "hooks"])
def test_adds_during_submits_lose_nothing(git, make_repo, hooks):
    race(git, make_repo(), 40, 8, hooks=hooks)


@pytest.mark.slow
@pytest.mark.parametrize("hooks", [False, True], ids=["no hooks", "hooks"])
@pytest.mark.parametrize("ways", [("here",), ("branch",), ("here", "branch")], ids=["here", "branch", "both"])
def test_two_hundred_adds_during_fifty_submits_lose_nothing(git, make_repo, hooks, ways):
    race(git, make_repo(), 200, 50, hooks=hooks, ways=ways)


COMMITTING = (
    "import sys; from openmemex.git.provider import GitProvider\n"
    "for n in range(int(sys.argv[2])):\n"
    "    path = f'.ai/open-memex/{sys.argv[1]}{n}.md'; data = path.encode()\n"
    "    branch = sys.argv[3] or None\n"
    "    if not branch: open(path, 'wb').write(data)\n"
    "    GitProvider.open('.').commit({path: data}, message=path, branch=branch)\n"
)


@pytest.mark.parametrize("hooks", [False, True], ids=["no hooks", "hooks"])
def test_processes_that_commit_here_and_elsewhere_at_once_all_get_through(git, make_repo, hooks):
    repo = make_repo()
    if hooks:
        hook(repo, "pre-commit", "exit 0")
    (repo / ".ai" / "open-memex").mkdir(parents=True)
    running = [
        subprocess.Popen([sys.executable, "-c", COMMITTING, name, "4", branch], cwd=repo)
        for name, branch in (("a", ""), ("b", ""), ("c", "memex"), ("d", "memex"))
    ]
    assert [process.wait() for process in running] == [0, 0, 0, 0]
    for rev in ("HEAD", "memex"):
        assert len(git("ls-tree", "-r", "--name-only", rev, ".ai", cwd=repo).splitlines()) >= 8
    assert git("status", "--porcelain", cwd=repo) == "" and git("fsck", cwd=repo) == ""
    assert git("worktree", "list", cwd=repo).count("\n") == 0


@pytest.mark.parametrize("hooks", [False, True], ids=["no hooks", "hooks"])
def test_the_person_commits_all_the_time(git, make_repo, hooks):
    repo = make_repo()
    script = "for i in $(seq 15); do echo $i >own; until git commit -qam own$i 2>/dev/null; do :; done; done"
    (repo / "own").write_text("0\n")
    git("add", "own", cwd=repo)
    git("commit", "-qm", "own0", cwd=repo)
    if hooks:
        hook(repo, "pre-commit", "sleep 0.02")
    person = subprocess.Popen(["sh", "-c", script], cwd=repo)
    made = []
    while person.poll() is None or len(made) < 3:
        path = f".ai/open-memex/{len(made):026}.md"
        provider(repo).commit({path: write(repo, path, path.encode())}, message="memory")
        made.append(path)
    assert person.returncode == 0
    assert git("ls-tree", "-r", "--name-only", "HEAD", ".ai", cwd=repo).splitlines() == made
    subjects = git("log", "--format=%s", cwd=repo).splitlines()
    assert [s for s in subjects if s.startswith("own")] == [f"own{n}" for n in range(15, -1, -1)]
    # No commit of the person's took a memory back.
    assert git("log", "--diff-filter=D", "--name-only", "--format=", "--", ".ai", cwd=repo) == ""
    assert git("status", "--porcelain", cwd=repo) == ""


def test_a_file_that_is_written_while_it_is_staged_is_committed_as_it_was(git, make_repo, monkeypatch):
    """The staging area gets what the commit has, not what the work tree has by then."""
    repo = busy_repo(git, make_repo)
    write(repo, M1, FIRST)
    real = staging.add

    def add_late(*args):
        write(repo, M1, SECOND)
        return real(*args)

    monkeypatch.setattr(staging, "add", add_late)
    provider(repo).commit({M1: FIRST}, message="x")
    assert git("show", f"HEAD:{M1}", cwd=repo).encode() + b"\n" == FIRST
    assert git("show", f":{M1}", cwd=repo).encode() + b"\n" == FIRST
    assert git("status", "--porcelain", ".ai", cwd=repo) == f" M {M1}"


@pytest.mark.parametrize("mark", ["--assume-unchanged", "--skip-worktree"])
def test_a_file_that_git_was_told_not_to_look_at_is_not_reverted_by_the_next_commit(git, make_repo, mark):
    repo = busy_repo(git, make_repo)
    provider(repo).commit({M1: write(repo, M1, FIRST)}, message="x")
    git("update-index", mark, M1, cwd=repo)
    provider(repo).commit({M1: write(repo, M1, SECOND)}, message="y")
    git("commit", "-qm", "mine", cwd=repo)
    assert git("show", f"HEAD:{M1}", cwd=repo).encode() + b"\n" == SECOND


KILLED = (
    "import sys; from openmemex.git.provider import GitProvider\n"
    "path, branch = sys.argv[1], sys.argv[2] or None\n"
    "data = open(path, 'rb').read()\n"
    "GitProvider.open('.').commit({path: data}, message='Remember', branch=branch)\n"
)


@pytest.mark.parametrize("hooks", [False, True], ids=["no hooks", "hooks"])
@pytest.mark.parametrize("branch", ["", "memex"])
def test_killed_at_any_moment_the_next_run_finishes(git, make_repo, monkeypatch, tmp_path, hooks, branch):
    """Not at named points: by a clock, wherever it falls, with git's own processes going on alone."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    repo = busy_repo(git, make_repo)
    if hooks:
        hook(repo, "pre-commit", "sleep 0.05")
    before, command = own_work(git, repo), [sys.executable, "-c", KILLED, M1, branch]
    for number, delay in enumerate((0.12, 0.18, 0.24, 0.3, 0.4)):
        write(repo, M1, FIRST + bytes([97 + number]) + b"\n")
        process = subprocess.Popen(command, cwd=repo, stderr=subprocess.DEVNULL)
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for lock in (".git/index.lock", ".git/HEAD.lock", ".git/refs/heads/main.lock"):
            for _ in range(100):  # a git that was left alone ends and takes its lock away
                if not (repo / lock).exists():
                    break
                subprocess.run(["sleep", "0.02"], check=True)
        subprocess.run(command, cwd=repo, check=True)
        rev = branch or "HEAD"
        assert git("show", f"{rev}:{M1}", cwd=repo).encode() + b"\n" == (repo / M1).read_bytes()
        assert changed_by(git, repo, rev) == [M1]
        assert git("fsck", "--strict", "--no-dangling", cwd=repo) == ""
    assert [x for x in own_work(git, repo) if "branch.oid" not in x] == (
        [x for x in before if "branch.oid" not in x]
    )
    assert not [name for name in os.listdir(tmp_path) if name.startswith("open-memex-")]
    assert git("worktree", "list", cwd=repo).count("\n") == 0
    assert head(git, repo) and Repository(provider(repo).site).pending_operation() is None

"""Nothing that is started asks at the terminal, waits for our own input, or goes on for ever."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kinds import FOLDER, NEW, OLD, Stage

from openmemex.git import hooked
from tests.git.commits import FIRST, M1, busy_repo, hook, provider, same, write


@pytest.fixture
def stage(git, tmp_path):
    return Stage(git, tmp_path.resolve())


def wrapped_git(tmp_path, monkeypatch, script):
    """A `git` first on the PATH; $REAL is the real one."""
    folder = tmp_path / "wrapped"
    folder.mkdir()
    (folder / "git").write_text(f"#!/bin/sh\nREAL={shutil.which('git')}\n{script}\n")
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_git_is_told_to_ask_nothing_whatever_the_person_has_set(git, stage, tmp_path, monkeypatch):
    here = stage.clone()
    stage.share(NEW, "The new decision: larch for every gate.")
    names = ("GIT_TERMINAL_PROMPT", "GCM_INTERACTIVE", "GIT_EDITOR", "GIT_PAGER")
    for name, value in zip(names, ("1", "always", "vi", "less"), strict=True):
        monkeypatch.setenv(name, value)
    shown = ";".join(f"${name}" for name in names)
    wrapped_git(tmp_path, monkeypatch, f'echo "{shown}" >>{tmp_path}/seen\nexec $REAL "$@"')
    provider(here).pull(FOLDER)
    (here / "own.txt").write_text("x")
    provider(here).commit({M1: write(here, M1, FIRST)}, message="x")
    provider(here).push("main")
    provider(here).folder_status(FOLDER)
    provider(here).versions(f"{OLD}.md", [FOLDER])
    seen = (tmp_path / "seen").read_text().splitlines()
    assert len(seen) > 10 and set(seen) == {"0;never;:;cat"}


def at_a_terminal(folder: Path, words: list[str]) -> int:
    """Run a program that has a terminal of its own to ask at; its exit code."""
    pty = pytest.importorskip("pty")
    child, master = pty.fork()
    if child == 0:
        try:
            os.chdir(folder)
            os.execvp(words[0], words)
        finally:
            os._exit(99)
    while True:
        try:
            if not os.read(master, 4096):
                break
        except OSError:
            break
    _, status = os.waitpid(child, 0)
    os.close(master)
    return os.waitstatus_to_exitcode(status)


def test_neither_a_transport_nor_a_hook_can_ask_at_the_terminal(git, om, make_repo, tmp_path, monkeypatch):
    told = tmp_path / "told"
    ask = f"if (: </dev/tty) 2>/dev/null; then echo asked >>{told}; else echo none >>{told}; fi"
    repo = make_repo(origin="ssh://git@h.test/x.git")
    (tmp_path / "ssh").write_text(f"#!/bin/sh\n{ask}\nexit 1\n")
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(tmp_path / "ssh"))
    assert at_a_terminal(repo, ["git", "fetch", "-q"]) == 128
    assert told.read_text() == "asked\n"  # git by itself could
    told.unlink()
    memex = [sys.executable, "-m", "openmemex"]
    assert at_a_terminal(repo, [*memex, "pull"]) == 1
    assert told.read_text() == "none\n"
    hook(repo, "pre-commit", ask)
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    assert at_a_terminal(repo, [*memex, "submit", memory]) == 0
    assert told.read_text() == "none\nnone\n"


# What is given its input by us.
FED = "*stdin*|*pathspec-from-file*|*index-info*|*--batch*|*-F\\ -*"


def test_no_command_lets_git_read_our_own_input(git, om, stage, tmp_path, monkeypatch):
    here = stage.clone()
    stage.share(NEW, "The new decision: larch for every gate.")
    memory = om("add", "the kettle is red", cwd=here)["id"]
    wrapped_git(tmp_path, monkeypatch, f'case "$*" in {FED}) ;; *) cat >/dev/null ;; esac\nexec $REAL "$@"')
    for words in (
        ["pull"],
        ["submit", memory],
        ["history", memory],
        ["search", "larch", "--at", "HEAD~1"],
        ["resolve"],
        ["init", "--git"],
        ["doctor"],
    ):
        process = subprocess.Popen(
            [sys.executable, "-m", "openmemex", *words],
            cwd=here,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdin is not None and process.stdout is not None
        try:
            code = process.wait(timeout=100)  # our own input stays open all the while
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            pytest.fail(f"{words[0]} waits for an input that never comes")
        assert code == 0, (words, process.stdout.read())
        process.stdin.close()
        process.stdout.close()


@pytest.mark.parametrize("branch", [None, "memex/out"])
def test_a_hook_that_never_ends_is_ended_and_all_is_as_before(git, make_repo, tmp_path, monkeypatch, branch):
    repo = busy_repo(git, make_repo)
    hook(repo, "pre-commit", f"sleep 600 & echo $! >{tmp_path}/child; wait")
    monkeypatch.setattr(hooked, "HOOK_SECONDS", 1.0)
    if branch is None:
        write(repo, M1, FIRST)
    refusal = same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x", branch=branch))
    assert "`git commit`" in refusal.message and "stopped after 1 s" in refusal.message
    locks = {path.name for path in (repo / ".git").rglob("*.lock")}
    assert locks <= {"open-memex.lock"}
    assert git("worktree", "list", cwd=repo).count("\n") == 0
    child = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}/stat")
    assert not child.exists() or child.read_text().rpartition(")")[2].split()[0] == "Z"
    hook(repo, "pre-commit", "exit 0")
    assert provider(repo).commit({M1: FIRST}, message="x", branch=branch).commit

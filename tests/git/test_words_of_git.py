"""What git says is passed on without credentials and without the traces that a person lets it write."""

from __future__ import annotations

import os
import shutil

import pytest

from openmemex.errors import OpenMemexError
from tests.git.commits import FIRST, M1, hook, provider, same, write

FOLDER, NAME = M1.rsplit("/", 1)
SECRET = "s3cr3t" + "-of-a-remote-91"


ACTS = {
    "status": lambda it: it.folder_status(FOLDER),
    "ls-files": lambda it: it.unmerged(),
    "log": lambda it: it.versions(NAME, [FOLDER]),
    "cat-file": lambda it: it.contents(["0" * 40]),
    "update-index": lambda it: it.commit({M1: FIRST}, message="x"),
}


@pytest.mark.parametrize("command", ACTS)
def test_no_command_of_git_tells_a_password(git, make_repo, tmp_path, monkeypatch, command):
    """In a partial clone any command may talk to a remote, not only those that fetch."""
    repo = make_repo()
    write(repo, M1, FIRST)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text(
        f'#!/bin/sh\ncase "$*" in *{command}\\ *) echo "fatal: unable to access '
        f"'https://me:{SECRET}@h.test/x.git?token={SECRET}'\" >&2; exit 128;; esac\n"
        f'exec {shutil.which("git")} "$@"\n'
    )
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(OpenMemexError) as refused:
        ACTS[command](provider(repo))
    said = f"{refused.value.message} {refused.value.hint} {refused.value.words}"
    assert SECRET not in said and "https://h.test/x.git" in said


TRACES = ("GIT_TRACE", "GIT_TRACE_SETUP", "GIT_TRACE_PERFORMANCE", "GIT_TRACE2", "GIT_CURL_VERBOSE")


def test_a_person_who_watches_git_at_work_sees_a_refusal_in_plain_words(git, make_repo, monkeypatch):
    repo = make_repo(origin="http://127.0.0.1:9/x.git")
    write(repo, M1, FIRST)
    hook(repo, "pre-commit", "echo not today; exit 1")
    for name in TRACES:
        monkeypatch.setenv(name, "1")
    assert "trace" in git.run("commit", "-m", "x", "--allow-empty", cwd=repo).stderr, "git itself traces"
    refusal = same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x"))
    assert refusal.words == ("not today",)
    with pytest.raises(OpenMemexError) as refused:
        provider(repo).pull()
    told = " ".join([refused.value.message, *refused.value.words])
    assert "127.0.0.1" in told and "trace" not in told and ".c:" not in told

"""Variables of git's that let some of its commands see or say other things than the rest do not count."""

from __future__ import annotations

import os

import pytest

from openmemex.git import process
from tests.git.commits import FIRST, M1, changed_by, hook, provider, same, write


@pytest.fixture
def other_settings(git, home, monkeypatch):
    """GIT_CONFIG: `git config` reads and writes that file alone, while `git commit` does not know of it."""
    file = home / "other-config"
    file.write_text("[user]\n\tname = Nobody\n")
    monkeypatch.setenv("GIT_CONFIG", str(file))
    return file


@pytest.mark.parametrize("branch", [None, "b"])
def test_signatures_are_asked_for_all_the_same(git, make_repo, other_settings, monkeypatch, branch):
    repo = make_repo()
    monkeypatch.delenv("GIT_CONFIG")
    git("config", "commit.gpgSign", "true", cwd=repo)
    git("config", "gpg.program", "false", cwd=repo)
    monkeypatch.setenv("GIT_CONFIG", str(other_settings))
    write(repo, M1, FIRST)
    assert "signed" in same(git, repo, lambda: commit(repo, branch)).message
    assert provider(repo).capabilities().signing


@pytest.mark.parametrize("branch", [None, "b"])
def test_hooks_that_the_settings_name_run_all_the_same(
    git, make_repo, home, other_settings, monkeypatch, branch
):
    repo = make_repo()
    hook(repo, "pre-commit", "echo no such memory; exit 1", folder=home / "hooks")
    monkeypatch.delenv("GIT_CONFIG")
    git("config", "core.hooksPath", str(home / "hooks"), cwd=repo)
    monkeypatch.setenv("GIT_CONFIG", str(other_settings))
    write(repo, M1, FIRST)
    assert "no such memory" in same(git, repo, lambda: commit(repo, branch)).words
    assert provider(repo).capabilities().hooks == ("pre-commit",)


def test_drivers_are_set_up_in_the_repository_and_nowhere_else(make_repo, other_settings):
    repo = make_repo()
    before = other_settings.read_text()
    it = provider(repo)
    it.set_drivers(it.plan_drivers(".ai/open-memex"))
    assert "open-memex" in (repo / ".git" / "config").read_text() and other_settings.read_text() == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GIT_PRINT_SHA1_ELLIPSIS", "yes"),
        ("GIT_DIFF_OPTS", "--unified=0"),
        ("GIT_EXTERNAL_DIFF", "false"),
        ("GIT_LITERAL_PATHSPECS", "1"),
        ("GIT_MERGE_VERBOSITY", "5"),
        ("GIT_NOTES_DISPLAY_REF", "refs/notes/*"),
        ("GIT_FLUSH", "1"),
        ("GIT_ADVICE", "0"),
        ("GIT_PAGER_IN_USE", "true"),
        ("GIT_ATTR_NOSYSTEM", "1"),
    ],
)
def test_any_other_variable_changes_nothing_that_is_told(git, make_repo, monkeypatch, name, value):
    repo = make_repo()
    monkeypatch.setenv(name, value)
    folder, file = M1.rsplit("/", 1)
    made = provider(repo).commit({M1: write(repo, M1, FIRST)}, message="x")
    assert [one.commit for one in provider(repo).versions(file, [folder])] == [made.commit]
    assert provider(repo).folder_status(folder) == []
    monkeypatch.delenv(name)
    assert changed_by(git, repo) == [M1]


@pytest.mark.parametrize("stream", ["STDIN", "STDOUT", "STDERR"])
def test_no_variable_takes_gits_streams_elsewhere(make_repo, monkeypatch, stream):
    """git obeys these on Windows alone: what counts is that they do not reach it."""
    repo = make_repo()
    asked = ("-c", "alias.told=!env", "told")
    environ = {**os.environ, f"GIT_REDIRECT_{stream}": "elsewhere", "GIT_KEPT": "yes"}
    told = process.run_git(asked, cwd=str(repo), environ=environ).text.splitlines()
    names = {line.partition("=")[0] for line in told}
    assert "GIT_KEPT" in names and not {name for name in names if name.startswith("GIT_REDIRECT")}


def commit(repo, branch):
    return provider(repo).commit({M1: FIRST}, message="x", branch=branch)

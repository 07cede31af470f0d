"""A repository of another account is neither read past git's own doubts nor written, until it is trusted."""

from __future__ import annotations

import os

import pytest

from openmemex.errors import OpenMemexError
from openmemex.git.provider import GitProvider
from tests.git.commits import FIRST, M1, everything, provider, write

FOLDER, NAME = M1.rsplit("/", 1)

ACTS = {
    "commit": lambda it: it.commit({M1: FIRST}, message="x"),
    "commit on a branch": lambda it: it.commit({M1: FIRST}, message="x", branch="memex/out"),
    "pull": lambda it: it.pull(FOLDER),
    "push": lambda it: it.push("main"),
    "status": lambda it: it.folder_status(FOLDER),
    "conflicts": lambda it: it.unmerged(),
    "history": lambda it: it.versions(NAME, [FOLDER]),
    "a revision": lambda it: it.revision("HEAD"),
    "a date": lambda it: it.revision("2039-01-01"),
    "capabilities": lambda it: it.capabilities(),
    "the name of a commit": lambda it: it.resolve("HEAD"),
    "a folder of the past": lambda it: it.entries("HEAD", FOLDER),
    "names of the past": lambda it: it.names_in_history("01", [FOLDER]),
    "what merges joined": lambda it: it.joined([FOLDER]),
    "what is staged": lambda it: it.staged([M1]),
    "what waits to be pushed": lambda it: it.unpushed(FOLDER),
    "setting up drivers": lambda it: it.plan_drivers(FOLDER),
    "taking drivers out": lambda it: it.plan_driver_removal(FOLDER),
}


@pytest.mark.parametrize("act", ACTS)
def test_each_act_is_refused_with_the_setting_and_nothing_is_written(git, make_repo, make_remote, act):
    repo = make_repo()
    remote = make_remote(repo)
    write(repo, M1, FIRST)

    def state():
        return everything(git, repo), git("for-each-ref", cwd=repo), git("for-each-ref", cwd=remote)

    before, objects = state(), git("count-objects", cwd=repo)
    # git's own way of trying this without a second account.
    doubting = {**os.environ, "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
    found = GitProvider.open(str(repo), doubting)
    assert found is not None
    with pytest.raises(OpenMemexError) as refused:
        ACTS[act](found)
    assert refused.value.message == f"git does not trust {repo}: it belongs to another user"
    assert refused.value.hint == f"If you trust it: git config --global --add safe.directory {repo}"
    assert state() == before and git("count-objects", cwd=repo) == objects
    ACTS[act](provider(repo))  # and it is nothing else that is in the way

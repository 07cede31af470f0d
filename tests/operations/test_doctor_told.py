"""What doctor says while git is in the middle of something: each thing once, each command one that works."""

from __future__ import annotations

import re
from typing import Any

import pytest
from merging_repos import Conflicts, memory_id, text_of


@pytest.fixture
def bad(om) -> Any:
    def run(folder) -> list[dict[str, Any]]:
        return [one for one in om("doctor", cwd=folder, code=1)["checks"] if not one["ok"]]

    return run


def test_a_memory_in_conflict_is_told_once_and_by_the_command_that_settles_it(make_repo, git, bad):
    made = Conflicts(make_repo(), git)
    made.apart({1: text_of(1)}, {1: text_of(1, type="gotcha")}, {1: text_of(1, type="lesson")})
    with pytest.raises(AssertionError):
        git("merge", "topic", cwd=made.repo)
    told = bad(made.repo)
    naming = [one for one in told if memory_id(1) in one["text"]]
    assert [(one["name"], one["fix"]) for one in naming] == [("merges", "open-memex resolve")]
    assert [one["name"] for one in told] == ["git", "merges"]


@pytest.mark.parametrize("operation", ["merge", "bisect"])
def test_the_way_out_of_an_operation_that_waits_works_as_printed(
    make_repo, git, bad, om, operation, monkeypatch
):
    monkeypatch.setenv("GIT_EDITOR", ":")
    made = Conflicts(make_repo(), git)
    made.apart({1: text_of(1)}, {2: text_of(2)}, {3: text_of(3)})
    if operation == "merge":
        git("merge", "--no-commit", "topic", cwd=made.repo)
    else:
        git("bisect", "start", cwd=made.repo)
    told = [one for one in bad(made.repo) if one["name"] == "git"]
    assert [one["text"] for one in told] == [f"a {operation} is not finished"]
    words = re.split(r"[,(]", told[0]["fix"])[0].split()
    assert words[:2] == ["git", operation]
    git(*words[1:], cwd=made.repo)
    assert all(one["ok"] for one in om("doctor", cwd=made.repo)["checks"])


def test_a_folder_outside_a_sparse_checkout_is_told_without_a_memory_that_does_not_exist(make_repo, git, bad):
    made = Conflicts(make_repo(), git)
    made.commit({1: text_of(1)})
    (made.repo / "src").mkdir()
    (made.repo / "src" / "a.txt").write_text("a\n")
    git("add", "src", cwd=made.repo)
    git("commit", "-q", "-m", "src", cwd=made.repo)
    git("sparse-checkout", "set", "--cone", "src", cwd=made.repo)
    told = [one for one in bad(made.repo) if one["name"] == "memory folder"]
    assert len(told) == 1
    assert not re.search(r"[0-9A-Z]{26}", told[0]["text"] + told[0]["fix"])
    assert "git sparse-checkout add .ai/open-memex" in told[0]["fix"]


def test_how_to_see_that_a_union_merge_is_gone_sees_it(make_repo, git, bad):
    made = Conflicts(make_repo(), git)
    made.commit({1: text_of(1)})
    (made.repo / ".gitattributes").write_text("*.md merge=union\n")
    told = [one for one in bad(made.repo) if one["name"] == "merge driver"]
    asked = re.search(r"`git (.*)`", told[0]["fix"])
    assert asked is not None
    assert git(*asked[1].split(), cwd=made.repo).endswith("merge: union")

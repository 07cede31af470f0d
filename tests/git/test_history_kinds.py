"""The life of a memory, and what was known then, in repositories of many kinds; the engine is told."""

from __future__ import annotations

import pytest
from kinds import FOLDER, KINDS, NEW, OLD, Stage, git_for

CHOSEN = (
    "submodule",
    "partial",
    "sparse",
    "replaced objects",
    "CRLF checkout",
    "shared by a group",
    "sha256",
    "reftable",
)


def check(name, om, git, tmp_path, monkeypatch):
    kind = KINDS[name]
    git_for(kind, monkeypatch.setenv)
    stage = Stage(git, tmp_path.resolve(), kind.init)
    stage.share(NEW, "The new decision: larch for every gate.")
    here = kind.make(stage)

    def run(*words):
        return om(*words, cwd=here, env=stage.environ)

    listed = {item["id"] for item in run("list")["items"]}
    then = run("search", "decision", "--at", "HEAD")
    assert {hit["id"] for hit in then["hits"]} == listed
    assert then["at"]["engine"] == kind.engine
    for memory_id in sorted(listed):
        told = run("history", memory_id)
        (step,) = told["steps"]
        assert step["action"] in ("added", "begins")
        assert step["path"] == f"{FOLDER}/{memory_id}.md"
        assert {change["field"] for change in step["changes"]} >= {"type", "body"}
        assert told["engine"] == "git"
    if name not in ("shallow", "replaced objects", "neighbours that are no UTF-8") and NEW in listed:
        before = run("search", "decision", "--at", "HEAD~1")
        assert [hit["id"] for hit in before["hits"]] == [OLD]


@pytest.mark.parametrize("name", CHOSEN)
def test_history_and_at_in_this_kind_of_repository(name, om, git, tmp_path, monkeypatch):
    check(name, om, git, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [name for name in KINDS if name not in CHOSEN and name not in ("unborn",) and "foreign" not in name],
)
def test_history_and_at_in_every_other_kind(name, om, git, tmp_path, monkeypatch):
    check(name, om, git, tmp_path, monkeypatch)

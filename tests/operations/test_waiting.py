"""`list --state waiting`: everything that lies in the outbox, and nothing else."""

from __future__ import annotations

import re
import shlex


def test_a_replacement_waits_although_its_review_goes_on(om, make_repo) -> None:
    repo = make_repo()
    old, shared = (om("add", text, cwd=repo)["id"] for text in ("the kettle is red", "shoes stay outside"))
    om("submit", old, shared, cwd=repo)
    new = om("supersede", old, "the kettle is blue", cwd=repo)["id"]
    draft = om("add", "lunch is at noon", cwd=repo)["id"]
    om("add", "my own", "--scope", "personal", cwd=repo)
    listed = om("list", "--state", "waiting", cwd=repo)
    assert {row["id"] for row in listed["items"]} == {new, draft} and listed["total"] == 2
    assert {row["id"] for row in om("list", "--state", "Waiting", "--tag", "x", cwd=repo)["items"]} == set()
    assert om("list", "--state", "waiting", "--limit", "1", cwd=repo)["total"] == 2


def test_what_is_in_no_commit_is_not_asked_of_one(om, make_repo) -> None:
    repo = make_repo()
    assert "--at" in om("list", "--state", "waiting", "--at", "HEAD", cwd=repo, code=2)["error"]["message"]


def test_the_command_for_the_rest_lists_them_all(om, run_cli, make_repo) -> None:
    repo = make_repo()
    first = om("add", "the kettle is red", cwd=repo)["id"]
    om("submit", first, cwd=repo)
    new = om("supersede", first, "the kettle is blue", cwd=repo)["id"]
    ids = {new, *(om("add", f"fact {'abcdefghijklmnopqrstuvw'[n] * 9}", cwd=repo)["id"] for n in range(21))}
    told = run_cli("sync-status", cwd=repo).stdout
    found = re.search(r"2 more, not shown: open-memex (.*)", told)
    assert found is not None
    listed = om(*shlex.split(found[1]), cwd=repo)
    assert {row["id"] for row in listed["items"]} == ids

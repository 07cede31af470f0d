"""What a command says it did is what was done: the receipt of a pull, what a replacement carries on, what a
new index knows.
"""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = ".ai/open-memex"
TOKEN = "ghp_" + "mEmEx0TeSt1OnLy2NoTrEaL3kEy4aBcDe5Fg"
IDS = [f"01K6AB3XZQ7WVD9J1M2N4P5Q{number:02d}" for number in range(10)]


def put(repo: Path, memory: str, text: str, fields: str = "") -> Path:
    folder = repo / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{memory}.md"
    path.write_text(f"---\nid: {memory}\nscope: project\n{fields}---\n{text}\n")
    return path


def test_a_pull_names_each_memory_under_what_became_of_it(om, make_repo, make_remote, clone, git) -> None:
    theirs = make_repo()
    for memory in IDS[:3]:
        put(theirs, memory, f"text of {memory}")
    git("add", "-A", cwd=theirs)
    git("commit", "-q", "-m", "three", cwd=theirs)
    ours = clone(make_remote(theirs))
    put(ours, IDS[9], "only here and broken", "tags: [a, b\n")
    assert om("sync-status", cwd=ours)["fetched_at"] is None
    put(theirs, IDS[0], "another text")
    (theirs / FOLDER / f"{IDS[1]}.md").unlink()
    put(theirs, IDS[3], "a new one")
    put(theirs, IDS[4], f"a new one with {TOKEN} in it")
    put(theirs, IDS[5], "broken", "review_note: see C: drive: later\n")
    (theirs / FOLDER / "README.md").write_text("no memory\n")
    git("add", "-A", cwd=theirs)
    git("-c", "user.name=Grace", "commit", "-q", "-m", "changes", cwd=theirs)
    git("push", "-q", "origin", "main", cwd=theirs)
    before = git("rev-parse", "HEAD", cwd=ours)
    got = om("pull", cwd=ours)
    assert {row["id"] for row in got["added"]} == {IDS[3], IDS[4]}
    assert [row["id"] for row in got["changed"]] == [IDS[0]]
    assert got["removed"] == [f"{FOLDER}/{IDS[1]}.md"]
    assert [(one["path"], one["line"]) for one in got["quarantined"]] == [(f"{FOLDER}/{IDS[5]}.md", 4)]
    assert [row["id"] for row in got["flagged"]] == [IDS[4]]
    assert TOKEN[4:] not in str(got)
    assert (got["before"], got["after"]) == (before, git("rev-parse", "HEAD", cwd=theirs))
    assert got["authors"] == ["Grace"]
    assert om("sync-status", cwd=ours)["fetched_at"] == got["fetched_at"]


@pytest.mark.parametrize("shared", [False, True])
def test_a_replacement_carries_on_what_is_not_said_anew(shared, om, make_repo) -> None:
    repo = make_repo()
    options = ("--type", "gotcha", "--role", "instruction", "--importance", "high", "--tag", "tea")
    more = (
        "--path",
        "src/**",
        "--ref",
        "docs/tea.md",
        "--expires",
        "2999-01-01T12:00:00Z",
        "--alias",
        "boiler",
    )
    old = om("add", "the kettle is red", *options, *more, cwd=repo)["id"]
    if shared:
        om("submit", old, cwd=repo)
    new = om("supersede", old, "the kettle is blue", "--importance", "low", cwd=repo)["id"]
    shown = om("show", new, cwd=repo)
    assert (shown["type"], shown["role"], shown["importance"], shown["tags"]) == (
        "gotcha",
        "instruction",
        "low",
        ["tea"],
    )
    front = shown["front_matter"]
    assert (front["paths"], front["canonical_ref"]) == (["src/**"], "docs/tea.md")
    assert (front["expires_at"], front["aliases"]) == ("2999-01-01T12:00:00Z", ["boiler"])
    assert front["supersedes"] == old
    assert shown["source"] == "user"
    assert shown["review_state"] == ("proposed" if shared else "draft")


@pytest.mark.parametrize(
    "change", [["--type", "gotcha"], ["--role", "instruction"], ["--body", "use spaces"]]
)
def test_each_change_that_a_review_covers_asks_for_another_one(change, om, make_repo) -> None:
    repo = make_repo()
    history = '{at: "2026-09-26T12:00:00Z", by: Grace, from: proposed, to: approved, note: null}'
    fields = f"review_state: approved\napproved_by: Grace\nreview_history: [{history}]\n"
    put(repo, IDS[0], "use tabs", fields)
    om("edit", IDS[0], "--importance", "high", "--tag", "style", cwd=repo)
    assert om("show", IDS[0], cwd=repo)["review_state"] == "approved"
    om("edit", IDS[0], *change, cwd=repo)
    shown = om("show", IDS[0], cwd=repo)
    assert shown["review_state"] == "proposed"
    steps = [(step["from"], step["to"]) for step in shown["front_matter"]["review_history"]]
    assert steps == [("proposed", "approved"), ("approved", "proposed")]
    assert shown["front_matter"]["review_history"][0]["by"] == "Grace"
    assert shown["front_matter"]["approved_by"] is None


def test_a_draft_is_edited_without_any_word_of_a_review(om, make_repo) -> None:
    repo = make_repo()
    memory = om("add", "use tabs", cwd=repo)["id"]
    om("edit", memory, "--body", "use spaces", "--type", "gotcha", cwd=repo)
    shown = om("show", memory, cwd=repo)
    assert (shown["review_state"], shown["type"]) == ("draft", "gotcha")
    assert shown["front_matter"]["review_history"] == []


def test_a_secret_in_front_matter_is_masked_where_it_is_shown(om, run_cli, make_repo) -> None:
    repo = make_repo()
    put(repo, IDS[0], "a kettle", f"review_note: use {TOKEN}\nx_key: {TOKEN}\naliases: [the {TOKEN}]\n")
    shown = run_cli("show", IDS[0], "--json", cwd=repo)
    assert TOKEN[4:] not in shown.stdout + shown.stderr
    assert "ghp_xxxx" in shown.stdout
    assert "secret" in shown.stderr
    assert om("search", "kettle", cwd=repo)["hits"][0]["flagged"] is True


def test_a_new_index_knows_the_drafts_of_every_project(om, make_repo) -> None:
    one, other = make_repo("one"), make_repo("other")
    om("add", "draft of one", cwd=one)
    om("add", "draft of the other", cwd=other)
    om("add", "mine alone", "--scope", "personal", cwd=one)
    assert om("reindex", cwd=one)["memories"] == 3
    assert [hit["summary"] for hit in om("search", "draft", cwd=other)["hits"]] == ["draft of the other"]


def test_scope_decides_the_visibility_that_is_written(om, home, make_repo) -> None:
    repo = make_repo()
    mine = om("add", "mine alone", "--scope", "personal", cwd=repo)
    ours = om("add", "for the team", cwd=repo)
    assert "\nvisibility: private\n" in (home.data / mine["path"]).read_text()
    assert "\nvisibility: internal\n" in (home.data / ours["path"]).read_text()
    again = om("add", "mine alone", cwd=repo)
    assert again["action"] == "created", "what is mine alone is no duplicate of the team's"


@pytest.mark.parametrize("target", [[], ["--branch", "topic"]], ids=["here", "branch"])
def test_one_id_with_two_texts_stops_and_the_same_text_is_finished_work(
    target, om, run_cli, make_repo, git
) -> None:
    repo = make_repo()
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    draft = Path(om("where", cwd=repo)["outbox"]) / f"{memory}.md"
    raw = draft.read_bytes()
    om("submit", memory, *target, cwd=repo)
    draft.write_bytes(raw.replace(b"red", b"blue"))
    head = git("rev-parse", "--all", cwd=repo)
    done = run_cli("submit", memory, *target, cwd=repo)
    assert done.returncode == 3
    assert f"{memory}.md" in done.stderr
    assert git("rev-parse", "--all", cwd=repo) == head
    assert git("status", "--porcelain", cwd=repo) == ""
    assert draft.read_bytes() == raw.replace(b"red", b"blue")
    draft.write_bytes(raw)
    assert om("submit", memory, *target, cwd=repo)["files"] == [f".ai/open-memex/{memory}.md"]
    assert git("rev-parse", "--all", cwd=repo) == head
    assert not draft.exists()


def test_what_was_forgotten_on_a_branch_is_not_found_through_that_branch(om, make_repo, git) -> None:
    repo = make_repo()
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    om("submit", memory, "--branch", "topic", cwd=repo)
    assert om("search", "kettle", cwd=repo)["hits"][0]["branch"] == "topic"
    git("switch", "-q", "topic", cwd=repo)
    assert om("search", "kettle", cwd=repo)["hits"][0]["branch"] is None
    om("forget", memory, "--yes", cwd=repo)
    assert om("search", "kettle", cwd=repo)["total"] == 0


def test_a_hook_that_ruins_the_file_in_the_commit_costs_no_draft(om, run_cli, make_repo) -> None:
    repo = make_repo()
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    draft = Path(om("where", cwd=repo)["outbox"]) / f"{memory}.md"
    hook = repo / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nfor f in .ai/open-memex/*.md; do echo ruined > $f; git add $f; done\n")
    hook.chmod(0o755)
    done = run_cli("submit", memory, cwd=repo)
    assert done.returncode == 4  # the commit is there
    assert f"{memory}.md" in done.stderr
    assert "the kettle is red" in draft.read_text()
    assert om("search", "kettle", cwd=repo)["total"] == 1

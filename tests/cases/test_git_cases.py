"""The commands in repositories as people really have them: other work in progress, no identity yet, linked
work trees, CRLF checkouts, branches that went apart, remotes in every spelling.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

MEMORY = "01K6AB3XZQ7WVD9J1M2N4P5Q6A"
FOLDER = ".ai/open-memex"
TEXT = f"""---
id: {MEMORY}
schema_version: 2
scope: project
type: decision
role: knowledge
importance: normal
status: active
tags: [auth, oauth]
source: user
created_at: "2026-09-26T12:00:00Z"
updated_at: "2026-09-26T12:00:00Z"
supersedes: null
superseded_by: null
review_state: approved
review_history: []
---
Use OAuth for the admin panel.
"""


def put(repo: Path, text: str = TEXT, memory: str = MEMORY) -> Path:
    folder = repo / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{memory}.md"
    path.write_bytes(text.encode())
    return path


# --- other work in progress ---


def staged_and_edited(repo: Path, git) -> None:
    (repo / "app.txt").write_text("2\n")
    git("add", "app.txt", cwd=repo)
    (repo / "app.txt").write_text("2\n3\n")
    (repo / "notes.txt").write_text("untracked\n")


def every_kind_of_entry(repo: Path, git) -> None:
    for name in "abcdefg":
        (repo / name).write_text(name * 50 + "\n")
    git("add", "-A", cwd=repo)
    git("commit", "-q", "-m", "many", cwd=repo)
    git("rm", "-q", "--cached", "a", cwd=repo)
    git("mv", "b", "b2", cwd=repo)
    git("update-index", "--chmod=+x", "c", cwd=repo)
    (repo / "later").write_text("x")
    git("add", "-N", "later", cwd=repo)
    git("update-index", "--assume-unchanged", "d", cwd=repo)
    (repo / "d").write_text("changed behind git's back")
    git("update-index", "--skip-worktree", "e", cwd=repo)
    (repo / "f").unlink()
    git("rm", "-q", "g", cwd=repo)
    (repo / "link").symlink_to("app.txt")
    git("add", "link", cwd=repo)


def other_memories_staged(repo: Path, git) -> None:
    put(repo)
    git("add", "-A", cwd=repo)
    put(repo, TEXT.replace("oauth]", "saml]"))
    (repo / FOLDER / "README.md").write_text("about\n")


@pytest.mark.parametrize("target", [[], ["--branch", "memo/kettle"]], ids=["here", "branch"])
@pytest.mark.parametrize("work", [staged_and_edited, every_kind_of_entry, other_memories_staged])
def test_a_submit_commits_its_file_alone_and_keeps_the_rest_as_it_was(
    work, target, om, make_repo, git
) -> None:
    repo = make_repo()
    work(repo, git)
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    path = f"{FOLDER}/{memory}.md"

    def state() -> list[list[str]]:
        asked = (
            ("diff", "--cached", "--raw"),
            ("diff",),
            ("ls-files", "-s", "-v", "-t"),
            ("status", "--porcelain=v2", "--untracked-files=all"),
        )
        return [[line for line in git(*words, cwd=repo).splitlines() if path not in line] for words in asked]

    before = state()
    om("submit", memory, *target, cwd=repo)
    tip = target[-1] if target else "HEAD"
    assert git("show", "--name-status", "--format=", tip, cwd=repo) == f"A\t{path}"
    assert state() == before
    assert path not in git("diff", "--cached", "--name-only", cwd=repo)
    git("fsck", "--strict", cwd=repo)


# --- the first commit, and no identity ---


@pytest.mark.parametrize("state", ["unborn", "born", "detached"])
def test_without_an_identity_the_draft_waits_and_with_one_it_is_committed(
    state, om, run_cli, home, make_repo, git
) -> None:
    repo = make_repo(commits=0 if state == "unborn" else 1)
    if state == "detached":
        git("checkout", "-q", "--detach", cwd=repo)
    identity = (home / ".gitconfig").read_text()
    (home / ".gitconfig").write_text(
        identity.replace("name = Ada Example", "").replace("email = ada@example.org", "")
    )
    git("config", "user.useConfigOnly", "true", cwd=repo)
    memory = om("add", "first words", cwd=repo)["id"]
    words = ["submit", memory, *(["--branch", "topic"] if state == "detached" else [])]
    done = run_cli(*words, cwd=repo)
    assert done.returncode == 1
    assert "git config --global user.name" in done.stderr
    assert "git config --global user.email" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 2
    assert [row["id"] for row in om("sync-status", cwd=repo)["outbox"]] == [memory]
    (home / ".gitconfig").write_text(identity)
    made = om(*words, cwd=repo)
    assert made["branch"] == ("topic" if state == "detached" else "main")
    parents = git("log", "-1", "--format=%P", made["commit"], cwd=repo)
    assert (parents == "") == (state == "unborn")
    assert om("sync-status", cwd=repo)["outbox"] == []
    if state != "detached":
        assert git("status", "--porcelain", cwd=repo) == ""


# --- linked work trees ---


def test_a_linked_work_tree_is_the_same_project_with_its_own_branch(om, run_cli, make_repo, git) -> None:
    repo = make_repo()
    git("worktree", "add", "-q", "../tree", "-b", "memex/out", cwd=repo)
    tree = repo.parent / "tree"
    deep = tree / "src" / "deep"
    deep.mkdir(parents=True)
    for env in ({}, {"GIT_DIR": git("rev-parse", "--git-dir", cwd=deep)}):
        memory = om("add", f"a fact of {len(env)} variables", cwd=deep, env=env)["id"]
        refused = run_cli("submit", memory, "--branch", "memex/out", cwd=repo)
        assert refused.returncode == 1
        assert str(tree) in refused.stderr
        assert git("status", "--porcelain", cwd=tree) == ""
        assert om("submit", memory, cwd=deep, env=env)["branch"] == "memex/out"
        assert (tree / FOLDER / f"{memory}.md").is_file()
        assert not (repo / FOLDER).exists()
        for place in (repo, tree):
            assert git("status", "--porcelain", cwd=place) == ""
    elsewhere = om("add", "for a branch that nobody has checked out", cwd=tree)["id"]
    om("submit", elsewhere, "--branch", "other", cwd=tree)
    for place in (repo, tree):
        assert om("search", "nobody", cwd=place)["hits"][0]["branch"] == "other"
        assert git("status", "--porcelain", cwd=place) == ""


# --- CRLF ---


@pytest.mark.parametrize("how", ["autocrlf", "kept"])
def test_a_crlf_checkout_has_clean_files_small_diffs_and_no_mixed_line_ends(how, om, make_repo, git) -> None:
    repo = make_repo()
    if how == "autocrlf":
        git("config", "core.autocrlf", "true", cwd=repo)
    path = put(repo, TEXT.replace("\n", "\r\n"))
    git("add", "-A", cwd=repo)
    git("commit", "-q", "-m", "memory", cwd=repo)

    def blob(rev: str, memory: str) -> bytes:
        words = ["git", "cat-file", "blob", f"{rev}:{FOLDER}/{memory}.md"]
        return subprocess.run(words, cwd=repo, capture_output=True, check=True).stdout

    os.utime(path, (1, 1))
    assert om("sync-status", cwd=repo)["uncommitted"] == []
    om("edit", MEMORY, "--importance", "high", cwd=repo)
    assert git("diff", "--numstat", cwd=repo).split()[:2] == ["2", "2"]
    om("edit", MEMORY, "--body", "new text\nin two lines", "--tag", "a,b", "--path", "src/**", cwd=repo)
    raw = path.read_bytes()
    assert raw.count(b"\n") == raw.count(b"\r\n")
    om("submit", MEMORY, cwd=repo)
    assert (b"\r" in blob("HEAD", MEMORY)) == (how == "kept")
    assert git("status", "--porcelain", cwd=repo) == ""
    draft = om("add", "a new draft\nof two lines", cwd=repo)["id"]
    om("submit", draft, cwd=repo)
    newer = om("supersede", draft, "a newer text", cwd=repo)["id"]
    om("submit", newer, cwd=repo)
    assert b"\r" not in blob("HEAD", newer)
    changed = git("show", "--numstat", "--format=", "HEAD", "--", f"{FOLDER}/{draft}.md", cwd=repo).split()[
        :2
    ]
    # status, superseded_by, and updated_at unless it is still the same second.
    assert changed in (["2", "2"], ["3", "3"])
    assert git("status", "--porcelain", cwd=repo) == ""


# --- pull ---


def test_a_pull_of_branches_that_went_apart_moves_nothing(
    om, run_cli, make_repo, make_remote, clone, git
) -> None:
    theirs = make_repo()
    ours = clone(make_remote(theirs))
    first = om("add", "theirs about kettles", cwd=theirs)["id"]
    om("submit", first, cwd=theirs)
    git("push", "-q", "origin", "main", cwd=theirs)
    mine = om("add", "mine about teapots", cwd=ours)["id"]
    om("submit", mine, cwd=ours)

    def state() -> tuple[str, ...]:
        asked = (
            ("rev-parse", "HEAD"),
            ("status", "--porcelain"),
            ("ls-files", "-s"),
            ("symbolic-ref", "HEAD"),
        )
        return tuple(git(*words, cwd=ours) for words in asked)

    before = state()
    done = run_cli("pull", cwd=ours)
    assert (done.returncode, done.stdout) == (1, "")
    assert "1 ahead, 1 behind" in done.stderr
    assert "git pull --rebase" in done.stderr
    error = om("pull", cwd=ours, code=1)["error"]
    assert "1 ahead, 1 behind" in error["message"]
    assert state() == before
    assert [hit["id"] for hit in om("search", "teapots", cwd=ours)["hits"]] == [mine]
    git("pull", "-q", "--rebase", cwd=ours)
    assert om("pull", cwd=ours)["added"] == []
    assert om("search", "about", cwd=ours)["total"] == 2
    # The remote's branch is pushed back: what this clone has of it is not called its own work.
    git("reset", "-q", "--hard", "HEAD~1", cwd=theirs)
    git("push", "-q", "--force", "origin", "main", cwd=theirs)
    before = state()
    done = run_cli("pull", cwd=ours)
    assert done.returncode == 1
    assert "moved back" in done.stderr
    assert state() == before


def test_an_edit_or_a_forgotten_memory_is_not_overwritten_by_a_pull(
    om, run_cli, make_repo, make_remote, clone, git
) -> None:
    theirs = make_repo()
    ours = clone(make_remote(theirs))
    memory = om("add", "about kettles", cwd=theirs)["id"]
    om("submit", memory, cwd=theirs)
    git("push", "-q", "origin", "main", cwd=theirs)
    assert [row["id"] for row in om("pull", cwd=ours)["added"]] == [memory]
    om("edit", memory, "--importance", "high", cwd=theirs)
    om("submit", memory, cwd=theirs)
    git("push", "-q", "origin", "main", cwd=theirs)
    path = ours / FOLDER / f"{memory}.md"
    om("edit", memory, "--tag", "mine", cwd=ours)
    edited, head = path.read_bytes(), git("rev-parse", "HEAD", cwd=ours)
    done = run_cli("pull", cwd=ours)
    assert done.returncode == 1
    assert f"{memory}.md" in done.stderr
    assert (path.read_bytes(), git("rev-parse", "HEAD", cwd=ours)) == (edited, head)
    om("forget", memory, "--yes", cwd=ours)
    done = run_cli("pull", cwd=ours)
    assert done.returncode == 1
    assert f"{memory}.md" in done.stderr
    assert not path.exists()
    git("restore", ".", cwd=ours)
    assert [row["id"] for row in om("pull", cwd=ours)["changed"]] == [memory]


# --- conflict markers ---


def test_a_merge_that_stopped_is_named_and_nothing_is_built_on_it(om, run_cli, make_repo, git) -> None:
    repo = make_repo()
    put(repo)
    git("add", "-A", cwd=repo)
    git("commit", "-q", "-m", "base", cwd=repo)
    git("checkout", "-q", "-b", "topic", cwd=repo)
    put(repo, TEXT.replace("OAuth", "SAML"))
    git("commit", "-q", "-am", "theirs", cwd=repo)
    git("checkout", "-q", "main", cwd=repo)
    put(repo, TEXT.replace("OAuth", "LDAP"))
    git("commit", "-q", "-am", "ours", cwd=repo)
    draft = om("add", "another draft", cwd=repo)["id"]
    assert git.run("merge", "topic", cwd=repo).returncode == 1
    assert om("search", "panel", cwd=repo)["total"] == 0
    status = om("sync-status", cwd=repo)
    assert status["uncommitted"] == [f"{FOLDER}/{MEMORY}.md"]
    assert [(one["path"], one["line"]) for one in status["quarantined"]] == [(f"{FOLDER}/{MEMORY}.md", 18)]
    head = git("rev-parse", "HEAD", cwd=repo)
    for words in (["submit", MEMORY], ["submit", draft], ["edit", MEMORY, "--tag", "x"], ["pull"]):
        done = run_cli(*words, cwd=repo)
        assert done.returncode == 1
        assert len(done.stderr.strip().splitlines()) == 2
    assert git("rev-parse", "HEAD", cwd=repo) == head
    # Committed with its markers by hand, it is still no memory.
    git("add", "-A", cwd=repo)
    git("commit", "-q", "-m", "oops", cwd=repo)
    assert om("search", "panel", cwd=repo)["total"] == 0
    assert run_cli("reindex", cwd=repo).returncode == 4


_CONFLICT = "<<<<<<< HEAD\nzinnia one\n=======\nzinnia two\n>>>>>>> topic\n"


def test_conflicts_of_every_look_are_left_out_and_shown_ones_are_text(om, run_cli, make_repo) -> None:
    repo = make_repo()
    body = "Use OAuth for the admin panel.\n"
    broken = [
        TEXT.replace(
            "status: active\n", "<<<<<<< HEAD\nstatus: active\n=======\nstatus: archived\n>>>>>>> t\n"
        ),
        TEXT.replace(body, _CONFLICT),
        TEXT.replace(body, _CONFLICT.replace("=======", "||||||| base\nold\n=======")),
        TEXT.replace(body, _CONFLICT).replace("\n", "\r\n"),
        TEXT.replace(body, "<<<<<<< HEAD\nzinnia left by half a resolution\n"),
        TEXT.replace(body, "zinnia\n=======\nleft by the other half\n>>>>>>> topic\n"),
        TEXT.replace(body, "```\n<<<<<<< HEAD\nzinnia\n=======\n```\ncut\n>>>>>>> topic\n"),
        f"<<<<<<< HEAD\n{TEXT}=======\n{TEXT.replace('OAuth', 'zinnia')}>>>>>>> topic\n",
    ]
    shown = [
        TEXT.replace(body, f"An example:\n```\n{_CONFLICT}```\n"),
        TEXT.replace(body, f"An example:\n~~~ diff\n{_CONFLICT}~~~\n"),
        TEXT.replace(body, f"An example:\n````\n```\n{_CONFLICT}```\n````\n"),
        TEXT.replace(body, "Title zinnia\n=======\n"),
        TEXT.replace(body, "Look for `<<<<<<< HEAD` and for >>>>>>> in zinnia.\n"),
    ]
    for number, text in enumerate([*broken, *shown]):
        memory = MEMORY[:-2] + f"{number:02d}"
        put(repo, text.replace(MEMORY, memory), memory)
    named = {one["path"][-5:-3]: one["reason"] for one in om("sync-status", cwd=repo)["quarantined"]}
    assert named == {f"{number:02d}": "unresolved conflict markers" for number in range(len(broken))}
    assert om("search", "zinnia", cwd=repo)["total"] == len(shown)
    assert run_cli("submit", MEMORY[:-2] + "01", cwd=repo).returncode == 1
    done = om(
        "submit", *(MEMORY[:-2] + f"{number + len(broken):02d}" for number in range(len(shown))), cwd=repo
    )
    assert len(done["files"]) == len(shown)


# --- one repository, many spellings ---


def test_every_spelling_of_one_remote_is_one_project(om, run_cli, make_repo, git) -> None:
    repo = make_repo(origin="git@github.com:Acme/Widget.git")
    token = "ghp_" + "mEmEx0TeSt1OnLy2NoTrEaL3kEy4aBcDe5Fg"

    def key(url: str) -> str:
        git("config", "remote.origin.url", url, cwd=repo)
        where = om("where", cwd=repo)
        assert token not in json.dumps(where)
        return str(where["scope_keys"][0])

    wanted = key("git@github.com:Acme/Widget.git")
    assert wanted.startswith("project__widget__")
    for url in (
        "https://github.com/acme/widget",
        f"https://x-access-token:{token}@github.com/acme/widget.git/",
        "ssh://git@github.com:22/acme/widget.git",
        "org-77@github.com:acme/widget.git",
        "https://GITHUB.com:443/ACME/widget.git",
        "git+ssh://git@github.com/acme/widget",
        "git://github.com/acme/widget.git",
    ):
        assert key(url) == wanted, url
    others = [
        "https://github.com/acme/widget.git.wiki",
        "https://github.com.evil.test/acme/widget",
        "https://ghe.corp.test/acme/my.repo.git",
        "https://gitlab.com/acme/widget",
        "https://github.com/acme/widget2",
    ]
    assert len({wanted, *map(key, others)}) == 1 + len(others)

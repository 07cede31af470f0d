"""What did we know then: search, list and show at a revision or a date."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys

import pytest

from openmemex.memory import frontmatter
from openmemex.memory.ids import new_id
from openmemex.memory.model import Memory

START = 1_790_000_000  # 2026-09-21T14:13:20Z
DAY = 86_400


class Team:
    def __init__(self, git, root):
        self.git, self.root = git, root
        self.count = 0

    def put(self, body, folder=".ai/open-memex", *, memory_id=None, **fields):
        self.count += 1
        memory_id = memory_id or new_id(1_700_000_000_000 + self.count)
        path = self.root / folder / f"{memory_id}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        made = Memory(memory_id, body, scope="project", scope_key="project__r__0123456789ab",
                      visibility="internal", **fields)  # fmt: skip
        path.write_bytes(frontmatter.render(made))
        return memory_id

    def commit(self, message, day):
        date = f"@{START + day * DAY} +0000"
        self.git("add", "-A", cwd=self.root)
        self.git("commit", "-q", "--allow-empty", "-m", message, cwd=self.root,
                 env={"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date})  # fmt: skip
        return self.git("rev-parse", "HEAD", cwd=self.root)


@pytest.fixture
def team(git, make_repo):
    return Team(git, make_repo(commits=0))


def hits(om, place, query, at, *words, **options):
    return [hit["id"] for hit in om("search", query, "--at", at, *words, cwd=place, **options)["hits"]]


def test_search_list_and_show_answer_from_the_commit_and_not_from_here(om, team):
    old = team.put("The gateway is old\n")
    first = team.commit("one", 0)
    (team.root / f".ai/open-memex/{old}.md").unlink()
    new = team.put("The gateway is new\n")
    team.commit("two", 1)
    om("add", "The gateway in a draft", cwd=team.root)
    om("add", "The gateway of mine", "--scope", "personal", cwd=team.root)
    team.put("The gateway, not committed\n")
    found = om("search", "gateway", "--at", "HEAD~1", cwd=team.root)
    assert [hit["id"] for hit in found["hits"]] == [old]
    assert found["at"] == {
        "commit": first,
        "when": "2026-09-21T14:13:20Z",
        "asked": "HEAD~1",
        "folder": ".ai/open-memex",
        "engine": "libgit2",
    }
    assert found["hits"][0]["path"] == f".ai/open-memex/{old}.md"
    assert found["hits"][0]["branch"] is None
    assert hits(om, team.root, "gateway", "main") == [new]
    listed = om("list", "--at", "2026-09-21", cwd=team.root)
    assert [item["id"] for item in listed["items"]] == [old]
    assert listed["at"]["commit"] == first
    shown = om("show", old[-6:], "--at", first[:8], cwd=team.root)
    assert shown["content"] == "The gateway is old\n"
    assert shown["at"]["commit"] == first


def test_people_are_told_what_they_see_and_how_to_see_more(run_cli, team):
    old = team.put(
        "The gateway is old\n", updated_at="2026-09-20T00:00:00Z", created_at="2026-09-20T00:00:00Z"
    )
    first = team.commit("one", 0)
    team.commit("two", 1)
    for words in (("search", "gateway"), ("list",)):
        done = run_cli(*words, "--at", first[:7], cwd=team.root)
        assert done.returncode == 0
        assert f"as of commit {first[:10]} of 2026-09-21T14:13:20Z" in done.stderr
        assert "personal memories" in done.stderr
        assert "1 day ago" in done.stdout
        (line,) = [line for line in done.stdout.splitlines() if line.startswith("See one whole: ")]
        program, *shown = line.split(": ", 1)[1].split()
        assert program == "open-memex"
        assert "The gateway is old" in run_cli(*shown, cwd=team.root).stdout
    assert old in done.stdout


@pytest.mark.parametrize("folder", ['my mem/ü "q" $(x)', "it's/here", ".open-memex"])
def test_the_printed_command_shows_the_memory_wherever_it_lies(run_cli, team, folder):
    team.put("The gateway is old\n", folder)
    team.commit("one", 0)
    if folder != ".open-memex":
        run_cli("config", "set", "memoryDir", folder, cwd=team.root)
    for words in (("search", "gateway"), ("list",)):
        done = run_cli(*words, "--at", "HEAD", cwd=team.root)
        (line,) = [line for line in done.stdout.splitlines() if line.startswith("See one whole: ")]
        _, *shown = shlex.split(line.split(": ", 1)[1])
        assert "The gateway is old" in run_cli(*shown, cwd=team.root).stdout


def test_ends_are_judged_as_of_then(om, team):
    ended = team.put("The gateway ends\n", expires_at="2026-09-23T00:00:00Z")
    team.commit("one", 0)
    team.commit("two", 5)
    assert hits(om, team.root, "gateway", "HEAD~1") == [ended]
    assert hits(om, team.root, "gateway", "HEAD") == []
    assert hits(om, team.root, "gateway", "HEAD", "--all") == [ended]
    assert om("list", "--at", "HEAD~1", cwd=team.root)["total"] == 1
    assert om("list", "--at", "HEAD", cwd=team.root)["total"] == 0


def test_replacements_count_only_once_they_were_committed(om, team):
    old = team.put("The gateway is old\n")
    team.commit("one", 0)
    new = team.put("The gateway is new\n", supersedes=old)
    team.commit("two", 1)
    assert hits(om, team.root, "gateway", "HEAD~1") == [old]
    assert hits(om, team.root, "gateway", "HEAD") == [new]


def test_the_folder_of_then_is_found(om, git, team):
    old = team.put("The gateway is old\n", ".open-memex")
    team.commit("one", 0)
    git("mv", ".open-memex", ".ai-moved", cwd=team.root)
    (team.root / ".ai").mkdir()
    git("mv", ".ai-moved", ".ai/open-memex", cwd=team.root)
    team.commit("two", 1)
    found = om("search", "gateway", "--at", "HEAD~1", cwd=team.root)
    assert (found["at"]["folder"], found["hits"][0]["path"]) == (".open-memex", f".open-memex/{old}.md")
    assert hits(om, team.root, "gateway", "HEAD") == [old]


def test_a_commit_without_memories_answers_nothing(om, run_cli, team):
    team.commit("empty", 0)
    assert om("search", "gateway", "--at", "HEAD", cwd=team.root)["total"] == 0
    assert run_cli("list", "--at", "HEAD", cwd=team.root).returncode == 0


def test_a_worktree_a_bare_repository_and_another_branch_answer_alike(om, git, team, tmp_path):
    old = team.put("The gateway is old\n")
    team.commit("one", 0)
    git("switch", "-q", "-c", "idea", cwd=team.root)
    other = team.put("The gateway is an idea\n")
    team.commit("two", 1)
    git("switch", "-q", "main", cwd=team.root)
    git("worktree", "add", "-q", "--detach", str(tmp_path / "tree"), "main", cwd=team.root)
    git("clone", "-q", "--bare", str(team.root), str(tmp_path / "bare.git"))
    for place in (team.root, tmp_path / "tree", tmp_path / "bare.git"):
        assert hits(om, place, "gateway", "main") == [old]
        assert sorted(hits(om, place, "gateway", "idea")) == sorted([old, other])
        assert hits(om, place, "gateway", "2026-09-21") == [old]


def test_unreadable_files_of_then_are_told_and_stop_nothing(run_cli, om, team):
    good = team.put("The gateway is good\n")
    bad = new_id()
    (team.root / f".ai/open-memex/{bad}.md").write_text("no memory\n", encoding="utf-8")
    team.commit("one", 0)
    done = run_cli("search", "gateway", "--at", "HEAD", cwd=team.root)
    assert done.returncode == 0
    assert good in done.stdout
    assert f"left out: .ai/open-memex/{bad}.md, line 1: " in done.stderr
    assert "doctor" not in done.stderr
    kinds = [notice["kind"] for notice in om("list", "--at", "HEAD", cwd=team.root)["notices"]]
    assert kinds == ["at", "unreadable"]


def test_a_link_in_the_place_of_a_memory_is_not_followed_then(om, team):
    team.put("The gateway is good\n")
    os.symlink("../../app.txt", team.root / f".ai/open-memex/{new_id()}.md")
    team.commit("one", 0)
    assert om("list", "--at", "HEAD", cwd=team.root)["total"] == 1


def test_a_partial_clone_offline_tells_what_it_lacks(om, git, team, tmp_path):
    gone = team.put("The gateway is old\n")
    team.commit("one", 0)
    (team.root / f".ai/open-memex/{gone}.md").unlink()
    kept = team.put("The gateway is new\n")
    team.commit("two", 1)
    git("config", "uploadpack.allowFilter", "true", cwd=team.root)
    place = tmp_path / "partial"
    git("clone", "-q", "--filter=blob:none", f"file://{team.root}", str(place))
    os.rename(team.root, tmp_path / "away")
    assert hits(om, place, "gateway", "HEAD") == [kept]
    found = om("search", "gateway", "--at", "HEAD~1", cwd=place)
    assert (found["total"], found["at"]["engine"]) == (0, "git")
    assert "its text is not in this clone" in found["notices"][-1]["text"]
    os.rename(tmp_path / "away", team.root)
    assert hits(om, place, "gateway", "HEAD~1") == [gone]


def test_a_shallow_clone_says_where_it_begins(run_cli, git, team, tmp_path):
    team.put("The gateway is old\n")
    team.commit("one", 0)
    team.commit("two", 3)
    git("clone", "-q", "--depth", "1", f"file://{team.root}", str(tmp_path / "shallow"))
    done = run_cli("search", "gateway", "--at", "2026-09-22", cwd=tmp_path / "shallow")
    assert done.returncode == 1
    assert "shallow" in done.stderr and "--unshallow" in done.stderr


def test_what_is_neither_and_where_there_is_no_git_are_refused(run_cli, team, tmp_path):
    team.commit("one", 0)
    for words in (("search", "gateway"), ("list",)):
        done = run_cli(*words, "--at", "nonsense", cwd=team.root)
        assert done.returncode == 1
        assert "'nonsense' is no commit here, and no date." in done.stderr
        assert run_cli(*words, "--at", "", cwd=team.root).returncode == 2
    plain = tmp_path / "plain"
    plain.mkdir()
    done = run_cli("search", "gateway", "--at", "HEAD", cwd=plain)
    assert done.returncode == 1
    assert "not in a git repository" in done.stderr


def test_a_secret_in_the_option_and_in_an_old_text_is_masked(run_cli, team):
    token = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    memory_id = team.put(f"The gateway takes {token}\n")
    team.commit("one", 0)
    for words in (
        ("search", "gateway", "--at", "HEAD"),
        ("show", memory_id, "--at", "HEAD"),
        ("list", "--at", token),
    ):
        done = run_cli(*words, cwd=team.root)
        assert token not in done.stdout + done.stderr


def test_the_plain_answer_is_as_before_after_many_looks_back(om, team):
    for number in range(20):
        team.put(f"The gateway of day {number}\n")
        team.commit(f"day {number}", number)
    before = om("search", "gateway", "--limit", "50", cwd=team.root)
    for number in range(20):
        assert len(hits(om, team.root, "gateway", f"HEAD~{number}", "--limit", "50")) == 20 - number
    assert om("search", "gateway", "--limit", "50", cwd=team.root) == before


def test_several_at_once_with_nothing_known_yet_all_answer_whole(team):
    for number in range(30):
        team.put(f"The gateway of day {number}\n")
    team.commit("one", 0)
    for number in range(30):
        team.put(f"The gateway of night {number}\n")
    team.commit("two", 1)
    words = [sys.executable, "-m", "openmemex", "search", "gateway", "--json", "--limit", "100", "--at"]
    running = [
        (count, subprocess.Popen([*words, rev], cwd=team.root, stdout=subprocess.PIPE, text=True))
        for rev, count in (("HEAD", 60), ("HEAD~1", 30)) * 3
    ]
    for count, process in running:
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        assert len(json.loads(out)["hits"]) == count

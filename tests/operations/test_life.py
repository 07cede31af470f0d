"""A memory's life through the commands: replaced, edited, forgotten, moved along, and what each leaves
behind.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest


def texts(found: dict) -> list[str]:
    return [hit["summary"] for hit in found["hits"]]


def test_only_the_newest_of_a_chain_is_found_and_all_of_it_is_listed(om, make_repo) -> None:
    repo = make_repo()
    first = om("add", "the kettle is red", "--tag", "kitchen", "--alias", "boiler", cwd=repo)["id"]
    second = om("supersede", first, "the kettle is blue", cwd=repo)["id"]
    third = om("supersede", second, "the kettle is green", "--tag", "tea", cwd=repo)["id"]
    assert texts(om("search", "kettle", cwd=repo)) == ["the kettle is green"]
    assert texts(om("search", "boiler", cwd=repo)) == ["the kettle is green"], "aliases are carried on"
    assert om("show", third, cwd=repo)["tags"] == ["tea"]
    assert om("show", second, cwd=repo)["tags"] == ["kitchen"]
    assert om("list", "--all", cwd=repo)["total"] == 3
    assert om("list", cwd=repo)["total"] == 1


def test_a_memory_that_was_replaced_names_the_one_to_replace_instead(om, run_cli, make_repo) -> None:
    repo = make_repo()
    first = om("add", "the kettle is red", cwd=repo)["id"]
    second = om("supersede", first, "the kettle is blue", cwd=repo)["id"]
    done = run_cli("supersede", first, "the kettle is black", cwd=repo)
    assert done.returncode == 1
    assert second in done.stderr
    assert om("list", "--all", cwd=repo)["total"] == 2


def test_replacing_a_shared_memory_waits_in_the_outbox_and_counts_at_once(om, make_repo, git) -> None:
    repo = make_repo()
    old = om("add", "deploy on Mondays", cwd=repo)["id"]
    om("submit", old, cwd=repo)
    path = repo / ".ai" / "open-memex" / f"{old}.md"
    before = path.read_bytes()
    new = om("supersede", old, "deploy on Tuesdays", cwd=repo)["id"]
    assert path.read_bytes() == before, "the team's file is left alone until submit"
    assert git("status", "--porcelain", cwd=repo) == ""
    assert texts(om("search", "deploy", cwd=repo)) == ["deploy on Tuesdays"]
    shown = om("show", new, cwd=repo)
    assert shown["review_state"] == "proposed"
    assert shown["front_matter"]["supersedes"] == old
    done = om("submit", new, cwd=repo)
    assert sorted(done["files"]) == sorted(f".ai/open-memex/{i}.md" for i in (old, new))
    assert f"superseded_by: {new}" in path.read_text()
    # status, superseded_by, and updated_at unless it is still the same second.
    changed = git("diff", "--numstat", "HEAD~1", "--", path, cwd=repo).split()[:2]
    assert changed in (["2", "2"], ["3", "3"])
    assert "status: superseded\ntags: []\n" in path.read_text()


def test_replacing_on_a_branch_leaves_work_tree_and_staging_area_alone(om, make_repo, git) -> None:
    repo = make_repo()
    old = om("add", "deploy on Mondays", cwd=repo)["id"]
    om("submit", old, cwd=repo)
    new = om("supersede", old, "deploy on Tuesdays", cwd=repo)["id"]
    staged = git("ls-files", "-s", cwd=repo)
    done = om("submit", new, "--branch", "tuesdays", cwd=repo)
    assert done["branch"] == "tuesdays"
    assert git("status", "--porcelain", cwd=repo) == ""
    assert git("ls-files", "-s", cwd=repo) == staged
    names = git("show", "--name-only", "--format=", "tuesdays", cwd=repo).split()
    assert sorted(names) == sorted(f".ai/open-memex/{i}.md" for i in (old, new))
    hits = om("search", "deploy", cwd=repo)["hits"]
    assert [(hit["summary"], hit["branch"]) for hit in hits] == [("deploy on Tuesdays", "tuesdays")]
    git("merge", "-q", "tuesdays", cwd=repo)
    hits = om("search", "deploy", cwd=repo)["hits"]
    assert [(hit["summary"], hit["branch"]) for hit in hits] == [("deploy on Tuesdays", None)]
    assert om("list", "--all", cwd=repo)["total"] == 2, "one memory everywhere"


def test_an_edit_changes_the_lines_of_its_fields_only(om, make_repo, git) -> None:
    repo = make_repo()
    memory = om("add", "# Kettle\n\nline one\nline two", "--tag", "tea", cwd=repo)["id"]
    om("submit", memory, cwd=repo)
    git("commit", "--amend", "-q", "-m", "x", "--date", "2020-01-01T00:00:00Z", cwd=repo)
    path = f".ai/open-memex/{memory}.md"
    text = (repo / path).read_text()
    (repo / path).write_text(re.sub(r"updated_at: .*", 'updated_at: "2026-01-01T00:00:00Z"', text))
    git("commit", "-q", "-am", "older", cwd=repo)
    om("edit", memory, "--importance", "high", cwd=repo)
    assert git("diff", "--numstat", cwd=repo).split()[:2] == ["2", "2"]
    assert om("edit", memory, "--importance", "high", cwd=repo)["action"] == "unchanged"


def test_changing_the_text_of_a_reviewed_memory_asks_for_a_review_again(om, make_repo, git) -> None:
    repo = make_repo()
    memory = om("add", "use tabs", cwd=repo)["id"]
    om("submit", memory, cwd=repo)
    path = repo / ".ai" / "open-memex" / f"{memory}.md"
    path.write_text(
        path.read_text()
        .replace("review_state: proposed", "review_state: approved")
        .replace("approved_by: null", "approved_by: Grace")
    )
    om("edit", memory, "--tag", "style", cwd=repo)
    assert om("show", memory, cwd=repo)["review_state"] == "approved", "a tag needs no new review"
    om("edit", memory, "--body", "use spaces", cwd=repo)
    shown = om("show", memory, cwd=repo)
    assert shown["review_state"] == "proposed"
    assert shown["front_matter"]["approved_by"] is None
    assert [step["to"] for step in shown["front_matter"]["review_history"]] == ["proposed", "proposed"]
    assert shown["content"] == "use spaces\n"


def test_forgetting_deletes_asks_first_and_says_what_history_keeps(om, run_cli, make_repo) -> None:
    repo = make_repo()
    memory = om("add", "forget me soon", cwd=repo)["id"]
    om("submit", memory, cwd=repo)
    unconfirmed = run_cli("forget", memory, cwd=repo)
    assert unconfirmed.returncode == 1
    assert "--yes" in unconfirmed.stderr
    assert om("search", "forget", cwd=repo)["total"] == 1
    done = run_cli("forget", memory, "--yes", cwd=repo)
    assert done.returncode == 0
    assert f"open-memex submit {memory}" in done.stdout + done.stderr
    assert "history" in done.stdout + done.stderr
    assert om("search", "forget", cwd=repo)["total"] == 0
    assert om("sync-status", cwd=repo)["uncommitted"] == [f".ai/open-memex/{memory}.md"]
    assert om("submit", memory, cwd=repo)["files"] == [f".ai/open-memex/{memory}.md"]
    assert om("sync-status", cwd=repo)["uncommitted"] == []
    assert run_cli("forget", memory, "--yes", cwd=repo).returncode == 1, "twice is an error"


def test_soft_forgetting_hides_for_good_but_keeps_the_file(om, run_cli, make_repo) -> None:
    repo = make_repo()
    memory = om("add", "retract me", cwd=repo)["id"]
    om("forget", memory, "--soft", "--yes", cwd=repo)
    assert om("search", "retract", cwd=repo)["total"] == 0
    assert om("list", "--all", cwd=repo)["items"][0]["status"] == "retracted"
    assert run_cli("status", memory, "active", cwd=repo).returncode == 1, "one way"
    again = om("add", "retract me", cwd=repo)
    assert again["action"] == "created", "the text may be saved again"


def test_status_moves_along_the_lifecycle(om, run_cli, make_repo) -> None:
    repo = make_repo()
    memory = om("add", "an old habit", cwd=repo)["id"]
    om("status", memory, "deprecated", cwd=repo)
    assert om("search", "habit", cwd=repo)["hits"][0]["status"] == "deprecated"
    om("status", memory, "archived", cwd=repo)
    assert om("search", "habit", cwd=repo)["total"] == 0
    om("status", memory, "active", cwd=repo)
    assert om("search", "habit", cwd=repo)["total"] == 1
    assert run_cli("status", memory, "superseded", cwd=repo).returncode in (1, 2)
    assert run_cli("status", memory, "nonsense", cwd=repo).returncode == 2


def test_expired_memories_leave_the_recall(om, make_repo) -> None:
    repo = make_repo()
    om("add", "yesterday's news", "--expires", "2020-01-01", cwd=repo)
    om("add", "tomorrow's news", "--expires", "2999-01-01", cwd=repo)
    assert texts(om("search", "news", cwd=repo)) == ["tomorrow's news"]
    assert om("search", "news", "--all", cwd=repo)["total"] == 2


def test_filters_come_before_the_limit_and_the_total_counts_after_them(om, home, make_repo) -> None:
    repo = make_repo()
    for number in range(6):
        old = om("add", f"cache warmup old {number}", "--scope", "personal", cwd=repo)["id"]
        om("supersede", old, f"cold start {number} nothing", cwd=repo)
    for number in range(6):
        om("add", f"cache warmup other {number}", "--scope", "personal", "--type", "howto", cwd=repo)
    for number in range(5):
        om("add", f"cache warmup {number}", "--type", "gotcha", cwd=repo)
    found = om("search", "cache warmup", "--limit", "5", "--scope", "project", cwd=repo)
    assert len(found["hits"]) == found["total"] == 5
    listed = om("list", "--type", "gotcha", "--limit", "3", cwd=repo)
    assert (listed["shown"], listed["total"]) == (3, 5)


def test_after_an_edit_the_old_words_are_gone_and_nothing_doubles(om, make_repo) -> None:
    repo = make_repo()
    memory = om("add", "likes zarf brackets", cwd=repo)["id"]
    om("edit", memory, "--body", "likes plain brackets", cwd=repo)
    gone = om("add", "brackets of another kind", cwd=repo)["id"]
    om("forget", gone, "--yes", cwd=repo)
    om("add", "something else entirely", cwd=repo)
    for _ in range(3):
        assert om("search", "zarf", cwd=repo)["total"] == 0
        assert texts(om("search", "brackets", cwd=repo)) == ["likes plain brackets"]
        om("reindex", cwd=repo)


@pytest.mark.parametrize(
    "ref",
    [
        "../../../etc/hostname",
        "..\\..\\x",
        "/etc/hostname",
        "{id}/../x",
        "{id}\n",
        " {id}",
        "{id}A",
        "abc",
        "",
    ],
)
def test_what_is_no_id_is_never_a_path(ref, om, run_cli, make_repo) -> None:
    repo = make_repo()
    memory = om("add", "one memory", cwd=repo)["id"]
    done = run_cli("show", ref.replace("{id}", memory), cwd=repo)
    assert done.returncode == 2
    assert "hostname" not in done.stdout
    assert om("show", memory.lower(), cwd=repo)["id"] == memory


def test_links_in_a_memory_folder_are_never_followed(om, make_repo, tmp_path) -> None:
    repo = make_repo()
    secret = tmp_path / "outside.md"
    memory = om("add", "inside text", cwd=repo)["id"]
    om("submit", memory, cwd=repo)
    folder = repo / ".ai" / "open-memex"
    secret.write_text((folder / f"{memory}.md").read_text().replace("inside", "outside"))
    (folder / ("0" * 26 + ".md")).symlink_to(secret)
    (folder / ("1" * 26 + ".md")).mkdir()
    os.mkfifo(folder / ("2" * 26 + ".md"))
    assert om("search", "outside", cwd=repo)["total"] == 0
    assert om("list", cwd=repo)["total"] == 1


def test_a_broken_file_is_named_left_alone_and_stops_nothing(om, run_cli, make_repo) -> None:
    repo = make_repo()
    good = om("add", "the good one", cwd=repo)["id"]
    om("submit", good, cwd=repo)
    bad = "01K6AB3XZQ7WVD9J1M2N4P5Q6B"
    path = repo / ".ai" / "open-memex" / f"{bad}.md"
    raw = f"---\nid: {bad}\nreview_note: see C: drive: later\n---\nbody\n".encode()
    path.write_bytes(raw)
    assert om("search", "good", cwd=repo)["total"] == 1
    status = om("sync-status", cwd=repo)
    assert [(q["path"], q["line"]) for q in status["quarantined"]] == [(f".ai/open-memex/{bad}.md", 3)]
    for words in (
        ["supersede", bad, "x y"],
        ["edit", bad, "--tag", "x"],
        ["status", bad, "archived"],
        ["submit", bad],
    ):
        done = run_cli(*words, cwd=repo)
        assert done.returncode == 1
        assert f"{bad}.md" in done.stderr, done.stderr
    assert run_cli("reindex", cwd=repo).returncode == 4
    assert path.read_bytes() == raw


def test_loops_forks_and_dangling_chains_hide_nothing_and_end(om, make_repo, home) -> None:
    repo = make_repo()
    folder = repo / ".ai" / "open-memex"
    folder.mkdir(parents=True)

    def write(memory: str, text: str, **fields: str) -> None:
        lines = "".join(f"{name}: {value}\n" for name, value in fields.items())
        (folder / f"{memory}.md").write_text(f"---\nid: {memory}\nscope: project\n{lines}---\n{text}\n")

    ids = [f"01K6AB3XZQ7WVD9J1M2N4P5Q{n:02d}" for n in range(20)]
    write(ids[0], "loop one", superseded_by=ids[1], supersedes=ids[1])
    write(ids[1], "loop two", superseded_by=ids[0], supersedes=ids[0])
    write(ids[2], "fork root")
    write(ids[3], "fork left", supersedes=ids[2])
    write(ids[4], "fork right", supersedes=ids[2])
    write(ids[5], "dangling one", superseded_by=ids[19])
    write(ids[6], "self one", supersedes=ids[6], superseded_by=ids[6])
    shown = {item["summary"] for item in om("list", "--limit", "50", cwd=repo)["items"]}
    assert shown == {
        "loop one",
        "loop two",
        "fork root",
        "fork left",
        "fork right",
        "dangling one",
        "self one",
    }


def test_personal_memories_never_enter_a_repository(om, run_cli, make_repo, git) -> None:
    repo = make_repo()
    mine = om("add", "mine alone xyzzy", "--scope", "personal", cwd=repo)["id"]
    draft = om("add", "for the team", cwd=repo)["id"]
    assert run_cli("submit", draft, mine, cwd=repo).returncode == 1
    assert git("log", "--oneline", cwd=repo).count("\n") == 0, "all or nothing"
    assert len(om("sync-status", cwd=repo)["outbox"]) == 1
    path = next(Path(os.environ["OPEN_MEMEX_HOME"]).glob(f"memories/project__*/{draft}.md"))
    path.write_text(path.read_text().replace("visibility: internal", "visibility: private"))
    done = run_cli("submit", draft, cwd=repo)
    assert done.returncode == 1
    assert "private" in done.stderr
    assert "xyzzy" not in git("grep", "-c", "", cwd=repo)


def test_a_secret_that_was_put_into_a_file_by_hand_is_never_committed(om, run_cli, make_repo, git) -> None:
    repo = make_repo()
    folder = repo / ".ai" / "open-memex"
    folder.mkdir(parents=True)
    token = "ghp_" + "mEmEx0TeSt1OnLy2NoTrEaL3kEy4aBcDe5Fg"
    memory = "01K6AB3XZQ7WVD9J1M2N4P5Q6A"
    (folder / f"{memory}.md").write_text(f"---\nid: {memory}\nscope: project\n---\nuse {token} for it\n")
    assert om("search", "use", cwd=repo)["hits"][0]["flagged"] is True
    shown = run_cli("show", memory, cwd=repo)
    assert token[8:] not in shown.stdout + shown.stderr
    done = run_cli("submit", memory, cwd=repo)
    assert done.returncode == 1
    assert "line 5" in done.stderr
    assert token[8:] not in done.stderr
    assert git("log", "--oneline", cwd=repo).count("\n") == 0


def test_a_file_that_broke_before_it_is_forgotten_is_not_called_gone(om, run_cli, make_repo) -> None:
    repo = make_repo()
    memory = om("add", "soon broken", cwd=repo)["id"]
    path = next(Path(os.environ["OPEN_MEMEX_HOME"]).glob(f"memories/project__*/{memory}.md"))
    path.write_text(path.read_text().replace("status: active", "status: [broken"))
    done = run_cli("forget", memory, "--yes", cwd=repo)
    assert done.returncode == 1
    assert memory in done.stderr
    assert path.exists()


def test_a_list_says_how_many_it_leaves_out(om, run_cli, make_repo) -> None:
    repo = make_repo()
    for number in range(3):
        memory = om("add", f"fact number {number} of three", cwd=repo)["id"]
    om("supersede", memory, "another fact instead", cwd=repo)
    shown = run_cli("list", "--limit", "2", cwd=repo).stdout
    assert "The newest 2 of 3 memories" in shown
    assert "1 not shown: --limit 3" in shown
    assert "1 more is replaced, retracted, archived or expired: --all" in shown


@pytest.mark.parametrize("in_git", [False, True])
def test_a_folder_with_an_odd_name_is_a_project_like_any_other(in_git, om, git, tmp_path) -> None:
    for name in (b"caf\xe9", "設計 ノート".encode(), b"a\nb"):
        folder = tmp_path / os.fsdecode(name)
        folder.mkdir()
        if in_git:
            git("init", "-q", cwd=folder)
        assert om("add", "kept here", cwd=folder)["action"] == "created"
        assert om("add", "kept in any locale", cwd=folder, env={"LC_ALL": "C"})["action"] == "created"
        assert om("list", cwd=folder)["total"] == 2

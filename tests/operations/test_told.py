"""What people are told is so: receipts, next steps and warnings, against what is on disk and in git."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


def test_a_dry_run_says_when_there_is_nothing_to_commit(om, run_cli, make_repo) -> None:
    repo = make_repo()
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    assert om("submit", memory, "--dry-run", cwd=repo)["already"] is False
    om("submit", memory, cwd=repo)
    assert om("submit", memory, "--dry-run", cwd=repo)["already"] is True
    assert "Would" not in run_cli("submit", memory, "--dry-run", cwd=repo).stdout


@pytest.mark.parametrize(("name", "commits"), [("gone", 1), ("gone", 0), ("gone;touch$IFS.ouch", 1)])
def test_a_deleted_branch_with_memories_is_told_and_can_be_brought_back(
    name, commits, om, run_cli, make_repo, git
) -> None:
    repo = make_repo(commits=commits)
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    om("submit", memory, "--branch", name, cwd=repo)
    git("branch", "-D", name, cwd=repo)
    told = run_cli("sync-status", cwd=repo)
    assert "gone" in told.stderr
    [check] = [c for c in om("doctor", cwd=repo, code=1)["checks"] if c["name"] == "branches"]
    assert check["ok"] is False
    assert check["fix"].startswith("git branch ")
    subprocess.run(check["fix"], cwd=repo, check=True, shell=True)
    assert om("search", "kettle", cwd=repo)["total"] == 1
    assert om("doctor", cwd=repo)["checks"]
    assert not (repo / ".ouch").exists()


def test_a_merged_branch_that_is_deleted_is_forgotten_silently(om, make_repo, git) -> None:
    repo = make_repo()
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    om("submit", memory, "--branch", "done", cwd=repo)
    git("merge", "-q", "done", cwd=repo)
    git("branch", "-d", "done", cwd=repo)
    assert om("doctor", cwd=repo)
    assert "done" not in (Path(os.environ["OPEN_MEMEX_HOME"]) / "sync-state.json").read_text()


def test_forgetting_a_file_that_git_never_had_speaks_of_no_commit(om, run_cli, make_repo) -> None:
    repo = make_repo()
    memory = "01K6AB3XZQ7WVD9J1M2N4P5Q6A"
    folder = repo / ".ai" / "open-memex"
    folder.mkdir(parents=True)
    (folder / f"{memory}.md").write_text(f"---\nid: {memory}\nscope: project\n---\nby hand\n")
    done = run_cli("forget", memory, "--yes", cwd=repo)
    assert done.returncode == 0
    assert "history" not in done.stdout + done.stderr


def test_what_a_hook_added_to_the_commit_is_in_the_receipt(om, make_repo, git) -> None:
    repo = make_repo()
    hook = repo / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\necho more >more.txt\ngit add more.txt\n")
    hook.chmod(0o755)
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    done = om("submit", memory, cwd=repo)
    assert sorted(done["files"]) == sorted(git("show", "--format=", "--name-only", cwd=repo).split())


def test_an_interrupt_during_a_hook_leaves_no_lock_and_the_old_state(om, make_repo, git) -> None:
    repo = make_repo()
    hook = repo / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\ntouch started\nsleep 30\n")
    hook.chmod(0o755)
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    process = subprocess.Popen(
        [sys.executable, "-m", "openmemex", "submit", memory],
        cwd=repo,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 60
    while not (repo / "started").exists() and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert list((repo / ".git").glob("*index*.lock")) == []
    hook.unlink()
    assert git("status", "--porcelain", "--", ".ai", cwd=repo) == ""
    assert len(om("sync-status", cwd=repo)["outbox"]) == 1
    assert om("submit", memory, cwd=repo)["commit"]


def test_commits_that_nobody_else_has_yet_are_told_until_they_are_pushed(
    om, run_cli, make_repo, make_remote, git
) -> None:
    repo = make_repo()
    make_remote(repo)
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    om("submit", memory, cwd=repo)
    assert om("sync-status", cwd=repo)["unpushed"] == 1
    assert "git push" in run_cli("sync-status", cwd=repo).stdout
    git("push", "-q", cwd=repo)
    assert om("sync-status", cwd=repo)["unpushed"] == 0


def test_an_end_in_the_past_is_told(om, make_repo) -> None:
    repo = make_repo()
    done = om("add", "old news", "--expires", "2020-01-01", cwd=repo)
    assert [notice["kind"] for notice in done["notices"]] == ["expired"]
    assert om("add", "new news", "--expires", "2999-01-01", cwd=repo)["notices"] == []


def test_a_data_root_inside_a_work_tree_is_ignored_by_git(om, make_repo, git) -> None:
    repo = make_repo()
    inside = {"OPEN_MEMEX_HOME": str(repo / "data")}
    om("add", "mine alone", "--scope", "personal", cwd=repo, env=inside)
    git("add", "-A", cwd=repo)
    assert git("status", "--porcelain", cwd=repo) == ""
    assert om("search", "mine", cwd=repo, env=inside)["total"] == 1


def test_an_editor_does_not_overwrite_what_changed_meanwhile(om, make_repo) -> None:
    from openmemex.errors import Refused
    from openmemex.operations.edit import Changes, edit, editable_text
    from openmemex.workspace import Workspace

    repo = make_repo()
    memory = om("add", "first text", cwd=repo)["id"]
    ws = Workspace.open(cwd=str(repo))
    _, before = editable_text(ws, memory)
    om("edit", memory, "--body", "IMPORTANT", cwd=repo)
    try:
        edit(ws, memory, Changes(body="mine", body_before=before))
    except Refused as error:
        assert memory in error.message
    else:
        raise AssertionError("it was overwritten")
    finally:
        ws.close()
    assert om("show", memory, cwd=repo)["content"] == "IMPORTANT\n"


def test_lists_in_settings_are_typed_with_commas(om, make_repo) -> None:
    repo = make_repo()
    om("config", "set", "review.allowBots", "one, two", cwd=repo)
    text = Path(os.environ["OPEN_MEMEX_CONFIG"]).read_text()
    assert json.loads(text)["review"]["allowBots"] == ["one", "two"]


def _hook(repo: Path, name: str, script: str) -> Path:
    hook = repo / ".git" / "hooks" / name
    hook.write_text("#!/bin/sh\n" + script)
    hook.chmod(0o755)
    return hook


def test_a_hook_sees_the_memory_as_in_any_commit(om, run_cli, make_repo, git) -> None:
    repo = make_repo()
    _hook(repo, "pre-commit", 'if git diff --cached -- "*.md" | grep -q FORBIDDEN; then exit 1; fi\n')
    memory = om("add", "a FORBIDDEN word", cwd=repo)["id"]
    assert run_cli("submit", memory, cwd=repo).returncode == 1
    assert git("log", "--oneline", cwd=repo).count("\n") == 0
    assert len(om("sync-status", cwd=repo)["outbox"]) == 1


def test_what_a_formatting_hook_makes_of_a_memory_is_what_is_shared(om, make_repo, git) -> None:
    repo = make_repo()
    script = "for f in .ai/open-memex/*.md; do sed -i s/rawword/nice/ $f; git add $f; done\n"
    _hook(repo, "pre-commit", script)
    memory = om("add", "a rawword here", cwd=repo)["id"]
    done = om("submit", memory, cwd=repo)
    assert "a nice here" in git("show", f"HEAD:{done['files'][0]}", cwd=repo)
    assert om("sync-status", cwd=repo)["outbox"] == []
    assert om("search", "nice", cwd=repo)["total"] == 1


def test_an_interrupt_after_the_commit_undoes_nothing(om, make_repo, git) -> None:
    repo = make_repo()
    hook = _hook(repo, "post-commit", "touch started\nsleep 30\n")
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    process = subprocess.Popen(
        [sys.executable, "-m", "openmemex", "submit", memory],
        cwd=repo,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    end = time.monotonic() + 60
    while not (repo / "started").exists() and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    hook.unlink()
    assert git("status", "--porcelain", "--", ".ai", cwd=repo) == ""
    assert om("submit", memory, cwd=repo)["already"] is True
    assert om("sync-status", cwd=repo)["outbox"] == []
    assert git("log", "--format=%s", cwd=repo).count("Memory") == 1


def test_a_draft_is_never_taken_for_a_deletion(om, make_repo, git) -> None:
    repo = make_repo()
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    om("submit", memory, "--dry-run", cwd=repo)
    folder = repo / ".ai" / "open-memex"
    folder.mkdir(parents=True)
    (folder / f"{memory}.md").write_text("half\n")
    git("add", "-A", ".ai", cwd=repo)
    (folder / f"{memory}.md").unlink()
    om("submit", memory, cwd=repo)
    assert "the kettle is red" in git("show", f"HEAD:.ai/open-memex/{memory}.md", cwd=repo)


def test_a_folder_that_can_not_be_read_is_not_called_a_busy_index(om, run_cli, make_repo) -> None:
    repo = make_repo()
    om("add", "the kettle is red", cwd=repo)
    name = "a" * 300  # longer than any file system takes: nobody can look into it, not even root
    om("config", "set", "memoryDir", name, cwd=repo)
    done = run_cli("search", "kettle", cwd=repo)
    assert done.returncode == 0
    assert name in done.stderr
    assert "process" not in done.stderr
    assert "the kettle is red" in done.stdout
    checks = om("doctor", cwd=repo, code=1)["checks"]
    assert any(name in check["text"] for check in checks if not check["ok"])


def test_one_id_with_two_texts_is_told_and_neither_is_lost(om, run_cli, make_repo) -> None:
    repo = make_repo()
    memory = om("add", "text of the draft", cwd=repo)["id"]
    draft = next(Path(os.environ["OPEN_MEMEX_HOME"]).glob(f"memories/project__*/{memory}.md"))
    folder = repo / ".ai" / "open-memex"
    folder.mkdir(parents=True)
    shared = folder / f"{memory}.md"
    shared.write_text(draft.read_text().replace("of the draft", "of the team"))
    for words in (["forget", memory, "--yes"], ["submit", memory]):
        done = run_cli(*words, cwd=repo)
        assert done.returncode in (1, 3), done.stderr
        assert str(draft) in done.stderr
    assert "of the draft" in draft.read_text()
    assert "of the team" in shared.read_text()
    checks = om("doctor", cwd=repo, code=1)["checks"]
    assert any(memory in check["text"] for check in checks if check["name"] == "drafts")


def test_a_pair_of_drafts_is_shared_together_whichever_is_named(om, make_repo) -> None:
    for which in (0, 1):
        repo = make_repo(f"repo{which}")
        old = om("add", "deploy on Mondays", cwd=repo)["id"]
        new = om("supersede", old, "deploy on Tuesdays", cwd=repo)["id"]
        done = om("submit", (old, new)[which], cwd=repo)
        assert sorted(done["files"]) == sorted(f".ai/open-memex/{one}.md" for one in (old, new))
        assert om("sync-status", cwd=repo)["outbox"] == []


def test_private_parts_of_a_commit_message_stay_private(om, make_repo, git) -> None:
    repo = make_repo()
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    om("submit", memory, "-m", "say <private>hush hush</private> this", cwd=repo)
    assert "hush" not in git("log", "-1", "--format=%B", cwd=repo)


def test_a_day_as_the_end_means_all_of_that_day(om, make_repo) -> None:
    repo = make_repo()
    today = time.strftime("%Y-%m-%d", time.gmtime())
    om("add", "ends tonight", "--expires", today, cwd=repo)
    assert om("search", "tonight", cwd=repo)["total"] == 1


def test_a_misspelt_value_is_told_with_its_line(om, make_repo) -> None:
    repo = make_repo()
    folder = repo / ".ai" / "open-memex"
    folder.mkdir(parents=True)
    memory = "01K6AB3XZQ7WVD9J1M2N4P5Q6A"
    (folder / f"{memory}.md").write_text(
        f"---\nid: {memory}\nscope: project\nstatus: retractd\nexpires_at: soon\n---\ntext\n"
    )
    checks = [c for c in om("doctor", cwd=repo, code=1)["checks"] if c["name"] == "values"]
    assert [check["ok"] for check in checks] == [False, False]
    assert "line 4" in checks[0]["text"]
    assert "status" in checks[0]["text"]
    assert "line 5" in checks[1]["text"]


def test_a_git_file_that_leads_nowhere_above_the_data_root_stops_no_write(om, home, tmp_path) -> None:
    (home / ".git").write_text("gitdir: /nowhere\n")
    assert om("add", "kept all the same", "--scope", "personal", cwd=tmp_path)["action"] == "created"

"""Names and settings that would lead out of the places of memories lead nowhere; markup stays text."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

A = "01K6AB3XZQ7WVD9J1M2N4P5Q6A"
B = "01K6AB3XZQ7WVD9J1M2N4P5Q6B"
C = "01K6AB3XZQ7WVD9J1M2N4P5Q6C"


def markdown_outside(root: Path, home: Path) -> list[str]:
    inside = (home, root / "repo" / ".ai")
    return [str(path) for path in root.rglob("*.md") if not any(path.is_relative_to(one) for one in inside)]


def test_no_command_takes_a_path_or_a_pattern_for_an_id(run_cli, om, make_repo, tmp_path) -> None:
    repo = make_repo()
    memory = om("add", "one memory", cwd=repo)["id"]
    (tmp_path / "x.md").write_text("outside")
    rest = {
        "show": [],
        "edit": ["--tag", "x"],
        "forget": ["--yes"],
        "submit": [],
        "status": ["archived"],
        "supersede": ["a new text"],
    }
    for command, words in rest.items():
        for ref in (f"{memory}/../{B}", f"{memory}.md", "____"):
            done = run_cli(command, ref, *words, cwd=repo)
            assert done.returncode == 2, (command, ref, done.stdout)
            assert len(done.stderr.strip().splitlines()) == 2
    assert om("show", memory.lower(), cwd=repo)["content"] == "one memory\n"
    assert (tmp_path / "x.md").read_text() == "outside"


@pytest.mark.parametrize("folder", ["../out", "/tmp/memories-of-nobody", "a/../../b", ".git/x", "C:/x"])
def test_a_hand_written_memory_folder_that_leads_out_is_told_and_not_used(
    folder, run_cli, om, home, make_repo
) -> None:
    repo = make_repo()
    home.config.parent.mkdir(parents=True)
    home.config.write_text(json.dumps({"memoryDir": folder}))
    memory = om("add", "kept inside", cwd=repo)["id"]
    done = run_cli("submit", memory, cwd=repo)
    assert done.returncode == 0
    assert "memoryDir" in done.stderr
    assert (repo / ".ai" / "open-memex" / f"{memory}.md").is_file()
    assert markdown_outside(repo.parent, home) == []
    assert not Path("/tmp/memories-of-nobody").exists()


def test_links_and_files_of_another_id_are_named_and_never_followed(run_cli, om, make_repo, tmp_path) -> None:
    repo = make_repo()
    folder = repo / ".ai" / "open-memex"
    folder.mkdir(parents=True)
    secret = tmp_path / "elsewhere"
    secret.write_text(f"---\nid: {A}\nscope: project\n---\ntopsecret words\n")
    (folder / f"{A}.md").symlink_to(secret)
    (folder / f"{B}.md").write_text(f"---\nid: {C}\nscope: project\n---\nanother id\n")
    assert om("search", "topsecret", cwd=repo)["total"] == 0
    reasons = {one["path"][-29:-3]: one["reason"] for one in om("sync-status", cwd=repo)["quarantined"]}
    assert "symbolic link" in reasons[A]
    assert "differs from the file's name" in reasons[B]
    for memory in (A, B):
        for words in (
            ["show", memory],
            ["edit", memory, "--tag", "x"],
            ["forget", memory, "--yes"],
            ["submit", memory],
        ):
            done = run_cli(*words, cwd=repo)
            assert done.returncode == 1
            assert f"{memory}.md" in done.stderr
            assert "topsecret" not in done.stdout + done.stderr
            assert "line 0" not in done.stderr
    assert run_cli("show", C, cwd=repo).returncode == 1
    assert (folder / f"{A}.md").is_symlink()
    assert secret.read_text().endswith("topsecret words\n")


def test_brackets_and_colons_are_shown_as_they_are_even_in_colour(run_cli, om, make_repo) -> None:
    repo = make_repo("[red]proj[x]")
    texts = [
        "use list[str] in [slug].tsx, end with [/items], see [docs](u), [red]x, :warning: a[0] [bold",
        "[/x] \\[escaped] [link=http://x]word[/link] %s {0} $HOME <b>word</b> &amp;",
    ]
    for text in texts:
        memory = om("add", text, "--tag", "[wip]", cwd=repo)["id"]
        for words in (
            ["list"],
            ["show", memory],
            ["search", text],
            ["search", "--explain", text],
            ["sync-status"],
        ):
            done = run_cli(*words, cwd=repo, env={"FORCE_COLOR": "1"})
            assert done.returncode == 0, done.stderr
            assert text in re.sub(r"\x1b\[[0-9;]*m", "", done.stdout), words
    assert "[red]proj[x]" in run_cli("where", cwd=repo).stdout
    assert om("list", "--tag", "[wip]", cwd=repo)["total"] == len(texts)
    for words in (
        ["show", "[/x]"],
        ["list", "--limit", "[/x]"],
        ["list", "--project", "/nowhere/[/x]"],
        ["[/x]"],
    ):
        done = run_cli(*words, cwd=repo)
        assert done.returncode in (1, 2)
        assert "[/x]" in done.stderr

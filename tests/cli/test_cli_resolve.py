"""`resolve` as a person and a program meet it: exit codes, words, options, prompts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "operations"))
from merging_repos import Conflicts, memory_id, text_of

ID = memory_id(1)


@pytest.fixture
def conflicts(make_repo, git, monkeypatch) -> Conflicts:
    monkeypatch.setenv("GIT_EDITOR", ":")
    c = Conflicts(make_repo(), git)
    c.apart(
        {1: text_of(1), 2: text_of(2)},
        {1: text_of(1, "Ours.\n", type="gotcha"), 2: text_of(2, tags="[a]")},
        {1: text_of(1, "Theirs.\n", type="lesson"), 2: text_of(2, tags="[b]")},
    )
    git.run("merge", "topic", cwd=c.repo)
    return c


def test_a_clean_repository_has_nothing_to_resolve(make_repo, om, run_cli):
    repo = make_repo()
    document = om("resolve", cwd=repo)
    assert document["resolved"] == [] and document["conflicts"] == [] and document["next"] == []
    done = run_cli("resolve", cwd=repo)
    assert (done.returncode, done.stdout) == (0, "No memory is in conflict.\n")
    assert om("resolve", "--all", cwd=repo)["resolved"] == []


def test_open_conflicts_end_with_exit_code_3(conflicts, om, run_cli):
    before = conflicts.stages()
    document = om("resolve", cwd=conflicts.repo, code=3)
    assert [(one["id"], one["field"]) for one in document["conflicts"]] == [(ID, "type"), (ID, "body")]
    first = document["conflicts"][0]
    assert (first["base"], first["ours"], first["theirs"]) == ("fact", "gotcha", "lesson")
    assert document["settles"] == [memory_id(2)] and document["sides"]["theirs"] == "topic"
    assert conflicts.stages() == before
    document = om("resolve", "--all", cwd=conflicts.repo, code=3)
    assert document["resolved"] == [memory_id(2)] and len(document["conflicts"]) == 2
    done = run_cli("resolve", cwd=conflicts.repo)
    assert done.returncode == 3
    for words in ("ours, main: gotcha", "theirs, topic: lesson", "base: fact", "Theirs.", "--take"):
        assert words in done.stdout
    document = om("resolve", ID, "--take", "type=theirs", "--take-body", "ours", cwd=conflicts.repo)
    assert document["resolved"] == [ID] and document["next"] == ["git merge --continue"]
    assert document["details"][0]["action"] == "merged"
    assert om("resolve", cwd=conflicts.repo)["conflicts"] == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--take", "type=theirs"], "--all"),
        (["--all", ID], "not both"),
        (["--all", "--take", "type"], "FIELD=SIDE"),
        (["--all", "--take", "type=mine"], "ours, theirs, base"),
        (["--all", "--take", "file=ours"], "--take-file"),
        (["--all", "--take", "type=ours", "--take", "type=theirs"], "two sides"),
        (["--all", "--take-body", "both"], "ours, theirs, base"),
        (["--all", "--take-file", "base"], "ours, theirs, delete"),
        (["--all", "--take-file", "ours", "--take-body", "ours"], "whole memory"),
        (["--all", "--take", "importance=ours"], "In conflict: body, type."),
    ],
)
def test_a_wrong_take_is_wrong_usage_and_says_what_is_right(words, says, conflicts, run_cli):
    before = conflicts.stages()
    done = run_cli("resolve", *words, cwd=conflicts.repo)
    assert done.returncode == 2, done.stdout
    assert says in done.stderr
    assert conflicts.stages() == before


def test_a_memory_that_is_not_in_conflict_is_named(conflicts, run_cli):
    done = run_cli("resolve", "09ZZZZ", cwd=conflicts.repo)
    assert done.returncode == 1 and "09ZZZZ" in done.stderr


def test_what_git_brought_is_shown_without_its_secrets_and_control_characters(make_repo, git, run_cli):
    secret = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    c = Conflicts(make_repo(), git)
    c.apart({1: text_of(1)}, {1: text_of(1, "Ours \x1b[31m red.\n")}, {1: text_of(1, f"It is {secret}\n")})
    git.run("merge", "topic", cwd=c.repo)
    for options in ([], ["--json"], ["--all"]):
        done = run_cli("resolve", *options, cwd=c.repo)
        assert done.returncode == 3
        assert secret not in done.stdout + done.stderr and "\x1b" not in done.stdout


def at_a_terminal(cwd: Path, answers: list[str], *words: str) -> tuple[int, str]:
    """Run the command on a pseudo terminal, typing the next answer at each question."""
    pty = pytest.importorskip("pty")
    master, slave = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "openmemex", *words],
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    shown, asked = b"", 0
    while True:
        if shown.count(b"(q)uit? ") > asked:
            # When there is no answer left the input ends: a test must not wait for ever.
            os.write(master, answers.pop(0).encode() + b"\n" if answers else b"\x04")
            asked += 1
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(master)
    return child.wait(timeout=60), shown.decode().replace("\r\n", "\n")


def test_on_a_terminal_each_conflict_is_asked(conflicts):
    code, shown = at_a_terminal(conflicts.repo, ["x", "t", "o"], "resolve", "--all")
    assert code == 0, shown
    text = conflicts.file(1).read_text()
    assert "type: lesson" in text and text.endswith("---\nOurs.\n")
    assert "by: Ada Example" in text and "body taken from ours (main)" in text
    assert conflicts.stages() == ""


def test_on_a_terminal_a_memory_can_be_left_for_later(conflicts):
    code, shown = at_a_terminal(conflicts.repo, ["t", "s"], "resolve", "--all")
    assert code == 3, shown
    assert ID in conflicts.stages() and memory_id(2) not in conflicts.stages()


@pytest.mark.parametrize("answers", [["q"], ["t", "q"], ["theirs", "QUIT"]])
def test_on_a_terminal_quitting_changes_nothing(answers, conflicts):
    before = conflicts.stages()
    code, shown = at_a_terminal(conflicts.repo, answers, "resolve", "--all")
    assert code == 3 and "Nothing was changed. Answers that were given are not kept." in shown
    assert conflicts.stages() == before


@pytest.mark.parametrize("ended", ["t", "theirs", "Theirs", " THEIRS "])
def test_on_a_terminal_only_whole_words_and_letters_are_answers(ended, conflicts):
    """What begins with a letter of an answer, or holds one, is none; and neither is an empty line."""
    wrong = ["both", "bogus", "theirs are better? no, ours", "origin/main", "topic", "stop", "d", "", "e"]
    code, shown = at_a_terminal(conflicts.repo, [*wrong, ended, "ours"], "resolve", "--all")
    assert code == 0, shown
    told = "Type one of these words, or its first letter: ours, theirs, base, skip, quit."
    assert shown.count(told) == len(wrong)
    text = conflicts.file(1).read_text()
    assert "type: lesson" in text and text.endswith("---\nOurs.\n")


def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *texts: str) -> Path:
    """Set an editor that writes the next of `texts` at each start, and keeps what it was shown."""
    kept = tmp_path / "editor"
    kept.mkdir()
    for number, text in enumerate(texts):
        (kept / f"new{number}").write_text(text)
    program = (
        "import os, shutil, sys; kept = sys.argv[1]; "
        "n = sum(name.startswith('shown') for name in os.listdir(kept)); "
        "shutil.copy(sys.argv[2], f'{kept}/shown{n}'); shutil.copy(f'{kept}/new{n}', sys.argv[2])"
    )
    monkeypatch.setenv("EDITOR", f'{sys.executable} -c "{program}" {kept}')
    return kept


def test_on_a_terminal_both_texts_can_be_joined_in_an_editor(conflicts, tmp_path, monkeypatch):
    half_done = "Ours.\n=======\nTheirs.\n"
    kept = editor(tmp_path, monkeypatch, half_done, "", "Ours, and theirs.\n\n\n")
    code, shown = at_a_terminal(conflicts.repo, ["t", "e", "edit", "e"], "resolve", "--all")
    assert code == 0, shown
    assert "There are markers in it yet" in shown and "no text" in shown
    first = (kept / "shown0").read_text()
    assert first == (
        "<<<<<<< ours, main\nOurs.\n||||||| base\nDeploys need the VPN.\n=======\nTheirs.\n"
        ">>>>>>> theirs, topic\n"
    )
    assert (kept / "shown1").read_text() == half_done, "what was typed is not lost"
    text = conflicts.file(1).read_text()
    assert "type: lesson" in text and text.endswith("---\nOurs, and theirs.\n")
    assert "body put together from both sides" in text and "by: Ada Example" in text
    assert conflicts.stages() == ""


def test_what_is_typed_into_a_joined_text_is_screened_like_every_text(conflicts, tmp_path, monkeypatch):
    secret = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    editor(tmp_path, monkeypatch, f"It is {secret}, <private>at home</private>.\n")
    code, shown = at_a_terminal(conflicts.repo, ["t", "e"], "resolve", "--all")
    assert code == 0, shown
    text = conflicts.file(1).read_text()
    assert secret not in text + shown and "at home" not in text


def test_an_editor_that_fails_is_told_and_the_question_comes_again(conflicts, monkeypatch):
    monkeypatch.setenv("EDITOR", "false")
    code, shown = at_a_terminal(conflicts.repo, ["t", "e", "o"], "resolve", "--all")
    assert code == 0 and "The editor false ended with 1" in shown


def test_what_a_deletion_would_lose_is_shown(make_repo, git, run_cli, om):
    c = Conflicts(make_repo(), git)
    secret = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    c.apart(
        {1: text_of(1, "One.\nTwo.\n")},
        {1: None},
        {1: text_of(1, f"One.\nTwo and {secret}.\n", type="lesson", tags="[a, b]")},
    )
    git.run("merge", "topic", cwd=c.repo)
    done = run_cli("resolve", cwd=c.repo)
    for words in ("type: fact → lesson", "tags: nothing → a, b", "-Two.", "+Two and "):
        assert words in done.stdout
    assert secret not in done.stdout and "One." not in done.stdout
    (conflict,) = om("resolve", cwd=c.repo, code=3)["conflicts"]
    assert conflict["beside"]["ours"] == {}
    assert conflict["beside"]["theirs"]["type"] == "fact → lesson"


def test_two_verdicts_are_shown_with_who_came_to_them_and_why(make_repo, git, run_cli):
    c = Conflicts(make_repo(), git)
    c.apart(
        {1: text_of(1)},
        {1: text_of(1, review_state="approved", approved_by="bob", review_note="Seen it work.")},
        {1: text_of(1, review_state="rejected", review_note="Not any more.")},
    )
    git.run("merge", "topic", cwd=c.repo)
    shown = run_cli("resolve", cwd=c.repo).stdout
    for words in ("approved_by: bob", "review_note: Seen it work.", "review_note: Not any more."):
        assert words in shown


def test_other_files_in_conflict_are_named(make_repo, git, run_cli):
    c = Conflicts(make_repo(), git)
    git("switch", "-q", "-c", "topic", cwd=c.repo)
    for branch in ("topic", "main"):
        git("switch", "-q", branch, cwd=c.repo)
        for number in range(7):
            (c.repo / f"f{number}.txt").write_text(f"{branch}\n")
        c.commit({}, branch)
    git.run("merge", "topic", cwd=c.repo)
    shown = run_cli("resolve", cwd=c.repo).stdout
    assert "7 other files (f0.txt, f1.txt, f2.txt, f3.txt, f4.txt and 2 more)" in shown


def test_on_a_terminal_nothing_is_asked_where_nothing_is_open_or_json_is_wanted(conflicts):
    code, shown = at_a_terminal(conflicts.repo, [], "resolve")
    assert code == 3 and "(q)uit?" not in shown, "a list asks nothing"
    code, shown = at_a_terminal(conflicts.repo, [], "resolve", "--all", "--json")
    assert code == 3 and "(q)uit?" not in shown
    code, shown = at_a_terminal(conflicts.repo, [], "resolve", ID[:12] + ID[12:], "--take", "type=ours")
    assert code == 3 and "(q)uit?" not in shown


def test_other_commands_point_at_resolve(conflicts, run_cli, om):
    status = run_cli("sync-status", cwd=conflicts.repo)
    assert "Settle the conflicts first: open-memex resolve" in status.stdout
    checks = {check["name"]: check for check in om("doctor", cwd=conflicts.repo, code=1)["checks"]}
    assert checks["merges"]["ok"] is False and checks["merges"]["fix"] == "open-memex resolve"
    refused = run_cli("submit", memory_id(2), cwd=conflicts.repo)
    assert refused.returncode != 0
    om("resolve", "--all", "--take", "type=ours", "--take-body", "ours", cwd=conflicts.repo)
    checks = {check["name"]: check for check in om("doctor", cwd=conflicts.repo, code=1)["checks"]}
    assert checks["merges"]["ok"] is True

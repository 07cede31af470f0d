"""What a submit names is what it does: the branch that is pushed, the files and memories of the commit."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest

from tests.git.commits import everything, hook


def path_of(memory: str) -> str:
    return f".ai/open-memex/{memory}.md"


def changed(git, repo, rev="HEAD") -> list[str]:
    return git("show", "--format=", "--name-status", "--no-renames", rev, cwd=repo).splitlines()


def run_words(words: str, cwd) -> None:
    """Run a command that was printed, as a person would."""
    program = shlex.quote(sys.executable)
    subprocess.run(words.replace("open-memex", f"{program} -m openmemex", 1), cwd=cwd, shell=True, check=True)


# --- a branch that would hold nothing of its own ---


@pytest.fixture
def on_main_by_mistake(om, git, make_repo, make_remote):
    """A memory on main, an unrelated commit on top of it, and a remote that has neither."""
    repo = make_repo()
    remote = make_remote(repo)
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    om("submit", memory, cwd=repo)
    (repo / "app.txt").write_text("half done\n")
    git("commit", "-qam", "Half done", cwd=repo)
    return repo, remote, memory


@pytest.mark.parametrize("hooks", [False, True], ids=["no hooks", "hooks"])
@pytest.mark.parametrize(
    "options", [[], ["--push"], ["--dry-run"], ["--push", "--dry-run"], ["--onto", "main"]]
)
def test_a_new_branch_with_nothing_of_its_own_is_refused_and_nothing_is_pushed(
    om, git, on_main_by_mistake, options, hooks
) -> None:
    repo, remote, memory = on_main_by_mistake
    if hooks:
        hook(repo, "pre-commit", "exit 0")
    before = (everything(git, repo), git("for-each-ref", cwd=repo), git("for-each-ref", cwd=remote))
    refused = om("submit", memory, "--branch", "review/x", *options, cwd=repo, code=1)["error"]
    assert "main has" in refused["message"] and "review/x" in refused["message"]
    assert before == (everything(git, repo), git("for-each-ref", cwd=repo), git("for-each-ref", cwd=remote))


def test_the_way_out_that_is_told_makes_a_branch_with_this_memory_alone(om, git, on_main_by_mistake) -> None:
    repo, remote, memory = on_main_by_mistake
    hint = om("submit", memory, "--branch", "review/x", "--push", cwd=repo, code=1)["error"]["hint"]
    run_words("open-memex" + hint.partition("open-memex")[2] + " --push", repo)
    assert git("log", "--format=%s", "main..review/x", cwd=remote) == "Memory: the kettle is red"
    assert changed(git, remote, "review/x") == [f"A\t{path_of(memory)}"]
    assert git("rev-parse", "main", cwd=remote) == git("rev-parse", "main~2", cwd=repo)


def test_what_the_remote_has_as_well_needs_no_branch(om, git, on_main_by_mistake) -> None:
    repo, _, memory = on_main_by_mistake
    git("push", "-q", "origin", "main", cwd=repo)
    hint = om("submit", memory, "--branch", "review/x", cwd=repo, code=1)["error"]["hint"]
    assert "origin/main has it too" in hint


def test_without_a_remote_another_start_is_asked_for(om, git, make_repo) -> None:
    repo = make_repo()
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    om("submit", memory, cwd=repo)
    assert "--onto" in om("submit", memory, "--branch", "x", cwd=repo, code=1)["error"]["hint"]
    om("submit", memory, "--branch", "x", "--onto", "HEAD~1", cwd=repo)
    assert changed(git, repo, "x") == [f"A\t{path_of(memory)}"]


@pytest.mark.parametrize("hooks", [False, True], ids=["no hooks", "hooks"])
def test_a_file_that_git_converts_is_no_reason_for_a_branch_either(om, git, make_repo, hooks) -> None:
    repo = make_repo()
    (repo / ".gitattributes").write_text("*.md text eol=crlf\n")
    git("add", ".gitattributes", cwd=repo)
    git("commit", "-qm", "Line ends", cwd=repo)
    if hooks:
        hook(repo, "pre-commit", "exit 0")
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    om("submit", memory, cwd=repo)
    file = repo / path_of(memory)
    file.unlink()
    git("checkout", "-q", "--", ".", cwd=repo)
    assert b"\r\n" in file.read_bytes()
    for options in ([], ["--dry-run"]):
        om("submit", memory, "--branch", "x", *options, cwd=repo, code=1)
    assert git("branch", "--list", "x", cwd=repo) == ""


def test_a_draft_of_what_main_has_makes_no_branch_and_stays(om, git, make_repo, home) -> None:
    repo = make_repo()
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    [draft] = home.data.rglob(f"{memory}.md")
    text = draft.read_bytes()
    om("submit", memory, cwd=repo)
    draft.write_bytes(text)
    om("submit", memory, "--branch", "x", cwd=repo, code=1)
    assert draft.read_bytes() == text and git("branch", "--list", "x", cwd=repo) == ""
    om("submit", memory, cwd=repo)
    assert not draft.exists() and git("rev-list", "--count", "HEAD", cwd=repo) == "2"


def test_a_dry_run_to_a_branch_that_has_it_says_so(om, make_repo) -> None:
    repo = make_repo()
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    om("submit", memory, "--branch", "x", cwd=repo)
    assert om("submit", memory, "--branch", "x", "--dry-run", cwd=repo)["already"] is True


# --- a pair, whichever half is named ---


@pytest.fixture
def waiting_pair(om, git, make_repo):
    """A shared memory and its replacement in the outbox, and another shared memory."""
    repo = make_repo()
    old, other = (om("add", text, cwd=repo)["id"] for text in ("the kettle is red", "shoes stay outside"))
    om("submit", old, other, cwd=repo)
    new = om("supersede", old, "the kettle is blue", cwd=repo)["id"]
    return repo, old, new, other


@pytest.mark.parametrize("hooks", [False, True], ids=["no hooks", "hooks"])
@pytest.mark.parametrize("branch", [None, "memex/pair"])
@pytest.mark.parametrize("named", ["old", "new", "old new", "new old"])
def test_a_pair_goes_together_whichever_half_is_named(om, git, waiting_pair, named, branch, hooks) -> None:
    repo, old, new, _ = waiting_pair
    if hooks:
        hook(repo, "pre-commit", "exit 0")
    words = [{"old": old, "new": new}[half] for half in named.split()]
    options = ["--branch", branch] if branch else []
    planned = om("submit", *words, *options, "--dry-run", cwd=repo)
    done = om("submit", *words, *options, cwd=repo)
    rev = branch or "HEAD"
    assert sorted(changed(git, repo, rev)) == sorted([f"M\t{path_of(old)}", f"A\t{path_of(new)}"])
    assert sorted(done["files"]) == sorted(planned["files"]) == sorted([path_of(old), path_of(new)])
    assert f"superseded_by: {new}" in git("show", f"{rev}:{path_of(old)}", cwd=repo)
    message = git("log", "-1", "--format=%B", rev, cwd=repo)
    assert message.startswith("Memory: the kettle is blue\n") and f"{old} replaced by {new}" in message
    assert om("sync-status", cwd=repo)["outbox"] == [] and git("status", "--porcelain", cwd=repo) == ""


@pytest.mark.parametrize("branch", [None, "memex/pair"])
def test_a_change_of_the_old_half_goes_with_its_mark(om, git, waiting_pair, branch) -> None:
    repo, old, new, _ = waiting_pair
    om("edit", old, "--tag", "kitchen", cwd=repo)
    om("submit", old, *(["--branch", branch] if branch else []), cwd=repo)
    text = git("show", f"{branch or 'HEAD'}:{path_of(old)}", cwd=repo)
    assert "kitchen" in text and f"superseded_by: {new}" in text


def test_the_deletion_of_the_old_half_is_that_alone(om, git, waiting_pair) -> None:
    repo, old, _, _ = waiting_pair
    (repo / path_of(old)).unlink()
    om("submit", old, cwd=repo)
    assert changed(git, repo) == [f"D\t{path_of(old)}"]
    assert len(om("sync-status", cwd=repo)["outbox"]) == 1


def test_a_replacement_that_was_rejected_does_not_go_along(om, git, waiting_pair, home) -> None:
    repo, old, new, _ = waiting_pair
    [draft] = home.data.rglob(f"{new}.md")
    draft.write_text(draft.read_text().replace("review_state: proposed", "review_state: rejected"))
    om("edit", old, "--tag", "kitchen", cwd=repo)
    assert om("submit", old, cwd=repo)["files"] == [path_of(old)]
    assert f"superseded_by: {new}" not in git("show", f"HEAD:{path_of(old)}", cwd=repo)


def test_of_two_waiting_replacements_neither_goes_before_one_is_chosen(om, git, waiting_pair, home) -> None:
    repo, old, new, _ = waiting_pair
    [draft] = home.data.rglob(f"{new}.md")
    second = "01BX5ZZKBKACTAV9WEVGEMMVRZ"
    draft.with_name(f"{second}.md").write_text(draft.read_text().replace(new, second))
    head = git("rev-parse", "HEAD", cwd=repo)
    assert "error" in om("submit", old, cwd=repo, code=3)
    assert git("rev-parse", "HEAD", cwd=repo) == head and git("status", "--porcelain", cwd=repo) == ""


def test_a_pair_that_is_on_main_goes_whole_to_a_branch(om, git, waiting_pair) -> None:
    repo, old, new, _ = waiting_pair
    om("submit", new, cwd=repo)
    done = om("submit", new, "--branch", "x", "--onto", "HEAD~1", cwd=repo)
    assert sorted(done["files"]) == sorted([path_of(old), path_of(new)])
    assert sorted(changed(git, repo, "x")) == sorted([f"M\t{path_of(old)}", f"A\t{path_of(new)}"])


@pytest.mark.parametrize("hooks", [False, True], ids=["no hooks", "hooks"])
@pytest.mark.parametrize("branch", [None, "side"])
def test_what_has_nothing_new_is_in_no_receipt_and_no_message(om, git, waiting_pair, branch, hooks) -> None:
    repo, _, _, other = waiting_pair
    if hooks:
        hook(repo, "pre-commit", "exit 0")
    draft = om("add", "lunch is at noon", cwd=repo)["id"]
    options = ["--branch", branch] if branch else []
    planned = om("submit", other, draft, *options, "--dry-run", cwd=repo)
    done = om("submit", other, draft, *options, cwd=repo)
    assert done["files"] == planned["files"] == [path_of(draft)]
    rev = branch or "HEAD"
    assert changed(git, repo, rev) == [f"A\t{path_of(draft)}"]
    assert other not in git("log", "-1", "--format=%B", rev, cwd=repo)
    assert [one["kind"] for one in done["notices"]] == ["unchanged"] and other in done["notices"][0]["text"]

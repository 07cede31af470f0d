"""A submit that comes to half of it: the commit is there, and everything that is told says so."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

from tests.git.commits import hook


def path_of(memory: str) -> str:
    return f".ai/open-memex/{memory}.md"


def interrupted_in_hook(repo, *words):
    """Ctrl-C as soon as a hook of the repository has made the file `started`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "openmemex", *words],
        cwd=repo,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    end = time.monotonic() + 60
    while not (repo / "started").exists() and time.monotonic() < end:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def half_done(document, git, repo, memory, rev="main") -> None:
    """The document holds what was committed, as after a whole submit, beside the error."""
    assert document["commit"] == git("rev-parse", rev, cwd=repo)
    assert (document["branch"], document["files"]) == (rev, [path_of(memory)])
    assert (document["pushed"], document["dry_run"]) == (False, False)
    assert document["error"]["message"] and document["commit"][:10] in document["error"]["message"]


# --- the push was refused ---


@pytest.mark.parametrize("branch", [None, "memex/out"])
@pytest.mark.parametrize("why", ["server", "hook", "network"])
def test_the_document_of_a_refused_push_has_the_commit(om, git, make_repo, make_remote, why, branch) -> None:
    repo = make_repo()
    remote = make_remote(repo)
    if why == "server":
        hook(remote, "pre-receive", "echo 'not today'; exit 1", remote / "hooks")
    elif why == "hook":
        hook(repo, "pre-push", "echo 'not today'; exit 1")
    else:
        remote.rename(remote.with_name("moved.git"))
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    options = ["--branch", branch] if branch else []
    document = om("submit", memory, "--push", *options, cwd=repo, code=4)
    half_done(document, git, repo, memory, branch or "main")
    assert document["next"][0].startswith("git push") and document["error"]["code"] == 4


def test_a_refusal_before_the_commit_has_the_error_alone(om, make_repo) -> None:
    repo = make_repo()
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    assert list(om("submit", memory, "--push", cwd=repo, code=1)) == ["error"]


@pytest.mark.parametrize("branch", [None, "side", "elsewhere"])
def test_what_is_told_after_a_push_that_came_too_late_works(
    om, git, make_repo, make_remote, clone, tmp_path, branch
) -> None:
    repo = make_repo()
    remote = make_remote(repo)
    rev = branch or "main"
    if branch:
        git("branch", rev, cwd=repo)
        git("push", "-q", "-u", "origin", rev, cwd=repo)
    mate = clone(remote, "mate")
    git("switch", "-q", rev, cwd=mate)
    (mate / "theirs.txt").write_text("theirs\n")
    git("add", ".", cwd=mate)
    git("commit", "-qm", "Theirs", cwd=mate)
    git("push", "-q", "origin", rev, cwd=mate)
    here = repo
    if branch == "elsewhere":
        here = tmp_path / "a work tree"
        git("worktree", "add", "-q", str(here), rev, cwd=repo)
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    (here / "app.txt").write_text("half done\n")
    options = ["--branch", "side"] if branch == "side" else []
    hint = om("submit", memory, "--push", *options, cwd=here, code=4)["error"]["hint"]
    assert "open-memex pull" not in hint
    first = hint.removeprefix("Bring them in first: ").partition(". Then push again.")[0]
    again = hint.partition("To try again: ")[2]
    if branch == "side":
        git("checkout", "-q", "--", "app.txt", cwd=repo)  # `git switch` would refuse to lose it
    subprocess.run(first, shell=True, cwd=repo if branch != "elsewhere" else here, check=True)
    subprocess.run(again, shell=True, cwd=here, check=True)
    assert git("log", "--format=%s", "-2", rev, cwd=remote).splitlines() == [
        "Memory: the kettle is red",
        "Theirs",
    ]
    if branch != "side":
        assert (here / "app.txt").read_text() == "half done\n"


def test_a_branch_in_another_work_tree_is_mended_there(git, make_repo, make_remote, tmp_path) -> None:
    from openmemex.errors import Refused
    from openmemex.git.provider import GitProvider

    repo = make_repo()
    make_remote(repo)
    git("commit", "-q", "--allow-empty", "-m", "Theirs", cwd=repo)
    git("push", "-q", "origin", "main", cwd=repo)
    git("reset", "-q", "--hard", "HEAD~1", cwd=repo)
    git("commit", "-q", "--allow-empty", "-m", "Ours", cwd=repo)
    there = tmp_path / "work tree"
    git("worktree", "add", "-q", str(there), "-b", "other", cwd=repo)
    provider = GitProvider.open(str(there))
    assert provider is not None
    with pytest.raises(Refused) as refused:
        provider.push("main")
    command = refused.value.hint.removeprefix("Bring them in first: ").partition(". Then push again.")[0]
    subprocess.run(command, shell=True, cwd=there, check=True)
    provider.push("main")
    assert git("log", "--format=%s", "origin/main", cwd=repo).splitlines() == ["Ours", "Theirs", "Commit 1"]


# --- a hook spoilt the file ---


@pytest.mark.parametrize("branch", [None, "side"])
def test_a_memory_that_a_hook_spoilt_is_half_done(om, git, make_repo, home, branch) -> None:
    repo = make_repo()
    hook(repo, "pre-commit", "for f in .ai/open-memex/*.md; do echo spoilt >$f; git add $f; done")
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    [draft] = home.data.rglob(f"{memory}.md")
    text = draft.read_bytes()
    document = om("submit", memory, *(["--branch", branch] if branch else []), cwd=repo, code=4)
    half_done(document, git, repo, memory, branch or "main")
    assert draft.read_bytes() == text and "draft was kept" in document["error"]["message"]


def test_a_file_that_a_hook_changed_in_the_commit_alone_is_told_with_a_way(om, git, make_repo) -> None:
    repo = make_repo()
    text = "for f in $(git diff --cached --name-only); do (git show :$f; echo formatted) >.git/new; "
    blob = "git update-index --cacheinfo 100644,$(git hash-object -w .git/new),$f; done"
    hook(repo, "pre-commit", text + blob)
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    [notice] = om("submit", memory, cwd=repo)["notices"]
    assert notice["kind"] == "changed-by-hook"
    command = "git checkout" + notice["text"].partition(": git checkout")[2].partition(" brings")[0]
    (repo / "below").mkdir()
    subprocess.run(command, shell=True, cwd=repo / "below", check=True)
    assert (repo / path_of(memory)).read_text().endswith("formatted\n")
    assert git("status", "--porcelain", "--", ".ai", cwd=repo) == ""


@pytest.mark.parametrize("branch", [None, "side"])
def test_a_file_that_a_hook_formatted_here_too_is_staged_and_needs_no_way(om, git, make_repo, branch) -> None:
    repo = make_repo()
    script = "for f in $(git diff --cached --name-only); do echo formatted >>$f; git add $f; done"
    hook(repo, "pre-commit", script)
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    [notice] = om("submit", memory, *(["--branch", branch] if branch else []), cwd=repo)["notices"]
    assert notice["text"] == f"a commit hook changed {path_of(memory)}"
    assert git("status", "--porcelain", cwd=repo) == ""


# --- interrupted ---


@pytest.mark.parametrize("branch", [None, "side"])
def test_an_interrupted_push_tells_the_commit(om, git, make_repo, make_remote, branch) -> None:
    repo = make_repo()
    remote = make_remote(repo)
    hook(repo, "pre-push", "touch started; sleep 30")
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    options = ["--branch", branch] if branch else []
    code, out, err = interrupted_in_hook(repo, "submit", memory, "--push", "--json", *options)
    assert code == 130 and "committed to" in err and "git push" in err
    half_done(json.loads(out), git, repo, memory, branch or "main")
    assert om("sync-status", cwd=repo)["outbox"] == []
    (repo / ".git" / "hooks" / "pre-push").unlink()
    om("submit", memory, "--push", *options, cwd=repo)
    assert git("rev-parse", branch or "main", cwd=remote) == git("rev-parse", branch or "main", cwd=repo)


@pytest.mark.parametrize("branch", [None, "side"])
def test_an_interruption_after_the_commit_tells_it(om, git, make_repo, branch) -> None:
    repo = make_repo()
    hook(repo, "post-commit", f"touch {repo}/started; sleep 30")
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    options = ["--branch", branch] if branch else []
    code, _, err = interrupted_in_hook(repo, "submit", memory, *options)
    tip = git("rev-parse", branch or "main", cwd=repo)
    assert code == 130 and tip[:10] in err and "Run the same command again" in err
    (repo / ".git" / "hooks" / "post-commit").unlink()
    om("submit", memory, *options, cwd=repo)
    assert git("rev-parse", branch or "main", cwd=repo) == tip
    assert om("sync-status", cwd=repo)["outbox"] == []


def test_an_interruption_before_the_commit_claims_none(om, git, make_repo) -> None:
    repo = make_repo()
    hook(repo, "pre-commit", "touch started; sleep 30")
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    code, _, err = interrupted_in_hook(repo, "submit", memory)
    assert code == 130 and "committed" not in err
    assert git("rev-list", "--count", "HEAD", cwd=repo) == "1"


# --- a branch that another work tree has ---


def test_a_change_of_a_memory_that_another_work_tree_has_is_sent_there(om, git, make_repo, tmp_path) -> None:
    repo = make_repo()
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    om("submit", memory, "--branch", "other", cwd=repo)
    told = om("edit", memory, "--tag", "kitchen", cwd=repo, code=1)["error"]
    assert "git switch other" in told["hint"]
    there = tmp_path.resolve() / "there"
    git("worktree", "add", "-q", str(there), "other", cwd=repo)
    told = om("edit", memory, "--tag", "kitchen", cwd=repo, code=1)["error"]
    assert str(there) in told["message"] and "git switch" not in told["hint"]
    [item] = om("forget", memory, "--yes", cwd=repo, code=1)["items"]
    assert str(there) in item["hint"]
    om("edit", memory, "--tag", "kitchen", cwd=there)

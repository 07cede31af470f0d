"""A pull is the same whatever the person's settings are, and a kill in the middle of it loses nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from kinds import FOLDER, NEW, OLD, Stage

from openmemex.errors import OpenMemexError, Refused
from openmemex.git import process, staging
from openmemex.git.provider import GitProvider

SECRET = "s3cr3t" + "-of-a-helper-77"


def provider(repo):
    found = GitProvider.open(str(repo))
    assert found is not None
    return found


@pytest.fixture
def stage(git, tmp_path):
    return Stage(git, tmp_path.resolve())


@pytest.fixture
def here(stage):
    return stage.clone()


SETTINGS = {
    "merges are never fast-forwards": ["merge.ff=false"],
    "pull rebases": ["pull.rebase=true", "branch.main.rebase=merges", "rebase.autoStash=true"],
    "pull never fast-forwards": ["pull.ff=false"],
    "changes are stashed first": ["merge.autoStash=true", "rebase.autoStash=true"],
    "merge options of the branch": ["branch.main.mergeOptions=--no-ff --squash"],
    "pruning": ["fetch.prune=true", "fetch.pruneTags=true", "remote.origin.prune=true"],
    "no tags": ["remote.origin.tagOpt=--no-tags"],
    "all tags": ["remote.origin.tagOpt=--tags"],
    "submodules along": ["submodule.recurse=true", "fetch.recurseSubmodules=on-demand"],
    "in parallel, from all": ["fetch.parallel=4", "fetch.all=true", "fetch.writeCommitGraph=true"],
    "a format for people": [
        "log.showSignature=true",
        "color.ui=always",
        "status.short=true",
        "diff.noprefix=true",
    ],
    "loud": ["advice.diverging=true", "fetch.output=full", "merge.stat=true", "merge.log=true"],
    "another default for push": ["push.default=upstream", "push.autoSetupRemote=true"],
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_pull_does_the_same_with_every_setting(git, stage, here, name):
    for setting in SETTINGS[name]:
        key, _, value = setting.partition("=")
        git("config", key, value, cwd=here)
    git("push", "-q", "origin", "HEAD:refs/heads/passing", cwd=stage.mate)
    git("fetch", "-q", cwd=here)
    git("push", "-q", "origin", ":refs/heads/passing", cwd=stage.mate)
    git("tag", "v1", cwd=stage.mate)
    git("push", "-q", "origin", "v1", cwd=stage.mate)
    stage.share(NEW, "The new decision: larch for every gate.")
    (here / "app.txt").write_text("dirty\n")
    (here / "staged.txt").write_text("staged\n")
    git("add", "staged.txt", cwd=here)
    tip = git("rev-parse", "HEAD", cwd=stage.mate)
    got = provider(here).pull(FOLDER)
    assert (got.after, got.changes, got.engine) == (tip, (("A", f"{FOLDER}/{NEW}.md"),), "git")
    assert got.authors == ("Ada Example",)
    assert git("rev-parse", "HEAD", cwd=here) == tip
    assert git("-c", "status.short=false", "status", "--porcelain", cwd=here).split("\n") == [
        " M app.txt",
        "A  staged.txt",
    ]
    assert git("stash", "list", cwd=here) == ""
    known = git("for-each-ref", "--format=%(refname)", "refs/remotes", cwd=here).split()
    assert ("refs/remotes/origin/passing" in known) == (name != "pruning")


def test_submodules_are_neither_fetched_nor_moved(git, stage, here, tmp_path):
    git("config", "--global", "protocol.file.allow", "always")
    git("config", "submodule.recurse", "true", cwd=here)
    git("submodule", "--quiet", "add", str(stage.remote), "lib", cwd=stage.mate)
    stage.share(NEW, "The new decision: larch for every gate.")
    got = provider(here).pull()
    assert ("A", "lib") in got.changes and not any((here / "lib").iterdir())
    assert not (here / ".git" / "modules").exists()


def test_diverged_tells_both_counts_and_ends_with_a_code(run_cli, om, git, stage, here):
    stage.share(NEW, "The new decision: larch for every gate.")
    stage.share(OLD, "The old decision, again: cedar for every fence.")
    memory = om("add", "Birch is for the shed.", cwd=here)["id"]
    om("submit", memory, cwd=here)
    before = git("rev-parse", "HEAD", cwd=here), git("status", "--porcelain", cwd=here)
    done = run_cli("pull", cwd=here)
    assert done.returncode == 1 and done.stdout == ""
    assert "1 ahead, 2 behind" in done.stderr and "git pull --rebase" in done.stderr
    assert (git("rev-parse", "HEAD", cwd=here), git("status", "--porcelain", cwd=here)) == before
    assert om("pull", cwd=here, code=1)["error"]["code"] == 1


def test_an_editor_that_fetches_at_the_same_moment(git, stage, here, tmp_path, monkeypatch):
    """FETCH_HEAD may be written over by another fetch, of another branch, before it is read."""
    git("push", "-q", "origin", "HEAD:refs/heads/other", cwd=stage.mate)
    stage.share(NEW, "The new decision: larch for every gate.")
    once = tmp_path / "once"
    once.touch()
    wrapped_git(
        tmp_path,
        monkeypatch,
        f'$REAL "$@"; code=$?; case "$*" in *fetch*) [ -e {once} ] && rm {once} && '
        f"$REAL -C {here} fetch -q origin other;; esac; exit $code",
    )
    assert provider(here).pull().changes == (("A", f"{FOLDER}/{NEW}.md"),)
    assert not once.exists()


# --- killed ---


def wrapped_git(tmp_path, monkeypatch, script):
    """A `git` first on the PATH; $REAL is the real one."""
    folder = tmp_path / "wrapped"
    folder.mkdir()
    (folder / "git").write_text(f"#!/bin/sh\nREAL={shutil.which('git')}\n{script}\n")
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


# Ends the nearest git above it, as the system would.
KILL_GIT = """pid=$PPID
while [ "$(cat /proc/$pid/comm)" != git ]; do pid=$(sed 's/.*) . //; s/ .*//' /proc/$pid/stat); done
kill -9 $pid
"""


def test_killed_while_fetching(git, stage, here, tmp_path):
    stage.share(NEW, "The new decision: larch for every gate.")
    (stage.mate / "big.bin").write_bytes(os.urandom(300_000))
    stage.share(OLD, "The old decision, again: cedar for every fence.")
    once = tmp_path / "once"
    once.touch()
    server = tmp_path / "upload-pack"
    server.write_text(
        f'#!/bin/sh\n[ -e {once} ] || exec git-upload-pack "$@"\nrm {once}\n'
        f'git-upload-pack "$@" | dd bs=1 count=60000 2>/dev/null\n{KILL_GIT}'
    )
    server.chmod(0o755)
    git("config", "remote.origin.uploadpack", str(server), cwd=here)
    before = git("rev-parse", "HEAD", "origin/main", cwd=here)
    with pytest.raises(Refused, match="Nothing could be fetched"):
        provider(here).pull()
    assert not once.exists()
    assert git("rev-parse", "HEAD", "origin/main", cwd=here) == before
    assert git("status", "--porcelain", cwd=here) == "" and git("fsck", "--no-dangling", cwd=here) == ""
    assert provider(here).pull().after == git("rev-parse", "HEAD", cwd=stage.mate)
    assert git("fsck", "--no-dangling", cwd=here) == ""


def test_killed_with_our_own_process_while_fetching(git, stage, here, tmp_path, monkeypatch):
    stage.share(NEW, "The new decision: larch for every gate.")
    once = tmp_path / "once"
    once.touch()
    wrapped_git(
        tmp_path,
        monkeypatch,
        f'case "$*" in *fetch*) [ -e {once} ] && rm {once} && kill -9 $PPID && exit;; esac\nexec $REAL "$@"',
    )
    done = subprocess.run([sys.executable, "-m", "openmemex", "pull"], cwd=here, capture_output=True)
    assert done.returncode == -9 and not once.exists()
    assert git("status", "--porcelain", cwd=here) == "" and git("fsck", "--no-dangling", cwd=here) == ""
    assert provider(here).pull().after == git("rev-parse", "HEAD", cwd=stage.mate)


def test_killed_while_files_are_written(git, stage, here, tmp_path, monkeypatch):
    """git dies in the middle of the fast-forward: the branch has not moved, and nothing is lost."""
    once = tmp_path / "once"
    smudge = tmp_path / "smudge"
    smudge.write_text(f"#!/bin/sh\n[ -e {once} ] && rm {once} && {{ {KILL_GIT} }}\ncat\n")
    smudge.chmod(0o755)
    git("config", "filter.slow.smudge", str(smudge), cwd=here)
    (here / ".git" / "info" / "attributes").write_text("zz.txt filter=slow\n")
    (stage.mate / "zz.txt").write_text("last\n")
    stage.share(OLD, "The old decision, again: cedar for every fence.")
    (here / "app.txt").write_text("dirty\n")
    once.touch()
    before = git("rev-parse", "HEAD", cwd=here)
    monkeypatch.setattr(staging, "LOCK_SECONDS", 0.2)
    with pytest.raises(OpenMemexError):
        provider(here).pull()
    assert not once.exists()
    assert git("rev-parse", "HEAD", cwd=here) == before and (here / "app.txt").read_text() == "dirty\n"
    with pytest.raises(OpenMemexError, match=r"index\.lock"):  # whose it was nobody can know
        provider(here).pull()
    (here / ".git" / "index.lock").unlink()
    assert provider(here).folder_status(FOLDER) == [(f"{FOLDER}/{OLD}.md", "modified")]  # it had arrived
    assert provider(here).pull().after == git("rev-parse", "HEAD", cwd=stage.mate)
    assert (here / "app.txt").read_text() == "dirty\n"
    assert git("status", "--porcelain", cwd=here).strip() == "M app.txt"
    assert git("fsck", "--no-dangling", cwd=here) == ""


def test_a_file_that_is_the_remotes_already_is_not_in_the_way(git, stage, here):
    stage.share(NEW, "The new decision: larch for every gate.")
    stage.share(OLD, "The old decision, again: cedar for every fence.")
    for memory in (NEW, OLD):
        shutil.copy(stage.mate / FOLDER / f"{memory}.md", here / FOLDER)
    (stage.mate / FOLDER / f"{OLD}.md").chmod(0o755)
    assert provider(here).pull().after == git("rev-parse", "HEAD", cwd=stage.mate)
    assert git("status", "--porcelain", cwd=here) == ""
    stage.share(OLD, "The old decision, last: cedar for every fence.")
    shutil.copy(stage.mate / FOLDER / f"{OLD}.md", here / FOLDER)
    (here / "app.txt").write_text("my own\n")
    (stage.mate / "app.txt").write_text("theirs\n")
    stage.share(NEW, "The new decision, again: larch for every gate.")
    with pytest.raises(Refused, match=r"app\.txt"):  # one that is somebody's own work stops it all
        provider(here).pull()
    assert (here / "app.txt").read_text() == "my own\n"
    assert (here / FOLDER / f"{OLD}.md").read_bytes() == (stage.mate / FOLDER / f"{OLD}.md").read_bytes()


# --- a git that does not behave ---


def test_a_git_that_tells_passwords_is_not_passed_on(git, here, tmp_path, monkeypatch):
    git("remote", "set-url", "origin", f"https://me:{SECRET}@h.test/x.git", cwd=here)
    wrapped_git(
        tmp_path,
        monkeypatch,
        f'case "$*" in *fetch*|*push*) echo "fatal: could not log in with {SECRET} at '
        f'https://me:{SECRET}@h.test" >&2; exit 128;; esac\nexec $REAL "$@"',
    )
    for act in (lambda: provider(here).pull(), lambda: provider(here).push("main")):
        with pytest.raises(Refused) as refusal:
            act()
        assert SECRET not in str(refusal.value) and "could not log in with ***" in str(refusal.value)


def test_a_git_that_never_ends_is_ended_whatever_it_is_asked(here, tmp_path, monkeypatch):
    wrapped_git(tmp_path, monkeypatch, "exec sleep 600")
    monkeypatch.setattr(process, "LOCAL_SECONDS", 0.3)
    monkeypatch.setattr(process.Git.run, "__kwdefaults__", {**process.Git.run.__kwdefaults__, "seconds": 0.3})
    for act in (
        lambda: provider(here).identity(),
        lambda: provider(here).capabilities(),
        lambda: provider(here).pull(),
        lambda: provider(here).folder_status(FOLDER),
    ):
        with pytest.raises(Refused, match="stopped after"):
            act()


def test_a_server_that_does_not_answer_is_an_error_with_no_password(git, here):
    git("remote", "set-url", "origin", f"https://me:{SECRET}@127.0.0.1:9/x.git", cwd=here)
    with pytest.raises(Refused) as refusal:
        provider(here).pull()
    assert SECRET not in str(refusal.value) and "127.0.0.1" in str(refusal.value)


def test_an_ssh_that_reads_from_the_terminal_gets_none(git, here, monkeypatch, run_cli):
    git("remote", "set-url", "origin", "ssh://git@h.test/x.git", cwd=here)
    done = run_cli("pull", cwd=here, env={"GIT_SSH_COMMAND": "sh -c 'read x </dev/tty'"}, stdin="")
    assert done.returncode == 1 and "Nothing could be fetched" in done.stderr


# --- unusual upstreams ---


def test_an_upstream_that_is_an_address(git, stage, here):
    git("config", "branch.main.remote", f"file://{stage.remote}", cwd=here)
    stage.share(NEW, "The new decision: larch for every gate.")
    got = provider(here).pull(FOLDER)
    assert got.changes == (("A", f"{FOLDER}/{NEW}.md"),)
    assert provider(here).pull().before == got.after


@pytest.mark.parametrize("branch", ["memex/it's", 'a"b', "größe", "x.y", "-"])
def test_branches_of_every_name_are_pulled_and_pushed(git, stage, here, branch):
    if branch == "-":
        branch = "a-" + "very-" * 20 + "long-name"
    git("checkout", "-q", "-b", branch, cwd=here)
    assert provider(here).push(branch).created
    stage.remember(NEW, "The new decision: larch for every gate.")
    git("push", "-q", "origin", f"HEAD:refs/heads/{branch}", cwd=stage.mate)
    assert provider(here).pull(FOLDER).changes == (("A", f"{FOLDER}/{NEW}.md"),)
    git("commit", "-q", "--allow-empty", "-m", "mine", cwd=here)
    done = provider(here).push(branch)
    assert done.after == git("rev-parse", "HEAD", cwd=here) and done.before


def test_a_fetch_that_would_write_the_checked_out_branch_is_refused_in_gits_words(git, stage, here):
    git("config", "remote.origin.fetch", "+refs/heads/*:refs/heads/*", cwd=here)
    stage.share(NEW, "The new decision: larch for every gate.")
    before = git("rev-parse", "HEAD", cwd=here)
    with pytest.raises(Refused, match=r"(?i)refusing to fetch into"):
        provider(here).pull()
    assert git("rev-parse", "HEAD", cwd=here) == before and git("status", "--porcelain", cwd=here) == ""


def test_a_remote_whose_history_has_nothing_in_common(git, make_repo, stage, here):
    other = make_repo("stranger")
    git("remote", "set-url", "origin", str(other), cwd=here)
    with pytest.raises(Refused) as refusal:
        provider(here).pull()
    assert "diverged" in refusal.value.message or "moved back" in refusal.value.message

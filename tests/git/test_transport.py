"""Pull fast-forwards or changes nothing; the printed commands fit this very remote."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from openmemex.errors import Refused
from openmemex.git import process
from openmemex.git.provider import GitProvider

FOLDER = ".ai/open-memex"
A, B = f"{FOLDER}/01ARZ3NDEKTSV4RRFFQ69G5FAV.md", f"{FOLDER}/01BX5ZZKBKACTAV9WEVGEMMVRZ.md"


def provider(repo):
    found = GitProvider.open(str(repo))
    assert found is not None
    return found


def remember(repo: Path, path: str, text: str):
    (repo / path).parent.mkdir(parents=True, exist_ok=True)
    (repo / path).write_text(text)
    return provider(repo).commit({path: text.encode()}, message=f"Remember {text.strip()}")


@pytest.fixture
def pair(git, make_repo, make_remote, clone):
    """Two clones of one bare remote: a teammate's, and the one of here."""
    first = make_repo("origin-maker")
    remote = make_remote(first)
    return clone(remote, "theirs"), clone(remote, "ours")


def everything(git, repo):
    return [
        git(*args, cwd=repo)
        for args in (
            ["rev-parse", "HEAD"],
            ["symbolic-ref", "-q", "HEAD"],
            ["ls-files", "-s", "-t"],
            ["status", "--porcelain", "-uall"],
            ["diff"],
            ["for-each-ref", "refs/heads"],
            ["stash", "list"],
        )
    ]


def refused(git, repo, **options):
    before = everything(git, repo)
    with pytest.raises(Refused) as refusal:
        provider(repo).pull(FOLDER, **options)
    assert everything(git, repo) == before
    return refusal.value


def test_a_pull_brings_the_teammates_memories_and_says_so(git, pair, monkeypatch):
    theirs, ours = pair
    remember(theirs, A, "one\n")
    git("push", "-q", cwd=theirs)
    provider(ours).pull()
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Grace")
    remember(theirs, A, "two\n")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Linus")
    remember(theirs, B, "three\n")
    (theirs / "other").write_text("x")
    git("add", "other", cwd=theirs)
    git("commit", "-qm", "other", cwd=theirs, env={"GIT_AUTHOR_NAME": "Nobody"})
    git("push", "-q", cwd=theirs)
    before = git("rev-parse", "HEAD", cwd=ours)
    steps = []
    got = provider(ours).pull(FOLDER, progress=lambda *step: steps.append(step))
    assert (got.before, got.after) == (before, git("rev-parse", "HEAD", cwd=theirs))
    assert (got.branch, got.remote, got.ahead, got.default_branch) == ("main", "origin", 0, "main")
    assert got.changes == (("M", A), ("A", B)) and got.authors == ("Linus", "Grace")
    assert git("rev-parse", "HEAD", cwd=ours) == got.after and (ours / B).read_text() == "three\n"
    assert got.fetched_at.endswith("Z") and steps[0][0] == "Fetching from origin"
    assert ("A", "other") in provider(ours).pull().changes or provider(ours).pull().changes == ()
    again = provider(ours).pull(FOLDER)
    assert again.before == again.after and again.changes == () and again.authors == ()


def test_own_staged_unstaged_and_untracked_work_is_kept(git, pair):
    theirs, ours = pair
    remember(theirs, A, "one\n")
    git("push", "-q", cwd=theirs)
    (ours / "staged").write_text("s")
    git("add", "staged", cwd=ours)
    (ours / "app.txt").write_text("dirty\n")
    (ours / "untracked").write_text("u")
    git("config", "merge.autoStash", "true", cwd=ours)
    before = everything(git, ours)
    provider(ours).pull(FOLDER)
    after = everything(git, ours)
    assert [line for line in after[2].splitlines() if FOLDER not in line] == before[2].splitlines()
    assert after[3:5] == before[3:5] and after[6] == ""


@pytest.mark.parametrize("state", ["modified", "staged", "untracked"])
def test_own_changes_in_the_way_stop_it(git, pair, state):
    theirs, ours = pair
    remember(theirs, A, "one\n")
    git("push", "-q", cwd=theirs)
    if state != "untracked":
        provider(ours).pull()
        remember(theirs, A, "two\n")
        git("push", "-q", cwd=theirs)
    (ours / A).parent.mkdir(parents=True, exist_ok=True)
    (ours / A).write_text("my edit\n")
    if state == "staged":
        git("add", A, cwd=ours)
    git("config", "merge.autoStash", "true", cwd=ours)
    refusal = refused(git, ours)
    assert A in refusal.message and "git stash" in refusal.hint
    assert (ours / A).read_text() == "my edit\n"


@pytest.mark.parametrize("staged", [False, True])
def test_an_own_deletion_is_not_undone_by_a_pull(git, pair, staged):
    theirs, ours = pair
    remember(theirs, A, "one\n")
    git("push", "-q", cwd=theirs)
    provider(ours).pull()
    remember(theirs, A, "two\n")
    git("push", "-q", cwd=theirs)
    if staged:
        git("rm", "-q", A, cwd=ours)
    else:
        (ours / A).unlink()
    refusal = refused(git, ours)
    assert A in refusal.message
    assert not (ours / A).exists()


def test_a_deletion_that_both_sides_made_is_none_in_the_way(git, pair):
    theirs, ours = pair
    remember(theirs, A, "one\n")
    git("push", "-q", cwd=theirs)
    provider(ours).pull()
    git("rm", "-q", A, cwd=theirs)
    git("commit", "-q", "-m", "gone", cwd=theirs)
    git("push", "-q", cwd=theirs)
    (ours / A).unlink()
    (ours / "app.txt").unlink()
    assert provider(ours).pull(FOLDER).changes == (("D", A),)
    assert git("status", "--porcelain", cwd=ours).split() == ["D", "app.txt"]


def test_diverged_branches_are_counted_and_left_alone(git, pair):
    theirs, ours = pair
    remember(theirs, A, "theirs\n")
    git("push", "-q", cwd=theirs)
    mine = remember(ours, B, "mine\n")
    refusal = refused(git, ours)
    assert "1 ahead, 1 behind" in refusal.message and "git pull --rebase" in refusal.hint
    assert git("log", "-1", "--format=%H", "--", B, cwd=ours) == mine.commit


def test_commits_that_are_only_here_are_no_reason_to_refuse(git, pair):
    _, ours = pair
    remember(ours, B, "mine\n")
    got = provider(ours).pull(FOLDER)
    assert got.before == got.after and got.ahead == 1


@pytest.mark.parametrize("own_commit", [False, True])
def test_a_remote_that_was_moved_back_is_told_apart_from_own_work(git, pair, own_commit):
    theirs, ours = pair
    remember(theirs, A, "one\n")
    git("push", "-q", cwd=theirs)
    provider(ours).pull()
    if own_commit:
        remember(ours, B, "mine\n")
    git("reset", "-q", "--hard", "HEAD~1", cwd=theirs)
    git("push", "-q", "--force", cwd=theirs)
    for _ in range(2):  # and not only at the moment of the fetch
        refusal = refused(git, ours)
        assert "origin/main was moved back: 1 commit" in refusal.message
    command = refusal.hint.partition("own commits: ")[2]
    subprocess.run(shlex.split(command), cwd=ours, check=True, capture_output=True)
    assert provider(ours).pull().ahead == int(own_commit)


def test_no_remote_no_branch_there_detached_pending_and_bare(git, make_repo, pair, tmp_path):
    alone = make_repo("alone")
    assert "git remote add origin" in refused(git, alone).hint
    theirs, ours = pair
    git("checkout", "-q", "-b", "own", cwd=ours)
    assert "origin has no branch own" in refused(git, ours).message
    git("push", "-q", "origin", "HEAD:own", cwd=theirs)
    assert provider(ours).pull().branch == "own"
    git("push", "-q", "origin", ":own", cwd=theirs)
    assert "origin has no branch own" in refused(git, ours).message
    git("checkout", "-q", "--detach", cwd=ours)
    with pytest.raises(Refused, match="detached"):
        provider(ours).pull()
    git("checkout", "-q", "main", cwd=ours)
    git("bisect", "start", cwd=ours)
    with pytest.raises(Refused, match="bisect"):
        provider(ours).pull()
    with pytest.raises(Refused, match="bare"):
        provider(tmp_path / "remote.git").pull()


def test_several_remotes_and_none_chosen(git, make_repo):
    repo = make_repo()
    for name in ("one", "two"):
        git("remote", "add", name, f"https://h.test/{name}", cwd=repo)
    assert "one, two" in refused(git, repo).message


def test_an_upstream_under_another_name_and_one_of_here(git, pair):
    theirs, ours = pair
    git("checkout", "-q", "-b", "work", "origin/main", cwd=ours)
    remember(theirs, A, "one\n")
    git("push", "-q", cwd=theirs)
    assert provider(ours).pull(FOLDER).changes == (("A", A),)
    git("checkout", "-q", "-b", "local", "--track", "main", cwd=ours)
    git("branch", "-f", "main", "origin/main", cwd=ours)
    assert (provider(ours).pull(FOLDER).changes, provider(ours).pull().remote) == ((("A", A),), ".")


def test_a_clone_that_fetches_one_other_branch_only(git, pair):
    theirs, ours = pair
    git("checkout", "-q", "-b", "topic", cwd=theirs)
    remember(theirs, A, "one\n")
    git("push", "-q", "origin", "topic", cwd=theirs)
    git("config", "remote.origin.fetch", "+refs/heads/main:refs/remotes/origin/main", cwd=ours)
    git("checkout", "-q", "-b", "topic", "--no-track", cwd=ours)
    assert provider(ours).pull(FOLDER).changes == (("A", A),)
    git("config", "branch.topic.remote", "origin", cwd=ours)
    git("config", "branch.topic.merge", "refs/heads/topic", cwd=ours)
    remember(theirs, B, "two\n")
    git("push", "-q", "origin", "topic", cwd=theirs)
    assert provider(ours).pull(FOLDER).changes == (("A", B),)


def test_into_an_unborn_branch(git, pair):
    theirs, ours = pair
    git("init", "-q", "-b", "main", "fresh", cwd=ours.parent)
    fresh = ours.parent / "fresh"
    git("remote", "add", "origin", git("remote", "get-url", "origin", cwd=ours), cwd=fresh)
    remember(theirs, A, "one\n")
    git("push", "-q", cwd=theirs)
    got = provider(fresh).pull(FOLDER)
    assert (got.before, got.changes, got.default_branch) == ("", (("A", A),), "main")


def test_in_a_linked_work_tree_and_from_a_sub_folder(git, pair):
    theirs, ours = pair
    git("worktree", "add", "-q", "../wt", "-b", "wt", "origin/main", cwd=ours)
    remember(theirs, A, "one\n")
    git("push", "-q", cwd=theirs)
    (ours.parent / "wt" / "deep").mkdir()
    assert provider(ours.parent / "wt" / "deep").pull(FOLDER).changes == (("A", A),)
    assert git("status", "--porcelain", cwd=ours) == ""


def test_a_shallow_clone_stays_whole(git, pair):
    theirs, ours = pair
    remote = git("remote", "get-url", "origin", cwd=ours)
    for number in range(3):
        remember(theirs, A, f"{number}\n")
    git("push", "-q", cwd=theirs)
    git("clone", "-q", "--depth=1", f"file://{remote}", "shallow", cwd=ours.parent)
    shallow = ours.parent / "shallow"
    remember(theirs, B, "new\n")
    git("push", "-q", cwd=theirs)
    assert provider(shallow).pull(FOLDER).changes == (("A", B),)
    assert (shallow / ".git" / "shallow").exists()
    assert git("fsck", cwd=shallow) == "" and provider(shallow).capabilities().shallow
    remember(shallow, A, "from the shallow one\n")
    assert git("fsck", cwd=shallow) == ""


# --- no network, no answer, no password shown ---


@pytest.mark.parametrize("secret", ["s3cret-" + "w0rd", "p" + "w7", "a/b-" + "c9"])
def test_a_password_in_an_address_without_a_scheme_is_shown_in_no_form(git, make_repo, tmp_path, secret):
    """There git takes `git` for the host, and the password for the beginning of a path: ssh says it back."""
    repo = make_repo(origin=f"git:{secret}@host.test:team/x.git")
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\necho "no luck with $*" >&2\necho "that is $GIT_URL" >&2\nexit 255\n')
    ssh.chmod(0o755)
    environ = {**os.environ, "GIT_SSH_COMMAND": str(ssh), "GIT_URL": f"git:{secret}@host.test:team/x.git"}
    found = GitProvider.open(str(repo), environ)
    assert found is not None
    for act in (found.pull, lambda: found.push("main")):
        with pytest.raises(Refused) as refused:
            act()
        assert "no luck" in str(refused.value) and secret not in str(refused.value)
        assert "host.test/team/x" in refused.value.message


def test_a_failed_fetch_shows_no_password(git, make_repo):
    token = "gh" + "p_" + "z" * 36
    repo = make_repo(origin=f"https://user:{token}@127.0.0.1:9/acme/x.git?private_token={token}")
    refusal = refused(git, repo)
    assert token not in str(refusal) and "127.0.0.1/acme/x" in refusal.message
    assert "git fetch origin" in refusal.hint


def test_an_ssh_that_wants_to_ask_fails_instead_of_waiting(git, make_repo, monkeypatch):
    repo = make_repo(origin="ssh://git@h.test/x.git")
    monkeypatch.setenv("GIT_SSH_COMMAND", "sh -c 'read x </dev/tty; exit 1'")
    assert refused(git, repo)


def test_ssh_is_told_not_to_ask_unless_the_person_chose_their_own(git, make_repo, monkeypatch, tmp_path):
    repo = make_repo(origin="ssh://git@h.test/x.git")
    spy = tmp_path / "bin" / "ssh"
    spy.parent.mkdir()
    spy.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/said\nexit 1\n')
    spy.chmod(0o755)
    monkeypatch.setenv("PATH", f"{spy.parent}:{os.environ['PATH']}")
    refused(git, repo)
    assert "-oBatchMode=yes" in (tmp_path / "said").read_text()
    (tmp_path / "said").unlink()
    git("config", "core.sshCommand", f"{spy} -own", cwd=repo)
    refused(git, repo)
    assert "-own" in (tmp_path / "said").read_text() and "BatchMode" not in (tmp_path / "said").read_text()


def fake_git(tmp_path, monkeypatch, script):
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\nREAL={real}\n{script}\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")


def test_a_git_that_reads_its_input_to_the_end_does_not_hang_us(pair, tmp_path, monkeypatch):
    theirs, ours = pair
    needed = "*stdin*|*pathspec-from-file*|*index-info*"
    script = f'case "$*" in {needed}) ;; *) cat >/dev/null ;; esac\nexec $REAL "$@"'
    fake_git(tmp_path, monkeypatch, script)
    remember(theirs, A, "one\n")
    assert provider(theirs).identity().keys and provider(theirs).folder_status(FOLDER) == []
    assert provider(theirs).pull().ahead == 1
    code = "from openmemex.git.provider import GitProvider as G; G.open('.').pull(); print('done')"
    started = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ours, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert started.stdout is not None and started.stdin is not None
    assert started.stdout.readline() == b"done\n"  # our own input was open all the while
    started.stdin.close()
    assert started.wait() == 0
    started.stdout.close()


def test_a_git_that_never_ends_is_ended_with_its_children(make_repo, tmp_path, monkeypatch):
    repo = make_repo(origin="https://h.test/x")
    fake_git(
        tmp_path,
        monkeypatch,
        f'case "$*" in fetch*) sleep 600 & echo $! >{tmp_path}/child; wait ;; esac\nexec $REAL "$@"',
    )
    monkeypatch.setattr(process, "NETWORK_SECONDS", 0.5)
    with pytest.raises(Refused, match="stopped after"):
        provider(repo).pull()
    child = int((tmp_path / "child").read_text())
    gone = threading.Event()
    for _ in range(100):
        state = Path(f"/proc/{child}/stat")
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            gone.set()
            break
        gone.wait(0.05)
    assert gone.is_set()


# --- what to do next ---


def commands(repo, branch="memex/out", base="main"):
    here = provider(repo)
    return here.push_command(branch) + here.pull_request_command(branch, base)


def test_commands_for_a_plain_github_clone(make_repo):
    token = "gh" + "p_" + "y" * 36
    repo = make_repo(origin=f"https://x:{token}@github.com/Acme/Widget.git")
    assert commands(repo) == [
        "git push -u origin memex/out",
        "gh pr create --base main --head memex/out",
    ]


def test_commands_in_a_fork(git, make_repo):
    repo = make_repo(origin="git@github.com:me/widget.git")
    git("remote", "add", "upstream", "https://github.com/acme/widget", cwd=repo)
    assert commands(repo) == [
        "git push -u origin memex/out",
        "gh pr create --repo acme/widget --base main --head me:memex/out",
    ]
    git("remote", "add", "fork", "https://github.com/other/widget", cwd=repo)
    git("config", "remote.pushDefault", "fork", cwd=repo)
    assert commands(repo)[0] == "git push -u fork memex/out"
    assert commands(repo)[1].endswith("--head other:memex/out")
    git("config", "branch.memex/out.pushRemote", "upstream", cwd=repo)
    assert commands(repo) == ["git push -u upstream memex/out", "gh pr create --base main --head memex/out"]


def test_commands_elsewhere_and_without_a_remote(git, make_repo):
    assert commands(make_repo("a", origin="https://gitlab.com/acme/widget")) == [
        "git push -u origin memex/out"
    ]
    assert commands(make_repo("b", origin="/srv/x.git")) == ["git push -u origin memex/out"]
    assert commands(make_repo("c")) == []
    enterprise = make_repo("d", origin="https://github.corp.test/acme/widget")
    git("remote", "add", "upstream", "https://github.corp.test/team/widget", cwd=enterprise)
    assert "--repo github.corp.test/team/widget" in commands(enterprise)[1]
    assert len(commands(make_repo("e", origin="https://github.com.evil.test/acme/widget"))) == 1


def test_commands_are_quoted_and_know_what_is_followed(git, make_repo, make_remote):
    repo = make_repo()
    make_remote(repo)
    assert commands(repo, "main") == ["git push origin main"]
    assert shlex.split(commands(repo, "odd'$(x)")[0])[-1] == "odd'$(x)"


def test_the_default_branch(git, make_repo, make_remote, clone):
    assert provider(make_repo("bare-start", commits=0)).default_branch() is None
    repo = make_repo()
    assert provider(repo).default_branch() == "main"
    git("branch", "-m", "trunk", cwd=repo)
    assert provider(repo).default_branch() is None
    git("config", "init.defaultBranch", "trunk", cwd=repo)
    assert provider(repo).default_branch() == "trunk"
    copy = clone(make_remote(repo))
    git("config", "--global", "init.defaultBranch", "main")
    assert provider(copy).default_branch() == "trunk"
    git("remote", "set-head", "origin", "-d", cwd=copy)
    assert provider(copy).default_branch() is None and provider(copy).default_branch("trunk") == "trunk"
    assert provider(copy).pull().default_branch == "trunk"
    git("remote", "add", "upstream", str(repo), cwd=copy)
    git("fetch", "-q", "upstream", cwd=copy)
    git("symbolic-ref", "refs/remotes/upstream/HEAD", "refs/remotes/upstream/trunk", cwd=copy)
    assert provider(copy).default_branch() == "trunk"

"""Where commits are to be signed, each is signed so that git itself verifies it, or nothing is committed."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from openmemex.errors import Refused
from openmemex.git import objects
from tests import needed
from tests.git.commits import FIRST, M1, M2, SECOND, busy_repo, hook, provider, same, write

WAYS = ["here", "branch", "hooks", "branch with hooks"]


@pytest.fixture
def ssh_key(home) -> Path:
    needed.program("ssh-keygen")
    key = home / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    (home / "signers").write_text(f"ada@example.org {key.with_suffix('.pub').read_text()}")
    return Path(key)


def sign(git, repo, home, **values):
    """Demand signatures, with the given keys (`_` stands for the dot)."""
    settings = {"commit.gpgsign": "true", "gpg.ssh.allowedSignersFile": str(home / "signers")}
    settings |= {key.replace("_", "."): value for key, value in values.items()}
    for key, value in settings.items():
        git("config", key, value, cwd=repo)


def commit(repo, way, path=M1, data=FIRST):
    if "hooks" in way:
        hook(repo, "pre-commit", "exit 0")
    if way.startswith("branch"):
        return provider(repo).commit({path: data}, message="x", branch="b")
    return provider(repo).commit({path: write(repo, path, data)}, message="x")


ENGINES = {"here": "git", "branch": "git", "hooks": "git commit", "branch with hooks": "git commit"}


@pytest.mark.parametrize("way", WAYS)
def test_a_key_in_a_file(git, make_repo, home, ssh_key, way):
    repo = make_repo()
    sign(git, repo, home, gpg_format="ssh", user_signingKey=str(ssh_key))
    result = commit(repo, way)
    git("verify-commit", result.commit, cwd=repo)
    # libgit2 can't sign: who did is told.
    assert result.engine == ENGINES[way]


@pytest.fixture
def agent(home, ssh_key, monkeypatch):
    """An agent that alone has the key."""
    needed.program("ssh-agent")
    done = subprocess.run(
        ["ssh-agent", "-s", "-a", str(home / "agent.sock")], check=True, capture_output=True, text=True
    )
    number = int(done.stdout.partition("SSH_AGENT_PID=")[2].partition(";")[0])
    monkeypatch.setenv("SSH_AUTH_SOCK", str(home / "agent.sock"))
    try:
        subprocess.run(["ssh-add", "-q", str(ssh_key)], check=True, stderr=subprocess.DEVNULL)
        ssh_key.unlink()
        yield ssh_key.with_suffix(".pub")
    finally:
        os.kill(number, signal.SIGTERM)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("named", ["key::", "public file"])
def test_a_key_that_only_the_agent_has(git, make_repo, home, agent, way, named):
    repo = make_repo()
    key = f"key::{agent.read_text().strip()}" if named == "key::" else str(agent)
    sign(git, repo, home, gpg_format="ssh", user_signingKey=key)
    git("verify-commit", commit(repo, way).commit, cwd=repo)


@pytest.mark.parametrize("way", WAYS)
def test_an_agent_that_is_not_there(git, make_repo, home, ssh_key, way, monkeypatch):
    repo = busy_repo(git, make_repo)
    write(repo, M1, FIRST)
    key = f"key::{ssh_key.with_suffix('.pub').read_text().strip()}"
    sign(git, repo, home, gpg_format="ssh", user_signingKey=key)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(home / "no.sock"))
    refusal = same(git, repo, lambda: commit(repo, way))
    assert "sign" in refusal.message and refusal.words


@pytest.fixture
def gpg_key(home, monkeypatch, tmp_path_factory):
    needed.program("gpg")
    folder = tmp_path_factory.mktemp("gnupg")  # a socket's path may not be long
    folder.chmod(0o700)
    monkeypatch.setenv("GNUPGHOME", str(folder))
    batch = (
        "%no-protection\nKey-Type: eddsa\nKey-Curve: ed25519\nName-Real: Ada Example\n"
        "Name-Email: ada@example.org\nExpire-Date: 0\n%commit\n"
    )
    subprocess.run(
        ["gpg", "--batch", "--quiet", "--gen-key"], input=batch, text=True, check=True, capture_output=True
    )
    yield "ada@example.org"
    subprocess.run(["gpgconf", "--kill", "all"], check=False, capture_output=True)


@pytest.mark.parametrize("way", WAYS)
def test_a_gpg_key(git, make_repo, home, gpg_key, way):
    repo = make_repo()
    sign(git, repo, home, user_signingKey=gpg_key)
    git("verify-commit", commit(repo, way).commit, cwd=repo)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "broken",
    [
        {"gpg_program": "false"},
        {"gpg_format": "ssh", "gpg_ssh_program": "false", "user_signingKey": "key::ssh-ed25519 AAAA"},
        {"gpg_format": "x509", "gpg_x509_program": "false"},
        {"gpg_format": "x509", "gpg_x509_program": "/nonexistent/signer"},
        {"gpg_format": "ssh", "user_signingKey": "/nonexistent/key"},
        {"gpg_format": "nonsense"},
    ],
    ids=["gpg", "ssh", "x509", "no program", "no key", "no format"],
)
def test_a_signature_that_fails_makes_no_unsigned_commit(git, make_repo, home, broken, way):
    repo = busy_repo(git, make_repo)
    write(repo, M1, FIRST)
    sign(git, repo, home)
    for key, value in broken.items():
        git(
            "config",
            {"gpg_ssh_program": "gpg.ssh.program", "gpg_x509_program": "gpg.x509.program"}.get(
                key, key.replace("_", ".")
            ),
            value,
            cwd=repo,
        )
    if broken == {"gpg_format": "nonsense"}:  # no git command works with that
        with pytest.raises(Exception, match="nonsense"):
            commit(repo, way)
        git("config", "--unset", "gpg.format", cwd=repo)
        assert git("ls-files", ".ai", cwd=repo) == "" and git("branch", "--list", "b", cwd=repo) == ""
        return
    refusal = same(git, repo, lambda: commit(repo, way))
    assert "sign" in refusal.message + refusal.hint
    assert "fsync" not in str(refusal)  # a setting of ours, which newer versions of git warn of
    assert git("branch", "--list", "b", cwd=repo) == ""


@pytest.mark.parametrize("way", WAYS)
def test_a_key_with_a_pass_phrase_asks_nobody_and_is_refused_with_words(
    git, make_repo, home, ssh_key, way, monkeypatch
):
    subprocess.run(
        ["ssh-keygen", "-q", "-p", "-P", "", "-N", "long words", "-f", str(ssh_key)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    asked = home / "asked"
    ask = home / "ask"
    ask.write_text(f"#!/bin/sh\ntouch {asked}\necho long words\n")
    ask.chmod(0o755)
    for name, value in (("DISPLAY", ":9"), ("SSH_ASKPASS", str(ask)), ("SSH_ASKPASS_REQUIRE", "prefer")):
        monkeypatch.setenv(name, value)
    repo = busy_repo(git, make_repo)
    write(repo, M1, FIRST)
    sign(git, repo, home, gpg_format="ssh", user_signingKey=str(ssh_key))
    refusal = same(git, repo, lambda: commit(repo, way))
    assert "passphrase" in " ".join(refusal.words).lower() and not asked.exists()


def test_a_signing_program_that_never_ends_is_ended(git, make_repo, home, monkeypatch, tmp_path):
    repo = busy_repo(git, make_repo)
    write(repo, M1, FIRST)
    waiting = tmp_path / "waiting"
    waiting.write_text(f"#!/bin/sh\necho $$ >{tmp_path}/pid\nexec sleep 600\n")
    waiting.chmod(0o755)
    sign(git, repo, home, gpg_program=str(waiting))
    monkeypatch.setattr(objects, "SIGN_SECONDS", 1.0)
    refusal = same(git, repo, lambda: commit(repo, "here"))
    assert "stopped after 1 s" in refusal.message
    number = (tmp_path / "pid").read_text().strip()
    for _ in range(100):
        if not Path(f"/proc/{number}").exists() or "Z" in Path(f"/proc/{number}/stat").read_text():
            break
        time.sleep(0.05)
    else:
        pytest.fail("the signing program is still there")


def test_signed_memories_are_submitted_again_only_when_they_change(git, make_repo, home, ssh_key):
    repo = make_repo()
    sign(git, repo, home, gpg_format="ssh", user_signingKey=str(ssh_key))
    first = commit(repo, "here")
    assert commit(repo, "here").already
    second = commit(repo, "here", M2, SECOND)
    for made in (first, second):
        git("verify-commit", made.commit, cwd=repo)


def test_without_the_demand_nothing_is_signed(git, make_repo, home, ssh_key):
    repo = make_repo()
    sign(git, repo, home, gpg_format="ssh", user_signingKey=str(ssh_key), commit_gpgsign="false")
    result = commit(repo, "here")
    assert "gpgsig" not in git("cat-file", "commit", result.commit, cwd=repo)
    assert result.engine == "libgit2"


def test_a_refusal_is_an_ordinary_one(git, make_repo, home):
    repo = make_repo()
    write(repo, M1, FIRST)
    sign(git, repo, home, gpg_program="false")
    with pytest.raises(Refused) as refused:
        commit(repo, "here")
    assert refused.value.exit_code == 1

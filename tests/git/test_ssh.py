"""Push and pull over a real ssh server on loopback: a host that nobody knows is never trusted."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import needed
import pytest

from openmemex.errors import Refused
from openmemex.git.provider import GitProvider


class Server(NamedTuple):
    folder: Path
    address: str
    known: str

    def know(self, line: str) -> None:
        (self.folder / "known_hosts").write_text(line)


def make_key(path: Path, passphrase: str = "") -> Path:
    keygen = needed.program("ssh-keygen")
    subprocess.run([keygen, "-q", "-t", "ed25519", "-N", passphrase, "-f", path], check=True)
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        assert isinstance(port, int)
        return port


@pytest.fixture
def server(tmp_path, monkeypatch):
    """An sshd with keys of its own, and an `ssh` on the PATH that reads the test's files only."""
    sshd, ssh = needed.program("sshd"), needed.program("ssh")
    folder = tmp_path / "ssh"
    folder.mkdir(mode=0o700)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd wants it, and a service makes it at boot
    host, own = make_key(folder / "host"), make_key(folder / "own")
    shutil.copy(own.with_suffix(".pub"), folder / "authorized")
    port = free_port()
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {host}\nAuthorizedKeysFile {folder}/authorized\n"
        "StrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        f"PermitRootLogin prohibit-password\nPidFile none\nLogLevel ERROR\n"
    )
    (folder / "config").write_text(
        f"Host *\n  UserKnownHostsFile {folder}/known_hosts\n  GlobalKnownHostsFile /dev/null\n"
        f"  IdentityFile {own}\n  IdentitiesOnly yes\n  IdentityAgent none\n  User {_me()}\n"
        f"Host team-server\n  HostName 127.0.0.1\n  Port {port}\n"
    )
    (folder / "bin").mkdir()
    (folder / "bin" / "ssh").write_text(f'#!/bin/sh\nexec {ssh} -F {folder}/config "$@"\n')
    (folder / "bin" / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}/bin{os.pathsep}{os.environ['PATH']}")
    process = subprocess.Popen(
        [sshd, "-D", "-e", "-f", folder / "sshd_config"], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    try:
        _wait_for(port, process)
        key = host.with_suffix(".pub").read_text().split()
        yield Server(folder, f"ssh://127.0.0.1:{port}", f"[127.0.0.1]:{port} {key[0]} {key[1]}\n")
    finally:
        process.terminate()
        process.wait(timeout=20)
        assert process.stderr is not None
        process.stderr.close()


def _me() -> str:
    import pwd

    return pwd.getpwuid(os.geteuid()).pw_name


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(400):
        if process.poll() is not None:
            assert process.stderr is not None
            pytest.fail(f"sshd ended: {process.stderr.read().decode()}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail("sshd never listened")


@pytest.fixture
def here(git, make_repo, make_remote, clone, server):
    """A clone whose origin is reached through ssh, with one commit that is not pushed yet."""
    remote = make_remote(make_repo("maker"))
    here = clone(remote, "here")
    git("remote", "set-url", "origin", f"{server.address}{remote}", cwd=here)
    git("commit", "-q", "--allow-empty", "-m", "mine", cwd=here)
    return here


def provider(repo):
    found = GitProvider.open(str(repo))
    assert found is not None
    return found


def refused(git, here):
    remote = here.parent / "remote.git"
    before = git("for-each-ref", cwd=remote), git("for-each-ref", cwd=here)
    told = []
    for act in (lambda: provider(here).push("main"), lambda: provider(here).pull()):
        with pytest.raises(Refused) as refusal:
            act()
        told.append(str(refusal.value))
    assert (git("for-each-ref", cwd=remote), git("for-each-ref", cwd=here)) == before
    return "\n".join(told)


def test_push_and_pull_with_the_servers_words(git, here, server):
    server.know(server.known)
    hook = here.parent / "remote.git" / "hooks" / "post-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'Open a pull request: https://forge.test/new'\n")
    hook.chmod(0o755)
    tip = git("rev-parse", "HEAD", cwd=here)
    done = provider(here).push("main")
    assert (done.after, done.words) == (tip, ("Open a pull request: https://forge.test/new",))
    assert git("rev-parse", "main", cwd=here.parent / "remote.git") == tip
    assert provider(here).pull().ahead == 0


def test_a_host_that_nobody_knows_is_refused_and_not_asked_about(git, here, server):
    server.know("")
    told = refused(git, here)
    assert told.count("Host key verification failed") >= 2
    assert (server.folder / "known_hosts").read_text() == ""


def test_a_host_with_another_key_is_refused(git, here, server):
    other = make_key(server.folder / "other").with_suffix(".pub").read_text().split()
    server.know(f"{server.known.split()[0]} {other[0]} {other[1]}\n")
    told = refused(git, here)
    assert told.count("Host key verification failed") >= 2 and "IDENTIFICATION HAS CHANGED" in told


def test_a_key_that_the_server_does_not_take_is_refused_without_a_question(git, here, server):
    server.know(server.known)
    (server.folder / "authorized").write_text("")
    assert "Permission denied" in refused(git, here)


def test_a_key_with_a_pass_phrase_is_not_asked_for(git, here, server):
    server.know(server.known)
    for name in ("own", "own.pub"):
        (server.folder / name).unlink()
    make_key(server.folder / "own", "a pass phrase")
    shutil.copy(server.folder / "own.pub", server.folder / "authorized")
    assert "Permission denied" in refused(git, here)


def test_an_alias_of_the_persons_ssh_config_works(git, here, server):
    server.know(server.known)
    git("remote", "set-url", "origin", f"team-server:{here.parent}/remote.git", cwd=here)
    assert provider(here).push("main").before
    pushed = git("rev-parse", "main", cwd=here.parent / "remote.git")
    assert pushed == git("rev-parse", "HEAD", cwd=here)

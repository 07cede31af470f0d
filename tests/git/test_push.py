"""A push is git's own: hooks and servers have their say and are heard, and a refusal moves nothing."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from openmemex.errors import NotFound, PartlyDone, Refused
from openmemex.git import process
from openmemex.git.provider import GitProvider

SECRET = "s3cr3t" + "-of-a-server-42"


def provider(repo):
    found = GitProvider.open(str(repo))
    assert found is not None
    return found


def commit(git, repo, name="work.txt", text="mine\n"):
    (repo / name).write_text(text)
    git("add", name, cwd=repo)
    git("commit", "-q", "-m", f"Change {name}", cwd=repo)
    return git("rev-parse", "HEAD", cwd=repo)


def hook(folder: Path, name: str, script: str) -> None:
    path = folder / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


class _GitOverHttp(BaseHTTPRequestHandler):
    """git-http-backend(1) behind plain HTTP: one process a request, as a CGI server starts it."""

    root = ""
    password = ""
    protocol_version = "HTTP/1.0"

    def _serve(self) -> None:
        if self.password:
            wanted = "Basic " + base64.b64encode(f"user:{self.password}".encode()).decode()
            if self.headers.get("Authorization") != wanted:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="git"')
                self.end_headers()
                return
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding", "") == "chunked":
            body = self._chunks()
        env = {
            **os.environ,
            "GIT_PROJECT_ROOT": self.root,
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type") or "",
            "CONTENT_LENGTH": str(len(body)),
            "REMOTE_USER": "user",
            "REMOTE_ADDR": "127.0.0.1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol") or "",
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True, check=True)
        head, _, answer = done.stdout.partition(b"\r\n\r\n")
        headers = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        status = next((value.split()[0] for name, value in headers if name == "Status"), "200")
        self.send_response(int(status))
        for name, value in headers:
            if name != "Status":
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer)

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    do_GET = do_POST = _serve

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: a test's output is its failures."""


@pytest.fixture
def over_http():
    """Serve a folder of bare repositories: call it with the folder, it gives the address."""
    servers = []

    def serve(root: Path, password: str = "") -> str:
        handler = type("Handler", (_GitOverHttp,), {"root": str(root), "password": password})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def remote(git, make_repo, make_remote):
    first = make_repo("maker")
    bare = make_remote(first)
    git("config", "http.receivepack", "true", cwd=bare)
    return bare


@pytest.fixture(params=["path", "file", "http"])
def here(request, git, remote, clone, over_http):
    """A clone that pushes to `remote` over each kind of transport."""
    if request.param == "http":
        address = f"{over_http(remote.parent)}/{remote.name}"
    else:
        address = {"path": "", "file": "file://"}[request.param] + str(remote)
    return clone(address, "here")


def refs(git, remote):
    return git("for-each-ref", cwd=remote)


def refused(git, repo, bare, branch="main", **options):
    before = refs(git, bare)
    own = git("for-each-ref", "refs/heads", cwd=repo), git("status", "--porcelain", cwd=repo)
    with pytest.raises(Refused) as refusal:
        provider(repo).push(branch, **options)
    assert refs(git, bare) == before
    assert (git("for-each-ref", "refs/heads", cwd=repo), git("status", "--porcelain", cwd=repo)) == own
    return refusal.value


def test_a_push_says_what_went_where(git, here, remote):
    before = git("rev-parse", "HEAD", cwd=here)
    after = commit(git, here)
    done = provider(here).push("main")
    assert done == ("origin", "refs/heads/main", before, after, False, ())
    assert git("rev-parse", "main", cwd=remote) == after
    again = provider(here).push("main")
    assert (again.before, again.after, again.created) == (after, after, False)


def test_a_first_push_makes_the_branch_and_follows_it(git, here, remote):
    hook(remote, "post-receive", "echo 'Open a pull request: https://user:pw@forge.test/pr/new?token=abc'")
    git("switch", "-q", "-c", "memex/out", cwd=here)
    after = commit(git, here)
    git("tag", "-a", "v1", "-m", "v1", cwd=here)
    git("config", "push.followTags", "true", cwd=here)
    done = provider(here).push("memex/out")
    assert (done.created, done.before, done.after) == (True, "", after)
    assert done.words == ("Open a pull request: https://forge.test/pr/new",)
    assert git("rev-parse", "--abbrev-ref", "memex/out@{upstream}", cwd=here) == "origin/memex/out"
    assert git("tag", cwd=remote) == ""  # the branch, and nothing else
    git("switch", "-q", "-c", "alone", cwd=here)
    provider(here).push("alone", set_upstream=False)
    assert git.run("config", "branch.alone.merge", cwd=here).returncode == 1


def test_a_server_that_says_no_is_heard(git, here, remote):
    hook(remote, "pre-receive", "echo 'Sign your commits first.'; echo 'See the wiki.' >&2; exit 1")
    commit(git, here)
    refusal = refused(git, here, remote)
    assert "refused main: pre-receive hook declined" in refusal.message
    assert refusal.words == ("Sign your commits first.", "See the wiki.")


def test_an_update_hook_that_says_no_to_one_branch(git, here, remote):
    hook(remote, "update", 'case "$1" in */main) echo "main is protected"; exit 1;; esac')
    commit(git, here)
    assert "main is protected" in refused(git, here, remote).words
    git("branch", "free", cwd=here)
    assert provider(here).push("free").created


def test_what_the_remote_has_more_is_never_overwritten(git, here, remote, clone):
    other = clone(remote, "other")
    theirs = commit(git, other, "theirs.txt")
    git("push", "-q", cwd=other)
    commit(git, here)
    for setting in ("simple", "matching"):
        git("config", "push.default", setting, cwd=here)
        git("config", "remote.origin.push", "+refs/heads/*:refs/heads/*", cwd=here)
        refusal = refused(git, here, remote)
        assert "has commits of main that are not here" in refusal.message and "pull" in refusal.hint
    git("fetch", "-q", cwd=here)  # known here, and still not in the branch
    assert "non-fast-forward" in refused(git, here, remote).message
    assert git("rev-parse", "main", cwd=remote) == theirs


def test_a_pre_push_hook_runs_and_is_obeyed(git, here, remote):
    seen = here.parent / "seen"
    hook(here / ".git", "pre-push", f'cat >{seen}; echo "tests fail: 2 of 3"; exit 1')
    after = commit(git, here)
    refusal = refused(git, here, remote)
    assert "pre-push hook refused" in refusal.message and refusal.words == ("tests fail: 2 of 3",)
    assert after in seen.read_text() and "refs/heads/main" in seen.read_text()
    hook(here / ".git", "pre-push", "echo fine; exit 0")
    assert provider(here).push("main").after == after


def test_no_branch_no_remote_and_a_remote_that_is_not_there(git, make_repo, here, remote):
    with pytest.raises(NotFound, match="no branch nowhere"):
        provider(here).push("nowhere")
    assert "git remote add" in refused(git, make_repo("alone"), remote).hint
    assert refused(git, here, remote, remote="--upload-pack=touch x").message
    git("remote", "set-url", "origin", "/nowhere/x.git", cwd=here)
    commit(git, here)
    assert "could be pushed" in refused(git, here, remote).message


def test_a_clone_that_mirrors_pushes_no_other_branch(git, here, remote):
    git("config", "remote.origin.mirror", "true", cwd=here)
    git("branch", "-q", "other", cwd=here)
    commit(git, here)
    refused(git, here, remote)


def test_two_addresses_of_which_one_refuses(git, here, remote, tmp_path):
    git("clone", "-q", "--bare", str(remote), str(tmp_path / "second.git"))
    hook(tmp_path / "second.git", "pre-receive", "echo not today; exit 1")
    git("remote", "set-url", "--add", "--push", "origin", str(remote), cwd=here)
    git("remote", "set-url", "--add", "--push", "origin", str(tmp_path / "second.git"), cwd=here)
    after = commit(git, here)
    with pytest.raises(PartlyDone, match="only some of the addresses"):
        provider(here).push("main")
    assert git("rev-parse", "main", cwd=remote) == after


def test_submodules_are_looked_at_and_not_pushed(git, make_repo, remote, clone, tmp_path):
    library = make_repo("library")
    git("clone", "-q", "--bare", str(library), str(tmp_path / "library.git"))
    here = clone(remote, "here")
    allowed = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "protocol.file.allow",
        "GIT_CONFIG_VALUE_0": "always",
    }
    git("submodule", "--quiet", "add", str(tmp_path / "library.git"), "lib", cwd=here, env=allowed)
    git("commit", "-qm", "with a library", cwd=here)
    provider(here).push("main")
    commit(git, here / "lib")
    git("add", "lib", cwd=here)
    git("commit", "-qm", "newer library", cwd=here)
    for key, value in (("push.recurseSubmodules", "on-demand"), ("push.recurseSubmodules", "only")):
        git("config", key, value, cwd=here)
        library_before = refs(git, tmp_path / "library.git")
        assert "lib" in "\n".join(refused(git, here, remote).words)
        assert refs(git, tmp_path / "library.git") == library_before


# --- no password in any message ---


def test_a_login_works_and_its_password_is_nowhere(git, remote, over_http, clone):
    address = over_http(remote.parent, SECRET).replace("//", f"//user:{SECRET}@")
    here = clone(f"{address}/{remote.name}", "here")
    hook(remote, "pre-receive", f'echo "your password {SECRET} is known"; exit 1')
    commit(git, here)
    assert SECRET not in str(refused(git, here, remote))
    (remote / "hooks" / "pre-receive").unlink()
    hook(remote, "post-receive", f'echo "hello {SECRET}"')
    assert SECRET not in str(provider(here).push("main"))


@pytest.mark.parametrize("scheme", ["Basic", "Bearer"])
def test_a_token_in_an_extra_header_is_in_no_message(git, remote, over_http, clone, scheme, monkeypatch):
    here = clone(f"{over_http(remote.parent)}/{remote.name}", "here")
    sent = base64.b64encode(f"user:{SECRET}".encode()).decode() if scheme == "Basic" else SECRET
    git("config", "http.extraHeader", f"Authorization: {scheme} {sent}", cwd=here)
    hook(remote, "pre-receive", f"echo {SECRET} and {sent}; exit 1")
    for name in ("GIT_TRACE", "GIT_TRACE_CURL", "GIT_CURL_VERBOSE", "GIT_TRACE_PACKET"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("GIT_TRACE_REDACT", "0")
    commit(git, here)
    told = str(refused(git, here, remote))
    assert SECRET not in told and sent not in told and "*** and ***" in told
    git("remote", "set-url", "origin", "http://127.0.0.1:9/x.git", cwd=here)
    told = str(refused(git, here, remote))
    assert SECRET not in told and sent not in told


def test_a_wrong_password_is_refused_without_asking(git, remote, over_http, clone):
    here = clone(str(remote), "here")
    address = over_http(remote.parent, SECRET).replace("//", f"//user:wrong-{SECRET}@")
    git("remote", "set-url", "origin", f"{address}/{remote.name}", cwd=here)
    commit(git, here)
    told = str(refused(git, here, remote))
    assert "Authentication failed" in told and SECRET not in told


# --- a time limit ---


def test_a_push_that_never_ends_is_ended(git, remote, clone, monkeypatch):
    here = clone(str(remote), "here")
    commit(git, here)
    git("config", "remote.origin.receivepack", "sleep 600; git-receive-pack", cwd=here)
    monkeypatch.setattr(process, "NETWORK_SECONDS", 0.5)
    assert "stopped after" in refused(git, here, remote).message


def test_an_ssh_that_asks_on_a_terminal_does_not_hang(git, make_repo, monkeypatch, remote):
    repo = make_repo(origin="ssh://git@h.test/x.git")
    monkeypatch.setenv("GIT_SSH_COMMAND", "sh -c 'read x </dev/tty; exit 1'")
    assert "Nothing could be pushed" in refused(git, repo, remote).message

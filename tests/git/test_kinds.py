"""Every kind of repository, through the commands: saved, submitted, found, pulled, told rightly by doctor."""

from __future__ import annotations

import json
import os
import sys

import pytest
from kinds import FOLDER, KINDS, NEW, OLD, Stage, git_for, memory_text

from openmemex.git import light
from openmemex.git.provider import GitProvider
from openmemex.git.staging_file import look


@pytest.mark.parametrize("name", KINDS)
def test_a_memory_lives_in_every_kind_of_repository(name, om, git, tmp_path, monkeypatch):
    kind = KINDS[name]
    if name.startswith("foreign") and os.geteuid() != 0:
        pytest.skip("only root can give files to another account")
    git_for(kind, monkeypatch.setenv)
    stage = Stage(git, tmp_path.resolve(), kind.init)
    here = kind.make(stage)
    site = light.find_site(str(here), {**os.environ, **stage.environ})
    assert site is not None
    top = tmp_path.resolve() / site.root
    hidden = {} if (top / ".git").exists() else {"GIT_DIR": site.git_dir, "GIT_WORK_TREE": site.root}

    def own(*words):
        return git(*words, cwd=top, env=hidden)

    def run(*words):
        return om(*words, cwd=here, env=stage.environ)

    # what the team has
    unborn = name == "unborn"
    if not unborn:
        assert [hit["id"] for hit in run("search", "cedar")["hits"]] == [OLD]
    # what a teammate adds
    stage.share(NEW, "The new decision: larch for every gate.")
    got = run("pull")
    assert got["engine"] == "git" and NEW in [row["id"] for row in got["added"]]
    # what is saved and shared from here
    own("config", "user.email", "ada@example.org")
    before = own("rev-parse", "HEAD")
    (top / "app.txt").write_text("my own change\n")
    memory = run("add", "Birch is for the shed.")["id"]
    done = run("submit", memory)
    assert done["engine"] == kind.engine and done["files"] == [f"{FOLDER}/{memory}.md"]
    assert own("rev-parse", "HEAD", "HEAD~1").split() == [done["commit"], before]
    assert own("diff-tree", "-r", "--name-only", "--no-commit-id", "HEAD").split() == done["files"]
    assert own("status", "--porcelain").strip() == "M app.txt"
    assert own("fsck", "--strict", "--no-dangling") == ""
    # and found again, by all three
    assert [hit["id"] for hit in run("search", "birch shed")["hits"]][:1] == [memory]
    status = run("sync-status")
    assert (status["uncommitted"], status["outbox"], status["git"]) == ([], [], None)
    checks = [check for check in run("doctor")["checks"] if check["name"] in ("git", "memory folder")]
    assert all(check["ok"] for check in checks)
    assert kind.told in " ".join(check["text"] for check in checks)
    index = look(f"{site.git_dir}/index", own("rev-parse", "--show-object-format"))
    assert kind.stays in (*index.extensions, "")
    if name == "index version 4":
        assert index.version == 4
    if name == "shallow":
        assert (top / ".git" / "shallow").read_text().strip() and own("rev-list", "--count", "HEAD") == "3"


def test_the_replacement_is_what_a_commit_is_built_on(git, tmp_path):
    stage = Stage(git, tmp_path.resolve())
    here = KINDS["replaced objects"].make(stage)
    provider = GitProvider.open(str(here))
    assert provider is not None
    (here / "m.md").write_text("m\n")
    assert provider.commit({"m.md": b"m\n"}, message="m").engine == "git"
    assert git("show", "HEAD:app.txt", cwd=here) == "as it should have been"
    git("pack-refs", "--all", cwd=here)
    git("update-ref", "-d", "refs/heads/none", cwd=here)
    assert GitProvider.at(provider.site).capabilities().replaced
    git("config", "core.useReplaceRefs", "false", cwd=here)
    assert not GitProvider.at(provider.site).capabilities().replaced


def test_a_file_whose_name_is_no_text_is_named_and_stops_nothing(om, make_repo):
    repo = make_repo()
    folder = os.fsencode(repo / FOLDER)
    os.makedirs(folder)
    odd = os.path.join(folder, b"caf\xe9.md")
    with open(odd, "w") as file:
        file.write(memory_text(OLD, "Cedar."))
    assert om("search", "cedar", cwd=repo)["hits"] == []
    told = " ".join(check["text"] for check in om("doctor", cwd=repo, code=1)["checks"])
    assert "caf\\xe9.md" in told
    os.unlink(odd)
    assert all(check["ok"] for check in om("doctor", cwd=repo)["checks"])


@pytest.mark.parametrize("name", ["plain", "linked work tree", "submodule"])
def test_the_commands_inside_a_real_hook_see_the_repository_of_the_hook(name, om, git, tmp_path):
    """git sets GIT_DIR, GIT_INDEX_FILE and more for a hook, and its children inherit them."""
    stage = Stage(git, tmp_path.resolve())
    here = KINDS[name].make(stage)
    other = stage.clone(name="another")
    hook = here / ".githooks" / "pre-commit"
    hook.parent.mkdir()
    memex = f"{sys.executable} -m openmemex"
    hook.write_text(
        f"#!/bin/sh\nenv >{tmp_path}/environ\n"
        f"{memex} add --json 'Saved by a hook.' >{tmp_path}/added || exit 1\n"
        f"{memex} sync-status --json >{tmp_path}/status || exit 1\n"
        f"cd {other} && {memex} where --json >{tmp_path}/where || exit 1\n"
    )
    hook.chmod(0o755)
    git("config", "core.hooksPath", ".githooks", cwd=here)
    (here / "app.txt").write_text("mine\n")
    git("commit", "-q", "-m", "mine", "app.txt", cwd=here)
    assert "GIT_INDEX_FILE=" in (tmp_path / "environ").read_text()
    saved = json.loads((tmp_path / "added").read_text())["id"]
    status = json.loads((tmp_path / "status").read_text())
    assert [row["id"] for row in status["outbox"]] == [saved] and status["git"] is None
    assert str(other) in (tmp_path / "where").read_text()
    assert git("show", "--name-only", "--format=", "HEAD", cwd=here) == "app.txt"
    assert git("status", "--porcelain", cwd=here) == "?? .githooks/"
    assert [row["id"] for row in om("sync-status", cwd=here)["outbox"]] == [saved]

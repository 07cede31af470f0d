"""Where something can't be done, the reason is named and nothing changed; what can be done still is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import needed
import pytest
from conftest import CHECKOUT
from kinds import FOLDER, KINDS, NEW, OLD, Stage, git_for, memory_text

from openmemex.errors import OpenMemexError
from openmemex.git.provider import GitProvider


@pytest.fixture
def stage(git, tmp_path):
    return Stage(git, tmp_path.resolve())


def told(done):
    """The error of a command that was refused, as a person reads it."""
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def checks(om, here, code=1, **options):
    found = om("doctor", cwd=here, code=code, **options)["checks"]
    return {one["name"]: one for one in found if not one["ok"]} if code else found


def test_a_bare_repository_is_searched_and_not_written(om, run_cli, stage):
    drafts = om("add", "Birch is for the shed.", cwd=stage.mate)["id"]
    bare = stage.clone("--bare", name="here.git")
    assert "bare" in told(run_cli("submit", drafts, cwd=bare))
    assert "bare" in told(run_cli("pull", cwd=bare))
    assert "a bare repository" in str(checks(om, bare, code=0))


def test_a_bare_repository_that_must_be_named(om, git, stage):
    bare = stage.clone("--bare", name="here.git")
    git("config", "--global", "safe.bareRepository", "explicit")
    assert all(one["ok"] for one in checks(om, bare, code=0) if one["name"] == "git")
    assert om("where", cwd=bare)


def test_a_detached_head_commits_to_a_named_branch_only(om, run_cli, git, stage):
    here = stage.clone()
    git("checkout", "-q", "--detach", cwd=here)
    memory = om("add", "Birch is for the shed.", cwd=here)["id"]
    assert "--branch" in told(run_cli("submit", memory, cwd=here))
    assert "detached" in told(run_cli("pull", cwd=here))
    before = git("rev-parse", "HEAD", cwd=here)
    assert om("submit", memory, "--branch", "memex/out", cwd=here)["branch"] == "memex/out"
    assert git("rev-parse", "HEAD", cwd=here) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another account")
def test_a_repository_of_another_account_names_the_setting(om, run_cli, git, stage):
    here = stage.clone()
    memory = om("add", "Birch is for the shed.", cwd=here)["id"]
    before = git("rev-parse", "HEAD", cwd=here)
    for folder, _, names in os.walk(here):
        for name in ["", *names]:
            os.chown(Path(folder, name), 4242, 4242)
    for words in (("submit", memory), ("pull",)):
        said = told(run_cli(*words, cwd=here))
        assert "belongs to another user" in said and f"safe.directory {here}" in said
    assert f"safe.directory {here}" in checks(om, here)["git"]["fix"]
    git("config", "--global", "safe.directory", str(here))
    assert git("rev-parse", "HEAD", cwd=here) == before and git("status", "--porcelain", cwd=here) == ""
    assert om("submit", memory, cwd=here)["files"] == [f"{FOLDER}/{memory}.md"]


def test_a_folder_outside_of_the_sparse_checkout(om, run_cli, git, stage):
    here = stage.clone()
    git("sparse-checkout", "set", "--cone", "far", cwd=here)
    assert not (here / ".ai").exists()
    status = om("sync-status", cwd=here)
    assert status["uncommitted"] == []  # left out is not deleted
    memory = om("add", "Birch is for the shed.", cwd=here)["id"]
    said = told(run_cli("submit", memory, cwd=here))
    assert "outside this sparse checkout" in said and f"git sparse-checkout add {FOLDER}" in said
    assert git("status", "--porcelain", cwd=here) == ""
    stage.share(NEW, "The new decision: larch for every gate.")
    assert om("pull", cwd=here)["after"] == git("rev-parse", "origin/main", cwd=here)
    assert git("status", "--porcelain", cwd=here) == "" and not (here / ".ai").exists()
    git("sparse-checkout", "add", FOLDER, cwd=here)
    assert (
        om("submit", memory, cwd=here)["files"] and git("fsck", "--strict", "--no-dangling", cwd=here) == ""
    )


def test_another_spelling_of_the_folder_where_case_does_not_count(om, run_cli, git, stage):
    here = stage.clone()
    git("mv", ".ai", ".AI", cwd=here)
    git("commit", "-q", "-m", "shout", cwd=here)
    memory = om("add", "Birch is for the shed.", cwd=here)["id"]
    git("config", "core.ignorecase", "true", cwd=here)
    for words in (("submit", memory), ("submit", memory, "--branch", "out")):
        assert ".AI" in told(run_cli(*words, cwd=here))
    assert git("status", "--porcelain", cwd=here) == ""
    git("config", "core.ignorecase", "false", cwd=here)
    assert om("submit", memory, cwd=here)["files"] == [f"{FOLDER}/{memory}.md"]


def test_a_repository_inside_the_memory_folder(om, run_cli, git, stage):
    here = stage.clone()
    memory = om("add", "Birch is for the shed.", cwd=here)["id"]
    git("init", "-q", str(here / FOLDER))
    assert "git repository of its own" in told(run_cli("submit", memory, cwd=here))
    # The folder's own repository is another project: there it is not found.
    assert [row["id"] for row in om("sync-status", cwd=here)["outbox"]] == [memory]


def test_a_partial_clone_without_a_network(om, git, stage):
    """What was never fetched is an error that says so, never a wrong answer; a commit needs none of it."""
    stage.remember(OLD, "The old decision, again: cedar for every fence.")
    git("push", "-q", "origin", "HEAD:main", cwd=stage.mate)
    here = KINDS["partial"].make(stage)
    stage.remote.rename(stage.folder / "away.git")
    memory = om("add", "Birch is for the shed.", cwd=here)["id"]
    assert om("submit", memory, cwd=here)["files"] == [f"{FOLDER}/{memory}.md"]
    provider = GitProvider.open(str(here))
    assert provider is not None
    old = provider.entries("HEAD~2", FOLDER)
    with pytest.raises(OpenMemexError, match=r"remote\.git"):
        list(provider.blobs(old.values()))
    (stage.folder / "away.git").rename(stage.remote)
    assert b"cedar" in dict(provider.blobs(old.values()))[old[f"{OLD}.md"]]
    assert git("fsck", cwd=here) == ""


def test_collected_and_repacked_while_a_handle_is_open(git, stage):
    here = stage.clone()
    provider = GitProvider.open(str(here))
    assert provider is not None
    oids = list(provider.entries("HEAD", FOLDER).values())
    for number in range(3):
        path = f"{FOLDER}/{NEW[:-1]}{number}.md"
        (here / path).write_text(memory_text(path[-29:-3], f"Number {number}."))
        provider.commit({path: (here / path).read_bytes()}, message=f"{number}")
        git("gc", "-q", "--prune=now", cwd=here)
        assert len(provider.entries("HEAD", FOLDER)) == number + 2
    assert b"cedar" in next(raw for _, raw in provider.blobs(oids))
    assert git("fsck", "--strict", cwd=here) == "" and git("status", "--porcelain", cwd=here) == ""


# --- git itself ---


def path_without_git(tmp_path: Path) -> str:
    """A folder with what the commands' own process needs, and no git in it."""
    folder = tmp_path / "no-git"
    folder.mkdir()
    return str(folder)


@pytest.mark.parametrize("name", ["plain", "linked work tree", "sha256", "reftable"])
def test_without_git_all_but_sharing_works(om, run_cli, git, tmp_path, monkeypatch, name):
    git_for(KINDS[name], monkeypatch.setenv)
    here = KINDS[name].make(Stage(git, tmp_path.resolve(), KINDS[name].init))
    environ = {"PATH": path_without_git(tmp_path)}
    memory = om("add", "Birch is for the shed.", cwd=here, env=environ)["id"]
    assert [hit["id"] for hit in om("search", "birch", cwd=here, env=environ)["hits"]] == [memory]
    assert [hit["id"] for hit in om("search", "cedar", cwd=here, env=environ)["hits"]] == [OLD]
    assert om("show", memory, cwd=here, env=environ)["content"].strip() == "Birch is for the shed."
    om("edit", memory, "--body", "Birch is for the old shed.", cwd=here, env=environ)
    status = om("sync-status", cwd=here, env=environ)
    assert [row["id"] for row in status["outbox"]] == [memory] and "git was not found" in status["git"]
    for words in (("submit", memory), ("pull",)):
        said = told(run_cli(*words, cwd=here, env=environ))
        assert "git was not found on the PATH" in said and "Install git 2.30 or newer" in said
    failed = checks(om, here, env=environ)
    assert "git was not found" in failed["git"]["text"]
    # With git again nothing was lost, and the draft goes where it was meant to.
    assert om("submit", memory, cwd=here)["files"] == [f"{FOLDER}/{memory}.md"]


@pytest.fixture
def git_that_says(tmp_path, monkeypatch):
    def put(version: str) -> None:
        real = shutil.which("git")
        folder = tmp_path / "says"
        folder.mkdir()
        (folder / "git").write_text(
            f'#!/bin/sh\n[ "$1" = --version ] && echo "git version {version}" && exit\nexec {real} "$@"\n'
        )
        (folder / "git").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    return put


def test_a_git_that_is_too_old_is_named(om, run_cli, git, stage, git_that_says):
    here = stage.clone()
    memory = om("add", "Birch is for the shed.", cwd=here)["id"]
    git_that_says("2.29.3 (Apple Git-130)")
    before = git("rev-parse", "HEAD", cwd=here)
    for words in (("submit", memory), ("pull",)):
        said = told(run_cli(*words, cwd=here))
        assert "git 2.29.3 (Apple Git-130) is too old" in said and "2.30" in said
    assert "too old" in checks(om, here)["git"]["text"]
    assert git("rev-parse", "HEAD", cwd=here) == before and git("status", "--porcelain", cwd=here) == ""


def test_a_version_in_an_odd_form_is_not_taken_for_an_old_one(om, stage, git_that_says):
    git_that_says("HEAD-1a2b3c4")
    assert all(one["ok"] for one in checks(om, stage.clone(), code=0))


@pytest.mark.parametrize("name", ["plain", "linked work tree", "shallow", "partial", "split index", "sha256"])
def test_the_oldest_git_that_is_supported_does_it_all(om, git, tmp_path, monkeypatch, name):
    folder = needed.old_git()
    assert needed.version(folder) < (2, 36)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    stage = Stage(git, tmp_path.resolve(), KINDS[name].init)
    here = KINDS[name].make(stage)
    stage.share(NEW, "The new decision: larch for every gate.")
    assert [row["id"] for row in om("pull", cwd=here)["added"]] == [NEW]
    memory = om("add", "Birch is for the shed.", cwd=here)["id"]
    assert om("submit", memory, cwd=here)["files"] == [f"{FOLDER}/{memory}.md"]
    assert git("fsck", "--strict", "--no-dangling", cwd=here) == ""
    status = om("sync-status", cwd=here)
    assert (status["uncommitted"], status["outbox"], status["unpushed"]) == ([], [], 1)
    other = om("add", "Alder is for the pier.", cwd=here)["id"]
    assert om("submit", other, "--branch", "memex/out", cwd=here)["branch"] == "memex/out"
    provider = GitProvider.open(str(here))
    assert provider is not None and provider.push("memex/out").created
    assert all(one["ok"] for one in checks(om, here, code=0) if one["name"] == "git")


def test_the_oldest_git_resolves_and_goes_on(om, git, stage, monkeypatch):
    monkeypatch.setenv("PATH", f"{needed.old_git()}{os.pathsep}{os.environ['PATH']}")
    here = stage.clone()
    path = f"{FOLDER}/{OLD}.md"
    for folder, tag in ((stage.mate, "near"), (here, "far")):
        text = (folder / path).read_text()
        (folder / path).write_text(text.replace("tags: []", f"tags: [{tag}]"))
        git("commit", "-q", "-a", "-m", tag, cwd=folder)
    git("push", "-q", "origin", "HEAD:main", cwd=stage.mate)
    git("fetch", "-q", cwd=here)
    assert git.run("merge", "origin/main", cwd=here).returncode == 1
    om("resolve", "--all", cwd=here)
    git("commit", "-q", "--no-edit", cwd=here)
    merged = (here / path).read_text()
    assert "near" in merged and "far" in merged and git("status", "--porcelain", cwd=here) == ""
    assert git("fsck", "--strict", "--no-dangling", cwd=here) == ""


# What needs a newer git than 2.30, in the product (ssh signatures) or in the making of a repository;
# and encodings, whose tables the unpacked git does not have.
LATER = (
    "two_hundred or encoding or safecrlf or signature or signed or ssh or sparse or staging_areas"
    " or submodules_are_looked_at or file_where_the_other_side or same_bytes"
)


@pytest.mark.slow
def test_the_tests_of_git_pass_with_the_oldest_git(tmp_path):
    folder = needed.old_git()
    git_tests = (
        "committing",
        "committing_hooks",
        "transport",
        "transport_settings",
        "push",
        "conflicts",
        "history",
    )
    files = [f"tests/git/test_{name}.py" for name in git_tests]
    files += sorted(str(path) for path in CHECKOUT.glob("tests/operations/test_resolve*.py"))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={tmp_path}/t"),
            *("-k", f"not ({LATER})", *files),
        ],
        cwd=CHECKOUT,
        env={**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:]


def test_ids_of_two_formats_at_once(om, run_cli, git, stage, monkeypatch):
    """git can't fetch into such a repository yet, and says so; all else works, through git."""
    monkeypatch.setenv("PATH", f"{needed.new_git()}{os.pathsep}{os.environ['PATH']}")
    here = stage.folder / "here"
    git("init", "-q", "-b", "main", str(here))
    git("config", "core.repositoryFormatVersion", "1", cwd=here)
    git("config", "extensions.compatObjectFormat", "sha256", cwd=here)
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=here)
    memory = om("add", "Birch is for the shed.", cwd=here)["id"]
    assert om("submit", memory, cwd=here)["engine"] == "git"
    assert [hit["id"] for hit in om("search", "birch", cwd=here)["hits"]] == [memory]
    assert git("status", "--porcelain", cwd=here) == "" and git("fsck", "--strict", cwd=here) == ""
    assert len(git("rev-parse", "--output-object-format=sha256", "HEAD", cwd=here)) == 64
    git("remote", "add", "origin", str(stage.remote), cwd=here)
    done = run_cli("pull", cwd=here)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert git("status", "--porcelain", cwd=here) == ""


def test_a_newer_git_that_nobody_here_has_is_a_clear_error(om, run_cli, git, stage):
    """A repository that this git can't read: every command that needs git says what git says."""
    here = stage.clone()
    memory = om("add", "Birch is for the shed.", cwd=here)["id"]
    git("config", "core.repositoryFormatVersion", "1", cwd=here)
    git("config", "extensions.fromTheFuture", "true", cwd=here)
    for words in (("submit", memory), ("pull",)):
        assert "fromthefuture" in told(run_cli(*words, cwd=here)).lower()
    later = om("add", "Alder is for the pier.", cwd=here)["id"]
    assert [hit["id"] for hit in om("search", "cedar", cwd=here)["hits"]] == [OLD]
    assert "fromthefuture" in checks(om, here)["git"]["text"].lower()
    git("config", "--file", here / ".git" / "config", "--unset", "extensions.fromTheFuture")
    assert sorted(om("submit", memory, later, cwd=here)["files"]) == sorted(
        f"{FOLDER}/{one}.md" for one in (memory, later)
    )


def test_without_git_a_project_is_known_by_its_origin_all_the_same(git, make_repo, tmp_path, monkeypatch):
    repo = make_repo(origin="team:widget.git")
    git("remote", "set-url", "--add", "origin", "https://second.test/x", cwd=repo)
    git("config", "--global", "url.https://wrong.test/.insteadOf", "te")
    git("config", "--global", "url.https://forge.test/acme/.insteadOf", "team:")
    alone = make_repo("alone")
    known = {repo: GitProvider.open(str(repo)).identity(), alone: GitProvider.open(str(alone)).identity()}
    monkeypatch.setenv("PATH", path_without_git(tmp_path))
    for folder, before in known.items():
        now = GitProvider.open(str(folder)).identity()
        assert not now.whole and now.root_commit is None
        assert (now.name, now.origin_url_normal, now.folder) == (*before[:2], before.folder)
        assert set(now.keys) == {key for key in before.keys if key != before.keys[-2]}

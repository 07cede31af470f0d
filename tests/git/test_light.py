"""What the hot path reads from git's files is what git itself would say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from openmemex.git import light


def site_of(folder, environ=None):
    return light.find_site(str(folder), os.environ if environ is None else environ)


def says(git, folder, *args):
    return git("rev-parse", *args, cwd=folder)


def agrees_with_git(git, folder):
    """The site at `folder`, after comparing each part with `git rev-parse`."""
    site = site_of(folder)
    assert site is not None
    assert site.git_dir == says(git, folder, "--path-format=absolute", "--git-dir")
    assert site.common_dir == says(git, folder, "--path-format=absolute", "--git-common-dir")
    bare = says(git, folder, "--is-bare-repository") == "true"
    assert site.bare == bare
    assert site.root == ("" if bare else says(git, folder, "--show-toplevel"))
    return site


def test_a_plain_repository_from_its_top_and_from_a_deep_folder(git, make_repo):
    repo = make_repo()
    (repo / "src" / "deep").mkdir(parents=True)
    assert agrees_with_git(git, repo) == agrees_with_git(git, repo / "src" / "deep")
    assert site_of(repo / "not" / "there" / "yet") == site_of(repo)
    assert site_of(repo / "app.txt") == site_of(repo)


def test_no_repository(tmp_path):
    assert site_of(tmp_path) is None


def test_a_linked_work_tree_shares_the_common_folder(git, make_repo, tmp_path):
    repo = make_repo()
    git("worktree", "add", "-q", "../wt", "-b", "side", cwd=repo)
    (tmp_path / "wt" / "src").mkdir()
    site = agrees_with_git(git, tmp_path / "wt" / "src")
    assert site.common_dir == site_of(repo).common_dir and site.git_dir != site_of(repo).git_dir
    assert light.head(site)[0] == "refs/heads/side"


def test_a_work_tree_of_a_bare_repository(git, make_repo, tmp_path):
    git("clone", "-q", "--bare", str(make_repo()), "bare.git", cwd=tmp_path)
    git("worktree", "add", "-q", "../wt", "-b", "side", cwd=tmp_path / "bare.git")
    agrees_with_git(git, tmp_path / "wt")
    agrees_with_git(git, tmp_path / "bare.git")
    assert site_of(tmp_path / "bare.git" / "refs") == site_of(tmp_path / "bare.git")


def test_a_submodule_is_a_repository_of_its_own(git, make_repo, tmp_path):
    inner, outer = make_repo("inner"), make_repo("outer")
    git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "sub", cwd=outer)
    site = agrees_with_git(git, outer / "sub")
    assert site.git_dir == str(outer / ".git" / "modules" / "sub")


def test_a_separate_git_folder(git, tmp_path):
    (tmp_path / "work").mkdir()
    git("init", "-q", "--separate-git-dir", str(tmp_path / "elsewhere"), cwd=tmp_path / "work")
    agrees_with_git(git, tmp_path / "work")


def test_core_worktree_and_core_bare(git, make_repo, tmp_path):
    repo = make_repo()
    (tmp_path / "other # place").mkdir()
    git("config", "core.worktree", "../../other # place", cwd=repo)
    assert site_of(repo).root == str(tmp_path / "other # place")
    git("config", "--unset", "core.worktree", cwd=repo)
    git("config", "core.bare", "true", cwd=repo)
    agrees_with_git(git, repo)


def test_inside_the_git_folder_the_repository_is_the_same(make_repo):
    repo = make_repo()
    assert site_of(repo / ".git" / "hooks") == site_of(repo)


def test_a_git_folder_that_is_a_link(git, make_repo, tmp_path):
    repo = make_repo()
    (repo / ".git").rename(tmp_path / "moved")
    (repo / ".git").symlink_to(tmp_path / "moved")
    site = site_of(repo)
    assert site.root == str(repo) and site.git_dir == str(tmp_path / "moved")


def test_git_dir_in_the_environment_as_in_a_hook(git, make_repo, tmp_path, monkeypatch):
    repo, other = make_repo(), make_repo("other")
    (repo / "src").mkdir()
    git("worktree", "add", "-q", "../wt", "-b", "side", cwd=repo)
    plain = site_of(repo)
    monkeypatch.chdir(repo)
    monkeypatch.setenv("GIT_DIR", ".git")
    assert site_of(repo / "src") == plain
    monkeypatch.setenv("GIT_DIR", str(repo / ".git"))
    assert site_of(repo / "src") == plain
    # The hook's children are asked about another place: that place decides.
    assert site_of(other).root == str(other)
    assert site_of(tmp_path / "wt").root == str(tmp_path / "wt")
    monkeypatch.setenv("GIT_DIR", "gone/.git")
    assert site_of(repo / "src") == plain


def test_git_dir_and_git_work_tree_name_a_repository_that_cannot_be_found(git, tmp_path, monkeypatch):
    (tmp_path / "dots").mkdir()
    git("init", "-q", "--bare", "store.git", cwd=tmp_path)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "store.git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "dots"))
    site = site_of(tmp_path / "dots")
    assert (site.root, site.bare) == (str(tmp_path / "dots"), False)
    assert site_of(tmp_path) is None


def test_ceilings_stop_the_search(make_repo, monkeypatch):
    repo = make_repo()
    (repo / "a" / "b").mkdir(parents=True)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(repo))
    assert site_of(repo / "a" / "b") is None
    assert site_of(repo) is not None
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(repo / "a" / "b"))
    assert site_of(repo / "a" / "b") is not None


def test_a_git_file_that_leads_nowhere_is_named(make_repo):
    repo = make_repo()
    inner = repo / "inner"
    inner.mkdir()
    for text in ("gitdir: ../gone\n", "nonsense", ""):
        (inner / ".git").write_text(text)
        with pytest.raises(light.BrokenSite, match=r"inner/\.git"):
            site_of(inner)


def test_a_git_folder_without_a_repository_in_it_is_passed_over_as_git_does(git, make_repo):
    repo = make_repo()
    (repo / "inner" / ".git").mkdir(parents=True)
    assert site_of(repo / "inner") == site_of(repo)
    assert says(git, repo / "inner", "--show-toplevel") == str(repo)


def test_a_pipe_named_dot_git_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / ".git")
    assert site_of(tmp_path) is None


def test_head_and_refs_loose_packed_symbolic_detached_and_unborn(git, make_repo):
    repo = make_repo(commits=2)
    site = site_of(repo)
    oid = says(git, repo, "HEAD")
    assert light.head(site) == ("refs/heads/main", oid)
    git("branch", "topic/deep", "HEAD~1", cwd=repo)
    git("tag", "-a", "v1", "-m", "v1", cwd=repo)
    git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/heads/topic/deep", cwd=repo)
    names = ["HEAD", "refs/heads/main", "refs/heads/topic/deep", "refs/tags/v1", "refs/remotes/origin/HEAD"]
    before = {name: says(git, repo, name) for name in names}
    assert {name: light.read_ref(site, name) for name in names} == before
    git("pack-refs", "--all", "--prune", cwd=repo)
    assert {name: light.read_ref(site, name) for name in names} == before
    assert light.symbolic_ref(site, "refs/remotes/origin/HEAD") == "refs/heads/topic/deep"
    for odd in (
        "refs/heads/none",
        "refs/heads/topic",
        "refs/heads/../../HEAD",
        "/etc/passwd",
        "",
        "refs/heads/a\0b",
    ):
        assert light.read_ref(site, odd) is None
    git("checkout", "-q", "--detach", cwd=repo)
    assert light.head(site) == (None, oid)
    git("checkout", "-q", "--orphan", "new", cwd=repo)
    assert light.head(site) == ("refs/heads/new", None)


def test_a_reference_that_goes_in_circles(make_repo):
    repo = make_repo()
    for name, to in (("a", "b"), ("b", "a")):
        (repo / ".git" / "refs" / "heads" / name).write_text(f"ref: refs/heads/{to}\n")
    assert light.read_ref(site_of(repo), "refs/heads/a") is None


def test_head_that_is_a_link_as_in_old_repositories(git, make_repo):
    repo = make_repo()
    git("config", "core.preferSymlinkRefs", "true", cwd=repo)
    git("checkout", "-q", "-b", "linked", cwd=repo)
    assert (repo / ".git" / "HEAD").is_symlink()
    assert light.head(site_of(repo)) == ("refs/heads/linked", says(git, repo, "HEAD"))


def test_sha256_ids_are_read(git, tmp_path):
    git("init", "-q", "-b", "main", "--object-format=sha256", "r", cwd=tmp_path)
    git("commit", "-q", "--allow-empty", "-m", "x", cwd=tmp_path / "r")
    assert light.head(site_of(tmp_path / "r")) == ("refs/heads/main", says(git, tmp_path / "r", "HEAD"))


def test_the_identity_stamp_changes_with_what_identity_is_made_of(git, make_repo, home, monkeypatch):
    repo = make_repo(commits=0)
    site = site_of(repo)
    included = home / "included"
    included.write_text("")
    git("config", "--global", "include.path", str(included), cwd=repo)
    seen = [light.identity_stamp(site)]
    assert light.identity_stamp(site) == seen[0]

    def changed():
        seen.append(light.identity_stamp(site))
        assert len(set(seen)) == len(seen)

    git("commit", "-q", "--allow-empty", "-m", "first", cwd=repo)
    changed()
    git("remote", "add", "origin", "https://example.org/a/b.git", cwd=repo)
    changed()
    git("config", "--global", "url.https://example.org/.insteadOf", "ex:", cwd=repo)
    changed()
    included.write_text("[core]\n")
    changed()
    secret = "tok" + "en-value"
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "remote.origin.url")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", f"https://{secret}@example.org/a/b")
    changed()
    assert secret not in seen[-1]


def test_nothing_heavy_is_imported_for_all_this(make_repo):
    code = (
        "import sys; from openmemex.git import light; s = light.find_site('.'); light.head(s);"
        "light.identity_stamp(s); light.folder_key('.'); print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=make_repo(), capture_output=True, text=True, check=True
    )
    heavy = {"subprocess", "hashlib", "pathlib", "pygit2", "tempfile", "dataclasses", "json"}
    assert heavy.isdisjoint(done.stdout.split())


def test_a_folder_has_a_key_that_does_not_depend_on_how_it_is_spelled(tmp_path: Path):
    (tmp_path / "Ünï Notes!").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "Ünï Notes!")
    key = light.folder_key(str(tmp_path / "link"))
    assert key == light.folder_key(f"{tmp_path}/Ünï Notes!/") and key.startswith("project__n-notes__")
    assert light.slug("项目") == "repo"

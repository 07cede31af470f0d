"""The one door to git stays one door, and what is silently wrong with libgit2 is called nowhere."""

from __future__ import annotations

import ast
import inspect
import os
import re

import pytest
from conftest import CHECKOUT

from openmemex.errors import OpenMemexError
from openmemex.git import light, process
from openmemex.git.provider import GitProvider

PACKAGE = CHECKOUT / "openmemex"
# Each of these was seen to lose work, skip a hook, trust a wrong host, break a clone or tell something wrong,
# all without an error: git does them.
FORBIDDEN = re.compile(
    r"index\.write_tree\(|repo\.index\b|\.index\.(write|add|add_all|remove|remove_all)\("
    r"|remote\.(fetch|push|ls_remotes)\(|remotes\[[^\]]*\]\.(fetch|push)\("
    r"|\b(repo|handle|_handle)\.(merge\w*|cherrypick|revert\w*|checkout\w*|reset|stash\w*|set_head|status\w*|blame|walk"
    r"|rebase|index|default_signature)\b|\.merge_(trees|commits|file_from_index|analysis|base)\(|default_signature"
    r"|\.diff\.patch|create_commit\(['\"]|certificate_check|clone_repository"
)
# All of libgit2 that may be used, by the name that it is reached through.
ALLOWED = {
    "pygit2": {"Repository", "GitError", "Signature", "Config", "enums", "settings"},
    "pygit2.enums": {"RepositoryOpenFlag", "ObjectType"},
    "pygit2.settings": {"enable_fsync_gitdir"},
    "self._handle": {"get", "path", "read"},
    "self._writing": {"create_blob", "create_commit", "TreeBuilder", "write"},
    "handle": {"create_blob", "create_commit", "TreeBuilder", "write"},
}
SOURCES = [*sorted(PACKAGE.rglob("*.py")), *sorted((CHECKOUT / "hooks").rglob("*.py"))]


def test_calls_that_are_silently_wrong_are_nowhere():
    lines = [
        f"{path.name}:{number}: {line.strip()}"
        for path in SOURCES
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if FORBIDDEN.search(line)
    ]
    assert lines == []


@pytest.mark.parametrize(
    "line",
    [
        "repo.index.write()",
        "tree = index.write_tree()",
        "remote.push([x])",
        "repo.merge(x)",
        "r.default_signature",
        "self._handle.blame('x')",
        "handle.merge_analysis(x)",
        "pygit2.Repository(x).merge_trees(a, b, c)",
        "repo.create_commit('HEAD', a, c, m, t, [])",
        "for c in handle.walk(tip):",
    ],
)
def test_the_search_for_them_finds_them(line):
    assert FORBIDDEN.search(line)


def used_of_libgit2(source: str) -> set[tuple[str, str]]:
    """(name, attribute) of everything that is reached through one of the names of ALLOWED."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ALLOWED:
            found.add((ast.unparse(node.value), node.attr))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pygit2"):
            found.add(("pygit2", "imported under another name"))
    return found


def test_of_libgit2_only_what_was_seen_to_be_right_is_used():
    used = set().union(*(used_of_libgit2(path.read_text("utf-8")) for path in SOURCES))
    assert {(name, attribute) for name, attribute in used if attribute not in ALLOWED[name]} == set()
    assert "create_blob" in {attribute for _, attribute in used}
    assert used_of_libgit2("self._handle.odb.add_disk_alternate(x)") == {("self._handle", "odb")}


def test_only_one_module_starts_processes():
    starting = [
        path.name
        for path in sorted((PACKAGE / "git").glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Import) and any(alias.name == "subprocess" for alias in node.names)
    ]
    assert starting == ["process.py"]


def test_the_provider_is_short_and_each_method_says_what_it_does():
    methods = [
        value
        for name, value in vars(GitProvider).items()
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, classmethod))
    ]
    assert 0 < len(methods) <= 45
    for method in methods:
        function = method.__func__ if isinstance(method, classmethod) else method
        assert function.__doc__
        assert len(inspect.getsource(function).splitlines()) <= 20


def test_stray_variables_of_a_hook_do_not_reach_git(make_repo, tmp_path, monkeypatch):
    repo, other = make_repo(), make_repo("other")
    listed = process.run_git(["rev-parse", "--local-env-vars"], cwd=str(repo)).text.split()
    kept = {"GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"}
    assert "GIT_CONFIG" in listed
    for name in set(listed) - kept:
        monkeypatch.setenv(name, str(other / ".git") if name in ("GIT_DIR", "GIT_WORK_TREE") else "odd")
    site = light.find_site(str(repo), {})
    assert site is not None
    done = process.Git(site).run("rev-parse", "--show-toplevel")
    assert done.text.strip() == str(repo)
    assert process.Git(site).run("status", "--porcelain").text == ""


def test_a_persons_own_config_variables_do(make_repo, monkeypatch):
    repo = make_repo()
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "user.name")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "From the Environment")
    found = GitProvider.open(str(repo))
    assert found is not None and found.author().name == "From the Environment"


@pytest.mark.parametrize(
    "options",
    [["-c", "i18n.x=y"], ["-c", "branch.a b.c=", "--no-pager"], ["--git-dir", "no"], ["-C", "x"], []],
)
def test_a_failure_names_gits_command_whatever_options_stand_before_it(make_repo, options):
    repo = make_repo()
    with pytest.raises(OpenMemexError, match=r"^`git cat-file` failed in "):
        process.run_git([*options, "cat-file", "blob", "none"], cwd=str(repo))


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("fatal: unable to access 'https://u:pw@h.test/x/'", "fatal: unable to access 'https://h.test/x/'"),
        ("From https://tok" + "en@h.test:8080/x", "From https://h.test:8080/x"),
        ("ssh://git@h.test/x and http://a:b/c@d@h.test/y", "ssh://h.test/x and http://h.test/y"),
        ("https://h.test/x?private_token=abc'", "https://h.test/x'"),
        ("fatal: 'git:" + "pw@h.test:x/y' is no repository", "fatal: 'h.test:x/y' is no repository"),
        ("to git:" + "p/w@h.test:x and git@h.test:y/z", "to h.test:x and git@h.test:y/z"),
        ("warning: stash@{0}: or host:dir/a@b", "warning: stash@{0}: or host:dir/a@b"),
        ("author a@example.org wrote https://h.test/x", "author a@example.org wrote https://h.test/x"),
    ],
)
def test_words_of_git_lose_their_credentials(said, shown):
    assert process.without_credentials(said) == shown


def test_refs_in_a_format_that_this_git_can_not_read_are_a_clear_error(git, make_repo):
    repo = make_repo()
    (repo / ".git" / "HEAD").write_text("ref: refs/heads/.invalid\n")
    (repo / ".git" / "reftable").mkdir()
    git("config", "core.repositoryFormatVersion", "1", cwd=repo)
    git("config", "extensions.refStorage", "unheard-of", cwd=repo)
    site = light.find_site(str(repo), os.environ)
    assert site is not None
    with pytest.raises(OpenMemexError, match=r"unheard-of|refstorage"):
        light.head(site)


def test_a_partial_clone_is_read_and_written_by_git(git, make_repo, make_remote, tmp_path):
    repo = make_repo()
    (repo / ".ai" / "open-memex").mkdir(parents=True)
    (repo / ".ai" / "open-memex" / "a.md").write_text("one\n")
    git("add", ".ai", cwd=repo)
    git("commit", "-qm", "one", cwd=repo)
    (repo / ".ai" / "open-memex" / "a.md").write_text("two\n")
    git("commit", "-qam", "two", cwd=repo)
    remote = make_remote(repo)
    git("config", "uploadpack.allowFilter", "true", cwd=remote)
    git("clone", "-q", "--filter=blob:none", f"file://{remote}", "partial", cwd=tmp_path)
    here = GitProvider.open(str(tmp_path / "partial"))
    assert here is not None and here.capabilities().partial
    old = here.entries("HEAD~1", ".ai/open-memex")
    remote.rename(tmp_path / "offline")
    with pytest.raises(OpenMemexError):
        list(here.blobs(old.values()))
    (tmp_path / "partial" / "b.md").write_text("new\n")
    assert here.commit({"b.md": b"new\n"}, message="offline").engine == "git"
    (tmp_path / "offline").rename(remote)
    assert dict(here.blobs(old.values())) == {old["a.md"]: b"one\n"}
    assert git("status", "--porcelain", cwd=tmp_path / "partial") == ""

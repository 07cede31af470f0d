"""All spellings of one remote are one project, different ones stay apart, no password gets into either."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmemex.errors import OpenMemexError, Refused
from openmemex.git import light
from openmemex.git.identity import host_of, normal_origin, owner_repo
from openmemex.git.process import without_credentials
from openmemex.git.provider import GitProvider

TOKEN = "gh" + "p_" + "k" * 36
SAME = [
    "git@github.com:Acme/Widget.git",
    "https://github.com/acme/widget",
    f"https://x-access-token:{TOKEN}@github.com/acme/widget.git/",
    "ssh://git@github.com:22/acme/widget.git",
    "org-77@github.com:acme/widget.git",
    "git://GitHub.com/acme/widget.git",
    "github.com:/acme/widget/",
    "ssh://git@ssh.github.com:443/acme/widget.git",
    "https://github.com:443/acme/widget.git?ref=main#readme",
    f"git:{TOKEN}@github.com:acme/widget",
    "[git@github.com:22]:acme/widget.git",
    "  https://github.com./acme/widget.git\n",
    f"https://user:{TOKEN}/x@github.com/acme/widget",
]
OTHERS = [
    "https://github.com/acme/widget.git.wiki",
    "https://github.com.evil.test/acme/widget",
    "https://ghe.corp.test/acme/my.repo.git",
    "/acme/widget.git",
    "https://github.com/acme/widgets",
    "https://github.com/acme2/widget",
]


@pytest.mark.parametrize("url", SAME)
def test_every_spelling_gives_one_normal_form(url):
    assert normal_origin(url) == "github.com/acme/widget"


def test_other_remotes_differ_from_it_and_from_each_other():
    forms = {normal_origin(url) for url in OTHERS}
    assert len(forms) == len(OTHERS) and "github.com/acme/widget" not in forms
    assert normal_origin(OTHERS[2]) == "ghe.corp.test/acme/my.repo"
    assert owner_repo(normal_origin(OTHERS[2])) == "acme/my.repo"


def test_local_paths_keep_their_case_and_agree_with_file_urls(tmp_path):
    (tmp_path / "Store.git").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "Store.git")
    wanted = str(tmp_path / "Store")
    for url in (
        f"{tmp_path}/Store.git",
        f"{tmp_path}/Store.git///",
        f"file://{tmp_path}/Store.git",
        f"file://localhost{tmp_path}/Store",
        "./Store.git",
        "../" + tmp_path.name + "/Store.git",
        "link",
        f"{tmp_path}/Store/.git",
    ):
        assert normal_origin(url, str(tmp_path)) == wanted
    assert normal_origin("store.git", str(tmp_path)) != wanted
    assert host_of(wanted) == "" and owner_repo(wanted) is None


def test_ipv6_helpers_and_odd_text():
    assert normal_origin("ssh://git@[2001:DB8::1]:22/x/y.git") == "[2001:db8::1]/x/y"
    assert normal_origin("ssh://git@[2001:db8::1]/x/y") == "[2001:db8::1]/x/y"
    assert normal_origin(f"gcrypt::ssh://{TOKEN}@h.test/x.git") == "gcrypt::h.test/x"
    assert host_of("gcrypt::h.test/x") == "h.test"
    assert normal_origin("host.test:dir/a@b") == "host.test/dir/a@b"
    assert normal_origin("git:" + "pass/word@host.test:dir/x.git") == "host.test/dir/x"


PART = st.text("abcdefghijklmnopqrstuvwxyz0123456789-_.", min_size=1, max_size=12).filter(
    lambda p: p.strip(".") == p and not p.endswith(".git") and p != "git"
)
HOST = st.from_regex(r"[a-z][a-z0-9]{1,8}(\.[a-z]{2,5}){1,2}", fullmatch=True)
USER = st.from_regex(r"([A-Za-z0-9._-]{1,10}(:[A-Za-z0-9._~%!+-]{0,20})?@)?", fullmatch=True)


@given(HOST, st.lists(PART, min_size=1, max_size=4), USER, st.integers(1, 65535), st.data())
def test_user_port_suffix_and_case_of_the_host_never_matter(host, parts, user, port, data):
    path = "/".join(parts)
    loud = "".join(data.draw(st.sampled_from([c, c.upper()])) for c in host)
    tail = data.draw(st.sampled_from(["", ".git", "/", ".git/", "//", ".git//"]))
    forms = {
        f"{scheme}://{user}{loud}{where}/{path}{tail}"
        for scheme in ("https", "http", "ssh", "git", "git+ssh", "HTTPS")
        for where in ("", f":{port}")
    } | {f"{user.partition(':')[0].rstrip('@') + '@' if user else ''}{loud}:{path}{tail}"}
    second = {"ssh.github.com", "altssh.gitlab.com", "altssh.bitbucket.org"}
    if host not in second:
        assert {normal_origin(form) for form in forms} == {f"{host}/{path}"}


@given(HOST, HOST, PART, PART)
def test_a_different_host_or_path_is_a_different_project(host, other, path, leaf):
    if host != other:
        assert normal_origin(f"https://{host}/{path}") != normal_origin(f"https://{other}/{path}")
    assert normal_origin(f"https://{host}/{path}") != normal_origin(f"https://{host}/{path}/{leaf}")


@given(st.text(max_size=60))
def test_any_text_has_a_normal_form(text):
    normal_origin(text.replace("\0", ""))


@given(
    st.from_regex(r"[a-z]{1,5}", fullmatch=True), st.from_regex(r"[A-Za-z0-9_/@:-]{12,20}", fullmatch=True)
)
def test_a_password_is_in_no_normal_form_and_no_message(user, password):
    if password.strip("/@:") != password or len(password.split("/")[-1].split("@")[-1]) < 4:
        return
    url = f"https://{user}:{password}@host.test/acme/x"
    last = password.split("@")[-1].split("/")[-1]
    if "/" not in password:
        assert password not in without_credentials(f"fatal: unable to access '{url}/': refused")
        assert normal_origin(url) == "host.test/acme/x"
    assert f"{last}@" not in without_credentials(f"fatal: unable to access '{url}/': refused")


# --- with repositories ---


def identity(folder):
    return GitProvider.open(str(folder)).identity()


@pytest.mark.parametrize("url", SAME[:5])
def test_the_scope_key_and_name_of_a_repository(make_repo, url):
    found = identity(make_repo(origin=url))
    assert found.owner_repo == "acme/widget"
    assert found.keys[0] == identity(make_repo("other", origin=SAME[1])).keys[0]
    assert (
        found.keys[0].startswith("project__widget__") and len(found.keys[0]) == len("project__widget__") + 12
    )
    assert TOKEN not in repr(found)


def test_the_first_of_several_addresses_and_insteadof_count(git, make_repo):
    repo = make_repo(origin="ex:acme/widget.git")
    git("remote", "set-url", "--add", "origin", "https://elsewhere.test/x/y", cwd=repo)
    git("config", "--global", "url.https://github.com/.insteadOf", "ex:", cwd=repo)
    assert identity(repo).origin_url_normal == "github.com/acme/widget"


def test_work_trees_sub_folders_and_clones_are_one_project(git, make_repo, make_remote, clone, tmp_path):
    repo = make_repo()
    remote = make_remote(repo)
    (repo / "deep").mkdir()
    git("worktree", "add", "-q", "../wt", "-b", "side", cwd=repo)
    assert identity(repo) == identity(repo / "deep") == identity(tmp_path / "wt")
    copy = identity(clone(remote))
    assert copy.keys[0] == identity(repo).keys[0] and copy.root_commit == identity(repo).root_commit


def test_known_by_origin_root_commit_and_folder(git, make_repo):
    repo = make_repo(commits=0)
    folder_only = identity(repo).keys
    assert folder_only == (light.folder_key(str(repo)),)
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=repo)
    with_root = identity(repo).keys
    assert with_root[1:] == folder_only
    git("remote", "add", "origin", SAME[0], cwd=repo)
    assert identity(repo).keys[1:] == with_root


def test_the_oldest_root_is_the_root_and_a_shallow_clone_has_none(git, make_repo, clone):
    repo = make_repo(commits=2)
    root = git("rev-list", "--max-parents=0", "HEAD", cwd=repo)
    git("checkout", "-q", "--orphan", "apart", cwd=repo)
    git("commit", "-qm", "other root", cwd=repo, env={"GIT_COMMITTER_DATE": "2090-01-01T00:00:00Z"})
    git("merge", "-q", "-m", "join", "--allow-unrelated-histories", "-s", "ours", "main", cwd=repo)
    assert identity(repo).root_commit == root
    git("clone", "-q", "--depth=1", f"file://{repo}", "shallow", cwd=repo.parent)
    shallow = identity(repo.parent / "shallow")
    assert shallow.root_commit is None and len(shallow.keys) == 2


def test_a_remote_without_an_address_is_no_origin(git, make_repo):
    repo = make_repo()
    git("config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*", cwd=repo)
    assert identity(repo).origin_url_normal is None


def test_author_as_git_itself_has_it(git, make_repo, home, monkeypatch):
    repo = make_repo(origin="https://github.com/acme/widget")
    (home / "work").write_text("[user]\n\tname = Work Self\n")
    git(
        "config",
        "--global",
        "includeIf.hasconfig:remote.*.url:https://github.com/**.path",
        str(home / "work"),
    )
    monkeypatch.setenv("GIT_AUTHOR_DATE", "2020-01-02T03:04:05+05:30")
    author = GitProvider.open(str(repo)).author()
    assert author == ("Work Self", "ada@example.org", 1577914445, 330)
    assert git("var", "GIT_AUTHOR_IDENT", cwd=repo) == "Work Self <ada@example.org> 1577914445 +0530"


def test_without_an_identity_the_two_commands_are_named(git, make_repo, home):
    repo = make_repo()
    (home / ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n")
    with pytest.raises(Refused) as refused:
        GitProvider.open(str(repo)).author()
    assert "git config --global user.name" in refused.value.hint
    assert "git config --global user.email" in refused.value.hint


def test_a_repository_of_another_owner_is_refused_with_the_way_out(git, make_repo, monkeypatch):
    repo = make_repo()
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(OpenMemexError) as refused:
        GitProvider.open(str(repo)).capabilities()
    assert "safe.directory" in refused.value.hint


def test_without_git_on_the_path_that_is_said(make_repo, monkeypatch, tmp_path):
    repo = make_repo()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refused, match="git was not found"):
        GitProvider.open(str(repo)).capabilities()

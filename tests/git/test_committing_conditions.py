"""What is in the way of a commit is refused by name, with nothing changed; who commits is as git has it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from openmemex.errors import OpenMemexError
from openmemex.git import staging
from tests.git.commits import (
    FIRST,
    M1,
    M2,
    SECOND,
    busy_repo,
    changed_by,
    head,
    hook,
    own_work,
    provider,
    remember,
    same,
    write,
)


@pytest.mark.parametrize("where", ["info/exclude", "core.excludesFile", "a folder's own", "the usual place"])
@pytest.mark.parametrize("branch", [None, "b"])
def test_ignored_by_any_rule_of_gits(git, make_repo, home, where, branch):
    repo = make_repo()
    if where == "info/exclude":
        (repo / ".git" / "info").mkdir(exist_ok=True)
        file = repo / ".git" / "info" / "exclude"
    elif where == "core.excludesFile":
        file = home / "excludes"
        git("config", "core.excludesFile", str(file), cwd=repo)
    elif where == "the usual place":
        file = home / ".config" / "git" / "ignore"
        file.parent.mkdir(parents=True)
    else:
        file = repo / ".ai" / ".gitignore"
        file.parent.mkdir()
    file.write_text("*.md\n")
    write(repo, M1, FIRST)
    refusal = same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x", branch=branch))
    assert "ignored" in refusal.message and ":1:*.md" in refusal.message
    file.write_text("*.md\n!/.ai/**/*.md\n!open-memex/*.md\n!.ai/open-memex/*.md\n")
    provider(repo).commit({M1: FIRST}, message="x", branch=branch)


def test_a_rule_that_only_the_staging_area_has_is_for_the_sparse_checkout_alone(git, make_repo):
    repo = make_repo()
    (repo / ".gitignore").write_text("*.md\n")
    git("add", ".gitignore", cwd=repo)
    git("commit", "-qm", "rules", cwd=repo)
    (repo / ".gitignore").unlink()
    # git reads the rules of a file that is gone only where a sparse checkout left it out.
    assert git.run("check-ignore", M1, cwd=repo).returncode == 1
    assert remember(repo).commit


def test_what_git_follows_is_not_ignored_even_where_a_rule_says_so(git, make_repo):
    repo = make_repo()
    remember(repo)
    (repo / ".gitignore").write_text("*.md\n")
    assert changed_by(git, repo, remember(repo, data=SECOND).commit) == [M1]


def test_neighbours_with_names_of_other_cases_and_encodings(git, make_repo):
    repo = make_repo()
    folder = os.fsencode(repo / ".ai" / "open-memex")
    os.makedirs(folder)
    names = {b"caf\xe9.md", b"\xff\xfe", M1.rpartition("/")[2].lower().encode()}
    for name in names:
        with open(os.path.join(folder, name), "wb") as file:
            file.write(b"neighbour\n")
    git("add", ".", cwd=repo)
    git("commit", "-qm", "neighbours", cwd=repo)
    with open(os.path.join(folder, b"\xfe.md"), "wb") as file:
        file.write(b"not staged\n")
    assert len(provider(repo).folder_status(".ai/open-memex")) == 1
    neighbours = tree(repo, "HEAD")
    assert set(neighbours) == {b".ai/open-memex/" + name for name in names}
    remember(repo)
    provider(repo).commit({M2: SECOND}, message="x", branch="b")
    for ref, mine in (("HEAD", [M1]), ("b", [M1, M2])):
        there = tree(repo, ref)
        assert set(there) == {*neighbours, *map(os.fsencode, mine)}
        assert {name: there[name] for name in neighbours} == neighbours
    assert git("ls-files", "--deleted", "--modified", cwd=repo) == ""
    assert git("fsck", "--strict", "--no-dangling", cwd=repo) == ""


def tree(repo, ref):
    """Every file's name, in bytes, and what the tree holds of it."""
    listed = subprocess.run(
        ["git", "ls-tree", "-r", "-z", ref, ".ai"], cwd=repo, capture_output=True, check=True
    )
    entries = (line.partition(b"\t") for line in listed.stdout.split(b"\0")[:-1])
    return {name: entry for entry, _, name in entries}


def test_a_fifo_on_the_way_blocks_nobody(git, make_repo):
    repo = make_repo()
    (repo / ".ai" / "open-memex").mkdir(parents=True)
    os.mkfifo(repo / M1)
    for act in (
        lambda: provider(repo).check_commit([M1], None, None),
        lambda: provider(repo).commit({M1: FIRST}, message="x"),
        lambda: provider(repo).commit({M1: None}, message="x"),
    ):
        assert "regular" in same(git, repo, act).message


@pytest.mark.parametrize("hooks", [False, True], ids=["no hooks", "hooks"])
def test_a_lock_held_for_a_second_is_waited_for(git, make_repo, hooks):
    repo = busy_repo(git, make_repo)
    if hooks:
        hook(repo, "pre-commit", "exit 0")
    lock = repo / ".git" / "index.lock"
    lock.touch()
    release = threading.Timer(1.0, lock.unlink)
    release.start()
    remember(repo)
    release.join()
    assert changed_by(git, repo) == [M1]


@pytest.mark.parametrize("hooks", [False, True], ids=["no hooks", "hooks"])
def test_a_lock_that_comes_in_between_and_stays_is_named_with_nothing_changed(
    git, make_repo, monkeypatch, hooks
):
    repo = busy_repo(git, make_repo)
    if hooks:
        hook(repo, "pre-commit", "exit 0")
    write(repo, M1, FIRST)
    monkeypatch.setattr(staging, "LOCK_SECONDS", 0.3)
    checked = provider(repo).check_commit([M1])
    lock = repo / ".git" / "index.lock"
    before = (own_work(git, repo), head(git, repo), git("ls-files", "-s", cwd=repo))
    lock.touch()
    with pytest.raises(OpenMemexError, match=r"index\.lock"):
        provider(repo).commit({M1: FIRST}, message="x", checked=checked)
    assert lock.exists()
    lock.unlink()
    assert (own_work(git, repo), head(git, repo), git("ls-files", "-s", cwd=repo)) == before


def test_what_was_checked_is_checked_again_when_something_changed(git, make_repo):
    repo = make_repo(commits=2)
    write(repo, M1, FIRST)
    checked = provider(repo).check_commit([M1])
    git("checkout", "-q", "--detach", cwd=repo)
    refusal = same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x", checked=checked))
    assert "detached" in refusal.message
    git("checkout", "-q", "main", cwd=repo)
    git("merge", "-q", "--no-commit", "--no-ff", "-s", "ours", "main~1", cwd=repo)
    (repo / ".git" / "MERGE_HEAD").write_text(head(git, repo, "main~1") + "\n")
    refusal = same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x", checked=checked))
    assert "merge" in refusal.message
    (repo / ".git" / "MERGE_HEAD").unlink()
    git("commit", "-q", "--allow-empty", "-m", "moved", cwd=repo)
    moved = head(git, repo)
    assert provider(repo).commit({M1: FIRST}, message="x", checked=checked).commit
    assert head(git, repo, "HEAD~1") == moved


@pytest.mark.parametrize("branch", [None, "b"])
def test_objects_that_can_not_be_written(git, make_repo, branch):
    repo = busy_repo(git, make_repo)
    write(repo, M1, FIRST)
    # Also a superuser can't make a folder where a file is.
    blocked = []
    for number in range(256):
        place = repo / ".git" / "objects" / f"{number:02x}"
        if not place.exists():
            place.touch()
            blocked.append(place)
    refusal = same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x", branch=branch))
    assert "object" in refusal.message
    for place in blocked:
        place.unlink()
    assert provider(repo).commit({M1: FIRST}, message="x", branch=branch).commit


LIMITED = (
    "import resource, signal, sys; from openmemex.git.provider import GitProvider\n"
    "from openmemex.errors import OpenMemexError\n"
    "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))\n"
    "data = open(sys.argv[1], 'rb').read()\n"
    "try: GitProvider.open('.').commit({sys.argv[1]: data}, message='x', branch=sys.argv[3] or None)\n"
    "except OpenMemexError as error: print(error); sys.exit(error.exit_code)\n"
)


@pytest.mark.parametrize("limit", [0, 40, 100, 400, 4096])
@pytest.mark.parametrize("branch", ["", "b"])
def test_a_full_disk_at_any_step_leaves_all_as_it_was_and_is_tried_again(git, make_repo, limit, branch):
    """Every file that a process writes may be so large and no larger: what a full disk does to it."""
    repo = busy_repo(git, make_repo)
    for number in range(60):  # the staging area alone is larger than 4096 bytes
        (repo / f"file{number}").write_text("x")
    git("add", ".", cwd=repo)
    git("commit", "-qm", "many", cwd=repo)
    write(repo, M1, FIRST * 3)
    before, tip = own_work(git, repo), head(git, repo)
    staged_before = git("ls-files", "-s", cwd=repo)
    command = [sys.executable, "-c", LIMITED, M1, str(limit), branch]
    done = subprocess.run(command, cwd=repo, capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    if done.returncode:
        assert done.stdout and head(git, repo) == tip and own_work(git, repo) == before
        assert git("ls-files", "-s", cwd=repo) == staged_before
    else:
        assert branch and limit >= 400  # only the staging area is as large as that
    assert git("fsck", "--strict", "--no-dangling", cwd=repo) == ""
    # The limit ends git by a signal, where a full disk would only let it fail: then its lock is left.
    (repo / ".git" / "index.lock").unlink(missing_ok=True)
    assert provider(repo).commit({M1: FIRST * 3}, message="x", branch=branch or None).commit
    assert changed_by(git, repo, branch or "HEAD") == [M1]


# --- who and when ---

IDENTITIES = {
    "config": {},
    "GIT_AUTHOR_*": {"GIT_AUTHOR_NAME": "Writer", "GIT_AUTHOR_EMAIL": "w@example.org"},
    "GIT_COMMITTER_*": {"GIT_COMMITTER_NAME": "Keeper", "GIT_COMMITTER_EMAIL": "k@example.org"},
    "dates": {"GIT_AUTHOR_DATE": "2001-02-03T04:05:06+0700", "GIT_COMMITTER_DATE": "@981173106 -0330"},
    "GIT_CONFIG_COUNT": {
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "user.name",
        "GIT_CONFIG_VALUE_0": "Counted",
        "GIT_CONFIG_KEY_1": "committer.email",
        "GIT_CONFIG_VALUE_1": "counted@example.org",
    },
    "odd names": {"GIT_AUTHOR_NAME": "  Ünï <Code>, ", "GIT_COMMITTER_NAME": "'quoted' \\ name"},
}


@pytest.mark.parametrize("way", ["here", "branch", "hooks", "branch with hooks"])
@pytest.mark.parametrize("source", [*IDENTITIES, "author.name", "hasconfig", "onbranch", "EMAIL"])
def test_who_commits_and_when_is_gits_own_answer(git, make_repo, home, monkeypatch, source, way):
    repo = make_repo(origin="https://example.org/team/repo.git")
    extra = home / "extra"
    extra.write_text("[user]\n\tname = Included\n\temail = included@example.org\n")
    for name, value in IDENTITIES.get(source, {}).items():
        monkeypatch.setenv(name, value)
    if source == "author.name":
        git("config", "author.name", "Author Only", cwd=repo)
        git("config", "committer.email", "committer@example.org", cwd=repo)
    elif source == "hasconfig":
        with open(home / ".gitconfig", "a") as file:
            file.write(f'[includeIf "hasconfig:remote.*.url:https://example.org/**"]\n\tpath = {extra}\n')
    elif source == "onbranch":
        with open(home / ".gitconfig", "a") as file:
            file.write(f'[includeIf "onbranch:main"]\n\tpath = {extra}\n')
    elif source == "EMAIL":
        (home / ".gitconfig").write_text("[user]\n\tname = Ada\n")
        monkeypatch.setenv("EMAIL", "from-email@example.org")
    if "hooks" in way:
        hook(repo, "pre-commit", "exit 0")
    branch = "b" if way.startswith("branch") else None
    if branch is None:
        write(repo, M1, FIRST)

    def people() -> list[str]:
        said = [git("var", f"GIT_{role}_IDENT", cwd=repo) for role in ("AUTHOR", "COMMITTER")]
        return said if source == "dates" else [one.rpartition("> ")[0] + ">" for one in said]

    if source == "onbranch":
        assert people()[0] == "Included <included@example.org>"
    if source == "onbranch" and way == "branch with hooks":
        # There the branch that counts is the one that is committed to, as after `git switch`.
        git("switch", "-q", "-c", "b", cwd=repo)
        wanted = people()
        git("switch", "-q", "main", cwd=repo)
        git("branch", "-q", "-D", "b", cwd=repo)
        assert wanted[0] != people()[0]
    else:
        wanted = people()
    result = provider(repo).commit({M1: FIRST}, message="Remember", branch=branch)
    raw = git("cat-file", "commit", result.commit, cwd=repo).splitlines()
    told = [next(x for x in raw if x.startswith(role)).partition(" ")[2] for role in ("author", "committer")]
    assert [one if source == "dates" else one.rpartition("> ")[0] + ">" for one in told] == wanted
    name, _, mail = wanted[1].partition(" <")
    if source != "dates":
        for ref in [branch] if branch else ["HEAD", "main"]:
            log = git("reflog", "show", "--format=%gn <%ge> %gs", ref, cwd=repo).splitlines()
            assert log[0] == f"{name} <{mail} commit: Remember"
            assert sum("commit: Remember" in line for line in log) == 1


def test_a_place_that_is_no_folder_is_named(git, make_repo, tmp_path: Path):
    repo = make_repo()
    (repo / ".ai").write_text("a file\n")
    refusal = same(git, repo, lambda: provider(repo).commit({M1: None}, message="x"))
    assert str(repo / ".ai") in refusal.message

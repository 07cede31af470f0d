"""Signed commits, names that are no ASCII: told and stored right, whatever git is set to print."""

from __future__ import annotations

import subprocess

import needed
import pytest
from kinds import FOLDER, NEW, Stage

from openmemex.git.provider import GitProvider
from tests.git.commits import FIRST, M1, hook, provider, write

NAME = "Jörg Größe"
SETTINGS = [(), ("i18n.commitEncoding",), ("i18n.logOutputEncoding",)]
encodings = pytest.mark.parametrize("settings", SETTINGS, ids=lambda names: "".join(names) or "UTF-8")


def put(git, settings):
    for name in settings:
        git("config", "--global", name, "ISO-8859-1")


@pytest.fixture
def signed(git, home):
    """Every commit from here on is signed, and `git log` checks it and says so between its lines."""
    needed.program("ssh-keygen")
    key = home / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    for setting, value in (
        ("gpg.format", "ssh"),
        ("user.signingKey", str(key)),
        ("commit.gpgSign", "true"),
        ("log.showSignature", "true"),
    ):
        git("config", "--global", setting, value)


def test_signatures_that_git_checks_are_no_part_of_what_it_tells(git, tmp_path, signed, om):
    stage = Stage(git, tmp_path.resolve())
    here = stage.clone()
    root = git("rev-list", "--max-parents=0", "HEAD", cwd=here)
    assert "No " in git.run("log", "--format=%H", root, cwd=here).stdout  # no signers' file: git says so
    assert provider(here).identity().root_commit == root
    assert om("where", cwd=here)["project"]
    stage.share(NEW, "The new decision: larch for every gate.")
    got = provider(here).pull(FOLDER)
    assert got.authors == ("Ada Example",)
    found = provider(here).versions(f"{NEW}.md", [FOLDER])
    assert [(one.status, one.by) for one in found] == [("A", "Ada Example")]
    revision = provider(here).revision("2039-01-01")
    assert revision.commit == provider(here).revision("HEAD").commit == got.after
    assert len(provider(here).names_in_history("01K6AB", [FOLDER])) == 2
    assert provider(here).unpushed(FOLDER) == 0
    hook(here, "pre-commit", "exit 0")
    made = provider(here).commit({M1: write(here, M1, FIRST)}, message="x")
    assert made.files == (M1,)


def test_what_the_first_commit_brought_is_told_where_git_would_not_show_it(git, make_repo):
    repo = make_repo(commits=0)
    git("config", "log.showRoot", "false", cwd=repo)
    hook(repo, "pre-commit", "exit 0")
    made = provider(repo).commit({M1: write(repo, M1, FIRST)}, message="x")
    folder, name = M1.rsplit("/", 1)
    assert made.files == (M1,)
    assert [one.status for one in provider(repo).versions(name, [folder])] == ["A"]
    assert provider(repo).names_in_history(name[:8], [folder]) == [name[:-3]]


@encodings
@pytest.mark.parametrize("hooks", [False, True], ids=["no hooks", "hooks"])
@pytest.mark.parametrize("branch", [None, "b"])
def test_author_and_message_are_stored_as_the_utf_8_that_they_are(
    git, make_repo, monkeypatch, settings, hooks, branch
):
    repo = make_repo()
    put(git, settings)
    git("config", "user.name", NAME, cwd=repo)
    if hooks:
        hook(repo, "pre-commit", "exit 0")
    write(repo, M1, FIRST)
    made = provider(repo).commit({M1: FIRST}, message="Größe: “quer”", branch=branch)
    raw = git("cat-file", "commit", made.commit, cwd=repo)
    assert "\nencoding" not in raw and f"\nauthor {NAME} <" in raw and raw.endswith("Größe: “quer”")


@encodings
def test_a_pull_and_a_history_tell_names_as_people_write_them(git, tmp_path, settings):
    stage = Stage(git, tmp_path.resolve())
    here = stage.clone()
    git("config", "--global", "user.name", NAME)
    stage.share(NEW, "The new decision: larch for every gate.")
    put(git, settings)
    assert provider(here).pull(FOLDER).authors == (NAME,)
    assert [one.by for one in provider(here).versions(f"{NEW}.md", [FOLDER])] == [NAME]


def test_a_commit_in_another_encoding_is_told_in_the_readers(git, make_repo):
    repo = make_repo()
    raw = f"tree {git('rev-parse', 'HEAD^{tree}', cwd=repo)}\nparent {git('rev-parse', 'HEAD', cwd=repo)}\n"
    raw += (
        f"author {NAME} <j@example.org> 1700000000 +0000\ncommitter {NAME} <j@example.org> 1700000000 +0000\n"
    )
    (repo / "raw").write_bytes(f"{raw}encoding ISO-8859-1\n\ngröße\n".encode("latin-1"))
    side = git("hash-object", "-t", "commit", "-w", "raw", cwd=repo)
    put(git, SETTINGS[2])
    write(repo, "a.txt", b"mine\n")
    git("add", "a.txt", cwd=repo)
    git("commit", "-qm", "mine", cwd=repo)
    (repo / ".git" / "CHERRY_PICK_HEAD").write_text(side + "\n")
    assert provider(repo).sides().theirs == f'commit {side[:10]} "größe"'


@encodings
def test_the_side_that_a_conflict_is_told_of_is_in_its_own_words(git, make_repo, settings):
    repo = make_repo()
    put(git, settings[1:] if settings == SETTINGS[1] else settings)
    for branch, data in (("topic", b"topic\n"), ("main", b"main\n")):
        git("switch", "-q", *(["-c"] if branch == "topic" else []), branch, cwd=repo)
        write(repo, M1, data)
        git("add", "-A", cwd=repo)
        git("commit", "-qm", "größe", cwd=repo)
    assert git.run("cherry-pick", "topic", cwd=repo).returncode == 1
    picked = git("rev-parse", "topic", cwd=repo)
    assert provider(repo).sides(provider(repo).unmerged()).theirs == f'commit {picked[:10]} "größe"'


@pytest.mark.parametrize("branch", [None, "b"])
def test_a_line_that_looks_like_gits_scissors_stays_in_the_message(git, make_repo, branch):
    repo = make_repo()
    hook(repo, "pre-commit", "exit 0")
    git("config", "commit.verbose", "true", cwd=repo)
    message = f"Subject\n\nabove\n# {'-' * 24} >8 {'-' * 24}\nbelow"
    write(repo, M1, FIRST)
    made = provider(repo).commit({M1: FIRST}, message=message, branch=branch)
    assert git("log", "-1", "--format=%B", made.commit, cwd=repo) == message + "\n"


def test_hooks_and_filters_see_the_persons_own_settings(git, make_repo):
    repo = make_repo()
    git("config", "log.showSignature", "true", cwd=repo)
    put(git, SETTINGS[2])
    told = repo / "told"
    asks = (
        f"git config --get log.showSignature >>'{told}'; git config --get i18n.logOutputEncoding >>'{told}'"
    )
    hook(repo, "pre-commit", asks)
    hook(repo, "post-commit", asks)
    found = GitProvider.open(str(repo))
    assert found is not None
    found.commit({M1: write(repo, M1, FIRST)}, message="x")
    assert told.read_text() == "true\nISO-8859-1\n" * 2

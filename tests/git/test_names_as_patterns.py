"""A folder whose name git could read as a pattern is that folder, and its neighbours are left alone."""

from __future__ import annotations

import pytest

from openmemex.errors import OpenMemexError
from tests.git.commits import FIRST, SECOND, changed_by, hook, provider, write

ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV.md"
# Folder, and the neighbour that a pattern of that name fits too.
FOLDERS = [("mem[1]", "mem1"), ("mem*", "memory"), ("me?", "mem"), (":(glob)mem*", "memory"), (":mem", "mem")]


@pytest.fixture(params=FOLDERS, ids=[folder for folder, _ in FOLDERS])
def places(request, git, make_repo):
    """A repository in which both folders hold one committed file of the same name."""
    repo = make_repo()
    folder, neighbour = request.param
    for place in (folder, neighbour):
        write(repo, f"{place}/{ID}", FIRST)
    git("add", ".", cwd=repo)
    git("commit", "-qm", "both", cwd=repo)
    return repo, f"{folder}/{ID}", f"{neighbour}/{ID}"


def of_neighbour(git, repo, path):
    return [git(*words, "--", f":(literal){path}", cwd=repo) for words in (["ls-files", "-s"], ["diff"])]


@pytest.mark.parametrize("hooks", [False, True], ids=["no hooks", "hooks"])
@pytest.mark.parametrize("staged", [False, True], ids=["edited", "staged"])
def test_a_commit_takes_no_neighbour_along(git, places, hooks, staged):
    repo, mine, other = places
    if hooks:
        hook(repo, "pre-commit", "exit 0")
    write(repo, other, SECOND)
    if staged:
        git("add", other, cwd=repo)
    before = of_neighbour(git, repo, other)
    provider(repo).commit({mine: write(repo, mine, SECOND)}, message="x")
    assert changed_by(git, repo) == [mine]
    assert of_neighbour(git, repo, other) == before
    (repo / mine).unlink()
    provider(repo).commit({mine: None}, message="gone")
    assert git("show", "--format=", "--name-status", cwd=repo) == f"D\t{mine}"
    assert of_neighbour(git, repo, other) == before and (repo / other).read_bytes() == SECOND


def test_a_commit_that_is_refused_puts_no_neighbour_back(git, places):
    repo, mine, other = places
    write(repo, other, SECOND)
    git("add", other, cwd=repo)
    before = git("ls-files", "-s", cwd=repo)
    hook(repo, "pre-commit", "exit 1")
    with pytest.raises(Exception, match="refused"):
        provider(repo).commit({mine: write(repo, mine, SECOND)}, message="x")
    assert git("ls-files", "-s", cwd=repo) == before


def test_a_neighbour_in_conflict_is_no_hindrance(git, places):
    repo, mine, other = places
    git("switch", "-q", "-c", "side", cwd=repo)
    for branch, data in (("side", b"side\n"), ("main", b"main\n")):
        git("switch", "-q", branch, cwd=repo)
        write(repo, other, data)
        git("commit", "-qam", branch, cwd=repo)
    git.run("merge", "--squash", "side", cwd=repo)
    stages = git("ls-files", "-u", cwd=repo)
    assert stages.count("\n") == 2
    assert provider(repo).folder_status(mine.partition("/")[0]) == []
    assert provider(repo).folder_status(other.partition("/")[0]) == [(other, "conflicted")]
    provider(repo).commit({mine: write(repo, mine, SECOND)}, message="x")
    assert changed_by(git, repo) == [mine] and git("ls-files", "-u", cwd=repo) == stages
    assert provider(repo).unmerged([mine.partition("/")[0]]) == []


def test_status_and_names_of_the_past_tell_of_the_folder_alone(git, places):
    repo, mine, other = places
    folder, neighbour = (path.partition("/")[0] for path in (mine, other))
    write(repo, other, SECOND)
    write(repo, other.replace("01A", "01B"), FIRST)
    assert provider(repo).folder_status(folder) == []
    git("add", ".", cwd=repo)
    git("commit", "-qm", "of the neighbour", cwd=repo)
    assert provider(repo).names_in_history("01BRZ3", [folder]) == []
    assert len(provider(repo).names_in_history("01BRZ3", [neighbour])) == 1


def test_commits_that_wait_to_be_pushed_are_counted_for_the_folder_alone(git, places, make_remote):
    repo, mine, other = places
    make_remote(repo)
    git("fetch", "-q", "origin", cwd=repo)
    write(repo, other, SECOND)
    git("add", ".", cwd=repo)
    git("commit", "-qm", "of the neighbour", cwd=repo)
    assert provider(repo).unpushed(mine.partition("/")[0]) == 0
    assert provider(repo).unpushed(other.partition("/")[0]) == 1


def test_a_merge_in_progress_joins_the_files_of_the_folder_alone(git, places):
    repo, mine, other = places
    more = mine.replace("01A", "01B")
    git("switch", "-q", "-c", "side", cwd=repo)
    write(repo, mine, SECOND)
    write(repo, more, FIRST)
    git("add", ".", cwd=repo)
    git("commit", "-qm", "side", cwd=repo)
    git("switch", "-q", "main", cwd=repo)
    write(repo, other, SECOND)
    git("commit", "-qam", "main", cwd=repo)
    git("merge", "-q", "--no-ff", "--no-commit", "side", cwd=repo)
    (join,) = provider(repo).joined([mine.partition("/")[0]])
    staged = provider(repo).staged([mine, more])
    assert join.commit is None and set(staged) == {mine, more}
    assert {one.path: one.result for one in join.files.values()} == staged


def test_a_rule_that_ignores_the_neighbour_ignores_it_alone(git, places):
    repo, mine, other = places
    (repo / ".gitignore").write_text(f"/{other.partition('/')[0]}/\n")
    new, theirs = mine.replace("01A", "01B"), other.replace("01A", "01B")
    write(repo, theirs, FIRST)
    provider(repo).commit({new: write(repo, new, FIRST)}, message="x")
    assert changed_by(git, repo) == [new]
    with pytest.raises(OpenMemexError, match="is ignored by git") as refused:
        provider(repo).commit({theirs: FIRST}, message="x")
    assert refused.value.message.startswith(f"{theirs} is ignored by git (.gitignore:1:")


def test_a_receipt_of_a_pull_tells_of_the_folder_alone(git, places, make_remote, clone):
    repo, mine, other = places
    theirs = clone(make_remote(repo), "theirs")
    write(theirs, other, SECOND)
    git("commit", "-qam", "of the neighbour", cwd=theirs, env={"GIT_AUTHOR_NAME": "Neighbour"})
    git("push", "-q", cwd=theirs)
    folder = mine.partition("/")[0]
    got = provider(repo).pull(folder)
    assert (got.changes, got.authors) == ((), ()) and (repo / other).read_bytes() == SECOND

"""After a commit nothing takes the memory for changed, not even plumbing that only compares stamps."""

from __future__ import annotations

import pytest

from tests.git.commits import FIRST, M1, M2, SECOND, busy_repo, hook, provider, write

CRLF = FIRST.replace(b"\n", b"\r\n")


@pytest.mark.parametrize("hooks", [False, True], ids=["no hooks", "hooks"])
@pytest.mark.parametrize("kind", ["as it is", "filter", "CRLF"])
def test_stamps_are_those_of_the_files_whichever_way_they_were_staged(git, make_repo, kind, hooks):
    repo = busy_repo(git, make_repo)
    data = {"as it is": FIRST, "filter": FIRST, "CRLF": CRLF}[kind]
    if kind == "filter":
        git("config", "filter.loud.clean", "tr a-z A-Z", cwd=repo)
        (repo / ".git" / "info" / "attributes").write_text("*.md filter=loud\n")
    elif kind == "CRLF":
        git("config", "core.autocrlf", "input", cwd=repo)
    if hooks:
        hook(repo, "pre-commit", "exit 0")
    before = [git(*words, cwd=repo) for words in (["diff-files"], ["diff-index", "--cached", "HEAD"])]
    for files in ({M1: data, M2: data}, {M1: SECOND}, {M2: None}):
        for path, text in files.items():
            (repo / path).unlink() if text is None else write(repo, path, text)
        provider(repo).commit(files, message="x")
        after = [git(*words, cwd=repo) for words in (["diff-files"], ["diff-index", "--cached", "HEAD"])]
        assert after == before  # no refresh of ours or of git's in between


def test_a_history_names_whole_blobs_and_commits_whatever_is_abbreviated(git, make_repo):
    repo = make_repo()
    folder, name = M1.rsplit("/", 1)
    for data in (FIRST, SECOND):
        provider(repo).commit({M1: write(repo, M1, data)}, message="x")
    git("config", "core.abbrev", "5", cwd=repo)
    git("config", "log.abbrevCommit", "true", cwd=repo)
    found = provider(repo).versions(name, [folder])
    revs = [git("rev-parse", f"HEAD~{n}", f"HEAD~{n}:{M1}", cwd=repo).split() for n in (0, 1)]
    assert [[one.commit, one.oid] for one in found] == revs
    assert found[0].before == (revs[1][1],)

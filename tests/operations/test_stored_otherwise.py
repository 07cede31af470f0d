"""Memories that git would store as something else than their text: told by doctor, and by submit."""

from __future__ import annotations

import subprocess

import pytest

from tests import needed
from tests.git.commits import hook


def path_of(memory: str) -> str:
    return f".ai/open-memex/{memory}.md"


def objections(om, repo, code=1) -> list[dict[str, str]]:
    checks = om("doctor", cwd=repo, code=code)["checks"]
    return [check for check in checks if check["name"] == "memory folder" and not check["ok"]]


@pytest.fixture
def filtered(git, make_repo):
    """A repository in which a filter has all Markdown."""

    def make(kind: str):
        repo = make_repo()
        if kind == "lfs":
            needed.program("git-lfs")
            git("lfs", "install", "--local", "--skip-repo", cwd=repo)
            rule = "*.md filter=lfs diff=lfs merge=lfs -text"
        elif kind == "lfs by another name":
            needed.program("git-lfs")
            git("config", "filter.big.clean", "git-lfs clean -- %f", cwd=repo)
            git("config", "filter.big.smudge", "git-lfs smudge -- %f", cwd=repo)
            rule = "*.md filter=big -text"
        else:
            git("config", "filter.own.clean", {"secret": "tr a-z n-za-m", "harmless": "cat"}[kind], cwd=repo)
            git("config", "filter.own.smudge", {"secret": "tr n-za-m a-z", "harmless": "cat"}[kind], cwd=repo)
            rule = "*.md filter=own"
        (repo / ".gitattributes").write_text(rule + "\n")
        git("add", ".gitattributes", cwd=repo)
        git("commit", "-qm", "Rules", cwd=repo)
        return repo

    return make


@pytest.mark.parametrize("hooks", [False, True], ids=["no hooks", "hooks"])
@pytest.mark.parametrize("branch", [None, "side"])
@pytest.mark.parametrize("kind", ["lfs", "lfs by another name", "secret"])
def test_a_filter_that_takes_the_text_away_is_told_by_submit(om, filtered, kind, branch, hooks) -> None:
    repo = filtered(kind)
    if hooks:
        hook(repo, "pre-commit", "exit 0")
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    done = om("submit", memory, *(["--branch", branch] if branch else []), cwd=repo)
    [notice] = [one for one in done["notices"] if one["kind"] == "stored-otherwise"]
    assert path_of(memory) in notice["text"] and "doctor" in notice["text"]
    assert ("LFS pointer" in notice["text"]) == kind.startswith("lfs")


@pytest.mark.parametrize("kind", ["lfs", "lfs by another name", "secret"])
def test_doctor_objects_and_what_it_tells_mends_it(om, git, filtered, kind) -> None:
    repo = filtered(kind)
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    om("submit", memory, cwd=repo)
    [told] = objections(om, repo)
    assert ("LFS" in told["text"]) == kind.startswith("lfs")
    assert told["fix"].startswith("open-memex init --git")
    om("init", "--git", cwd=repo)
    again = told["fix"].partition("stored already: ")[2].partition(", and")[0]
    subprocess.run(again, shell=True, cwd=repo, check=True)
    git("add", "--", ".ai", cwd=repo)
    git("commit", "-qm", "As text", cwd=repo)
    assert objections(om, repo, code=0) == []
    assert "the kettle is red" in git("show", f"HEAD:{path_of(memory)}", cwd=repo)
    other = om("add", "lunch is at noon", cwd=repo)["id"]
    assert om("submit", other, cwd=repo)["notices"] == []


def test_doctor_keeps_nothing_in_the_store_of_lfs(om, filtered) -> None:
    repo = filtered("lfs")
    objections(om, repo)
    assert not (repo / ".git" / "lfs" / "objects").exists()


def test_a_filter_that_leaves_memories_alone_is_none_of_our_business(om, filtered) -> None:
    repo = filtered("harmless")
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    assert om("submit", memory, cwd=repo)["notices"] == []
    assert objections(om, repo, code=0) == []


def test_a_filter_that_fails_is_told_with_its_reason(om, git, filtered) -> None:
    repo = filtered("harmless")
    git("config", "filter.own.clean", "no-such-program", cwd=repo)
    git("config", "filter.own.required", "true", cwd=repo)
    [told] = objections(om, repo)
    assert "filter=own" in told["text"] and "no-such-program" in told["text"]


def test_an_encoding_in_which_git_stores_memories_is_told(om, git, make_repo) -> None:
    repo = make_repo()
    (repo / ".gitattributes").write_text("*.md text working-tree-encoding=UTF-16\n")
    [told] = objections(om, repo)
    assert "UTF-16" in told["text"]
    om("init", "--git", cwd=repo)
    assert objections(om, repo, code=0) == []


def test_a_rule_of_this_clone_alone_is_named_where_ours_is_in_place(om, git, filtered) -> None:
    repo = filtered("secret")
    om("init", "--git", cwd=repo)
    info = repo / ".git" / "info"
    info.mkdir(exist_ok=True)
    (info / "attributes").write_text("*.md filter=own\n")
    [told] = objections(om, repo)
    assert ".git/info/attributes" in told["fix"]

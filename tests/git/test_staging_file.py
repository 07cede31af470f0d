"""What the staging area's file surely does not hold: never a name that git has there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmemex.git import staging_file

_PARTS = st.text("ab.é~", min_size=1, max_size=4).filter(lambda part: part not in (".", "..", ".git"))
_NAMES = st.lists(_PARTS, min_size=1, max_size=3).map("/".join)


def _index(repo: Path) -> str:
    return str(repo / ".git" / "index")


def _stage(git, repo: Path, names: list[str], mode: str = "100644") -> list[str]:
    """Put entries for `names` there, as many as git takes; the names that are there then."""
    oid = git("hash-object", "-w", "--stdin", cwd=repo, stdin="x\n")
    lines = "".join(f"{mode} {oid} 0\t{name}\0" for name in names)
    git("update-index", "-z", "--index-info", cwd=repo, stdin=lines)
    return git("ls-files", "-z", cwd=repo).split("\0")[:-1]


@given(st.lists(_NAMES, min_size=1, max_size=12, unique=True), st.lists(_NAMES, max_size=6))
def test_every_name_that_git_has_there_may_be_there(git, make_repo, tmp_path_factory, names, others):
    repo = tmp_path_factory.mktemp("r")
    git("init", "-q", ".", cwd=repo)
    there = _stage(git, repo, names)
    assert set(there) <= set(staging_file.may_hold(_index(repo), [*names, *others]))


def test_a_name_that_is_only_the_end_or_the_beginning_of_others_is_not_there(git, make_repo):
    repo = make_repo()
    _stage(git, repo, ["deep/.gitattributes", "a.md.bak", "sub/a.md"])
    assert staging_file.may_hold(_index(repo), [".gitattributes", "a.md", "deep", "sub/a.md"]) == ["sub/a.md"]


@pytest.mark.parametrize("length", [4094, 4095, 4096, 5000])
def test_long_names_are_seen(git, make_repo, length):
    repo = make_repo()
    name = "/".join(["d" * 200] * 40)[: length - 2] + "/x"
    assert name in _stage(git, repo, [name])
    assert staging_file.may_hold(_index(repo), [name]) == [name]


def test_entries_with_flags_of_their_own_and_conflicts_are_seen(git, make_repo):
    repo = make_repo()
    (repo / "new.md").write_text("x\n")
    git("add", "-N", "new.md", cwd=repo)  # makes it version 3
    oid = git("hash-object", "-w", "--stdin", cwd=repo, stdin="x\n")
    git("update-index", "--index-info", cwd=repo, stdin=f"100644 {oid} 2\tours.md\n")
    asked = ["new.md", "ours.md", "none.md"]
    assert staging_file.look(_index(repo)).version == 3
    assert staging_file.may_hold(_index(repo), asked) == ["new.md", "ours.md"]


@pytest.mark.parametrize("kind", ["version 4", "split", "sparse"])
def test_of_a_file_that_does_not_name_all_that_is_staged_nothing_is_left_out(git, make_repo, kind):
    repo = make_repo()
    _stage(git, repo, ["deep/a/b.md", "other/c.md"])
    git("commit", "-q", "-m", "more", cwd=repo)
    if kind == "version 4":
        git("update-index", "--index-version", "4", cwd=repo)
    elif kind == "split":
        git("update-index", "--split-index", cwd=repo)
    else:
        git("sparse-checkout", "set", "--cone", "--sparse-index", "other", cwd=repo)
    assert staging_file.may_hold(_index(repo), ["deep/a/b.md", "none.md"]) == ["deep/a/b.md", "none.md"]


def test_without_a_file_nothing_is_staged_and_an_odd_one_is_left_to_git(make_repo, tmp_path):
    assert staging_file.may_hold(str(tmp_path / "index"), ["a.md"]) == []
    (tmp_path / "odd").write_bytes(os.urandom(400))
    assert staging_file.may_hold(str(tmp_path / "odd"), ["a.md"]) == ["a.md"]
    assert staging_file.may_hold(str(tmp_path), ["a.md"]) == ["a.md"]

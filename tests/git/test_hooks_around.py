"""Hooks that belong to no commit of ours: git runs them, and a memory can be shared from inside of one."""

from __future__ import annotations

import json
import sys

import pytest
from kinds import FOLDER, NEW, Stage

from tests.git.commits import FIRST, M1, busy_repo, changed_by, head, hook, own_work, provider, same, write

MEMEX = f"{sys.executable} -m openmemex"


@pytest.fixture
def stage(git, tmp_path):
    return Stage(git, tmp_path.resolve())


@pytest.mark.parametrize("branch", [None, "memex/out"])
def test_a_hook_that_forbids_the_ref_is_obeyed_and_heard_and_the_staging_area_is_as_before(
    git, make_repo, branch
):
    repo = busy_repo(git, make_repo)
    write(repo, M1, FIRST)
    ref = f"refs/heads/{branch or 'main'}"
    hook(
        repo,
        "reference-transaction",
        f'[ "$1" = prepared ] || exit 0\nwhile read old new ref; do [ "$ref" != {ref} ] || '
        "{ echo no ref today >&2; exit 1; }; done",
    )
    refusal = same(git, repo, lambda: provider(repo).commit({M1: FIRST}, message="x", branch=branch))
    assert "no ref today" in str(refusal)
    (repo / ".git" / "hooks" / "reference-transaction").unlink()
    made = provider(repo).commit({M1: FIRST}, message="x", branch=branch)
    assert changed_by(git, repo, made.commit) == [M1]


def test_what_a_pull_brought_is_told_to_the_post_merge_hook(git, stage, tmp_path):
    here = stage.clone()
    stage.share(NEW, "The new decision: larch for every gate.")
    hook(here, "post-merge", f'git rev-parse HEAD >{tmp_path}/told; echo "$1" >>{tmp_path}/told; exit 1')
    got = provider(here).pull(FOLDER)
    assert (tmp_path / "told").read_text().split() == [got.after, "0"]
    assert got.changes == (("A", f"{FOLDER}/{NEW}.md"),) and git("status", "--porcelain", cwd=here) == ""


@pytest.mark.parametrize("which", ["post-merge", "pre-push"])
def test_a_memory_is_shared_from_inside_a_hook(git, om, stage, tmp_path, which):
    """git sets GIT_DIR and more for its hooks; what is submitted there is its file alone all the same."""
    here = stage.clone()
    memory = om("add", "Birch is for the shed.", cwd=here)["id"]
    hook(here, which, f"{MEMEX} submit {memory} --json >{tmp_path}/out 2>&1")
    (here / "app.txt").write_text("staged\n")
    git("add", "app.txt", cwd=here)
    (here / "app.txt").write_text("edited\n")
    before = own_work(git, here)
    if which == "post-merge":
        stage.share(NEW, "The new decision: larch for every gate.")
        git("pull", "-q", "--no-rebase", cwd=here)
    else:
        git("push", "-q", "origin", "HEAD:refs/heads/other", cwd=here)
    done = json.loads((tmp_path / "out").read_text())
    assert done["commit"] == head(git, here) and changed_by(git, here) == [f"{FOLDER}/{memory}.md"]
    assert [x for x in own_work(git, here) if "branch." not in x] == [x for x in before if "branch." not in x]
    assert git("fsck", "--strict", "--no-dangling", cwd=here) == ""


def test_inside_a_commit_of_the_persons_a_submit_waits_and_then_leaves_that_commit_alone(
    git, om, stage, tmp_path
):
    here = stage.clone()
    memory = om("add", "Birch is for the shed.", cwd=here)["id"]
    hook(here, "pre-commit", f"{MEMEX} submit {memory} --json >{tmp_path}/out; echo $? >{tmp_path}/code")
    (here / "app.txt").write_text("mine\n")
    git("commit", "-q", "-a", "-m", "mine", cwd=here)
    assert (tmp_path / "code").read_text() == "1\n"
    assert "index.lock" in json.loads((tmp_path / "out").read_text())["error"]["message"]
    assert changed_by(git, here) == ["app.txt"] and git("status", "--porcelain", cwd=here) == ""
    (here / ".git" / "hooks" / "pre-commit").unlink()
    assert om("submit", memory, cwd=here)["files"] == [f"{FOLDER}/{memory}.md"]

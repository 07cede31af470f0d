"""Where a repository's memories have no files, that is said, and what to do: bare, and sparse checkouts."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest

from openmemex.memory import frontmatter
from openmemex.memory.ids import new_id
from openmemex.memory.model import Memory

FOLDER = ".ai/open-memex"


@pytest.fixture
def repo(make_repo):
    return make_repo(origin="https://example.org/team/app.git")


def share(git, repo, folder):
    memory_id = new_id()
    made = Memory(memory_id, "Deploys need the VPN\n", scope="project", visibility="internal")
    (repo / folder).mkdir(parents=True)
    (repo / folder / f"{memory_id}.md").write_bytes(frontmatter.render(made))
    git("add", "-A", cwd=repo)
    git("commit", "-q", "-m", "Share", cwd=repo)
    return memory_id


@pytest.fixture
def shared(git, repo):
    """A memory that the repository holds; its id."""
    return share(git, repo, FOLDER)


LOOKS = (("search", "VPN"), ("list",))


def told(run_cli, repo, words=("list",)):
    done = run_cli(*words, cwd=repo)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("words", LOOKS)
def test_a_bare_repository_says_that_its_memories_are_read_with_at(
    run_cli, git, repo, shared, tmp_path, words
):
    bare = tmp_path / "bare.git"
    git("clone", "-q", "--bare", str(repo), str(bare))
    assert "bare repository" in told(run_cli, bare, words)
    assert "--at HEAD" in told(run_cli, bare, words)
    done = run_cli(*words, "--at", "HEAD", cwd=bare)
    assert shared in done.stdout
    assert "bare repository" not in done.stderr
    assert told(run_cli, repo, words) == ""


def test_show_in_a_bare_repository_says_it_too(run_cli, git, repo, shared, tmp_path):
    git("clone", "-q", "--bare", str(repo), str(tmp_path / "bare.git"))
    done = run_cli("show", shared, cwd=tmp_path / "bare.git")
    assert done.returncode == 1
    assert "--at HEAD" in done.stderr
    assert run_cli("show", shared, "--at", "HEAD", cwd=tmp_path / "bare.git").returncode == 0


SPARSE = {
    "cone": ("set", "--cone", "src"),
    "cone with a sparse index": ("set", "--cone", "--sparse-index", "src"),
    "cone with the folder above": ("set", "--cone", "src", ".ai/other"),
    "no cone": ("set", "--no-cone", "/src/"),
    "all but it": ("set", "--no-cone", "/*", "!/.ai/"),
}


@pytest.mark.parametrize("kind", SPARSE)
@pytest.mark.parametrize("words", LOOKS)
def test_a_sparse_checkout_without_the_folder_says_how_to_add_it(run_cli, git, repo, shared, kind, words):
    for folder in ("src", ".ai/other"):
        (repo / folder).mkdir(parents=True)
        (repo / folder / "main.txt").write_text("x\n", encoding="utf-8")
    git("add", "-A", cwd=repo)
    git("commit", "-q", "-m", "Source", cwd=repo)
    git("sparse-checkout", *SPARSE[kind], cwd=repo)
    assert not (repo / FOLDER).exists()
    note = told(run_cli, repo, words)
    assert f"leaves out {FOLDER} with 1 memory" in note
    assert told(run_cli, repo, words) == note
    assert shared in run_cli(*words, "--at", "HEAD", cwd=repo).stdout
    done = run_cli("show", shared, cwd=repo)
    assert done.returncode == 1 and "git sparse-checkout add" in done.stderr
    git(*shlex.split(note.split("`")[1])[1:], cwd=repo)
    assert (repo / FOLDER / f"{shared}.md").exists()
    assert told(run_cli, repo, words) == ""
    assert shared in run_cli(*words, cwd=repo).stdout


def test_what_is_not_there_for_another_reason_is_not_called_sparse(run_cli, git, repo, make_repo, shared):
    none = make_repo("none")
    git("sparse-checkout", "set", "--no-cone", "/*", "!/.ai/", cwd=none)
    assert told(run_cli, none) == ""
    git("sparse-checkout", "set", "--no-cone", "/*", cwd=repo)
    (repo / FOLDER / f"{shared}.md").unlink()
    assert told(run_cli, repo) == ""
    git("checkout", "-q", "--", ".", cwd=repo)
    git("sparse-checkout", "set", "--no-cone", "/*", "!/.ai/", cwd=repo)
    assert "sparse" in told(run_cli, repo)
    git("sparse-checkout", "disable", cwd=repo)
    assert told(run_cli, repo) == ""


def test_a_folder_with_an_odd_name_is_quoted_for_the_shell(run_cli, git, repo):
    folder = "my mem/it's"
    run_cli("config", "set", "memoryDir", folder, cwd=repo)
    memory_id = share(git, repo, folder)
    git("sparse-checkout", "set", "--cone", cwd=repo)
    assert not (repo / folder).exists()
    git(*shlex.split(told(run_cli, repo).split("`")[1])[1:], cwd=repo)
    assert (repo / folder / f"{memory_id}.md").exists()


@pytest.mark.parametrize("left_out", [False, True])
def test_in_a_sparse_checkout_a_later_search_starts_no_git(run_cli, git, repo, shared, left_out):
    git("sparse-checkout", "set", "--no-cone", "/*", *(["!/.ai/"] if left_out else []), cwd=repo)
    run_cli("search", "VPN", cwd=repo)
    script = "import sys; from openmemex.cli.fast import run; sys.argv[0] = 'open-memex'; sys.exit(run())"
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", script, "search", "VPN"],
        cwd=repo, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    names = {line.rsplit("|", 1)[1].strip() for line in done.stderr.splitlines() if "import time:" in line}
    assert "openmemex.operations.search" in names
    assert not names & {"subprocess", "pygit2", "openmemex.git.provider"}
    assert ("leaves out" in done.stderr) == left_out

"""Whatever converts files here, a memory's blob is the one that `git add` would make, or the same refusal."""

from __future__ import annotations

import subprocess

import pytest

from openmemex.errors import Refused
from tests import needed
from tests.git.commits import FIRST, M1, M2, busy_repo, changed_by, hook, provider, same, write

WAYS = ["here", "branch", "hooks", "branch with hooks"]
CRLF = b"---\r\nid: x\r\n---\r\ntext\r\n"
# What each file makes visible: plain text, CRLF, mixed line ends, `$Id$`, an old `$Id`, a NUL, no ASCII.
TEXTS = [
    FIRST,
    CRLF,
    b"mixed\r\nends\n",
    b"$Id$\n",
    b"$Id: 0123 $\n",
    b"nul\0\r\n",
    "\u00e4\u00f6\n".encode(),
]
FILES = {f".ai/open-memex/{number}.md": data for number, data in enumerate(TEXTS)}


def commit(repo, files, way):
    if "hooks" in way:
        hook(repo, "pre-commit", "exit 0")
    if way.startswith("branch"):
        return provider(repo).commit(files, message="x", branch="b")
    for path, data in files.items():
        write(repo, path, data)
    return provider(repo).commit(files, message="x")


def twin_blobs(git, make_repo, prepare, files):
    """The blobs of a real `git add` of the same files in a repository of the same making."""
    twin = make_repo("twin")
    prepare(twin)
    for path, data in files.items():
        write(twin, path, data)
    git("add", *files, cwd=twin)
    listed = git("ls-files", "-s", "-z", *files, cwd=twin).split("\0")[:-1]
    return {line.partition("\t")[2]: line.split(" ")[1] for line in listed}


def attributes(git, repo, lines):
    (repo / ".gitattributes").write_text(lines)
    git("add", ".gitattributes", cwd=repo)
    git("commit", "-qm", "attributes", cwd=repo)


SETTINGS = {
    "plain": lambda git, repo: None,
    "autocrlf=true": lambda git, repo: git("config", "core.autocrlf", "true", cwd=repo),
    "autocrlf=input": lambda git, repo: git("config", "core.autocrlf", "input", cwd=repo),
    "safecrlf=warn": lambda git, repo: git("config", "core.safecrlf", "warn", cwd=repo),
    "eol=crlf": lambda git, repo: git("config", "core.eol", "crlf", cwd=repo),
    "text=auto": lambda git, repo: attributes(git, repo, "*.md text=auto\n"),
    "text eol=crlf": lambda git, repo: attributes(git, repo, "*.md text eol=crlf\n"),
    "-text": lambda git, repo: attributes(git, repo, "*.md -text\n"),
    "binary": lambda git, repo: attributes(git, repo, "*.md binary\n"),
    "ident": lambda git, repo: attributes(git, repo, "*.md ident\n"),
    "macro": lambda git, repo: attributes(git, repo, "[attr]odd text ident\n*.md odd\n"),
    "filter": lambda git, repo: (
        git("config", "filter.loud.clean", "tr a-z A-Z", cwd=repo),
        attributes(git, repo, "*.md filter=loud\n"),
    ),
    "filter that nothing defines": lambda git, repo: attributes(git, repo, "*.md filter=unknown\n"),
    "filter that fails and need not work": lambda git, repo: (
        git("config", "filter.loud.clean", "false", cwd=repo),
        attributes(git, repo, "*.md filter=loud\n"),
    ),
    "ours, as init writes them": lambda git, repo: (
        git("config", "filter.loud.clean", "tr a-z A-Z", cwd=repo),
        attributes(
            git,
            repo,
            "*.md filter=loud working-tree-encoding=UTF-16LE ident\n"
            ".ai/open-memex/*.md text eol=lf -filter -ident -working-tree-encoding\n",
        ),
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_the_blob_is_the_one_of_a_real_add(git, make_repo, setting, way):
    def prepare(repo):
        SETTINGS[setting](git, repo)

    wanted = twin_blobs(git, make_repo, prepare, FILES)
    repo = make_repo()
    prepare(repo)
    result = commit(repo, FILES, way)
    rev = "b" if "branch" in way else "HEAD"
    listed = git("ls-tree", "-r", "-z", rev, ".ai", cwd=repo).split("\0")[:-1]
    assert {line.partition("\t")[2]: line.split()[2] for line in listed} == wanted == result.blobs
    assert git("fsck", "--strict", "--no-dangling", cwd=repo) == ""


@pytest.mark.parametrize("way", WAYS)
def test_another_encoding_in_the_work_tree(git, make_repo, way):
    def prepare(repo):
        attributes(git, repo, "*.md working-tree-encoding=UTF-16LE-BOM\n")

    files = {M1: "\ufefftext \u00e4\n".encode("utf-16-le")}
    wanted = twin_blobs(git, make_repo, prepare, files)
    repo = make_repo()
    prepare(repo)
    assert commit(repo, files, way).blobs == wanted
    assert git("show", f"{'b' if 'branch' in way else 'HEAD'}:{M1}", cwd=repo) == "text \u00e4"


@pytest.mark.parametrize("way", WAYS)
def test_lfs_stores_a_pointer(git, make_repo, way):
    needed.program("git-lfs")

    def prepare(repo):
        git("lfs", "install", "--local", "--skip-repo", cwd=repo)
        attributes(git, repo, "*.md filter=lfs diff=lfs merge=lfs -text\n")

    wanted = twin_blobs(git, make_repo, prepare, {M1: FIRST})
    repo = make_repo()
    prepare(repo)
    assert commit(repo, {M1: FIRST}, way).blobs == wanted
    pointer = git("show", f"{'b' if 'branch' in way else 'HEAD'}:{M1}", cwd=repo)
    assert pointer.startswith("version https://git-lfs.github.com/spec/v1")
    oid = pointer.partition("sha256:")[2].split()[0]
    stored = repo / ".git" / "lfs" / "objects" / oid[:2] / oid[2:4] / oid
    assert stored.read_bytes() == FIRST
    assert git("status", "--porcelain", cwd=repo) == ""


def test_no_file_is_fetched_from_an_lfs_server_for_the_hooks_checkout(git, make_repo):
    needed.program("git-lfs")
    repo = make_repo()
    git("lfs", "install", "--local", "--skip-repo", cwd=repo)
    attributes(git, repo, "*.bin filter=lfs diff=lfs merge=lfs -text\n")
    (repo / "big.bin").write_bytes(b"big" * 1000)
    git("add", "big.bin", cwd=repo)
    git("commit", "-qm", "big", cwd=repo)
    # As in a clone that never fetched it: nothing can answer at that address.
    subprocess.run(["rm", "-rf", repo / ".git" / "lfs"], check=True)
    git("config", "lfs.url", "http://127.0.0.1:9/none", cwd=repo)
    hook(repo, "pre-commit", "head -1 big.bin")
    result = provider(repo).commit({M1: FIRST}, message="x", branch="b")
    assert result.words == ("version https://git-lfs.github.com/spec/v1",)
    assert changed_by(git, repo, "b") == [M1]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("lines", "settings", "data"),
    [
        ("*.md filter=broken\n", {"filter.broken.clean": "false", "filter.broken.required": "true"}, FIRST),
        (
            "*.md filter=broken\n",
            {"filter.broken.clean": "no-such-program", "filter.broken.required": "true"},
            FIRST,
        ),
        ("*.md working-tree-encoding=UTF-16\n", {}, b"odd"),
        ("*.md text eol=lf\n", {"core.safecrlf": "true"}, CRLF),
        ("", {"core.safecrlf": "true", "core.autocrlf": "true"}, FIRST),
    ],
    ids=["failing filter", "no filter program", "encoding", "CRLF would go", "LF would go"],
)
def test_what_git_add_refuses_is_refused(git, make_repo, way, lines, settings, data):
    repo = busy_repo(git, make_repo)
    git("commit", "-qm", "mine", cwd=repo)
    if lines:
        attributes(git, repo, lines)
    write(repo, M2, data)
    for key, value in settings.items():
        git("config", key, value, cwd=repo)
    assert git.run("add", M2, cwd=repo).returncode != 0
    (repo / M2).unlink()
    if "branch" not in way:
        write(repo, M1, data)
    refusal = same(git, repo, lambda: commit(repo, {M1: data}, way))
    assert isinstance(refusal, Refused) and M1 in refusal.message
    assert git("branch", "--list", "b", cwd=repo) == ""


@pytest.mark.parametrize("way", ["here", "branch"])
def test_line_ends_of_a_file_that_is_there_already(git, make_repo, way):
    """`text=auto` leaves CRLF alone where the repository has it (gitattributes(5))."""

    def prepare(repo):
        write(repo, M1, CRLF)
        git("add", M1, cwd=repo)
        git("commit", "-qm", "CRLF", cwd=repo)
        attributes(git, repo, "*.md text=auto\n")

    files = {M1: CRLF + b"more\r\n"}
    wanted = twin_blobs(git, make_repo, prepare, files)
    repo = make_repo()
    prepare(repo)
    assert commit(repo, files, way).blobs == wanted


def test_attributes_that_only_the_staging_area_has_still_count(git, make_repo):
    repo = make_repo()
    git("config", "filter.loud.clean", "tr a-z A-Z", cwd=repo)
    attributes(git, repo, "*.md filter=loud\n")
    (repo / ".gitattributes").unlink()
    result = commit(repo, {M1: FIRST}, "here")
    assert "FIRST" in git("cat-file", "blob", result.blobs[M1] or "", cwd=repo)

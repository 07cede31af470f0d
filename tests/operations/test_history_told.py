"""The command history: what became of one memory, in words and for machines."""

from __future__ import annotations

import json

import needed
import pytest

FOLDER = ".ai/open-memex"


@pytest.fixture
def repo(make_repo):
    return make_repo(origin="https://example.org/team/app.git")


@pytest.fixture
def shared(om, repo):
    """A memory that was added and submitted; its id."""
    added = om(
        "add", "Deploys need the VPN\nand a ticket\n", "--type", "gotcha", "--tag", "deploy,draft", cwd=repo
    )
    om("submit", added["id"], cwd=repo)
    return added["id"]


def steps(om, repo, memory_id, **options):
    return om("history", memory_id, cwd=repo, **options)["steps"]


def changes(step):
    return {change["field"]: (change["from"], change["to"]) for change in step["changes"]}


def test_each_commit_tells_its_field_changes(om, git, repo, shared):
    om("edit", shared, "--importance", "high", "--tag", "deploy,sso", cwd=repo)
    om("edit", shared, "--body", "Deploys need the VPN\nand two tickets\n", cwd=repo)
    om("submit", shared, "-m", "Raise it", cwd=repo)
    first, second = steps(om, repo, shared)
    assert first["action"] == "added"
    assert first["commit"] == git("rev-parse", "HEAD~1", cwd=repo)
    assert first["by"] == "Ada Example"
    assert changes(first)["tags"] == (None, ["deploy", "draft"])
    assert first["review"][0]["to"] == "proposed"
    assert second["subject"] == "Raise it"
    told = changes(second)
    assert told["importance"] == ("normal", "high")
    assert told["tags"] == (["deploy", "draft"], ["deploy", "sso"])
    assert told["body"] == ("Deploys need the VPN\nand a ticket\n", "Deploys need the VPN\nand two tickets\n")
    assert "type" not in told


def test_the_text_for_people_says_it_in_words(om, run_cli, repo, shared):
    om("edit", shared, "--importance", "high", "--tag", "deploy,sso", cwd=repo)
    om("edit", shared, "--body", "Deploys need the VPN\nand two tickets\nat least\n", cwd=repo)
    om("submit", shared, cwd=repo)
    done = run_cli("history", shared, cwd=repo)
    assert done.returncode == 0
    assert "importance: normal → high" in done.stdout
    assert "tags: + sso, − draft" in done.stdout
    assert "text changed: 2 lines → 3" in done.stdout
    assert "- and a ticket" in done.stdout
    assert "+ and two tickets" in done.stdout
    assert "proposed by Ada Example" in done.stdout
    assert "\n1. " in done.stdout and "\n2. " in done.stdout


def test_an_uncommitted_change_is_the_last_step_without_a_commit(om, repo, shared):
    om("edit", shared, "--importance", "low", cwd=repo)
    last = steps(om, repo, shared)[-1]
    assert (last["commit"], last["place"]) == (None, "work tree")
    assert changes(last)["importance"] == ("normal", "low")
    (repo / FOLDER / f"{shared}.md").unlink()
    last = steps(om, repo, shared)[-1]
    assert (last["commit"], last["action"]) == (None, "deleted")


def test_a_folder_that_moved_without_a_commit_is_told(om, git, repo, shared, run_cli):
    git("mv", ".ai", ".later", cwd=repo)
    run_cli("config", "set", "memoryDir", ".later/open-memex", cwd=repo)
    last = steps(om, repo, shared)[-1]
    assert (last["commit"], last["action"]) == (None, "moved")
    assert changes(last) == {"path": (f"{FOLDER}/{shared}.md", f".later/open-memex/{shared}.md")}


def test_a_file_absent_in_a_sparse_checkout_was_not_deleted(om, git, repo, shared):
    git("sparse-checkout", "set", "--no-cone", "/*", "!/.ai/", cwd=repo)
    assert not (repo / FOLDER).exists()
    assert [step["action"] for step in steps(om, repo, shared)] == ["added"]


def test_a_deleted_memory_is_found_by_part_of_its_id_and_comes_back(om, git, repo, shared):
    git("rm", "-q", f"{FOLDER}/{shared}.md", cwd=repo)
    git("commit", "-q", "-m", "Drop it", cwd=repo)
    told = om("history", shared[-8:], cwd=repo)
    assert told["id"] == shared
    assert [step["action"] for step in told["steps"]] == ["added", "deleted"]
    git("checkout", "-q", "HEAD~1", "--", FOLDER, cwd=repo)
    assert steps(om, repo, shared)[-1]["action"] == "returned"
    git("commit", "-q", "-m", "Back", cwd=repo)
    assert [step["action"] for step in steps(om, repo, shared)] == ["added", "deleted", "returned"]


def test_a_version_that_cannot_be_read_breaks_nothing(om, git, repo, shared):
    path = repo / FOLDER / f"{shared}.md"
    good = path.read_bytes()
    path.write_bytes(b"no memory\n")
    git("commit", "-q", "-a", "-m", "Break", cwd=repo)
    path.write_bytes(good.replace(b"importance: normal", b"importance: high"))
    git("commit", "-q", "-a", "-m", "Mend", cwd=repo)
    _, broken, mended = steps(om, repo, shared)
    assert broken["unreadable"]["line"] == 1
    assert broken["changes"] == []
    assert changes(mended) == {"importance": ("normal", "high")}
    path.write_bytes(b"again none\n")
    last = steps(om, repo, shared)[-1]
    assert (last["commit"], last["unreadable"]["line"]) == (None, 1)


@pytest.fixture
def large(git, home, repo):
    """The repository, with a rule that gives every Markdown file to Git LFS."""
    needed.program("git-lfs")
    git("lfs", "install", "--skip-repo")
    (repo / ".gitattributes").write_text("*.md filter=lfs diff=lfs merge=lfs -text\n", encoding="utf-8")
    git("add", ".gitattributes", cwd=repo)
    git("commit", "-q", "-m", "Large files", cwd=repo)
    return repo


def test_what_git_lfs_keeps_is_named_and_no_change_of_the_work_tree(om, git, run_cli, large, shared):
    assert git("cat-file", "blob", f"HEAD:{FOLDER}/{shared}.md", cwd=large).startswith(
        "version https://git-lfs"
    )
    (only,) = steps(om, large, shared)
    assert only["unreadable"] == {"line": 0, "reason": "stored as a Git LFS pointer, its text is not in git"}
    done = run_cli("list", "--at", "HEAD", cwd=large)
    assert "stored as a Git LFS pointer" in done.stderr
    done = run_cli("show", shared, "--at", "HEAD", cwd=large)
    assert done.returncode == 1
    assert "stored as a Git LFS pointer" in done.stderr
    om("edit", shared, "--importance", "high", cwd=large)
    assert [step["place"] for step in steps(om, large, shared)] == ["repository", "work tree"]


@pytest.mark.parametrize("rule", ["ident", "text eol=crlf", "working-tree-encoding=UTF-16LE"])
def test_a_file_that_git_stores_in_another_form_is_no_change(om, git, repo, shared, rule):
    om("edit", shared, "--body", "Deploys $Id$\nneed it\n", cwd=repo)
    om("submit", shared, cwd=repo)
    path = repo / FOLDER / f"{shared}.md"
    (repo / ".gitattributes").write_text(f"*.md {rule}\n", encoding="utf-8")
    git("add", ".gitattributes", cwd=repo)
    git("commit", "-q", "-m", "Rule", cwd=repo)
    committed = path.read_bytes()
    path.unlink()
    git("checkout", "--", f"{FOLDER}/{shared}.md", cwd=repo)
    assert path.read_bytes() != committed
    assert [step["place"] for step in steps(om, repo, shared)] == ["repository", "repository"]


def test_a_merge_tells_only_what_neither_side_had(om, git, repo, shared):
    path = repo / FOLDER / f"{shared}.md"
    start = path.read_bytes()
    git("switch", "-q", "-c", "side", cwd=repo)
    path.write_bytes(start.replace(b"importance: normal", b"importance: low").replace(b"ticket", b"paper"))
    git("commit", "-q", "-a", "-m", "Side", cwd=repo)
    git("switch", "-q", "main", cwd=repo)
    path.write_bytes(start.replace(b"ticket", b"note").replace(b"type: gotcha", b"type: fact"))
    git("commit", "-q", "-a", "-m", "Ours", cwd=repo)
    git.run("merge", "-q", "side", cwd=repo)
    path.write_bytes(start.replace(b"importance: normal", b"importance: low").replace(b"ticket", b"letter")
                     .replace(b"type: gotcha", b"type: fact"))  # fmt: skip
    git("commit", "-q", "-a", "-m", "Join", cwd=repo)
    told = steps(om, repo, shared)
    assert sorted(step["subject"] for step in told[1:]) == ["Join", "Ours", "Side"]
    joined = told[-1]
    assert joined["action"] == "merged"
    assert changes(joined) == {
        "body": ("Deploys need the VPN\nand a note\n", "Deploys need the VPN\nand a letter\n")
    }


def test_a_merge_without_anything_of_its_own_says_so(om, git, run_cli, repo, shared):
    path = repo / FOLDER / f"{shared}.md"
    start = path.read_bytes()
    git("switch", "-q", "-c", "side", cwd=repo)
    path.write_bytes(start.replace(b"importance: normal", b"importance: low"))
    git("commit", "-q", "-a", "-m", "Side", cwd=repo)
    git("switch", "-q", "main", cwd=repo)
    path.write_bytes(start.replace(b"ticket", b"note"))
    git("commit", "-q", "-a", "-m", "Ours", cwd=repo)
    git("merge", "-q", "-m", "Join", "side", cwd=repo)
    assert steps(om, repo, shared)[-1]["changes"] == []
    assert "with nothing of its own" in run_cli("history", shared, cwd=repo).stdout


def test_a_deletion_that_a_merge_decided_is_the_last_step(om, git, run_cli, repo, shared):
    path = repo / FOLDER / f"{shared}.md"
    git("switch", "-q", "-c", "side", cwd=repo)
    git("rm", "-q", str(path), cwd=repo)
    git("commit", "-q", "-m", "Drop", cwd=repo)
    git("switch", "-q", "main", cwd=repo)
    path.write_bytes(path.read_bytes().replace(b"importance: normal", b"importance: low"))
    git("commit", "-q", "-a", "-m", "Lower", cwd=repo)
    git.run("merge", "-q", "side", cwd=repo)
    git("rm", "-q", str(path), cwd=repo)
    git("commit", "-q", "-m", "Settle", cwd=repo)
    last = steps(om, repo, shared)[-1]
    assert (last["subject"], last["action"]) == ("Settle", "deleted")
    assert changes(last) == {"file": ("there", "deleted")}
    assert run_cli("history", shared, cwd=repo).stdout.rstrip().endswith("the file was deleted")


def test_a_merge_that_kept_one_side_tells_what_it_left_out(om, git, run_cli, repo, shared):
    path = repo / FOLDER / f"{shared}.md"
    start = path.read_bytes()
    git("switch", "-q", "-c", "side", cwd=repo)
    path.write_bytes(start.replace(b"importance: normal", b"importance: low"))
    git("commit", "-q", "-a", "-m", "Side", cwd=repo)
    git("switch", "-q", "-c", "gone", "HEAD~1", cwd=repo)
    git("rm", "-q", str(path), cwd=repo)
    git("commit", "-q", "-m", "Drop", cwd=repo)
    git("switch", "-q", "main", cwd=repo)
    path.write_bytes(start.replace(b"importance: normal", b"importance: high"))
    git("commit", "-q", "-a", "-m", "Ours", cwd=repo)
    git("merge", "-q", "-s", "ours", "-m", "Keep", "side", cwd=repo)
    (kept,) = [step for step in steps(om, repo, shared) if step["subject"] == "Keep"]
    assert (kept["action"], kept["commit"]) == ("kept", git("rev-parse", "HEAD", cwd=repo))
    assert changes(kept) == {"importance": ("low", "high")}
    shown = run_cli("history", shared, cwd=repo).stdout
    assert "against the side left out:\n   importance: low → high" in shown
    git("merge", "-q", "-s", "ours", "-m", "Keep again", "gone", cwd=repo)
    last = steps(om, repo, shared)[-1]
    assert (last["subject"], last["action"]) == ("Keep again", "kept")
    assert changes(last) == {"file": ("deleted", "there")}
    assert "which the other side had deleted" in run_cli("history", shared, cwd=repo).stdout


@pytest.mark.parametrize("gone", [False, True])
def test_the_path_is_that_of_here_and_not_another_branchs(om, git, run_cli, repo, shared, gone):
    if gone:
        git("rm", "-q", f"{FOLDER}/{shared}.md", cwd=repo)
        git("commit", "-q", "-m", "Drop", cwd=repo)
    git("switch", "-q", "-c", "moving", "HEAD~1" if gone else "HEAD", cwd=repo)
    git("mv", FOLDER, "elsewhere", cwd=repo)
    git("commit", "-q", "-m", "Move", cwd=repo, env={"GIT_COMMITTER_DATE": "@1900000000 +0000"})
    git("switch", "-q", "main", cwd=repo)
    told = om("history", shared, cwd=repo)
    assert told["path"] == f"{FOLDER}/{shared}.md"
    assert told["steps"][-1]["path"] == f"elsewhere/{shared}.md"
    assert run_cli("history", shared, cwd=repo).stdout.splitlines()[1] == f"{FOLDER}/{shared}.md"


def test_a_memory_that_only_a_branch_has_is_marked(om, git, repo):
    added = om("add", "Only there", cwd=repo)
    om("submit", added["id"], "--branch", "idea", cwd=repo)
    (step,) = steps(om, repo, added["id"])
    assert (step["branch"], step["action"]) == ("idea", "added")


def test_a_memory_on_a_teammates_branch_is_found_by_part_of_its_id(
    om, git, repo, home, tmp_path, clone, make_remote
):
    git("remote", "remove", "origin", cwd=repo)
    make_remote(repo)
    added = om("add", "Only there", cwd=repo)
    om("submit", added["id"], "--branch", "idea", cwd=repo)
    git("push", "-q", "origin", "idea", cwd=repo)
    teammate = clone(tmp_path / "remote.git", "teammate")
    told = om("history", added["id"][-6:], cwd=teammate, env={"OPEN_MEMEX_HOME": str(tmp_path / "theirs")})
    assert [step["branch"] for step in told["steps"]] == ["origin/idea"]


def test_a_draft_and_a_personal_memory_tell_what_their_files_say(om, repo):
    draft = om("add", "A draft", cwd=repo)["id"]
    (step,) = steps(om, repo, draft)
    assert (step["commit"], step["place"], step["action"]) == (None, "outbox", "added")
    personal = om("add", "Mine", "--scope", "personal", cwd=repo)["id"]
    told = om("history", personal, cwd=repo)
    assert told["engine"] is None
    assert [step["place"] for step in told["steps"]] == ["personal"]


def test_the_links_of_a_replacement_are_steps(om, repo, shared):
    new = om("supersede", shared, "Deploys need no VPN", cwd=repo)["id"]
    om("submit", new, cwd=repo)
    assert changes(steps(om, repo, shared)[-1])["superseded_by"] == (None, new)
    assert changes(steps(om, repo, new)[0])["supersedes"] == (None, shared)


def test_a_secret_in_an_old_version_is_masked_and_told(om, git, run_cli, repo, shared):
    token = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    path = repo / FOLDER / f"{shared}.md"
    start = path.read_bytes()
    path.write_bytes(start + token.encode() + b"\n")
    git("commit", "-q", "-a", "-m", f"Add {token}", cwd=repo)
    path.write_bytes(start)
    git("commit", "-q", "-a", "-m", "Take it out", cwd=repo)
    done = run_cli("history", shared, cwd=repo)
    assert token not in done.stdout + done.stderr
    assert "ghp_xxxx" in done.stdout
    assert "1 version holds a secret in clear" in done.stderr
    told = run_cli("history", shared, "--json", cwd=repo)
    assert token not in told.stdout + told.stderr
    assert [notice["kind"] for notice in json.loads(told.stdout)["notices"]] == ["secret"]


def test_a_partial_clone_offline_says_what_it_lacks(om, git, repo, shared, tmp_path):
    om("edit", shared, "--importance", "high", cwd=repo)
    om("submit", shared, cwd=repo)
    git("config", "uploadpack.allowFilter", "true", cwd=repo)
    place = tmp_path / "partial"
    git("clone", "-q", "--filter=blob:none", f"file://{repo}", str(place))
    repo.rename(tmp_path / "away")
    told = om("history", shared, cwd=place)
    assert [step["unreadable"]["reason"] for step in told["steps"]] == ["its text is not in this clone"] * 2
    assert [step["changes"] for step in told["steps"]] == [[], []]
    assert "partial" in [notice["kind"] for notice in told["notices"]]


def test_a_shallow_clone_says_that_history_begins_there(om, git, repo, shared, tmp_path):
    om("edit", shared, "--importance", "high", cwd=repo)
    om("submit", shared, cwd=repo)
    git("clone", "-q", "--depth", "1", f"file://{repo}", str(tmp_path / "shallow"))
    told = om("history", shared, cwd=tmp_path / "shallow")
    assert [step["action"] for step in told["steps"]] == ["begins"]
    assert "shallow" in [notice["kind"] for notice in told["notices"]]


def test_a_shallow_clone_says_of_what_it_does_not_know_that_it_is_shallow(
    om, git, run_cli, repo, shared, tmp_path
):
    git("rm", "-q", f"{FOLDER}/{shared}.md", cwd=repo)
    git("commit", "-q", "-m", "Drop it", cwd=repo)
    git("commit", "-q", "-m", "Go on", "--allow-empty", cwd=repo)
    place = tmp_path / "shallow"
    git("clone", "-q", "--depth", "1", f"file://{repo}", str(place))
    for name in (shared, shared[-8:]):
        done = run_cli("history", name, cwd=place)
        assert done.returncode == 1
        assert "shallow clone" in done.stderr and "git fetch --unshallow" in done.stderr
        assert "shallow" not in run_cli("history", "01ARZ3NDEKTSV4RRFFQ69G5FAV", cwd=repo).stderr
    git("fetch", "-q", "--unshallow", cwd=place)
    assert [step["action"] for step in steps(om, place, shared)] == ["added", "deleted"]


def test_a_bare_repository_a_worktree_and_a_detached_head_tell_the_same(om, git, repo, shared, tmp_path):
    expected = steps(om, repo, shared)
    git("worktree", "add", "-q", "--detach", str(tmp_path / "tree"), cwd=repo)
    git("clone", "-q", "--bare", str(repo), str(tmp_path / "bare.git"))
    assert steps(om, tmp_path / "tree", shared) == expected
    assert steps(om, tmp_path / "bare.git", shared) == expected


def test_what_is_no_id_and_what_nobody_knows_are_told(run_cli, om, repo, shared):
    assert run_cli("history", "no id!", cwd=repo).returncode == 2
    done = run_cli("history", "01ARZ3NDEKTSV4RRFFQ69G5FAV", cwd=repo)
    assert done.returncode == 1
    assert "git's history" in done.stderr
    other = om("add", "Another", cwd=repo)["id"]
    assert run_cli("history", shared[:4], cwd=repo).returncode == 3
    assert other[:4] == shared[:4]


def test_outside_of_git_a_personal_memory_has_a_history(om, tmp_path):
    place = tmp_path / "plain"
    place.mkdir()
    memory_id = om("add", "Mine", "--scope", "personal", cwd=place)["id"]
    om("edit", memory_id, "--importance", "high", cwd=place)
    assert om("history", memory_id, cwd=place)["steps"][0]["place"] == "personal"


def test_without_a_git_program_a_draft_has_a_history_and_a_shared_memory_an_error(om, repo, shared, tmp_path):
    draft = om("add", "A draft", cwd=repo)["id"]
    empty = tmp_path / "empty"
    empty.mkdir()
    told = om("history", draft, cwd=repo, env={"PATH": str(empty)})
    assert [step["place"] for step in told["steps"]] == ["outbox"]
    assert "git was not found" in told["notices"][-1]["text"]
    failed = om("history", shared, cwd=repo, env={"PATH": str(empty)}, code=1)
    assert "git was not found" in failed["error"]["message"]

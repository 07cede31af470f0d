"""Resolve after every kind of merge that git has: merged by meaning, staged, and git goes on."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import needed
import pytest
from merging_repos import Conflicts, memory_id, text_of

from openmemex.errors import DecisionNeeded, NotFound, Refused, UsageError
from openmemex.memory import frontmatter
from openmemex.memory.merge import Conflict
from openmemex.operations.resolve import preview, resolve
from openmemex.settling import Case, Decided, Takes, memory_id_of, misplaced, next_commands
from openmemex.workspace import Workspace

ID = memory_id(1)
BASE = text_of(1, tags="[a]")
OURS = text_of(1, tags="[a, b]", type="gotcha", updated_at='"2026-09-27T12:00:00Z"')
THEIRS = text_of(1, tags="[a, c]", type="lesson", updated_at='"2026-09-28T12:00:00Z"')
# The same without a question left.
EASY_THEIRS = text_of(1, tags="[a, c]", importance="high", updated_at='"2026-09-28T12:00:00Z"')


@pytest.fixture(autouse=True)
def _no_editor(monkeypatch):
    monkeypatch.setenv("GIT_EDITOR", ":")


@pytest.fixture
def conflicts(make_repo, git) -> Conflicts:
    return Conflicts(make_repo(), git)


@pytest.fixture
def here() -> Iterator[Callable[[Path], Workspace]]:
    opened: list[Workspace] = []

    def open_(folder: Path) -> Workspace:
        opened.append(Workspace.open(cwd=str(folder), environ=os.environ))
        return opened[-1]

    yield open_
    for one in opened:
        one.close()


def read(file: Path):
    return frontmatter.parse(file.read_bytes(), stem=file.stem).memory


def ids(decided) -> list[str]:
    return [one.case.memory_id for one in decided]


# --- every operation, then git goes on ---


def _merge(c: Conflicts) -> list[str]:
    c.apart({1: BASE}, {1: OURS}, {1: THEIRS})
    c.git.run("merge", "topic", cwd=c.repo)
    return ["merge", "--continue"]


def _squash(c: Conflicts) -> list[str]:
    c.apart({1: BASE}, {1: OURS}, {1: THEIRS})
    c.git.run("merge", "--squash", "topic", cwd=c.repo)
    return ["commit", "-q", "-m", "squashed"]


def _cherry_pick(c: Conflicts) -> list[str]:
    c.apart({1: BASE}, {1: OURS}, {1: THEIRS})
    c.git.run("cherry-pick", "topic", cwd=c.repo)
    return ["cherry-pick", "--continue"]


def _revert(c: Conflicts) -> list[str]:
    c.commit({1: THEIRS}, "the first")
    reverted = c.commit({1: BASE}, "the second")
    c.commit({1: OURS}, "the third")
    c.git.run("revert", "--no-edit", reverted, cwd=c.repo)
    return ["revert", "--continue"]


def _rebase(backend: str) -> Callable[[Conflicts], list[str]]:
    def make(c: Conflicts) -> list[str]:
        c.apart({1: BASE}, {1: THEIRS}, {1: OURS})
        c.git("switch", "-q", "topic", cwd=c.repo)
        # Rebased, main's version is ours and topic's is theirs.
        c.git("branch", "-q", "-m", "main", "upstream", cwd=c.repo)
        c.git.run("rebase", backend, "upstream", cwd=c.repo)
        return ["rebase", "--continue"]

    return make


def _stash(c: Conflicts) -> list[str]:
    c.commit({1: BASE}, "base")
    c.write({1: THEIRS})
    c.git("stash", cwd=c.repo)
    c.commit({1: OURS}, "ours")
    c.git.run("stash", "pop", cwd=c.repo)
    return ["stash", "drop"]


def _carried(c: Conflicts) -> list[str]:
    c.commit({1: BASE}, "base")
    c.git("branch", "topic", cwd=c.repo)
    c.git("switch", "-q", "topic", cwd=c.repo)
    c.commit({1: OURS}, "ours")
    c.git("switch", "-q", "main", cwd=c.repo)
    c.write({1: THEIRS})
    c.git("checkout", "-q", "-m", "topic", cwd=c.repo)
    return ["commit", "-q", "-m", "carried"]


def _am(c: Conflicts) -> list[str]:
    c.apart({1: BASE}, {1: OURS}, {1: THEIRS})
    patch = c.git("format-patch", "-1", "--stdout", "topic", cwd=c.repo) + "\n"
    c.git.run("am", "-3", cwd=c.repo, stdin=patch)
    return ["am", "--continue"]


OPERATIONS = {
    "am": (_am, "am"),
    "merge": (_merge, "merge"),
    "merge --squash": (_squash, None),
    "cherry-pick": (_cherry_pick, "cherry-pick"),
    "revert": (_revert, "revert"),
    "rebase --merge": (_rebase("--merge"), "rebase"),
    "rebase --apply": (_rebase("--apply"), "rebase"),
    "stash pop": (_stash, None),
    "checkout -m": (_carried, None),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_after_every_kind_of_merge_fields_are_merged_and_git_goes_on(name, conflicts, here, git):
    make, operation = OPERATIONS[name]
    go_on = make(conflicts)
    rebased = name.startswith("rebase")
    assert conflicts.stages().count("\n") == 2
    before = (conflicts.stages(), conflicts.file(1).read_bytes())
    ws = here(conflicts.repo)

    found = preview(ws)
    assert found.sides.operation == operation
    (case,) = found.open
    (conflict,) = case.conflicts
    values = (conflict.field, conflict.base, conflict.ours, conflict.theirs)
    assert values == (
        ("type", "fact", "lesson", "gotcha") if rebased else ("type", "fact", "gotcha", "lesson")
    )
    assert (conflicts.stages(), conflicts.file(1).read_bytes()) == before, "looking changes nothing"

    left = resolve(ws)
    assert ids(left.open) == [ID] and not left.done
    assert (conflicts.stages(), conflicts.file(1).read_bytes()) == before, "a question leaves all as it is"

    done = resolve(ws, [ID], Takes({"type": "ours" if rebased else "theirs"}))
    assert ids(done.done) == [ID] and not done.needs_a_person
    assert conflicts.stages() == ""
    memory = read(conflicts.file(1))
    assert (memory.type, memory.tags, memory.updated_at) == (
        "lesson",
        ("a", "b", "c"),
        "2026-09-28T12:00:00Z",
    )
    (step,) = memory.review_history
    assert step.by == "Ada Example" and "type taken from" in (step.note or "")

    git(*go_on, cwd=conflicts.repo)
    if name == "stash pop":
        git("commit", "-q", "-m", "popped", cwd=conflicts.repo)
    assert conflicts.status() == ""
    assert (
        git("show", f"HEAD:{conflicts.path(1)}", cwd=conflicts.repo) + "\n" == conflicts.file(1).read_text()
    )
    assert git("stash", "list", cwd=conflicts.repo) == ""
    assert preview(here(conflicts.repo)).needs_a_person is False


def test_a_pull_with_rebase_is_named_and_resolved_like_one(make_repo, make_remote, clone, git, here):
    repo = make_repo()
    mine = Conflicts(repo, git)
    mine.commit({1: BASE}, "base")
    mate = Conflicts(clone(make_remote(repo), "mate"), git)
    mate.commit({1: OURS}, "of the mate")
    git("push", "-q", cwd=mate.repo)
    mine.commit({1: THEIRS}, "of mine")
    assert git.run("pull", "--rebase", cwd=repo).returncode == 1
    found = preview(here(repo))
    assert found.sides.ours == "origin/main (what you rebase onto)"
    assert found.sides.theirs.endswith('"of mine" of main')
    assert found.next[0].startswith(f"open-memex resolve {ID} --take type=")
    done = resolve(here(repo), [], Takes({"type": "theirs"}))
    assert done.next == ("git rebase --continue",)
    git("rebase", "--continue", cwd=repo)
    assert read(mine.file(1)).type == "lesson"
    assert "your commit" in (read(mine.file(1)).review_history[0].note or "")


def test_resolve_makes_no_commit_and_says_what_comes_next(conflicts, here, git):
    conflicts.apart({1: BASE}, {1: OURS}, {1: EASY_THEIRS})
    git.run("merge", "topic", cwd=conflicts.repo)
    tip = git("rev-parse", "HEAD", cwd=conflicts.repo)
    done = resolve(here(conflicts.repo))
    assert ids(done.done) == [ID] and done.next == ("git merge --continue",)
    assert git("rev-parse", "HEAD", cwd=conflicts.repo) == tip
    assert (conflicts.repo / ".git" / "MERGE_HEAD").exists()
    assert read(conflicts.file(1)).importance == "high" and read(conflicts.file(1)).type == "gotcha"


def test_from_a_subfolder_and_in_a_linked_work_tree(conflicts, here, git, tmp_path):
    conflicts.apart({1: BASE}, {1: OURS}, {1: EASY_THEIRS})
    tree = tmp_path / "linked"
    git("worktree", "add", "-q", "-b", "third", str(tree), "main", cwd=conflicts.repo)
    (tree / "deep" / "er").mkdir(parents=True)
    git.run("merge", "topic", cwd=tree)
    done = resolve(here(tree / "deep" / "er"))
    assert ids(done.done) == [ID]
    assert read(tree / conflicts.path(1)).tags == ("a", "b", "c")
    assert preview(here(conflicts.repo)).needs_a_person is False, "the other work tree has no conflict"
    git("merge", "--continue", cwd=tree)


def test_outside_of_a_sparse_checkout(conflicts, here, git):
    conflicts.apart({1: BASE}, {1: OURS}, {1: EASY_THEIRS})
    (conflicts.repo / "src").mkdir()
    (conflicts.repo / "src" / "x").write_text("x\n")
    conflicts.commit({}, "src")
    git("sparse-checkout", "set", "--cone", "src", cwd=conflicts.repo)
    assert not conflicts.file(1).exists()
    git.run("merge", "topic", cwd=conflicts.repo)
    assert ids(resolve(here(conflicts.repo)).done) == [ID]
    assert conflicts.stages() == ""
    git("merge", "--continue", cwd=conflicts.repo)
    assert "importance: high" in git("show", f"HEAD:{conflicts.path(1)}", cwd=conflicts.repo)


@pytest.mark.parametrize("name", OPERATIONS)
def test_where_refs_are_in_a_reftable_the_sides_are_the_same(name, tmp_path, git, here, monkeypatch):
    monkeypatch.setenv("PATH", f"{needed.new_git()}{os.pathsep}{os.environ['PATH']}")
    found = []
    for store in ("files", "reftable"):
        repo = tmp_path / store
        git("init", "-q", "-b", "main", f"--ref-format={store}", str(repo))
        monkeypatch.setenv("GIT_AUTHOR_DATE", "2026-09-26T12:00:00+00:00")
        monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-09-26T12:00:00+00:00")
        c = Conflicts(repo, git)
        make, operation = OPERATIONS[name]
        make(c)
        found.append(preview(here(repo)))
        assert found[-1].sides.operation == operation and found[-1].open
    assert found[0].sides == found[1].sides


def test_a_memory_written_during_a_rebase_outlives_its_abort(conflicts, om, git):
    conflicts.apart({1: BASE}, {1: OURS}, {1: THEIRS})
    git("switch", "-q", "topic", cwd=conflicts.repo)
    assert git.run("rebase", "main", cwd=conflicts.repo).returncode == 1
    added = om("add", "The kettle is red", cwd=conflicts.repo)["id"]
    conflicts.write({7: text_of(7, "The kettle in the repository.\n")})
    om("resolve", "--all", cwd=conflicts.repo, code=3)
    git("rebase", "--abort", cwd=conflicts.repo)
    assert {hit["id"] for hit in om("search", "kettle", cwd=conflicts.repo)["hits"]} == {added, memory_id(7)}


def test_a_repository_that_libgit2_can_not_open(tmp_path, git, here):
    repo = tmp_path / "sha256"
    repo.mkdir()
    git("init", "-q", "-b", "main", "--object-format=sha256", cwd=repo)
    c = Conflicts(repo, git)
    c.apart({1: BASE, 2: text_of(2)}, {1: OURS, 2: None}, {1: EASY_THEIRS, 2: text_of(2, importance="low")})
    git.run("merge", "topic", cwd=repo)
    done = resolve(here(repo), [], Takes(file="delete"))
    assert ids(done.done) == [ID, memory_id(2)] and not c.file(2).exists()
    git("merge", "--continue", cwd=repo)
    git("fsck", "--strict", cwd=repo)


def test_a_bare_repository_and_a_folder_without_git_are_refused(conflicts, here, git, tmp_path):
    bare = tmp_path / "bare.git"
    git("clone", "-q", "--bare", str(conflicts.repo), str(bare))
    with pytest.raises(Refused, match="bare"):
        preview(here(bare))
    (tmp_path / "plain").mkdir()
    with pytest.raises(Refused, match="not in a git repository"):
        preview(here(tmp_path / "plain"))


# --- which are settled ---


def test_next_names_all_that_a_person_has_to_decide_and_settles_nothing_as_it_stands(
    conflicts, here, git, om
):
    conflicts.apart(
        {2: text_of(2)}, {1: text_of(1, "o\n", type="todo")}, {1: text_of(1, "t\n", type="lesson")}
    )
    git.run("merge", "topic", cwd=conflicts.repo)
    (command,) = preview(here(conflicts.repo)).next
    assert command == f"open-memex resolve {ID} --take type=SIDE --take-body SIDE"
    words = command.split()[1:]
    before = conflicts.stages()
    assert "ours, theirs, base" in om(*words, cwd=conflicts.repo, code=2)["error"]["hint"]
    assert conflicts.stages() == before
    om(*[word.replace("SIDE", "ours") for word in words], cwd=conflicts.repo)
    assert conflicts.stages() == ""


def test_next_has_the_conflicts_of_all_memories_that_leave_their_conflict_together(conflicts):
    unmerged = [
        Decided(Case(memory_id(n), conflicts.path(n), None, None, None, {}, group=1), "conflict", None, clash)
        for n, clash in (
            (1, (Conflict("file", "there", "deleted", "changed"),)),
            (2, (Conflict("type", "a", "b", "c"), Conflict("body", "a", "b", "c"))),
        )
    ]
    (command,) = next_commands(unmerged, (), "git merge --continue")
    assert command == f"open-memex resolve {ID} --take-file SIDE --take type=SIDE --take-body SIDE"


def test_sides_of_fields_and_of_files_can_be_taken_in_one_go(conflicts, here, git):
    conflicts.apart(
        {1: BASE, 2: text_of(2)}, {1: OURS, 2: None}, {1: THEIRS, 2: text_of(2, importance="low")}
    )
    git.run("merge", "topic", cwd=conflicts.repo)
    done = resolve(here(conflicts.repo), [], Takes({"type": "theirs"}, "delete"))
    assert ids(done.done) == [ID, memory_id(2)] and not done.needs_a_person
    assert read(conflicts.file(1)).type == "lesson" and not conflicts.file(2).exists()


def test_a_memory_is_settled_and_the_others_that_wait_are_told(conflicts, here, git, om, run_cli):
    conflicts.apart(
        {1: BASE, 2: text_of(2)},
        {1: OURS, 2: text_of(2, type="todo")},
        {1: THEIRS, 2: text_of(2, type="lesson")},
    )
    git.run("merge", "topic", cwd=conflicts.repo)
    document = om("resolve", ID, "--take", "type=ours", cwd=conflicts.repo, code=3)
    assert document["resolved"] == [ID] and document["still"] == [memory_id(2)]
    assert document["conflicts"] == [], "what was not asked for is not listed"
    assert document["next"] == [f"open-memex resolve {memory_id(2)} --take type=SIDE"]
    document = om("resolve", memory_id(2), "--take", "type=ours", cwd=conflicts.repo)
    assert document["still"] == [] and document["next"] == ["git merge --continue"]


def test_after_a_squash_the_commit_comes_next(conflicts, here, git):
    go_on = _squash(conflicts)
    assert resolve(here(conflicts.repo), [], Takes({"type": "ours"})).next == ("git commit",)
    git(*go_on, cwd=conflicts.repo)
    assert preview(here(conflicts.repo)).next == ()


def test_what_needs_no_person_is_settled_and_the_rest_told(conflicts, here, git):
    conflicts.apart(
        {1: BASE, 2: text_of(2, tags="[x]")},
        {1: OURS, 2: text_of(2, tags="[x, y]")},
        {1: THEIRS, 2: text_of(2, tags="[x, z]")},
    )
    git.run("merge", "topic", cwd=conflicts.repo)
    stages = [line for line in conflicts.stages().splitlines() if ID in line]
    done = resolve(here(conflicts.repo))
    assert ids(done.done) == [memory_id(2)] and ids(done.open) == [ID] and done.needs_a_person
    assert read(conflicts.file(2)).tags == ("x", "y", "z")
    assert conflicts.stages().splitlines() == stages
    assert git.run("merge", "--continue", cwd=conflicts.repo).returncode == 128
    assert ids(resolve(here(conflicts.repo), [ID], Takes({"type": "base"})).done) == [ID]
    assert read(conflicts.file(1)).type == "fact"


def test_other_files_in_conflict_stay_in_conflict(conflicts, here, git):
    conflicts.commit({1: BASE}, "base")
    git("switch", "-q", "-c", "topic", cwd=conflicts.repo)
    (conflicts.repo / "app.txt").write_text("theirs\n")
    readme = conflicts.repo / conflicts.folder / "README.md"
    readme.write_text("theirs\n")
    conflicts.commit({1: EASY_THEIRS}, "theirs")
    git("switch", "-q", "main", cwd=conflicts.repo)
    (conflicts.repo / "app.txt").write_text("ours\n")
    readme.write_text("ours\n")
    conflicts.commit({1: OURS}, "ours")
    git.run("merge", "topic", cwd=conflicts.repo)
    before = (conflicts.repo / "app.txt").read_text()
    done = resolve(here(conflicts.repo))
    assert ids(done.done) == [ID] and not done.needs_a_person
    others = (f"{conflicts.folder}/README.md", "app.txt")
    assert done.others == others and done.next == ("git status",)
    assert {line.split("\t")[1] for line in conflicts.stages().splitlines()} == set(others)
    assert (conflicts.repo / "app.txt").read_text() == before


def test_a_memory_is_named_by_part_of_its_id(conflicts, here, git):
    conflicts.apart(
        {1: BASE, 2: text_of(2)},
        {1: OURS, 2: text_of(2, type="todo")},
        {1: THEIRS, 2: text_of(2, type="lesson")},
    )
    git.run("merge", "topic", cwd=conflicts.repo)
    ws = here(conflicts.repo)
    assert ids(preview(ws, ["0001"]).open) == [ID]
    with pytest.raises(DecisionNeeded, match="fits 2 memories"):
        preview(ws, [ID[:10]])
    with pytest.raises(NotFound, match="No memory 0009 is in conflict"):
        preview(ws, ["0009"])
    with pytest.raises(UsageError, match="no memory id"):
        resolve(ws, ["../x"])


def test_a_take_that_fits_no_conflict_says_what_is_in_conflict(conflicts, here, git):
    conflicts.apart({1: BASE}, {1: OURS}, {1: THEIRS})
    git.run("merge", "topic", cwd=conflicts.repo)
    before = conflicts.stages()
    with pytest.raises(UsageError, match="importance is not in conflict") as error:
        resolve(here(conflicts.repo), [ID], Takes({"importance": "ours"}))
    assert error.value.hint == "In conflict: type."
    assert conflicts.stages() == before


def test_one_take_serves_all_memories_that_have_that_conflict(conflicts, here, git):
    conflicts.apart(
        {1: BASE, 2: text_of(2), 3: text_of(3)},
        {1: OURS, 2: text_of(2, type="todo"), 3: text_of(3, "ours\n")},
        {1: THEIRS, 2: text_of(2, type="lesson"), 3: text_of(3, "theirs\n")},
    )
    git.run("merge", "topic", cwd=conflicts.repo)
    done = resolve(here(conflicts.repo), [], Takes({"type": "theirs"}))
    assert ids(done.done) == [ID, memory_id(2)] and ids(done.open) == [memory_id(3)]
    done = resolve(here(conflicts.repo), [], Takes({"body": "ours"}))
    assert ids(done.done) == [memory_id(3)] and conflicts.file(3).read_text().endswith("---\nours\n")


def test_answers_hold_for_one_memory_each(conflicts, here, git):
    conflicts.apart(
        {1: BASE, 2: text_of(2)},
        {1: OURS, 2: text_of(2, type="todo")},
        {1: THEIRS, 2: text_of(2, type="lesson")},
    )
    git.run("merge", "topic", cwd=conflicts.repo)
    answers = {ID: Takes({"type": "base"}), memory_id(2): Takes({"type": "ours"})}
    assert len(resolve(here(conflicts.repo), answers=answers).done) == 2
    assert (read(conflicts.file(1)).type, read(conflicts.file(2)).type) == ("fact", "todo")


def test_a_removed_tag_stays_removed_and_both_histories_are_kept(conflicts, here, git):
    def entry(day: int, by: str) -> str:
        return f'- {{at: "2026-09-2{day}T12:00:00Z", by: {by}, from: draft, to: proposed, note: null}}'

    def history(*entries: str) -> str:
        return "\n" + "\n".join(entries)

    h0, h1, h2 = entry(1, "ada"), entry(3, "bob"), entry(2, "cleo")
    conflicts.apart(
        {1: text_of(1, tags="[needs-review, auth]", review_history=history(h0))},
        {1: text_of(1, tags="[auth]", review_history=history(h0, h1))},
        {1: text_of(1, tags="[needs-review, auth, sso]", importance="high", review_history=history(h0, h2))},
    )
    git.run("merge", "topic", cwd=conflicts.repo)
    assert ids(resolve(here(conflicts.repo)).done) == [ID]
    memory = read(conflicts.file(1))
    assert (memory.tags, memory.importance) == (("auth", "sso"), "high")
    assert [step.by for step in memory.review_history] == ["ada", "cleo", "bob"]


def test_a_time_stamp_alone_is_no_conflict(conflicts, here, git):
    conflicts.apart(
        {1: text_of(1)},
        {1: text_of(1, importance="high", updated_at='"2026-09-26T13:00:00Z"')},
        {1: text_of(1, tags="[auth]", updated_at='"2026-09-26T14:00:00Z"')},
    )
    assert git.run("merge", "topic", cwd=conflicts.repo).returncode == 1, "git's merge of lines does not know"
    assert ids(resolve(here(conflicts.repo)).done) == [ID]
    memory = read(conflicts.file(1))
    assert (memory.importance, memory.tags, memory.updated_at) == ("high", ("auth",), "2026-09-26T14:00:00Z")


# --- whole files ---


def test_deleted_here_and_changed_there_is_a_persons_choice(conflicts, here, git):
    conflicts.apart({1: BASE, 2: text_of(2)}, {1: None, 2: None}, {1: THEIRS, 2: text_of(2, type="todo")})
    git.run("merge", "topic", cwd=conflicts.repo)
    found = preview(here(conflicts.repo))
    told = [(c.field, c.ours, c.theirs) for one in found.open for c in one.conflicts]
    assert told == [("file", "deleted", "changed")] * 2
    assert found.next == (f"open-memex resolve {ID} --take-file SIDE",)
    resolve(here(conflicts.repo), [ID], Takes(file="theirs"))
    resolve(here(conflicts.repo), [memory_id(2)], Takes(file="ours"))
    assert read(conflicts.file(1)).type == "lesson" and not conflicts.file(2).exists()
    assert conflicts.status() == f"A  {conflicts.path(1)}"
    git("merge", "--continue", cwd=conflicts.repo)


def test_changed_here_and_deleted_there_is_a_persons_choice(conflicts, here, git):
    conflicts.apart({1: BASE, 2: text_of(2)}, {1: OURS, 2: text_of(2, type="todo")}, {1: None, 2: None})
    git.run("merge", "topic", cwd=conflicts.repo)
    with pytest.raises(UsageError, match="type is not in conflict"):
        resolve(here(conflicts.repo), [ID], Takes({"type": "ours"}))
    resolve(here(conflicts.repo), [ID], Takes(file="ours"))
    resolve(here(conflicts.repo), [memory_id(2)], Takes(file="delete"))
    assert read(conflicts.file(1)).type == "gotcha" and not conflicts.file(2).exists()
    assert f"D  {conflicts.path(2)}" in conflicts.status() and conflicts.stages() == ""
    git("merge", "--continue", cwd=conflicts.repo)


def test_added_on_both_sides(conflicts, here, git):
    conflicts.apart({2: text_of(2)}, {1: OURS}, {1: THEIRS})
    git.run("merge", "topic", cwd=conflicts.repo)
    (one,) = preview(here(conflicts.repo)).open
    assert [(c.field, c.base) for c in one.conflicts] == [("type", None)]
    resolve(here(conflicts.repo), [ID], Takes(file="theirs"))
    memory = read(conflicts.file(1))
    assert (memory.type, memory.tags) == ("lesson", ("a", "c"))
    git("merge", "--continue", cwd=conflicts.repo)


def test_both_renamed_the_memory_folder(make_repo, git, here):
    c = Conflicts(make_repo(), git, ".ai/memory")
    c.commit({1: BASE, 2: text_of(2)}, "base")
    git("switch", "-q", "-c", "topic", cwd=c.repo)
    git("mv", ".ai/memory", ".open-memex", cwd=c.repo)
    git("commit", "-q", "-m", "theirs", cwd=c.repo)
    git("switch", "-q", "main", cwd=c.repo)
    git("mv", ".ai/memory", ".ai/open-memex", cwd=c.repo)
    git("commit", "-q", "-m", "ours", cwd=c.repo)
    git.run("merge", "topic", cwd=c.repo)
    assert len(c.stages().splitlines()) == 6, "each in three places, one version each"
    done = resolve(here(c.repo))
    assert ids(done.done) == [ID, memory_id(2)] and not done.needs_a_person
    found = sorted(str(p.relative_to(c.repo)) for p in c.repo.rglob("01J*.md"))
    assert found == [f".ai/open-memex/{memory_id(n)}.md" for n in (1, 2)]
    assert c.stages() == ""
    git("merge", "--continue", cwd=c.repo)
    assert c.status() == ""


@pytest.mark.parametrize("operation", ["merge", "rebase", "cherry-pick"])
def test_both_renamed_the_memory_folder_and_changed_a_memory(operation, make_repo, git, here):
    """git puts its own merge of lines, with markers, into the stages of both sides."""
    c = Conflicts(make_repo(), git, ".ai/memory")
    c.commit({1: BASE, 2: text_of(2)}, "base")

    def rename(folder: str, texts: dict[int, str]) -> None:
        git("mv", ".ai/memory", folder, cwd=c.repo)
        for number, text in texts.items():
            c.file(number, folder).write_text(text)
        git("commit", "-q", "-a", "-m", "renamed and changed", cwd=c.repo)

    git("switch", "-q", "-c", "topic", cwd=c.repo)
    rename(".open-memex", {1: THEIRS, 2: text_of(2, importance="high", tags="[x]")})
    git("switch", "-q", "main", cwd=c.repo)
    rename(".ai/open-memex", {1: OURS, 2: text_of(2, type="todo", tags="[y]")})
    if operation == "rebase":
        git("switch", "-q", "topic", cwd=c.repo)
    assert git.run(operation, "main" if operation == "rebase" else "topic", cwd=c.repo).returncode == 1
    (one,) = preview(here(c.repo)).open
    assert [(x.field, x.ours, x.theirs) for x in one.conflicts] == [("type", "gotcha", "lesson")]
    done = resolve(here(c.repo), [], Takes({"type": "ours"}))
    assert ids(done.done) == [ID, memory_id(2)] and not done.needs_a_person
    assert len(list(c.repo.rglob("01J*.md"))) == 2
    memory = read(c.file(1, ".ai/open-memex"))
    assert (memory.type, memory.tags) == ("gotcha", ("a", "b", "c"))
    memory = read(c.file(2, ".ai/open-memex"))
    assert (memory.type, memory.importance, set(memory.tags)) == ("todo", "high", {"x", "y"})
    git(operation, "--continue", cwd=c.repo)
    assert c.status() == ""


def test_where_nobody_knows_what_a_side_said_nothing_with_markers_is_staged(make_repo, git, here):
    """An edit carried along to a branch with a renamed folder, with only a merge of lines in the stages."""
    c = Conflicts(make_repo(), git, ".ai/memory")
    c.apart({1: BASE}, {1: OURS}, {1: THEIRS})
    git.run("merge", "topic", cwd=c.repo)
    marked = c.file(1).read_text()
    oid = git("hash-object", "-w", "--stdin", cwd=c.repo, stdin=marked)
    entries = "".join(f"100644 {oid} {stage}\t{c.path(1)}\n" for stage in (2, 3))
    git("update-index", "--index-info", cwd=c.repo, stdin=f"0 {'0' * 40}\t{c.path(1)}\n{entries}")
    (one,) = resolve(here(c.repo)).open
    assert one.conflicts[0].field == "file" and "unreadable" in one.conflicts[0].ours
    assert c.stages().count("\n") == 1, "left as it was"


@pytest.mark.parametrize("renames", ["true", "false"])
@pytest.mark.parametrize("renamer", ["ours", "theirs"])
def test_one_side_renamed_the_memory_folder_and_the_other_changed_a_memory(
    renamer, renames, make_repo, git, here
):
    c = Conflicts(make_repo(), git, ".ai/memory")
    git("config", "merge.renames", renames, cwd=c.repo)
    c.commit({1: BASE}, "base")
    git("switch", "-q", "-c", "topic", cwd=c.repo)
    sides = {"ours": OURS, "theirs": EASY_THEIRS}

    def change(side: str) -> None:
        c.commit({1: sides[side]}, side)
        if side == renamer:
            git("mv", ".ai/memory", ".ai/open-memex", cwd=c.repo)
            git("commit", "-q", "-m", "renamed", cwd=c.repo)

    change("theirs")
    git("switch", "-q", "main", cwd=c.repo)
    change("ours")
    assert git.run("merge", "topic", cwd=c.repo).returncode == 1
    done = resolve(here(c.repo))
    assert ids(done.done) == [ID] and not done.needs_a_person
    assert [str(p.relative_to(c.repo)) for p in c.repo.rglob("01J*.md")] == [f".ai/open-memex/{ID}.md"]
    memory = read(c.file(1, ".ai/open-memex"))
    assert (memory.type, memory.importance, memory.tags) == ("gotcha", "high", ("a", "b", "c"))
    git("merge", "--continue", cwd=c.repo)
    assert c.status() == ""


def both_renamed(
    c: Conflicts, ours: str, theirs: str, texts: dict[int, tuple[str, str, str]], configured: str
) -> None:
    """Both sides rename the memory folder, each to its own; `texts`: base, ours and theirs of each memory."""
    c.commit({number: base for number, (base, _, _) in texts.items()}, "base")
    for branch, folder, side in (("topic", theirs, 2), ("main", ours, 1)):
        c.git("switch", "-q", *(["-c"] if branch == "topic" else []), branch, cwd=c.repo)
        c.git("mv", c.folder, folder, cwd=c.repo)
        for number, versions in texts.items():
            c.file(number, folder).write_text(versions[side])
        c.git("commit", "-q", "-a", "-m", branch, cwd=c.repo)
    if configured:
        c.configure(configured)
    c.git.run("merge", "topic", cwd=c.repo)


@pytest.mark.parametrize("configured", ["", "mem-a", "mem-b"])
@pytest.mark.parametrize("changed", [False, True])
def test_both_renamed_the_folder_to_places_that_settings_need_not_name(
    configured, changed, conflicts, here, git, om
):
    """Not one memory may go, whichever folder the settings name."""
    numbers = range(1, 13)
    texts = {
        n: (
            text_of(n, f"Memory {n}.\n"),
            text_of(n, f"Memory {n}.\n", tags="[b]" if changed else "[]"),
            text_of(n, f"Memory {n}.\n", importance="high" if changed else "normal"),
        )
        for n in numbers
    }
    conflicts.configure = lambda folder: om("config", "set", "memoryDir", folder, cwd=conflicts.repo)
    both_renamed(conflicts, "mem-b", "mem-a", texts, configured)
    done = resolve(here(conflicts.repo))
    assert len(done.done) == 12 and {one.how for one in done.done} == {"merged"}
    assert not done.needs_a_person and not done.others
    kept = configured or "mem-b"
    found = sorted(str(p.relative_to(conflicts.repo)) for p in conflicts.repo.rglob("01J*.md"))
    assert found == [f"{kept}/{memory_id(n)}.md" for n in numbers]
    for n in numbers:
        memory = read(conflicts.file(n, kept))
        assert (memory.body, memory.tags) == (f"Memory {n}.\n", ("b",) if changed else ())
        assert memory.importance == ("high" if changed else "normal")
    hints = [one.text for one in done.notices if one.kind == "folder"]
    assert [("memoryDir mem-b" in hint) for hint in hints] == ([] if configured else [True])
    git("merge", "--continue", cwd=conflicts.repo)
    assert conflicts.status() == ""


@pytest.mark.parametrize("operation", ["rebase", "cherry-pick", "merge --squash"])
def test_folders_that_settings_do_not_name_with_a_new_and_a_deleted_memory(operation, conflicts, here, git):
    """git takes the memory that theirs deleted for their new one, and each is its own again."""
    numbers = range(1, 4)
    conflicts.commit({n: text_of(n, f"Memory {n}.\n") for n in numbers}, "base")
    git("switch", "-q", "-c", "topic", cwd=conflicts.repo)
    git("mv", conflicts.folder, "mem-a", cwd=conflicts.repo)
    theirs = Conflicts(conflicts.repo, git, "mem-a")
    changed = {n: text_of(n, f"Memory {n}.\n", tags="[a]", type="todo") for n in (1, 2)}
    theirs.commit({**changed, 3: None, 9: text_of(9, "Theirs alone.\n")}, "theirs")
    git("switch", "-q", "main", cwd=conflicts.repo)
    git("mv", conflicts.folder, "mem-b", cwd=conflicts.repo)
    ours = Conflicts(conflicts.repo, git, "mem-b")
    ours.commit({n: text_of(n, f"Memory {n}.\n", tags="[b]") for n in (1, 2)}, "ours")
    if operation == "rebase":
        git("switch", "-q", "topic", cwd=conflicts.repo)
    git.run(*operation.split(" "), "main" if operation == "rebase" else "topic", cwd=conflicts.repo)
    assert not resolve(here(conflicts.repo)).needs_a_person and conflicts.stages() == ""
    found = {p.stem: p for p in conflicts.repo.rglob("01J*.md")}
    assert sorted(found) == [memory_id(n) for n in (1, 2, 9)]
    assert all(read(ours.file(n)).tags == ("a", "b") and read(ours.file(n)).type == "todo" for n in (1, 2))
    assert read(found[memory_id(9)]).body == "Theirs alone.\n"


def test_a_conflict_in_a_folder_that_the_settings_do_not_name_is_seen(conflicts, here, git, om, run_cli):
    conflicts.commit({1: BASE}, "base")
    git("mv", conflicts.folder, "mem a", cwd=conflicts.repo)
    git("commit", "-q", "-m", "renamed", cwd=conflicts.repo)
    moved = Conflicts(conflicts.repo, git, "mem a")
    git("switch", "-q", "-c", "topic", cwd=conflicts.repo)
    moved.commit({1: THEIRS}, "theirs")
    git("switch", "-q", "main", cwd=conflicts.repo)
    moved.commit({1: OURS}, "ours")
    git.run("merge", "topic", cwd=conflicts.repo)
    document = om("resolve", cwd=conflicts.repo, code=3)
    assert [one["path"] for one in document["conflicts"]] == [f"mem a/{ID}.md"] and not document["others"]
    (hint,) = [one["text"] for one in document["notices"] if one["kind"] == "folder"]
    assert "open-memex config set memoryDir 'mem a'" in hint
    checks = om("doctor", cwd=conflicts.repo, code=1)["checks"]
    assert [c["ok"] for c in checks if c["name"] == "merges"] == [False]
    om("resolve", ID, "--take", "type=theirs", cwd=conflicts.repo)
    assert read(moved.file(1)).type == "lesson"


def test_a_file_that_only_looks_like_a_memory_is_none(conflicts, here, git):
    """Its name is an id, but no version of it says so."""
    name = f"{memory_id(5)}.md"
    (conflicts.repo / "notes").mkdir()
    conflicts.commit({1: BASE}, "base")
    git("switch", "-q", "-c", "topic", cwd=conflicts.repo)
    (conflicts.repo / "notes" / name).write_text("theirs\n")
    conflicts.commit({}, "theirs")
    git("switch", "-q", "main", cwd=conflicts.repo)
    (conflicts.repo / "notes").mkdir(exist_ok=True)
    (conflicts.repo / "notes" / name).write_text("ours\n")
    conflicts.commit({}, "ours")
    git.run("merge", "topic", cwd=conflicts.repo)
    done = resolve(here(conflicts.repo))
    assert done.others == (f"notes/{name}",) and not done.needs_a_person and not done.notices


def test_a_new_memory_that_git_took_for_a_renamed_one(conflicts, here, git):
    """git merges the other side's edit of the deleted memory into the new one, which resembles it."""
    conflicts.apart({1: BASE}, {1: None, 2: text_of(2, tags="[new]", type="todo")}, {1: THEIRS})
    assert git.run("merge", "topic", cwd=conflicts.repo).returncode == 1
    assert memory_id(2) in conflicts.stages() and ID not in conflicts.stages()
    found = preview(here(conflicts.repo))
    assert ids(found.open) == [ID] and ids(found.ready) == [memory_id(2)]
    before = conflicts.stages()
    assert resolve(here(conflicts.repo), [memory_id(2)]).done == () and conflicts.stages() == before
    assert found.next == (f"open-memex resolve {ID} --take-file SIDE",), "--all would change nothing"
    done = resolve(here(conflicts.repo), [], Takes(file="theirs"))
    assert not [one for one in done.notices if one.kind == "rescued"], "nobody touched the file"
    assert ids(done.done) == [ID, memory_id(2)]
    assert conflicts.file(2).read_text() == text_of(2, tags="[new]", type="todo")
    assert read(conflicts.file(1)).type == "lesson"
    git("merge", "--continue", cwd=conflicts.repo)
    assert conflicts.status() == ""


def test_both_deleted_a_memory_and_each_added_one_like_it(conflicts, here, git):
    """git takes the old one for renamed to two places, and puts a merge of both new ones into each."""
    mine, others = text_of(2, tags="[mine]"), text_of(3, type="todo")
    conflicts.apart({1: BASE}, {1: None, 2: mine}, {1: None, 3: others})
    told = git.run("merge", "topic", cwd=conflicts.repo).stdout
    assert "rename/rename" in told
    done = resolve(here(conflicts.repo))
    assert ids(done.done) == [ID, memory_id(2), memory_id(3)] and not done.needs_a_person
    assert not conflicts.file(1).exists() and conflicts.stages() == ""
    assert (conflicts.file(2).read_text(), conflicts.file(3).read_text()) == (mine, others)
    git("merge", "--continue", cwd=conflicts.repo)
    assert conflicts.status() == ""


def test_both_deleted_a_memory_and_one_added_one_like_it(conflicts, here, git):
    mine = text_of(2, tags="[mine]")
    conflicts.apart({1: BASE}, {1: None, 2: mine}, {1: None})
    told = git.run("merge", "topic", cwd=conflicts.repo).stdout
    assert "rename/delete" in told
    done = resolve(here(conflicts.repo))
    # An older git leaves no version of the deleted one.
    assert ids(done.done) in ([ID, memory_id(2)], [memory_id(2)]) and not done.needs_a_person
    assert conflicts.file(2).read_text() == mine and not conflicts.file(1).exists()
    git("merge", "--continue", cwd=conflicts.repo)
    assert conflicts.status() == ""


def test_what_a_person_typed_at_a_place_that_is_left_is_kept_aside(make_repo, git, here, home):
    c = Conflicts(make_repo(), git, ".ai/memory")
    c.commit({1: BASE}, "base")
    for branch, folder in (("topic", ".open-memex"), ("main", ".ai/open-memex")):
        git("switch", "-q", *(["-c"] if branch == "topic" else []), branch, cwd=c.repo)
        git("mv", ".ai/memory", folder, cwd=c.repo)
        git("commit", "-q", "-m", branch, cwd=c.repo)
    git.run("merge", "topic", cwd=c.repo)
    c.file(1, ".open-memex").write_text(BASE + "Typed here.\n")
    done = resolve(here(c.repo))
    assert ids(done.done) == [ID] and not c.file(1, ".open-memex").exists()
    (kept,) = (home.data / "rescued").iterdir()
    assert "Typed here." in kept.read_text() and str(kept) in done.notices[0].text


def test_a_file_where_the_other_side_has_a_folder_is_told_and_left(conflicts, here, git):
    conflicts.commit({2: text_of(2)}, "base")
    git("switch", "-q", "-c", "topic", cwd=conflicts.repo)
    folder = conflicts.file(1)
    folder.mkdir()
    (folder / "x").write_text("x\n")
    conflicts.commit({}, "a folder")
    git("switch", "-q", "main", cwd=conflicts.repo)
    conflicts.commit({1: OURS}, "a file")
    git.run("merge", "topic", cwd=conflicts.repo)
    found = resolve(here(conflicts.repo))
    assert found.needs_a_person and not found.done
    if found.open:  # an older git keeps the version under the memory's own name
        assert found.open[0].case.odd == "a folder is in its place"
    else:
        assert found.misplaced == (f"{conflicts.path(1)}~HEAD",)
        assert found.next == ("git status",)
    assert (conflicts.repo / f"{conflicts.path(1)}~HEAD").read_text() == OURS


def test_an_unreadable_side_is_a_persons_choice_and_is_never_staged(conflicts, here, git):
    broken = THEIRS.replace("type: lesson\n", "type: lesson\ntype: todo\n")
    conflicts.apart({1: BASE}, {1: OURS}, {1: broken})
    git.run("merge", "topic", cwd=conflicts.repo)
    (one,) = preview(here(conflicts.repo)).open
    (conflict,) = one.conflicts
    assert conflict.field == "file" and conflict.theirs.startswith("unreadable: ")
    with pytest.raises(UsageError, match=r"theirs of .* can't be read"):
        resolve(here(conflicts.repo), [ID], Takes(file="theirs"))
    assert conflicts.stages() != ""
    resolve(here(conflicts.repo), [ID], Takes(file="ours"))
    assert read(conflicts.file(1)).type == "gotcha" and conflicts.stages() == ""


# --- what a person did by hand ---


def test_a_file_that_was_settled_by_hand_is_staged_as_it_stands(conflicts, here, git):
    conflicts.apart({1: BASE}, {1: OURS}, {1: THEIRS})
    git.run("merge", "topic", cwd=conflicts.repo)
    by_hand = text_of(1, "Deploys need the VPN and a token.\n", type="howto")
    conflicts.write({1: by_hand})
    found = preview(here(conflicts.repo))
    assert [one.how for one in found.ready] == ["by hand"]
    done = resolve(here(conflicts.repo))
    assert "settled by hand" in done.notices[0].text
    assert conflicts.file(1).read_text() == by_hand and conflicts.stages() == ""
    assert git("show", f":{conflicts.path(1)}", cwd=conflicts.repo) + "\n" == by_hand


@pytest.mark.parametrize("side", [OURS, THEIRS, BASE])
def test_a_file_that_is_one_side_is_no_resolution(side, conflicts, here, git):
    """A merge driver that is missing or fails leaves ours there, without a marker."""
    conflicts.apart({1: BASE}, {1: OURS}, {1: THEIRS})
    git.run("merge", "topic", cwd=conflicts.repo)
    conflicts.write({1: side})
    assert ids(preview(here(conflicts.repo)).open) == [ID]
    assert resolve(here(conflicts.repo)).done == ()
    assert conflicts.stages() != "" and conflicts.file(1).read_text() == side


def test_a_driver_that_is_not_there_loses_nothing(conflicts, here, git):
    conflicts.commit({1: BASE}, "base")
    (conflicts.repo / ".gitattributes").write_text("*.md merge=gone\n")
    git("add", "-A", cwd=conflicts.repo)
    git("commit", "-q", "-m", "attributes", cwd=conflicts.repo)
    git("config", "merge.gone.driver", "no-such-program %O %A %B", cwd=conflicts.repo)
    git("switch", "-q", "-c", "topic", cwd=conflicts.repo)
    conflicts.commit({1: EASY_THEIRS}, "theirs")
    git("switch", "-q", "main", cwd=conflicts.repo)
    conflicts.commit({1: OURS}, "ours")
    git.run("merge", "topic", cwd=conflicts.repo)
    assert conflicts.file(1).read_text() == OURS
    assert ids(resolve(here(conflicts.repo)).done) == [ID]
    assert read(conflicts.file(1)).importance == "high"


@pytest.mark.parametrize("style", ["merge", "diff3"])
def test_what_the_merge_driver_left_is_settled_like_what_git_left(style, conflicts, here, git, home):
    (conflicts.repo / ".gitattributes").write_text("*.md merge=openmemex\n")
    driver = f"{sys.executable} -m openmemex merge-driver %O %A %B %P"
    git("config", "merge.openmemex.driver", driver, cwd=conflicts.repo)
    git("config", "merge.conflictStyle", style, cwd=conflicts.repo)
    conflicts.apart({1: BASE}, {1: OURS}, {1: THEIRS.replace("the VPN", "no VPN")})
    assert git.run("merge", "topic", cwd=conflicts.repo).returncode == 1
    left = conflicts.file(1).read_text()
    assert "tags: [a, b, c]" in left and left.count("<<<<<<<") == 1, "merged but for one field"
    assert ids(preview(here(conflicts.repo)).open) == [ID]
    done = resolve(here(conflicts.repo), [ID], Takes({"type": "theirs"}))
    assert done.notices == () and not (home.data / "rescued").exists()
    memory = read(conflicts.file(1))
    assert (memory.type, memory.tags, memory.body) == ("lesson", ("a", "b", "c"), "Deploys need no VPN.\n")


def test_what_a_person_typed_into_a_conflicted_file_is_kept_aside(conflicts, here, git, home):
    conflicts.apart({1: BASE}, {1: OURS}, {1: EASY_THEIRS})
    git.run("merge", "topic", cwd=conflicts.repo)
    marked = conflicts.file(1).read_text()
    assert "<<<<<<<" in marked
    conflicts.write({1: marked + "A thought in the middle of it.\n"})
    done = resolve(here(conflicts.repo))
    (kept,) = (home.data / "rescued").iterdir()
    assert kept.read_text().endswith("A thought in the middle of it.\n")
    assert any(str(kept) in notice.text for notice in done.notices)


def test_git_s_own_markers_are_not_kept_aside(conflicts, here, git, home):
    for style in ("merge", "diff3"):
        c = Conflicts(conflicts.repo.parent / style, git)
        git("clone", "-q", str(conflicts.repo), str(c.repo))
        git("config", "merge.conflictStyle", style, cwd=c.repo)
        c.apart({1: BASE}, {1: OURS}, {1: EASY_THEIRS})
        git.run("merge", "topic", cwd=c.repo)
        assert ids(resolve(here(c.repo)).done) == [ID]
    assert not (home.data / "rescued").exists()


def test_a_recorded_resolution_is_replayed_and_respected(conflicts, here, git):
    git("config", "rerere.enabled", "true", cwd=conflicts.repo)
    conflicts.apart({1: BASE}, {1: OURS}, {1: THEIRS})
    git.run("merge", "topic", cwd=conflicts.repo)
    resolve(here(conflicts.repo), [ID], Takes({"type": "theirs"}))
    settled = conflicts.file(1).read_text()
    git("merge", "--continue", cwd=conflicts.repo)
    git("reset", "-q", "--hard", "HEAD~1", cwd=conflicts.repo)
    told = git.run("merge", "topic", cwd=conflicts.repo)
    assert "using previous resolution" in told.stdout + told.stderr
    assert conflicts.stages() != "" and conflicts.file(1).read_text() == settled
    done = resolve(here(conflicts.repo))
    assert [one.how for one in done.done] == ["by hand"]
    assert conflicts.file(1).read_text() == settled and conflicts.stages() == ""
    git("merge", "--continue", cwd=conflicts.repo)


@pytest.mark.parametrize("restore", [("restore", "--merge"), ("checkout", "-m")])
def test_git_brings_the_conflict_back_and_resolve_settles_it_again(restore, conflicts, here, git):
    conflicts.apart({1: BASE}, {1: OURS}, {1: EASY_THEIRS})
    git.run("merge", "topic", cwd=conflicts.repo)
    before = conflicts.stages()
    resolve(here(conflicts.repo))
    settled = conflicts.file(1).read_bytes()
    git(*restore, "--", conflicts.path(1), cwd=conflicts.repo)
    assert conflicts.stages() == before and b"<<<<<<<" in conflicts.file(1).read_bytes()
    resolve(here(conflicts.repo))
    assert conflicts.file(1).read_bytes() == settled and conflicts.stages() == ""


def test_a_checkout_with_crlf_gets_crlf_and_the_commit_lf(conflicts, here, git):
    git("config", "core.autocrlf", "true", cwd=conflicts.repo)
    conflicts.apart({1: BASE}, {1: OURS}, {1: EASY_THEIRS})
    git.run("merge", "topic", cwd=conflicts.repo)
    assert b"\r\n" in conflicts.file(1).read_bytes()
    done = resolve(here(conflicts.repo))
    assert ids(done.done) == [ID] and done.notices == ()
    raw = conflicts.file(1).read_bytes()
    assert raw.count(b"\r\n") == raw.count(b"\n")
    assert (
        b"\r" not in git.run("cat-file", "blob", f":{conflicts.path(1)}", cwd=conflicts.repo).stdout.encode()
    )
    git("merge", "--continue", cwd=conflicts.repo)
    assert conflicts.status() == ""


def test_a_secret_in_the_clear_is_told_and_left_as_git_brought_it(conflicts, here, git):
    secret = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    conflicts.apart(
        {1: BASE},
        {1: OURS},
        {1: EASY_THEIRS.replace("Deploys need the VPN.", f"The token is {secret}")},
    )
    git.run("merge", "topic", cwd=conflicts.repo)
    done = resolve(here(conflicts.repo))
    told = [notice.text for notice in done.notices if notice.kind == "secret"]
    assert len(told) == 1 and secret not in told[0]
    assert secret in conflicts.file(1).read_text()


def test_a_hundred_conflicts_at_once(conflicts, here, git):
    numbers = range(1, 101)
    conflicts.apart(
        {n: text_of(n, tags="[a]") for n in numbers},
        {n: text_of(n, tags="[a, b]", updated_at='"2026-09-27T12:00:00Z"') for n in numbers},
        {n: text_of(n, tags="[a, c]", updated_at='"2026-09-28T12:00:00Z"') for n in numbers},
    )
    git.run("merge", "topic", cwd=conflicts.repo)
    assert len(conflicts.stages().splitlines()) == 300
    done = resolve(here(conflicts.repo))
    assert len(done.done) == 100 and conflicts.stages() == ""
    assert all(read(conflicts.file(n)).tags == ("a", "b", "c") for n in numbers)
    git("merge", "--continue", cwd=conflicts.repo)
    assert conflicts.status() == ""


def test_an_octopus_that_stopped_is_told_settled_and_ended_by_git(conflicts, here, git):
    conflicts.apart({1: BASE}, {1: OURS}, {1: THEIRS})
    git("branch", "third", "main~1", cwd=conflicts.repo)
    git("switch", "-q", "third", cwd=conflicts.repo)
    conflicts.commit({2: text_of(2)}, "third")
    git("switch", "-q", "main", cwd=conflicts.repo)
    assert git.run("merge", "third", "topic", cwd=conflicts.repo).returncode == 1
    found = preview(here(conflicts.repo))
    assert (found.sides.operation, found.sides.ours) == ("merge", "main")
    assert found.sides.theirs == "third and topic"
    assert ids(found.open) == [ID] and [one.field for one in found.open[0].conflicts] == ["type"]
    assert ids(resolve(here(conflicts.repo), [ID], Takes({"type": "theirs"})).done) == [ID]
    git("merge", "--continue", cwd=conflicts.repo)
    parents = [git("rev-parse", one, cwd=conflicts.repo) for one in ("main~1", "third", "topic")]
    assert git("log", "-1", "--format=%P", cwd=conflicts.repo).split() == parents
    assert read(conflicts.file(1)).type == "lesson" and read(conflicts.file(1)).tags == ("a", "b", "c")
    assert conflicts.file(2).exists() and conflicts.status() == ""


@pytest.mark.parametrize(
    ("path", "memory", "aside"),
    [
        (f".ai/open-memex/{ID}.md", True, False),
        (f".ai/memory/{ID}.md", True, False),
        (f"notes/{ID}.md", True, False),
        (f".ai/open-memex/deep/{ID}.md", False, False),
        (f"{ID}.md", False, False),
        (".ai/open-memex/README.md", False, False),
        (f".ai/open-memex/{ID}.MD", False, False),
        (f".ai/open-memex/{ID}.md~HEAD", False, True),
        (f".ai/open-memex/{ID}.md~topic_0", False, True),
        (f"elsewhere/{ID}.md~HEAD", False, False),
        (".ai/open-memex~HEAD", False, True),
        (".ai/open-memex", False, True),
        (".ai~HEAD", False, True),
        ("notes~topic", False, True),
        (".airy", False, False),
    ],
)
def test_which_paths_are_memories_and_which_were_put_aside(path, memory, aside):
    folders = ("notes", ".ai/open-memex", ".open-memex", ".ai/memory")
    assert (memory_id_of(path, folders) == ID) is memory
    if not memory:
        assert misplaced(path, folders) is aside

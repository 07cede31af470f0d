"""What git merged without a conflict, and should not have: seen, told, and mended where that is possible."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from merging_repos import Conflicts, memory_id, text_of

from openmemex import checking
from openmemex.errors import UsageError
from openmemex.memory import frontmatter
from openmemex.operations.resolve import preview, resolve
from openmemex.settling import Takes
from openmemex.workspace import Workspace

ID, NEW_A, NEW_B = memory_id(1), memory_id(11), memory_id(12)


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


def merged_cleanly(c: Conflicts, *options: str) -> None:
    done = c.git.run("merge", "-q", "--no-edit", *options, "topic", cwd=c.repo)
    assert done.returncode == 0, done.stdout + done.stderr


def without(*names: str) -> dict[str, None]:
    return dict.fromkeys(names)


NO_NULLS = without("supersedes", "superseded_by", "approved_by", "derived_from", "review_note")


def two_successors(c: Conflicts) -> None:
    """Both sides replace the memory, one after `status:`, one before `review_state:`: git joins them."""
    base = text_of(1, **NO_NULLS)
    ours = base.replace("status: active\n", f"status: superseded\nsuperseded_by: {NEW_A}\n")
    theirs = base.replace("review_state:", f"superseded_by: {NEW_B}\nreview_state:")
    c.apart(
        {1: base},
        {1: ours, 11: text_of(11, "The one.\n", supersedes=ID)},
        {1: theirs, 12: text_of(12, "The other.\n", supersedes=ID)},
    )


def test_a_key_that_two_branches_brought_in_is_told_with_both_values_and_nothing_is_chosen(
    conflicts, here, git
):
    two_successors(conflicts)
    merged_cleanly(conflicts)
    raw = conflicts.file(1).read_bytes()
    assert raw.count(b"superseded_by:") == 2, "git saw no conflict"
    found = preview(here(conflicts.repo))
    told = {one.rule: one for one in found.problems}
    assert set(told) == {"unreadable", "chain"} and len(found.problems) == 2
    assert told["chain"].ids == (ID, NEW_A, NEW_B)
    assert found.needs_a_person and found.checked == 1
    (conflict,) = told["unreadable"].conflicts
    assert (conflict.field, conflict.ours, conflict.theirs) == ("superseded_by", NEW_A, NEW_B)
    assert told["unreadable"].ids == (ID,) and told["unreadable"].merge == git(
        "rev-parse", "HEAD", cwd=conflicts.repo
    )
    assert resolve(here(conflicts.repo)).mended == ()
    assert conflicts.file(1).read_bytes() == raw
    with pytest.raises(UsageError, match="type is not in conflict"):
        resolve(here(conflicts.repo), [ID], Takes({"type": "ours"}))
    done = resolve(here(conflicts.repo), [ID], Takes({"superseded_by": "ours"}))
    assert [one.case.memory_id for one in done.mended] == [ID]
    assert done.next == (f"open-memex submit {ID}",)
    memory = read(conflicts.file(1))
    assert (memory.superseded_by, memory.status) == (NEW_A, "superseded")
    assert conflicts.status() == f" M {conflicts.path(1)}", "it is the person's to commit"
    assert "unreadable" not in {one.rule for one in preview(here(conflicts.repo)).problems}


def test_a_successor_on_one_side_and_an_end_on_the_other_is_told(conflicts, here):
    conflicts.apart(
        {1: text_of(1)},
        {1: text_of(1, superseded_by=NEW_A), 11: text_of(11, "The one.\n", supersedes=ID)},
        {1: text_of(1, status="retracted")},
    )
    merged_cleanly(conflicts)
    (problem,) = preview(here(conflicts.repo)).problems
    assert (problem.rule, problem.ids) == ("conflict", (ID,))
    (conflict,) = problem.conflicts
    assert conflict.field == "status" and conflict.theirs == "retracted"


def approved_and_changed(c: Conflicts) -> None:
    c.apart(
        {1: text_of(1, "Deploys need the VPN.\n")},
        {1: text_of(1, "Deploys need the VPN.\n", review_state="approved", approved_by="bob")},
        {1: text_of(1, "Deploys need no VPN.\n")},
    )


def test_an_approval_that_was_joined_to_a_changed_text_is_told_and_mended(conflicts, here):
    approved_and_changed(conflicts)
    merged_cleanly(conflicts)
    joined = read(conflicts.file(1))
    assert (joined.review_state, joined.body) == ("approved", "Deploys need no VPN.\n")
    (problem,) = preview(here(conflicts.repo)).problems
    assert problem.rule == "meaning" and "approval" in problem.text
    assert problem.fix == f"open-memex resolve {ID}"
    done = resolve(here(conflicts.repo), [ID])
    assert [one.case.memory_id for one in done.mended] == [ID] and not done.needs_a_person
    memory = read(conflicts.file(1))
    assert (memory.review_state, memory.approved_by) == ("proposed", None)
    assert memory.body == "Deploys need no VPN.\n" and len(memory.review_history) == 1
    assert not preview(here(conflicts.repo)).needs_a_person


def test_a_merge_that_waits_to_be_committed_is_looked_at_and_mended_in_place(conflicts, here, git):
    approved_and_changed(conflicts)
    merged_cleanly(conflicts, "--no-commit", "--no-ff")
    (problem,) = preview(here(conflicts.repo)).problems
    assert problem.merge == ""
    done = resolve(here(conflicts.repo), [ID])
    assert done.next == ("git merge --continue",)
    assert conflicts.status() == f"M  {conflicts.path(1)}"
    git("merge", "--continue", cwd=conflicts.repo)
    assert read(conflicts.file(1)).review_state == "proposed"
    assert not preview(here(conflicts.repo)).needs_a_person
    assert git("log", "-1", "--format=%p", cwd=conflicts.repo).count(" ") == 1


@pytest.mark.parametrize("committed", [False, True])
def test_markers_that_were_staged_are_told_and_the_memory_is_merged_again(committed, conflicts, here, git):
    conflicts.apart(
        {1: text_of(1)}, {1: text_of(1, type="gotcha")}, {1: text_of(1, type="lesson", tags="[a]")}
    )
    assert git.run("merge", "topic", cwd=conflicts.repo).returncode == 1
    marked = conflicts.file(1).read_text()
    conflicts.write({1: marked + "Typed in the hurry.\n"})
    git("add", "-A", cwd=conflicts.repo)
    if committed:
        git("merge", "--continue", cwd=conflicts.repo)
    (problem,) = preview(here(conflicts.repo)).problems
    assert problem.rule == "unreadable" and "staged before its conflict was settled" in problem.text
    assert [one.field for one in problem.conflicts] == ["type"]
    done = resolve(here(conflicts.repo), [ID], Takes({"type": "theirs"}))
    assert done.mended and not done.needs_a_person
    memory = read(conflicts.file(1))
    assert (memory.type, memory.tags) == ("lesson", ("a",))
    (kept,) = [notice.text for notice in done.notices if notice.kind == "rescued"]
    assert "Typed in the hurry." in Path(kept.rpartition(" in ")[2]).read_text()
    assert conflicts.status() == (" M " if committed else "M  ") + conflicts.path(1)


def test_an_old_merge_is_not_mended_on_the_way_of_something_else(conflicts, here, git):
    approved_and_changed(conflicts)
    merged_cleanly(conflicts)
    conflicts.commit({2: text_of(2)}, "another")
    conflicts.write({2: text_of(2, tags="[a]")})
    git("stash", cwd=conflicts.repo)
    conflicts.commit({2: text_of(2, tags="[b]")}, "tags")
    git.run("stash", "pop", cwd=conflicts.repo)
    done = resolve(here(conflicts.repo))
    assert len(done.done) == 1 and done.mended == () and len(done.problems) == 1
    assert conflicts.status() == f"M  {conflicts.path(2)}"
    assert len(resolve(here(conflicts.repo), [ID]).mended) == 1


def test_what_git_merged_as_we_would_have_is_not_told(conflicts, here):
    conflicts.apart(
        {1: text_of(1, "one\n\n\n\ntwo\n")},
        {1: text_of(1, "one\n\n\n\ntwo\n", type="gotcha")},
        {1: text_of(1, "one\n\n\n\ntwo\n", proposed_by="bob")},
    )
    merged_cleanly(conflicts)
    found = preview(here(conflicts.repo))
    assert found.checked == 1 and found.problems == () and not found.needs_a_person


TWO_PARTS = "one\n\n\n\ntwo\n"


def both_edit_a_part(c: Conflicts, **fields: str) -> None:
    c.apart(
        {1: text_of(1, TWO_PARTS)},
        {1: text_of(1, "ONE\n\n\n\ntwo\n", **fields)},
        {1: text_of(1, "one\n\n\n\nTWO\n")},
    )


@pytest.mark.parametrize("committed", [False, True])
def test_two_edits_of_one_text_that_git_joined_line_by_line_are_no_fault(committed, conflicts, here, om):
    both_edit_a_part(conflicts)
    merged_cleanly(conflicts, *([] if committed else ["--no-commit", "--no-ff"]))
    found = preview(here(conflicts.repo))
    assert found.checked == 1 and found.problems == () and not found.needs_a_person
    assert checking.check(here(conflicts.repo)).texts == (ID,)
    om("resolve", cwd=conflicts.repo)
    checks = om("doctor", cwd=conflicts.repo, code=0 if committed else 1)["checks"]
    (told,) = [c for c in checks if c["name"] == "merges"]
    assert told["ok"] and ID in told["text"]


def test_a_text_that_a_person_joined_as_git_would_have_is_not_doubted(conflicts, here, git):
    (conflicts.repo / ".gitattributes").write_text("*.md merge=openmemex\n")
    driver = f"{sys.executable} -m openmemex merge-driver %O %A %B %P"
    git("config", "merge.openmemex.driver", driver, cwd=conflicts.repo)
    both_edit_a_part(conflicts)
    assert git.run("merge", "topic", cwd=conflicts.repo).returncode == 1
    conflicts.write({1: text_of(1, "ONE\n\n\n\nTWO\n")})
    assert [one.how for one in resolve(here(conflicts.repo), [ID]).done] == ["by hand"]
    git("merge", "--continue", cwd=conflicts.repo)
    found = preview(here(conflicts.repo))
    assert found.checked == 1 and found.problems == ()


def test_an_approval_of_a_text_that_both_sides_changed_is_mended_and_no_words_are_lost(conflicts, here):
    both_edit_a_part(conflicts, review_state="approved", approved_by="bob")
    merged_cleanly(conflicts)
    (problem,) = preview(here(conflicts.repo)).problems
    assert (problem.rule, problem.conflicts) == ("meaning", ()) and "approval" in problem.text
    assert problem.fix == f"open-memex resolve {ID}"
    assert resolve(here(conflicts.repo), [ID]).mended
    memory = read(conflicts.file(1))
    assert (memory.review_state, memory.approved_by) == ("proposed", None)
    assert memory.body == "ONE\n\n\n\nTWO\n"


def test_a_file_that_git_broke_keeps_both_sides_words_when_it_is_mended(conflicts, here):
    base = text_of(1, TWO_PARTS, **NO_NULLS)
    ours = base.replace("status: active\n", f"status: superseded\nsuperseded_by: {NEW_A}\n")
    theirs = base.replace("review_state:", f"superseded_by: {NEW_B}\nreview_state:")
    conflicts.apart({1: base}, {1: ours.replace("one", "ONE")}, {1: theirs.replace("two", "TWO")})
    merged_cleanly(conflicts)
    (problem,) = [one for one in preview(here(conflicts.repo)).problems if one.rule == "unreadable"]
    assert [one.field for one in problem.conflicts] == ["superseded_by"]
    assert f"resolve {ID} --take superseded_by=SIDE (SIDE: ours or theirs), or edit" in problem.fix
    assert resolve(here(conflicts.repo), [ID], Takes({"superseded_by": "theirs"})).mended
    assert read(conflicts.file(1)).body == "ONE\n\n\n\nTWO\n"


def test_a_memory_that_is_in_conflict_is_told_as_that_alone(conflicts, here, git):
    conflicts.apart(
        {1: text_of(1)},
        {
            1: text_of(1, status="superseded", superseded_by=NEW_A),
            11: text_of(11, "The one.\n", supersedes=ID),
        },
        {
            1: text_of(1, status="superseded", superseded_by=NEW_B),
            12: text_of(12, "The other.\n", supersedes=ID),
        },
    )
    assert git.run("merge", "topic", cwd=conflicts.repo).returncode == 1
    found = preview(here(conflicts.repo))
    assert [one.case.memory_id for one in found.open] == [ID] and found.problems == ()


def test_what_a_person_decided_in_a_conflict_is_not_told_afterwards(conflicts, here, git):
    conflicts.apart(
        {1: text_of(1)}, {1: text_of(1, type="gotcha")}, {1: text_of(1, type="lesson", importance="high")}
    )
    assert git.run("merge", "topic", cwd=conflicts.repo).returncode == 1
    conflicts.write({1: text_of(1, type="howto")})
    git("add", "-A", cwd=conflicts.repo)
    git("merge", "--continue", cwd=conflicts.repo)
    found = preview(here(conflicts.repo))
    assert found.checked == 1 and found.problems == ()


def test_what_was_changed_since_the_merge_is_not_told(conflicts, here, git):
    approved_and_changed(conflicts)
    merged_cleanly(conflicts)
    conflicts.write({1: text_of(1, "Edited.\n")})
    assert preview(here(conflicts.repo)).problems == (), "it waits to be submitted"
    git("commit", "-q", "-am", "edited", cwd=conflicts.repo)
    assert preview(here(conflicts.repo)).problems == ()


def test_a_new_memory_that_swallowed_an_edit_of_a_deleted_one(conflicts, here, git):
    """Without a conflict: git took the new one for the old one renamed, and put the other side's edit in."""
    long = "".join(f"line {number} of a long memory\n" for number in range(40))
    new = text_of(2, long, tags="[new]")
    edited = text_of(1, long.replace("line 30 ", "LINE 30 "))
    conflicts.apart({1: text_of(1, long)}, {1: None, 2: new}, {1: edited})
    merged_cleanly(conflicts)
    assert "LINE 30" in conflicts.file(2).read_text() and not conflicts.file(1).exists()
    found = preview(here(conflicts.repo)).problems
    assert {(one.rule, one.ids[0]) for one in found} == {("renamed", ID), ("renamed", memory_id(2))}
    done = resolve(here(conflicts.repo), [memory_id(2)])
    assert len(done.mended) == 1 and conflicts.file(2).read_text() == new
    assert not [one for one in done.notices if one.kind == "rescued"], "nobody touched the file"
    done = resolve(here(conflicts.repo), [ID], Takes(file="theirs"))
    assert done.mended and "LINE 30" in conflicts.file(1).read_text()
    assert not preview(here(conflicts.repo)).problems


def test_two_memories_that_replace_one_are_told_after_the_conflict_was_settled(conflicts, here, git):
    conflicts.apart(
        {1: text_of(1)},
        {
            1: text_of(1, status="superseded", superseded_by=NEW_A),
            11: text_of(11, "The one.\n", supersedes=ID),
        },
        {
            1: text_of(1, status="superseded", superseded_by=NEW_B),
            12: text_of(12, "The other.\n", supersedes=ID),
        },
    )
    assert git.run("merge", "topic", cwd=conflicts.repo).returncode == 1
    resolve(here(conflicts.repo), [ID], Takes({"superseded_by": "ours"}))
    git("merge", "--continue", cwd=conflicts.repo)
    problems = preview(here(conflicts.repo)).problems
    fork = next(one for one in problems if NEW_A in one.text and NEW_B in one.text)
    assert fork.rule == "chain" and fork.ids[0] == ID
    git("rm", "-q", conflicts.path(12), cwd=conflicts.repo)
    git("commit", "-q", "-m", "decided", cwd=conflicts.repo)
    assert not [one for one in preview(here(conflicts.repo)).problems if NEW_B in one.text]


def test_problems_that_were_there_before_the_merge_are_not_its_fault(conflicts, here):
    half = text_of(1, status="superseded", superseded_by=NEW_A)
    conflicts.apart(
        {1: half, 11: text_of(11)},
        {1: half.replace("importance: normal", "importance: high")},
        {1: half.replace("tags: []", "tags: [x]")},
    )
    merged_cleanly(conflicts)
    assert preview(here(conflicts.repo)).problems == ()


def test_old_merges_and_merges_elsewhere_cost_nothing_and_say_nothing(conflicts, here, git):
    conflicts.commit({1: text_of(1)}, "base")
    for number in range(3):
        git("switch", "-q", "-c", f"b{number}", cwd=conflicts.repo)
        (conflicts.repo / f"f{number}.txt").write_text("x")
        conflicts.commit({}, "file")
        git("switch", "-q", "main", cwd=conflicts.repo)
        git("commit", "-q", "--allow-empty", "-m", "empty", cwd=conflicts.repo)
        git("merge", "-q", "--no-edit", f"b{number}", cwd=conflicts.repo)
    assert preview(here(conflicts.repo)).checked == 0


def test_merges_before_a_commit_are_left_out_when_only_later_ones_are_asked_for(conflicts, here, git):
    approved_and_changed(conflicts)
    merged_cleanly(conflicts)
    tip = git("rev-parse", "HEAD", cwd=conflicts.repo)
    assert len(checking.check(here(conflicts.repo)).problems) == 1
    assert checking.check(here(conflicts.repo), since=tip).problems == ()
    assert len(checking.check(here(conflicts.repo), since=f"{tip}^1").problems) == 1


def test_a_broken_file_of_a_merge_with_two_bases_is_told_and_left_to_a_person(conflicts, here, git):
    """A criss-cross merge: each branch has merged the other before."""
    conflicts.commit({1: text_of(1)}, "base")
    git("switch", "-q", "-c", "topic", cwd=conflicts.repo)
    conflicts.commit({2: text_of(2)}, "theirs")
    git("switch", "-q", "main", cwd=conflicts.repo)
    conflicts.commit({3: text_of(3)}, "ours")
    before = git("rev-parse", "main", cwd=conflicts.repo)
    git("merge", "-q", "--no-edit", "topic", cwd=conflicts.repo)
    git("switch", "-q", "topic", cwd=conflicts.repo)
    git("merge", "-q", "--no-edit", before, cwd=conflicts.repo)
    conflicts.commit({1: text_of(1, type="lesson")}, "theirs")
    git("switch", "-q", "main", cwd=conflicts.repo)
    conflicts.commit({1: text_of(1, type="gotcha")}, "ours")
    assert len(git("merge-base", "--all", "main", "topic", cwd=conflicts.repo).splitlines()) == 2
    assert git.run("merge", "topic", cwd=conflicts.repo).returncode == 1
    git("commit", "-q", "-a", "-m", "with markers", cwd=conflicts.repo)
    (problem,) = preview(here(conflicts.repo)).problems
    assert (problem.rule, problem.case, problem.conflicts) == ("unreadable", None, ())
    assert problem.fix == f"mend {conflicts.path(1)} by hand"
    assert resolve(here(conflicts.repo), [ID]).mended == ()


def test_an_octopus_merge_is_no_reason_to_fail(conflicts, here, git):
    conflicts.commit({1: text_of(1)}, "base")
    for number in (2, 3):
        git("switch", "-q", "-c", f"b{number}", "main", cwd=conflicts.repo)
        conflicts.commit({number: text_of(number)}, "one")
    git("switch", "-q", "main", cwd=conflicts.repo)
    git("merge", "-q", "--no-edit", "b2", "b3", cwd=conflicts.repo)
    git("merge", "-q", "--no-ff", "--no-edit", "b3", cwd=conflicts.repo)
    assert preview(here(conflicts.repo)).problems == ()


def test_a_version_that_is_lost_from_the_repository_stops_nothing_else(conflicts, here, git):
    approved_and_changed(conflicts)
    merged_cleanly(conflicts)
    oid = git("rev-parse", f"topic:{conflicts.path(1)}", cwd=conflicts.repo)
    (conflicts.repo / ".git" / "objects" / oid[:2] / oid[2:]).unlink()
    found = preview(here(conflicts.repo))
    assert found.problems == () and [one.kind for one in found.notices] == ["unchecked"]
    assert oid in found.notices[0].text


def test_a_partial_clone_fetches_nothing_to_look_at_old_merges(conflicts, here, git, tmp_path):
    approved_and_changed(conflicts)
    merged_cleanly(conflicts)
    git("config", "uploadpack.allowFilter", "true", cwd=conflicts.repo)
    partial = tmp_path / "partial"
    git("clone", "-q", "--filter=blob:none", f"file://{conflicts.repo}", str(partial))
    conflicts.repo.rename(tmp_path / "gone")
    assert preview(here(partial)).problems == ()


def test_a_shallow_clone_and_an_unborn_branch_are_no_reason_to_fail(
    conflicts, here, git, make_repo, tmp_path
):
    approved_and_changed(conflicts)
    merged_cleanly(conflicts)
    git("clone", "-q", "--depth", "1", f"file://{conflicts.repo}", str(tmp_path / "shallow"))
    assert preview(here(tmp_path / "shallow")).problems == ()
    assert preview(here(make_repo("unborn", commits=0))).problems == ()


def test_a_pull_tells_what_a_merge_of_somebody_else_joined(conflicts, make_remote, clone, git, om, run_cli):
    repo = conflicts.repo
    conflicts.commit({1: text_of(1)}, "base")
    mate = Conflicts(clone(make_remote(repo), "mate"), git)
    git("switch", "-q", "-c", "topic", cwd=mate.repo)
    mate.commit({1: text_of(1, "Other words.\n")}, "theirs")
    git("switch", "-q", "main", cwd=mate.repo)
    mate.commit({1: text_of(1, review_state="approved", approved_by="bob")}, "ours")
    merged_cleanly(mate)
    git("push", "-q", "origin", "main", cwd=mate.repo)
    receipt = om("pull", cwd=repo)
    assert receipt["checked"] == 1
    (problem,) = receipt["problems"]
    assert (problem["id"], problem["rule"], problem["merge"]) == (ID, "meaning", receipt["after"])
    git("reset", "-q", "--hard", receipt["before"], cwd=repo)
    shown = run_cli("pull", cwd=repo)
    assert shown.returncode == 0 and f"open-memex resolve {ID}" in shown.stdout
    assert om("pull", cwd=repo)["problems"] == [], "nothing came"
    assert om("resolve", cwd=repo, code=3)["problems"][0]["id"] == ID

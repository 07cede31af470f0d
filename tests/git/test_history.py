"""The life of one file across renames, branches and merges; revisions and dates; what a clone lacks."""

from __future__ import annotations

import os

import pytest

from openmemex.errors import NotFound, OpenMemexError, UsageError
from openmemex.git.provider import GitProvider
from openmemex.memory import frontmatter
from openmemex.memory.ids import new_id
from openmemex.memory.model import Memory

FOLDERS = (".ai/open-memex", ".open-memex", ".ai/memory")
DAY = 86_400
START = 1_790_000_000  # 2026-09-21T14:13:20Z


def memory(memory_id, body="One\n", **fields):
    made = Memory(memory_id, body, scope="project", scope_key="project__r__0123456789ab", **fields)
    return frontmatter.render(made)


class Team:
    """A repository whose commits get older or newer as a test wants; one memory in it."""

    def __init__(self, git, root):
        self.git, self.root = git, root
        self.id = new_id(1_700_000_000_000)
        self.name = f"{self.id}.md"
        self.second = START

    def put(self, body, folder=".ai/open-memex", *, who="Ada", message="change", **fields):
        path = self.root / folder / self.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(memory(self.id, body, **fields))
        return self.commit(message, who=who)

    def commit(self, message, *words, who="Ada", day=None):
        at = START + day * DAY if day is not None else self.second
        self.second = max(self.second, at) + 60
        env = {
            "GIT_AUTHOR_DATE": f"@{at} +0000",
            "GIT_COMMITTER_DATE": f"@{at} +0000",
            "GIT_AUTHOR_NAME": who,
        }
        self.git("add", "-A", cwd=self.root)
        self.git("commit", "-q", "--allow-empty", "-m", message, *words, cwd=self.root, env=env)
        return self.git("rev-parse", "HEAD", cwd=self.root)

    def versions(self, root=None):
        provider = GitProvider.open(str(root or self.root))
        return provider.versions(self.name, FOLDERS)


@pytest.fixture
def team(git, make_repo):
    return Team(git, make_repo())


def statuses(found):
    return [one.status for one in found]


def test_versions_come_newest_first_with_commit_time_and_author(team):
    first = team.put("One\n", who="Ada")
    team.commit("elsewhere")
    second = team.put("Two\n", who="Bob", message="better")
    found = team.versions()
    assert [one.commit for one in found] == [second, first]
    assert [one.by for one in found] == ["Bob", "Ada"]
    assert found[0].at == "2026-09-21T14:15:20Z"
    assert found[0].subject == "better"
    assert found[0].before == (found[1].oid,)
    assert statuses(found) == ["M", "A"]


def test_a_folder_that_moved_is_followed_backwards_and_forwards(team, git):
    team.put("One\n", "old/place")
    for source, target in (("old/place", ".open-memex"), (".open-memex", ".ai/open-memex")):
        (team.root / target).parent.mkdir(exist_ok=True)
        git("mv", source, target, cwd=team.root)
        team.commit("move")
    team.put("Two\n")
    git("mv", ".ai/open-memex", "later", cwd=team.root)
    team.commit("move on")
    found = team.versions()
    assert statuses(found) == ["R", "M", "R", "R", "A"]
    assert [one.path.rpartition("/")[0] for one in found] == [
        "later",
        ".ai/open-memex",
        ".ai/open-memex",
        ".open-memex",
        "old/place",
    ]
    assert found[0].came_from == f".ai/open-memex/{team.name}"


def test_a_folder_that_moved_there_and_back_keeps_the_order(team, git):
    team.put("One\n")
    git("mv", ".ai/open-memex", "away", cwd=team.root)
    team.commit("away")
    team.put("Two\n", "away")
    git("mv", "away", ".ai/open-memex", cwd=team.root)
    team.commit("back")
    team.put("Three\n")
    found = team.versions()
    assert [one.subject for one in found] == ["change", "back", "change", "away", "change"]
    assert statuses(found) == ["M", "R", "M", "R", "A"]
    git("pack-refs", "--all", cwd=team.root)
    assert team.versions() == found


def test_thousands_of_refs_fit(team, git):
    first = team.put("One\n")
    second = team.put("Two\n")
    lines = "".join(
        f"create refs/tags/t{number} {first if number % 2 else second}\n" for number in range(5000)
    )
    git("update-ref", "--stdin", cwd=team.root, stdin=lines)
    git("tag", "a-tree", "HEAD^{tree}", cwd=team.root)
    git("tag", "-a", "-m", "x", "a-blob", "HEAD:app.txt", cwd=team.root)
    assert [one.branch for one in team.versions()] == ["", ""]
    assert team.versions()[0].commit == second


def test_both_sides_of_a_merge_and_its_resolution_are_steps(team, git):
    team.put("One\n\n\n\nfour\n")
    git("switch", "-q", "-c", "side", cwd=team.root)
    side = team.put("One\n\n\n\nside\n", message="side")
    git("switch", "-q", "main", cwd=team.root)
    ours = team.put("One\n\n\n\nours\n", message="ours")
    assert git.run("merge", "-q", "side", cwd=team.root).returncode == 1
    merged = team.put("One\n\n\n\nboth\n", message="both")
    git("branch", "-D", "-q", "side", cwd=team.root)
    found = team.versions()
    assert {one.commit for one in found[:3]} == {side, ours, merged}
    assert found[0].commit == merged
    assert len(found[0].before) == 2
    assert len(found) == 4


def test_a_merge_that_brings_one_sides_change_is_no_step(team, git):
    team.put("One\n")
    git("switch", "-q", "-c", "side", cwd=team.root)
    team.put("Side\n", message="side")
    git("switch", "-q", "main", cwd=team.root)
    team.commit("other")
    git("merge", "-q", "-m", "join", "side", cwd=team.root)
    git("branch", "-D", "-q", "side", cwd=team.root)
    assert [one.subject for one in team.versions()] == ["side", "change"]


def test_a_merge_that_leaves_a_change_out_is_a_step_and_hides_none(team, git):
    first = team.put("One\n")
    git("switch", "-q", "-c", "side", cwd=team.root)
    lost = team.put("Side\n", message="side")
    git("switch", "-q", "main", cwd=team.root)
    team.commit("other")
    git("merge", "-q", "-s", "ours", "-m", "keep ours", "side", cwd=team.root)
    git("branch", "-D", "-q", "side", cwd=team.root)
    decided, change, begin = team.versions()
    assert (change.commit, begin.commit) == (lost, first)
    assert decided.subject == "keep ours"
    assert (decided.oid, decided.before) == (begin.oid, (begin.oid, change.oid))


def settled(team, git, ours, theirs, take):
    """A merge of two sides, each of which puts a text (None: deletes the file), settled as `take` says."""
    file = team.root / ".ai/open-memex" / team.name

    def become(body, message):
        if body is not None:
            return team.put(body, message=message)
        file.unlink(missing_ok=True)
        return team.commit(message)

    git("switch", "-q", "-c", "side", cwd=team.root)
    become(theirs, "theirs")
    git("switch", "-q", "main", cwd=team.root)
    become(ours, "ours")
    git.run("merge", "-q", "--no-commit", "side", cwd=team.root)
    become(take, "settled")
    assert len(git("log", "-1", "--format=%P", cwd=team.root).split()) == 2
    git("branch", "-D", "-q", "side", cwd=team.root)


@pytest.mark.parametrize(
    ("ours", "theirs", "take", "status"),
    [
        ("Ours\n", None, None, "D"),
        (None, "Theirs\n", None, "D"),
        ("Ours\n", None, "Ours\n", "M"),
        (None, "Theirs\n", "Theirs\n", "M"),
        ("Ours\n", "Theirs\n", "Ours\n", "M"),
        ("Ours\n", "Theirs\n", "Theirs\n", "M"),
    ],
)
def test_what_a_merge_decided_between_two_sides_is_the_newest_step(team, git, ours, theirs, take, status):
    team.put("One\n")
    settled(team, git, ours, theirs, take)
    newest, *older = team.versions()
    assert (newest.subject, newest.status) == ("settled", status)
    assert len(newest.before) == 2 and newest.oid in newest.before
    assert {one.subject for one in older} == {"ours", "theirs", "change"}
    oid = git.run("rev-parse", "--verify", "-q", f"HEAD:{newest.path}", cwd=team.root).stdout.strip()
    assert (newest.oid or "") == oid


def test_a_decision_of_a_merge_is_told_once_however_often_the_rest_merges(team, git):
    team.put("One\n")
    settled(team, git, "Ours\n", None, None)
    for number in range(3):
        git("switch", "-q", "-c", f"side{number}", cwd=team.root)
        team.commit("elsewhere")
        git("switch", "-q", "main", cwd=team.root)
        team.commit("here")
        git("merge", "-q", "-m", "join", f"side{number}", cwd=team.root)
    git("switch", "-q", "-c", "back", cwd=team.root)
    team.put("Again\n", message="again")
    git("switch", "-q", "main", cwd=team.root)
    git("merge", "-q", "--no-ff", "-m", "join", "back", cwd=team.root)
    assert [one.subject for one in team.versions()][:2] == ["again", "settled"]
    assert sorted(statuses(team.versions())) == ["A", "A", "D", "D", "M"]


def test_a_side_that_took_its_change_back_decides_nothing(team, git):
    team.put("One\n")
    git("switch", "-q", "-c", "side", cwd=team.root)
    team.put("Side\n", message="side")
    team.put("One\n", message="taken back")
    git("switch", "-q", "main", cwd=team.root)
    team.put("Main\n", message="main")
    git("merge", "-q", "-m", "join", "side", cwd=team.root)
    assert {one.subject for one in team.versions()} == {"main", "taken back", "side", "change"}


def test_a_merge_with_a_folder_that_moved_decides_only_what_it_left_out(team, git):
    team.put("One\n")
    git("switch", "-q", "-c", "side", cwd=team.root)
    git("mv", ".ai/open-memex", "later", cwd=team.root)
    team.commit("move")
    git("switch", "-q", "main", cwd=team.root)
    team.commit("other")
    git("merge", "-q", "-m", "join", "side", cwd=team.root)
    assert [one.subject for one in team.versions()] == ["move", "change"]
    git("switch", "-q", "-c", "more", cwd=team.root)
    team.put("More\n", "later", message="more")
    git("switch", "-q", "main", cwd=team.root)
    team.commit("other")
    git("merge", "-q", "-s", "ours", "-m", "without", "more", cwd=team.root)
    assert [one.subject for one in team.versions()] == ["without", "more", "move", "change"]


def test_a_shallow_clone_tells_no_decision_that_it_cannot_know(team, git, tmp_path):
    team.put("One\n")
    git("switch", "-q", "-c", "side", cwd=team.root)
    team.put("Side\n", message="side")
    git("switch", "-q", "main", cwd=team.root)
    team.commit("other")
    git("merge", "-q", "-m", "join", "side", cwd=team.root)
    git("clone", "-q", "--depth", "2", f"file://{team.root}", str(tmp_path / "shallow"))
    assert "join" not in [one.subject for one in team.versions(tmp_path / "shallow")]


def test_what_only_another_branch_has_names_that_branch(team, git):
    team.commit("base")
    git("switch", "-q", "-c", "idea", cwd=team.root)
    team.put("One\n")
    git("switch", "-q", "main", cwd=team.root)
    (found,) = team.versions()
    assert found.branch == "idea"


def test_a_change_that_was_picked_to_head_is_one_step(team, git):
    team.put("One\n")
    git("switch", "-q", "-c", "side", cwd=team.root)
    picked = team.put("Two\n")
    git("switch", "-q", "main", cwd=team.root)
    team.commit("other")
    git("cherry-pick", picked, cwd=team.root)
    found = team.versions()
    assert statuses(found) == ["M", "A"]
    assert [one.branch for one in found] == ["", ""]


def test_deletion_and_return_are_steps(team, git):
    team.put("One\n")
    (team.root / ".ai/open-memex" / team.name).unlink()
    team.commit("gone")
    assert statuses(team.versions()) == ["D", "A"]
    team.put("One\n")
    assert statuses(team.versions()) == ["A", "D", "A"]


def test_one_made_and_deleted_on_a_merged_side_branch_is_found(team, git):
    team.commit("base")
    git("switch", "-q", "-c", "side", cwd=team.root)
    team.put("One\n")
    (team.root / ".ai/open-memex" / team.name).unlink()
    team.commit("gone")
    git("switch", "-q", "main", cwd=team.root)
    team.commit("other")
    git("merge", "-q", "-m", "join", "side", cwd=team.root)
    git("branch", "-D", "-q", "side", cwd=team.root)
    assert statuses(team.versions()) == ["D", "A"]


def test_the_users_own_log_settings_change_nothing(team, git):
    team.put("One\n")
    team.put("Two\n")
    before = team.versions()
    for key, value in (
        ("log.follow", "true"),
        ("log.showSignature", "true"),
        ("log.date", "relative"),
        ("format.pretty", "oneline"),
        ("diff.renames", "copies"),
        ("diff.relative", "true"),
        ("log.diffMerges", "first-parent"),
        ("color.ui", "always"),
        ("i18n.logOutputEncoding", "UTF-16"),
    ):
        git("config", key, value, cwd=team.root)
    assert team.versions() == before


def test_replaced_commits_count_as_git_shows_them(team, git):
    team.put("One\n")
    second = team.put("Two\n")
    third = team.put("Three\n")
    git("replace", "--graft", third, f"{second}^", cwd=team.root)
    assert [one.commit for one in team.versions()] == [third, git("rev-parse", f"{second}^", cwd=team.root)]


def test_a_replaced_blob_is_read_as_git_reads_it(team, git):
    team.put("One\n")
    (version,) = team.versions()
    other = git("hash-object", "-w", "--stdin", cwd=team.root, stdin="replaced")
    git("replace", version.oid, other, cwd=team.root)
    provider = GitProvider.open(str(team.root))
    assert dict(provider.blobs([version.oid])) == {version.oid: b"replaced"}
    assert provider.texts([version.oid]) == {version.oid: b"replaced"}


def test_a_shallow_clone_says_where_history_begins(team, git, tmp_path):
    team.put("One\n")
    team.put("Two\n")
    team.put("Three\n")
    git("clone", "-q", "--depth", "2", f"file://{team.root}", str(tmp_path / "shallow"))
    found = team.versions(tmp_path / "shallow")
    assert [one.begins for one in found] == [False, True]


def test_a_partial_clone_offline_knows_the_steps_and_lacks_texts(team, git, tmp_path):
    team.put("One\n")
    team.put("Two\n")
    git("config", "uploadpack.allowFilter", "true", cwd=team.root)
    place = tmp_path / "partial"
    git("clone", "-q", "--filter=blob:none", f"file://{team.root}", str(place))
    os.rename(team.root, tmp_path / "away")
    found = team.versions(place)
    assert statuses(found) == ["M", "A"]
    texts = GitProvider.open(str(place)).texts([one.oid for one in found])
    assert list(texts) == [found[0].oid]  # the one that is checked out


def test_a_clone_without_trees_offline_is_a_clear_error(team, git, tmp_path):
    team.put("One\n")
    team.put("Two\n")
    git("config", "uploadpack.allowFilter", "true", cwd=team.root)
    place = tmp_path / "treeless"
    git("clone", "-q", "--filter=tree:0", f"file://{team.root}", str(place))
    os.rename(team.root, tmp_path / "away")
    with pytest.raises(OpenMemexError) as told:
        team.versions(place)
    assert "git log" in told.value.message


def test_an_unborn_branch_and_an_unknown_name_have_no_versions(git, make_repo, team):
    empty = make_repo("empty", commits=0)
    assert GitProvider.open(str(empty)).versions(team.name, FOLDERS) == []
    assert team.versions() == []


def test_folder_names_that_look_like_patterns_are_names(team):
    team.put("One\n", "mem[1]*")
    provider = GitProvider.open(str(team.root))
    assert statuses(provider.versions(team.name, ["mem[1]*"])) == ["A"]


def test_names_in_history_include_deleted_ones(team):
    team.put("One\n")
    (team.root / ".ai/open-memex" / team.name).unlink()
    team.commit("gone")
    provider = GitProvider.open(str(team.root))
    assert provider.names_in_history(team.id[:6], FOLDERS) == [team.id]
    assert provider.names_in_history(team.id[-5:], FOLDERS) == [team.id]
    assert provider.names_in_history("ZZZZ", FOLDERS) == []


# --- a word for a revision or a date ---


@pytest.fixture
def days(team, git):
    """Commits at the same hour of five days in a row; the first commit of all lies far back."""
    git("commit", "-q", "--amend", "-m", "root", "--date=2020-01-01T00:00:00Z", cwd=team.root,
        env={"GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z"})  # fmt: skip
    return [team.commit(f"day {day}", day=day) for day in range(5)]


def revision(team, text):
    return GitProvider.open(str(team.root)).revision(text)


def test_every_spelling_of_a_revision_is_understood(team, git, days):
    git("tag", "-a", "v1", "-m", "v1", days[1], cwd=team.root)
    git("update-ref", "refs/remotes/origin/main", days[2], cwd=team.root)
    git("switch", "-q", "--detach", days[3], cwd=team.root)
    git("switch", "-q", "main", cwd=team.root)
    for text, commit in (
        ("main", days[4]),
        ("HEAD~3", days[1]),
        ("v1", days[1]),
        ("origin/main", days[2]),
        (days[0][:9], days[0]),
        ("HEAD^{/day 3}", days[3]),
        ("HEAD^{/!-day 4}", days[3]),
        (":/day 2", days[2]),
        (":/d.y [12]", days[2]),
        (":/!-day", git("rev-parse", "HEAD~5", cwd=team.root)),
        ("v1^{}", days[1]),
        ("v1^0", days[1]),
        ("v1-0-g" + days[1][:7], days[1]),
        ("@{-1}", days[3]),
        ("main@{0}", days[4]),
        ("@", days[4]),
    ):
        assert revision(team, text).commit == commit, text
    assert revision(team, "HEAD~3").at == "2026-09-22T14:13:20Z"


def test_a_day_counts_to_its_end_in_utc_and_a_time_is_exact(team, days):
    for text, commit in (
        ("2026-09-22", days[1]),
        ("2026-09-22T14:13:20Z", days[1]),
        ("2026-09-22T14:13:19Z", days[0]),
        ("2026-09-22T16:13:20+02:00", days[1]),
        ("2026-09-22 14:13:20", days[1]),
        ("2039-01-01", days[4]),
        ("9999-12-31", days[4]),
    ):
        assert revision(team, text).commit == commit, text


def test_gits_own_words_for_a_date_are_understood(team, git):
    old = team.commit("old")
    git("commit", "-q", "--allow-empty", "-m", "new", cwd=team.root)
    git("commit", "-q", "--amend", "--allow-empty", "--no-edit", cwd=team.root)
    for text in ("1 minute ago", "yesterday", "2 weeks ago", "2.weeks.ago", "last friday", "12:30 yesterday"):
        assert revision(team, text).commit in (old, git("rev-parse", "HEAD~2", cwd=team.root)), text
    assert revision(team, "now").commit == git("rev-parse", "HEAD", cwd=team.root)


@pytest.mark.parametrize(
    "text",
    ["nonsense", "3 bananas", "20", "2026-02-30", "2026-13-01", "may the force", "never", "HEAD~99", "a..b",
     "^HEAD", "-1", "--all", "HEAD:app.txt", "; rm -rf", "12 monkeys", ":/no such text",
     ":/", ":app.txt", ":0:app.txt", "HEAD^{tree}", "HEAD^@", "HEAD^!", "HEAD:"],
)  # fmt: skip
def test_what_is_neither_is_refused(team, days, text):
    with pytest.raises(NotFound):
        revision(team, text)


@pytest.mark.parametrize("text", ["", "  ", "a\0b"])
def test_nothing_at_all_is_wrong_usage(team, text):
    with pytest.raises(UsageError):
        revision(team, text)


def test_a_branch_named_as_a_date_wins(team, git, days):
    git("branch", "2026-09-24", days[0], cwd=team.root)
    git("branch", "yesterday", days[1], cwd=team.root)
    assert revision(team, "2026-09-24").commit == days[0]
    assert revision(team, "yesterday").commit == days[1]


def test_before_the_first_commit_is_told_with_its_date(team, days):
    with pytest.raises(NotFound, match=r"begins with .* 2020-01-01T00:00:00Z"):
        revision(team, "2019-12-31")
    with pytest.raises(NotFound):
        revision(team, "1969-01-01")


def test_a_date_looks_at_the_branch_itself_and_not_at_what_came_in_later(team, git, days):
    git("switch", "-q", "-c", "side", days[1], cwd=team.root)
    team.commit("side", day=2)
    git("switch", "-q", "main", cwd=team.root)
    env = {"GIT_COMMITTER_DATE": f"@{START + 9 * DAY} +0000"}
    git("merge", "-q", "--no-ff", "-m", "join", "side", cwd=team.root, env=env)
    assert revision(team, "2026-09-23").commit == days[2]


def test_dates_in_an_unborn_repository_and_in_a_shallow_one(team, git, make_repo, tmp_path, days):
    empty = make_repo("empty", commits=0)
    with pytest.raises(NotFound, match="no commit yet"):
        GitProvider.open(str(empty)).revision("2026-09-22")
    git("clone", "-q", "--depth", "2", f"file://{team.root}", str(tmp_path / "shallow"))
    shallow = GitProvider.open(str(tmp_path / "shallow"))
    assert shallow.revision("2026-09-25").commit == days[4]
    with pytest.raises(NotFound, match="shallow"):
        shallow.revision("2026-09-22")
    with pytest.raises(NotFound) as told:
        shallow.revision("HEAD~4")
    assert "shallow" in told.value.hint

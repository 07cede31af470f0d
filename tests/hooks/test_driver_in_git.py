"""The driver inside git: each command that merges calls it, and nothing that becomes of it loses a side."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import needed
import pytest

from openmemex.git import drivers
from openmemex.memory import frontmatter
from openmemex.memory.model import Memory

ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
FILE = f".ai/open-memex/{ID}.md"
BASE = frontmatter.render(
    Memory(id=ID, body="Deploys need the VPN.\n", scope="project", scope_key="project__app__0123456789ab")
).decode()
# Two fields on adjacent lines: git's own merge of lines is a conflict.
TYPE, ROLE = ("type: fact", "type: gotcha"), ("role: knowledge", "role: instruction")
OTHER_TYPE = ("type: fact", "type: howto")
BOTH = BASE.replace(*TYPE).replace(*ROLE)


class Team:
    """A repository with one memory, set up; `edit` changes it and commits."""

    def __init__(self, root: Path, git, run_cli) -> None:
        self.root, self.git, self.run_cli = root, git, run_cli
        self.file = root / FILE
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(BASE, encoding="utf-8")

    def set_up(self) -> None:
        done = self.run_cli("init", "--git", cwd=self.root)
        assert done.returncode == 0, done.stderr
        self.commit("Memories")

    def commit(self, message: str) -> None:
        self.git("add", "-A", cwd=self.root)
        self.git("commit", "-q", "-m", message, cwd=self.root)

    def write(self, *edits: tuple[str, str]) -> None:
        text = self.file.read_text(encoding="utf-8")
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        self.file.write_text(text, encoding="utf-8")

    def edit(self, *edits: tuple[str, str]) -> None:
        self.write(*edits)
        self.commit(edits[0][1].replace("\0", ""))

    def diverge(self, ours: tuple[str, str], theirs: tuple[str, str]) -> None:
        """`theirs` on the branch topic, `ours` on main, which is checked out."""
        self.git("switch", "-q", "-c", "topic", cwd=self.root)
        self.edit(theirs)
        self.git("switch", "-q", "main", cwd=self.root)
        self.edit(ours)

    def is_clean(self) -> bool:
        return self.git("status", "--porcelain", cwd=self.root) == ""

    def status(self) -> str:
        return self.git("status", "--porcelain", "--", FILE, cwd=self.root)


@pytest.fixture
def team(make_repo, git, run_cli) -> Team:
    made = Team(make_repo("team's repo"), git, run_cli)
    made.set_up()
    return made


MERGES = {
    "merge": [["merge", "-q", "topic"]],
    "recursive": [["merge", "-q", "-s", "recursive", "topic"]],
    "squash": [["merge", "-q", "--squash", "topic"], ["commit", "-q", "-m", "x"]],
    "rebase": [["rebase", "-q", "topic"]],
    "rebase --apply": [["rebase", "-q", "--apply", "topic"]],
    "cherry-pick": [["cherry-pick", "topic"]],
}


@pytest.mark.parametrize("way", MERGES)
def test_edits_of_different_fields_merge_by_themselves(team, way):
    team.diverge(TYPE, ROLE)
    for words in MERGES[way]:
        team.git(*words, cwd=team.root)
    assert team.file.read_text() == BOTH
    assert team.is_clean()


def test_a_revert_keeps_what_others_changed_since(team):
    team.edit(TYPE)
    team.edit(ROLE)
    team.git("revert", "--no-edit", "HEAD~1", cwd=team.root)
    assert team.file.read_text() == BASE.replace(*ROLE)
    assert team.is_clean()


def test_a_stash_is_popped_onto_what_others_changed_since(team):
    team.write(TYPE)
    team.git("stash", "-q", cwd=team.root)
    team.edit(ROLE)
    team.git("stash", "pop", "-q", cwd=team.root)
    assert team.file.read_text() == BOTH


@pytest.mark.parametrize("how", ["--no-rebase", "--rebase"])
def test_a_pull_joins_what_two_people_changed(team, how, make_remote, clone, git):
    remote = make_remote(team.root)
    other = clone(remote)
    (other / FILE).write_text(BASE.replace(*ROLE), encoding="utf-8")
    git("commit", "-q", "-am", "x", cwd=other)
    git("push", "-q", cwd=other)
    team.edit(TYPE)
    git("pull", "-q", how, cwd=team.root)
    assert team.file.read_text() == BOTH
    assert team.is_clean()


def test_a_merge_without_a_work_tree_calls_the_driver_too(team, git):
    team.diverge(TYPE, ROLE)
    tree = git("merge-tree", "--write-tree", "main", "topic", cwd=team.root)
    assert git("show", f"{tree}:{FILE}", cwd=team.root) + "\n" == BOTH
    assert team.file.read_text() == BASE.replace(*TYPE)


@pytest.mark.parametrize("how", [["rebase", "-q"], ["rebase", "-q", "--apply"]])
def test_three_commits_on_one_memory_are_rebased_while_stamps_are_old(team, git, how):
    git("switch", "-q", "-c", "topic", cwd=team.root)
    hour_ago = team.file.stat().st_mtime - 3600
    for edit in (TYPE, ("importance: normal", "importance: high"), ("tags: []", "tags: [vpn]")):
        team.write(edit)
        os.utime(team.file, (hour_ago, hour_ago))
        team.commit(edit[1])
    git("switch", "-q", "main", cwd=team.root)
    team.edit(ROLE)
    git("switch", "-q", "topic", cwd=team.root)
    git(*how, "main", cwd=team.root)
    expected = BOTH.replace("importance: normal", "importance: high").replace("tags: []", "tags: [vpn]")
    assert team.file.read_text() == expected
    assert team.is_clean()
    assert git("rev-list", "--count", "main..topic", cwd=team.root) == "3"
    assert "working tree clean" in git("status", cwd=team.root)


def test_edits_of_one_field_are_a_conflict_that_shows_both(team, git):
    team.diverge(TYPE, OTHER_TYPE)
    done = git.run("merge", "topic", cwd=team.root)
    assert done.returncode == 1
    assert f"open-memex: {ID}: both sides changed type; `open-memex resolve {ID}` settles it" in done.stderr
    assert team.status() == f"UU {FILE}"
    text = team.file.read_text()
    assert "type: gotcha\n" in text and "type: howto\n" in text
    assert [line[0] * 7 for line in text.splitlines() if line[:7] in ("<" * 7, "=" * 7, ">" * 7)] == [
        "<<<<<<<",
        "=======",
        ">>>>>>>",
    ]
    assert sorted(os.listdir(team.root)) == [".ai", ".git", "app.txt"]


def test_memories_added_on_both_sides_under_one_id_are_a_conflict(team, git):
    other = team.file.with_name("01BX5ZZKBKACTAV9WEVGEMMVRZ.md")
    for branch, kind in (("topic", "gotcha"), ("main", "howto")):
        git("switch", "-q", *(["-c"] if branch == "topic" else []), branch, cwd=team.root)
        text = BASE.replace(ID, other.stem).replace("type: fact", f"type: {kind}")
        other.write_text(text, encoding="utf-8")
        team.commit(kind)
    assert git.run("merge", "-q", "topic", cwd=team.root).returncode == 1
    assert git("status", "--porcelain", cwd=team.root).startswith("AA ")
    assert "type: gotcha" in other.read_text() and "type: howto" in other.read_text()


def test_a_memory_deleted_on_one_side_and_changed_on_the_other_is_gits_own_conflict(team, git):
    git("switch", "-q", "-c", "topic", cwd=team.root)
    git("rm", "-q", FILE, cwd=team.root)
    git("commit", "-q", "-m", "x", cwd=team.root)
    git("switch", "-q", "main", cwd=team.root)
    team.edit(TYPE)
    done = git.run("merge", "-q", "topic", cwd=team.root)
    assert done.returncode == 1
    assert team.status() == f"UD {FILE}"
    assert "open-memex" not in done.stderr


def test_other_markdown_of_the_folder_is_merged_by_git_as_ever(team, git):
    readme = team.file.with_name("README.md")
    lines = [f"line {n}\n" for n in range(9)]
    readme.write_text("".join(lines))
    team.commit("A readme")
    for branch, number in (("topic", 8), ("main", 0)):
        git("switch", "-q", *(["-c"] if branch == "topic" else []), branch, cwd=team.root)
        readme.write_text("".join("changed\n" if n == number else line for n, line in enumerate(lines)))
        team.commit(branch)
    done = git.run("merge", "-q", "topic", cwd=team.root)
    assert (done.returncode, done.stderr) == (0, "")
    assert readme.read_text() == "changed\n" + "".join(lines[1:8]) + "changed\n"


def test_other_markdown_that_clashes_is_a_conflict(team, git):
    readme = team.file.with_name("README.md")
    readme.write_text("one\n")
    team.commit("A readme")
    for branch in ("topic", "main"):
        git("switch", "-q", *(["-c"] if branch == "topic" else []), branch, cwd=team.root)
        readme.write_text(f"{branch}\n")
        team.commit(branch)
    assert git.run("merge", "-q", "topic", cwd=team.root).returncode == 1
    assert readme.read_text() == "<<<<<<< ours\nmain\n=======\ntopic\n>>>>>>> theirs\n"


# --- other versions of git ---


@pytest.fixture(params=["new", "old"])
def other_git(request, monkeypatch):
    """Another git goes first on the PATH: the oldest that is supported, or a new one."""
    folder = needed.new_git() if request.param == "new" else needed.old_git()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return request.param


@pytest.mark.parametrize("way", ["merge", "rebase", "cherry-pick"])
def test_every_version_of_git_merges_by_field(other_git, team, way):
    team.diverge(TYPE, ROLE)
    for words in MERGES[way]:
        team.git(*words, cwd=team.root)
    assert team.file.read_text() == BOTH


def test_every_version_of_git_shows_both_sides_and_a_newer_one_their_names(other_git, team, git):
    team.diverge(TYPE, OTHER_TYPE)
    assert git.run("merge", "-q", "topic", cwd=team.root).returncode == 1
    assert team.status() == f"UU {FILE}"
    ours, theirs = ("HEAD", "topic") if other_git == "new" else ("ours", "theirs")
    text = team.file.read_text()
    assert f"<<<<<<< {ours}\ntype: gotcha\n" in text
    assert f"=======\ntype: howto\n>>>>>>> {theirs}\n" in text


@pytest.mark.parametrize("failure", ["missing", "killed"])
def test_no_version_of_git_loses_a_side_to_a_program_that_fails(
    other_git, team, git, replace_program, failure
):
    replace_program(FAILURES[failure])
    team.diverge(TYPE, OTHER_TYPE)
    assert git.run("merge", "-q", "topic", cwd=team.root).returncode == 1
    assert team.status() == f"UU {FILE}"
    assert "<<<<<<< ours\ntype: gotcha\n=======\ntype: howto\n>>>>>>> theirs\n" in team.file.read_text()


# --- criss-cross ---


def criss_cross(team: Team, git, ours: tuple[str, str], theirs: tuple[str, str]) -> None:
    """main and topic each merge the other's first commit, so that the next merge has two bases."""
    team.diverge(ours, theirs)
    git("branch", "m1", "main", cwd=team.root)
    git("branch", "t1", "topic", cwd=team.root)
    git("merge", "-q", "-m", "x", "t1", cwd=team.root)
    git("switch", "-q", "topic", cwd=team.root)
    git("merge", "-q", "-m", "y", "m1", cwd=team.root)
    git("switch", "-q", "main", cwd=team.root)
    assert len(git("merge-base", "--all", "main", "topic", cwd=team.root).split()) == 2


def test_after_a_criss_cross_a_change_taken_back_stays_taken_back(team, git):
    criss_cross(team, git, TYPE, ROLE)
    team.edit((TYPE[1], TYPE[0]))
    git("switch", "-q", "topic", cwd=team.root)
    team.edit(("tags: []", "tags: [vpn]"))
    git("merge", "-q", "-m", "z", "main", cwd=team.root)
    assert team.file.read_text() == BASE.replace(*ROLE).replace("tags: []", "tags: [vpn]")


def test_after_a_criss_cross_that_clashed_the_next_merge_loses_neither_decision(team, git):
    team.diverge(TYPE, OTHER_TYPE)
    for number, (branch, decided) in enumerate((("main", "type: gotcha"), ("topic", "type: howto"))):
        git("branch", branch + "1", cwd=team.root) if number == 0 else None
        git("switch", "-q", branch, cwd=team.root)
        other = "topic" if branch == "main" else "main1"
        assert git.run("merge", "-q", other, cwd=team.root).returncode == 1
        team.file.write_text(BASE.replace("type: fact", decided))
        team.commit(f"Settled as {decided}")
    done = git.run("merge", "-q", "-m", "z", "main", cwd=team.root)
    assert done.returncode == 1
    text = team.file.read_text()
    assert "type: gotcha" in text and "type: howto" in text and "<<<<<<<" in text
    assert done.stderr.count("open-memex:") == 1  # nothing is said of the merge of the two bases


# --- the command in git's configuration, when the program does not do its part ---

FAILURES = {
    "missing": None,
    "not executable": "",
    "fails before it begins": "#!/bin/sh\nexit 1\n",
    "wrong usage": "#!/bin/sh\nexit 2\n",
    "killed": "#!/bin/sh\nkill -9 $$\n",
    "crashes": "#!/bin/sh\nkill -SEGV $$\n",
    "half done": '#!/bin/sh\nprintf half >"$3.openmemex"\nkill -9 $$\n',
}


@pytest.fixture
def replace_program(team, tmp_path, git):
    """Let the clone's configuration name another program in the place of ours."""

    def put(script: str | None) -> Path:
        program = tmp_path / "a b" / "it's open-memex"
        program.parent.mkdir()
        if script is not None:
            program.write_text(script)
            program.chmod(stat.S_IRUSR | (stat.S_IXUSR if script else 0))
        for key, value in drivers.commands(drivers.quoted(str(program))).items():
            git("config", "--local", key, value, cwd=team.root)
        return program

    return put


@pytest.mark.parametrize("failure", FAILURES)
def test_a_program_that_fails_leaves_a_conflict_with_both_sides(team, git, replace_program, failure):
    replace_program(FAILURES[failure])
    team.diverge(TYPE, OTHER_TYPE)
    done = git.run("merge", "-q", "topic", cwd=team.root)
    assert done.returncode == 1
    assert "lines are merged instead of fields" in done.stderr and FILE in done.stderr
    assert team.status() == f"UU {FILE}"
    assert "<<<<<<< ours\ntype: gotcha\n=======\ntype: howto\n>>>>>>> theirs\n" in team.file.read_text()
    assert sorted(os.listdir(team.root)) == [".ai", ".git", "app.txt"]


@pytest.mark.parametrize("failure", ["missing", "killed"])
def test_a_program_that_fails_is_told_also_where_the_lines_merge(team, git, replace_program, failure):
    replace_program(FAILURES[failure])
    team.diverge(TYPE, ("VPN", "tunnel"))
    assert git.run("merge", "-q", "topic", cwd=team.root).returncode == 1
    assert team.status() == f"UU {FILE}"
    assert team.file.read_text() == BASE.replace(*TYPE).replace("VPN", "tunnel")


def test_what_git_can_not_merge_by_lines_is_in_the_file_whole(team, git, replace_program):
    replace_program(None)
    team.diverge(("VPN", "\0ours"), ("VPN", "\0theirs"))
    assert git.run("merge", "-q", "topic", cwd=team.root).returncode == 1
    assert team.status() == f"UU {FILE}"
    text = team.file.read_text()
    assert text.startswith("<<<<<<< ours\n") and "\0ours" in text and "\0theirs" in text


def test_sides_added_on_both_sides_are_both_there_without_the_program(team, git, replace_program):
    replace_program(None)
    other = team.file.with_name("01BX5ZZKBKACTAV9WEVGEMMVRZ.md")
    for branch in ("topic", "main"):
        git("switch", "-q", *(["-c"] if branch == "topic" else []), branch, cwd=team.root)
        other.write_text(f"only on {branch}\n")
        team.commit(branch)
    assert git.run("merge", "-q", "topic", cwd=team.root).returncode == 1
    assert other.read_text() == "<<<<<<< ours\nonly on main\n=======\nonly on topic\n>>>>>>> theirs\n"


@pytest.mark.parametrize("point", ["merged", "temporary", "written"])
def test_a_kill_of_the_driver_loses_no_side(team, git, point):
    team.diverge(TYPE, OTHER_TYPE)
    env = {"OPEN_MEMEX_FAULT": f"merge-driver.{point}"}
    done = git.run("merge", "-q", "topic", cwd=team.root, env=env)
    assert done.returncode == 1
    assert team.status() == f"UU {FILE}"
    text = team.file.read_text()
    assert "type: gotcha" in text and "type: howto" in text and "<<<<<<<" in text and ">>>>>>>" in text
    assert sorted(os.listdir(team.root)) == [".ai", ".git", "app.txt"]


def test_a_diff_is_shown_when_the_program_is_gone(team, git, replace_program):
    replace_program(None)
    team.write(TYPE)
    done = git.run("diff", cwd=team.root)
    assert (done.returncode, done.stderr) == (0, "")
    assert "-type: fact\n+type: gotcha\n" in done.stdout


# --- diffs ---


def test_diff_log_and_blame_show_a_memory_for_readers(team, git):
    team.edit(("tags: []", "tags: [vpn, deploy]"))
    diff = git("diff", "HEAD~1", cwd=team.root)
    assert [line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")] == [
        "+tag: vpn",
        "+tag: deploy",
    ]
    assert "+tag: vpn\n+tag: deploy\n" in git("log", "-p", "-1", cwd=team.root)
    assert "+tag: vpn\n" in git("show", cwd=team.root)
    assert ") tag: vpn\n" in git("blame", FILE, cwd=team.root)
    patch = git("format-patch", "-1", "--stdout", cwd=team.root)
    assert "-tags: []\n+tags: [vpn, deploy]\n" in patch  # what is applied is the file itself


def test_a_hunk_names_the_heading_that_it_is_below(team, git):
    body = "\n# First\n\n" + "a\n" * 8 + "## Second\n\n" + "b\n" * 8 + "end\n"
    team.edit(("Deploys need the VPN.\n", body))
    team.write(("end\n", "END\n"))
    assert "@@ ## Second\n" in git("diff", cwd=team.root)

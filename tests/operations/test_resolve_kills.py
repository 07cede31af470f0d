"""kill -9 at every named point of a resolve: the conflict or the resolution is there, and a rerun ends it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from merging_repos import Conflicts, memory_id, text_of

from openmemex.memory import frontmatter

CHECKOUT = Path(__file__).resolve().parents[2]
IDS = [memory_id(number) for number in (1, 2, 3)]


def points(*files: str) -> list[str]:
    found = []
    for name in files:
        found += re.findall(r'reached\("([a-z.-]+)"\)', (CHECKOUT / "openmemex" / name).read_text("utf-8"))
    return sorted(set(found))


POINTS = points("operations/resolve.py", "git/conflicts.py")
TIMES = {"resolve.file-replaced": ("", ":2", ":3")}
KILLS = [f"{point}{times}" for point in POINTS for times in TIMES.get(point, ("",))]


@pytest.fixture
def conflicts(make_repo, git, monkeypatch) -> Conflicts:
    monkeypatch.setenv("GIT_EDITOR", ":")
    c = Conflicts(make_repo(), git)
    c.apart(
        {n: text_of(n) for n in (1, 2, 3)},
        {n: text_of(n, type="gotcha", tags="[a]") for n in (1, 2, 3)},
        {n: text_of(n, type="lesson", tags="[b]") for n in (1, 2, 3)},
    )
    git.run("merge", "topic", cwd=c.repo)
    (c.repo / "mine.txt").write_text("mine\n")
    git("add", "mine.txt", cwd=c.repo)
    return c


def test_a_resolve_names_its_points() -> None:
    assert {
        "resolve.decided",
        "resolve.blobs-written",
        "resolve.files-prepared",
        "resolve.file-replaced",
        "resolve.files-written",
        "resolve.staged",
    } == set(POINTS)


@pytest.mark.parametrize("point", KILLS)
def test_a_resolve_that_is_killed_is_finished_by_the_next(point, conflicts, run_cli, git, home) -> None:
    repo = conflicts.repo
    stages = conflicts.stages()
    words = ["resolve", "--all", "--take", "type=theirs"]
    done = run_cli(*words, cwd=repo, env={"OPEN_MEMEX_FAULT": point})
    assert done.returncode == -signal.SIGKILL, (point, done.stdout, done.stderr)

    assert conflicts.stages() in (stages, ""), "all are in conflict, or none is"
    for number in (1, 2, 3):
        text = conflicts.file(number).read_text()
        assert "<<<<<<<" in text or "type: lesson" in text, "no moment shows half a file"
    if conflicts.stages() == "":
        assert all("<<<<<<<" not in conflicts.file(n).read_text() for n in (1, 2, 3))

    again = run_cli(*words, "--json", cwd=repo)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["resolved"] == ([] if point == "resolve.staged" else IDS)
    assert not (home.data / "rescued").exists(), "what was interrupted was nobody's own words"
    assert conflicts.stages() == ""
    for number in (1, 2, 3):
        memory = frontmatter.parse(conflicts.file(number).read_bytes(), stem=memory_id(number)).memory
        assert (memory.type, memory.tags) == ("lesson", ("a", "b"))
    assert git("show", ":mine.txt", cwd=repo) == "mine"
    git("merge", "--continue", cwd=repo)
    git("fsck", "--strict", cwd=repo)
    assert git("status", "--porcelain", "--untracked-files=no", cwd=repo) == ""


def test_after_a_kill_between_file_and_staging_area_the_settled_files_are_respected(
    conflicts, run_cli
) -> None:
    words = ["resolve", "--all", "--take", "type=theirs"]
    run_cli(*words, cwd=conflicts.repo, env={"OPEN_MEMEX_FAULT": "resolve.files-written"})
    settled = {n: conflicts.file(n).read_bytes() for n in (1, 2, 3)}
    again = json.loads(run_cli("resolve", "--all", "--json", cwd=conflicts.repo).stdout)
    assert again["resolved"] == IDS
    assert {n: conflicts.file(n).read_bytes() for n in (1, 2, 3)} == settled
    assert conflicts.stages() == ""


def test_two_at_once_settle_each_memory_once(conflicts, run_cli, git, om) -> None:
    words = [sys.executable, "-m", "openmemex", "resolve", "--all", "--take", "type=theirs", "--json"]
    both = [
        subprocess.Popen(words, cwd=conflicts.repo, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    ended = [(one.communicate(timeout=120), one.returncode) for one in both]
    assert [code for _, code in ended] == [0, 0], ended
    resolved = [json.loads(out)["resolved"] for (out, _), _ in ended]
    assert sorted(resolved) == [[], IDS]
    assert conflicts.stages() == ""
    git("merge", "--continue", cwd=conflicts.repo)
    assert {hit["id"] for hit in om("search", "VPN", cwd=conflicts.repo)["hits"]} == set(IDS)

"""kill -9 at every named point of a write: what was acknowledged is there, nothing half is read, a rerun
ends it.

Each test runs the real command in a real process that dies by SIGKILL at one point (OPEN_MEMEX_FAULT), then
the same command again without the fault.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]


def points(*files: str) -> list[str]:
    """Every fault point that the sources name, so that a new one can't be forgotten here."""
    found = []
    for name in files:
        text = (CHECKOUT / "openmemex" / name).read_text(encoding="utf-8")
        found += re.findall(r'reached\("([a-z.-]+)"\)', text)
    return sorted(set(found))


WRITE_POINTS = points("paths.py")
SUBMIT_POINTS = points(
    "operations/submit.py",
    "sharing.py",
    "git/committing.py",
    "git/staging.py",
    "git/provider.py",
    "store/files.py",
)


def killed(run_cli, point: str, *args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    done = run_cli(*args, cwd=cwd, env={"OPEN_MEMEX_FAULT": point})
    assert done.returncode == -signal.SIGKILL, (point, done.returncode, done.stdout, done.stderr)
    return done


def found(run_cli, query: str, cwd: Path) -> list[dict]:
    done = run_cli("search", query, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["hits"]


def listed(run_cli, cwd: Path, *args: str) -> list[dict]:
    done = run_cli("list", "--json", "--limit", "100", *args, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["items"]


def healthy(run_cli, cwd: Path) -> None:
    """No quarantined file, nothing half written left where a reader could see it."""
    status = json.loads(run_cli("sync-status", "--json", cwd=cwd).stdout)
    assert status["quarantined"] == []


def test_every_write_names_its_points() -> None:
    assert {"write.temp-written", "write.renamed"} <= set(WRITE_POINTS)
    assert {"submit.objects-written", "submit.staged", "submit.ref-moved"} <= set(SUBMIT_POINTS)


@pytest.mark.parametrize("point", [*WRITE_POINTS, *points("operations/add.py")])
def test_an_add_that_is_killed_leaves_the_whole_memory_or_none_and_runs_again(
    point, run_cli, make_repo
) -> None:
    repo = make_repo()
    killed(run_cli, point, "add", "the kettle needs descaling", cwd=repo)
    before = found(run_cli, "kettle", repo)
    assert len(before) <= 1
    healthy(run_cli, repo)
    again = run_cli("add", "the kettle needs descaling", "--json", cwd=repo)
    assert again.returncode == 0, again.stderr
    after = json.loads(again.stdout)
    assert after["action"] == ("duplicate" if before else "created")
    hits = found(run_cli, "kettle", repo)
    assert [hit["id"] for hit in hits] == [after["id"]]


@pytest.mark.parametrize("scope", ["personal", "project"])
@pytest.mark.parametrize(
    "point", [*points("writing.py"), *(f"{p}:{n}" for p in WRITE_POINTS for n in (1, 2, 3))]
)
def test_a_supersede_that_is_killed_ends_as_both_halves_or_as_none(point, scope, run_cli, make_repo) -> None:
    repo = make_repo()
    old = json.loads(run_cli("add", "the kettle is red", "--scope", scope, "--json", cwd=repo).stdout)["id"]
    killed(run_cli, point, "supersede", old, "the kettle is blue", cwd=repo)
    visible = [hit["summary"] for hit in found(run_cli, "kettle", repo)]
    assert visible in (["the kettle is red"], ["the kettle is blue"]), "never both, never neither"
    healthy(run_cli, repo)
    if visible == ["the kettle is red"]:
        assert run_cli("supersede", old, "the kettle is blue", cwd=repo).returncode == 0
    # Any later write finishes what the killed run had begun, in the files too.
    assert run_cli("add", "another thing", "--scope", scope, cwd=repo).returncode == 0
    rows = {row["summary"]: row for row in listed(run_cli, repo, "--all") if "kettle" in row["summary"]}
    assert rows["the kettle is red"]["status"] == "superseded"
    shown = json.loads(run_cli("show", old, "--json", cwd=repo).stdout)
    assert shown["front_matter"]["superseded_by"] == rows["the kettle is blue"]["id"]
    assert shown["front_matter"]["status"] == "superseded"
    assert not list((Path(os.environ["OPEN_MEMEX_HOME"]) / "pending").glob("*.json"))


# With a branch neither the work tree nor the staging area is touched; only a branch is noted.
NOT_REACHED = {
    ("submit.files-written", "shared/kettle"),
    ("submit.staged", "shared/kettle"),
    ("submit.branch-noted", None),
}


@pytest.mark.parametrize(
    ("point", "branch"),
    [pair for pair in product(SUBMIT_POINTS, [None, "shared/kettle"]) if pair not in NOT_REACHED],
)
def test_a_submit_that_is_killed_is_finished_by_the_next(point, branch, run_cli, make_repo, git) -> None:
    repo = make_repo()
    (repo / "app.txt").write_text("staged\n")
    git("add", "app.txt", cwd=repo)
    (repo / "app.txt").write_text("not staged\n")
    (repo / "notes.txt").write_text("untracked\n")
    staged_before = git("ls-files", "-s", "-t", cwd=repo)
    added = json.loads(run_cli("add", "the kettle is red", "--json", cwd=repo).stdout)["id"]
    words = ["submit", added, *(["--branch", branch] if branch else [])]
    killed(run_cli, point, *words, cwd=repo)

    assert len(found(run_cli, "kettle", repo)) == 1, "one memory, wherever it lies"
    # The user goes on working: their commit never takes the memory back.
    again = run_cli(*words, "--json", cwd=repo)
    assert again.returncode == 0, again.stderr
    tip = branch or "HEAD"
    path = f".ai/open-memex/{added}.md"
    assert git("show", "--name-only", "--format=", tip, cwd=repo) == path
    assert git("log", "--oneline", f"main~0..{tip}" if branch else "HEAD~1..HEAD", cwd=repo).count("\n") == 0
    assert "the kettle is red" in git("show", f"{tip}:{path}", cwd=repo)
    lines = [line for line in git("ls-files", "-s", "-t", cwd=repo).splitlines() if path not in line]
    assert "\n".join(lines) == staged_before
    assert (repo / "app.txt").read_text() == "not staged\n"
    assert json.loads(run_cli("sync-status", "--json", cwd=repo).stdout)["outbox"] == []
    git("fsck", "--strict", cwd=repo)
    assert len(found(run_cli, "kettle", repo)) == 1
    git("commit", "-q", "-m", "the user's own", cwd=repo)
    assert git("show", "--name-only", "--format=", "HEAD", cwd=repo) == "app.txt"
    if not branch:
        assert "the kettle is red" in git("show", f"HEAD:{path}", cwd=repo)


def test_after_a_kill_a_users_own_commit_never_reverts_the_memory(run_cli, make_repo, git) -> None:
    for point in ("submit.objects-written", "submit.staged", "submit.ref-moved"):
        repo = make_repo(point)
        added = json.loads(run_cli("add", f"the kettle of {point}", "--json", cwd=repo).stdout)["id"]
        killed(run_cli, point, "submit", added, cwd=repo)
        (repo / "app.txt").write_text("mine\n")
        git("commit", "-q", "-am", "mine", cwd=repo)
        done = run_cli("submit", added, cwd=repo)
        assert done.returncode == 0 or "no change to commit" in done.stderr, done.stderr
        assert point in git("show", f"HEAD:.ai/open-memex/{added}.md", cwd=repo)
        assert git("status", "--porcelain", cwd=repo) == ""


def test_a_kill_at_any_moment_loses_nothing_that_was_acknowledged(run_cli, make_repo) -> None:
    repo = make_repo()
    chance = random.Random(7)
    acknowledged: list[str] = []
    for number in range(12):
        child = subprocess.Popen(
            [sys.executable, "-m", "openmemex", "add", f"fact {number} about kettle{number}", "--json"],
            cwd=repo,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(chance.uniform(0.02, 0.6))
        child.kill()
        out, _ = child.communicate()
        if out:
            acknowledged.append(json.loads(out)["id"])
    ids = {row["id"] for row in listed(run_cli, repo)}
    assert set(acknowledged) <= ids
    healthy(run_cli, repo)
    for number in range(12):
        assert run_cli("add", f"fact {number} about kettle{number}", cwd=repo).returncode == 0
    assert len(listed(run_cli, repo)) == 12

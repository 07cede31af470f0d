"""Where the index can't be as it should: all works, one line says so, `doctor` names the cause."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]

# Loaded by every Python that finds it: this SQLite refuses what the real one can't do elsewhere.
_POOR_SQLITE = """
import sqlite3
_connect = sqlite3.connect

class Poor(sqlite3.Connection):
    def execute(self, sql, *rest):
        if {trigger}:
            raise sqlite3.OperationalError({error!r})
        return super().execute(sql, *rest)

sqlite3.connect = lambda *given, **named: _connect(*given, **{{"factory": Poor, **named}})
"""
_NO_FTS5 = ("'fts5' in sql.lower() and 'create' in sql.lower()", "no such module: fts5")
_NO_WAL = ("'journal_mode' in sql.lower() and 'wal' in sql.lower()", "locking protocol")


def poor_sqlite(folder: Path, trigger: str, error: str) -> dict[str, str]:
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_POOR_SQLITE.format(trigger=trigger, error=error))
    return {"PYTHONPATH": f"{folder}{os.pathsep}{CHECKOUT}"}


def works(run_cli: Callable[..., subprocess.CompletedProcess[str]], repo: Path, env: dict[str, str]) -> str:
    """Add, show, list, search and forget; gives what the search said on stderr."""
    said = ""
    added = run_cli("add", "the kettle is red", "--json", cwd=repo, env=env)
    assert added.returncode == 0, added.stderr
    memory = json.loads(added.stdout)["id"]
    for words in (["show", memory], ["list"], ["search", "red kettle"]):
        done = run_cli(*words, cwd=repo, env=env)
        assert done.returncode == 0, done.stderr
        assert "the kettle is red" in done.stdout
        said = done.stderr
    assert run_cli("add", "the kettle is red", "--json", cwd=repo, env=env).stdout.count("duplicate")
    gone = json.loads(run_cli("add", "soon forgotten", "--json", cwd=repo, env=env).stdout)["id"]
    assert run_cli("forget", gone, "--yes", cwd=repo, env=env).returncode == 0
    assert "soon" not in run_cli("search", "soon forgotten", cwd=repo, env=env).stdout
    return said


def failed_checks(
    run_cli: Callable[..., subprocess.CompletedProcess[str]], repo: Path, env: dict[str, str]
) -> str:
    checks = json.loads(run_cli("doctor", "--json", cwd=repo, env=env).stdout)["checks"]
    return " ".join(check["text"] for check in checks if not check["ok"])


def test_without_full_text_search_everything_works_and_is_said(run_cli, make_repo, tmp_path) -> None:
    repo = make_repo()
    env = poor_sqlite(tmp_path / "poor", *_NO_FTS5)
    said = works(run_cli, repo, env)
    assert said.count("FTS5") == 1
    assert len(said.strip().splitlines()) == 1
    assert "FTS5" in failed_checks(run_cli, repo, env)


def test_without_a_write_ahead_log_everything_works(run_cli, home, make_repo, tmp_path) -> None:
    works(run_cli, make_repo(), poor_sqlite(tmp_path / "poor", *_NO_WAL))
    connection = sqlite3.connect(home.data / "index.db")
    assert connection.execute("pragma journal_mode").fetchone() == ("delete",)
    connection.close()


def test_where_the_index_can_not_be_it_goes_to_the_cache_and_that_is_said(run_cli, home, make_repo) -> None:
    repo = make_repo()
    (home.data / "index.db").mkdir(parents=True)
    said = works(run_cli, repo, {})
    assert "index.db" in said
    assert len(said.strip().splitlines()) == 1
    assert "index.db" in failed_checks(run_cli, repo, {})
    assert list((home / ".cache" / "open-memex").glob("index-*.db"))


_SESSION = """
import sys
from openmemex.cli.fast import main
worker = sys.argv[1]
for number in range(12):
    code = main(["add", f"session {worker} learned fact {number} of w{worker}n{number}"])
    assert code == 0, code
    code = main(["search", f"fact {number} learned"])
    assert code == 0, code
"""


def test_sessions_that_start_at_once_lose_nothing_to_a_held_lock_or_a_kill(
    run_cli, om, home, make_repo
) -> None:
    repo = make_repo()

    def session(name: str) -> subprocess.Popen[str]:
        words = [sys.executable, "-c", _SESSION, name]
        return subprocess.Popen(words, cwd=repo, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    sessions = [session(str(number)) for number in range(4)]
    victim = session("victim")
    index = home.data / "index.db"
    while not list(home.data.glob("memories/project__*/*.md")):
        time.sleep(0.02)
    holder = sqlite3.connect(index, isolation_level=None, timeout=30, check_same_thread=False)
    holder.execute("begin immediate")
    release = threading.Timer(2, lambda: holder.execute("rollback"))
    release.start()
    time.sleep(0.5)
    victim.kill()
    victim.communicate()
    for one in sessions:
        _, err = one.communicate(timeout=300)
        assert one.returncode == 0, err
        assert "busy" not in err
        assert "holds the index" not in err
    release.join()
    holder.close()
    files = list(home.data.glob("memories/project__*/*.md"))
    kept = [path for path in files if "session victim" not in path.read_text()]
    assert len(kept) == 48
    assert om("list", "--limit", "1", cwd=repo)["total"] == len(files)
    assert om("add", "after all of that", cwd=repo)["action"] == "created"


def test_a_lock_that_stays_delays_the_index_and_never_the_memory(run_cli, om, home, make_repo) -> None:
    repo = make_repo()
    om("add", "the first", cwd=repo)
    holder = sqlite3.connect(home.data / "index.db", isolation_level=None)
    holder.execute("begin immediate")
    added = om("add", "written meanwhile", cwd=repo)
    assert [notice["kind"] for notice in added["notices"]] == ["index-busy"]
    assert [
        path.read_text().endswith("written meanwhile\n") for path in home.data.rglob(f"{added['id']}.md")
    ] == [True]
    holder.execute("rollback")
    holder.close()
    assert [hit["id"] for hit in om("search", "meanwhile", cwd=repo)["hits"]] == [added["id"]]


@pytest.mark.parametrize("damage", ["garbage", "empty", "cut", "another-database"])
def test_a_damaged_index_is_made_anew_and_that_is_said_once(damage, run_cli, om, home, make_repo) -> None:
    repo = make_repo()
    memory = om("add", "the kettle is red", cwd=repo)["id"]
    index = home.data / "index.db"
    raw = index.read_bytes()
    for side in home.data.glob("index.db-*"):
        side.unlink()
    index.unlink()
    if damage == "another-database":
        with sqlite3.connect(index) as connection:
            connection.execute("create table theirs (a)")
        connection.close()
    else:
        index.write_bytes({"garbage": b"\xff" * 9000, "empty": b"", "cut": raw[: len(raw) // 2]}[damage])
    done = run_cli("search", "kettle", "--json", cwd=repo)
    assert done.returncode == 0
    assert [hit["id"] for hit in json.loads(done.stdout)["hits"]] == [memory]
    assert ("rebuilt" in done.stderr) == (damage != "empty")
    again = run_cli("search", "kettle", "--json", cwd=repo)
    assert again.stderr == ""

"""Many processes on one home at once: no write is lost, no error is seen, readers never see half of
anything.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

_WRITER = """
import sys
from openmemex.cli.fast import main
worker, count = int(sys.argv[1]), int(sys.argv[2])
for number in range(count):
    text = f"worker {worker} learned fact {number} of w{worker}n{number}"
    code = main(["add", text, "--scope", "personal"])
    assert code == 0, code
"""
_READER = """
import sys
from openmemex.cli.fast import main
for number in range(int(sys.argv[1])):
    code = main(["search", f"fact {number} learned", "--json"])
    assert code == 0, code
"""


def _start(program: str, *args: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _run_together(writers: int, each: int, readers: int, home, run_cli, tmp_path: Path) -> None:
    running = [_start(_WRITER, worker, each) for worker in range(writers)]
    running += [_start(_READER, each) for _ in range(readers)]
    for process in running:
        out, err = process.communicate(timeout=900)
        assert process.returncode == 0, err
        noise = [line for line in err.splitlines() if "similar" not in line and "no project" not in line]
        assert not [line for line in noise if "error" in line.lower() or "busy" in line.lower()], noise
        assert "Traceback" not in err + out
    files = list((home.data / "memories" / "personal").glob("*.md"))
    assert len(files) == writers * each
    done = run_cli("list", "--json", "--limit", "1", cwd=tmp_path)
    assert json.loads(done.stdout)["total"] == writers * each
    assert not [name for name in os.listdir(home.data / "memories" / "personal") if name.endswith(".tmp")]


def test_processes_that_add_at_once_lose_no_memory(home, run_cli, tmp_path) -> None:
    _run_together(8, 12, 4, home, run_cli, tmp_path)


@pytest.mark.slow
def test_eight_processes_of_a_hundred_adds_lose_no_memory(home, run_cli, tmp_path) -> None:
    _run_together(8, 100, 4, home, run_cli, tmp_path)


def test_two_processes_with_the_same_text_write_one_memory(home, run_cli, tmp_path) -> None:
    words = ["add", "said twice at once", "--scope", "personal", "--json"]
    program = f"from openmemex.cli.fast import main; raise SystemExit(main({words!r}))"
    running = [_start(program) for _ in range(6)]
    answers = []
    for process in running:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        answers.append(json.loads(out))
    assert sorted(answer["action"] for answer in answers) == ["created", *["duplicate"] * 5]
    assert len({answer["id"] for answer in answers}) == 1


def test_a_write_stands_while_the_index_can_not_even_be_read(home, om, run_cli, tmp_path) -> None:
    om("add", "first of all", "--scope", "personal", cwd=tmp_path)
    with sqlite3.connect(home.data / "index.db", isolation_level=None) as other:
        other.execute("pragma locking_mode = exclusive")
        other.execute("begin exclusive")
        done = om("add", "second to none", "--scope", "personal", cwd=tmp_path)
        assert done["action"] == "created"
        assert [notice["kind"] for notice in done["notices"]] == ["index-busy"]
        assert (home.data / done["path"]).exists()
    other.close()
    assert om("list", "--scope", "personal", cwd=tmp_path)["total"] == 2

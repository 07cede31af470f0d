"""Many processes, one index: nobody is turned away, nothing is lost, and a killed one leaves no trace."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from openmemex.errors import IndexBusy
from openmemex.index import schema

from .conftest import Folder, Reader

TABLES = ("home", "place", "content", "stream", "meta")
# A process that adds memories (or searches) in the personal home and looks at the index after each.
_WORKER = """
import os, sys
from openmemex import paths
from openmemex.index.memory_index import MemoryIndex
from openmemex.memory import frontmatter
from openmemex.memory.ids import new_id
from openmemex.memory.model import Memory
from openmemex.store.homes import personal_home

root, kind, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
home = personal_home(root)
paths.make_folder(home.folder)
index = MemoryIndex.open(os.path.join(root, "index.db"))
stale = 0
for number in range(count):
    if kind == "add":
        memory_id = new_id()
        memory = Memory(memory_id, f"common words of {os.getpid()} number {number}\\n",
                        created_at="2026-09-26T12:00:00Z", updated_at="2026-09-26T12:00:00Z")
        paths.create_exclusively(home.path_of(memory_id), frontmatter.render(memory), 0o600, fsync=False)
        print(memory_id, flush=True)
    stale += not index.reconcile([home]).fresh
    result = index.search("common", [home], None, 5)
    assert kind == "read" or result.total > number, result
print("stale", stale)
print("warning", index.warning)
"""


def _start(root: Path, kind: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _WORKER, str(root), kind, str(count)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _finish(process: subprocess.Popen[str]) -> list[str]:
    """The ids that the process told of before its end; it must have met no trouble."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert err == ""
    *ids, stale, warning = out.splitlines()
    assert stale == "stale 0"
    assert warning == "warning "
    return ids


def _sound(reader: Reader, expected: set[str], personal: Folder) -> None:
    assert set(reader.ids(personal)) == expected
    result = reader.index.search("common", [personal.home], None, 1000)
    assert {hit.row.id for hit in result.hits} == expected
    with sqlite3.connect(reader.path) as connection:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
        (rows,) = connection.execute("select rows from total").fetchone()
        assert connection.execute("select count(*) from content").fetchone() == (rows,)
        assert connection.execute("select count(*) from stream").fetchone() == (rows,)
        assert connection.execute("select sum(count) from home").fetchone() == (len(expected),)
        (length,) = connection.execute("select length from total").fetchone()
        assert connection.execute("select sum(length) from content").fetchone() == (length,)
        words = connection.execute("select doc from vocabulary where term = 'common'").fetchone()
        assert words == (rows,)
    connection.close()


def test_eight_that_add_and_four_that_read_lose_nothing(
    personal: Folder, reader: Reader, home: object
) -> None:
    root = reader.path.parent
    adders = [_start(root, "add", 100) for _ in range(8)]
    readers = [_start(root, "read", 60) for _ in range(4)]
    ids = [memory_id for process in adders for memory_id in _finish(process)]
    for process in readers:
        _finish(process)
    assert len(set(ids)) == 800
    _sound(reader, set(ids), personal)


def test_six_that_open_a_fresh_index_at_once_all_work(personal: Folder, reader: Reader) -> None:
    for _ in range(4):
        for path in reader.path.parent.glob("index.db*"):
            path.unlink()
        processes = [_start(reader.path.parent, "add", 2) for _ in range(6)]
        for process in processes:
            assert len(_finish(process)) == 2
    assert len(reader.ids(personal)) == 48


@pytest.mark.parametrize("seed", range(6))
def test_a_killed_process_leaves_neither_lock_nor_half_a_state(
    personal: Folder, reader: Reader, seed: int
) -> None:
    root = reader.path.parent
    chance = random.Random(seed)
    told: set[str] = set()
    for _ in range(3):
        victims = [_start(root, "add", 1000) for _ in range(2)]
        bystander = _start(root, "add", 5)
        time.sleep(chance.uniform(0.15, 0.6))
        for victim in victims:
            victim.send_signal(signal.SIGKILL)
            out, _ = victim.communicate(timeout=60)
            told.update(line for line in out.splitlines() if len(line) == 26)
        told.update(_finish(bystander))
    expected = {path.stem for path in personal.path.glob("*.md")}
    assert told <= expected
    assert reader.look(personal).rebuilt == ""
    _sound(reader, expected, personal)


def _holder(path: Path, seconds: float) -> subprocess.Popen[str]:
    """A process that holds the index's write lock; returns when it has it."""
    script = (
        "import sqlite3, sys, time; c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30);"
        "c.execute('begin immediate'); print('held', flush=True); time.sleep(float(sys.argv[2]));"
        "c.execute('rollback')"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(path), str(seconds)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    return process


def test_a_lock_held_for_two_seconds_is_waited_for(personal: Folder, reader: Reader) -> None:
    personal.write("common words")
    reader.look(personal)
    with _holder(reader.path, 2):
        added = personal.write("common words too")
        assert reader.look(personal).fresh
        assert added in reader.ids(personal)


def test_a_lock_held_for_longer_makes_answers_old_but_never_fails(
    personal: Folder, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "BUSY_SECONDS", 0.2)
    known = personal.write("common words")
    reader.settled(personal)
    with _holder(reader.path, 60) as holder:
        # Nothing changed: no lock is needed, and the answer is fresh.
        assert reader.look(personal).fresh
        added = personal.write("common words too")
        assert not reader.look(personal).fresh
        reader.index.remember("key", "value")
        assert reader.index.recall("key") is None
        result = reader.index.search("common", [personal.home])
        assert [hit.row.id for hit in result.hits] == [known]
        assert [row.id for row in reader.index.list([personal.home]).rows] == [known]
        assert reader.index.find([personal.home], added) == []
        holder.kill()
    assert set(reader.ids(personal)) == {known, added}


def test_readers_see_one_moment_while_others_write(personal: Folder, reader: Reader) -> None:
    known = {personal.write("common words") for _ in range(20)}
    reader.look(personal)
    process = _start(reader.path.parent, "add", 60)
    while process.poll() is None:
        result = reader.index.search("common", [personal.home], None, 1000)
        assert result.total == len(result.hits)
        listed = reader.index.list([personal.home], None, 1000)
        assert listed.total == len(listed.rows)
        assert known <= {row.id for row in listed.rows}
    _sound(reader, {*known, *_finish(process)}, personal)


def test_one_that_edits_while_others_look_is_never_answered_with_old_words_at_the_end(
    personal: Folder, reader: Reader
) -> None:
    memory_id = personal.write("common start")
    others = [_start(reader.path.parent, "read", 40) for _ in range(3)]
    for number in range(60):
        personal.write(f"common step {number}", id=memory_id)
        reader.look(personal)
    for process in others:
        _finish(process)
    (row,) = [row for row in _rows(reader, personal) if row.id == memory_id]
    assert row.summary == "common step 59"
    _sound(reader, {memory_id}, personal)


def _rows(reader: Reader, personal: Folder) -> tuple[object, ...]:
    reader.look(personal)
    return reader.index.list([personal.home]).rows


def test_two_programs_of_different_age_do_not_undo_each_other(
    personal: Folder, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older one keeps its own file, so neither rebuilds at every turn."""
    ids = {personal.write("common words") for _ in range(5)}
    reader.settled(personal)
    newer = Reader(reader.path)
    with monkeypatch.context() as patch:
        patch.setattr(schema.segment, "RULES_VERSION", schema.segment.RULES_VERSION + 1)
        assert "its rules changed" in newer.look(personal).rebuilt
        newer.settled(personal)
    reader.index.close()
    assert set(reader.ids(personal)) == ids
    reader.settled(personal)
    for _ in range(3):
        with monkeypatch.context() as patch:
            patch.setattr(schema.segment, "RULES_VERSION", schema.segment.RULES_VERSION + 1)
            newer.index.close()
            freshness = newer.look(personal)
            assert (freshness.read, freshness.rebuilt) == (0, "")
        reader.index.close()
        freshness = reader.look(personal)
        assert (freshness.read, freshness.rebuilt) == (0, "")
    newer.index.close()


@pytest.mark.parametrize("change", ["rules", "tables"])
def test_an_open_index_that_a_newer_program_makes_its_own_is_left_to_it(
    personal: Folder, reader: Reader, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    ids = {personal.write("common words") for _ in range(5)}
    reader.settled(personal)
    newer = Reader(reader.path)
    with monkeypatch.context() as patch:
        if change == "rules":
            patch.setattr(schema.segment, "RULES_VERSION", schema.segment.RULES_VERSION + 1)
        else:
            patch.setattr(schema, "SCHEMA_VERSION", schema.SCHEMA_VERSION + 1)
            patch.setattr(
                schema, "_TABLES", schema._TABLES + "alter table place rename column name to called;\n"
            )
            patch.setattr(newer.index, "_reconcile", lambda *_: None)
        newer.look(personal)
    newer.index.close()
    with sqlite3.connect(reader.path) as connection:
        before = [connection.execute(f"select * from {table}").fetchall() for table in TABLES]
    ids.add(personal.write("common words too"))
    assert set(reader.ids(personal)) == ids
    assert set(reader.found("common", personal)) == ids
    assert reader.index.path != str(reader.path)
    with sqlite3.connect(reader.path) as connection:
        after = [connection.execute(f"select * from {table}").fetchall() for table in TABLES]
    assert after == before


def test_an_index_that_can_not_even_be_read_is_waited_for_once(
    personal: Folder, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    personal.write("common words")
    reader.look(personal)
    reader.index.close()
    waits: list[float] = []
    connect = schema._connect
    monkeypatch.setattr(schema, "BUSY_SECONDS", 0.3)
    monkeypatch.setattr(schema, "_connect", lambda path, wait: waits.append(wait) or connect(path, wait))
    with sqlite3.connect(reader.path, isolation_level=None) as other:
        other.execute("pragma locking_mode = exclusive")
        other.execute("begin exclusive")
        assert not reader.look(personal).fresh
        assert reader.index.recall("key") is None
        with pytest.raises(IndexBusy):
            reader.index.list([personal.home])
    assert waits[0] == 0.3
    assert all(wait < 0.1 for wait in waits[1:])


def test_the_missing_write_ahead_log_is_told_by_every_run(
    personal: Folder, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(connection: sqlite3.Connection, wait: float) -> str:
        connection.execute("pragma journal_mode = delete")
        return "no write-ahead log here"

    monkeypatch.setattr(schema, "_choose_journal", fails)
    for _ in range(2):
        reader.look(personal)
        assert reader.index.warning == "no write-ahead log here"
        reader.index.close()
        reader.index.warning = ""


def test_what_may_be_forgotten_does_not_make_the_next_write_impatient(
    personal: Folder, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    personal.write("common words")
    reader.settled(personal)
    with _holder(reader.path, 2):
        reader.index.remember("key", "value")
        added = personal.write("common words too")
        assert reader.look(personal).fresh
        assert added in reader.ids(personal)

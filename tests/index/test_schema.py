"""Whatever is wrong with the index's file, the memories are found, and one line says what was done."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openmemex.index import schema
from openmemex.index.memory_index import MemoryIndex
from openmemex.index.rows import Filters

from .conftest import Folder, Reader


def _garbage(path: Path) -> None:
    path.write_bytes(b"this is no database at all, only some words\n" * 400)


def _empty_pages(path: Path) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw[:100] + b"\0" * (len(raw) - 100))


def _half(path: Path) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2])


def _few_bytes(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:50])


def _other_database(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("create table notes (text)")


def _sql(*statements: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        connection = sqlite3.connect(path)
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.close()

    return change


def _broken_pages(path: Path) -> None:
    """Every page but the first is overwritten in place: seen only when they are used."""
    size = path.stat().st_size
    with path.open("r+b") as handle:
        handle.seek(8192)
        handle.write(b"\xa5" * (size - 8192))


DAMAGES = {
    "garbage": _garbage,
    "empty pages": _empty_pages,
    "half of it": _half,
    "a few bytes": _few_bytes,
    "broken pages": _broken_pages,
    "another database": _other_database,
    "no places": _sql("drop table place"),
    "no full text": _sql("drop table vocabulary", "drop table full_text"),
    "no streams": _sql("drop table stream"),
    "no rules": _sql("delete from meta"),
    "odd rules": _sql("update meta set value = 'x'"),
    "a missing column": _sql("drop index content_text_key", "alter table content drop column text_key"),
}
OLD = {
    "older tables": _sql("pragma user_version = 0", "drop table cache", "pragma user_version = -3"),
    "older cutting": _sql("update meta set value = '0 0 bigram' where key = 'rules'"),
    "another setting": _sql("update meta set value = replace(value, 'bigram', 'trigram')"),
}


def _closed(reader: Reader) -> Path:
    """The index's file, with everything in it and nobody using it."""
    reader.index.close()
    with sqlite3.connect(reader.path) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    connection.close()
    for ending in ("-wal", "-shm"):
        Path(f"{reader.path}{ending}").unlink(missing_ok=True)
    return reader.path


@pytest.mark.parametrize("what", [*DAMAGES, *OLD])
def test_a_file_that_cannot_be_used_is_made_anew(personal: Folder, reader: Reader, what: str) -> None:
    ids = {personal.write(f"words number {number}") for number in range(20)}
    assert set(reader.ids(personal)) == ids
    {**DAMAGES, **OLD}[what](_closed(reader))

    freshness = reader.look(personal)
    rows = reader.index.list([personal.home], None, 100).rows
    hits = reader.index.search("number", [personal.home], None, 100).hits
    assert {row.id for row in rows} == ids
    assert {hit.row.id for hit in hits} == ids
    said = freshness.rebuilt or reader.look(personal).rebuilt
    cause = "its rules changed" if what in OLD else "it was damaged"
    assert said == f"the memory index was rebuilt from 20 files: {cause}"
    assert reader.look(personal).rebuilt == ""
    assert not reader.index.warning
    assert not list(reader.path.parent.glob("index-*.db"))


@pytest.mark.parametrize("what", ["garbage", "broken pages", "no places", "no full text"])
def test_damage_that_comes_while_it_is_open_is_mended_on_the_way(
    personal: Folder, reader: Reader, what: str
) -> None:
    ids = {personal.write(f"words number {number}") for number in range(20)}
    reader.look(personal)
    with sqlite3.connect(reader.path) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    connection.close()
    DAMAGES[what](reader.path)
    assert {hit.row.id for hit in reader.index.search("number", [personal.home], None, 99).hits} == ids
    assert set(reader.ids(personal)) == ids


def test_a_missing_file_is_made_without_a_word(personal: Folder, reader: Reader) -> None:
    memory_id = personal.write("words")
    assert reader.look(personal).rebuilt == ""
    _closed(reader).unlink()
    freshness = reader.look(personal)
    assert (freshness.read, freshness.rebuilt) == (1, "")
    assert reader.ids(personal) == [memory_id]


def test_all_that_is_known_can_be_thrown_away(personal: Folder, reader: Reader) -> None:
    ids = {personal.write(f"words {number}") for number in range(3)}
    reader.settled(personal)
    reader.index.discard()
    assert reader.index.list([personal.home]).total == 0
    assert reader.look(personal).read == 3
    assert set(reader.found("words", personal)) == ids


def test_files_are_for_their_owner_alone(personal: Folder, reader: Reader) -> None:
    personal.write("words")
    reader.look(personal)
    for path in reader.path.parent.glob("index.db*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "newer",
    [
        _sql("drop table place", "pragma user_version = 999"),
        _sql("update meta set value = '999 1 bigram' where key = 'rules'"),
    ],
)
def test_an_index_of_a_newer_program_is_left_to_it(
    personal: Folder, reader: Reader, newer: Callable[[Path], None]
) -> None:
    ids = {personal.write(f"words {number}") for number in range(3)}
    reader.look(personal)
    newer(_closed(reader))
    before = reader.path.read_bytes()
    assert reader.look(personal).rebuilt == ""
    assert set(reader.ids(personal)) == ids
    assert reader.settled(personal).read == 0
    reader.index.close()
    assert reader.path.read_bytes() == before
    again = MemoryIndex.open(str(reader.path))
    assert again.reconcile([personal.home]).read == 0
    assert again.path != str(reader.path)
    again.close()


def test_another_process_that_has_the_damaged_file_open_comes_to_no_harm(
    personal: Folder, reader: Reader
) -> None:
    ids = {personal.write(f"words {number}") for number in range(50)}
    reader.look(personal)
    script = (
        "import sys\n"
        "from openmemex.index.memory_index import MemoryIndex\n"
        "from openmemex.store.homes import personal_home\n"
        "home = [personal_home(sys.argv[2])]\n"
        "index = MemoryIndex.open(sys.argv[1])\n"
        "for line in sys.stdin:\n"
        "    index.reconcile(home)\n"
        "    print(index.list(home).total, index.search('words', home).total, flush=True)\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", script, str(reader.path), str(reader.path.parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdin
    assert other.stdout

    def ask() -> str:
        other.stdin.write("now\n")
        other.stdin.flush()
        return other.stdout.readline()

    assert ask() == "50 50\n"
    with sqlite3.connect(reader.path) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    connection.close()
    _broken_pages(reader.path)
    assert set(reader.ids(personal)) == ids
    assert ask() == "50 50\n"
    ids.add(personal.write("words more"))
    assert ask() == "51 51\n"
    assert set(reader.ids(personal)) == ids
    other.stdin.close()
    assert other.wait(20) == 0
    # The other one's end must not have taken away the log of the new file.
    with sqlite3.connect(reader.path) as connection:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
    assert set(reader.ids(personal)) == ids


class Limited(sqlite3.Connection):
    """A SQLite that lacks what `lacks` matches in a statement, with the error that the real one gives."""

    lacks = ("", "")

    def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
        if self.lacks[0] in sql:
            raise sqlite3.OperationalError(self.lacks[1])
        return super().execute(sql, *args)


def _limit(monkeypatch: pytest.MonkeyPatch, lacks: tuple[str, str]) -> None:
    real = sqlite3.connect
    kind = type("Lacking", (Limited,), {"lacks": lacks})
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **kwargs: real(*args, factory=kind, **kwargs))


def test_without_fts5_search_still_answers(
    personal: Folder, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = personal.write("rotate the staging password")
    other = personal.write("the staging server")
    personal.write("nothing of it")
    _limit(monkeypatch, ("using fts5", "no such module: fts5"))
    assert reader.found("staging password", personal) == [best, other]
    assert "FTS5" in reader.index.warning
    personal.write("rotate no more", id=best)
    assert reader.found("staging password", personal) == [other]
    assert reader.index.neighbours("the staging server", [personal.home])[0].id == other
    personal.remove(other)
    assert reader.ids(personal)[0] == best or len(reader.ids(personal)) == 2
    assert reader.found("staging", personal) == []


def test_an_index_with_full_text_is_left_alone_by_a_python_without(
    personal: Folder, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_id = personal.write("staging words")
    reader.look(personal)
    reader.index.close()
    with monkeypatch.context() as patch:
        _limit(patch, ("full_text", "no such module: fts5"))
        reader.index = MemoryIndex.open(str(reader.path))
        assert reader.found("staging", personal) == [memory_id]
        assert "FTS5" in reader.index.warning
        reader.index.close()
    reader.index = MemoryIndex.open(str(reader.path))
    assert reader.found("staging", personal) == [memory_id]
    assert reader.index.warning == ""


def test_without_a_write_ahead_log_everything_works(
    personal: Folder, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    _limit(monkeypatch, ("journal_mode = wal", "locking protocol"))
    memory_id = personal.write("staging words")
    assert reader.found("staging", personal) == [memory_id]
    assert reader.index.warning == (
        "the memory index works without a write-ahead log (locking protocol): readers may have to wait"
    )
    assert not Path(f"{reader.path}-wal").exists()
    assert reader.settled(personal).fresh


def test_a_disk_that_fails_moves_the_index_to_the_cache_folder(
    personal: Folder, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_id = personal.write("staging words")
    real = schema.make_tables

    def fails(connection: sqlite3.Connection, *args: Any, **named: Any) -> None:
        if "memex-data" in connection.execute("pragma database_list").fetchone()[2]:
            raise sqlite3.OperationalError("disk I/O error")
        real(connection, *args, **named)

    monkeypatch.setattr(schema, "make_tables", fails)
    assert reader.found("staging", personal) == [memory_id]
    assert reader.index.path.startswith(os.environ["XDG_CACHE_HOME"])
    assert "disk I/O error" in reader.index.warning
    assert str(reader.path) in reader.index.warning


def test_a_full_disk_leaves_the_old_answers(personal: Folder, reader: Reader) -> None:
    known = {personal.write("staging words") for _ in range(5)}
    reader.settled(personal)
    opened = reader.index._ready()
    (pages,) = opened.connection.execute("pragma page_count").fetchone()
    opened.connection.execute(f"pragma max_page_count = {pages}")
    new = {personal.write("staging words " * 2000) for _ in range(20)}
    freshness = reader.look(personal)
    assert not freshness.fresh
    assert reader.index.warning == f"the memory index at {reader.path} can't grow: the disk is full"
    homes = [personal.home]
    assert {row.id for row in reader.index.list(homes).rows} == known
    assert {hit.row.id for hit in reader.index.search("staging", homes).hits} == known
    opened.connection.execute("pragma max_page_count = 1000000")
    assert set(reader.ids(personal)) == known | new


def test_a_place_that_is_no_file_is_gone_round(personal: Folder, reader: Reader) -> None:
    reader.path.mkdir()
    memory_id = personal.write("staging words")
    assert reader.found("staging", personal) == [memory_id]
    assert reader.index.warning
    assert reader.path.is_dir()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="needs to become another user")
@pytest.mark.parametrize("cache", [True, False])
def test_a_data_folder_that_cannot_be_written_is_read(
    personal: Folder, reader: Reader, tmp_path: Path, cache: bool
) -> None:
    ids = sorted(personal.write(f"words {number}") for number in range(3))
    reader.ids(personal)
    reader.index.close()
    for folder in (*personal.path.parents, personal.path, *tmp_path.parents, tmp_path):
        if folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    for path in (reader.path, *personal.path.iterdir()):
        path.chmod(0o444)
    own = tmp_path / "own"
    own.mkdir()
    if cache:
        os.chown(own, 65534, 65534)
    script = (
        "import os, sys\n"
        "from openmemex.index.memory_index import MemoryIndex\n"
        "from openmemex.index import ingest\n"
        "from openmemex.store.homes import personal_home\n"
        "os.setuid(65534)\n"
        "index, home = MemoryIndex.open(sys.argv[1]), [personal_home(sys.argv[2])]\n"
        "index.reconcile(home)\n"
        "print(sorted(row.id for row in index.list(home).rows))\n"
        "print(index.search('words', home).total, index.path)\n"
        "print(index.warning)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(reader.path), str(reader.path.parent)],
        env={**os.environ, "XDG_CACHE_HOME": str(own)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    listed, searched, warning = done.stdout.splitlines()
    assert listed == str(ids)
    assert searched.startswith(f"3 {own}/open-memex/" if cache else "3 :memory:")
    assert str(reader.path) in warning


def test_the_setting_for_chinese_is_part_of_the_rules(personal: Folder, reader: Reader) -> None:
    memory_id = personal.write("我们决定把缓存层换成集群")
    assert reader.found("缓存层", personal) == [memory_id]
    reader.index.close()
    reader.index = MemoryIndex.open(str(reader.path), cjk="trigram")
    assert "its rules changed" in reader.look(personal).rebuilt
    assert reader.found("缓存层", personal, filters=Filters()) == [memory_id]

"""Places with real memory files, and an index over them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from openmemex.index.memory_index import MemoryIndex
from openmemex.index.rows import Filters, Freshness
from openmemex.memory import frontmatter
from openmemex.memory.ids import new_id
from openmemex.memory.model import Memory
from openmemex.store import homes


class Folder:
    """A home, and how a test puts memories into it."""

    def __init__(self, place: homes.Home) -> None:
        self.home = place
        self.path = Path(place.folder)
        self.path.mkdir(parents=True, exist_ok=True)

    def write(self, body: str, *, id: str = "", **fields: Any) -> str:
        """A memory file, put in place whole as every writer does; its id."""
        memory_id = id or new_id()
        times = {"created_at": "2026-09-26T12:00:00Z", "updated_at": "2026-09-26T12:00:00Z"}
        place = {"scope": self.home.scope, "scope_key": self.home.scope_key}
        memory = Memory(memory_id, body + "\n", **{**times, **place, **fields})
        self.write_raw(memory_id, frontmatter.render(memory))
        return memory_id

    def write_raw(self, memory_id: str, raw: bytes) -> Path:
        temporary = self.path / f".{memory_id}.tmp"
        temporary.write_bytes(raw)
        os.replace(temporary, self.file(memory_id))
        return self.file(memory_id)

    def file(self, memory_id: str) -> Path:
        return self.path / f"{memory_id}.md"

    def remove(self, memory_id: str) -> None:
        self.file(memory_id).unlink()


class Reader:
    """Someone who asks the index about some homes, looking at the files before each question."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.index = MemoryIndex.open(str(path))

    def look(self, *folders: Folder) -> Freshness:
        return self.index.reconcile([folder.home for folder in folders])

    def ids(self, *folders: Folder, filters: Filters | None = None) -> list[str]:
        """The ids of every memory that is listed, newest first."""
        self.look(*folders)
        result = self.index.list([folder.home for folder in folders], filters, 100_000)
        assert result.total == len(result.rows)
        return [row.id for row in result.rows]

    def found(self, query: str, *folders: Folder, filters: Filters | None = None) -> list[str]:
        """The ids that a search finds, best first."""
        self.look(*folders)
        result = self.index.search(query, [folder.home for folder in folders], filters, 1000)
        assert result.total == len(result.hits)
        return [hit.row.id for hit in result.hits]

    def settled(self, *folders: Folder) -> Freshness:
        """A look after the files have become old enough for their stamps to be trusted."""
        for _ in range(100):
            time.sleep(0.05)
            freshness = self.look(*folders)
            if not freshness.read:
                return freshness
        raise AssertionError("the files never settle")


def some_ids(count: int) -> Sequence[str]:
    """Ids in rising order, so that tests can name older and newer ones."""
    return [new_id(1_790_000_000_000 + number) for number in range(count)]


@pytest.fixture
def personal(home: Any) -> Folder:
    return Folder(homes.personal_home(str(home.data)))


@pytest.fixture
def outbox(home: Any) -> Folder:
    return Folder(homes.outbox_home(str(home.data), "project__app__0123456789ab"))


@pytest.fixture
def repository(tmp_path: Path) -> Folder:
    root = tmp_path / "work"
    root.mkdir()
    return Folder(homes.repository_home(str(root), ".ai/open-memex", "project__app__0123456789ab"))


@pytest.fixture
def reader(home: Any) -> Iterator[Reader]:
    one = Reader(home.data / "index.db")
    yield one
    one.index.close()

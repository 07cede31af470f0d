"""Whatever was done to the folders, and however often somebody looked: the index answers as one made anew."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from openmemex.index.memory_index import MemoryIndex
from openmemex.index.rows import Filters, Row
from openmemex.store import homes

from .conftest import Folder, Reader, some_ids

IDS = some_ids(5)
WORDS = ["amber", "birch", "cobalt", "denim"]
KEY = "project__app__0123456789ab"
_id = st.sampled_from(IDS)
_word = st.sampled_from(WORDS)
_place = st.integers(0, 2)
_step = st.one_of(
    st.tuples(st.just("write"), _place, _id, _word),
    st.tuples(st.just("supersede"), _place, _id, _id),
    st.tuples(st.just("break"), _place, _id),
    st.tuples(st.just("remove"), _place, _id),
    st.tuples(st.just("move"), _place, _place, _id),
    st.tuples(st.just("copy"), _place, _place, _id),
    st.tuples(st.just("empty"), _place),
    st.tuples(st.just("look"), st.sets(_place, min_size=1)),
)


def _do(folders: Sequence[Folder], reader: Reader, step: tuple[Any, ...]) -> None:
    match step:
        case "write", place, memory_id, word:
            folders[place].write(f"common {word}", id=memory_id)
        case "supersede", place, memory_id, old:
            folders[place].write("common words", id=memory_id, supersedes=old)
        case "break", place, memory_id:
            folders[place].write_raw(memory_id, f"---\nid: {memory_id}\n".encode())
        case "remove", place, memory_id:
            folders[place].file(memory_id).unlink(missing_ok=True)
        case "move", place, other, memory_id if folders[place].file(memory_id).exists():
            folders[place].file(memory_id).replace(folders[other].file(memory_id))
        case "copy", place, other, memory_id if folders[place].file(memory_id).exists():
            folders[other].write_raw(memory_id, folders[place].file(memory_id).read_bytes())
        case "empty", place:
            for path in folders[place].path.glob("*.md"):
                path.unlink()
        case "look", places:
            reader.look(*(folders[place] for place in places))


def _answers(index: MemoryIndex, here: Sequence[homes.Home]) -> list[Any]:
    def shown(rows: Sequence[Row]) -> list[Row]:
        return sorted(rows)

    questions = [Filters(), Filters(all=True), Filters(status="superseded"), Filters(status="active")]
    answers: list[Any] = []
    for filters in questions:
        listed = index.list(here, filters, 100)
        assert listed.total == len(listed.rows)
        answers.append(shown(listed.rows))
        for word in ("common", *WORDS):
            result = index.search(word, here, filters, 100)
            assert result.total == len(result.hits)
            answers.append(shown([hit.row for hit in result.hits]))
    answers += [index.find(here, memory_id) for memory_id in IDS]
    return [*answers, index.quarantined(here), index.counts(here)]


@settings(max_examples=40)
@given(steps=st.lists(_step, max_size=25))
def test_the_index_answers_as_one_made_anew(steps: list[tuple[Any, ...]], tmp_path_factory: Any) -> None:
    root: Path = tmp_path_factory.mktemp("history")
    (root / "work").mkdir()
    folders = [
        Folder(homes.personal_home(str(root))),
        Folder(homes.outbox_home(str(root), KEY)),
        Folder(homes.repository_home(str(root / "work"), ".ai/open-memex", KEY)),
    ]
    reader = Reader(root / "index.db")
    for step in steps:
        _do(folders, reader, step)
    for some in (folders, folders[:1], folders[1:]):
        here = [folder.home for folder in some]
        reader.look(*some)
        anew = MemoryIndex.open(":memory:")
        anew.reconcile(here)
        assert _answers(reader.index, here) == _answers(anew, here)
        anew.close()
    reader.index.close()
    _consistent(root / "index.db")


def _consistent(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        ask = connection.execute
        assert ask("pragma integrity_check").fetchone() == ("ok",)
        alone = "select id from content where id not in (select content from place where content is not null)"
        assert set(ask(alone)) == set(ask("select content from orphan"))
        twins = "select memory from content group by memory having count(*) > 1"
        assert set(ask(twins)) <= set(ask("select memory from twin"))
        sums = "select count(*), coalesce(sum(length), 0) from content"
        assert ask(sums).fetchone() == ask("select rows, length from total").fetchone()
        counted = "select home, count(content) from place group by home having count(content) > 0"
        assert set(ask(counted)) == set(ask("select id, count from home where count > 0"))
    connection.close()

"""What people type and what must be found for it, from files through the index to the hits."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openmemex.index.memory_index import MemoryIndex

from .conftest import Folder, Reader


def numbers(reader: Reader, folder: Folder, bodies: list[str], query: str) -> list[int]:
    """Which of `bodies`, counted from 1, the query finds, best first."""
    ids = [folder.write(body) for body in bodies]
    return [ids.index(found) + 1 for found in reader.found(query, folder)]


@pytest.mark.parametrize(
    "query",
    [
        "blue-green",
        "node@20.4",
        "apps/web.toml",
        "it's",
        "C++",
        "std::span",
        "40%",
        "web.toml",
        "BLUE GREEN",
        "bluegreen",
        "20.4",
        '"node@20.4"',
        "rollout -node",
        "node AND (",
    ],
)
def test_names_and_signs_are_found_as_they_are_spelled(personal: Folder, reader: Reader, query: str) -> None:
    body = "blue-green rollout for node@20.4 in apps/web.toml; it's C++ and std::span; 40% done"
    assert numbers(reader, personal, [body], query) == [1]


@pytest.mark.parametrize("query", ["", "  ", "\t\n", "?", "\0", "()", '""'])
def test_an_empty_query_finds_nothing_and_raises_nothing(
    personal: Folder, reader: Reader, query: str
) -> None:
    assert numbers(reader, personal, ["some memory"], query) == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("password staging", [1]),
        ("how do we rotate the staging password?", [1]),
        ("rotate zebra", [1]),
        ('"staging database"', [1]),
        ('"password staging"', []),
        ("freeze on fridays", [2]),
    ],
)
def test_questions_need_not_be_matched_word_for_word(
    personal: Folder, reader: Reader, query: str, expected: list[int]
) -> None:
    bodies = ["Rotate the staging database password every 90 days", "Rollout freeze on Fridays"]
    assert numbers(reader, personal, bodies, query) == expected


def test_grammar_alone_finds_what_holds_it(personal: Folder, reader: Reader) -> None:
    bodies = ["the freeze of Fridays", "the keys", "otters"]
    assert numbers(reader, personal, bodies, "the of and") == [1, 2]
    assert reader.found("的", personal) == []


def test_fewer_words_matched_is_ranked_lower(personal: Folder, reader: Reader) -> None:
    bodies = ["rotate keys", "rotate the staging password", "rotate the password"]
    assert numbers(reader, personal, bodies, "rotate staging password") == [2, 3, 1]


CJK = [
    "我们决定把缓存层换成redis集群，回滚窗口为30分钟",
    "障害時はサーバーを再起動する",
    "배포는 금요일에 하지 않는다",
]


@pytest.mark.parametrize("cjk", ["bigram", "trigram"])
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        *[
            (query, 1)
            for query in ("缓存", "缓存层", "redis", "集群", "redis集群", "回滚窗口", "30分钟", "缓存 redis")
        ],
        *[(query, 1) for query in ("缓存回滚", "缓", "30", "Redis 集群的回滚", "“缓存层”")],
        *[(query, 2) for query in ("再起動", "サーバー", "障害", "障", "ｻｰﾊﾞｰ")],
        *[(query, 3) for query in ("금요일", "배포", "배", "금요일에")],
        ("部署", 4),
    ],
)
def test_words_of_scripts_without_blanks_are_found(
    personal: Folder, tmp_path: Path, query: str, expected: int, cjk: str
) -> None:
    ids = [*map(personal.write, CJK), personal.write("release notes", tags=("部署",))]
    index = MemoryIndex.open(str(tmp_path / "index.db"), cjk=cjk)
    index.reconcile([personal.home])
    hits = index.search(query, [personal.home]).hits
    index.close()
    assert [ids.index(hit.row.id) + 1 for hit in hits] == [expected]


def test_parts_that_are_not_adjacent_score_less_than_the_word(personal: Folder, reader: Reader) -> None:
    bodies = ["缓存层换成集群，回滚窗口三十分", "这里说的就是缓存回滚这件事情啊"]
    assert numbers(reader, personal, bodies, "缓存回滚") == [2, 1]


@pytest.mark.parametrize(
    ("query", "expected"),
    [("上海 南京", [1, 4]), ("海南", [2]), ("数据库", [3]), ('"数据库"', []), ('"上海"', [4, 1])],
)
def test_no_word_arises_across_a_gap(
    personal: Folder, reader: Reader, query: str, expected: list[int]
) -> None:
    bodies = ["上海机房与南京机房互备", "海南机房已下线", "元数据已备份；证据库待建", "接口上海，南区重试"]
    ids = [personal.write(body) for body in bodies]
    reader.look(personal)
    hits = reader.index.search(query, [personal.home]).hits
    assert [ids.index(hit.row.id) + 1 for hit in hits] == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("배포", 1),
        ("ガイド", 1),
        ("café", 1),
        ("cafe", 1),
        ("api", 2),
        ("API", 2),
        ("サーバー", 3),
        ("IV", 4),
    ],
)
def test_every_spelling_of_the_same_character_is_found(
    personal: Folder, reader: Reader, query: str, expected: int
) -> None:
    bodies = [unicodedata.normalize("NFD", "배포 절차 ガイド café"), "ＡＰＩ設定", "ｻｰﾊﾞｰ設定", "Ⅳ章"]
    assert numbers(reader, personal, bodies, query) == [expected]


def test_the_file_keeps_its_spelling(personal: Folder, reader: Reader) -> None:
    body = unicodedata.normalize("NFD", "배포 café")
    memory = personal.write(body)
    before = personal.file(memory).read_bytes()
    assert reader.found("café", personal) == [memory]
    assert personal.file(memory).read_bytes() == before


@pytest.mark.parametrize(
    ("body", "queries"),
    [
        ("MongoDB fails with E11000 duplicate key", ["E11000", "e11000", "11000", "error E11000?"]),
        (
            "parser rejects maxRetryCount below 3",
            ["max_retry_count", "maxretrycount", "retry count", "maxRetry"],
        ),
        ("pinned to v1.2.3 for now", ["1.2.3", "v1.2.3", "version 1.2.3", "==1.2.3"]),
        ("bisect says 3f2a9bc1d04e is bad", ["3f2a9bc", "3F2A9BC1D04E", "3f2a9bc1d04e"]),
        ("egress is 10.20.30.40", ["10.20.30.40", "http://10.20.30.40/", "10.20.30"]),
        ("see PAY-1234 and #5678", ["PAY-1234", "pay 1234", "#5678", "5678", "[PAY-1234]"]),
        (
            "edit deploy/shard/spill_window.toml",
            ["spill_window.toml", "spill_window", "./deploy/shard/spill_window.toml"],
        ),
        ("export DRAIN_QUOTA_MODE=live", ["$DRAIN_QUOTA_MODE", "drain quota mode", "DrainQuotaMode"]),
        ("ship it 🚀 on Mondays", ["🚀"]),
        ("ห้ามดีพลอยวันศุกร์", ["วันศุกร์", "ดีพลอย"]),
        ("Не удалось подключиться к базе", ["подключение к базам", "база"]),
        ("Die Verbindung zur Datenbank bricht ab", ["Verbindungen der Datenbank", "datenbank"]),
    ],
)
def test_half_remembered_names_find_their_memory(
    personal: Folder, reader: Reader, body: str, queries: list[str]
) -> None:
    memory = personal.write(body)
    for number in range(20):
        personal.write(f"unrelated note {number} about otters, port 80{number:02}, 1.{number}.0 and maxLimit")
    for query in queries:
        assert reader.found(query, personal)[:1] == [memory], query


@given(st.text(max_size=40) | st.text(alphabet='"*():^-+.\0\ud800缓存 a', max_size=20))
@settings(max_examples=150)
def test_any_string_can_be_searched_for(text: str) -> None:
    index = MemoryIndex.open(":memory:")
    try:
        assert index.search(text, []).hits == ()
    finally:
        index.close()


def test_developer_notes_are_found(personal: Folder, reader: Reader) -> None:
    """A small run of the benchmark, as a guard: 300 notes that are near-duplicates of each other."""
    from benchmarks import devnotes

    corpus, queries = devnotes.generate(300, seed=21)
    ids = {personal.write(str(row["text"]), tags=tuple(row["tags"])): row["id"] for row in corpus}  # type: ignore[arg-type]
    reader.look(personal)
    right = near = 0
    for query in queries:
        hits = reader.index.search(str(query["text"]), [personal.home], limit=5).hits
        found = [ids[hit.row.id] for hit in hits]
        right += found[:1] == query["gold"]
        near += query["gold"][0] in found  # type: ignore[index]
    assert right >= 0.97 * len(queries)
    assert near >= 0.99 * len(queries)

"""How text is cut: what the tokens are, that both sides cut alike, and that FTS5 keeps the tokens."""

from __future__ import annotations

import sqlite3
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmemex.index import segment


def fields(body: str, tags: tuple[str, ...] = (), cjk: str = "bigram") -> list[list[str]]:
    """Atoms, extras and labels of a memory, each as a list."""
    stream = segment.index_text(body, tags, (), cjk=cjk).stream
    return [field.split() for field in stream.split(segment.FIELD_MARK)]


@pytest.mark.parametrize(
    ("text", "atoms", "extras"),
    [
        ("maxRetryCount", "max retri count", "maxretrycount"),
        ("max_retry_count", "max retri count", "maxretrycount"),
        ("MAX-RETRY-COUNT", "max retri count", "maxretrycount"),
        ("parseHTTPResponse2", "pars http respons 2", "parsehttpresponse2"),
        ("E11000", "e 11000", "e11000"),
        ("v1.2.3", "v 1 2 3", "v1 1.2.3 v1.2.3"),
        ("10.0.0.1:8080", "10 0 0 1 8080", "10.0.0.1"),
        ("2026-09-26", "2026 09 26", "2026.09.26"),
        ("10,000 users", "10000 user", ""),
        ("1,5 or 2", "1 5 or 2", ""),
        ("node@20.4", "node 20 4", "20.4"),
        ("apps/web.toml", "app web toml", "webtoml"),
        ("src/batch_replay.toml", "src batch replay toml", "batchreplay batchreplaytoml"),
        ("std::span", "std span", ""),
        ("C++ and c# and F#", "c and c and f", "c++ c# f#"),
        ("40% of #1234 in .env", "40 of 1234 in env", "40% #1234 .env"),
        ("it's GitHub's", "it s git hub s", "github"),
        ("3f2a9bc 3F2A9BC1D", "3f2a9bc 3f2a9bc1d", ""),
        ("550e8400-e29b-41d4", "550e8400 e 29 b 41 d 4", "e29b 41d4 550e8400e29b41d4"),
        ("café naïve Straße", "cafe naiv strass", "café naïve"),
        ("Не удалось подключиться", "не уда подключ", ""),
        ("ship it 🚀", "ship it 🚀", ""),
        ("end.Start", "end start", "endstart"),
        ("__init__", "init", ""),
    ],
)
def test_words_are_cut_into_parts_and_kept_whole(text: str, atoms: str, extras: str) -> None:
    found = fields(text)
    assert found[0] == atoms.split()
    assert sorted(found[1]) == sorted(extras.split())


@pytest.mark.parametrize(
    ("text", "atoms"),
    [
        ("回滚窗口", "回滚 滚窗 窗口"),
        ("缓存的集群", "缓存 的 集群"),
        ("接口上海，南区", "接口 口上 上海 , 南区"),
        ("上海 南京", "上海 , 南京"),
        ("换成redis集群", "换成 redi 集群"),
        ("2015年NFL的球队", "2015 年 nfl 的 球队"),
        ("障害時はサーバーを再起動", "障害 害時 は サー ーバ バー を 再起 起動"),
        ("サーバー再起動", "サー ーバ バー 再起 起動"),
        ("배포는 금요일에", "배포 포는 , 금요 요일 일에"),
        ("ภาษาไทย", "ภาษ าษา ษาไ าไท ไทย"),
        ("ＡＰＩ設定", "api 設定"),
        ("ｻｰﾊﾞｰ", "サー ーバ バー"),
        ("Ⅳ章", "iv 章"),
    ],
)
def test_runs_are_cut_into_grams_that_cross_no_gap(text: str, atoms: str) -> None:
    assert fields(text)[0] == atoms.split()


def test_triples_on_request_keep_the_pairs_beside_them() -> None:
    atoms, extras, _ = fields("回滚窗口 缓存", cjk="trigram")
    assert atoms == ["回滚窗", "滚窗口", segment.GAP, "缓存"]
    assert {"回滚", "滚窗", "窗口", "回", "缓"} <= set(extras)


def test_single_characters_of_a_run_are_extras() -> None:
    assert fields("缓存的库")[1] == ["缓", "存"]


def test_tags_and_aliases_are_a_field_of_their_own() -> None:
    atoms, extras, labels = fields("body", ("部署", "release-notes"))
    assert (atoms, extras) == (["bodi"], [])
    assert set(labels) >= {"部署", "releas", "note", "releasenot"}


def test_the_length_counts_what_carries_matter() -> None:
    assert segment.index_text("how do we rotate the keys", (), ()).length == 2
    assert segment.index_text("我们的缓存", (), ()).length == 1
    assert segment.index_text("rotate", ("keys",), ()).length == 2


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_composed_and_decomposed_text_is_cut_alike(form: str) -> None:
    text = "배포 절차 ガイド café ＡＰＩ ｻｰﾊﾞｰ"
    other = unicodedata.normalize(form, text)
    assert segment.index_text(other, (), ()) == segment.index_text(text, (), ())


def test_invisible_characters_part_no_word() -> None:
    assert segment.tokens("de\u00adploy\u200bment\ufeff") == ["deploy", "ment"]
    assert segment.tokens("❤\ufe0f") == segment.tokens("❤")


def test_tokens_leave_grammar_out_unless_there_is_nothing_else() -> None:
    assert segment.tokens("how do we rotate the keys?") == ["rotat", "key"]
    assert segment.tokens("to be or not") == ["to", "be", "or", "not"]
    assert segment.tokens("的") == ["的"]
    assert segment.tokens("?!") == []


def test_a_wall_of_letters_is_bounded() -> None:
    text = "x" * 5000 + " " + "aB1" * 3000
    assert all(len(token) <= segment.LONGEST for token in segment.tokens(text))


ANY_TEXT = st.text(max_size=80) | st.text(
    alphabet="abzAZ09_-.'’:/@#+%,\" 的我数据库は가금ガกขé\u0301\u0e31\u093f🚀\ud800\0\n", max_size=60
)
WORDS = st.text(alphabet="abcXYZ019", min_size=1, max_size=12)
PARTS = ["缓存", "redis", "maxRetry", "。", " ", "的", "E11000", "ไทย", "데이터", "v1.2"]


@given(ANY_TEXT)
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = segment.normal(text)
    assert segment.normal(once) == once


@given(ANY_TEXT, st.sampled_from(["bigram", "trigram"]))
def test_any_text_gives_a_stream_of_tokens_that_fts5_keeps_as_they_are(text: str, cjk: str) -> None:
    indexed = segment.index_text(text, [text[:9]], [text[9:18]], cjk=cjk)
    indexed.stream.encode("utf-8")
    expected = [token for token in indexed.stream.split(" ") if token not in ("", "|", ",")]
    table = sqlite3.connect(":memory:")
    table.execute(f'create virtual table f using fts5 (t, tokenize="{segment.FTS_TOKENIZER}")')
    table.execute("create virtual table v using fts5vocab (f, instance)")
    table.execute("insert into f values (?)", (indexed.stream,))
    kept = [term for (term,) in table.execute("select term from v order by offset")]
    table.close()
    assert kept == expected
    assert indexed.stream.count(segment.FIELD_MARK) == 2


@given(st.lists(st.sampled_from(PARTS), max_size=9))
def test_a_text_is_cut_like_its_query(parts: list[str]) -> None:
    text = "".join(parts)
    assert segment.sequence(text) == fields(text)[0]


@given(st.text(alphabet="缓存数据库的证元上海南京", min_size=1, max_size=12), st.data())
def test_every_stretch_of_characters_is_found(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    held = set(segment.index_text(text, (), ()).stream.split())
    assert set(segment.tokens(text[start:end])) <= held


@given(st.lists(WORDS, min_size=1, max_size=6), st.data())
def test_every_word_of_a_text_is_found(words: list[str], data: st.DataObject) -> None:
    held = set(segment.index_text(" ".join(words), (), ()).stream.split())
    assert set(segment.tokens(data.draw(st.sampled_from(words)))) <= held

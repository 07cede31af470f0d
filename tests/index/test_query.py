"""What a query asks for: any string is one, and what it leaves out is only grammar."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmemex.index import query as queries
from openmemex.index import segment


def test_a_question_asks_for_what_carries_matter() -> None:
    query = queries.build("how do we rotate the staging password?")
    assert query.words == ("rotat", "stage", "password")
    assert query.pairs == {("rotat", "stage"), ("stage", "password")}
    assert not query.phrases
    assert not query.empty


@pytest.mark.parametrize(
    ("text", "words"), [("the of and", ("the", "of", "and")), ("的 了", ("的", "了")), ("it's", ("it", "s"))]
)
def test_grammar_alone_is_asked_for(text: str, words: tuple[str, ...]) -> None:
    assert queries.build(text).words == words


@pytest.mark.parametrize("text", ["", "  \n\t", "?!", "\0", "\ud800", '""', "' OR", "(*)"])
def test_what_has_nothing_to_look_for_is_empty(text: str) -> None:
    assert queries.build(text).empty == (text != "' OR")


def test_an_identifier_is_asked_for_whole_and_in_parts() -> None:
    query = queries.build("maxRetryCount")
    assert query.words == ("max", "retri", "count")
    assert set(query.terms) == {"max", "retri", "count", "maxretrycount"}


def test_what_is_said_often_weighs_more_but_not_by_as_much() -> None:
    once, often = queries.build("cache"), queries.build("cache cache cache cache")
    assert once.terms["cach"] < often.terms["cach"] < 4 * once.terms["cach"]


def test_a_character_of_a_word_only_adds_and_one_by_itself_is_asked_for() -> None:
    query = queries.build("缓存 库")
    assert set(query.terms) == {"缓存", "库"}
    assert set(query.aside) == {"缓", "存"}


def test_two_words_may_be_one_name() -> None:
    assert set(queries.build("git hub actions of the hub").joins) == {"github", "hubact"}


def test_no_neighbours_across_a_gap() -> None:
    assert queries.build("上海 南京").pairs == frozenset()
    assert queries.build("上海南").pairs == {("上海", "海南")}
    assert queries.build("redis集群").pairs == {("redi", "集群")}


@pytest.mark.parametrize(
    ("text", "phrases", "only"),
    [
        ('"staging password"', 1, True),
        ('the "staging password"', 1, True),
        ('rotate "staging password"', 1, False),
        ('"a b" and "c d"', 2, True),
        ("“staging password”", 1, True),
        ('"unbalanced', 0, False),
        ('5" disk', 0, False),
        ('"?"', 0, False),
    ],
)
def test_double_quotes_make_phrases(text: str, phrases: int, only: bool) -> None:
    query = queries.build(text)
    assert (len(query.phrases), query.only_phrases) == (phrases, only)


def holds(phrase: str, text: str, cjk: str = "bigram") -> bool:
    (found,) = queries.build(f'"{phrase}"', cjk=cjk).phrases
    return found.pattern.search(f" {segment.index_text(text, (), (), cjk=cjk).stream} ") is not None


@pytest.mark.parametrize("cjk", ["bigram", "trigram"])
@pytest.mark.parametrize(
    ("phrase", "text", "right"),
    [
        ("staging password", "the staging password rotates", True),
        ("staging password", "the staging database password", False),
        ("password staging", "the staging password", False),
        ("to be or not", "To be, or not to be", True),
        ("std::span", "use std::span here", True),
        ("max retry", "maxRetryCount", True),
        ("C++", "C++ is fast", True),
        ("C++", "C is fast", False),
        (".env", "never commit .env files", True),
        (".env", "the env of node", False),
        ("数据库", "备份数据库", True),
        ("数据库", "元数据已备份；证据库待建", False),
        ("据库", "备份数据库", True),
        ("库", "备份数据库", True),
        ("上海南", "上海，南京", False),
        ("上海，南京", "去上海 南京", True),
        ("换成redis集", "换成redis集群", True),
        ("份数", "备份数据库", True),
        ("再起動する", "サーバーを再起動する", True),
    ],
)
def test_a_phrase_stands_side_by_side_in_the_text(phrase: str, text: str, right: bool, cjk: str) -> None:
    assert holds(phrase, text, cjk) == right


@given(
    st.text(alphabet="数据库证元备份的redis ，", min_size=1, max_size=14),
    st.data(),
    st.sampled_from(["bigram", "trigram"]),
)
def test_a_phrase_cut_out_of_a_text_is_in_that_text(text: str, data: st.DataObject, cjk: str) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    part = text[start : data.draw(st.integers(start + 1, len(text)))]
    # A word is not looked for inside of a longer one: cut at whole words of Latin.
    if re.search("[a-z]", text[max(0, start - 1) : start]) or re.search(
        "[a-z]", text[start + len(part) : start + len(part) + 1]
    ):
        return
    if queries.build(part).empty:
        return
    assert holds(part, text, cjk)


@given(st.text(max_size=200), st.sampled_from(["bigram", "trigram"]))
def test_any_string_is_a_query(text: str, cjk: str) -> None:
    query = queries.build(text, cjk=cjk)
    assert set(query.words) <= set(query.terms)
    assert not query.aside.keys() & query.terms.keys()
    for token in [*query.terms, *query.joins, *query.aside]:
        assert not set(token) & set(' "*()|,\0')
        token.encode("utf-8")


def test_ten_thousand_words_are_a_query() -> None:
    query = queries.build(" ".join(f"word{number}" for number in range(10_000)))
    assert len(query.text) <= queries.LONGEST_QUERY
    assert "word9999" in query.terms


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Wie oft erneuern wir das Zertifikat?", ("oft", "erneuern", "zertifikat")),
        ("¿Dónde está la configuración del servicio?", ("configuracion", "servicio")),
        ("Когда и где делают резервные копии?", ("дела", "резервн", "коп")),
        ("wie das", ("wie", "das")),
        ("die hard war games", ("die", "hard", "war", "game")),
        ("how did the cache die in the war room", ("cach", "die", "war", "room")),
    ],
)
def test_grammar_of_other_languages_counts_where_the_query_is_in_one(
    text: str, words: tuple[str, ...]
) -> None:
    assert queries.build(text).words == words


def test_kana_that_inflect_and_korean_endings_weigh_less() -> None:
    japanese = queries.build("設定する").terms
    assert japanese["する"] < japanese["設定"]
    korean = queries.build("금요일에").terms
    assert korean["일에"] < korean["금요"]

"""Which memory comes first: the text decides, factors order near ties, and the order is always the same."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmemex.index import query as queries
from openmemex.index import ranking, segment

NOW = 1_790_000_000.0


class Row(NamedTuple):
    id: str = "A"
    scope: str = "project"
    type: str = "fact"
    status: str = "active"
    review_state: str = "draft"
    importance: str = "normal"
    source: str = "user"
    updated_at: str = "2026-09-01T00:00:00Z"
    paths: tuple[str, ...] = ()


class Memories:
    """A corpus over FTS5, of texts and rows; counts what it is asked to fetch."""

    def __init__(self, *memories: str | tuple[str, Row], cjk: str = "bigram") -> None:
        self._table = sqlite3.connect(":memory:")
        self._table.execute(f"create virtual table f using fts5 (t, {segment.FTS_OPTIONS})")
        self._table.execute("create virtual table v using fts5vocab (f, row)")
        self._held: dict[int, ranking.Candidate] = {}
        self.expressions: list[str] = []
        for number, one in enumerate(memories, 1):
            body, row = one if isinstance(one, tuple) else (one, Row(id=f"{number:05}"))
            indexed = segment.index_text(body, (), (), cjk=cjk)
            self._held[number] = ranking.Candidate(number, indexed.stream, indexed.length, row)
            self._table.execute("insert into f (rowid, t) values (?, ?)", (number, indexed.stream))
        self.size = len(memories)
        self.average_length = sum(c.length for c in self._held.values()) / max(1, len(memories))

    def document_frequency(self, terms: Sequence[str]) -> Mapping[str, int]:
        found = {}
        for term in terms:
            row = self._table.execute("select doc from v where term = ?", (term,)).fetchone()
            if row:
                found[term] = row[0]
        return found

    def matching(self, expression: str, limit: int) -> list[tuple[int, float]]:
        self.expressions.append(expression)
        select = "select rowid, bm25(f) from f where f match ? order by bm25(f) limit ?"
        return self._table.execute(select, (expression, limit)).fetchall()

    def load(self, rowids: Sequence[int]) -> list[ranking.Candidate]:
        return [self._held[rowid] for rowid in rowids]

    def ranked(self, text: str, *, limit: int = 10, cwd: str = "", cjk: str = "bigram") -> ranking.Ranked:
        context = ranking.Context(NOW, cwd)
        return ranking.rank(queries.build(text, cjk=cjk), self, limit=limit, context=context, explain=True)

    def found(self, text: str, **options: Any) -> list[int]:
        """The numbers of the memories that are found, counted from 1, best first."""
        return [hit[0] for hit in self.ranked(text, **options).hits]


# -- text ----------------------------------------------------------------------------------------------------


def test_the_best_hundred_are_the_best_and_not_any() -> None:
    noise = [f"rotation of the key number {number}" for number in range(400)]
    memories = Memories(*noise, "rotation of the staging key")
    assert memories.found("staging key rotation")[0] == 401


def test_more_of_the_query_is_better() -> None:
    memories = Memories("rotate the staging database password", "rotate the logs", "staging area of git")
    assert memories.found("rotate staging password")[0] == 1


def test_neighbours_of_the_query_that_are_neighbours_in_the_text_count() -> None:
    memories = Memories(
        "the rate of errors has a limiter on top of api", "errors of the api on top of a rate limiter"
    )
    assert memories.found("rate limiter") == [2, 1]
    assert memories.ranked("rate limiter").hits[0][2]["parts"]["(neighbours)"] > 0


def test_a_long_text_that_holds_all_of_it_beats_a_short_one_that_holds_some() -> None:
    filler = " ".join(f"filler{number} words about otters" for number in range(300))
    memories = Memories(
        filler + " the quota of the billing exporter resets at midnight " + filler,
        *[f"quota note {number}" for number in range(40)],
    )
    assert memories.found("when does the quota of the billing exporter reset")[0] == 1


def test_saying_everything_over_and_over_is_hardly_better() -> None:
    once = "reset the quota of the exporter at midnight with the admin tool"
    memories = Memories(once, " ".join([once] * 8), "quota of otters")
    texts = {hit[0]: hit[2]["text"] for hit in memories.ranked("reset exporter quota").hits}
    assert texts[2] < 1.1 * texts[1]


def test_a_name_is_found_however_it_is_spelled() -> None:
    memories = Memories("set throttleBudgetLimit to 30", "throttle the cache budget", "limit of the budget")
    for spelling in (
        "throttleBudgetLimit",
        "throttle_budget_limit",
        "throttlebudgetlimit",
        "throttle-budget",
    ):
        assert memories.found(spelling)[0] == 1


def test_an_unknown_word_finds_what_begins_like_it() -> None:
    memories = Memories("reverted 2550f8c92f yesterday", "commit of the day", "Verbindungen zur Datenbank")
    assert memories.found("2550f8c") == [1]
    assert memories.found("Datenbanken") == [3]
    assert memories.found("zzz") == []


def test_two_words_find_the_name_they_make() -> None:
    assert set(Memories("the github page", "otters", "GitHub is down").found("git hub")) == {1, 3}


def test_labels_weigh_more_than_the_body() -> None:
    tagged = segment.index_text("how we ship", ("deploy",), ())
    plain = segment.index_text("how we deploy", (), ())
    memories = Memories("x", "y")
    memories._held[1] = ranking.Candidate(1, tagged.stream, tagged.length, Row(id="1"))
    memories._held[2] = ranking.Candidate(2, plain.stream, plain.length, Row(id="2"))
    memories.matching = lambda expression, limit: [(1, -1.0), (2, -1.0)]  # type: ignore[method-assign]
    memories.document_frequency = lambda terms: {"deploy": 2}  # type: ignore[method-assign]
    assert memories.found("deploy") == [1, 2]


def test_a_query_that_the_memories_cover_badly_scores_low() -> None:
    memories = Memories("rotate the staging password", "otters swim", "cats sleep")
    full = memories.ranked("rotate the staging password").hits[0][1]
    part = memories.ranked("rotate the zebra enclosure lamp").hits[0][1]
    assert part < full / 2


def test_a_character_alone_makes_no_match_of_a_longer_word() -> None:
    memories = Memories("上海机房与南京机房互备", "海南机房已下线", "接口上海，南区重试")
    assert memories.found("海南") == [2]
    assert memories.found("上海 南京") == [1, 3]
    assert set(memories.found("南")) == {1, 2, 3}


# -- phrases -------------------------------------------------------------------------------------------------


def test_a_phrase_must_be_there() -> None:
    memories = Memories("rotate the staging database password", "the staging password", "password of staging")
    assert memories.found('"staging password"') == [2]
    assert memories.found('"password staging"') == []
    assert memories.found('rotate "staging password"') == [2]


def test_a_phrase_among_other_words_that_nobody_said_is_words() -> None:
    memories = Memories("rotate the staging database password", "otters")
    assert memories.found('how to rotate "the password staging"') == [1]


def test_a_phrase_is_found_behind_many_that_only_hold_its_words() -> None:
    # FTS5 sees no gap between the runs, so that each of these is fetched before the one that holds it.
    memories = Memories(*["数据，据库 数据，据库"] * 700, "他们的数据库已经备份了三次" * 9)
    assert memories.found('"数据库"') == [701]


# -- bounded work --------------------------------------------------------------------------------------------


def test_common_words_are_left_out_of_the_fetch_where_rare_ones_decide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ranking, "POSTINGS", 50)
    noise = [f"service number {number} restarts" for number in range(300)]
    memories = Memories(*noise, *["the zebra quagga okapi service restarts"] * 3)
    ranked = memories.ranked("zebra quagga okapi service restarts", limit=3)
    assert [hit[0] for hit in ranked.hits] == [301, 302, 303]
    assert "servic" not in ranked.fetched
    assert "servic" in ranked.expression
    assert len(memories.expressions) == 1


def test_common_words_are_fetched_where_rare_ones_do_not_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "POSTINGS", 50)
    noise = [f"service number {number}" for number in range(200)]
    memories = Memories(*noise, "zebra", "service restarts nightly")
    assert memories.found("zebra service restarts nightly", limit=2)[0] == 202


def test_ten_thousand_words_ask_for_those_that_tell_most() -> None:
    memories = Memories(*[f"common word{number}" for number in range(300)], "needle")
    text = "needle " + " ".join(["common", *(f"word{number}" for number in range(10_000))])
    ranked = memories.ranked(text)
    assert ranked.expression.count('"') <= 2 * ranking.MOST_TERMS
    assert ranked.hits


@given(st.text(max_size=60) | st.text(alphabet='"abc数据的 -*():^\0\ud800', max_size=30))
def test_no_query_raises(text: str) -> None:
    memories = Memories("abc 数据 a-b", "的 c")
    for cjk in ("bigram", "trigram"):
        memories.ranked(text, cjk=cjk)


def test_nothing_is_found_in_nothing() -> None:
    assert Memories().ranked("x").hits == []
    assert Memories("x").ranked("").hits == []
    assert Memories("x").ranked("x", limit=0).hits == []


# -- factors -------------------------------------------------------------------------------------------------

TEXT = "the deploy freeze starts on Friday"
ROWS = st.builds(
    Row,
    id=st.sampled_from(["A", "B", "C"]),
    scope=st.sampled_from(["personal", "project", "org"]),
    type=st.sampled_from(["fact", "preference", "decision"]),
    status=st.sampled_from(["active", "deprecated"]),
    review_state=st.sampled_from(["draft", "proposed", "approved", "rejected", "published"]),
    importance=st.sampled_from(["low", "normal", "high"]),
    source=st.sampled_from(["user", "tool", "inference"]),
    updated_at=st.sampled_from(
        ["2020-01-01", "2026-09-20T00:00:00+02:00", "2999-01-01T00:00:00Z", "", "never"]
    ),
    paths=st.sampled_from([(), ("src/**",), ("docs/x.md",), ("**/*.py", "[")]),
)


@given(ROWS, st.sampled_from(["", "src", "src/api", "docs"]))
def test_the_factors_stay_in_their_range(row: Row, cwd: str) -> None:
    low, high = ranking.FACTOR_RANGE
    assert low <= ranking.combined(row, ranking.Context(NOW, cwd)) <= high
    assert high / low < 1.15


@given(ROWS, ROWS, st.sampled_from(["", "src", "docs"]))
def test_no_factors_bury_a_text_that_is_better_by_15_percent(worse: Row, better: Row, cwd: str) -> None:
    memories = Memories((TEXT, better), ("a freeze of the water pipes", worse), "otters", "cats")
    query = "when does the deploy freeze start"
    texts = {hit[0]: hit[2]["text"] for hit in memories.ranked(query, cwd=cwd).hits}
    assert texts[1] > 1.15 * texts[2]
    assert memories.found(query, cwd=cwd) == [1, 2]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Row(review_state="approved"), Row(review_state="draft")),
        (Row(review_state="draft"), Row(review_state="rejected")),
        (Row(status="active"), Row(status="deprecated")),
        (Row(importance="high"), Row(importance="normal")),
        (Row(importance="normal"), Row(importance="low")),
        (Row(updated_at="2026-09-01T00:00:00Z"), Row(updated_at="2024-09-01T00:00:00Z")),
        (Row(scope="project"), Row(scope="personal")),
        (Row(scope="personal", type="preference"), Row(scope="project", type="preference")),
        (Row(scope="project", updated_at="2020-01-01"), Row(scope="personal", updated_at="2026-09-20")),
        (Row(source="user"), Row(source="inference", importance="high")),
        (Row(source="user", updated_at="2020-01-01"), Row(source="inference", updated_at="2026-09-20")),
        (Row(paths=("src/api/**",)), Row(paths=("docs/**",))),
        (Row(paths=("src/api/**",)), Row()),
        (Row(), Row(paths=("docs/**",))),
    ],
)
def test_factors_order_what_says_the_same(first: Row, second: Row) -> None:
    for rows in itertools.permutations((first._replace(id="A"), second._replace(id="B"))):
        memories = Memories(*[(TEXT, row) for row in rows])
        assert memories.found("deploy freeze", cwd="src/api/v1")[0] == 1 + rows.index(first._replace(id="A"))


def test_what_was_superseded_never_stands_before_what_holds() -> None:
    for status in ("superseded", "archived", "retracted"):
        memories = Memories((TEXT, Row(status=status, importance="high")), "the freeze of the water pipes")
        assert memories.found("when does the deploy freeze start on Friday") == [2, 1]


@given(st.permutations(range(6)))
def test_equal_texts_are_ordered_by_age_and_then_by_id(order: list[int]) -> None:
    rows = [
        Row(id=name, updated_at=f"20{year}-01-01T00:00:00Z")
        for year in (20, 21)  # so old that recency is nothing
        for name in ("A", "B", "C")
    ]
    memories = Memories(*[(TEXT, rows[place]) for place in order])
    found = [rows[order[number - 1]] for number in memories.found("deploy freeze")]
    assert [(row.id, row.updated_at[:4]) for row in found] == [
        ("A", "2021"),
        ("B", "2021"),
        ("C", "2021"),
        ("A", "2020"),
        ("B", "2020"),
        ("C", "2020"),
    ]


@pytest.mark.parametrize(
    ("globs", "cwd", "fit"),
    [
        (("src/api/**",), "src/api", 1),
        (("src/api/**",), "src/api/v1/x", 1),
        (("src/api/**",), "src", 0),
        (("src/api/**",), "docs", -1),
        (("src/api/**",), "src/apix", -1),
        (("src/*/tests/**",), "src/api/tests", 1),
        (("src/*/tests/**",), "src/api/v1", 0),
        (("**/tests/**",), "a/tests/b", 1),
        (("**/tests/**",), "a/b", 0),
        (("docs/x.md",), "docs", 1),
        (("docs/x.md",), "src", -1),
        (("/docs/",), "docs/a", 1),
        (("*.py",), "src", 0),
        (("docs/**", "src/**"), "src", 1),
        (("src/**",), "", 0),
        ((), "src", 0),
        (("[",), "src", 0),
        (("*a" * 40 + "b",), "a" * 4000, 0),
    ],
)
def test_paths_fit_the_folder_or_miss_it_or_say_nothing(globs: tuple[str, ...], cwd: str, fit: int) -> None:
    found = dict(ranking.factors(Row(paths=globs), ranking.Context(NOW, cwd)))["paths"]
    assert (found > 1) - (found < 1) == fit


# -- explanations --------------------------------------------------------------------------------------------


def test_an_explanation_adds_up() -> None:
    memories = Memories((TEXT, Row(importance="high", source="inference")), "otters")
    (_, score, why) = memories.ranked("deploy freeze of otters zebra").hits[0]
    assert why["text"] == pytest.approx(sum(why["parts"].values()), abs=1e-3)
    product = 1.0
    for factor in why["factors"].values():
        product *= factor
    assert why["score"] == pytest.approx(why["text"] * product, abs=1e-3)
    assert score == pytest.approx(why["score"], abs=1e-4)
    assert {"importance", "source", "recency", "scope"} <= set(why["factors"])


def test_no_explanation_unless_asked() -> None:
    memories = Memories(TEXT)
    context = ranking.Context(NOW)
    (hit,) = ranking.rank(queries.build("deploy"), memories, limit=5, context=context).hits
    assert hit[2] == {}

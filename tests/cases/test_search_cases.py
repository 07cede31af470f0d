"""What people type, in any script and with any punctuation, against memories written as files."""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
# Many queries of one process: what is asked here is what they find, not how the command starts.
_ASK = """
import contextlib, io, json, sys
from openmemex.cli.fast import main
answers = []
for words in json.load(sys.stdin):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main(["search", "--json", "--limit", "50", *words])
    answers.append([code, json.loads(out.getvalue())])
print(json.dumps(answers))
"""


def ulid(number: int) -> str:
    return "01K6AB3XZQ7WVD9J1M2N4P5Q" + _LETTERS[number // 32] + _LETTERS[number % 32]


class Store:
    """Memories in a repository's folder, by name, and what a list of queries finds of them."""

    def __init__(self, repo: Path, texts: dict[str, str]) -> None:
        self.repo = repo
        self.ids = {name: ulid(number) for number, name in enumerate(texts)}
        self.names = {memory: name for name, memory in self.ids.items()}
        for name, text in texts.items():
            self.write(name, text)

    def path(self, name: str) -> Path:
        return self.repo / ".ai" / "open-memex" / f"{self.ids[name]}.md"

    def write(self, name: str, text: str, fields: str = "") -> None:
        self.path(name).parent.mkdir(parents=True, exist_ok=True)
        self.path(name).write_text(
            f"---\nid: {self.ids[name]}\nscope: project\n{fields}---\n{text}\n", encoding="utf-8"
        )

    def ask(self, queries: Sequence[str | Sequence[str]]) -> list[list[str]]:
        words = [["--", query] if isinstance(query, str) else list(query) for query in queries]
        done = subprocess.run(
            [sys.executable, "-c", _ASK],
            input=json.dumps(words),
            cwd=self.repo,
            capture_output=True,
            encoding="utf-8",
        )
        assert done.returncode == 0, done.stderr
        found = []
        for query, (code, answer) in zip(queries, json.loads(done.stdout), strict=True):
            assert code == 0, (query, answer)
            assert len({hit["id"] for hit in answer["hits"]}) == len(answer["hits"]) == answer["total"], query
            found.append([self.names[hit["id"]] for hit in answer["hits"]])
        return found


@pytest.fixture
def store(make_repo) -> Callable[..., Store]:
    return lambda **texts: Store(make_repo(), texts)


def test_punctuation_of_any_kind_finds_what_holds_it(store) -> None:
    here = store(
        it="blue-green rollout for node@20.4 in apps/web.toml; it's C++ and std::span; 40% done",
        other="an unrelated note about the kitchen",
    )
    queries = [
        *("blue-green", "node@20.4", "apps/web.toml", "it's", "C++", "std::span", "40%"),
        *("blue AND green", "NOT blue", "blue OR", "NEAR(blue green)", "blue*", "^blue", "blue:green"),
        *("(blue", "blue)", '"blue', "'blue'", "{blue}", "-blue", "--blue-green", "it’s", "apps\\web.toml"),
        *("std::span<T>", "blue; drop table content;--", "apps/web.toml:12", "`std::span`", "Blue–Green"),
        *('"blue-green"', '"std::span"', '"blue green rollout"', "“blue-green”", "what about node@20?"),
    ]
    for query, found in zip(queries, here.ask(queries), strict=True):
        assert found[:1] == ["it"], query
    nothing = ["!!!", '""', "*", "'", "\\", "%", "😀", "-- --", "\0", "( ) AND", "💥 💥"]
    here.ask(nothing)  # any text is a query: each ends with code 0


@pytest.mark.parametrize("query", ["", "   ", "\t\n"])
def test_an_empty_query_is_wrong_usage_and_says_what_to_do(query, run_cli, make_repo) -> None:
    done = run_cli("search", query, cwd=make_repo())
    assert done.returncode == 2
    assert "open-memex list" in done.stderr


def test_a_question_finds_what_answers_it_in_any_order_of_words(store) -> None:
    here = store(
        m1="Rotate the staging database password every 90 days",
        m2="Rollout freeze on Fridays",
    )
    first = [
        "password staging",
        "how do we rotate the staging password?",
        "rotate zebra",
        "passwords rotated",
        "staging zebra quux password",
        "when should the db password for staging be rotated",
        "How often do we change the staging database password",
        "rotate password on fridays in staging",
        "90 days",
        "ROTATING",
    ]
    for query, found in zip(first, here.ask(first), strict=True):
        assert found[:1] == ["m1"], query
    for found in here.ask(["friday freeze", "is there a rollout freeze?", "can I deploy on Friday"]):
        assert found[:1] == ["m2"]
    phrases = ['"staging database"', '"database staging"', '"rotate the staging"', '"staging password"']
    assert here.ask(phrases) == [["m1"], [], ["m1"], []]
    here.ask(["the of and", "what is the", "how do we"])


def test_texts_without_spaces_are_found_by_their_words(store) -> None:
    here = store(
        zh="我们决定把缓存层换成redis集群，回滚窗口为30分钟",
        ja="障害時はサーバーを再起動する",
        ko="배포는 금요일에 하지 않는다",
        th="ควรรีสตาร์ทเซิร์ฟเวอร์ก่อนเที่ยงคืน",
        en="plain English filler about kettles",
    )
    here.write("en", "plain English filler about kettles", "tags: [部署]\n")
    wanted = {
        "zh": [
            *("缓存", "缓存层", "redis", "集群", "redis集群", "回滚窗口", "30分钟", "缓存 redis", "缓存回滚"),
            *("我们把缓存换成什么？", "回滚的窗口是多久？", "Redis 集群", "窗口"),
        ],
        "ja": ["再起動", "サーバー", "障害", "サーバーの再起動", "障害のときどうする"],
        "ko": ["금요일", "배포", "금요일에 배포하나요", "배포를 언제 하나요"],
        "th": ["เซิร์ฟเวอร์", "เที่ยงคืน"],
        "en": ["部署", "kettles"],
    }
    pairs = [(name, query) for name, queries in wanted.items() for query in queries]
    for (name, query), found in zip(pairs, here.ask([query for _, query in pairs]), strict=True):
        assert found[:1] == [name], query


def test_words_are_not_made_across_a_gap_and_neighbours_count(store) -> None:
    here = store(
        d1="上海机房与南京机房互备",
        d2="海南机房已下线",
        d3="元数据已备份；证据库待建",
        d4="接口上海，南区重试",
        d5="接口上海\n南区再试",
        d6="「上海」南方的机房",
        d7="a上海b南c",
        d8="数据库已迁移",
    )
    cities, island, database = here.ask(["上海 南京", "海南", "数据库"])
    assert cities[0] == "d1"
    assert "d2" not in cities
    assert island == ["d2"]
    assert database[0] == "d8"


def test_width_and_composition_make_no_difference_and_the_bytes_stay(store) -> None:
    def apart(text: str) -> str:
        return unicodedata.normalize("NFD", text)

    texts = {
        "nfd": apart("배포 절차 ガイド café"),
        "full": "ＡＰＩ設定",
        "half": "ｻｰﾊﾞｰ設定",
        "roman": "Ⅳ章",
        "fold": "straße İstanbul ﬁnance",
        "accents": apart("Zürich naïve résumé"),
        "base": "ﾃﾞｰﾀﾍﾞｰｽ接続",
    }
    here = store(**texts)
    wanted = {
        "nfd": ["배포", "ガイド", "café", "cafe", "CAFÉ", apart("배포"), apart("ガイド"), "ｶﾞｲﾄﾞ"],
        "full": ["api", "API", "ＡＰＩ", "ａｐｉ"],
        "half": ["サーバー", "ｻｰﾊﾞｰ"],
        "roman": ["IV", "iv", "Ⅳ", "IV章"],
        "fold": ["STRASSE", "straße", "istanbul", "İstanbul", "finance"],
        "accents": ["zurich", "Zürich", apart("Zürich"), "resume", "naive"],
        "base": ["データベース"],
    }
    pairs = [(name, query) for name, queries in wanted.items() for query in queries]
    for (name, query), found in zip(pairs, here.ask([query for _, query in pairs]), strict=True):
        assert found[:1] == [name], query
    for name, text in texts.items():
        assert here.path(name).read_bytes().endswith(f"---\n{text}\n".encode())


def test_old_words_go_and_nothing_doubles_whatever_changes_the_files(store, om, git) -> None:
    here = store(one="likes zarf brackets", two="brackets second quiver")
    assert here.ask(["zarf", "quiver"]) == [["one"], ["two"]]
    here.write("one", "likes plain brackets")
    here.path("two").unlink()
    assert here.ask(["zarf", "quiver", "brackets"]) == [[], [], ["one"]]
    git("add", "-A", cwd=here.repo)
    git("commit", "-q", "-m", "memories", cwd=here.repo)
    for _ in range(2):
        om("reindex", cwd=here.repo)
        assert here.ask(["zarf", "quiver", "plain", "brackets"]) == [[], [], ["one"], ["one"]]
    here.write("one", "likes ornate brackets", "tags: [vellum]\naliases: [gizmo]\n")
    assert here.ask(["plain", "ornate", "vellum", "gizmo"]) == [[], ["one"], ["one"], ["one"]]
    git("stash", "-q", cwd=here.repo)
    assert here.ask(["plain", "ornate", "vellum", "gizmo"]) == [["one"], [], [], []]
    git("checkout", "-q", "-b", "empty", cwd=here.repo)
    git("rm", "-q", "-r", ".ai", cwd=here.repo)
    git("commit", "-q", "-m", "gone", cwd=here.repo)
    assert here.ask(["brackets"]) == [[]]
    git("checkout", "-q", "main", cwd=here.repo)
    assert here.ask(["brackets"]) == [["one"]]
    raw = here.path("one").read_bytes()
    here.path("one").write_bytes(b"no memory any more: brackets")
    assert here.ask(["brackets"]) == [[]]
    here.path("one").write_bytes(raw)
    here.path("one").rename(here.path("two"))
    assert here.ask(["brackets"]) == [[]], "another name than its id"


def test_the_limit_counts_what_is_left_after_all_filters(make_repo, om, home) -> None:
    repo = make_repo()
    here = Store(repo, {f"n{number}": "" for number in range(65)})
    for number in range(30):
        here.write(
            f"n{number}", f"cache warmup old {number}", f"type: gotcha\nsuperseded_by: {ulid(30 + number)}\n"
        )
        here.write(f"n{30 + number}", f"nothing of it {number}", f"supersedes: {ulid(number)}\n")
    for number in range(60, 65):
        long = "a long text in which the cache is named and, much later, a warmup, with words between"
        here.write(f"n{number}", f"{long} {number}", "type: gotcha\n")
    personal = home.data / "memories" / "personal"
    personal.mkdir(parents=True)
    for number in range(200, 230):
        (personal / f"{ulid(number)}.md").write_text(
            f"---\nid: {ulid(number)}\nscope: personal\ntype: gotcha\n---\ncache warmup {number}\n"
        )
    wanted = {ulid(number) for number in range(60, 65)}
    found = om("search", "cache warmup", "--limit", "5", "--scope", "project", cwd=repo)
    assert ({hit["id"] for hit in found["hits"]}, found["total"]) == (wanted, 5)
    found = om("search", "cache warmup", "--limit", "3", cwd=repo)
    assert (len(found["hits"]), found["total"]) == (3, 35)
    assert om("search", "cache warmup", "--all", cwd=repo)["total"] == 65
    listed = om("list", "--type", "gotcha", "--limit", "5", "--scope", "project", cwd=repo)
    assert ({row["id"] for row in listed["items"]}, listed["total"]) == (wanted, 5)
    listed = om("list", "--type", "gotcha", "--limit", "5", cwd=repo)
    assert (listed["shown"], listed["total"]) == (5, 35)

"""What the index answers: who is found, in which order, how many there are, and what stays hidden and why."""

from __future__ import annotations

import itertools
import sqlite3
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmemex.index import visibility
from openmemex.index.rows import Filters
from openmemex.memory import lifecycle
from openmemex.memory.lifecycle import Pointers

from .conftest import Folder, Reader, some_ids

EVERYTHING = Filters(all=True)


# -- lists and filters ---------------------------------------------------------------------------------------


def test_the_newest_come_first_by_instant_and_then_by_id(personal: Folder, reader: Reader) -> None:
    a, b, c, d, e = some_ids(5)
    personal.write("x", id=a, created_at="2026-09-26T12:00:00+00:00")
    personal.write("x", id=b, created_at="2026-09-26T15:00:00+04:00")  # an hour before a
    personal.write("x", id=c, created_at="2026-09-26T12:00:00Z")  # the same instant as a
    personal.write("x", id=d, created_at="2026-09-26T12:00:00.5Z")
    personal.write("x", id=e, created_at="2999-01-01T00:00:00Z")
    assert reader.ids(personal) == [e, d, c, a, b]


def test_the_limit_is_applied_after_the_filter(personal: Folder, repository: Folder, reader: Reader) -> None:
    older = [repository.write("cache warmup", status="superseded") for _ in range(30)]
    for number in range(30):
        personal.write(f"cache warmup {number}", type="gotcha" if number % 2 else "fact")
    wanted = {repository.write("cache warmup", type="gotcha") for _ in range(5)}
    reader.look(personal, repository)
    homes = [personal.home, repository.home]
    result = reader.index.search("cache warmup", homes, Filters(scope="project"), 5)
    assert {hit.row.id for hit in result.hits} == wanted
    assert result.total == 5
    listed = reader.index.list(homes, Filters(type="gotcha", scope="project"), 2)
    assert {row.id for row in listed.rows} < wanted
    assert (len(listed.rows), listed.total) == (2, 5)
    assert reader.index.list(homes, None, 5).total == 35
    assert reader.index.search("cache warmup", homes, None, 5).total == 35
    everything = reader.index.search("cache warmup", homes, EVERYTHING, 100)
    assert everything.total == 65
    assert set(older) <= {hit.row.id for hit in everything.hits}
    explained = reader.index.search("cache warmup", homes, None, 5, explain=True)
    assert explained.hidden == {"superseded": 30}


def test_filters_hold_together(personal: Folder, reader: Reader) -> None:
    both = personal.write("words", tags=("no", "3.10"), type="howto", review_state="approved")
    one = personal.write("words", tags=("no", "3.1"), type="howto")
    part = personal.write("words", tags=("nor", "x3.10"), type="fact")
    assert set(reader.ids(personal, filters=Filters(tags=("no",)))) == {both, one}
    assert reader.ids(personal, filters=Filters(tags=("no", "3.10"))) == [both]
    assert reader.ids(personal, filters=Filters(type="fact")) == [part]
    assert reader.found("words", personal, filters=Filters(type="howto", review_state="approved")) == [both]
    assert reader.found("words", personal, filters=Filters(type="howto", scope="org")) == []
    assert reader.found("words", personal, filters=Filters(tags=("%",))) == []


@pytest.mark.parametrize("status", ["active", "superseded", "deprecated", "retracted", "archived"])
def test_a_status_can_be_asked_for(personal: Folder, reader: Reader, status: str) -> None:
    ids = {
        one: personal.write("words", status=one)
        for one in ("active", "superseded", "deprecated", "retracted", "archived")
    }
    assert set(reader.ids(personal)) == {ids["active"], ids["deprecated"]}
    assert reader.ids(personal, filters=Filters(status=status)) == [ids[status]]
    assert set(reader.found("words", personal, filters=EVERYTHING)) == set(ids.values())


def test_what_has_expired_is_hidden_from_that_moment_on(personal: Folder, reader: Reader) -> None:
    now = datetime(2026, 10, 1, tzinfo=UTC).timestamp()
    always = personal.write("words")
    ended = personal.write("words", valid_until="2026-09-30T00:00:00Z")
    today = personal.write("words", expires_at="2026-10-01T02:00:00+02:00", valid_until="2027-01-01")
    later = personal.write("words", expires_at="2026-10-01T00:00:01Z")
    everyone = {always, ended, today, later}
    for moment, hidden in ((now - 90_000, set()), (now, {ended, today}), (now + 1, {ended, today, later})):
        shown = reader.ids(personal, filters=Filters(now=moment))
        assert set(shown) == everyone - hidden
        assert set(reader.found("words", personal, filters=Filters(now=moment))) == everyone - hidden
    assert set(reader.ids(personal, filters=Filters(now=now - 90_000))) == everyone
    assert set(reader.ids(personal, filters=Filters(now=now, all=True))) == everyone


# -- ids -----------------------------------------------------------------------------------------------------


def test_ids_are_found_by_their_ends_in_every_state(personal: Folder, reader: Reader) -> None:
    first, second = some_ids(2)
    personal.write("words", id=first, status="retracted")
    personal.write("words", id=second)
    reader.look(personal)

    def find(part: str) -> list[str]:
        return [row.id for row in reader.index.find([personal.home], part)]

    assert find(first) == [first]
    assert find(first[:9]) == [first, second]
    assert find(second[-6:]) == [second]
    assert find(first[5:12]) == []
    assert find("%%%%") == []
    assert find("ZZZZ") == []


def test_the_repositorys_text_counts_where_one_id_has_several(
    outbox: Folder, repository: Folder, reader: Reader
) -> None:
    memory_id = outbox.write("words of the draft", tags=("draft",))
    other = outbox.write("words alone")
    repository.write("words of the team", id=memory_id)
    assert set(reader.ids(outbox, repository)) == {memory_id, other}
    assert reader.found("draft", outbox, repository) == []
    assert reader.found("team", outbox, repository) == [memory_id]
    homes = [outbox.home, repository.home]
    copies = reader.index.find(homes, memory_id)
    assert [(row.place_kind, row.summary) for row in copies] == [
        ("repository", "words of the team"),
        ("outbox", "words of the draft"),
    ]
    assert len({row.blob for row in copies}) == 2
    assert reader.found("draft", outbox) == [memory_id]
    repository.remove(memory_id)
    assert reader.found("draft", outbox, repository) == [memory_id]


def test_the_same_file_in_two_places_is_one_memory_with_two_copies(
    outbox: Folder, repository: Folder, reader: Reader
) -> None:
    memory_id = outbox.write("same words")
    repository.write_raw(memory_id, outbox.file(memory_id).read_bytes())
    assert reader.found("same", outbox, repository) == [memory_id]
    (row,) = reader.index.list([outbox.home, repository.home]).rows
    assert row.place_kind == "repository"
    assert row.rel_path == f".ai/open-memex/{memory_id}.md"
    copies = reader.index.find([outbox.home, repository.home], memory_id)
    assert [row.place_kind for row in copies] == ["repository", "outbox"]


def test_other_homes_are_not_seen(
    personal: Folder, outbox: Folder, repository: Folder, reader: Reader
) -> None:
    mine = [personal.write(f"words {number}") for number in range(3)]
    drafts = [outbox.write(f"words {number}") for number in range(20)]
    shared = repository.write("words")
    reader.look(personal, outbox, repository)
    assert set(reader.ids(personal)) == set(mine)
    assert set(reader.found("words", personal)) == set(mine)
    assert set(reader.found("words", outbox, personal)) == {*mine, *drafts}
    assert reader.found("words", repository) == [shared]
    assert reader.index.find([personal.home], shared) == []
    assert reader.index.counts([personal.home])["total"] == {"": 3}
    assert reader.index.list([]).total == 0
    assert reader.index.search("words", []).total == 0


# -- lifecycle -----------------------------------------------------------------------------------------------


def test_half_a_pair_counts_whichever_half_it_is(outbox: Folder, repository: Folder, reader: Reader) -> None:
    old, new, older, newer = some_ids(4)
    repository.write("words of old", id=old)
    outbox.write("words of new", id=new, supersedes=old)
    repository.write("words of older", id=older, superseded_by=newer)
    repository.write("words of newer", id=newer)
    homes = [outbox.home, repository.home]
    assert set(reader.found("words", outbox, repository)) == {new, newer}
    for memory_id, successor in ((old, new), (older, newer)):
        (row,) = reader.index.find(homes, memory_id)
        assert (row.status, row.superseded_by) == ("superseded", successor)
    assert set(reader.ids(outbox, repository, filters=Filters(status="superseded"))) == {old, older}
    assert set(reader.ids(outbox, repository, filters=Filters(status="active"))) == {new, newer}
    hidden = reader.index.search("words", homes, None, 10, explain=True).hidden
    assert hidden == {"superseded": 2}
    # Without the draft the old one is what there is; its file was never touched.
    assert set(reader.found("words", repository)) == {old, newer}
    outbox.write("words of new", id=new, supersedes=old, status="retracted")
    assert set(reader.found("words", outbox, repository)) == {old, newer}
    outbox.write("words of new", id=new, supersedes=old, review_state="rejected")
    assert old in reader.found("words", outbox, repository)


@pytest.mark.parametrize("status", ["active", "deprecated", "superseded"])
def test_what_a_newer_one_replaces_is_hidden_whatever_it_says(
    personal: Folder, reader: Reader, status: str
) -> None:
    old, new = some_ids(2)
    personal.write("words", id=old, status=status)
    personal.write("words", id=new, supersedes=old)
    assert reader.found("words", personal) == [new]


def test_forks_loops_and_loose_ends_hide_nothing(personal: Folder, reader: Reader) -> None:
    ids = some_ids(12)
    fork, one, two, a, b, itself, loose, missing, before, status_only, c, d = ids
    personal.write("words", id=fork)
    personal.write("words", id=one, supersedes=fork)
    personal.write("words", id=two, supersedes=fork)
    personal.write("words", id=a, superseded_by=b)
    personal.write("words", id=b, superseded_by=a)
    personal.write("words", id=itself, supersedes=itself)
    personal.write("words", id=loose, superseded_by=missing, status="superseded")
    personal.write("words", id=before, superseded_by=a, status="superseded")
    personal.write("words", id=status_only, status="superseded")
    personal.write("words", id=c, superseded_by=d, status="superseded")
    personal.write("words", id=d, supersedes=c, superseded_by=c, status="superseded")
    shown = {fork, one, two, a, b, itself, loose, before, c, d}
    assert set(reader.found("words", personal)) == shown
    assert set(reader.ids(personal)) == shown
    assert reader.index.find([personal.home], c)[0].status == "active"


def test_of_a_chain_of_thousands_only_the_newest_is_found(personal: Folder, reader: Reader) -> None:
    ids = some_ids(5000)
    personal.write("words of a chain", id=ids[0])
    for old, new in itertools.pairwise(ids):
        personal.write("words of a chain", id=new, supersedes=old)
    reader.look(personal)
    started = time.process_time()
    assert reader.found("chain", personal) == [ids[-1]]
    assert reader.ids(personal) == [ids[-1]]
    # The oldest names the newest: one loop of thousands.
    personal.write("words of a chain", id=ids[-1], supersedes=ids[-2], superseded_by=ids[0])
    assert len(reader.ids(personal)) == 5000
    assert time.process_time() - started < 30


NAMES = some_ids(7)
_pointer = st.one_of(st.none(), st.sampled_from(NAMES))
_entry = st.builds(
    Pointers, _pointer, _pointer, st.sampled_from(["active", "active", "superseded", "retracted", "archived"])
)


@given(
    entries=st.dictionaries(st.sampled_from(NAMES[:6]), _entry, max_size=6),
    rejected=st.sets(st.sampled_from(NAMES)),
)
def test_visibility_and_the_lifecycle_of_single_memories_agree(
    entries: dict[str, Pointers], rejected: set[str], tmp_path_factory: Any
) -> None:
    """The same rules twice: over rows in SQL here, over a handful of values in `lifecycle`."""
    connection = _index_of(entries, rejected)
    homes = visibility.Homes((1,), {1: None})  # type: ignore[dict-item]
    view = visibility.build(connection, homes, Filters(), 0, "view_1")
    shown = {
        memory
        for (memory,) in connection.execute(f"select memory from content where true{view.clause('id')}")
    }
    # A draft that was given up does not count as a successor, unless the old one names it.
    counted = {
        name: entry._replace(supersedes=None) if entry.status == "retracted" or name in rejected else entry
        for name, entry in entries.items()
    }
    chains = lifecycle.Chains(counted)
    assert shown == {name for name in entries if chains.status(name) in ("active", "deprecated")}
    assert view.total == len(shown)
    numbers = {name: number for number, name in enumerate(entries, 1)}
    for name, entry in entries.items():
        completed = chains.completed(name)
        assert view.statuses.get(numbers[name], entry.status) == completed.status
        assert (entry.superseded_by or view.successors.get(numbers[name])) == completed.superseded_by


def _index_of(entries: dict[str, Pointers], rejected: set[str]) -> sqlite3.Connection:
    from openmemex.index import schema

    connection = schema.open_index(":memory:", "bigram", {}).connection
    connection.execute(
        "insert into home (id, kind, folder, ref, count) values (1, '', '', '', ?)", (len(entries),)
    )
    for number, (name, entry) in enumerate(entries.items(), 1):
        values = {
            "id": number,
            "blob": number.to_bytes(20, "big"),
            "memory": name,
            "status": entry.status,
            "review_state": "rejected" if name in rejected else "draft",
            "supersedes": entry.supersedes,
            "superseded_by": entry.superseded_by,
        }
        empty = ["scope", "scope_key", "type", "role", "importance", "tags", "aliases", "source", "paths"]
        empty += ["created_at", "updated_at", "summary", "text_key"]
        values |= dict.fromkeys(empty, "") | dict.fromkeys(("masked", "created", "length"), 0)
        marks = ", ".join("?" * len(values))
        connection.execute(
            f"insert into content ({', '.join(values)}) values ({marks})", tuple(values.values())
        )
        connection.execute("insert into place values (1, ?, ?, '', 0, null)", (name, number))
        connection.execute("update total set rows = rows + 1")
    return connection


# -- what rows say -------------------------------------------------------------------------------------------


def test_a_row_says_what_the_file_says(repository: Folder, reader: Reader) -> None:
    fields: dict[str, Any] = {
        "type": "decision",
        "role": "instruction",
        "importance": "high",
        "tags": ("auth", "oauth 2"),
        "aliases": ("部署方案 🚀",),
        "source": "inference",
        "project_name": "app: one",
        "paths": ("src/**", "*.toml"),
        "review_state": "approved",
        "expires_at": "2999-01-01T00:00:00Z",
    }
    memory_id = repository.write("# Use OAuth\n\nfor   the\tadmin panel.", **fields)
    reader.look(repository)
    (row,) = reader.index.list([repository.home]).rows
    assert {name: getattr(row, name) for name in fields} == fields
    assert (row.id, row.scope, row.scope_key) == (memory_id, "project", "project__app__0123456789ab")
    assert (row.standing, row.place_kind, row.place_label, row.masked) == (
        "unreviewed",
        "repository",
        "",
        False,
    )
    assert row.path == str(repository.file(memory_id))
    assert row.summary == "Use OAuth for the admin panel."
    assert len(row.blob) == 40


def test_only_what_lies_in_the_personal_folder_is_the_owners_own(
    personal: Folder, repository: Folder, reader: Reader
) -> None:
    mine = personal.write("mine", scope="project")
    theirs = repository.write("theirs", scope="personal", scope_key="personal")
    reader.look(personal, repository)
    rows = {row.id: row.standing for row in reader.index.list([personal.home, repository.home]).rows}
    assert rows == {mine: "own", theirs: "unreviewed"}


@pytest.mark.parametrize(
    ("body", "summary"),
    [
        ("", ""),
        ("\n\n  \n", ""),
        ("---\n\n## Title ##\ntext", "Title ## text"),
        ("> quoted\n> more", "quoted more"),
        ("我们决定把缓存层换成redis集群", "我们决定把缓存层换成redis集群"),
        ("word " * 100, "word " * 30 + "word…"),
        ("x" * 500, "x" * 159 + "…"),
    ],
)
def test_the_summary_is_the_first_words(personal: Folder, reader: Reader, body: str, summary: str) -> None:
    personal.write(body)
    reader.look(personal)
    (row,) = reader.index.list([personal.home]).rows
    assert row.summary == summary


def test_no_secret_gets_into_the_index_file(personal: Folder, reader: Reader) -> None:
    token = "ghp_" + "mEmEx0TeSt1OnLy2NoTrEaL3kEy4aBcDe5Fg"
    clean = personal.write("nothing to see")
    memory_id = personal.write(
        f"the token is {token} today",
        tags=("auth", token),
        aliases=(token,),
        project_name=f"app {token}",
        paths=(f"src/{token}",),
    )
    bad = some_ids(1)[0]
    personal.write_raw(bad, f"---\nid: {bad}\n{token}: [\n---\n".encode())
    reader.look(personal)
    reader.index.remember("kept", "value")
    rows = {row.id: row for row in reader.index.list([personal.home]).rows}
    assert rows[memory_id].masked
    assert not rows[clean].masked
    assert rows[memory_id].summary.startswith("the token is ghp_xxxx")
    assert reader.found("token today", personal) == [memory_id]
    for path in reader.path.parent.glob("index*"):
        raw = path.read_bytes().lower()
        assert token.lower().encode() not in raw
        assert token[10:30].lower().encode() not in raw
    assert token.encode() in personal.file(memory_id).read_bytes()


def test_half_a_character_is_no_trouble(personal: Folder, reader: Reader) -> None:
    memory_id = some_ids(1)[0]
    text = f'---\nid: {memory_id}\naliases: ["\\ud83d half"]\nproject_name: "\\0"\n---\nwords\n'
    personal.write_raw(memory_id, text.encode())
    freshness = reader.look(personal)
    assert freshness.fresh
    if not freshness.quarantined:
        assert reader.found("words", personal) == [memory_id]


# -- other questions -----------------------------------------------------------------------------------------


def test_neighbours_are_the_same_text_first_and_then_the_closest(personal: Folder, reader: Reader) -> None:
    same = personal.write("Rotate the staging database password every 90 days")
    personal.write("rotate the STAGING database  password every 90 days", review_state="rejected")
    personal.write("Rotate the staging database password every 90 days", status="archived")
    close = personal.write("Rotate the staging database password every month", source="keyword")
    far = personal.write("Rollout freeze on Fridays for the database")
    personal.write("nothing of it")
    reader.look(personal)
    found = reader.index.neighbours(" rotate the Staging database password\nevery 90 days", [personal.home])
    assert [one.id for one in found] == [same, close, far]
    assert found[0].text_key != found[1].text_key
    assert found[1].source == "keyword"
    assert found[1].created_at == "2026-09-26T12:00:00Z"
    assert {"rotat", "stage", "databas", "password"} & found[1].tokens
    assert reader.index.neighbours("", [personal.home]) == []
    assert len(reader.index.neighbours("database", [personal.home], limit=1)) == 1


def test_counts_are_of_everything_in_these_homes(
    personal: Folder, repository: Folder, reader: Reader
) -> None:
    personal.write("a", type="howto")
    personal.write("b", status="retracted")
    repository.write("c", review_state="approved")
    bad = some_ids(1)[0]
    repository.write_raw(bad, b"no memory")
    reader.look(personal, repository)
    assert reader.index.counts([personal.home, repository.home]) == {
        "scope": {"personal": 2, "project": 1},
        "type": {"howto": 1, "fact": 2},
        "status": {"active": 2, "retracted": 1},
        "review_state": {"draft": 2, "approved": 1},
        "place": {"personal": 2, "repository": 1},
        "total": {"": 3},
        "quarantined": {"": 1},
    }


def test_small_things_are_remembered_between_processes(reader: Reader) -> None:
    assert reader.index.recall("key") is None
    reader.index.remember("key", "one")
    reader.index.remember("key", "two\0 parts")
    reader.index.close()
    assert reader.index.recall("key") == "two\0 parts"
    for number in range(600):
        reader.index.remember(f"k{number}", "v")
    with sqlite3.connect(reader.path) as connection:
        assert connection.execute("select count(*) from cache").fetchone()[0] <= 1200


@pytest.mark.parametrize(
    "query", ["", "  \n", '"', "()", "NEAR(", "a* OR", "\0", "'; drop table place", "🚀", "库", "*"]
)
def test_any_text_is_a_query(personal: Folder, reader: Reader, query: str) -> None:
    memory_id = personal.write("some words")
    reader.look(personal)
    result = reader.index.search(query, [personal.home])
    assert result.total == len(result.hits)
    assert reader.ids(personal) == [memory_id]


def test_the_index_can_be_deleted_at_any_time(personal: Folder, reader: Reader) -> None:
    memory_id = personal.write("some words")
    reader.look(personal)
    for path in reader.path.parent.glob("index.db*"):
        Path(path).unlink()
    assert reader.ids(personal) == [memory_id]
    reader.index.close()
    assert reader.found("words", personal) == [memory_id]

"""Laws of the merge, over generated memories and edits: nothing lost, nothing back, both sides equal."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from openmemex.errors import Refused, UsageError
from openmemex.memory.fences import Unreadable, split
from openmemex.memory.frontmatter import conflict_line, parse, render, rewrite
from openmemex.memory.merge import Labels, Merged, merge, with_markers
from openmemex.memory.model import FIELD_BY_NAME, FIELDS, HistoryEntry, Link, Memory, parse_time

A = "01K6AB3XZQ7WVD9J1M2N4P5Q6A"
B, C = A[:-1] + "B", A[:-1] + "C"
TIMES = [f"2026-0{month}-01T0{hour}:00:00Z" for month in (1, 2, 3) for hour in (0, 5)]
TIMES += ["2026-02-01T02:00:00+02:00", "2026-01-01"]
WORDS = ["auth", "sso", "needs-review", "no", "1.10", "部署", "a b", "x: y", "#7"]
LINES = [
    "Use OAuth.",
    "",
    "```",
    "~~~",
    "code",
    "---",
    "# Heading",
    "=======",
    "    <<<<<<< ours",
    "- item",
    "部署 🚀",
]

words = st.sampled_from(WORDS)
times = st.sampled_from(TIMES)
entries = st.builds(
    HistoryEntry,
    times,
    st.none() | st.sampled_from(["Ada", "Bob"]),
    st.sampled_from(["draft", "proposed"]),
    st.sampled_from(["proposed", "approved", "rejected"]),
    st.none() | words,
)
bodies = (
    st.lists(st.sampled_from(LINES), max_size=6)
    .map("\n".join)
    .flatmap(lambda text: st.sampled_from([text, text + "\n"]))
    .filter(lambda text: not conflict_line(text))
)


def value_of(name: str) -> st.SearchStrategy[Any]:
    field = FIELD_BY_NAME[name]
    if field.kind == "choice":
        return st.sampled_from(field.choices[:5])
    if field.kind == "id":
        return st.sampled_from([None, B, C])
    if field.kind == "int":
        return st.sampled_from([1, 2])
    if field.kind == "time":
        return times if name == "updated_at" else st.none() | times
    if field.kind == "history":
        return st.lists(entries, max_size=3).map(tuple)
    if field.kind == "links":
        return st.lists(st.builds(Link, words, st.sampled_from([B, C])), max_size=3, unique=True).map(tuple)
    if field.kind == "list":
        return st.lists(words, max_size=4, unique=True).map(tuple)
    return st.none() | words


CHANGEABLE = [field.name for field in FIELDS if field.name not in ("id", "created_at", "schema_version")]
# The fields whose rules depend on one another come more often.
OFTEN = [
    "type",
    "role",
    "status",
    "superseded_by",
    "review_state",
    "approved_by",
    "review_note",
    "review_history",
]


class Edit(NamedTuple):
    values: dict[str, Any]
    body: str | None
    lines: tuple[str, ...]  # added in front of a field
    crlf: bool
    bom: bool


@st.composite
def memories(draw: st.DrawFn) -> Memory:
    names = draw(st.lists(st.sampled_from(CHANGEABLE + OFTEN), max_size=8, unique=True))
    values = {name: draw(value_of(name)) for name in names}
    return Memory(A, draw(bodies), created_at=TIMES[0])._replace(**values)


@st.composite
def edits(draw: st.DrawFn) -> Edit:
    names = draw(st.lists(st.sampled_from(CHANGEABLE + OFTEN), max_size=5, unique=True))
    extra = st.sampled_from(
        ["# why", "# 部署", "x_team: web", "x_team: [a, {b: c}]", 'zeta: "1"  # z', "x_none: null"]
    )
    return Edit(
        {name: draw(value_of(name)) for name in names},
        draw(st.none() | bodies),
        tuple(draw(st.lists(extra, max_size=2, unique_by=lambda line: line.partition(":")[0]))),
        draw(st.integers(0, 9)) == 0,
        draw(st.integers(0, 9)) == 0,
    )


@st.composite
def starts(draw: st.DrawFn) -> bytes:
    """A file in our own form, or with some of what people and other programs write."""
    memory = draw(memories())
    raw = render(memory)
    if draw(st.booleans()):
        return raw
    text = raw.decode()
    for old, new in draw(
        st.lists(
            st.sampled_from(
                [
                    ("importance: normal", "importance: normal   # as ever"),
                    ("tags: [", "tags:  ["),
                    ("supersedes: null\n", ""),
                    ("role: knowledge\n", "role: 'knowledge'\n# between\n"),
                    ("derived_from: null", "derived_from: |\n  one\n  two"),
                    ("source: user", "source: bogus"),
                    ("review_state: approved", "review_state: Approved"),
                    ("type: fact", "type: [fact]"),
                    ("schema_version: 2\n", ""),
                    ("project_name: null", "x_old: [1, 2]\nbody: odd\n\nproject_name: ~"),
                ]
            ),
            max_size=4,
            unique=True,
        )
    ):
        text = text.replace(old, new, 1)
    return text.encode()


def edited(raw: bytes, edit: Edit) -> bytes:
    document = parse(raw, default_scope="project")
    raw = rewrite(document, edit.values, body=edit.body)
    text = raw.decode()
    for line in edit.lines:
        key = line.partition(":")[0]
        old = re.compile(rf"^{re.escape(key)}:.*\n", re.MULTILINE)
        if not line.startswith("#") and old.search(text):
            text = old.sub(lambda _, line=line: line + "\n", text, count=1)
        else:
            text = text.replace("\nstatus:", f"\n{line}\nstatus:", 1)
    if edit.crlf:
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    return (("\ufeff" if edit.bom else "") + text).encode()


@st.composite
def triples(draw: st.DrawFn) -> tuple[bytes, bytes, bytes]:
    base = draw(starts())
    try:
        return base, edited(base, draw(edits())), edited(base, draw(edits()))
    except Refused:
        assume(False)
        raise


def read(raw: bytes) -> Memory:
    memory = parse(raw, stem=A, default_scope="project").memory
    return memory._replace(body=memory.body.replace("\r\n", "\n"))


def plain(raw: bytes) -> bytes:
    return raw.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")


def exchanged(merged: Merged) -> tuple[Any, ...]:
    return tuple((c.field, c.base, c.theirs, c.ours, c.why) for c in merged.conflicts)


@given(starts() | st.binary(max_size=30) | st.none(), starts() | st.binary(max_size=30) | st.none())
def test_where_one_side_changed_nothing_the_result_is_the_other_byte_for_byte(one: Any, other: Any) -> None:
    for merged in (
        merge(one, one, other),
        merge(one, other, one),
        merge(None, other, other),
        merge(one, other, other),
    ):
        assert (merged.raw, merged.conflicts) == (other, ())


@given(triples())
def test_the_sides_are_equals(triple: tuple[bytes, bytes, bytes]) -> None:
    base, ours, theirs = triple
    for old in (base, None):
        one, other = merge(old, ours, theirs), merge(old, theirs, ours)
        assert tuple(tuple(conflict) for conflict in one.conflicts) == exchanged(other)
        assert one.notices == other.notices
        if not one.conflicts:
            assert one.raw is not None
            assert other.raw is not None
            first, second = read(one.raw), read(other.raw)
            times = ("created_at", "updated_at", "valid_from", "valid_until", "expires_at")
            for name in times:
                assert parse_time(first.value(name)) == parse_time(second.value(name))
            same = dict.fromkeys(times)
            assert first._replace(**same) == second._replace(**same)
            assert first.extra == second.extra


@given(triples())
def test_no_item_is_lost_and_none_comes_back(triple: tuple[bytes, bytes, bytes]) -> None:
    base, ours, theirs = triple
    merged = merge(base, ours, theirs)
    assume(not merged.conflicts)
    assert merged.raw is not None
    b, o, t, m = read(base), read(ours), read(theirs), read(merged.raw)
    for name in ("tags", "aliases", "paths", "links"):
        kept, mine, yours = (set(side.value(name)) for side in (b, o, t))
        assert set(m.value(name)) == (mine & yours) | (mine - kept) | (yours - kept)
        assert len(m.value(name)) <= len(o.value(name)) + len(t.value(name))
    plain_base, plain_ours, plain_theirs = (plain(side) for side in triple)
    if plain_ours in (plain_base, plain_theirs) or plain_theirs == plain_base:
        return  # one side changed nothing: then the other's file is the result
    entries, mine, yours = (Counter(side.review_history) for side in (m, o, t))
    added = entries - (mine | yours)
    assert (mine | yours) - entries == Counter()
    assert all(entry.note and entry.note.startswith("merge: ") for entry in added)
    assert added.total() <= 1


def group(name: str) -> tuple[str, ...]:
    return next((names for names in (("status", "superseded_by"),) if name in names), (name,))


@given(triples())
def test_an_edit_of_one_side_is_in_the_result(triple: tuple[bytes, bytes, bytes]) -> None:
    base, ours, theirs = triple
    merged = merge(base, ours, theirs)
    assume(not merged.conflicts)
    assert merged.raw is not None
    b, o, t, m = read(base), read(ours), read(theirs), read(merged.raw)
    again = dict(merged.decisions).get("review_state") == "proposed"
    for mine, yours in ((o, t), (t, o)):
        for field in FIELDS:
            name = field.name
            was, new = b.value(name), mine.value(name)
            if new == was or yours.value(name) != was or name in ("updated_at", "review_history"):
                continue
            if name in ("review_state", "approved_by", "review_note", "proposed_by"):
                told = [(step.by, step.note, step.to_state) for step in m.review_history]
                if again or mine.review_state == yours.review_state != b.review_state:
                    assert told or m.value(name) == new  # at least the history has it
                    continue
            assert m.value(name) == new, name
        if mine.body != b.body and yours.body == b.body:
            assert m.body == mine.body
        for name in b.extra.keys() | mine.extra.keys():
            if mine.extra.get(name) != b.extra.get(name) and yours.extra.get(name) == b.extra.get(name):
                assert m.extra.get(name) == mine.extra.get(name)
    if m.updated_at not in (o.updated_at, t.updated_at):
        raise AssertionError(m.updated_at)
    text = merged.raw.decode()
    for line in ("# why", "# 部署"):
        count = [version.decode().count(f"\n{line}") for version in triple]
        assert text.count(f"\n{line}") >= min(1, max(count))


@given(triples(), st.data())
def test_an_approval_never_stands_on_a_text_that_no_side_approved(
    triple: tuple[bytes, bytes, bytes], data: st.DataObject
) -> None:
    base, ours, theirs = triple
    open_fields = [conflict.field for conflict in merge(base, ours, theirs).conflicts]
    take = {name: data.draw(st.sampled_from(["base", "ours", "theirs"])) for name in open_fields}
    merged = merge(base, ours, theirs, take=take, by="Ada", at=TIMES[0])  # type: ignore[arg-type]
    assert not merged.conflicts
    assert merged.raw is not None
    m = read(merged.raw)

    def content(memory: Memory) -> tuple[Any, ...]:
        return memory.type, memory.role, memory.scope, memory.body

    if m.review_state in ("approved", "published"):
        sides = [read(raw) for raw in triple]
        assert any(
            side.review_state in ("approved", "published") and content(side) == content(m) for side in sides
        )
    elif m.review_state == "proposed" and dict(merged.decisions).get("review_state") == "proposed":
        assert m.approved_by is None
        assert "changed while it was" in (m.review_history[-1 - len(take)].note or "")
    versions = {side: read(raw) for side, raw in zip(("base", "ours", "theirs"), triple, strict=True)}
    for name, side in take.items():
        again = name in ("review_state", "approved_by", "review_note") and m.review_state == "proposed"
        if name in FIELD_BY_NAME and not again:
            assert m.value(name) == versions[side].value(name)
        elif name == "body":
            assert m.body == versions[side].body
        elif not again:
            assert m.extra.get(name.removesuffix(":")) == versions[side].extra.get(name.removesuffix(":"))
    assert [step.note for step in m.review_history if "taken from" in (step.note or "")] == [
        f"merge: {name} taken from {take[name]}" for name in open_fields
    ]


@given(triples(), st.booleans(), st.integers(0, 12))
def test_a_file_with_markers_is_no_memory_and_loses_nothing(
    triple: tuple[bytes, bytes, bytes], added: bool, size: int
) -> None:
    base, ours, theirs = triple
    old = None if added else base
    raw = with_markers(old, ours, theirs, marker_size=size, stem=A, labels=Labels("b", "o\nx", "t"))
    with pytest.raises(Unreadable, match="conflict"):
        split(raw)
    assert re.search(rb"^<{7,} o x\r?$", raw, re.MULTILINE)
    fields = {conflict.field for conflict in merge(old, ours, theirs).conflicts}
    if not fields:
        return
    lines = set(raw.decode().replace("\r\n", "\n").split("\n"))
    for side in (ours, theirs):
        memory = read(side)
        if "body" in fields:
            assert set(memory.body.split("\n")) - lines == set()
        for name in fields - {"body"}:
            found = re.search(rf"^{name}:.*$", side.decode().replace("\r\n", "\n"), re.MULTILINE)
            assert found is None or found[0] in lines


@given(
    st.binary(max_size=60) | st.none(), st.binary(max_size=60) | st.none(), starts() | st.binary(max_size=60)
)
def test_markers_come_for_any_bytes(base: bytes | None, ours: bytes | None, theirs: bytes) -> None:
    raw = with_markers(base, ours, theirs)
    assert re.search(rb"^<{7,} ours\r?$", raw, re.MULTILINE)
    with pytest.raises(Unreadable):
        split(raw)
    for side in (ours or b"", theirs):
        assert set(side.splitlines()) - set(raw.splitlines()) == set()


@given(triples(), st.sampled_from(["ours", "theirs", "base"]))
def test_only_what_is_in_conflict_can_be_taken(triple: tuple[bytes, bytes, bytes], side: Any) -> None:
    fields = {conflict.field for conflict in merge(*triple).conflicts}
    for name in {"type", "body", "tags", "x_team", "nothing"} - fields:
        with pytest.raises(UsageError):
            merge(*triple, take={name: side})

"""The codec by examples: what reads, what is quarantined, what is written, which lines a change touches."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from openmemex.errors import Refused
from openmemex.memory import yaml_parser
from openmemex.memory.frontmatter import Unreadable, conflict_line, parse, render, rewrite, substance
from openmemex.memory.model import FIELDS, HistoryEntry, Link, Memory
from openmemex.memory.reading import Document
from openmemex.memory.yaml_writer import is_plain

A = "01K6AB3XZQ7WVD9J1M2N4P5Q6A"
B = "01K6AB3XZQ7WVD9J1M2N4P5Q6B"
T = "2026-09-26T12:00:00Z"

TEMPLATE = f"""\
---
id: {A}
schema_version: 2
scope: project
type: decision
role: knowledge
importance: normal
status: active
tags: [auth, oauth]
source: user
created_at: "{T}"
updated_at: "{T}"
supersedes: null
superseded_by: null
review_state: approved
review_history: []
---
Use OAuth for the admin panel.
"""

ODD_TEXTS = [
    "deploy: use canary",
    "*bold* start",
    "@team",
    "#17 fix",
    "[[link]]x",
    "`C:\\apps\\x`",
    "- dash",
    "%d",
    "!note",
    "{a}",
    'it\'s "q"',
    "C:\\temp",
    "a #b",
    "=",
    "null",
    "?",
    "|",
    "> x",
    "key:\nvalue",
    "end ",
]
NOT_TEXT_TO_YAML = [
    "no", "No", "NO", "on", "off", "yes", "y", "n", "Y", "true", "False", "null", "Null", "~", "", "=", "<<",
    "0123", "0o7", "0x1F", "0b1", "1_000", "12e03", "1e3", "1.5", ".5", "-.5", "+1", "-1", "1:30",
    "190:20:30.15", ".inf", "-.INF", ".nan", "2026-09-26", "2026-09-26T12:00:00Z", "2026-9-6 1:2:3", "12345",
    "0", "0.", "1E5", "01234567890123456789012345", "0123456789012345678901234E",
    "01E23456789012345678901234", "---", "...", "--- x", "#", "# x", "a: b", "a:", ": a", "- a", "-", "? a",
    "?", "!x", "&x", "*x", "%x", "@x", "`x", "|", ">", "[", "]", "{", "}", ",", "a, b", "'", '"', "\\", " a",
    "a ", "\ta", "a\t", "a\tb", "a\nb", "\n", "\r", "a\rb", "a\r\nb", "\x85", "a\x85b", "\u2028", "\u2029",
    "\ufeff", "\ufeffa", "\0", "\x07", "\x1b[0m", "\x7f", "\x9f", "\xa0", "\ud7ff", "\ue000", "\ufffd",
    "\ufffe", "\uffff", "\U0001f680", "\U0010ffff", "部署方案 🚀", "платформа", "नमस्ते", "café", "e\u0301",
    "\u202eabc", "C:\\temp\\new", "x" * 5000, "a  b",
]  # fmt: skip


def text(**changes: str | None) -> str:
    """The template with lines of the named fields exchanged (None: gone)."""
    out = TEMPLATE
    for name, value in changes.items():
        line = re.compile(rf"^{name}:.*\n", re.MULTILINE)
        assert line.search(out), name
        out = line.sub("" if value is None else lambda _, n=name, v=value: f"{n}: {v}\n", out, count=1)
    return out


def with_lines(lines: str, *, before: str = "source:") -> bytes:
    """The template with more lines above `before`."""
    assert before in TEMPLATE
    return TEMPLATE.replace(before, lines + before, 1).encode()


def memory(**values: Any) -> Memory:
    return Memory(id=A, **{"body": "Use OAuth.\n", "created_at": T, "updated_at": T} | values)


def unreadable(raw: bytes | str, **options: Any) -> Unreadable:
    with pytest.raises(Unreadable) as caught:
        parse(raw.encode() if isinstance(raw, str) else raw, **options)
    return caught.value


def changed_lines(before: bytes, after: bytes) -> tuple[list[str], list[str]]:
    """Lines that left and lines that came, ends included."""
    old, new = (data.decode().splitlines(keepends=True) for data in (before, after))
    diff = list(difflib.ndiff(old, new))
    return [line[2:] for line in diff if line[0] == "-"], [line[2:] for line in diff if line[0] == "+"]


def scalars_of(raw: bytes) -> Iterator[Any]:
    front = raw.split(b"---\n")[1].decode()
    return (
        event for event in yaml.parse(front, Loader=yaml.SafeLoader) if isinstance(event, yaml.ScalarEvent)
    )


# YAML 1.2.2, "10.3.2. Tag Resolution" of the core schema: what a plain scalar must not look like to be text.
YAML_1_2_NOT_TEXT = re.compile(
    r"null|Null|NULL|~||true|True|TRUE|false|False|FALSE|[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
    r"|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?(\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN"
)


def reads_as_text_everywhere(value: str) -> bool:
    """Whether an unquoted scalar is text to a YAML 1.1 reader and to a YAML 1.2 one."""
    resolver = yaml.SafeLoader("")
    yaml_1_1 = resolver.resolve(yaml.ScalarNode, value, (True, False))
    return yaml_1_1 == "tag:yaml.org,2002:str" and not YAML_1_2_NOT_TEXT.fullmatch(value)


# Reading


def test_a_plain_file_reads_field_by_field() -> None:
    got = parse(TEMPLATE.encode(), stem=A)
    assert got.problems == ()
    assert got.memory == Memory(
        id=A,
        body="Use OAuth for the admin panel.\n",
        scope="project",
        scope_key=None,
        visibility="internal",
        type="decision",
        tags=("auth", "oauth"),
        created_at=T,
        updated_at=T,
        review_state="approved",
    )


def test_the_smallest_file_gets_every_default() -> None:
    got = parse(f"---\nid: {A}\n---\n".encode())
    assert got.problems == ()
    assert got.memory == Memory(id=A, body="", schema_version=1, created_at=CREATED, updated_at=CREATED)


CREATED = "2025-09-29T08:58:35Z"  # the time that the id of the examples carries


def test_a_missing_created_at_is_the_time_in_the_id() -> None:
    got = parse(text(created_at=None, updated_at=None).encode()).memory
    assert (got.created_at, got.updated_at) == (CREATED, CREATED)
    late = parse(b"---\nid: 7ZZZZZZZZZZZZZZZZZZZZZZZZZ\n---\n").memory
    assert late.created_at == "9999-12-31T23:59:59Z"
    assert parse(text(updated_at=None).encode()).memory.updated_at == T


@pytest.mark.parametrize(
    ("lines", "scope", "key", "visibility"),
    [
        ("", "personal", "personal", "private"),
        ("scope: project\n", "project", None, "internal"),
        ("scope: org\n", "org", None, "internal"),
        ("scope_key: project__x__0123456789ab\n", "project", "project__x__0123456789ab", "internal"),
        ("scope_key: org__x__0123456789ab\n", "org", "org__x__0123456789ab", "internal"),
        ("scope_key: personal\n", "personal", "personal", "private"),
        ("scope: personal\nvisibility: shared\n", "personal", "personal", "shared"),
        ("scope: user\n", "personal", "personal", "private"),
    ],
)
def test_scope_key_and_visibility_follow_the_scope(lines: str, scope: str, key: str, visibility: str) -> None:
    got = parse(f"---\nid: {A}\n{lines}---\n".encode())
    assert (got.memory.scope, got.memory.scope_key, got.memory.visibility) == (scope, key, visibility)
    assert got.problems == ()


def test_a_file_without_scope_belongs_where_it_lies() -> None:
    raw = f"---\nid: {A}\n---\nx\n".encode()
    got = parse(raw, default_scope="project")
    assert (got.memory.scope, got.memory.visibility) == ("project", "internal")
    after = rewrite(got, {"importance": "high"})
    assert changed_lines(raw, after) == ([], ["importance: high\n"])


@pytest.mark.parametrize("scope", ["team", "public"])
def test_reserved_scopes_read_with_a_problem(scope: str) -> None:
    got = parse(text(scope=scope).encode(), default_scope="project")
    assert got.memory.scope == "project"
    assert [(p.field, p.line) for p in got.problems] == [("scope", 4)]
    assert "reserved" in got.problems[0].text


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("warning", "gotcha"),
        ("workflow", "howto"),
        ("incident", "lesson"),
        ("architecture", "knowledge"),
    ],
)
def test_retired_types_read_as_their_heirs(written: str, read: str) -> None:
    got = parse(text(type=written).encode())
    assert (got.memory.type, got.problems) == (read, ())


def test_a_file_of_version_1_reads() -> None:
    raw = f"""\
---
id: {A}
schema_version: 1
scope: user
type: instruction
priority: 9
tags: [a]
created_at: 1758897427123
---
old
""".encode()
    got = parse(raw, stem=A)
    assert got.problems == ()
    assert (got.memory.schema_version, got.memory.scope, got.memory.scope_key) == (1, "personal", "personal")
    assert (got.memory.type, got.memory.role, got.memory.importance) == ("fact", "instruction", "high")
    assert (got.memory.created_at, got.memory.updated_at) == ("2025-09-26T14:37:07Z", "2025-09-26T14:37:07Z")
    assert got.memory.extra == {"priority": "9"}
    assert rewrite(got, {}) is raw


def test_a_newer_version_reads_with_a_problem() -> None:
    got = parse(text(schema_version="3").encode())
    assert got.memory.schema_version == 3
    assert [(p.field, p.line) for p in got.problems] == [("schema_version", 3)]


@pytest.mark.parametrize(
    ("field", "written", "read"),
    [
        ("status", "bogus", "active"),
        ("status", "[retracted]", "active"),
        ("status", "Retracted", "retracted"),
        ("type", "rumour", "fact"),
        ("role", "boss", "knowledge"),
        ("importance", "10", "normal"),
        ("review_state", "blessed", "draft"),
        ("source", "{a: b}", "user"),
        ("schema_version", "two", 2),
        ("created_at", "yesterday", CREATED),
        ("updated_at", "yesterday", T),
        ("supersedes", "the old one", None),
        ("superseded_by", "[x]", None),
        ("tags", "{a: b}", ()),
        ("review_history", "x", ()),
        ("review_history", "{a: b}", ()),
        ("review_history", "[x, {at: y, by: [z]}]", ()),
        ("tags", "[a, [b], {c: d}, e]", ("a", "e")),
    ],
)
def test_an_odd_value_reads_as_the_default_and_is_told(field: str, written: str, read: object) -> None:
    raw = text(**{field: written}).encode()
    got = parse(raw)
    assert got.memory.value(field) == read
    line = next(n for n, s in enumerate(raw.decode().split("\n"), 1) if s.startswith(field))
    assert {(p.field, p.line) for p in got.problems} == {(field, line)}
    assert rewrite(got, {}) is raw
    # Setting the value that was read mends the line: it is a change although nothing seems to differ.
    mended = rewrite(got, {field: read})
    if field not in ("tags", "review_history"):
        assert parse(mended).problems == ()
        assert parse(mended).memory == got.memory


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("[no, on, 3.10, 2026-09-26, 0123, 1:30, null, 1_000]",
         ("no", "on", "3.10", "2026-09-26", "0123", "1:30", "null", "1_000")),
        ("[~, true, 12e03, .5, 0x1F, =]", ("~", "true", "12e03", ".5", "0x1f", "=")),
        ("[ Auth , 'OAUTH ', auth, \"\", '  ']", ("auth", "oauth")),
        ("auth", ("auth",)),
        ("auth, OAuth,, sso , auth", ("auth", "oauth", "sso")),
        ("no", ("no",)),
        ("1.10", ("1.10",)),
        ("null", ()), ("~", ()), ("", ()), ("''", ()), ("[]", ()),
        ("\n- no\n-\n- 1.10  # c\n- 'x y'", ("no", "1.10", "x y")),
        ("\n  - a\n  - b", ("a", "b")),
    ],
)  # fmt: skip
def test_tags_are_text_in_every_spelling(written: str, read: tuple[str, ...]) -> None:
    got = parse(text(tags=written).encode())
    assert got.memory.tags == read
    assert got.problems == ()


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("a, b", ("a, b",)),
        ("[no, 1.10, null, 'end ', '']", ("no", "1.10", "null", "end ", "")),
        ("", ()),
        ("null", ()),
        ("[a, a]", ("a", "a")),
    ],
)
def test_aliases_are_text_as_written(written: str, read: tuple[str, ...]) -> None:
    got = parse(with_lines(f"aliases: {written}\n"))
    assert (got.memory.aliases, got.problems) == (read, ())


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("no", "no"), ("0123", "0123"), ("2026-09-26", "2026-09-26"), ("1:30", "1:30"), ("'null'", "null"),
        ("null", None), ("", None), ("~", None), ("!!str null", "null"), ("!!int 012", "012"), ("! x", "x"),
        ('"C:\\temp"', "C:\temp"), ("C:\\temp", "C:\\temp"), ("a\n  b", "a b"), ("|\n  a\n  ---\n  b",
        "a\n---\nb\n"), ("&x y", "y"), ("it's", "it's"), ("a#b", "a#b"), ("a #b", "a"),
    ],
)  # fmt: skip
def test_a_text_field_is_never_guessed_at(written: str, read: str | None) -> None:
    got = parse(with_lines(f"review_note: {written}\n"))
    assert got.memory.review_note == read
    assert got.problems == ()


@pytest.mark.parametrize(
    "written",
    [
        "2026-09-26",
        "2026-09-26T12:00:00Z",
        "2026-09-26 12:00:00",
        "'2026-09-26T14:00:00+02:00'",
        "2026-09-26T12:00:00.123456Z",
    ],
)
def test_a_time_stays_the_text_that_it_was(written: str) -> None:
    got = parse(text(created_at=written).encode())
    assert got.memory.created_at == written.strip("'")
    assert got.problems == ()


def test_ids_of_digits_stay_text() -> None:
    digits = "01234567890123456789012345"
    got = parse(
        f"---\nid: {digits}\nsupersedes: {digits}\nderived_from: 12345\n---\n".encode(), stem=digits
    ).memory
    assert (got.id, got.supersedes, got.derived_from) == (digits, digits, "12345")


def test_pointers_to_other_memories_read_in_either_case() -> None:
    assert parse(text(supersedes=B.lower()).encode()).memory.supersedes == B


def test_history_and_links_read_as_entries() -> None:
    raw = with_lines(
        f"""links:
- {{rel: see, to: {B}}}
- to: 0123
- just text
- {{rel: x}}
""",
        before="review_history:",
    ).replace(
        b"review_history: []",
        b"review_history:\n- at: 2026-09-26T12:00:00Z\n  by: no\n  to: 12\n  extra: [kept]\n"
        b"- {from: draft, note: ~}",
    )
    got = parse(raw)
    assert got.memory.links == (Link("see", B), Link("", "0123"))
    assert got.memory.review_history == (
        HistoryEntry(T, "no", None, "12", None),
        HistoryEntry("", None, "draft", None, None),
    )
    assert [(p.field, p.line) for p in got.problems] == [("links", 19)]
    assert "2 items" in got.problems[0].text
    assert rewrite(got, {}) is raw


def test_unknown_fields_are_kept_as_text_to_look_at() -> None:
    raw = with_lines("x_team: no\nx: {a: [1, null, {b: 0123}]}\n3: 4\n")
    assert parse(raw).memory.extra == {"x_team": "no", "x": {"a": ["1", None, {"b": "0123"}]}, "3": "4"}


def test_aliases_of_yaml_read_and_survive() -> None:
    raw = with_lines("aliases: &w [one, two]\nx: [*w, *w]\npaths: *w\n")
    got = parse(raw)
    assert got.memory.aliases == got.memory.paths == ("one", "two")
    assert got.memory.extra == {"x": [["one", "two"], ["one", "two"]]}
    after = rewrite(got, {"paths": ("src",)})
    assert changed_lines(raw, after) == (["paths: *w\n"], ["paths: [src]\n"])


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("opening", ["---", "---  ", "---\t", "\n---"])
@pytest.mark.parametrize("closing", ["---", "--- \t", "..."])
def test_boms_line_ends_and_blanks_after_fences_read(
    bom: bytes, eol: str, opening: str, closing: str
) -> None:
    lines = TEMPLATE.replace("\n---\n", f"\n{closing}\n").replace("---", opening, 1)
    raw = bom + lines.replace("\n", eol).encode()
    got = parse(raw, stem=A)
    assert got.memory._replace(body="") == parse(TEMPLATE.encode()).memory._replace(body="")
    assert got.memory.body == f"Use OAuth for the admin panel.{eol}"
    assert rewrite(got, {}) is raw
    after = rewrite(got, {"importance": "high", "tags": ("auth", "oauth", "sso"), "project_name": "x y"})
    assert parse(after).memory == got.memory._replace(
        importance="high", tags=("auth", "oauth", "sso"), project_name="x y"
    )
    assert after.startswith(bom)
    assert after.count(b"\xef\xbb\xbf") == (1 if bom else 0)
    ends = set(re.findall(rb"\r\n|\n|\r", after))
    assert ends == {eol.encode()}
    old, new = changed_lines(
        raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n"), after.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    )
    assert old == ["importance: normal\n", "tags: [auth, oauth]\n"]
    assert sorted(new) == ["importance: high\n", "project_name: x y\n", "tags: [auth, oauth, sso]\n"]


@pytest.mark.parametrize(
    "body",
    [
        "", "\n", "\n\n    indented code\n\nend\n\n\n", "no line end", "---\n",
        "---\nstatus: retracted\n---\n", "intro\n\n---\n\nstatus: retracted\ntags: [evil]\n",
        "...\n", "\ufeffx", "a\r\nb\nc\rd", "a\0b", "\x1b[31m",
        "Heading\n=======\n\ntext\n", "| a |\n|||||||\n", "    <<<<<<< HEAD\n    >>>>>>> b\n",
    ],
)  # fmt: skip
def test_a_body_is_taken_whole(body: str) -> None:
    raw = TEMPLATE.rpartition("---\n")[0].encode() + b"---\n" + body.encode()
    got = parse(raw)
    assert got.memory.body == body
    assert got.memory.status == "active"
    assert rewrite(got, {}) is raw
    assert parse(rewrite(got, {"status": "archived"})).memory.body == body
    written = render(got.memory._replace(scope_key="k"))
    assert parse(written).memory.body == body


@pytest.mark.parametrize(
    ("lines", "field", "value"),
    [
        ('aliases: ["v1---v2 change"]\n', "aliases", ("v1---v2 change",)),
        ("review_note: |\n  one\n  ---\n  three\n", "review_note", "one\n---\nthree\n"),
        ("review_note: a ---\n  --- b\n", "review_note", "a --- --- b"),
        ("review_note: '...'\n", "review_note", "..."),
    ],
)
def test_dashes_inside_values_are_no_fence(lines: str, field: str, value: object) -> None:
    got = parse(with_lines(lines))
    assert got.memory.value(field) == value
    assert (got.memory.status, got.memory.body) == ("active", "Use OAuth for the admin panel.\n")


# Quarantine

DEEP = "[" * 2000
LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{n}: &{n} [{','.join(['*' + p] * 9)}]\n" for p, n in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("raw", "reason", "line"),
    [
        (b"", "no front matter", 1),
        (b"\n\n", "no front matter", 1),
        (b"just text\n\n---\n\nmore\n\n---\n", "no front matter", 1),
        (b" ---\nid: x\n---\n", "no front matter", 1),
        (b"----\nid: x\n----\n", "no front matter", 1),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n", "Git LFS pointer", 0),
        (b"version https://hawser.github.com/spec/v1\noid sha256:00\nsize 3\n", "Git LFS pointer", 0),
        (b"version https://example.org/spec/v1\n", "no front matter", 1),
        (f"---\nid: {A}\n".encode(), "not closed", 1),
        (f"---\nid: {A}\n\nbody\n----\n".encode(), "not closed", 1),
        (f"---\nid: {A}\nnote: x\n ---\n".encode(), "not closed", 1),
        (b"---", "no front matter", 1),
        (b"---\n---\n", "no id", 2),
        (b"---\n# nothing\n---\n", "no id", 2),
        (b"---\n---\nid: x\n---\n", "no id", 2),
        (b"---\ntags: []\n---\n", "no id", 2),
        (b"---\n- a\n---\n", "not a list of fields", 2),
        (b"---\njust text\n---\n", "not a list of fields", 2),
        (f"---\nid: {A[:-1]}\n---\n".encode(), "not a ULID", 2),
        (f"---\ntags: []\nid: {A}X\n---\n".encode(), "not a ULID", 3),
        (f"---\nid: {A.lower()}\n---\n".encode(), "not a ULID", 2),
        (f"---\nid: ' {A}'\n---\n".encode(), "not a ULID", 2),
        (f"---\nid: 8{A[1:]}\n---\n".encode(), "not a ULID", 2),
        (f"---\nid: ../{A}\n---\n".encode(), "not a ULID", 2),
        (f"---\nid: [{A}]\n---\n".encode(), "not a ULID", 2),
        (b"---\nid: null\n---\n", "not a ULID", 2),
        (f"---\n# c\nid: {B}\n---\n".encode(), "differs from the file's name", 3),
        (f"---\nid: {A}\nreview_note: see C: drive: later\n---\nbody\n".encode(), "bad YAML", 3),
        (text(status="active\nproject_name: deploy: use canary").encode(), "bad YAML", 9),
        (text(status="active\nproject_name: @team").encode(), "bad YAML", 9),
        (text(status="active\nproject_name: !note").encode(), "tag", 9),
        (text(status="active\nx: !!python/object/apply:os.system [ls]").encode(), "tag", 9),
        (text(status="active\nx: !!binary eA==").encode(), "tag", 9),
        (text(status="active\nx: !!set {a, b}").encode(), "tag", 9),
        (text(status="active\nstatus: retracted").encode(), "duplicate key status", 9),
        (text(status="active\n'status': retracted").encode(), "duplicate key status", 9),
        (text(status="active\nx_team: a\nx_team: a").encode(), "duplicate key x_team", 10),
        (text(review_history="[{at: x, by: a, by: b}]").encode(), "duplicate key by", 16),
        (text(status="active\nx:\n  y: {a: 1, a: 1}").encode(), "duplicate key a", 10),
        (text(status="active\nsome secret words: 1\nsome secret words: 2").encode(), "duplicate key", 10),
        (text(status="active\nx: *nobody").encode(), "bad YAML", 9),
        (text(status="active\nx: &me [*me]").encode(), "its own anchor", 9),
        (text(status=f"active\n{LAUGHS.rstrip()}").encode(), "aliases expand", 12),
        (text(status=f"active\nx: {DEEP}").encode(), "levels deep", 9),
        (text(status="active\nx:\n" + "\n".join(" " * n + "a:" for n in range(1, 80))).encode(),
         "levels deep", 59),
        (text(status="active\nx: \0").encode(), "U+0000 is not allowed", 9),
        (text(status='active\nx: "\x1b"').encode(), "U+001B is not allowed", 9),
        (text(status="active\n? [a, b]\n: c").encode(), "bad YAML", 9),
        (text(status="active\nx: [a, b").encode(), "expected ',' or ']'", 9),
        (text(status="active\n--- a").encode(), "bad YAML", 9),
        (text(status="active\nx: 'open").encode(), "bad YAML", 9),
        (text(status="active\n\tx: tab").encode(), "bad YAML", 9),
        (text(status="active\n=======").encode(), "bad YAML", 9),
        (text(status="active\n%TAG ! x").encode(), "bad YAML", 10),
        (TEMPLATE.encode() + b"\n\xff\n", "not UTF-8", 20),
        (TEMPLATE.encode("utf-16"), "not UTF-8", 1),
        (b"\xed\xa0\x80", "not UTF-8", 1),
        (TEMPLATE.encode() + b"x" * (1 << 20), "1 MiB", 0),
    ],
)  # fmt: skip
def test_what_is_no_memory_is_quarantined_with_line_and_reason(raw: bytes, reason: str, line: int) -> None:
    for loader in (None, yaml.SafeLoader):
        error = unreadable(raw, stem=A, loader=loader)
        assert reason in error.reason
        assert error.line == line
        assert "\n" not in error.message
        assert "secret words" not in error.message


def test_a_file_of_the_greatest_size_reads() -> None:
    room = (1 << 20) - len(TEMPLATE)
    assert len(parse(TEMPLATE.encode() + b"x" * room).raw) == 1 << 20
    assert unreadable(TEMPLATE.encode() + b"x" * (room + 1)).line == 0


CONFLICT = "<<<<<<< HEAD\nstatus: active\n=======\nstatus: superseded\n>>>>>>> topic"
ZDIFF3 = "<<<<<<< ours\na\n||||||| 1a2b3c4\nb\n=======\nc\n>>>>>>> theirs\n"


@pytest.mark.parametrize("eol", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("content", "line"),
    [
        (TEMPLATE.replace("status: active", CONFLICT), 8),
        (TEMPLATE.replace("status: active\n", ">>>>>>> topic\nstatus: active\n"), 8),
        (TEMPLATE + "\n" + ZDIFF3, 20),
        (TEMPLATE + ZDIFF3.replace("||||||| 1a2b3c4\nb\n", ""), 19),
        (TEMPLATE + "<<<<<<< HEAD\n", 19),
        (TEMPLATE + "<<<<<<<\n", 19),
        (TEMPLATE + "x\n>>>>>>> topic\n", 20),
        (TEMPLATE + "=======\nx\n>>>>>>>\n", 21),
        (TEMPLATE + "||||||| base\nx\n=======\n", 19),
        (TEMPLATE + "```\ncode\n```\n" + ZDIFF3, 22),
        (TEMPLATE + "```\n" + ZDIFF3 + "\n", 20),
        (TEMPLATE + "```\ncode\n<<<<<<< HEAD\n```\n=======\n```\n>>>>>>> x\n", 25),
        (TEMPLATE + "````\n```\n" + ZDIFF3, 21),
        (TEMPLATE + "``` a`b\n" + ZDIFF3, 20),
        (TEMPLATE + "    ```\n" + ZDIFF3 + "    ```\n", 20),
        ("<<<<<<< HEAD\n" + TEMPLATE + "=======\n" + TEMPLATE + ">>>>>>> x\n", 1),
    ],
)
def test_unresolved_conflict_markers_are_quarantined(content: str, line: int, eol: str) -> None:
    error = unreadable(content.replace("\n", eol))
    assert (error.reason, error.line) == ("unresolved conflict markers", line)


@pytest.mark.parametrize("eol", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "body",
    [
        f"```\n{ZDIFF3}```\n",
        f"~~~ text\n{ZDIFF3}~~~~\n",
        f"  ```diff\n{ZDIFF3}  ```  \n",
        f"````\n```\n{ZDIFF3}````\n",
        f"~~~\n```\n{ZDIFF3}~~~\n",
        "```\n<<<<<<< HEAD\n```\nand\n```\n>>>>>>> x\n```\n",
        "".join("    " + line + "\n" for line in ZDIFF3.splitlines()),
        "Title\n=======\n",
        "a\n\n=======\n\n=======\nb\n",
        "|||||||\n",
        "say `<<<<<<< HEAD` and x <<<<<<< y\n",
        "<<<<<<<< eight\n>>>>>>>> eight\n",
        "<<<<<<<HEAD\n",
        ">>>>>>>\n",
        "> <<<<<<< quoted\n",
    ],
)
def test_markers_that_are_only_shown_are_normal_text(body: str, eol: str) -> None:
    body = body.replace("\n", eol)
    assert parse((TEMPLATE + body).encode()).memory.body.endswith(body)
    assert conflict_line(body) == 0
    assert parse(render(memory(body=body))).memory.body == body


@pytest.mark.parametrize("size", [7, 8, 20])
def test_a_conflict_with_markers_of_any_size_is_one(size: int) -> None:
    block = "{} a\none\n{}\ntwo\n{} b\n".format(*(sign * size for sign in "<=>"))
    for body, line in ((f"x\n{block}", 2), (f"{block}```\n{block}```\n", 1), (f"```\nx\n```\n{block}", 4)):
        assert conflict_line(body) == line
        assert unreadable(TEMPLATE + body).reason == "unresolved conflict markers"
    assert conflict_line(f"```\n{block}```\n") == 0
    front = TEMPLATE.replace("type: decision\n", f"{'<' * size} a\ntype: decision\n")
    assert unreadable(front).line == 5


def test_both_yaml_loaders_read_the_same() -> None:
    samples = [TEMPLATE.encode(), render(FULL)]
    samples += [
        with_lines(f"review_note: {value}\n")
        for value in ("|+\n  a\n\n", ">-\n  a\n  b\n", "'a\n  b'", '"\\u00e9"')
    ]
    samples += [
        with_lines(f"x: {value}\n") for value in ("{a: [b, {c: d}]}", "&a [b]", "!!str c", "\n- a\n-\n- - b")
    ]
    for raw in samples:
        fast, pure = parse(raw), parse(raw, loader=yaml.SafeLoader)
        assert (fast.memory, fast.memory.extra, fast.problems) == (
            pure.memory,
            pure.memory.extra,
            pure.problems,
        )
        assert yaml_parser.Loader is yaml.CSafeLoader


# Writing

FULL = memory(
    scope="project",
    scope_key="project__widget__0123456789ab",
    visibility="internal",
    project_name="widget: the second",
    type="decision",
    importance="high",
    tags=("auth", "no", "3.10", "0123", "1:30", "2026-09-26", "12e03", "部署"),
    aliases=("how to sign in", "部署方案 🚀"),
    supersedes=B,
    derived_from="elsewhere",
    review_history=(
        HistoryEntry(T, "ada", "draft", "proposed", None),
        HistoryEntry(T, None, None, None, "a\nb"),
    ),
    canonical_ref="docs/auth.md",
    paths=("src/**", "a b"),
    expires_at="2027-01-01",
    links=(Link("see", B),),
)


def test_a_new_file_is_written_in_this_very_form() -> None:
    assert (
        render(FULL).decode()
        == f"""\
---
id: {A}
schema_version: 2
scope: project
scope_key: project__widget__0123456789ab
visibility: internal
project_name: "widget: the second"
type: decision
role: knowledge
importance: high
status: active
tags: [auth, "no", "3.10", "0123", "1:30", "2026-09-26", "12e03", 部署]
aliases: [how to sign in, "部署方案 🚀"]
source: user
created_at: "{T}"
updated_at: "{T}"
supersedes: {B}
superseded_by: null
review_state: draft
proposed_by: null
approved_by: null
derived_from: elsewhere
review_note: null
review_history:
- {{at: "{T}", by: ada, from: draft, to: proposed, note: null}}
- {{at: "{T}", by: null, from: null, to: null, note: "a\\nb"}}
canonical_ref: docs/auth.md
paths: ["src/**", a b]
expires_at: "2027-01-01"
links:
- {{rel: see, to: {B}}}
---
Use OAuth.
"""
    )


def test_a_new_file_names_every_field_that_is_not_optional() -> None:
    names = re.findall(r"^(\w+):", render(memory()).decode(), re.MULTILINE)
    assert names == [field.name for field in FIELDS if not field.optional]


def test_times_of_a_new_file_come_from_its_id_when_none_are_given() -> None:
    got = parse(render(Memory(id=A, body="x"))).memory
    assert (got.created_at, got.updated_at) == (CREATED, CREATED)


@pytest.mark.parametrize("value", ODD_TEXTS + NOT_TEXT_TO_YAML)
def test_any_text_reads_back_character_for_character(value: str) -> None:
    given = memory(
        project_name=value,
        aliases=(value, "x", value),
        paths=(value,),
        review_note=value,
        proposed_by=value,
        review_history=(HistoryEntry(T, value, value, value, value),),
        links=(Link(value, value),),
        tags=("x", value),
        body=value,
    )
    raw = render(given)
    lowered = value.strip().lower()
    assert parse(raw).memory == given._replace(tags=tuple(dict.fromkeys(t for t in ("x", lowered) if t)))
    # And to a plain YAML parser that knows nothing of our fields.
    front = raw.decode().split("\n---\n")[0].removeprefix("---\n")
    plain = yaml.safe_load(front)
    assert plain["project_name"] == plain["aliases"][0] == plain["paths"][0] == value
    assert plain["review_history"][0]["note"] == plain["links"][0]["to"] == value


@pytest.mark.parametrize("value", ODD_TEXTS + NOT_TEXT_TO_YAML)
def test_what_stands_unquoted_is_text_in_yaml_1_1_and_1_2(value: str) -> None:
    raw = render(memory(tags=(value,), aliases=(value,), project_name=value, paths=(f"{value}x",)))
    for event in scalars_of(raw):
        if event.implicit[0] and event.value not in ("2", "null"):
            assert reads_as_text_everywhere(event.value), event.value


def test_words_and_numbers_are_quoted_and_plain_words_are_not() -> None:
    assert not any(
        is_plain(value) for value in NOT_TEXT_TO_YAML if not value.startswith(("xx", "caf", "плат", "a  b"))
    )
    assert not any(is_plain(value) for value in ODD_TEXTS)
    plain = ["auth", "how to sign in", "src/auth.py", "部署", "платформа", "x-1", "nobody", "none", "e3", A]
    assert all(is_plain(value) and reads_as_text_everywhere(value) for value in plain)


def test_nothing_is_folded_or_escaped_that_people_can_read() -> None:
    long = " ".join(f"word{n}: x" for n in range(400))
    raw = render(
        memory(aliases=(long, "部署方案 🚀: x"), review_note=long, tags=tuple(f"tag-{n}" for n in range(200)))
    )
    front = raw.decode().split("\n---\n")[0]
    assert "\\" not in front
    assert len(front.splitlines()) == 24


@pytest.mark.parametrize(
    "values",
    [
        {"body": "\ud800"},
        {"project_name": "a\udfffb"},
        {"tags": ("\ud800",)},
        {"aliases": ("\ud800",)},
        {"review_history": (HistoryEntry(T, None, None, None, "\ud800"),)},
        {"links": (Link("\ud800", "x"),)},
        {"body": "x" * (1 << 20)},
        {"body": "text\n<<<<<<< HEAD\n"},
        {"scope": "team"},
        {"scope": None},
        {"status": "bogus"},
        {"created_at": "yesterday"},
        {"expires_at": "soon"},
        {"supersedes": "x"},
        {"id": "../x"},
        {"id": A.lower()},
        {"tags": (1,)},
        {"links": ("x",)},
        {"review_history": ({"at": T},)},
        {"schema_version": "2"},
        {"project_name": 3},
    ],
)
def test_what_could_not_be_read_back_is_refused_before_it_is_written(values: dict[str, Any]) -> None:
    given = memory()._replace(**values)
    with pytest.raises(Refused) as caught:
        render(given)
    assert "\n" not in caught.value.message
    if "id" not in values:
        document = parse(TEMPLATE.encode())
        with pytest.raises(Refused):
            rewrite(document, {k: v for k, v in values.items() if k != "body"}, body=values.get("body"))


# Changing


def change(raw: bytes, **changes: Any) -> tuple[list[str], list[str]]:
    """Make the changes, check that nothing else happened to the memory, and give the lines that differ."""
    before = parse(raw)
    after = rewrite(before, changes)
    got = parse(after)
    assert got.memory == before.memory._replace(**changes)
    assert got.memory.extra == before.memory.extra
    return changed_lines(raw, after)


RICH = TEMPLATE.replace(
    "tags: [auth, oauth]\n",
    f'tags: [auth, oauth]\nx_team: "платформа"\n# keep me\naliases: ["{"long " * 26}", "部署方案 🚀"]\n',
).replace("Use OAuth for the admin panel.\n", "\n\n    indented code\n\nend\n\n\n")


def test_one_changed_field_is_a_diff_of_two_lines() -> None:
    later = "2026-09-27T08:00:00Z"
    old, new = change(RICH.encode(), importance="high", updated_at=later)
    assert old == ["importance: normal\n", f'updated_at: "{T}"\n']
    assert new == ["importance: high\n", f'updated_at: "{later}"\n']


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"importance": "normal"},
        {"tags": ["auth", "oauth"]},
        {"tags": (" AUTH", "oauth", "auth")},
        {"supersedes": None},
        {"visibility": "internal"},
        {"expires_at": None, "paths": (), "links": None},
        {"review_history": []},
        {"aliases": ()},
    ],
)
def test_no_change_gives_the_very_bytes(changes: dict[str, Any]) -> None:
    raw = TEMPLATE.encode()
    document = parse(raw)
    assert rewrite(document, changes) is raw
    assert rewrite(document, changes, body=document.memory.body) is raw


def test_a_name_that_is_no_field_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(KeyError):
        rewrite(parse(TEMPLATE.encode()), {"x_team": "a"})


@pytest.mark.parametrize(
    ("line", "field", "value", "expected"),
    [
        ("importance: normal   # why", "importance", "high", "importance: high   # why"),
        ("importance:   normal", "importance", "high", "importance:   high"),
        ("importance: 'normal'", "importance", "high", "importance: 'high'"),
        ('importance: "normal"', "importance", "high", 'importance: "high"'),
        ('"importance": normal', "importance", "high", '"importance": high'),
        ("importance : normal", "importance", "high", "importance : high"),
        ("importance: !!str normal # c", "importance", "high", "importance: high # c"),
        ("importance: # c\n  normal", "importance", "high", "importance: # c\n  high"),
        ("? importance\n: normal", "importance", "high", "? importance\n: high"),
        ("importance:", "importance", "high", "importance: high"),
        ("importance:  # c", "importance", "high", "importance: high  # c"),
        ("review_note: null", "review_note", "x: y", 'review_note: "x: y"'),
        ("review_note:", "review_note", "x", "review_note: x"),
        ("review_note: ~ # c", "review_note", "x", "review_note: x # c"),
        ("review_note: 'a'", "review_note", "it's", "review_note: 'it''s'"),
        ("review_note: 'a'", "review_note", "a\nb", 'review_note: "a\\nb"'),
        ("review_note: 'a'", "review_note", None, "review_note: null"),
        ("review_note: a\n  b\n  c", "review_note", "d", "review_note: d"),
        ('review_note: "a\n\n  b"  # c', "review_note", "d", 'review_note: "d"  # c'),
        ("review_note: |\n  a\n  b", "review_note", "d", "review_note: d"),
        (
            "review_note: | # why\n  a\n   b\n\n# after\n",
            "review_note",
            "d",
            "review_note: d # why\n\n# after\n",
        ),
        ("review_note: >+2\n    a\n\n", "review_note", "d", "review_note: d\n\n"),
        ("review_note: &n a", "review_note", "d", "review_note: d"),
        ("review_note: [a, b]", "review_note", "d", "review_note: d"),
        ("review_note:\n  a: b\n  c: d", "review_note", "d", "review_note: d"),
        ("updated_at: 2026-09-26", "updated_at", "2026-10-01", 'updated_at: "2026-10-01"'),
        ("updated_at: '2026-09-26'", "updated_at", "2026-10-01", "updated_at: '2026-10-01'"),
        ("schema_version: '1'", "schema_version", 2, "schema_version: 2"),
    ],
)
def test_a_changed_value_leaves_the_rest_of_its_line(
    line: str, field: str, value: Any, expected: str
) -> None:
    known = [f for f in ("importance", "updated_at", "schema_version") if f == field]
    base = text(**dict.fromkeys(known)) if known else TEMPLATE
    raw = base.replace("source:", f"{line}\nsource:", 1).encode()
    after = rewrite(parse(raw), {field: value})
    assert after.decode() == base.replace("source:", f"{expected}\nsource:", 1)
    assert parse(after).memory == parse(raw).memory._replace(**{field: value})


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("[auth, oauth]", ("auth",), "[auth]"),
        ("[auth, oauth]", ("oauth",), "[oauth]"),
        ("[auth, oauth]", (), "[]"),
        ("[auth, oauth]", ("oauth", "auth"), None),
        ("[auth, oauth]", ("new", "auth", "mid", "oauth", "last"), "[new, auth, mid, oauth, last]"),
        ("[ 'Auth', \"oauth\" ] # c", ("auth", "oauth", "no"), "[ 'Auth', \"oauth\", \"no\" ] # c"),
        ("[]", ("a", "no"), '[a, "no"]'),
        ("[ ]", ("a",), "[a]"),
        ("", ("a",), "[a]"),
        ("null # c", ("a",), "[a] # c"),
        ("auth, oauth", ("auth", "sso"), "[auth, sso]"),
        ("auth", (), "[]"),
        ("[\n  auth,  # first\n  # alone\n  oauth, # second\n]", ("auth", "oauth", "x"),
         "[\n  auth,  # first\n  # alone\n  oauth, x, # second\n]"),
        ("[\n  auth,  # first\n  oauth, # second\n]", ("auth",), "[\n  auth,  # first\n  # second\n]"),
        ("[auth, [odd], oauth]", ("oauth",), "[[odd], oauth]"),
        ("\n- auth\n- oauth", ("auth", "oauth", "x"), "\n- auth\n- oauth\n- x"),
        ("\n- auth # a\n# between\n- oauth # b", ("oauth",), "\n# between\n- oauth # b"),
        ("\n- auth\n# between\n- oauth", ("auth", "x", "oauth"), "\n- auth\n- x\n# between\n- oauth"),
        ("\n    - auth\n    - oauth", ("x", "auth"), "\n    - x\n    - auth"),
        ("\n- auth\n- oauth\n# tail", (), " []\n# tail"),
        ("\n-\n- auth\n- [odd]\n- 'oauth'", ("oauth", "z"), "\n-\n- [odd]\n- 'oauth'\n- z"),
        (" # why\n-   auth\n-   oauth", ("auth",), " # why\n-   auth"),
        ("&t [auth, oauth]", ("auth",), "&t [auth]"),
        ("\n- |\n  auth\n\n- oauth", ("oauth",), "\n- oauth"),
        ("\n- auth\n- >\n  oauth", ("auth", "oauth", "x"), "\n- auth\n- >\n  oauth\n- x"),
    ],
)  # fmt: skip
def test_a_list_keeps_its_style_and_its_other_items(
    before: str, value: tuple[str, ...], after: str | None
) -> None:
    def with_tags(tags: str) -> str:
        gap = "" if tags.startswith(("\n", " ")) or not tags else " "
        return text(tags=None).replace("source:", f"tags:{gap}{tags}\nsource:", 1)

    raw = with_tags(before).encode()
    new = rewrite(parse(raw), {"tags": value})
    assert parse(new).memory.tags == value
    if after is not None:
        assert new.decode() == with_tags(after)


def test_the_first_review_entries_go_below_their_field_one_a_line() -> None:
    one = HistoryEntry(T, "ada", "draft", "proposed")
    two = HistoryEntry(T, "bob: x", "proposed", "approved", "fine\nby me")
    raw = text(review_history="[]  # log").encode()
    first = rewrite(parse(raw), {"review_history": (one,)})
    line = f'- {{at: "{T}", by: ada, from: draft, to: proposed, note: null}}\n'
    old, new = changed_lines(raw, first)
    assert (old, new) == (["review_history: []  # log\n"], ["review_history:  # log\n", line])
    second = rewrite(parse(first), {"review_history": (one, two)})
    assert changed_lines(first, second) == (
        [],
        [f'- {{at: "{T}", by: "bob: x", from: proposed, to: approved, note: "fine\\nby me"}}\n'],
    )
    assert parse(second).memory.review_history == (one, two)


def test_an_appended_review_entry_takes_the_form_of_those_before() -> None:
    block = '\n  - at: "2026-09-26T12:00:00Z"\n    by: ada\n    x_tool: kept\n  # c'
    raw = text(review_history=block).replace("review_history: \n", "review_history:\n").encode()
    before = parse(raw).memory.review_history
    after = rewrite(
        parse(raw), {"review_history": (*before, HistoryEntry(T, "bob", "draft", "proposed", "no"))}
    )
    old, new = changed_lines(raw, after)
    assert old == []
    assert new == [
        f'  - at: "{T}"\n',
        "    by: bob\n",
        "    from: draft\n",
        "    to: proposed\n",
        '    note: "no"\n',
    ]
    flow = text(review_history='[{at: "2026-09-26", by: ada, x_tool: kept}]').encode()
    before = parse(flow).memory.review_history
    after = rewrite(parse(flow), {"review_history": (*before, HistoryEntry(T, "bob", None, None))})
    assert changed_lines(flow, after)[1] == [
        f'review_history: [{{at: "2026-09-26", by: ada, x_tool: kept}}, '
        f'{{at: "{T}", by: bob, from: null, to: null, note: null}}]\n'
    ]


def test_a_missing_field_is_inserted_at_its_place_in_the_order() -> None:
    raw = TEMPLATE.encode()
    after = rewrite(
        parse(raw),
        {
            "scope_key": "k",
            "aliases": ("a",),
            "proposed_by": "ada",
            "expires_at": "2027-01-01",
            "links": (Link("r", B),),
        },
    )
    names = re.findall(r"^(\w+):", after.decode(), re.MULTILINE)
    order = [field.name for field in FIELDS]
    assert names == sorted(names, key=order.index)
    assert changed_lines(raw, after) == (
        [],
        [
            "scope_key: k\n",
            "aliases: [a]\n",
            "proposed_by: ada\n",
            'expires_at: "2027-01-01"\n',
            "links:\n",
            f"- {{rel: r, to: {B}}}\n",
        ],
    )


def test_an_optional_field_set_to_nothing_goes_with_its_lines() -> None:
    lines = "canonical_ref: docs/x.md  # c\npaths:\n  - a\n  - b\n"
    lines += 'expires_at: "2027-01-01"\nlinks:\n- {rel: a, to: b}\n'
    raw = TEMPLATE.replace("---\nUse", lines + "---\nUse").encode()
    after = rewrite(parse(raw), {"canonical_ref": None, "paths": (), "expires_at": None, "links": ()})
    assert after == TEMPLATE.encode()


def test_a_default_that_followed_from_a_changed_field_is_written_out() -> None:
    raw = f"---\nid: {A}\nscope: project\n---\nx\n".encode()
    after = rewrite(parse(raw), {"scope": "personal"})
    got = parse(after).memory
    assert (got.scope, got.scope_key, got.visibility) == ("personal", None, "internal")
    assert after.decode() == f"---\nid: {A}\nscope: personal\nscope_key: null\nvisibility: internal\n---\nx\n"
    raw = f'---\nid: {A}\ncreated_at: "{T}"\n---\nx\n'.encode()
    after = rewrite(parse(raw), {"created_at": "2020-01-01T00:00:00Z"})
    assert parse(after).memory.updated_at == T


def test_front_matter_written_as_one_mapping_in_braces_changes_too() -> None:
    fields = (
        f'{{"id": "{A}", "tags": ["a", "b"],\n "importance": "low", "expires_at": "2027-01-01", "x": [1]}}'
    )
    raw = f"---\n{fields}\n---\nbody\n".encode()
    document = parse(raw)
    after = rewrite(
        document,
        {
            "importance": "high",
            "tags": ("a", "c"),
            "review_note": "x: y",
            "expires_at": None,
            "review_history": (HistoryEntry(T, None, None, None),),
        },
    )
    got = parse(after).memory
    assert (got.importance, got.tags, got.review_note, got.expires_at) == ("high", ("a", "c"), "x: y", None)
    assert got.extra == {"x": ["1"]}
    assert len(got.review_history) == 1
    assert after.decode().count("\n") == raw.decode().count("\n")


def test_indented_front_matter_and_keys_in_any_order_change_in_place() -> None:
    raw = f"---\n  # top\n  status: active\n  id: {A}\n  tags:\n  - a\n---\nbody\n".encode()
    after = rewrite(parse(raw), {"status": "archived", "role": "instruction", "tags": ("a", "b")})
    assert after.decode() == (
        f"---\n  # top\n  status: archived\n  id: {A}\n  role: instruction\n"
        f"  tags:\n  - a\n  - b\n---\nbody\n"
    )


def test_a_value_that_others_point_to_is_not_changed_behind_their_back() -> None:
    raw = with_lines("review_note: &n shared\nproposed_by: *n\n")
    document = parse(raw)
    assert document.memory.proposed_by == "shared"
    after = rewrite(document, {"proposed_by": "ada"})
    assert changed_lines(raw, after) == (["proposed_by: *n\n"], ["proposed_by: ada\n"])
    with pytest.raises(Refused):
        rewrite(document, {"review_note": "mine"})
    assert (
        parse(rewrite(document, {"review_note": "mine", "proposed_by": "ada"})).memory.review_note == "mine"
    )


def test_a_new_body_leaves_the_front_matter_alone() -> None:
    raw = RICH.encode()
    after = rewrite(parse(raw), {}, body="---\nnew\n")
    head = raw[: raw.rindex(b"---\n") + 4]
    assert after == head + b"---\nnew\n"
    assert parse(after).memory.body == "---\nnew\n"


def test_a_new_body_takes_the_line_ends_of_its_file() -> None:
    raw = TEMPLATE.replace("\n", "\r\n").encode()
    after = rewrite(parse(raw), {"importance": "high"}, body="one\ntwo\n")
    assert after.endswith(b"---\r\none\r\ntwo\r\n")
    assert b"\n" not in after.replace(b"\r\n", b"")
    assert rewrite(parse(raw), {}, body="a\r\nb").endswith(b"---\r\na\r\nb")
    assert rewrite(parse(TEMPLATE.encode()), {}, body="a\r\nb").endswith(b"---\na\r\nb")


def test_the_same_body_in_other_line_ends_is_no_change_of_a_crlf_file() -> None:
    raw = TEMPLATE.replace("\n", "\r\n").encode()
    assert rewrite(parse(raw), {}, body="Use OAuth for the admin panel.\n") is raw


def test_a_change_that_makes_the_file_too_large_is_refused() -> None:
    document = parse(TEMPLATE.encode())
    with pytest.raises(Refused, match="1 MiB"):
        rewrite(document, {"review_note": "x" * (1 << 20)})


def test_a_closing_fence_at_the_very_end_stays_there() -> None:
    raw = f"---\nid: {A}\n---".encode()
    assert rewrite(parse(raw), {"importance": "low"}) == f"---\nid: {A}\nimportance: low\n---".encode()


# Substance


def test_substance_ignores_review_and_spelling_only() -> None:
    base = parse(TEMPLATE.encode()).memory
    for same in (
        TEMPLATE.replace("\n", "\r\n"),
        text(importance="'normal' # c"),
        text(review_state="published", updated_at='"2027-01-01"').replace(
            "source:", "review_note: x\napproved_by: y\nsource:"
        ),
        text(review_history='[{at: "2026-09-26", by: me}]'),
    ):
        assert substance(parse(same.encode()).memory) == substance(base)
    for other in (
        text(importance="high"),
        text(tags="[auth]"),
        text(superseded_by=B),
        TEMPLATE + "more",
        TEMPLATE.replace("source:", "x_team: a\nsource:"),
        TEMPLATE.replace("source:", "links: [{rel: a, to: b}]\nsource:"),
    ):
        assert substance(parse(other.encode()).memory) != substance(base)
    assert substance(base._replace(body="\ud800")) != substance(base)
    assert re.fullmatch("[0-9a-f]{64}", substance(base))


def test_a_document_is_a_value() -> None:
    raw = TEMPLATE.encode()
    assert parse(raw) == parse(raw)
    assert isinstance(parse(raw), Document)


def test_of_a_list_in_another_order_as_many_lines_as_can_stay_do() -> None:
    items = [f"- {name}  # about {name}\n" for name in "abcde"]
    raw = with_lines("paths:\n" + "".join(items))
    after = rewrite(parse(raw), {"paths": ("b", "c", "x", "d", "a")})
    left, came = changed_lines(raw, after)
    assert (left, came) == ([items[0], items[4]], ["- x\n", "- a\n"])

"""What `git diff` shows of a memory: every value on a line of its own, and nothing that hides from review."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openmemex_hooks.textconv import safe, shown

from openmemex.memory import frontmatter
from openmemex.memory.model import HistoryEntry, Link, Memory

ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
OTHER = "01BX5ZZKBKACTAV9WEVGEMMVRZ"


def changed(memory: Memory, **values: object) -> Memory:
    return Memory(**{name: getattr(memory, name) for name in Memory.__annotations__} | values)


PLAIN = Memory(id=ID, body="Deploys need the VPN.\n", created_at="2026-01-02T03:04:05Z")
FULL = changed(
    PLAIN,
    scope="project",
    scope_key="project__app__0123456789ab",
    visibility="internal",
    project_name="app",
    type="gotcha",
    role="instruction",
    importance="high",
    status="superseded",
    tags=("deploy", "vpn"),
    aliases=("tunnel", "remote access"),
    source="tool",
    updated_at="2026-02-02T03:04:05Z",
    supersedes=OTHER,
    superseded_by=OTHER,
    review_state="approved",
    proposed_by="Ada",
    approved_by="Grace",
    derived_from="a chat",
    review_note="good",
    review_history=(
        HistoryEntry("2026-02-01T00:00:00Z", "Ada", "draft", "proposed"),
        HistoryEntry("2026-02-02T00:00:00Z", "Grace", "proposed", "approved", "tried it"),
    ),
    canonical_ref="docs/vpn.md",
    paths=("ops/**", "deploy.sh"),
    valid_from="2026-01-01T00:00:00Z",
    valid_until="2027-01-01T00:00:00Z",
    expires_at="2027-02-01T00:00:00Z",
    links=(Link("see", OTHER), Link("source", "https://example.org/vpn")),
)


def text_of(memory: Memory) -> str:
    return shown(frontmatter.render(memory)).decode()


def test_a_plain_memory_is_its_id_its_times_and_its_text():
    assert text_of(PLAIN) == (
        f"id: {ID}\nscope: personal\nscope key: personal\nmade: 2026-01-02T03:04:05Z\n"
        "changed: 2026-01-02T03:04:05Z\n\nDeploys need the VPN.\n"
    )


def test_each_value_stands_on_its_own_line_in_plain_words():
    assert (
        text_of(FULL)
        == f"""\
id: {ID}
scope: project
scope key: project__app__0123456789ab
visibility: internal
project: app
type: gotcha
role: instruction
importance: high
status: superseded
tag: deploy
tag: vpn
alias: tunnel
alias: remote access
source: tool
made: 2026-01-02T03:04:05Z
changed: 2026-02-02T03:04:05Z
replaces: {OTHER}
replaced by: {OTHER}
review: approved
proposed by: Ada
approved by: Grace
derived from: a chat
review note: good
review step: 2026-02-01T00:00:00Z by Ada: draft to proposed
review step: 2026-02-02T00:00:00Z by Grace: proposed to approved (tried it)
see: docs/vpn.md
about: ops/**
about: deploy.sh
valid from: 2026-01-01T00:00:00Z
valid until: 2027-01-01T00:00:00Z
expires: 2027-02-01T00:00:00Z
link: see {OTHER}
link: source https://example.org/vpn

Deploys need the VPN.
"""
    )


@pytest.mark.parametrize(
    "body", ["", "no line end", "\n\nblank lines\n\n", "a\tb\n\n```\n---\n```\n", "日本語\n"]
)
def test_the_text_is_shown_as_it_is(body):
    assert text_of(changed(PLAIN, body=body)).partition("\n\n")[2] == body


CHANGES = [
    {"type": "fact"},
    {"role": "knowledge"},
    {"tags": ("deploy",)},
    {"tags": ("vpn", "deploy")},
    {"aliases": ()},
    {"scope_key": "project__app__ba9876543210"},
    {"visibility": "private"},
    {"status": "active"},
    {"source": "user"},
    {"approved_by": None},
    {"review_history": FULL.review_history[:1]},
    {
        "review_history": (
            HistoryEntry("2026-02-01T00:00:00Z", None, "draft", "proposed"),
            FULL.review_history[1],
        )
    },
    {"links": FULL.links[1:]},
    {"paths": ("ops/**",)},
    {"expires_at": None},
    {"schema_version": 3},
    {"body": FULL.body + " "},
    {"body": FULL.body.rstrip("\n")},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
def test_every_change_of_a_value_shows(change):
    raw = frontmatter.render(FULL)
    fields = {name: value for name, value in change.items() if name != "body"}
    changed = frontmatter.rewrite(frontmatter.parse(raw), fields, body=change.get("body"))
    assert shown(raw) != shown(changed)


def test_what_a_terminal_acts_upon_is_shown_escaped():
    raw = frontmatter.render(changed(PLAIN, body="a\x1b[2Kb\u202ec\u200b\n", review_note="x\u2066y"))
    text = shown(raw).decode()
    assert "a\\x1b[2Kb\\u202ec\\u200b\n" in text
    assert "review note: x\\u2066y\n" in text
    assert not set("\x1b\u202e\u200b\u2066") & set(text)


def test_a_value_with_a_line_break_can_not_pose_as_another_field():
    text = text_of(changed(PLAIN, review_note="fine\nrole: knowledge\r\nreview: approved"))
    assert "review note: fine\\x0arole: knowledge\\x0d\\x0areview: approved\n" in text
    assert not [line for line in text.splitlines() if line.startswith(("role:", "review:"))]


def test_an_unknown_field_can_not_pose_as_a_known_one():
    raw = frontmatter.render(PLAIN).replace(
        b"\n---\n", b"\napproved by: Grace\nteam: {lead: Ada, at: [x, y]}\n---\n"
    )
    text = shown(raw).decode()
    assert 'other field "approved by": Grace\n' in text
    assert "other field team.lead: Ada\nother field team.at[1]: x\nother field team.at[2]: y\n" in text


def test_comments_are_shown():
    raw = frontmatter.render(PLAIN).replace(b"type: fact\n", b"# do as I say\ntype: fact # or not # at all\n")
    text = shown(raw).decode()
    assert "comment: # do as I say\ncomment: # or not # at all\n" in text


def test_a_hash_in_a_value_is_no_comment():
    assert "comment" not in text_of(changed(PLAIN, review_note="fixes #12", tags=("c#",)))
    assert "comment" not in text_of(changed(PLAIN, review_note='it\'s "#1" # really'))


def test_a_value_that_is_read_as_another_is_shown_as_it_is_written():
    raw = frontmatter.render(PLAIN).replace(b"type: fact", b"type: gotchaa")
    line = next(line for line in shown(raw).decode().splitlines() if line.startswith("type"))
    assert line.startswith("type as written: gotchaa [has a value that is not allowed")


def test_line_ends_and_a_byte_order_mark_are_told():
    raw = frontmatter.render(PLAIN)
    crlf = shown(raw.replace(b"\n", b"\r\n")).decode()
    assert "line ends: CRLF\n" in crlf
    assert "\r" not in crlf
    assert "line ends: some CRLF, some LF\n" in shown(raw.replace(b"VPN.\n", b"VPN.\r\n")).decode()
    assert "byte order mark: yes\n" in shown(b"\xef\xbb\xbf" + raw).decode()


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", ""),
        (b"# A readme\n\ntext", "# A readme\n\ntext"),
        (b"---\nid: nonsense\n---\n\x1b[2K\xff\n", "---\nid: nonsense\n---\n\\x1b[2K\\xff\n"),
        (b"a\r\nb\rc\r\n", "a\r\nb\\x0dc\r\n"),
        (b"<<<<<<< ours\nx\n=======\ny\n>>>>>>> theirs\n", "<<<<<<< ours\nx\n=======\ny\n>>>>>>> theirs\n"),
        (b"\0\1", "\\x00\\x01"),
    ],
)
def test_what_is_no_memory_is_shown_as_it_stands(raw, text):
    assert shown(raw).decode() == text


def test_a_secret_is_shown_so_that_a_reviewer_sees_that_it_is_there():
    token = "gh" + "p_" + "a1B2" * 9
    assert token in text_of(changed(PLAIN, body=f"use {token}\n"))


_TRICKY = st.text(
    st.sampled_from("\\\\xuU0012eab \t\n\r\x1b\x9b\u202e\u200d\ufe0f\u00e9\U000e0041"), max_size=12
)


@given(_TRICKY, _TRICKY)
def test_two_texts_look_the_same_only_when_they_are(one, other):
    assert (safe(one) == safe(other)) == (one == other)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_any_text_comes_out_on_one_line_that_shows_itself(text):
    assert "\n" not in safe(text)
    assert "\r" not in safe(text)
    assert safe(text).replace("\t", "").isprintable() or not text.isascii()


_WORD = st.text(st.sampled_from("ab :()\"',.>[]{}\\x1\x1b\n\u202e"), max_size=8)
_MAYBE = st.none() | _WORD
_STEP = st.builds(HistoryEntry, st.just("2026-02-01T00:00:00Z") | _WORD, _MAYBE, _MAYBE, _MAYBE, _MAYBE)
_FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "project_name": _MAYBE,
        "approved_by": _MAYBE,
        "derived_from": _MAYBE,
        "review_note": _MAYBE,
        "canonical_ref": _MAYBE,
        "tags": st.lists(st.sampled_from(["a", "b", "a: b", 'alias: "x"']), unique=True).map(tuple),
        "aliases": st.lists(_WORD.filter(bool), max_size=2).map(tuple),
        "paths": st.lists(_WORD.filter(bool), max_size=2).map(tuple),
        "links": st.lists(st.builds(Link, _WORD, _WORD), max_size=2).map(tuple),
        "review_history": st.lists(_STEP, max_size=2).map(tuple),
    },
)


@given(_FIELDS, _FIELDS, _TRICKY)
def test_two_memories_look_the_same_only_when_they_are(one, other, body):
    left, right = (
        frontmatter.parse(frontmatter.render(changed(PLAIN, body=body, **values))).memory
        for values in (one, other)
    )
    assert (shown(frontmatter.render(left)) == shown(frontmatter.render(right))) == (left == right)


def test_a_file_of_nothing_but_backslashes_takes_no_longer_than_another():
    assert safe("\\" * (1 << 20)) == "\\" * (1 << 20)


@given(st.binary(max_size=200))
def test_any_bytes_can_be_shown(raw):
    assert b"\x1b" not in shown(raw)


def run(*args: str, **options) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "openmemex_hooks.textconv", *args], capture_output=True, timeout=120, **options
    )


def test_the_command_writes_utf8_in_any_locale_and_for_any_file_name(tmp_path, run_cli):
    memory = tmp_path / "näme \udcff.md"
    memory.write_bytes(frontmatter.render(changed(PLAIN, body="日本語\n")))
    done = run(str(memory), env={"LC_ALL": "POSIX", "PATH": "", "PYTHONUTF8": "0"})
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith("\n\n日本語\n".encode())
    again = run_cli("textconv", str(memory))
    assert (again.returncode, again.stdout) == (0, done.stdout.decode())


def test_the_command_tells_what_it_can_not_read_and_how_it_is_used(tmp_path):
    missing = run(str(tmp_path / "no\x1b.md"))
    assert (missing.returncode, missing.stdout) == (1, b"")
    assert missing.stderr.startswith(b"error: ") and b"\x1b" not in missing.stderr
    assert run().returncode == 2
    assert run("--help").stdout.startswith(b"Usage: open-memex textconv FILE\n")

"""python-frontmatter over our codec, and the front matter of notes that are no memories."""

from __future__ import annotations

import frontmatter
import pytest

from openmemex.errors import Refused
from openmemex.memory.frontmatter import Unreadable, parse, render
from openmemex.memory.frontmatter_handler import MemoryHandler, Note, read_note, read_post
from openmemex.memory.model import HistoryEntry, Link, Memory

A = "01K6AB3XZQ7WVD9J1M2N4P5Q6A"
T = "2026-09-26T12:00:00Z"
RAW = f"""\
---
id: {A}
type: decision
# keep me
tags: [no, 1.10]
x_team: 0123
created_at: {T}
review_history: [{{at: {T}, by: ada, from: draft, to: proposed, note: null}}]
links:
- {{rel: see, to: x}}
---


    indented

end


""".encode()


@pytest.mark.parametrize("raw", [RAW, b"\xef\xbb\xbf" + RAW.replace(b"\n", b"\r\n")])
def test_loading_and_dumping_a_memory_loses_no_byte(raw: bytes) -> None:
    post = read_post(raw)
    assert post.content == parse(raw).memory.body
    assert post["tags"] == ["no", "1.10"]
    assert post["created_at"] == T
    assert post["x_team"] == "0123"
    assert post["review_history"] == [{"at": T, "by": "ada", "from": "draft", "to": "proposed", "note": None}]
    assert post["links"] == [{"rel": "see", "to": "x"}]
    assert frontmatter.dumps(post).encode() == raw
    loaded = frontmatter.loads(raw.decode(), handler=MemoryHandler(raw))
    assert loaded.content == post.content
    assert frontmatter.dumps(loaded).encode() == raw


def test_a_change_in_the_post_changes_its_lines_only() -> None:
    post = read_post(RAW)
    post["type"] = "gotcha"
    post["tags"] = ["no", "1.10", "yes"]
    post["project_name"] = "a: b"
    del post["links"]
    expected = RAW.decode().replace("type: decision", 'project_name: "a: b"\ntype: gotcha')
    expected = expected.replace("[no, 1.10]", '[no, 1.10, "yes"]').replace(
        "links:\n- {rel: see, to: x}\n", ""
    )
    got = frontmatter.dumps(post)
    assert sorted(got.splitlines()) == sorted(expected.splitlines())
    assert parse(got.encode()).memory.project_name == "a: b"
    post.content = "new\n"
    assert frontmatter.dumps(post).endswith("---\nnew\n")


def test_an_unknown_field_is_not_changed_by_this_door() -> None:
    post = read_post(RAW)
    post["x_team"] = "other"
    with pytest.raises(Refused, match="x_team"):
        frontmatter.dumps(post)


def test_without_the_bytes_the_handler_reads_what_the_library_leaves() -> None:
    post = frontmatter.loads(RAW.decode(), handler=MemoryHandler())
    assert post.content == "\n\n    indented\n\nend"
    assert post["tags"] == ["no", "1.10"]
    assert frontmatter.dumps(post) == RAW.decode().rstrip("\n")


def test_a_new_post_is_written_as_a_new_memory() -> None:
    memory = Memory(
        id=A,
        body="text\n",
        created_at=T,
        updated_at=T,
        tags=("no",),
        links=(Link("see", "x"),),
        review_history=(HistoryEntry(T, "ada", None, "draft"),),
    )
    metadata = dict(read_post(render(memory)).metadata)
    post = frontmatter.Post("text\n", handler=MemoryHandler(), **metadata)
    assert frontmatter.dumps(post).encode() == render(memory)
    with pytest.raises(Refused, match="needs an id"):
        frontmatter.dumps(frontmatter.Post("text", handler=MemoryHandler()))


def test_an_unreadable_memory_says_so_here_too() -> None:
    with pytest.raises(Unreadable):
        read_post(b"---\nid: x\n---\n")
    assert not MemoryHandler().detect("# a note\n")
    assert MemoryHandler().detect("---\ntitle: a\n---\n")


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("", Note({}, "")),
        ("# A note\n\nbody\n", Note({}, "# A note\n\nbody\n")),
        (
            "---\ntitle: Deploys\ntags: [no, 1.10, 'a b']\ndate: 2026-09-26\ndraft: yes\nempty:\n"
            "nested: {a: b}\n---\n\nbody\n",
            Note(
                {"title": "Deploys", "tags": ["no", "1.10", "a b"], "date": "2026-09-26", "draft": "yes"},
                "\nbody\n",
            ),
        ),
        ("\ufeff---\r\ntags: a, b\r\n---\r\nbody\r\n", Note({"tags": "a, b"}, "body\r\n")),
        ("---\n\ntwo rules: a: b\n\n---\n\nmore\n", Note({}, "---\n\ntwo rules: a: b\n\n---\n\nmore\n")),
        ("---\nnever closed\n", Note({}, "---\nnever closed\n")),
        ("---\njust prose\n---\nmore\n", Note({}, "---\njust prose\n---\nmore\n")),
        ("---\nx: !!python/none\n---\nmore\n", Note({}, "---\nx: !!python/none\n---\nmore\n")),
        ("---\n---\nbody", Note({}, "body")),
        ("---\ntags:\n- a\n- [b]\n- ''\n-\n---\nbody", Note({"tags": ["a", ""]}, "body")),
        ("a \ud800 b", Note({}, "a \ud800 b")),
    ],
)
def test_any_note_reads_and_loses_no_text(text: str, note: Note) -> None:
    assert read_note(text) == note

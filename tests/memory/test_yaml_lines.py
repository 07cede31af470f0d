"""The quick reading of our own front matter says exactly what the YAML parser says, or leaves it."""

from __future__ import annotations

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from openmemex.memory import frontmatter
from openmemex.memory.fences import Unreadable, split
from openmemex.memory.model import FIELDS, HistoryEntry, Link, Memory
from openmemex.memory.yaml_lines import quick_scan
from openmemex.memory.yaml_parser import scan
from openmemex.memory.yaml_tree import Collection, resolved, text_of

ID = "01K6AB3XZQ7WVD9J1M2N4P5Q6A"
ODD = [
    *(
        "null",
        "~",
        "no",
        "1.10",
        "0x1F",
        "1:30",
        "2026-09-26",
        "-1",
        "a.",
        "a:",
        "a/b.c-d_e",
        "a b",
        "a  ",
        "…",
    ),
    *("-", "- a", "a: b", "a #b", "#a", "&a x", "*a", "!t x", "|", ">", "@", "`", "a]", ""),
    *('""', "''", "'a'", '"a"', '"a\\n"', '"a" b', '"…"', '"\t"', "{}", "{a: b}"),
    *("[]", "[a]", "[a, b]", "[ a]", "[a,b]", "[a, ]", "[a: b]", "[-, a]", "[[a]]"),
    *("a - b", "a -", "a  b", "é ü", "小沐 a", "a/ b", "[a b, c]", "[a - b]", "a, b"),
    *('["a, b", c]', '["]", "}"]'),
]
VALUES = st.sampled_from(ODD) | st.text(st.sampled_from("ab1 \"\\'[]{},:#-.~&*!|>%@`é\t"), max_size=8)
NAMES = st.sampled_from([*(field.name for field in FIELDS), "x_team", "Key", "a b", '"q"', "1a", "?", "-"])
ENTRY = st.builds(
    "- {{at: {}, by: {}, from: {}, to: {}, note: {}}}".format, VALUES, VALUES, VALUES, VALUES, VALUES
)
LINK = st.builds("- {{rel: {}, to: {}}}".format, VALUES, VALUES)
LINES = (
    st.builds("{}: {}".format, NAMES, VALUES)
    | st.builds("review_history:\n{}\n{}".format, ENTRY, ENTRY)
    | st.builds("links:\n{}\n{}".format, LINK, LINK | ENTRY)
    | st.builds("{}:".format, NAMES)
    | LINK
    | ENTRY
    | st.sampled_from(["# comment", "", "  more", "...", "---x", "key : value", "key:value"])
)


def as_values(node: object) -> object:
    node = resolved(node)
    if not isinstance(node, Collection):
        return (text_of(node), node.style or "", node.tag, node.start, node.end)
    place = (node.start, node.end) if node.flow else None
    if node.is_map:
        return ("map", place, [(as_values(key), as_values(value)) for key, value in node.pairs])
    return ("list", place, [as_values(item) for item in node.items])


@given(st.lists(LINES, min_size=1, max_size=6))
@example(["review_history:", "- {at: a, by: b, from: c, to: d, note: null}", "x: 1"])
@example(["review_history:", "- {at: a, by: b, from: c, to: d, note: null}", "- other"])
@example(["tags:", "- a"])
@example(["a: b", "  c"])
def test_what_is_read_quickly_is_what_the_parser_reads(lines):
    text = "\n".join(lines) + "\n"
    quick = quick_scan(text, 0, len(text))
    if quick is not None:
        assert as_values(quick) == as_values(scan(text, 0, len(text)))


@given(st.lists(LINES, max_size=6), st.sampled_from(["\n", "\r\n"]))
def test_a_file_reads_the_same_either_way(lines, eol):
    raw = eol.join(["---", f"id: {ID}", *lines, "---", "body", ""]).encode("utf-8", "replace")

    def read(loader: object) -> object:
        try:
            document = frontmatter.parse(raw, stem=ID, loader=loader)
        except Unreadable as error:
            return (error.reason, error.line)
        return (document.memory, document.memory.extra, document.problems)

    assert read(None) == read(yaml.CSafeLoader)


def test_the_files_that_we_write_need_no_parser():
    steps = (HistoryEntry("2026-01-01T00:00:00Z", "Ada Example", "draft", "proposed", "why, though?"),)
    memory = Memory(
        id=ID,
        body="text\n",
        scope="project",
        tags=("a", "with blank", "no"),
        review_history=steps,
        paths=("src/**",),
        links=(Link("see", ID), Link("see also", "docs/a b.md")),
    )
    parts = split(frontmatter.render(memory))
    assert quick_scan(parts.text, parts.start, parts.end) is not None

"""Three laws of the codec, over generated texts, files and changes.

1. What is written reads back the same, for any text in any field.
2. A file that reads is byte-identical after a rewrite without a change.
3. A change of one field touches the lines of that field and of `updated_at` only.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import yaml
from hypothesis import assume, example, given
from hypothesis import strategies as st

from openmemex.errors import OpenMemexError, Refused
from openmemex.memory.frontmatter import Unreadable, conflict_line, parse, render, rewrite
from openmemex.memory.ids import ALPHABET
from openmemex.memory.model import FIELD_BY_NAME, FIELDS, HistoryEntry, Link, Memory, normal_tags
from openmemex.memory.yaml_writer import scalar

A = "01K6AB3XZQ7WVD9J1M2N4P5Q6A"
T = "2026-09-26T12:00:00Z"
LATER = "2026-10-01T09:30:00Z"

# Characters that some YAML reader treats in its own way come as often as all others together.
awkward = st.sampled_from(
    list("\r\n\t\0\x07\x1b\x7f\x85\xa0\u2028\u2029\ufeff\ufffe '\"\\#:-?!&*%@`|>[]{},=~<.\U0001f680é0eEx_y")
)
characters = st.one_of(awkward, st.characters(exclude_categories=["Cs"]))
texts = st.one_of(
    st.text(characters, max_size=40),
    st.sampled_from(
        ["no", "null", "~", "", "0123", "12e03", "1:30", "2026-09-26", ".5", "---", "...", "=", "<<", "y"]
    ),
    st.from_regex(r"[-+]?[0-9._eExXoOabf:]{1,12}", fullmatch=True),
)
ids = st.text(ALPHABET, min_size=25, max_size=25).map(lambda tail: "0" + tail)
times = st.datetimes().map(lambda t: t.isoformat() + "Z")
entries = st.builds(HistoryEntry, texts, *(st.none() | texts for _ in range(4)))
links = st.builds(Link, texts, texts)
bodies = st.text(characters, max_size=200).filter(lambda b: not conflict_line(b))


def value_of(name: str) -> st.SearchStrategy[Any]:
    """Any allowed value of a field."""
    field = FIELD_BY_NAME[name]
    if field.kind == "choice":
        return st.sampled_from(field.choices)
    if field.kind == "id":
        return ids if name == "id" else st.none() | ids
    if field.kind == "int":
        return st.sampled_from([1, 2])
    if field.kind == "time":
        return times if name in ("created_at", "updated_at") else st.none() | times
    if field.kind == "history":
        return st.lists(entries, max_size=3).map(tuple)
    if field.kind == "links":
        return st.lists(links, max_size=3).map(tuple)
    if name == "tags":
        return st.lists(texts, max_size=4).map(normal_tags)
    if field.kind == "list":
        return st.lists(texts, max_size=4).map(tuple)
    return st.none() | texts


memories = st.fixed_dictionaries(
    {field.name: value_of(field.name) for field in FIELDS} | {"body": bodies}
).map(lambda values: Memory(**values))


@given(memories)
def test_what_is_written_reads_back_the_same(memory: Memory) -> None:
    raw = render(memory)
    document = parse(raw, stem=memory.id)
    assert document.memory == memory
    assert document.problems == ()
    assert document.memory.extra == {}
    assert render(document.memory) == raw
    pure = parse(raw, loader=yaml.SafeLoader)
    assert (pure.memory, pure.problems) == (document.memory, ())


@given(texts, st.sampled_from([None, "'", '"']))
def test_a_scalar_of_any_style_is_the_same_text_in_block_and_flow(text: str, style: str | None) -> None:
    written = scalar(text, style)
    assert "\n" not in written
    for template, get in (
        ("k: {}\n", lambda d: d["k"]),
        ("[a, {}, b]\n", lambda d: d[1]),
        ("- {}  # c\n", lambda d: d[0]),
    ):
        assert get(yaml.safe_load(template.replace("{}", written))) == text
        assert get(yaml.load(template.replace("{}", written), Loader=yaml.CSafeLoader)) == text


@given(
    st.text(st.characters(categories=["Cs"]) | characters, min_size=1, max_size=10),
    st.sampled_from(["body", "project_name"]),
)
def test_half_characters_are_refused_and_all_else_is_written(text: str, name: str) -> None:
    memory = Memory(**{"id": A, "body": "", "created_at": T, "updated_at": T} | {name: text})
    whole = not any("\ud800" <= c <= "\udfff" for c in text)
    assume(not conflict_line(text))
    try:
        raw = render(memory)
    except Refused:
        assert not whole
    else:
        assert whole
        assert parse(raw).memory == memory


# Files as people and other programs write them: every style that YAML has.


class Chunk(NamedTuple):
    """Lines of one field (name), or of a comment or blank line (name "")."""

    name: str
    text: str


readable = st.text(
    st.one_of(st.sampled_from(list("abc xyz-_./éß部署🚀")), st.characters(categories=["L", "Nd"])),
    min_size=1,
    max_size=20,
).filter(lambda t: "\x85" not in t)
trailing = st.sampled_from(["", "", "  # why", " #"])
blank_or_comment = st.sampled_from(["# keep me\n", "#\n", "\n", "  # 部署: [x]\n", "   \n"])


@st.composite
def scalars(draw: st.DrawFn, text: str, *, block: bool = True) -> str:
    """`text`, or at least some text, in one of YAML's styles, with what may follow it on its line."""
    style = draw(
        st.sampled_from(
            ["double", "single", "plain", "multi", "literal", "folded"] if block else ["double", "single"]
        )
    )
    single = (
        "'"
        + re.sub(
            r"[\r\n\x85\u2028\u2029\ufeff]|[^\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]",
            "",
            text,
        ).replace("'", "''")
        + "'"
    )
    if style == "plain":
        plain = draw(readable).strip()
        return ("w" + plain if plain else "w") + draw(trailing) + "\n"
    if style == "multi":
        return draw(st.sampled_from(["one\n  two\n", "'one\n  two\n\n   three'\n", '"one \\\n  two"  # c\n']))
    if style in ("literal", "folded"):
        mark = ("|" if style == "literal" else ">") + draw(st.sampled_from(["", "-", "+"])) + draw(trailing)
        return (
            mark
            + "\n"
            + draw(
                st.sampled_from(
                    [
                        "  one\n",
                        "  one\n   two\n",
                        "  one\n\n  ---\n\n",
                        "    a: b # c\n    - d\n",
                        "  x\n\n\n",
                    ]
                )
            )
        )
    if style == "double":
        return scalar(text, '"') + draw(trailing) + "\n"
    return single + draw(trailing) + "\n"


@st.composite
def item_lines(draw: st.DrawFn, field: str) -> str:
    kind = FIELD_BY_NAME[field].kind
    if kind == "list":
        return draw(scalars(draw(texts), block=False))
    pairs = [
        (key, draw(texts))
        for key in (("rel", "to") if kind == "links" else ("at", "by", "from", "to", "note"))
    ]
    if draw(st.booleans()):
        pairs.append(("x_more", draw(texts)))
    inner = ", ".join(f"{key}: {scalar(value, chr(34))}" for key, value in pairs)
    if draw(st.booleans()):
        return "{" + inner + "}" + draw(trailing) + "\n"
    return (
        "\n".join(
            ("" if n == 0 else "@@") + f"{key}: {scalar(value, chr(34))}"
            for n, (key, value) in enumerate(pairs)
        )
        + "\n"
    )


@st.composite
def lists(draw: st.DrawFn, field: str) -> str:
    items = draw(st.lists(item_lines(field), max_size=4))
    style = draw(st.sampled_from(["block", "flow", "lines", "empty"]))
    if style == "empty" or not items:
        return draw(st.sampled_from([" []\n", " [ ]  # none\n", "\n", " null\n", " ~ # c\n"]))
    one_line = [item.rstrip("\n") for item in items]
    if FIELD_BY_NAME[field].kind == "list":
        bare = [re.sub(r" +# ?(why)?$", "", item) for item in one_line]
    else:
        bare = [
            "{rel: a, to: 'b'}" if field == "links" else "{at: '', by: ~, from: 1, to: no}" for _ in items
        ]
    if style == "flow":
        return " [" + draw(st.sampled_from([", ", ","])).join(bare) + "]" + draw(trailing) + "\n"
    if style == "lines":
        comma = draw(st.sampled_from(["", ","]))
        return " [\n" + ",\n".join("  " + item for item in bare) + comma + "\n  ]" + draw(trailing) + "\n"
    margin = draw(st.sampled_from(["", "  ", "    "]))
    out = draw(trailing) + "\n"
    for item in items:
        out += f"{margin}- " + item.replace("@@", margin + "  ")
        out += draw(st.sampled_from(["", "", "", "# within\n"]))
    return out


@st.composite
def chunk_of(draw: st.DrawFn, name: str) -> Chunk:
    field = FIELD_BY_NAME.get(name)
    if field is None:
        value = draw(
            st.sampled_from(
                [
                    ' "платформа"\n',
                    " no\n",
                    " [a, {b: c}]\n",
                    "\n  y:\n  - 1\n  -\n",
                    " |+\n  x\n\n",
                    " null # c\n",
                ]
            )
        )
        return Chunk(name, f"{name}:{value}")
    if field.kind in ("list", "history", "links"):
        return Chunk(name, f"{name}:{draw(lists(name))}")
    if field.kind == "choice":
        value = (
            draw(st.sampled_from([*field.choices, "", "bogus", "'normal'", "null"])) + draw(trailing) + "\n"
        )
    elif field.kind == "int":
        value = draw(st.sampled_from(["1\n", "2 # c\n", "'2'\n", "x\n"]))
    elif field.kind == "time":
        value = draw(
            st.sampled_from(
                [f'"{T}"\n', f"{T} # c\n", "2026-09-26\n", "'2026-09-26 01:02:03+09:00'\n", "soon\n", "\n"]
            )
        )
    elif field.kind == "id":
        value = draw(ids | st.sampled_from(["null", "", "~", "x"])) + draw(trailing) + "\n"
    else:
        value = draw(
            scalars(draw(texts)) | st.sampled_from(["\n", "null\n", "~ # c\n", "[a, b]\n", "{a: b}\n"])
        )
    gap = draw(st.sampled_from([" ", " ", "  "]))
    return Chunk(name, f"{name}:{gap}{value}" if value != "\n" else f"{name}:\n")


class File(NamedTuple):
    chunks: tuple[Chunk, ...]
    raw: bytes
    eol: str
    bom: bool


@st.composite
def files(draw: st.DrawFn) -> File:
    names = draw(
        st.lists(
            st.sampled_from([f.name for f in FIELDS if f.name != "id"] + ["x_team", "zeta"]),
            unique=True,
            max_size=10,
        )
    )
    chunks = [draw(chunk_of(name)) for name in names]
    chunks.insert(draw(st.integers(0, len(chunks))), Chunk("id", f"id: {A}\n"))
    spaced: list[Chunk] = []
    for chunk in chunks:
        if draw(st.integers(0, 4)) == 0 and not (
            spaced and re.search(r"[|>][-+]?( +#.*)?\n", spaced[-1].text)
        ):
            spaced.append(Chunk("", draw(blank_or_comment)))
        spaced.append(chunk)
    eol = draw(st.sampled_from(["\n", "\r\n"]))
    bom = draw(st.booleans())
    front = "".join(chunk.text for chunk in spaced)
    opening, closing = draw(st.sampled_from([("---", "---"), ("---  ", "--- "), ("---", "...")]))
    head = f"{opening}\n{front}{closing}\n".replace("\n", eol)
    body = draw(bodies)
    raw = (("\ufeff" if bom else "") + head + body).encode()
    return File(tuple(spaced), raw, eol, bom)


@given(files())
def test_a_rewrite_without_a_change_is_byte_identical(file: File) -> None:
    document = parse(file.raw, stem=A)
    assert rewrite(document, {}) == file.raw
    troubled = {problem.field for problem in document.problems}
    same = {field.name: document.memory.value(field.name) for field in FIELDS if field.name not in troubled}
    assert rewrite(document, same, body=document.memory.body) == file.raw


@given(files())
def test_both_loaders_read_one_file_alike(file: File) -> None:
    fast, pure = parse(file.raw), parse(file.raw, loader=yaml.SafeLoader)
    assert (fast.memory, fast.memory.extra, fast.problems) == (pure.memory, pure.memory.extra, pure.problems)


# What a slip of the finger, a bad merge or another program may leave in a file. The first only takes away.
SNIPPETS = [
    "",
    "\n",
    " ",
    "  ",
    "- ",
    ": ",
    "#",
    " #",
    "'",
    '"',
    "[",
    "]",
    "{",
    "}",
    ",",
    "|",
    ">",
    "&a ",
    "*a",
]
SNIPPETS += ["? ", "\t", "!", "!!str ", "%", "@", "\r", "\u2028", "\x85", "\\", "\n---\n", "\n...\n", "null"]
SNIPPETS += ["id: ", "tags: ", "\0", "x: y\n"]
snippets = st.sampled_from(SNIPPETS)


@given(files(), st.lists(st.tuples(st.integers(0, 400), st.integers(0, 6), snippets), min_size=1, max_size=3))
def test_a_damaged_file_is_read_quarantined_or_refused_and_never_harmed(
    file: File, damages: list[tuple[int, int, str]]
) -> None:
    text = file.raw.decode()
    for where, length, snippet in damages:
        text = text[:where] + snippet + text[where + length :]
    raw = text.encode()
    try:
        document = parse(raw)
    except Unreadable:
        return
    memory = document.memory
    assert rewrite(document, {}) is raw
    wanted = {
        "status": "archived",
        "tags": normal_tags((*memory.tags[1:], "no")),
        "review_history": (*memory.review_history, HistoryEntry(T, "a: b", None, None)),
        "links": (),
        "expires_at": LATER,
        "updated_at": LATER,
    }
    for changes in ({"status": "archived"}, wanted):
        try:
            got = parse(rewrite(document, changes))
        except Refused:
            continue
        assert got.memory == memory._replace(**changes)
        assert got.memory.extra == memory.extra


changeable = st.sampled_from([f.name for f in FIELDS if f.name not in ("id", "updated_at")]).flatmap(
    lambda name: st.tuples(st.just(name), value_of(name))
)
# What a missing field means may follow from these; then it is written out so that it keeps its meaning.
FOLLOWERS = {
    "scope": {"scope_key", "visibility"},
    "scope_key": {"scope", "visibility"},
    "created_at": {"updated_at"},
    "schema_version": {"importance"},
    "type": {"role"},
}


@given(files(), changeable)
def test_a_change_touches_the_lines_of_its_field_only(file: File, change: tuple[str, Any]) -> None:
    name, value = change
    document = parse(file.raw)
    after = rewrite(document, {name: value, "updated_at": LATER})

    got = parse(after)
    assert got.memory == document.memory._replace(**{name: value, "updated_at": LATER})
    assert got.memory.extra == document.memory.extra

    touched = {name, "updated_at"} | FOLLOWERS.get(name, set())
    text = after.decode()
    assert text.startswith("\ufeff") == file.bom
    head = text[: len(text) - len(document.memory.body)]
    assert head.count("\n") == head.count(file.eol)
    assert re.search(r"(?<!\r)\r(?!\n)", head) is None
    # Every line that is not of a touched field is still there, in its order ...
    lines = head.split(file.eol)
    left = list(lines)
    position = 0
    for chunk in file.chunks:
        if chunk.name in touched:
            comments = [line for line in chunk.text.splitlines() if line == "# within"]
            assert all(comment in lines for comment in comments)
            continue
        for line in chunk.text.split("\n")[:-1]:
            assert line in lines[position:], (line, lines[position:])
            position = lines.index(line, position) + 1
            left.remove(line)
    # ... and what came belongs to touched fields: their own lines, or lines below them.
    came = [line for line in left[1:-2] if re.match(r"\w+:", line)]
    assert {line.partition(":")[0] for line in came} <= touched


@given(files(), bodies)
def test_a_new_body_touches_nothing_before_it(file: File, body: str) -> None:
    document = parse(file.raw)
    after = rewrite(document, {}, body=body)
    head = file.raw[: len(file.raw) - len(document.memory.body.encode())]
    assert after.startswith(head)
    got = parse(after).memory
    assert got.body.replace("\r\n", "\n") == body.replace("\r\n", "\n")
    assert got._replace(body="") == document.memory._replace(body="")


@given(files(), st.lists(entries, min_size=1, max_size=3))
def test_appending_to_a_history_only_adds(file: File, more: list[HistoryEntry]) -> None:
    document = parse(file.raw)
    before = document.memory.review_history
    step = rewrite(document, {"review_history": before + tuple(more[:1])})
    one = parse(step)
    last = rewrite(one, {"review_history": one.memory.review_history + tuple(more[1:])})
    assert parse(last).memory.review_history == before + tuple(more)
    flow = re.search(rb"^review_history:.*\[", step, re.MULTILINE)
    if not flow:
        lines = last.decode().split(file.eol)
        for line in step.decode().split(file.eol):
            assert line in lines
            del lines[: lines.index(line) + 1]


@given(st.binary(max_size=300) | st.text(characters, max_size=300).map(str.encode))
@example(b"---\n---\n")
@example(b"---\r---\r")
@example(b"\xef\xbb\xbf---\nid: x")
def test_any_bytes_read_or_are_quarantined(raw: bytes) -> None:
    for data in (raw, b"---\n" + raw + b"\n---\n", f"---\nid: {A}\n".encode() + raw + b"\n---\n"):
        try:
            document = parse(data)
        except Unreadable as error:
            assert error.reason
            assert 0 <= error.line <= len(re.findall(rb"\r\n|\n|\r", data)) + 1
            continue
        assert rewrite(document, {}) is data
        try:
            changed = rewrite(document, {"importance": "high", "tags": ("x", "no"), "updated_at": LATER})
        except OpenMemexError:
            continue  # refused with a reason: the file stays as it is
        got = parse(changed).memory
        assert (got.importance, got.tags, got.updated_at) == ("high", ("x", "no"), LATER)
        assert got.body == document.memory.body

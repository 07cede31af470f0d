"""JSON with comments and trailing commas: where everything stands in the text, and edits that keep the rest.

Loaded only where such a file exists: a search without a settings file never sees this module.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

_MAX_DEPTH = 50
_BLANK = re.compile(r"[ \t\r\n]*(?:(?://[^\r\n]*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/)[ \t\r\n]*)*")
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![0-9A-Za-z_.])")
_WORDS = (("true", True), ("false", False), ("null", None))
_COMMENT_OR_NOT = re.compile(r'//[^\r\n]*[\r\n]*|/\*.*?\*/|[^/"]+|"(?:[^"\\]|\\.)*"|.', re.DOTALL)
_LINE_COMMENTS = re.compile(r"(?:[ \t]*/\*[^\r\n]*?\*/)*(?:[ \t]*//[^\r\n]*)?")
_LINE_BREAK = re.compile(r"[ \t]*(?:\r\n|\r|\n)")


class Node(NamedTuple):
    """One value and its place. `value` of an object is a dict, with the last of two equal names."""

    kind: str  # "object", "array", "string", "number", "true", "false", "null"
    start: int
    end: int
    value: Any
    members: tuple[Member, ...] = ()


class Member(NamedTuple):
    """One `"name": value` of an object; `comma` is where the comma after it is, else -1."""

    name: str
    start: int
    name_end: int
    value: Node
    comma: int


class Unfit(Exception):
    """The text is broken, or an edit would lose something of it; `reason` says what, `line` where."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


def parse(text: str) -> Node | None:
    """The value that `text` holds, or None when there are only blanks and comments. Raises Unfit.

    A byte order mark may come first. Objects and lists may be 50 deep.
    """
    at = _skip(text, 1 if text.startswith("\ufeff") else 0)
    if at == len(text):
        return None
    node = _parse_value(text, at, 0)
    end = _skip(text, node.end)
    if end != len(text):
        raise Unfit("there is more text after the end", line_of(text, end))
    return node


def line_of(text: str, at: int) -> int:
    """The number of the line that the character `at` stands in; the first is 1."""
    return len(re.findall(r"\r\n|\r|\n", text[:at])) + 1


def members_at(root: Node, path: tuple[str, ...]) -> list[tuple[Node, Member]]:
    """Every member that `path` leads to, each with its object; more than one means a doubled name."""
    owners = [root]
    for name in path[:-1]:
        owners = [m.value for o in owners for m in o.members if m.name == name and m.value.kind == "object"]
    return [(owner, m) for owner in owners for m in owner.members if m.name == path[-1]]


def replace(text: str, node: Node, value: Any) -> str:
    """`text` with the value of `node` changed. Raises Unfit when a comment in the old value would be lost."""
    if node.value == value and type(node.value) is type(value):
        return text
    if node.kind in ("array", "object") and _comments(text, node.start, node.end):
        raise Unfit("a comment inside the old value would be lost", line_of(text, node.start))
    return text[: node.start] + _dump(value) + text[node.end :]


def insert(text: str, root: Node | None, owner: Node | None, path: tuple[str, ...], value: Any) -> str:
    """`text` with a new member at the end of `owner` (an object of it, without that member).

    Of a longer `path` the first name gets an object that holds the rest. Indentation, line ends, blanks
    around colons and a last comma follow what is there; blanks in empty brackets are laid out anew. Without
    `root` the text has no object yet: one is made after the comments.
    """
    name = _dump(path[0])
    written = _dump(value)
    for part in reversed(path[1:]):
        written = f"{{ {_dump(part)}: {written} }}"
    end = _line_end(text)
    if root is None or owner is None:
        gap = end if text.strip("\ufeff \t\r\n") and not text.endswith(("\n", "\r")) else ""
        return f"{text}{gap}{{{end}  {name}: {written}{end}}}{end}"
    if not owner.members:
        return _insert_first(text, root, owner, f"{name}: {written}")
    last = owner.members[-1]
    colon = text[last.name_end : last.value.start]
    new = name + (colon if re.fullmatch(r"[ \t]*:[ \t]*", colon) else ": ") + written
    at = last.value.end if last.comma < 0 else last.comma + 1
    head, last_comma = (text[:at] + ",", "") if last.comma < 0 else (text[:at], ",")
    indent = _indent(text, last.start)
    if indent is None:
        inside = text[owner.start : owner.end]
        gap = " " if len(owner.members) == 1 or re.search(r",[ \t]", inside) else ""
        return f"{head}{gap}{new}{last_comma}{text[at:]}"
    # Behind the comments on the last member's own line: they speak about that member.
    comments = _LINE_COMMENTS.match(text, at)
    behind = comments.end() if comments else at
    return f"{head}{text[at:behind]}{end}{indent}{new}{last_comma}{text[behind:]}"


def remove(text: str, owner: Node, member: Member) -> str:
    """`text` without `member` of `owner`, its comma, and its line if nothing else is on it; comments stay."""
    position = owner.members.index(member)
    end = member.value.end if member.comma < 0 else member.comma + 1
    kept = _comments(text, member.start, member.value.start) + _comments(text, member.value.end, end)
    start, after = member.start, end
    if not kept:
        indent = _indent(text, start)
        line_break = _LINE_BREAK.match(text, end)
        if indent is not None and line_break is not None:
            start, after = start - len(indent), line_break.end()
        elif position < len(owner.members) - 1:
            after += len(text[end:]) - len(text[end:].lstrip(" \t"))
        elif position > 0 and indent is None:
            start = len(text[:start].rstrip(" \t"))
    before = text[:start]
    if member.comma < 0 and position > 0:
        comma = owner.members[position - 1].comma
        before = text[:comma] + text[comma + 1 : start]
    return before + kept + text[after:]


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    at = match.end() if match else at
    if text.startswith("/*", at):
        raise Unfit("a comment /* is not closed", line_of(text, at))
    return at


def _parse_value(text: str, at: int, depth: int) -> Node:
    char = text[at : at + 1]
    if depth > _MAX_DEPTH:
        raise Unfit("too many brackets inside each other", line_of(text, at))
    if char == "{":
        return _parse_object(text, at, depth)
    if char == "[":
        return _parse_array(text, at, depth)
    if char == '"':
        end, value = _parse_string(text, at)
        return Node("string", at, end, value)
    number = _NUMBER.match(text, at)
    if number is not None and len(number[0]) <= 300:
        return Node("number", at, number.end(), json.loads(number[0]))
    for word, constant in _WORDS:
        if text.startswith(word, at) and not text[at + len(word) : at + len(word) + 1].isalnum():
            return Node(word, at, at + len(word), constant)
    raise Unfit("a value was expected here" if char else "the text ends too early", line_of(text, at))


def _parse_string(text: str, at: int) -> tuple[int, str]:
    match = _STRING.match(text, at)
    if match is None:
        raise Unfit("a text is not closed", line_of(text, at))
    token = match[0]
    if "\\" not in token:
        return match.end(), token[1:-1]
    try:
        return match.end(), str(json.loads(token))
    except ValueError:
        raise Unfit(
            "a backslash stands before something that JSON does not allow", line_of(text, at)
        ) from None


def _parse_array(text: str, start: int, depth: int) -> Node:
    items: list[Any] = []
    at = _skip(text, start + 1)
    while not text.startswith("]", at):
        item = _parse_value(text, at, depth + 1)
        items.append(item.value)
        at, _ = _after_item(text, item.end, "]")
    return Node("array", start, at + 1, items)


def _parse_object(text: str, start: int, depth: int) -> Node:
    members: list[Member] = []
    at = _skip(text, start + 1)
    while not text.startswith("}", at):
        if not text.startswith('"', at):
            early = at >= len(text)
            reason = "the text ends too early" if early else "a name in double quotes was expected here"
            raise Unfit(reason, line_of(text, at))
        name_start = at
        name_end, name = _parse_string(text, at)
        colon = _skip(text, name_end)
        if not text.startswith(":", colon):
            raise Unfit("a colon was expected here", line_of(text, colon))
        value = _parse_value(text, _skip(text, colon + 1), depth + 1)
        at, comma = _after_item(text, value.end, "}")
        members.append(Member(name, name_start, name_end, value, comma))
    values = {member.name: member.value.value for member in members}
    return Node("object", start, at + 1, values, tuple(members))


def _after_item(text: str, at: int, closing: str) -> tuple[int, int]:
    """Where the next item or the closing bracket is, and where the comma before it (-1: none)."""
    at = _skip(text, at)
    if text.startswith(",", at):
        return _skip(text, at + 1), at
    if not text.startswith(closing, at):
        raise Unfit(f"a comma or {closing} was expected here", line_of(text, at))
    return at, -1


def _insert_first(text: str, root: Node, owner: Node, new: str) -> str:
    inside = text[owner.start + 1 : owner.end - 1]
    if owner is not root and not inside.strip() and not re.search(r"[\r\n]", inside):
        return f"{text[: owner.start]}{{ {new} }}{text[owner.end :]}"
    end = _line_end(text)
    base = _line_start_blanks(text, owner.start)
    unit = _indent(text, root.members[0].start) if root.members else None
    kept = inside.rstrip(" \t\r\n")
    return f"{text[: owner.start + 1]}{kept}{end}{base}{unit or '  '}{new}{end}{base}{text[owner.end - 1 :]}"


def _comments(text: str, start: int, end: int) -> str:
    return "".join(t for t in _COMMENT_OR_NOT.findall(text, start, end) if t.startswith(("//", "/*")))


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _indent(text: str, at: int) -> str | None:
    """The blanks before `at`, when nothing else stands before it on its line; else None."""
    blanks = _line_start_blanks(text, at)
    before = at - len(blanks)
    return blanks if before == 0 or text[before - 1] in "\r\n" else None


def _line_start_blanks(text: str, at: int) -> str:
    start = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    line = text[start:at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _line_end(text: str) -> str:
    found = re.search(r"\r\n|\r|\n", text)
    return found[0] if found else "\n"

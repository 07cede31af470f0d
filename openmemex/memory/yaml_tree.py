"""Front matter as a tree of YAML events: text and places, no guessing of types, no recursion.

Events are read instead of composed nodes: they cost half the time, and depth and aliases can be limited while
they come in, so that no file can overflow a stack or blow up in memory.
"""

from __future__ import annotations

import re
from typing import Any, Final, TypeAlias

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from openmemex.memory.fences import Unreadable, line_at

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MAX_DEPTH: Final = 50
MAX_ALIASED_VALUES: Final = 1000

NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_CORE_TAGS: Final = frozenset(
    {
        "!",
        *(
            "tag:yaml.org,2002:" + n
            for n in ("str", "null", "bool", "int", "float", "timestamp", "seq", "map")
        ),
    }
)
# What neither YAML version lets stand unescaped ("c-printable").
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# What was opened and never closed is noticed lines later: the line of its beginning is the one to mend.
_OPENED = re.compile("quoted scalar|simple key|flow sequence|flow mapping|tag")
_QUOTED_TEXT = re.compile(r"'([^']*)'")
_SHOWABLE_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,40}\Z")


class Collection:
    """A YAML list or mapping: its children, its style, and where it stands in the front matter's text.

    `items` holds the children of a list; `pairs` key and value of a mapping. `end` is right only for flow
    style: a block ends wherever the next thing begins.
    """

    __slots__ = ("end", "flow", "is_map", "items", "names", "open", "pairs", "pending", "size", "start")

    def __init__(self, is_map: bool, flow: bool, start: int) -> None:
        self.is_map = is_map
        self.flow = flow
        self.start = start
        self.end = start
        self.items: list[Node] = []
        self.pairs: list[tuple[Any, Node]] = []
        self.names: set[str] = set()
        self.pending: Any = None
        self.open = True
        self.size = 1


class Alias:
    """A YAML alias: where it stands, and what it stands for."""

    __slots__ = ("end", "start", "target")

    def __init__(self, target: Node, start: int, end: int) -> None:
        self.target = target
        self.start = start
        self.end = end


# A scalar is PyYAML's own event: value, style ("" or None when plain), start_mark, end_mark.
Node: TypeAlias = ScalarEvent | Collection | Alias


def place(mark: Any) -> int:
    """The place that a PyYAML mark means. Its types allow no mark at all; a parser always gives one."""
    return int(mark.index)


def start_of(node: Node) -> int:
    """Where a node begins (with its anchor and tag)."""
    return place(node.start_mark) if isinstance(node, ScalarEvent) else node.start


def resolved(node: Node) -> ScalarEvent | Collection:
    """The node itself, or what an alias stands for."""
    while isinstance(node, Alias):
        node = node.target
    return node


def text_of(node: ScalarEvent) -> str | None:
    """A scalar's text as written; None for YAML's spellings of null."""
    value: str = node.value
    return None if not node.style and value in NULLS and node.tag is None else value


def scan(text: str, start: int, end: int, loader: Any = None) -> Collection:
    """The mapping that the front matter `text[start:end]` is.

    Places in the tree count from `start`. Raises Unreadable with the line in `text`.
    """
    front = text[start:end]
    try:
        return _build(front, loader or Loader)
    except _Fault as fault:
        raise Unreadable(fault.reason, line_at(text, start + fault.index)) from None
    except yaml.YAMLError as error:
        forbidden = _FORBIDDEN.search(front)
        if forbidden:
            reason = f"bad YAML: character U+{ord(forbidden[0]):04X} is not allowed"
            raise Unreadable(reason, line_at(text, start + forbidden.start())) from None
        mark = getattr(error, "problem_mark", None)
        if _OPENED.search(getattr(error, "context", None) or ""):
            mark = getattr(error, "context_mark", None) or mark
        problem = str(getattr(error, "problem", None) or "not readable")
        if "nesting" in problem:  # libyaml's own limit on what it looks ahead at
            problem = f"nested more than {MAX_DEPTH} levels deep"
        # A parser may quote the text that it stumbled over; a message must not.
        problem = _QUOTED_TEXT.sub(lambda m: m[0] if len(m[1]) == 1 else "…", problem)
        raise Unreadable(f"bad YAML: {problem}", line_at(text, start + (mark.index if mark else 0))) from None


class _Fault(Exception):
    def __init__(self, reason: str, index: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.index = index


def _build(front: str, loader: Any) -> Collection:
    parser = loader(front)
    get: Any = parser.get_event
    get()
    event = get()
    if type(event) is StreamEndEvent:
        return Collection(True, False, 0)
    if type(event) is not DocumentStartEvent:
        raise _Fault("bad YAML", 0)
    event = get()
    if type(event) is not MappingStartEvent:
        raise _Fault("front matter is not a list of fields (name: value)", event.start_mark.index)
    root = _opened(event, True)
    anchors: dict[str, Node] = {}
    if event.anchor is not None:
        anchors[event.anchor] = root
    stack = [root]
    aliased = 0
    top = root
    node: Node
    while True:
        event = get()
        kind = type(event)
        if kind is ScalarEvent:
            node = event
            if event.tag is not None:
                _check_tag(event)
            if event.anchor is not None:
                anchors[event.anchor] = event
        elif kind is MappingEndEvent or kind is SequenceEndEvent:
            if top.pending is not None:
                raise _Fault("bad YAML: a key without a value", top.start)
            node = stack.pop()
            node.open = False
            node.end = event.end_mark.index
            if not stack:
                break
            top = stack[-1]
        elif kind is MappingStartEvent or kind is SequenceStartEvent:
            if len(stack) >= MAX_DEPTH:
                raise _Fault(f"nested more than {MAX_DEPTH} levels deep", event.start_mark.index)
            if top.is_map and top.pending is None:
                raise _Fault("bad YAML: a key must be text", event.start_mark.index)
            top = _opened(event, kind is MappingStartEvent)
            stack.append(top)
            if event.anchor is not None:
                anchors[event.anchor] = top
            continue
        elif kind is AliasEvent:
            target = anchors.get(event.anchor)
            where = event.start_mark.index
            if target is None:
                raise _Fault("bad YAML: an alias without its anchor", where)
            if isinstance(target, Collection):
                if target.open:
                    raise _Fault("a YAML alias stands inside its own anchor", where)
                aliased += target.size
                if aliased > MAX_ALIASED_VALUES:
                    raise _Fault(f"YAML aliases expand to more than {MAX_ALIASED_VALUES} values", where)
            if top.is_map and top.pending is None:
                raise _Fault("bad YAML: a key must be text", where)
            node = Alias(target, where, event.end_mark.index)
        else:
            raise _Fault("bad YAML", event.start_mark.index)
        if top.is_map:
            key = top.pending
            if key is None:
                name = event.value
                if name in top.names:
                    shown = f" {name}" if _SHOWABLE_KEY.match(name) else ""
                    raise _Fault(f"duplicate key{shown}", event.start_mark.index)
                top.names.add(name)
                top.pending = event
                continue
            top.pairs.append((key, node))
            top.pending = None
        else:
            top.items.append(node)
        if kind is not ScalarEvent:
            inner = resolved(node)
            top.size += inner.size if isinstance(inner, Collection) else 1
        else:
            top.size += 1
    get()
    event = get()
    if type(event) is not StreamEndEvent:
        raise _Fault("bad YAML: more than one document between the fences", event.start_mark.index)
    return root


def _opened(event: Any, is_map: bool) -> Collection:
    if event.tag is not None:
        _check_tag(event)
    return Collection(is_map, bool(event.flow_style), event.start_mark.index)


def _check_tag(event: Any) -> None:
    if event.tag not in _CORE_TAGS:
        raise _Fault("a YAML tag that is not allowed here", event.start_mark.index)

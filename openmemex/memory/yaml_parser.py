"""Front matter that is not in our own plain form, through PyYAML, into the tree of `yaml_tree`.

Events are read instead of composed nodes: they cost half the time, and depth and aliases can be limited while
they come in, so that no file can overflow a stack or blow up in memory.
"""

from __future__ import annotations

import re
from typing import Any, Final

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
from openmemex.memory.yaml_tree import Alias, Collection, Node, Scalar, resolved

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MAX_DEPTH: Final = 50
MAX_ALIASED_VALUES: Final = 1000

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
    scalar = Scalar("", None, None, 0, 0)
    aliased = 0
    top = root
    node: Node
    while True:
        event = get()
        kind = type(event)
        if kind is ScalarEvent:
            node = scalar = Scalar(
                event.value, event.style, event.tag, event.start_mark.index, event.end_mark.index
            )
            if event.tag is not None:
                _check_tag(event)
            if event.anchor is not None:
                anchors[event.anchor] = node
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
                top.pending = scalar
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

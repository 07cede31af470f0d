"""Front matter as a tree: text and places, no guessing of types.

Two readers make it: `yaml_lines` for the form that OpenMemex writes itself, `yaml_parser` for all other YAML.
"""

from __future__ import annotations

from typing import Final, TypeAlias

NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})


class Scalar:
    """One text: its `value`, how it is quoted (`style`: "" or None when plain, else the sign), its explicit
    `tag` (rarely any), and where it stands in the front matter's text (with its anchor and tag).
    """

    __slots__ = ("end", "start", "style", "tag", "value")

    def __init__(self, value: str, style: str | None, tag: str | None, start: int, end: int) -> None:
        self.value = value
        self.style = style
        self.tag = tag
        self.start = start
        self.end = end


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
        self.pairs: list[tuple[Scalar, Node]] = []
        self.names: set[str] = set()
        self.pending: Scalar | None = None
        self.open = True
        self.size = 1


class Alias:
    """A YAML alias: where it stands, and what it stands for."""

    __slots__ = ("end", "start", "target")

    def __init__(self, target: Node, start: int, end: int) -> None:
        self.target = target
        self.start = start
        self.end = end


Node: TypeAlias = Scalar | Collection | Alias


def resolved(node: Node) -> Scalar | Collection:
    """The node itself, or what an alias stands for."""
    while isinstance(node, Alias):
        node = node.target
    return node


def text_of(node: Scalar) -> str | None:
    """A scalar's text as written; None for YAML's spellings of null."""
    value = node.value
    return None if not node.style and value in NULLS and node.tag is None else value

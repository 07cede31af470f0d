"""The front matter that OpenMemex itself writes, read line by line: cheaper than a YAML parser can be.

An index of thousands of files spends most of its time on YAML, loading a parser takes longer than a merge,
and nearly every file was written here. What is not surely such a line is left to the parser: `quick_scan`
then gives None. Where it gives a tree, it is the parser's (a test holds the two equal).
"""

from __future__ import annotations

import re

from openmemex.memory.yaml_tree import Collection, Node, Scalar

# A plain scalar of words, which no YAML version reads otherwise, and a double-quoted one without escapes. No
# long ranges of characters in these: a class of them takes longer to compile than a file to read.
_PLAIN = r"[^\W_][\w./-]*(?: [\w./-]+)*"
_QUOTED = r'"[^"\\\n]*"'
_VALUE = rf"{_QUOTED}|{_PLAIN}"
_LINE = re.compile(
    rf"([A-Za-z_][A-Za-z0-9_]*):"
    rf"(?: ({_PLAIN})| ({_QUOTED})| \[((?:(?:{_VALUE})(?:, (?:{_VALUE}))*)?)\]|"
    rf"(?=\n- \{{(?:at|rel): ))\n"
)
_ENTRY = re.compile(
    rf"- \{{at: ({_VALUE}), by: ({_VALUE}), from: ({_VALUE}), to: ({_VALUE}), note: ({_VALUE})\}}\n"
)
_LINK = re.compile(rf"- \{{rel: ({_VALUE}), to: ({_VALUE})\}}\n")
_ITEM = re.compile(_VALUE)
_ENTRY_KEYS = ("at", "by", "from", "to", "note")
_LINK_KEYS = ("rel", "to")


def quick_scan(text: str, start: int, end: int) -> Collection | None:
    """The mapping that the front matter `text[start:end]` is, or None for whatever needs the YAML parser.

    Places in the tree count from `start`.
    """
    if not _is_ordinary(text[start:end]):
        return None
    root = Collection(True, False, 0)
    pairs, names = root.pairs, root.names
    match = _LINE.match
    at = start
    while at < end:
        line = match(text, at, end)
        if line is None:
            return None
        name, plain, quoted, items = line.groups()
        if name in names:
            return None
        names.add(name)
        here = at - start
        value_at = here + len(name) + 2
        key = Scalar(name, None, None, here, value_at - 2)
        at = line.end()
        node: Node
        if plain is not None:
            node = Scalar(plain, None, None, value_at, at - start - 1)
        elif quoted is not None:
            node = Scalar(quoted[1:-1], '"', None, value_at, at - start - 1)
        elif items is not None:
            node = Collection(False, True, value_at)
            node.end = at - start - 1
            node.open = False
            if items:
                inside = value_at + 1
                node.items = [
                    _scalar(item[0], inside + item.start(), inside + item.end())
                    for item in _ITEM.finditer(items)
                ]
        else:
            node = Collection(False, False, at - start)
            at = _entries(text, at, end, start, node)
            node.open = False
        pairs.append((key, node))
    root.open = False
    return root if pairs else None


def _is_ordinary(front: str) -> bool:
    """Whether there is no character that YAML forbids, or that one of its versions takes for a line break."""
    if front.replace("\n", "").isprintable():
        return True
    # Compiled only where it is needed: it has ranges.
    return not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]", front)


def _scalar(text: str, start: int, end: int) -> Scalar:
    if text[0] == '"':
        return Scalar(text[1:-1], '"', None, start, end)
    return Scalar(text, None, None, start, end)


def _entries(text: str, at: int, end: int, start: int, node: Collection) -> int:
    """Add the review entries or links that stand at `at` to `node`; where they end."""
    keys: tuple[str, ...] = _ENTRY_KEYS
    while True:
        entry = (_ENTRY if keys is _ENTRY_KEYS else _LINK).match(text, at, end)
        if entry is None:
            if keys is _LINK_KEYS or node.items:
                return at
            keys = _LINK_KEYS
            continue
        inner = Collection(True, True, at - start + 2)
        for number, name in enumerate(keys, 1):
            first, last = entry.span(number)
            first, last = first - start, last - start
            key = Scalar(name, None, None, first - 2 - len(name), first - 2)
            inner.pairs.append((key, _scalar(entry[number], first, last)))
        at = entry.end()
        inner.end = node.end = at - start - 1
        inner.open = False
        node.items.append(inner)

"""The front matter that OpenMemex itself writes, read line by line: cheaper than a YAML parser can be.

An index of thousands of files spends most of its time on YAML, and nearly every file was written here. What
is not surely such a line is left to the parser: `quick_scan` then gives None. Where it gives a tree, it says
what the parser's would say (a test holds the two equal), but for places, which are all 0.
"""

from __future__ import annotations

import re
from typing import Any

from yaml.error import Mark
from yaml.events import ScalarEvent

from openmemex.memory.yaml_tree import Collection

# A plain scalar of words, which no YAML version reads otherwise, and a double-quoted one without escapes.
_LETTER = r"A-Za-z0-9\u00c0-\u02af\u3041-\u30fa\u4e00-\u9fff\uac00-\ud7a3"
_PLAIN = rf"[{_LETTER}][{_LETTER}_./-]*(?: [{_LETTER}_./-]+)*"
_QUOTED = r'"[^"\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]*"'
_VALUE = rf"{_QUOTED}|{_PLAIN}"
_LINE = re.compile(
    rf"([A-Za-z_][A-Za-z0-9_]*):"
    rf"(?: ({_PLAIN})| ({_QUOTED})| \[((?:(?:{_VALUE})(?:, (?:{_VALUE}))*)?)\]|"
    rf"(?=\n- \{{at: ))\n"
)
_ENTRY = re.compile(
    rf"- \{{at: ({_VALUE}), by: ({_VALUE}), from: ({_VALUE}), to: ({_VALUE}), note: ({_VALUE})\}}\n"
)
_ITEM = re.compile(_VALUE)
_IMPLICIT = (True, False)


# For nodes whose place nobody asks for.
_MARK = Mark("", 0, 0, 0, None, 0)


def _scalar(text: str) -> Any:
    if text[0] == '"':
        return ScalarEvent(None, None, (False, True), text[1:-1], _MARK, _MARK, '"')
    return ScalarEvent(None, None, _IMPLICIT, text, _MARK, _MARK)


_ENTRY_KEYS = tuple(_scalar(name) for name in ("at", "by", "from", "to", "note"))
_keys: dict[str, Any] = {}


def quick_scan(text: str, start: int, end: int) -> Collection | None:
    """The mapping that the front matter `text[start:end]` is, or None for whatever needs the YAML parser."""
    root = Collection(True, False, 0)
    pairs, names = root.pairs, root.names
    match = _LINE.match
    while start < end:
        line = match(text, start, end)
        if line is None:
            return None
        name, plain, quoted, items = line.groups()
        if name in names:
            return None
        names.add(name)
        start = line.end()
        node: Any
        if plain is not None:
            node = ScalarEvent(None, None, _IMPLICIT, plain, _MARK, _MARK)
        elif quoted is not None:
            node = _scalar(quoted)
        else:
            node = Collection(False, items is not None, 0)
            if items:
                node.items = [_scalar(item) for item in _ITEM.findall(items)]
            elif items is None:
                start = _entries(text, start, end, node)
            node.open = False
        key = _keys.get(name)
        if key is None:
            key = _scalar(name)
            if len(_keys) < 200:
                _keys[name] = key
        pairs.append((key, node))
    root.open = False
    return root if pairs else None


def _entries(text: str, start: int, end: int, node: Collection) -> int:
    """Add the review entries that stand at `start` to `node`; where they end."""
    while (entry := _ENTRY.match(text, start, end)) is not None:
        inner = Collection(True, True, 0)
        inner.pairs = [(key, _scalar(value)) for key, value in zip(_ENTRY_KEYS, entry.groups(), strict=True)]
        inner.open = False
        node.items.append(inner)
        start = entry.end()
    return start

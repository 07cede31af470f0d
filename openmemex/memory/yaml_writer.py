"""Values as YAML text that YAML 1.1 and 1.2 readers take for the same text, and that git can diff by line.

What is surely plain or simply quoted is written here; everything else by PyYAML's emitter, which takes longer
to load than a merge to make.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from openmemex.errors import Refused
from openmemex.memory.ids import is_id
from openmemex.memory.model import FIELD_BY_NAME, Field, HistoryEntry, Link

PLAIN, DOUBLE, SINGLE = None, '"', "'"

# Plain only where no YAML version can see anything but text: a letter first, then letters, digits and few
# signs.
_PLAIN = re.compile(r"[^\W\d](?:[\w ./-]*[\w./-])?\Z")
# YAML 1.1 "Boolean" and "Null" types (https://yaml.org/type/), in any case.
_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
# An id begins with a digit. With one of these letters it is no number in base 2, 8, 10, 16 or with an
# exponent.
_NO_NUMBER = re.compile(r"[GHJKMNPQRSTVWYZ]")


def is_plain(text: str) -> bool:
    """Whether `text` may stand unquoted and still be text for every YAML reader."""
    if is_id(text):
        return _NO_NUMBER.search(text) is not None
    return _PLAIN.match(text) is not None and text.lower() not in _WORDS


def require_utf8(text: str, what: str) -> None:
    """Raise Refused when `text` holds half a character (a lone surrogate), which no UTF-8 file can hold."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise Refused(
            f"{what} holds a broken character (half of a surrogate pair) and can't be stored as UTF-8",
            "Remove the broken character and try again.",
        ) from None


def scalar(text: str | None, style: str | None = None) -> str:
    """One scalar as it may stand in a line, in flow or block context. `style` is the quoting to keep if it
    can.
    """
    quick = _scalar(text, style)
    if quick is not None:
        return quick
    from openmemex.memory import yaml_emitter  # loads PyYAML: see the top

    return yaml_emitter.scalar(text, style)


def inline(field: Field, value: Any) -> str:
    """A field's whole value in one line, flow style."""
    quick = _inline(field, value)
    if quick is not None:
        return quick
    from openmemex.memory import yaml_emitter  # loads PyYAML: see the top

    return yaml_emitter.inline(field, value)


def item(field: Field, value: Any) -> str:
    """One item of a list field in one line, flow style."""
    quick = _item(value)
    if quick is not None:
        return quick
    from openmemex.memory import yaml_emitter  # loads PyYAML: see the top

    return yaml_emitter.item(field, value)


def block_items(field: Field, values: Iterable[Any], *, flow_items: bool = True) -> list[str]:
    """The items of a list field as lines of a block list without indentation and without line ends."""
    values = list(values)
    quick = [_item(value) for value in values]
    done = [f"- {text}" for text in quick if text is not None]
    if values and len(done) == len(values) and (flow_items or item_pairs(values[0]) is None):
        return done
    from openmemex.memory import yaml_emitter  # loads PyYAML: see the top

    return yaml_emitter.block_items(field, values, flow_items=flow_items)


def lines(values: Iterable[tuple[str, Any]]) -> list[str]:
    """Fields and their values in the form that new files have, as lines without line ends."""
    values = list(values)
    done: list[str] = []
    for name, value in values:
        quick = _lines(FIELD_BY_NAME[name], value)
        if quick is None:
            break
        done += quick
    else:
        if values:
            return done
    from openmemex.memory import yaml_emitter  # loads PyYAML: see the top

    return yaml_emitter.lines(values)


def item_pairs(value: Any) -> list[tuple[str, str | None]] | None:
    """Key and value of a history entry or a link, in order; None for an item that is one text."""
    if isinstance(value, HistoryEntry):
        return list(zip(_ENTRY_KEYS, value, strict=True))
    if isinstance(value, Link):
        return [("rel", value.rel), ("to", value.to)]
    return None


_ENTRY_KEYS: Final = ("at", "by", "from", "to", "note")


def _lines(field: Field, value: Any) -> list[str] | None:
    if field.kind in ("history", "links") and value:
        quick = [_item(part) for part in value]
        items = [f"- {text}" for text in quick if text is not None]
        return [f"{field.name}:", *items] if len(items) == len(quick) else None
    text = _inline(field, value)
    return None if text is None else [f"{field.name}: {text}"]


def _inline(field: Field, value: Any) -> str | None:
    if field.kind in ("list", "history", "links"):
        quick = [_item(part) for part in value]
        items = [text for text in quick if text is not None]
        return f"[{', '.join(items)}]" if len(items) == len(quick) else None
    if field.kind == "int":
        return str(value)
    if field.kind == "time" and value is not None:
        return _scalar(value, DOUBLE)
    return _scalar(value, PLAIN)


def _item(value: Any) -> str | None:
    pairs = item_pairs(value)
    if pairs is None:
        return _scalar(value, PLAIN)
    parts = []
    for name, text in pairs:
        quick = _scalar(text, DOUBLE if name == "at" else PLAIN)
        if quick is None:
            return None
        parts.append(f"{name}: {quick}")
    return "{" + ", ".join(parts) + "}"


def _scalar(text: str | None, style: str | None) -> str | None:
    """The text as the emitter writes it; None where only the emitter surely knows."""
    if text is None:
        return "null"
    if style not in (DOUBLE, SINGLE) and is_plain(text):
        return text
    # Printable (no control, no line break, no space but U+0020), and nothing to escape.
    if not text.isprintable() or "\\" in text:
        return None
    if style == SINGLE:
        return None if "'" in text else f"'{text}'"
    return None if '"' in text else f'"{text}"'

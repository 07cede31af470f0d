"""The same YAML text as `yaml_writer` gives, by PyYAML's emitter: for whatever needs escapes or folding.

`yaml_writer` asks here only for what it can't surely write itself; a test holds the two equal where both can.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import yaml
from yaml.emitter import Emitter
from yaml.events import (
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from openmemex.memory.model import FIELD_BY_NAME, Field
from openmemex.memory.yaml_writer import DOUBLE, PLAIN, SINGLE, is_plain, item_pairs

WIDTH: Final = 1 << 30

_SIMPLE = re.compile(r"[\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]*\Z")
_TO_ESCAPE = re.compile(
    r"[^\x20\x21\x23-\x5b\x5d-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


class _Emitter(Emitter):
    """PyYAML's emitter, without folding, and with characters beyond the basic plane (emoji) left readable."""

    def write_double_quoted(self, text: str, split: bool = True) -> None:
        self.write_indicator('"', True)
        data = _TO_ESCAPE.sub(self._escape, text)
        self.column += len(data)
        self.stream.write(data)
        self.write_indicator('"', False)

    def _escape(self, match: re.Match[str]) -> str:
        char = match[0]
        short = self.ESCAPE_REPLACEMENTS.get(char)
        if short is not None:
            return "\\" + short
        code = ord(char)
        return f"\\x{code:02X}" if code <= 0xFF else f"\\u{code:04X}"


def scalar(text: str | None, style: str | None = None) -> str:
    """One scalar as it may stand in a line, in flow or block context. `style` is the quoting to keep if it
    can.
    """
    if text is not None:
        if style == SINGLE and _SIMPLE.match(text):
            return _inline([_text(text, SINGLE)])
        if style == DOUBLE:
            return _inline([_text(text, DOUBLE)])
    return _inline([_scalar_event(text)])


def inline(field: Field, value: Any) -> str:
    """A field's whole value in one line, flow style."""
    return _inline(_value_events(field, value, flow=True))


def item(field: Field, value: Any) -> str:
    """One item of a list field in one line, flow style."""
    return _inline(_item_events(field, value, flow=True))


def block_items(field: Field, values: Iterable[Any], *, flow_items: bool = True) -> list[str]:
    """The items of a list field as lines of a block list without indentation and without line ends."""
    events = [SequenceStartEvent(None, None, True, flow_style=False)]
    for value in values:
        events += _item_events(field, value, flow=flow_items)
    return _emit([*events, SequenceEndEvent()]).split("\n")[:-1]


def lines(values: Iterable[tuple[str, Any]]) -> list[str]:
    """Fields and their values in the form that new files have, as lines without line ends."""
    events: list[Any] = [MappingStartEvent(None, None, True, flow_style=False)]
    for name, value in values:
        events.append(_text(name, PLAIN))
        events += _value_events(FIELD_BY_NAME[name], value, flow=False)
    return _emit([*events, MappingEndEvent()]).split("\n")[:-1]


def _value_events(field: Field, value: Any, *, flow: bool) -> list[Any]:
    kind = field.kind
    if kind == "list":
        return _list(field, value, flow_list=True, flow_items=True)
    if kind in ("history", "links"):
        return _list(field, value, flow_list=flow or not value, flow_items=True)
    if kind == "int":
        return [ScalarEvent(None, None, (True, True), str(value))]
    if kind == "time" and value is not None:
        return [_text(value, DOUBLE)]
    return [_scalar_event(value)]


def _list(field: Field, values: Sequence[Any], *, flow_list: bool, flow_items: bool) -> list[Any]:
    events: list[Any] = [SequenceStartEvent(None, None, True, flow_style=flow_list)]
    for value in values:
        events += _item_events(field, value, flow=flow_items)
    events.append(SequenceEndEvent())
    return events


def _item_events(field: Field, value: Any, *, flow: bool) -> list[Any]:
    pairs = item_pairs(value)
    if pairs is None:
        return [_scalar_event(value)]
    events: list[Any] = [MappingStartEvent(None, None, True, flow_style=flow)]
    for name, text in pairs:
        events.append(_text(name, PLAIN))
        events.append(_text(text, DOUBLE) if name == "at" and text is not None else _scalar_event(text))
    events.append(MappingEndEvent())
    return events


def _scalar_event(text: str | None) -> ScalarEvent:
    if text is None:
        return ScalarEvent(None, None, (True, True), "null")
    return _text(text, PLAIN if is_plain(text) else DOUBLE)


def _text(text: str, style: str | None) -> ScalarEvent:
    return ScalarEvent(None, None, (True, True), text, style=style)


def _inline(events: list[Any]) -> str:
    # In brackets, so that the emitter's choices hold in flow context as well as in block context.
    return _emit([SequenceStartEvent(None, None, True, flow_style=True), *events, SequenceEndEvent()])[1:-2]


def _emit(events: list[Any]) -> str:
    return str(
        yaml.emit(
            [
                StreamStartEvent(),
                DocumentStartEvent(explicit=False),
                *events,
                DocumentEndEvent(explicit=False),
                StreamEndEvent(),
            ],
            Dumper=_Emitter,
            allow_unicode=True,
            width=WIDTH,
        )
    )

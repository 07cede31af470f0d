"""What is written quickly is what PyYAML's emitter writes."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from openmemex.memory import yaml_emitter, yaml_writer
from openmemex.memory.model import FIELD_BY_NAME, FIELDS, HistoryEntry, Link

ODD = ["", " a", "a ", "a  b", "no", "null", "~", "1.10", "a: b", "a #b", "-", "- a", "'", "it's", '"', "\\"]
ODD += [
    "\n",
    "\t",
    "\xa0",
    "\u3000",
    "\u200d",
    "\ufeff",
    "é ü",
    "小沐 a",
    "🚀",
    "a-",
    "a.b/c_d",
    "_a",
    "0x1F",
]
ODD += ["2026-09-26", "x" * 200]
LETTERS = "ab1 \"\\'[]{},:#-.~é部\t"
TEXTS = st.sampled_from(ODD) | st.text(max_size=20) | st.text(st.sampled_from(LETTERS), max_size=12)
ENTRIES = st.builds(HistoryEntry, TEXTS, *(st.none() | TEXTS for _ in range(4)))
LINKS = st.builds(Link, TEXTS, TEXTS)


def values_of(name: str) -> st.SearchStrategy[Any]:
    kind = FIELD_BY_NAME[name].kind
    if kind == "int":
        return st.integers(1, 99)
    if kind == "list":
        return st.lists(TEXTS, max_size=4).map(tuple)
    if kind == "history":
        return st.lists(ENTRIES, max_size=3).map(tuple)
    if kind == "links":
        return st.lists(LINKS, max_size=3).map(tuple)
    return st.none() | TEXTS


FIELD_VALUES = st.sampled_from([field.name for field in FIELDS]).flatmap(
    lambda name: st.tuples(st.just(name), values_of(name))
)


@given(FIELD_VALUES, st.sampled_from([None, "", "'", '"', "|"]))
@example(
    (
        "review_history",
        (HistoryEntry("2026-09-26T12:00:00Z", "Ada Example", "draft", "proposed", "why, though?"),),
    ),
    None,
)
def test_quick_text_is_the_emitters_text(named: tuple[str, Any], style: str | None) -> None:
    name, value = named
    field = FIELD_BY_NAME[name]
    assert yaml_writer.lines([named]) == yaml_emitter.lines([named])
    assert yaml_writer.inline(field, value) == yaml_emitter.inline(field, value)
    if value is None or isinstance(value, str):
        assert yaml_writer.scalar(value, style) == yaml_emitter.scalar(value, style)
    elif isinstance(value, tuple) and value:
        assert yaml_writer.item(field, value[0]) == yaml_emitter.item(field, value[0])
        for flow in (True, False):
            quick = yaml_writer.block_items(field, value, flow_items=flow)
            assert quick == yaml_emitter.block_items(field, value, flow_items=flow)


@pytest.mark.parametrize(
    "text", ["plain words", "2026-09-26T12:00:00Z", "why, though?", "部署: v1", "it's", ""]
)
def test_everyday_texts_need_no_emitter(text: str) -> None:
    code = (
        "import sys; from openmemex.memory import yaml_writer; "
        "print(yaml_writer.scalar(sys.argv[1])); assert 'yaml' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, text], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == yaml_emitter.scalar(text) + "\n"

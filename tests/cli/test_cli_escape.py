"""What a terminal would act upon is shown, not sent."""

from __future__ import annotations

import json
import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmemex.cli import escape
from openmemex.cli.escape import for_json, one_line, visible

ANY_TEXT = st.text(st.characters(exclude_categories=())) | st.text(
    st.sampled_from("ab é你🤝\x1b\x07\r\n\t\u202e\u200b\u200d\u200c\ufe0f\ud800\udcff\U000e0041\u3164\x9b")
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [red]x[/red] :warning: [/items]", "plain [red]x[/red] :warning: [/items]"),
        ("a\tb\nc", "a\tb\nc"),
        ("windows\r\nline", "windows\nline"),
        ("over\rwrite", "over\\x0dwrite"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x9b31m", "\\x9b31m"),
        ("user\u202egnp.exe", "user\\u202egnp.exe"),
        ("a\u200bb\ufeffc", "a\\u200bb\\ufeffc"),
        ("hidden\U000e0041\U000e0042", "hidden\\U000e0041\\U000e0042"),
        ("bytes \udcff here", "bytes \\xff here"),
        ("lone \ud800", "lone \\ud800"),
        ("pass\u200dword", "pass\\u200dword"),
        ("家族 👨‍👩‍👧 می‌خواهم ❤️", "家族 👨‍👩‍👧 می‌خواهم ❤️"),
        ("❤\ufe0f\ufe00\ufe01", "❤\ufe0f\\ufe00\\ufe01"),
        ("line\u2028sep", "line\\u2028sep"),
    ],
)
def test_odd_characters_stand_as_escapes(text, shown):
    assert visible(text) == shown


@given(ANY_TEXT)
def test_nothing_shown_acts_on_a_terminal_or_hides_in_ascii(text):
    shown = visible(text)
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t"]
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")
    if not re.search("[^\x00-\x7f]", text.replace("\u200c", "").replace("\u200d", "")):
        assert shown.isascii()
    shown.encode("utf-8")


@given(ANY_TEXT)
def test_one_line_is_one_line(text):
    assert len(one_line(text).splitlines()) <= 1


@given(ANY_TEXT)
def test_json_says_the_same_and_hides_nothing(text):
    document = for_json(json.dumps({"text": text}, ensure_ascii=False))
    document.encode("utf-8")
    told = json.loads(document)["text"]
    assert told == "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
    assert not set(document) & set("\x1b\x9b\u202e\u200b\x7f")


def test_the_quick_look_passes_no_character_that_the_pattern_would_escape():
    pattern = escape._pattern()
    every = (chr(code) for code in range(sys.maxunicode + 1))
    assert [
        char for char in every if pattern.search(char) and visible(char) == char and char not in "\t\n"
    ] == []

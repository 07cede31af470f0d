"""A query that is nothing but an accent."""

from __future__ import annotations

from .conftest import Folder, Reader


def test_a_lone_accent_finds_nothing_and_breaks_nothing(personal: Folder, reader: Reader) -> None:
    personal.write("x \u0301 y")
    reader.look(personal)
    assert reader.index.search("\u0301", [personal.home]).hits == ()

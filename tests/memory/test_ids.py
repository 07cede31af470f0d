"""Ids: their one spelling, their parts, their time. An id ends up in a path, so nothing is guessed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmemex.memory.ids import ALPHABET, id_time_ms, is_id, new_id, normal_id_part
from openmemex.memory.reading import time_of_id

A = "01K6AB3XZQ7WVD9J1M2N4P5Q6A"
B = "01K6AB3XZQ7WVD9J1M2N4P5Q6B"


@pytest.mark.parametrize(
    "text",
    [
        "", "../../../etc/hostname", "..\\..\\x", "/etc/hostname", f"{A}/../{B}", f"{A}\0", f" {A}", f"{A} ",
        f"{A}\n",
        A.lower(), A[:-1],
        A + "A", "8" + A[1:], A[:-1] + "I", A[:-1] + "L", A[:-1] + "O", A[:-1] + "U", A[:-1] + "Ａ",
        A[:-1] + "ı", "٠" + A[1:], A[:-1] + "-",
    ],
)  # fmt: skip
def test_only_the_one_spelling_of_26_characters_is_an_id(text: str) -> None:
    assert not is_id(text)


def test_ids_are_ids() -> None:
    assert all(is_id(text) for text in (A, B, "0" * 26, "7" + "Z" * 25))


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (A, A),
        (A.lower(), A),
        ("5q6a", "5Q6A"),
        ("01K6", "01K6"),
        ("Q6A", None),
        ("", None),
        (f" {A}", None),
        (f"{A}\0", None),
        (f"{A}A", None),
        ("../x", None),
        ("ſſſſ", None),
        ("\u212a6AB", None),
        ("5q6u", None),
    ],
)
def test_a_part_of_an_id_in_either_case(text: str, part: str | None) -> None:
    assert normal_id_part(text) == part


@given(st.integers(0, (1 << 48) - 1))
def test_a_new_id_carries_its_time_and_sorts_by_it(moment: int) -> None:
    made = new_id(moment)
    assert is_id(made)
    assert set(made) <= set(ALPHABET)
    assert id_time_ms(made) == moment
    if moment:
        assert new_id(moment - 1)[:10] < made[:10]
    assert len(time_of_id(made)) == len("2026-09-26T12:00:00Z")


def test_ids_made_at_one_moment_differ() -> None:
    assert len({new_id(1) for _ in range(1000)}) == 1000

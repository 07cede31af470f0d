"""Times are instants: many spellings in, one spelling out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmemex.memory.model import now_text, parse_time

NOON = datetime(2026, 9, 26, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "2026-09-26T12:00:00Z",
        " 2026-09-26T12:00:00Z ",
        "2026-09-26t12:00:00z",
        "2026-09-26 12:00:00",
        "2026-09-26T12:00Z",
        "2026-09-26T14:00:00+02:00",
        "2026-09-26T02:00:00.000-1000",
    ],
)
def test_spellings_of_one_instant(text: str) -> None:
    assert parse_time(text) == NOON


def test_a_bare_date_is_midnight_and_a_leap_second_the_one_before_it() -> None:
    assert parse_time("2026-09-26") == NOON - timedelta(hours=12)
    assert parse_time("2016-12-31T23:59:60Z") == datetime(2016, 12, 31, 23, 59, 59, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "now",
        "2026",
        "2026-13-01",
        "26.09.2026",
        "12:00",
        "2026-09-26T25:00:00Z",
        "2026-09-26T12:60:00Z",
        "2026-09-26T12:60Z",
        "\0",
        "١٢",
    ],
)
def test_what_names_no_instant(text: str | None) -> None:
    assert parse_time(text) is None


@given(st.datetimes(), st.integers(-23 * 60, 23 * 60))
def test_what_is_written_has_one_form_and_names_the_same_instant(moment: datetime, offset: int) -> None:
    aware = moment.replace(tzinfo=timezone(timedelta(minutes=offset)))
    text = now_text(aware)
    assert len(text) == len("2026-09-26T12:00:00Z")
    if 1 < moment.year < 9999:
        assert parse_time(text) == aware - timedelta(microseconds=aware.microsecond)
    assert parse_time(text) is not None


def test_times_sort_as_instants_and_not_as_text() -> None:
    early, late = "2026-09-26T23:30:00+02:00", "2026-09-26T22:00:00Z"
    assert early > late
    first, second = parse_time(early), parse_time(late)
    assert first is not None
    assert second is not None
    assert first < second


def test_now_is_now() -> None:
    now = parse_time(now_text())
    assert now is not None
    assert abs(datetime.now(UTC) - now) < timedelta(days=1)

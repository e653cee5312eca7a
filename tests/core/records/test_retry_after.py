"""Retry-After in its two forms, and in none."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest
from hypothesis import given, strategies as st

from keval.plugin import retry_after_seconds


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7.0), (" 1.5 ", 1.5), ("Fri, 01 Jan 1999 00:00:00 GMT", 0.0), ("soon", None), ("", None), (None, None)],
)
def test_a_header_is_read_as_seconds(header: str | None, seconds: float | None) -> None:
    assert seconds == retry_after_seconds(header)


def test_a_date_is_counted_from_now() -> None:
    wait = retry_after_seconds(formatdate(time.time() + 60, usegmt=True))

    assert wait is not None
    assert 55 < wait <= 60


@given(st.text())
def test_no_header_is_too_odd(header: str) -> None:
    wait = retry_after_seconds(header)

    assert wait is None or wait >= 0

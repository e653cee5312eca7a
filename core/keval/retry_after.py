"""The Retry-After header: how long the other side asks to be left alone."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime

__all__ = ["retry_after_seconds"]


def retry_after_seconds(header: str | None) -> float | None:
    """Read a Retry-After header, which holds seconds or a date (RFC 9110, section 10.2.3).

    Returns seconds from now, never negative, and `None` where there is none or it cannot be read.
    """
    text = (header or "").strip()
    if not text:
        return None
    try:
        return float(text) if text[0].isdecimal() else _until(text)
    except (ValueError, OverflowError):
        return None


def _until(date: str) -> float:
    return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())

"""The faults that are to be made, and the share of requests that each hits: a YAML file, or options of a middleware."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal

import attrs

from keval.plugin import read_record

__all__ = ["Fault", "Faults", "read_faults"]

_KINDS = ("status", "drop", "stall_seconds", "content_type", "truncate")
_ROUNDING = 1e-9


def _is_header(instance: object, attribute: attrs.Attribute[Any], value: float | str | None) -> None:
    if isinstance(value, str) and not (value.isascii() and value.isprintable()):
        raise ValueError(f"'{attribute.name}' must be one line of ASCII, as it goes into an HTTP header: {value!r}")


def _is_status(instance: object, attribute: attrs.Attribute[Any], value: int | None) -> None:
    if value is not None and not 400 <= value <= 599:
        raise ValueError(f"'{attribute.name}' must be the HTTP status of a refusal, from 400 to 599: {value}")


def _is_wait(instance: object, attribute: attrs.Attribute[Any], value: float | None) -> None:
    if value is not None and not (0 < value < math.inf):
        raise ValueError(f"'{attribute.name}' must be > 0, and a number of seconds: {value}")


def _is_share(instance: object, attribute: attrs.Attribute[Any], value: float | str) -> None:
    if (share := _share(value)) is None or not 0 <= share <= 1:
        raise ValueError(f"'{attribute.name}' must be a part of all requests, such as 5% or 0.05: {value!r}")


def _share(written: float | str) -> float | None:
    """Return a share as a number; `None` where it is none."""
    if not isinstance(written, str):
        return written
    number = written.strip().removesuffix("%")
    try:
        return float(number) / (100 if number != written.strip() else 1)
    except ValueError:
        return None


@attrs.frozen
class Fault:
    """A fault and the share of requests that it hits (`5%` or 0.05). It is one of these.

    `status`: the request is refused with it, with the header `retry_after` if there is one: seconds, a date, any text.
    `drop`: the connection is closed before the response, or midway. `stall_seconds`: the request waits before it is
    answered. `content_type`: an HTML page comes in place of the answer, called so. `truncate`: the answer ends after
    its first half, as if that were all.
    """

    share: float | str = attrs.field(validator=_is_share)
    status: int | None = attrs.field(default=None, validator=_is_status)
    retry_after: float | str | None = attrs.field(default=None, validator=_is_header)
    drop: Literal["before", "midway"] | None = None
    stall_seconds: float | None = attrs.field(default=None, validator=_is_wait)
    content_type: str | None = attrs.field(default=None, validator=_is_header)
    truncate: bool = False

    def __attrs_post_init__(self) -> None:
        if len(self._kinds) != 1:
            raise ValueError(f"a fault is one of {', '.join(_KINDS)}; give one of them, not {len(self._kinds)}")
        if self.retry_after is not None and self.status is None:
            raise ValueError("'retry_after' must stand beside a status; leave it out, or add the status")

    @property
    def _kinds(self) -> list[str]:
        return [kind for kind in _KINDS if getattr(self, kind) not in (None, False)]

    @property
    def probability(self) -> float:
        """The share as a number."""
        return _share(self.share) or 0.0

    @property
    def retry_after_header(self) -> str | None:
        """The header `Retry-After`."""
        return None if self.retry_after is None else str(self.retry_after).removesuffix(".0")

    def __str__(self) -> str:
        (kind,) = self._kinds
        return kind if self.truncate else f"{kind} {getattr(self, kind)}"


def _sum_to_one(instance: object, attribute: attrs.Attribute[Any], faults: tuple[Fault, ...]) -> None:
    total = sum(fault.probability for fault in faults)
    if total > 1 + _ROUNDING:
        raise ValueError(f"'{attribute.name}' must have shares of at most 100 % together, got {total * 100:.6g} %")


@attrs.frozen
class Faults:
    """What a file of faults has. At most one fault hits a request; `seed` decides which requests are hit."""

    faults: tuple[Fault, ...] = attrs.field(validator=_sum_to_one)
    seed: int = 0


def read_faults(path: Path) -> Faults:
    """Read a file of faults. Raises ConfigError with every problem, each at its place."""
    return read_record(Faults, path, about="a file of faults is a mapping with faults: and, if you like, seed:")

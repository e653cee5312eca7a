"""Terms: the options that every kind of server shares."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

__all__ = ["Isolation", "Terms"]

Isolation: TypeAlias = Literal["condition", "trial"]


@attrs.frozen
class Terms:
    """How a server is offered to the agents; the times are seconds."""

    tap: bool
    isolation: Isolation
    startup_timeout: float
    timeout: float
    instructions: str

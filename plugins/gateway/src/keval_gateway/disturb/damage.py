"""What faults do to responses, whether the gateway makes them or the middleware."""

from __future__ import annotations

from keval_gateway.chat import ModelFault

__all__ = ["PAGE", "first_half", "refusal"]

PAGE = b"<!doctype html><title>Bad gateway</title><p>An HTML page in place of an answer (disturb)."


def refusal(status: int) -> ModelFault:
    """Return the refusal that a fault with this HTTP status amounts to."""
    return ModelFault(status, f"refused on purpose with HTTP {status} (disturb)")


def first_half(body: bytes) -> bytes:
    """Return what is left of a body that is truncated or breaks off."""
    return body[: len(body) // 2]

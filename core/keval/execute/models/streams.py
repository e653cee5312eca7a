"""Replies as they pass: the tokens of those that tell none, and what a stream says after it has begun."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable

import orjson

from keval.errors import ModelError, TrialError
from keval.execute.models.denials import read_refusal, reported_failure
from keval.records.models import ModelRequest, ModelResponse
from keval.records.usage import BYTES_PER_TOKEN, Usage

_LONGEST_COUNT = 64
"""Bytes of a chunk that are looked at again with the next one, as a count may be split."""
_COUNT = re.compile(rb'"(total_?tokens|totalTokenCount|input_tokens|output_tokens)"\s*:\s*(\d{1,12})', re.IGNORECASE)
_TOTALS = (b"total_tokens", b"totaltokens", b"totaltokencount")

_AROUND_TOKEN = 400
"""Bytes of an event that stand around a piece of text, of which most have one token."""
_LONGEST_ERROR = 20_000
"""Bytes of a line in which an error is looked for."""


def follow(
    response: ModelResponse,
    asked: int,
    passed: Callable[[int], object],
    failed: Callable[[TrialError], object],
    denied: Callable[[str], Awaitable[object]],
) -> None:
    """Watch a stream as it is read.

    `passed` is told about how many tokens it had with its request, of as many bytes as `asked`, even if nobody reads
    on; `failed`, why keval reads no further; and `denied`, an error after which asking again is useless.
    """
    arriving = response.chunks

    async def followed() -> AsyncIterator[bytes]:
        size = events = 0
        rest = b""
        try:
            async for chunk in arriving:
                size += len(chunk)
                events += chunk.count(b"data:")
                lines, _, rest = (rest + chunk).rpartition(b"\n")
                # A line that never ends must not fill the memory.
                rest = rest[-_LONGEST_ERROR:]
                if b"error" in lines and (refused := _denial(lines)):
                    await denied(refused)
                yield chunk
        # The endpoint broke it off, which the agent's client notices by itself.
        except ModelError:
            raise
        except TrialError as error:
            failed(error)
            raise
        finally:
            passed(events + (asked + max(0, size - events * _AROUND_TOKEN)) // BYTES_PER_TOKEN)

    response.chunks = followed()


def _denial(lines: bytes) -> str | None:
    """Return the first error in the lines of a stream after which asking again is useless."""
    for line in lines.splitlines():
        if b"error" not in line:
            continue
        try:
            event = orjson.loads(line.removeprefix(b"data:"))
        except ValueError:
            continue
        if isinstance(event, dict) and (found := reported_failure(event)):
            body, status = found
            refusal = read_refusal(status, body)
            if refusal.certain:
                return f"HTTP {status}: {refusal.text}; {refusal.remedy}"
    return None


def counting(request: ModelRequest, response: ModelResponse, spent: Callable[[int], object]) -> None:
    """Let `spent` be told the tokens of a response when all of it is read: as it tells them, or estimated."""
    arriving = response.chunks

    async def counted() -> AsyncIterator[bytes]:
        told: dict[bytes, int] = {}
        size, tail = len(request.body), b""
        try:
            async for chunk in arriving:
                size += len(chunk)
                tail = tail[-_LONGEST_COUNT:] + chunk
                # The largest: counts of a stream grow, and where chunks overlap they are found twice.
                for name, count in _COUNT.findall(tail):
                    told[name.lower()] = max(told.get(name.lower(), 0), int(count))
                yield chunk
        finally:
            # Anthropic's API tells input and output, and no total.
            total = next((told[name] for name in _TOTALS if name in told), None)
            spent(Usage(total or sum(told.values())).of_reply.input_tokens or size // BYTES_PER_TOKEN)

    response.chunks = counted()

"""Faults on purpose: what the options of `disturb` may say, which requests are hit, and what a client meets."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from keval.errors import ModelError
from keval.records.models import Asker, ModelRequest, ModelResponse, Next
from keval_gateway.disturb import Disturb, Fault
from tests.conftest import Project

WRONG = {
    "[{status: 429, shar: 5%}]": ["unknown key 'shar'; did you mean 'share'?"],
    "[], speed: 3": ["unknown key 'speed'; did you mean 'seed'?"],
    "[{status: 429, share: 60%}, {drop: before, share: 0.5}]": ["'faults' must have shares of at"],
    "[{status: 429, share: much}]": ["'share' must be a part of all requests, such as 5% or 0.05"],
    "[{status: 429, share: 5}]": ["'share' must be a part of all requests, such as 5% or 0.05: 5"],
    "[{status: 200, share: 5%}]": ["'status' must be the HTTP status of a refusal, from 400 to"],
    "[{status: 429, drop: before, share: 5%}]": ["a fault is one of status, drop, stall_seconds"],
    "[{share: 5%}]": ["a fault is one of status, drop, stall_seconds"],
    "[{drop: after, share: 5%}]": ["expected before or midway, got 'after'"],
    "[{drop: before, retry_after: 1, share: 5%}]": ["'retry_after' must stand beside a status"],
    '[{status: 429, retry_after: "1\\r\\nx: y", share: 5%}]': ["'retry_after' must be one line of"],
    "[{stall_seconds: 0, share: 5%}]": ["'stall_seconds' must be > 0"],
    "[], path: faults.yaml": ["unknown key 'path'"],
    "": ["5:23: expected a list, got nothing"],
}


@pytest.mark.parametrize("faults", WRONG)
def test_wrong_faults_are_told_with_their_places_before_the_run(project: Project, faults: str) -> None:
    project.write(
        eval_yaml=f"""
            dataset: {{path: questions.jsonl}}
            agents: {{openai: {{model: simulated/any}}}}
            metrics: [basic/turns]
            middleware:
              - disturb: {{faults: {faults}}}
            """,
        questions_jsonl='{"question": "How?"}\n',
    )

    outcome = project.keval("validate", "eval.yaml")

    assert (2, True) == (outcome.code, "eval.yaml:5:" in outcome.stderr), outcome.stderr
    assert [True] * len(WRONG[faults]) == [problem in outcome.stderr for problem in WRONG[faults]], outcome.stderr


def test_the_faults_of_a_request_are_the_same_in_whatever_order_requests_come() -> None:
    faults = (Fault("5%", status=429), Fault(0.02, status=500), Fault("1 %", drop="before"))
    requests = [f"{number}".encode() for number in range(5_000)] * 4
    rng = random.Random(1)

    def drawn(seed: int) -> dict[bytes, list[Fault | None]]:
        draw, found = Disturb(faults, seed), dict[bytes, list[Fault | None]]()
        for request in requests:
            found.setdefault(request, []).append(draw.fault(request))
        return found

    in_order, other = drawn(3), drawn(4)
    rng.shuffle(requests)
    shuffled = drawn(3)

    assert in_order == shuffled != other
    made = Counter(fault for each in in_order.values() for fault in each)
    for fault, expected in zip(faults, (1_000, 400, 200), strict=True):
        assert abs(made[fault] - expected) < 5 * expected**0.5  # five times the standard deviation
    # A request that is repeated meets a fault of its own.
    assert 4 < len({tuple(each) for each in in_order.values()})


ANSWER = b'{"answer": "It is mild."}'
REQUEST = ModelRequest("m", "openai-chat", "POST", "/chat/completions", {}, b"{}", Asker("agent", "one", "t", 1))
MET: Mapping[str, tuple[Fault, Any]] = {
    "seconds": (Fault(1, status=429, retry_after=2), (429, "2", "application/json", True)),
    "a fraction": (Fault(1, status=503, retry_after=0.5), (503, "0.5", "application/json", True)),
    "a date": (
        Fault(1, status=529, retry_after="Wed, 21 Oct 2026 07:28:00 GMT"),
        (529, "Wed, 21 Oct 2026 07:28:00 GMT", "application/json", True),
    ),
    "absurd": (Fault(1, status=500, retry_after="in a while"), (500, "in a while", "application/json", True)),
    "without": (Fault(1, status=500), (500, None, "application/json", True)),
    "a page": (Fault(1, content_type="text/html"), (200, None, "text/html", False)),
    "truncated": (Fault(1, truncate=True), (200, None, "application/json", False)),
    "dropped": (Fault(1, drop="before"), "the connection was closed before the response (disturb)"),
    "broken off": (Fault(1, drop="midway"), "the connection was closed midway (disturb)"),
    "stalled": (Fault(1, stall_seconds=0.01), (200, None, "application/json", True)),
}


@pytest.mark.parametrize("case", MET)
def test_a_request_meets_the_fault_that_is_drawn(case: str) -> None:
    fault, wanted = MET[case]
    asked: list[ModelRequest] = []

    async def send(request: ModelRequest) -> ModelResponse:
        asked.append(request)
        return ModelResponse.of(200, {"content-type": "application/json"}, ANSWER)

    assert wanted == asyncio.run(met(Disturb((fault,)), send))
    # The endpoint is asked only where something of the answer is used.
    assert (1 if case in ("truncated", "broken off", "stalled") else 0) == len(asked)


async def met(middleware: Disturb, send: Next) -> Any:
    """The status, headers and whether the body is JSON, or how the body ended."""
    response = await middleware.handle(REQUEST, send)
    try:
        body = await response.read()
    except ModelError as error:
        return str(error)
    try:
        json.loads(body)
        readable = True
    except ValueError:
        readable = False
    return response.status, response.headers.get("retry-after"), response.headers["content-type"], readable

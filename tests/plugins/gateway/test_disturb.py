"""Faults on purpose: what a file of faults may say, which requests are hit, and what a client meets."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from keval_gateway import ChatReply, ChatRequest
from keval_gateway.app import build_app
from keval_gateway.command import gateway
from keval_gateway.disturb import Draw, Fault, Faults
from keval_loopback.serving import serve
from tests.conftest import Project

WRONG = {
    "faults:\n  - {status: 429, shar: 5%}": ["2:19: unknown key 'shar'; did you mean 'share'?", "the key 'share' is"],
    "faults: []\nspeed: 3": ["2:1: unknown key 'speed'; did you mean 'seed'?"],
    "faults:\n  - {status: 429, share: 60%}\n  - {drop: before, share: 0.5}": ["2:3: 'faults' must have shares of at"],
    "faults:\n  - {status: 429, share: much}": ["2:26: 'share' must be a part of all requests, such as 5% or 0.05"],
    "faults:\n  - {status: 429, share: 5}": ["2:26: 'share' must be a part of all requests, such as 5% or 0.05: 5"],
    "faults:\n  - {status: 200, share: 5%}": ["2:14: 'status' must be the HTTP status of a refusal, from 400 to"],
    "faults:\n  - {status: 429, drop: before, share: 5%}": ["2:5: a fault is one of status, drop, stall_seconds"],
    "faults:\n  - {share: 5%}": ["2:5: a fault is one of status, drop, stall_seconds"],
    "faults:\n  - {drop: after, share: 5%}": ["2:12: expected before or midway, got 'after'"],
    "faults:\n  - {drop: before, retry_after: 1, share: 5%}": ["2:33: 'retry_after' must stand beside a status"],
    'faults:\n  - {status: 429, retry_after: "1\\r\\nx: y", share: 5%}': ["2:32: 'retry_after' must be one line of"],
    "faults:\n  - {stall_seconds: 0, share: 5%}": ["2:21: 'stall_seconds' must be > 0"],
    "seed: 3": ["the key 'faults' is missing"],
    "- status": ["1:1: a file of faults is a mapping with faults:"],
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_file_is_told_with_the_place_of_each_error(text: str, tmp_path: Path) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text(text, encoding="utf-8")

    result = CliRunner().invoke(gateway, ["--responder=scripted", f"--disturb={path}"])

    assert 2 == result.exit_code
    assert [True] * len(WRONG[text]) == [problem in result.output for problem in WRONG[text]], result.output
    assert f"{path}:" in result.output


WITHIN = {
    "{path: faults.yaml}": "/faults.yaml:2:5: a fault is one of status, drop,",
    "{faults: [{share: 5%}]}": "eval.yaml:5:24: a fault is one of status, drop,",
    "{}": "give `path:` of a file of faults, or `faults:` themselves, one of the two",
    "{path: faults.yaml, faults: [{drop: before, share: 5%}]}": "one of the two",
    "{path: nowhere.yaml}": "/nowhere.yaml: cannot be read:",
}


@pytest.mark.parametrize("options", WITHIN)
def test_wrong_options_of_the_middleware_are_told_before_the_run(project: Project, options: str) -> None:
    project.write(
        eval_yaml=f"""
            dataset: {{path: questions.jsonl}}
            agents: {{openai: {{model: simulated/any}}}}
            metrics: [basic/turns]
            middleware:
              - disturb: {options}
            """,
        questions_jsonl='{"question": "How?"}\n',
        faults_yaml="faults:\n  - {share: 5%}\n",
    )

    outcome = project.keval("validate", "eval.yaml")

    assert (2, True, True) == (outcome.code, "eval.yaml:5:" in outcome.stderr, WITHIN[options] in outcome.stderr)


def test_the_faults_of_a_request_are_the_same_in_whatever_order_requests_come() -> None:
    faults = Faults((Fault("5%", status=429), Fault(0.02, status=500), Fault("1 %", drop="before")), seed=3)
    requests = [f"{number}".encode() for number in range(5_000)] * 4
    rng = random.Random(1)

    def drawn(draw: Draw) -> dict[bytes, list[str]]:
        found: dict[bytes, list[str]] = {}
        for request in requests:
            found.setdefault(request, []).append(str(draw.fault(request)))
        return found

    first, other = Draw(faults), drawn(Draw(Faults(faults.faults, seed=4)))
    in_order = drawn(first)
    rng.shuffle(requests)
    shuffled = drawn(Draw(faults))

    assert in_order == shuffled != other
    for fault, expected in zip(faults.faults, (1_000, 400, 200), strict=True):
        assert abs(first.made[str(fault)] - expected) < 5 * expected**0.5  # five times the standard deviation
    # A request that is repeated meets a fault of its own.
    assert 4 < len({tuple(each) for each in in_order.values()})


ANSWER = "It is mild." * 20
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
    "dropped": (Fault(1, drop="before"), httpx.RemoteProtocolError),
    "broken off": (Fault(1, drop="midway"), httpx.RemoteProtocolError),
    "stalled": (Fault(1, stall_seconds=0.01), (200, None, "application/json", True)),
}


@pytest.mark.parametrize("case", MET)
def test_a_client_meets_the_fault_that_is_drawn(case: str) -> None:
    fault, wanted = MET[case]
    asked: list[ChatRequest] = []

    def respond(request: ChatRequest) -> ChatReply:
        asked.append(request)
        return ChatReply(ANSWER)

    async def scenario() -> Sequence[Any]:
        draw = Draw(Faults((fault,)))
        async with serve(build_app(respond, disturb=draw)) as base, httpx.AsyncClient() as client:
            met = [await ask(client, base, stream=stream) for stream in (False, True)]
            assert {str(fault): 2} == draw.made
            return met

    whole, streamed = asyncio.run(scenario())

    assert wanted == whole
    if isinstance(wanted, type):
        assert wanted == streamed
    else:
        assert wanted[:2] == streamed[:2]
    # Who answers is asked only where something of the answer is used.
    assert (2 if case in ("truncated", "broken off", "stalled") else 0) == len(asked)


async def ask(client: httpx.AsyncClient, base: str, *, stream: bool) -> Any:
    """Ask once: the status, headers and whether the body is JSON, or the class of the error."""
    body = {"model": "m", "stream": stream, "messages": [{"role": "user", "content": "How is it?"}]}
    try:
        response = await client.post(f"{base}/openai/v1/chat/completions", json=body)
    except httpx.TransportError as error:
        return type(error)
    try:
        response.json()
        readable = True
    except ValueError:
        readable = False
    kind = response.headers["content-type"].partition(";")[0]
    return response.status_code, response.headers.get("retry-after"), kind, readable

"""The exchange: middleware in its order, who asks, which headers go on, and whose fault an error is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

import attrs
import pytest

from keval.config.evaluation import Retry
from keval.errors import MiddlewareError, PluginWarning, TrialError
from keval.execute.models.exchange import ModelExchange
from keval.execute.models.gate import RequestScope
from keval.plugin import Endpoint, ModelError, ModelRequest, ModelResponse, Next, Wire
from keval.records.cassettes import ModelTraffic, Traffic
from keval.records.models import ASKER_HEADER, Asker
from keval.records.usage import Usage
from keval.redaction import Redactor
from keval.seams.request_log import RequestLog
from keval_replay.recorder import Recorder
from tests.conftest import Project

ROUTE = Asker("agent", "a")
ONCE = Retry(max_request_attempts=1)
TRIAL = Asker("agent", "a", "a/baseline/s1/1", 1, 2)
REAL = Endpoint("m", {"openai-chat": "http://127.0.0.1:1/v1"}, "sk-canary")
SIMULATED = attrs.evolve(REAL, simulated=True, wants_trial=True)
TRIAL_HEADERS = {"x-keval-trial": "t", "x-keval-repetition": "1", "x-keval-resample": "2"}


@attrs.frozen
class Noting:
    """Notes when a request goes in and when its response comes out."""

    name: str
    notes: list[str]

    async def handle(self, request: ModelRequest, next: Next) -> ModelResponse:
        self.notes.append(f"{self.name} in")
        response = await next(request)
        self.notes.append(f"{self.name} out")
        return response


@attrs.define
class NotedRequests(RequestLog):
    """Notes the body of each request that is passed on, and why requests were not answered."""

    bodies: list[bytes] = attrs.field(factory=list)
    faults: list[TrialError] = attrs.field(factory=list)

    def relayed(self, body: bytes) -> None:
        self.bodies.append(body)

    def failed(self, error: TrialError) -> None:
        self.faults.append(error)


@attrs.frozen
class Raising:
    """Asks, and fails; `of_its_own` where what the model's side raised is not passed on."""

    error: Exception
    of_its_own: bool = False

    async def handle(self, request: ModelRequest, next: Next) -> ModelResponse:
        try:
            await next(request)
        except ModelError:
            if not self.of_its_own:
                raise
        raise self.error


class Nothing:
    async def handle(self, request: ModelRequest, next: Next) -> ModelResponse:
        return None  # type: ignore[return-value]


def pass_on(
    middleware: Mapping[str, Any],
    headers: Mapping[str, str] | None = None,
    endpoint: Endpoint = REAL,
    *,
    known: bool = False,
    fails: Exception | None = None,
) -> ModelRequest:
    """Send one request, on behalf of a trial if that is `known`, and return it as it arrives."""
    arrived: list[ModelRequest] = []

    async def send(request: ModelRequest) -> ModelResponse:
        arrived.append(request)
        if fails is not None:
            raise fails
        return ModelResponse.of(200, {}, b"")

    async def scenario() -> None:
        exchange = ModelExchange(middleware, ONCE)
        route = exchange.route(ROUTE, endpoint)
        async with exchange.request_scope(TRIAL, RequestScope()) as told:
            own = told if known else {ASKER_HEADER: "of another run"}
            request = ModelRequest("m", "openai-chat", "POST", "/chat/completions", {**(headers or {}), **own}, b"")
            await route.exchange(request, send)

    asyncio.run(scenario())
    return arrived[-1]


def test_the_first_middleware_is_the_outermost() -> None:
    notes: list[str] = []

    pass_on({name: Noting(name, notes) for name in ("one", "two")})

    assert ["one in", "two in", "two out", "one out"] == notes


def test_who_asks_is_known_by_a_header_and_otherwise_as_far_as_the_route_tells() -> None:
    middleware = {"noting": Noting("n", [])}

    assert (TRIAL, ROUTE) == (pass_on(middleware, known=True).asker, pass_on(middleware).asker)


@pytest.mark.parametrize("metered", [True, False])
@pytest.mark.parametrize("fails", ["without an answer", "with a status"])
def test_only_where_a_proxy_counts_replies_a_failed_request_is_noted(fails: str, metered: bool) -> None:
    requests = NotedRequests()
    exchange = ModelExchange(retry=ONCE)
    route = exchange.route(ROUTE, REAL, metered=metered, sole=metered)

    async def send(request: ModelRequest) -> ModelResponse:
        if fails == "without an answer":
            raise ModelError("nothing there")
        return ModelResponse.of(400, {}, b"not so")

    async def scenario() -> None:
        async with exchange.request_scope(TRIAL, RequestScope(requests=requests)) as told:
            with suppress(ModelError):
                await route.exchange(ModelRequest("m", "openai-chat", "POST", "/chat/completions", told, b""), send)

    asyncio.run(scenario())

    assert ([None if fails == "without an answer" else 400] if metered else []) == [
        error.status for error in requests.faults if isinstance(error, ModelError)
    ]


def test_what_breaks_a_redirect_off_is_no_failure_of_a_later_request() -> None:
    requests = NotedRequests()

    async def too_large() -> AsyncIterator[bytes]:
        yield b"data: {}\n\n"
        raise TrialError("too large", kind="reply_too_large")

    redirect = ModelResponse(302, {"content-type": "text/event-stream"}, too_large())
    responses = [redirect, ModelResponse.of(200, {}, b"{}")]

    async def send(request: ModelRequest) -> ModelResponse:
        return responses.pop(0)

    async def scenario() -> None:
        exchange = ModelExchange(retry=ONCE)
        route = exchange.route(ROUTE, REAL, metered=True)
        assert route.meter is not None
        async with exchange.request_scope(TRIAL, RequestScope(requests=requests)) as told:
            # the same object, as another one may have its identity later
            request = ModelRequest("m", "openai-chat", "POST", "/chat/completions", told, b"")
            with pytest.raises(TrialError, match="too large"):
                await (await route.exchange(request, send)).read()
            await route.exchange(request, send)
            route.meter(request, Usage(1, 1), None)

    asyncio.run(scenario())

    assert [] == requests.faults


def test_a_recorded_run_warns_once_of_an_agent_whose_requests_belong_to_no_trial() -> None:
    recorder = Recorder(Redactor())
    exchange = ModelExchange(traffic=recorder)
    route = exchange.route(ROUTE, SIMULATED)
    asked: list[Traffic] = []

    async def send(request: ModelRequest) -> ModelResponse:
        return ModelResponse.of(200, {}, b"")

    async def scenario() -> None:
        with recorder.attempt(TRIAL, lambda: None) as traffic:
            async with exchange.request_scope(TRIAL, RequestScope(traffic=traffic)) as told:
                for headers in ({}, told, {}):
                    await route.exchange(ModelRequest("m", "openai-chat", "POST", "/", headers, b""), send)
            asked.extend(traffic.log.traffic())

    with pytest.warns(PluginWarning) as warned:
        asyncio.run(scenario())

    told = "the agent 'a' sends model requests without Context.model_headers; they are not recorded"
    assert [told] == [str(each.message) for each in warned]
    assert [TRIAL] == [each.asker for each in asked if isinstance(each, ModelTraffic)]


def test_a_header_is_worth_nothing_when_its_trial_is_over() -> None:
    exchange = ModelExchange({"noting": Noting("n", [])})
    route = exchange.route(ROUTE, REAL)

    async def send(request: ModelRequest) -> ModelResponse:
        assert ROUTE == request.asker
        return ModelResponse.of(200, {}, b"")

    async def scenario() -> None:
        async with exchange.request_scope(TRIAL, RequestScope()) as told:
            pass
        await route.exchange(ModelRequest("m", "openai-chat", "POST", "/", told, b""), send)

    asyncio.run(scenario())


def test_requests_with_keys_of_nobody_are_counted_in_a_warning_at_the_end() -> None:
    exchange = ModelExchange({"noting": Noting("n", [])})
    route = exchange.route(ROUTE, REAL)

    found = [route.find_key(key) for key in ("guess", "")]

    with pytest.warns(PluginWarning, match="requests to the model of the agent 'a' refused: 2; its key is"):
        asyncio.run(exchange.aclose())
    assert [None, None] == found


@pytest.mark.parametrize(
    ("wire", "other", "asks"),
    [
        ("openai-chat", "/models", "/chat/completions"),
        ("openai-responses", "/responses/input_tokens", "/responses"),
        ("anthropic", "/v1/messages/count_tokens?beta=true", "/v1/messages?beta=true"),
        ("gemini", "/v1beta/models/m:countTokens", "/v1beta/models/m:streamGenerateContent?alt=sse"),
    ],
)
def test_only_requests_that_ask_the_model_to_write_are_told_to_the_trial(wire: Wire, other: str, asks: str) -> None:
    async def send(request: ModelRequest) -> ModelResponse:
        return ModelResponse.of(200, {}, b"")

    async def scenario() -> list[bytes]:
        requests = NotedRequests()
        exchange = ModelExchange({"noting": Noting("n", [])}, ONCE)
        route = exchange.route(ROUTE, REAL)
        async with exchange.request_scope(TRIAL, RequestScope(requests=requests)) as told:
            for path in (other, asks):
                await route.exchange(ModelRequest("m", wire, "POST", path, told, path.encode()), send)
        return requests.bodies

    assert [asks.encode()] == asyncio.run(scenario())


def test_where_no_requests_pass_nobody_is_told_who_asks() -> None:
    async def scenario() -> dict[str, str]:
        async with ModelExchange().request_scope(TRIAL, RequestScope()) as told:
            return told

    assert {} == asyncio.run(scenario())


@pytest.mark.parametrize(("endpoint", "kept"), [(REAL, {}), (SIMULATED, TRIAL_HEADERS)])
def test_a_model_gets_the_headers_of_the_trial_where_it_wants_them(endpoint: Endpoint, kept: dict[str, str]) -> None:
    arrived = pass_on({"noting": Noting("n", [])}, {**TRIAL_HEADERS, "x-other": "1"}, endpoint, known=True)

    assert {**kept, "x-other": "1"} == arrived.headers


@pytest.mark.parametrize(
    ("inner", "told"),
    [
        (Raising(ValueError("out of order")), "the middleware 'inner' failed: ValueError: out of order"),
        (Nothing(), "the middleware 'inner' returned no ModelResponse: None"),
    ],
)
def test_the_middleware_that_fails_is_named(inner: Any, told: str) -> None:
    with pytest.raises(MiddlewareError) as caught:
        pass_on({"outer": Noting("o", []), "inner": inner})

    assert told == str(caught.value)


def test_an_endpoint_that_cannot_be_reached_is_no_middlewares_fault() -> None:
    unreachable = ModelError("nobody listens")

    with pytest.raises(ModelError) as caught:
        pass_on({"outer": Noting("o", []), "inner": Raising(ValueError("not asked"))}, fails=unreachable)

    assert unreachable is caught.value


def test_an_error_that_a_middleware_makes_of_another_is_its_own() -> None:
    own = Raising(ModelError("I give up"), of_its_own=True)

    with pytest.raises(MiddlewareError, match="the middleware 'inner' failed: ModelError: I give up"):
        pass_on({"outer": Noting("o", []), "inner": own}, fails=ModelError("nobody listens"))


def test_all_agents_of_a_run_share_one_proxy_and_none_has_the_key(project: Project) -> None:
    project.write(
        eval_yaml="""
        dataset: {path: questions.jsonl}
        agents:
          one: {type: double/proxied, model: openai/gpt-test}
          two: {type: double/proxied, model: google/gemini-test}
        conditions: {baseline: {}}
        metrics: [double/length]
        middleware: [double/retrying]
        """,
        questions_jsonl='{"id": "a", "question": "How?"}\n',
    )

    outcome = project.keval("run", "eval.yaml", env={"OPENAI_API_KEY": "short", "GEMINI_API_KEY": "brief"})

    said = [line["output"].split(" ", 3) for line in project.lines("trials.jsonl")]
    addresses = [url.split("/") for _, url, _, _ in said]
    assert 0 == outcome.code, outcome.stderr
    assert [["127.0.0.1"]] * 2 == [[address[2].partition(":")[0]] for address in addresses]
    assert (1, 2) == (len({address[2] for address in addresses}), len({address[3] for address in addresses}))
    # A key this short would not be taken out of what is written.
    assert [("[secret]", "['x-keval-asker']")] * 2 == [(key, headers) for _, _, key, headers in said]

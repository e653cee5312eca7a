"""Tapes: which recorded exchange answers which request, in which order they end, and what servers say meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import orjson
import pytest

from keval.errors import ModelError, TrialError
from keval.records.cassettes import ModelTraffic, ReplayMissError, ServerTraffic, Traffic, TrafficError
from keval.records.models import Asker, ModelRequest, ModelResponse
from keval.records.transcript import Refusal
from keval.records.trial import Failure
from keval_replay.cassette import AttemptCassette
from keval_replay.recording import RecordedAttempt
from keval_replay.request_comparison import canonical

ASKER = Asker("agent", "a", "a/b/c/1", 1, 1)
LATE = Failure("agent", "timeout", "no answer within 60 s")


def request(text: str) -> ModelRequest:
    body = orjson.dumps({"messages": [{"role": "user", "content": text}]})
    return ModelRequest("m", "openai-chat", "POST", "/chat/completions", {}, body, ASKER)


def asked(text: str, began: int, ended: int | None, *, chunks: Sequence[bytes] = (), **more: Any) -> ModelTraffic:
    came: dict[str, Any] = {"status": 200, "headers": {}, "chunks": chunks or (text.encode(),)}
    if ended is None:
        came = {"error": TrafficError("abandoned")}
    return ModelTraffic(ASKER, request(text), began=began, ended=ended, **{**came, **more})


def called(tool: str, began: int, ended: int | None, **more: Any) -> ServerTraffic:
    params = {"name": tool, "arguments": more.pop("arguments", {})}
    given = {"result": {"text": tool}, **more}
    return ServerTraffic("s", "call", "tools/call", params, began=began, ended=ended, **given)


def told(began: int, **more: Any) -> ServerTraffic:
    return ServerTraffic("s", "told", "notifications/message", {"n": began}, began=began, ended=began + 1, **more)


async def unsent(request: ModelRequest) -> ModelResponse:
    raise AssertionError("a request was sent")


@attrs.define
class Attempt:
    """A cassette, and what happened to the attempt that it plays."""

    cassette: AttemptCassette
    expired: asyncio.Event
    heard: list[Any] = attrs.field(factory=list)

    async def ask(self, text: str) -> str:
        response = await self.cassette.ask(request(text), unsent, lambda body: None)
        return (await response.read()).decode()

    async def call(self, tool: str, **arguments: Any) -> Any:
        return await self.play("call", "tools/call", {"name": tool, "arguments": arguments})

    async def play(self, kind: Any, method: str, params: Mapping[str, Any]) -> Any:
        return (await self.cassette.server("s").play(kind, method, params, self.deliver)).result

    async def deliver(self, traffic: ServerTraffic) -> Any:
        self.heard.append((traffic.kind, traffic.began))
        return {"answer": 42} if traffic.kind == "asked" else None


def attempt(*traffic: Traffic, **became: Any) -> Attempt:
    expired = asyncio.Event()
    recorded = RecordedAttempt(traffic, **became)
    cassette = AttemptCassette(recorded, canonical, lambda data: data, expired.set)
    return Attempt(cassette, expired)


def test_parallel_exchanges_end_in_the_recorded_order() -> None:
    async def play() -> list[str]:
        ended: list[str] = []
        one = attempt(asked("a", 1, 8), asked("b", 2, 6), called("t", 3, 7), called("u", 4, 5))

        async def end(name: str, work: Any) -> None:
            await work
            ended.append(name)

        work = [end("a", one.ask("a")), end("b", one.ask("b")), end("t", one.call("t")), end("u", one.call("u"))]
        async with asyncio.timeout(0.9):
            await asyncio.gather(*work)
        return ended

    assert ["u", "b", "t", "a"] == asyncio.run(play())


def test_an_exchange_waits_no_longer_for_one_that_never_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keval_replay.cassette.ORDER_WAIT_SECONDS", 0.01)
    one = attempt(asked("a", 1, 4), called("t", 2, 3))

    assert "a" == asyncio.run(one.ask("a"))


def test_a_request_takes_the_next_recorded_one_or_one_that_overlapped_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keval_replay.cassette.ORDER_WAIT_SECONDS", 0.01)

    async def play() -> tuple[str, str]:
        one = attempt(asked("a", 1, 4), asked("b", 2, 3), asked("c", 5, 6))
        overlapped = await one.ask("b")
        with pytest.raises(ReplayMissError, match=r"message 1 \(user\)"):
            await one.ask("c")
        assert one.expired.is_set()
        with pytest.raises(ReplayMissError, match=r"message 1"):  # whatever is asked afterwards
            await one.ask("a")
        assert one.cassette.missed is not None
        return overlapped, one.cassette.missed.kind

    assert ("b", "replay_miss") == asyncio.run(play())


def test_what_is_asked_after_the_end_is_a_miss() -> None:
    async def play() -> None:
        one = attempt(asked("a", 1, 2), called("t", 3, 4))
        await one.ask("a")
        with pytest.raises(ReplayMissError, match="no more requests to m"):
            await one.ask("a")

    asyncio.run(play())


def test_a_call_with_other_arguments_is_a_miss_that_names_them() -> None:
    async def play() -> None:
        with pytest.raises(ReplayMissError, match=r"(?s)call of `t`.*-.*Rome.*\+.*Oslo"):
            await attempt(called("t", 1, 2, arguments={"city": "Rome"})).call("t", city="Oslo")
        with pytest.raises(ReplayMissError, match="`u` is called, but the recording has a call of `t`"):
            await attempt(called("t", 1, 2)).call("u")
        with pytest.raises(ReplayMissError, match="no further call of `t`"):
            await attempt().call("t")

    asyncio.run(play())


@pytest.mark.parametrize(
    ("error", "raised", "text"),
    [
        (TrafficError("unreachable", "no answer", "connection"), ModelError, "no answer"),
        (TrafficError("failed", "too large", "reply_too_large", details={"retryable": True}), TrialError, "too large"),
        (TrafficError("broken", "cut", details={"type": "ReadError"}), Exception, "cut"),
    ],
)
def test_an_error_is_raised_as_it_was(error: TrafficError, raised: type[Exception], text: str) -> None:
    one = attempt(asked("a", 1, 2, status=None, chunks=(b"",), error=error))

    with pytest.raises(raised, match=text) as caught:
        asyncio.run(one.ask("a"))
    assert error.details.get("type", type(caught.value).__name__) == type(caught.value).__name__


def test_a_response_breaks_off_where_it_broke_off() -> None:
    async def play() -> list[bytes]:
        error = TrafficError("broken", "cut", details={"type": "ReadError"})
        one = attempt(asked("a", 1, 2, chunks=(b"x", b"y"), error=error))
        response = await one.cassette.ask(request("a"), unsent, lambda body: None)
        read = [await anext(response.chunks), await anext(response.chunks)]
        with pytest.raises(Exception, match="cut"):
            await anext(response.chunks)
        return read

    assert [b"x", b"y"] == asyncio.run(play())


@pytest.mark.parametrize("abandoned", [True, False])
def test_an_attempt_that_was_late_ends_when_nothing_else_is_left(abandoned: bool) -> None:
    async def play() -> bool:
        last = [asked("b", 4, None)] if abandoned else []
        one = attempt(asked("a", 1, 3), *last, failure=LATE)
        await one.ask("a")
        waiting = asyncio.create_task(one.ask("b"))
        async with asyncio.timeout(5):
            await one.expired.wait()
        waiting.cancel()
        one.cassette.close()
        return one.cassette.missed is None

    assert asyncio.run(play())


def test_what_was_abandoned_otherwise_waits_until_it_is_given_up() -> None:
    async def play() -> bool:
        one = attempt(asked("a", 1, None))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await one.ask("a")
        return one.expired.is_set()

    assert not asyncio.run(play())


def test_what_a_server_says_comes_before_what_followed_it() -> None:
    async def play() -> list[Any]:
        one = attempt(
            told(1),
            called("t", 3, 8),
            told(4, during=3),
            ServerTraffic("s", "asked", "elicitation/create", {}, {"answer": 42}, began=6, ended=7),
            told(9),
            asked("a", 11, 12),
            told(13),
        )
        one.cassette.server("s").hear(one.deliver)
        await one.call("t")
        one.heard.append("answered")
        await one.ask("a")
        return one.heard

    assert [("told", 1), ("told", 4), ("asked", 6), ("told", 9), "answered", ("told", 13)] == asyncio.run(play())


def test_another_answer_to_a_server_is_a_miss() -> None:
    async def play() -> Any:
        question = ServerTraffic("s", "asked", "elicitation/create", {}, {"answer": 43}, began=2, ended=3)
        one = attempt(called("t", 1, 4), question)
        one.cassette.server("s").hear(one.deliver)
        await one.call("t")
        return str(one.cassette.missed)

    assert "asked for elicitation/create, and the answer differs" in asyncio.run(play())


def test_the_end_of_a_way_and_notifications_never_miss() -> None:
    one = attempt()

    assert None is asyncio.run(one.play("closed", "", {}))
    assert None is asyncio.run(one.play("notified", "notifications/cancelled", {"requestId": 7}))
    assert None is one.cassette.missed


def test_a_request_is_repeated_where_it_was_repeated() -> None:
    refusal = Refusal(429, "slow down", 1.5)
    known = attempt(asked("a", 1, 2), refusals=[refusal]).cassette
    unknown = attempt(asked("a", 1, 2)).cassette

    assert [None, refusal, None] == [known.repeated(status, "") for status in (503, 429, 429)]
    assert Refusal(503, "down", 0.0) == unknown.repeated(503, "down")
    assert None is attempt().cassette.repeated(503, "down")


def test_an_attempt_that_could_not_begin_fails_in_the_same_way() -> None:
    failure = Failure("context", "hook_failed", "no database")

    with pytest.raises(TrialError, match="no database") as caught:
        attempt(failure=failure, is_last=False).cassette.begin()
    assert ("context", "hook_failed", True) == (caught.value.stage, caught.value.kind, caught.value.retryable)


def test_an_attempt_is_late_that_was_late_though_its_answer_comes_now() -> None:
    late, other = TrialError(LATE.message, kind="timeout"), Failure("model", "http_400", "no")
    was_late, was_well = attempt(asked("a", 1, 2), failure=LATE), attempt(asked("a", 1, 2))

    assert (late, None) == (was_late.cassette.overruled(None, late), was_late.cassette.overruled(other, late))
    assert None is was_well.cassette.overruled(None, late)
    with pytest.raises(ReplayMissError) as missed:
        asyncio.run(was_late.ask("b"))
    assert missed.value is was_late.cassette.overruled(other, late)


def test_an_attempt_has_the_time_of_a_slow_machine() -> None:
    assert (120.0, 300.0) == (attempt().cassette.limit(2.0), attempt().cassette.limit(300.0))

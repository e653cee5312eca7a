"""What an endpoint is sent, and what becomes of what it answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from keval import Message, Sample, Transcript, Usage
from keval.plugin import Context, McpServer, PreflightError, TranscriptBuilder, TrialError
from keval_http import Http
from keval_http.agent import UsagePaths
from keval_loopback.serving import CLOSE, serve

PAGE = Path(__file__).parents[3] / "docs/agents/http.md"
QUESTION = Sample("q1", 'What does "as is" mean?\n', answer="5", metadata={"user": "ada"}, facts={"secret": 1})
HISTORY = (Message("user", "I am Ada."), Message("assistant", "Hello, Ada."))
NO_USAGE = UsagePaths()
SERVERS = (McpServer("docs", "http", "http://127.0.0.1:1/mcp", tools=("search",)),)


@attrs.frozen
class Outcome:
    """What came of a trial, the requests as they arrived, and the pieces of text that were streamed."""

    transcript: Transcript
    error: TrialError | None
    requests: list[tuple[str, str, Any]]
    pieces: list[str]

    @property
    def bodies(self) -> list[Any]:
        return [body for _, _, body in self.requests]


@pytest.fixture
def ask(runner: asyncio.Runner) -> Callable[..., Outcome]:
    """Run a trial against an endpoint that answers so, in order: `ask(answer, ..., sample=…, context=…, body=…)`."""

    async def trial(*answers: Response, **options: Any) -> Outcome:
        sample, given = options.pop("sample", QUESTION), options.pop("context", {})
        left, requests, pieces = [*answers], list[tuple[str, str, Any]](), list[str]()

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            request = Request(scope, receive)
            body = await request.body()
            as_json = "json" in request.headers.get("content-type", "") and body
            target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            requests.append((request.method, target, json.loads(body) if as_json else body.decode()))
            await left.pop(0)(scope, receive, send)

        builder = TranscriptBuilder(emit=lambda kind, data: pieces.append(data["text"]) if "stream" in kind else None)
        async with serve(answer) as base:
            agent = Http(url=base + options.pop("path", "/ask"), **options)
            try:
                told = await agent.run(sample, Context(builder=builder, history=sample.history, **given))
            except TrialError as error:
                return Outcome(builder.transcript(), error, requests, pieces)
            finally:
                await agent.aclose()
        return Outcome(told, None, requests, pieces)

    return lambda *answers, **options: runner.run(asyncio.wait_for(trial(*answers, **options), 20))


def _a2a(version: str) -> dict[str, Any]:
    """The agent that the page has for an agent that speaks A2A, changed for version 0.3 as it says."""
    section = PAGE.read_text(encoding="utf-8").partition("\n## An agent that speaks A2A\n")[2]
    text = section.partition("```yaml\n")[2].partition("```")[0]
    if version == "0.3":
        text = (
            text.replace("SendMessage", "message/send")
            .replace("ROLE_USER", "user")
            .replace("{text", "{kind: text, text")
        )
        text = text.replace("result.message.", "result.").replace("result.task.", "result.")
    options: dict[str, Any] = yaml.safe_load(text)["agents"]["remote"]
    return {name: options[name] for name in ("headers", "body", "answer")}


def events(*data: str) -> Response:
    return Response("".join(f"data: {each}\n\n" for each in data), media_type="text/event-stream")


@pytest.mark.parametrize("version", ["1.0", "0.3"])
@pytest.mark.parametrize("kind", ["message", "task"])
def test_an_agent_that_speaks_a2a_is_asked_as_the_page_says(ask: Any, version: str, kind: str) -> None:
    parts = [{"text": "It is 5."}]
    said = {"parts": parts} if kind == "message" else {"status": {}, "artifacts": [{"parts": parts}]}
    reply = {"jsonrpc": "2.0", "id": 1, "result": {kind: said} if version == "1.0" else said}

    outcome = ask(JSONResponse(reply), **_a2a(version))

    (body,) = outcome.bodies
    message = body["params"]["message"]
    assert (None, "It is 5.") == (outcome.error, outcome.transcript.output)
    assert QUESTION.question == message["parts"][0]["text"]
    assert message["contextId"] == message["messageId"] != ""


def test_a_task_of_a2a_that_failed_is_no_answer(ask: Any) -> None:
    task = {"status": {"state": "TASK_STATE_FAILED", "message": {"parts": [{"text": "no such city"}]}}}

    outcome = ask(JSONResponse({"jsonrpc": "2.0", "id": 1, "result": {"task": task}}), **_a2a("1.0"))

    assert "bad_answer" == outcome.error.kind


def test_by_default_the_question_is_sent_as_json_and_the_reply_is_the_answer(ask: Any) -> None:
    outcome = ask(PlainTextResponse("It is 5."))

    assert [("POST", "/ask", {"question": QUESTION.question})] == outcome.requests
    assert ("It is 5.", None, None) == (
        outcome.transcript.output,
        outcome.transcript.model_calls,
        outcome.transcript.tools,
    )


def test_a_mapping_keeps_the_type_of_what_is_one_expression(ask: Any) -> None:
    body = {
        "messages": "{{ messages }}",
        "config": {"servers": "{{ servers }}", "who": "{{ id }} of {{ metadata.user }}", "top_k": 3, "on": True},
        "last": ["{{ history[-1].content }}", "{{ instructions }}"],
    }

    outcome = ask(
        PlainTextResponse("5"),
        sample=attrs.evolve(QUESTION, history=HISTORY),
        context={"instructions": "Be brief.", "servers": SERVERS},
        body=body,
    )

    assert outcome.error is None
    said = [{"role": message.role, "content": message.text} for message in HISTORY]
    system, asked = {"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION.question}
    servers = [{"name": "docs", "url": "http://127.0.0.1:1/mcp"}]
    assert [
        {
            "messages": [system, *said, asked],
            "config": {"servers": servers, "who": "q1 of ada", "top_k": 3, "on": True},
            "last": ["Hello, Ada.", "Be brief."],
        }
    ] == outcome.bodies


def test_a_text_is_rendered_and_sent_as_it_is(ask: Any) -> None:
    outcome = ask(PlainTextResponse("5"), body='{"q": {{ question | tojson }}, "n": 1}', method="PUT")

    assert [("PUT", "/ask", {"q": QUESTION.question, "n": 1})] == outcome.requests


def test_a_body_of_another_type_need_not_be_json(ask: Any) -> None:
    outcome = ask(PlainTextResponse("5"), body="q={{ question | urlencode }}", headers={"Content-Type": "text/plain"})

    assert [("POST", "/ask", "q=What%20does%20%22as%20is%22%20mean%3F%0A")] == outcome.requests


def test_with_get_the_url_has_the_question(ask: Any) -> None:
    outcome = ask(PlainTextResponse("5"), method="GET", path="/ask?q={{ question | urlencode }}")

    assert [("GET", "/ask?q=What%20does%20%22as%20is%22%20mean?%0A", "")] == outcome.requests


def test_a_system_prompt_without_a_place_stands_before_the_first_message(ask: Any) -> None:
    outcome = ask(
        PlainTextResponse("1"),
        PlainTextResponse("2"),
        sample=Sample("q1", "One?", turns=("Two?",)),
        context={"instructions": "Be brief."},
        body={"q": "{{ question }}", "session": "{{ session }}"},
    )

    first, second = outcome.bodies
    assert ("Be brief.\n\nOne?", "Two?") == (first["q"], second["q"])
    assert (32, first["session"]) == (len(first["session"]), second["session"])
    assert ["One?", "1", "Two?", "2"] == [message.text for message in outcome.transcript.messages]


def test_a_session_is_taken_from_the_reply(ask: Any) -> None:
    replies = [JSONResponse({"thread": {"id": name}, "text": f"from {name}"}) for name in ("t1", "t2")]

    outcome = ask(
        *replies,
        sample=Sample("q1", "One?", turns=("Two?",)),
        body={"q": "{{ question }}", "thread": "{{ session }}"},
        answer="text",
        session="thread.id",
    )

    assert [None, "t1"] == [body["thread"] for body in outcome.bodies]
    assert "from t2" == outcome.transcript.output


def test_a_reply_without_a_session_ends_a_conversation_that_needs_one(ask: Any) -> None:
    outcome = ask(
        JSONResponse({"text": "1"}),
        sample=Sample("q1", "One?", turns=("Two?",)),
        body={"q": "{{ question }}", "thread": "{{ session }}"},
        answer="text",
        session="thread.id",
    )

    told = "the reply before had no session at 'thread.id', so that this message would begin another"
    assert ("bad_answer", told, 1) == (outcome.error.kind, str(outcome.error), len(outcome.requests))


def test_the_history_grows_with_each_turn(ask: Any) -> None:
    sample = Sample("q1", "One?", turns=("Two?",))

    outcome = ask(
        PlainTextResponse("1"),
        PlainTextResponse("2"),
        sample=sample,
        body={"q": "{{ question }}", "before": "{{ history }}"},
    )

    said = [{"role": "user", "content": "One?"}, {"role": "assistant", "content": "1"}]
    assert [[], said] == [body["before"] for body in outcome.bodies]


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"sample": Sample("q", "One?", turns=("Two?",))}, "turns_unsupported"),
        ({"sample": Sample("q", "One?", history=HISTORY)}, "history_unsupported"),
        ({"context": {"servers": SERVERS}}, "servers_unsupported"),
        (
            {"context": {"servers": (McpServer("docs", "stdio"),)}, "body": {"s": "{{ servers }}"}},
            "servers_unsupported",
        ),
        ({"body": {"q": "{{ metadata.user_id }}"}}, "bad_request"),
        ({"body": '{"q": "{{ metadata.user }}", {{ metadata.user }}}'}, "bad_request"),
    ],
)
def test_what_cannot_be_sent_fails_the_trial_and_is_not_sent(ask: Any, changes: dict[str, Any], kind: str) -> None:
    outcome = ask(PlainTextResponse("5"), **changes)

    assert outcome.error is not None
    assert (kind, False, []) == (outcome.error.kind, outcome.error.retryable, outcome.requests)


def test_the_answer_and_tokens_are_found_by_their_paths(ask: Any) -> None:
    reply = JSONResponse({"choices": [{"text": "It is 5."}], "usage": {"in": 12, "out": 3, "cached": "many"}})

    outcome = ask(
        reply,
        answer="choices[0].text",
        usage=attrs.evolve(NO_USAGE, input_tokens="usage.in", output_tokens="usage.out", cached_tokens="usage.cached"),
    )

    assert ("It is 5.", Usage(12, 3)) == (outcome.transcript.output, outcome.transcript.usage)


@pytest.mark.parametrize(
    ("reply", "kind", "told"),
    [
        (JSONResponse({"text": 5}), "bad_answer", "the reply has int in place of a text at 'text': {\"text\":5}"),
        (JSONResponse({"txt": "5"}), "bad_answer", 'the reply has nothing at \'text\': {"txt":"5"}'),
        (PlainTextResponse("5 €"), "bad_reply", "the endpoint answered with something that is no JSON: 5 €"),
        (HTMLResponse(f"<h1>{'x' * 300}"), "bad_reply", f"the endpoint answered with a web page: <h1>{'x' * 196}…"),
        (JSONResponse({"text": " "}), "no_answer", "ended the reply before it said anything"),
    ],
)
def test_what_is_no_answer_says_what_came(ask: Any, reply: Response, kind: str, told: str) -> None:
    error = ask(reply, answer="text").error

    assert (kind, kind == "bad_reply", True) == (error.kind, error.retryable, told in str(error)), str(error)


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [(429, "rate_limit", True), (503, "http_503", True), (400, "http_400", False), (300, "http_300", False)],
)
def test_a_refusal_says_what_came_and_whether_to_ask_again(ask: Any, status: int, kind: str, retryable: bool) -> None:
    error = ask(PlainTextResponse("not today", status, {"retry-after": "7"})).error

    assert ("agent", kind, retryable, 7.0) == (error.stage, error.kind, error.retryable, error.retry_after)
    assert f"refused with status {status}: not today" in str(error)


class Dropped(Response):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.body:
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1000")]})
            await send({"type": "http.response.body", "body": self.body, "more_body": True})
        scope["state"][CLOSE]()


@pytest.mark.parametrize("sent", ["", "It is"])
def test_a_connection_that_breaks_may_be_tried_again(ask: Any, sent: str) -> None:
    error = ask(Dropped(sent)).error

    assert ("connection", True) == (error.kind, error.retryable)


@pytest.mark.parametrize("streams", [True, False])
def test_events_are_joined_and_streamed(ask: Any, streams: bool) -> None:
    reply = events('{"type": "start", "id": "t1"}', '{"delta": "It is "}', '{"delta": "5."}', "[DONE]", "not JSON")

    outcome = ask(reply, events="sse", answer="delta", context={"streams": streams})

    assert "It is 5." == outcome.transcript.output
    assert (["It is ", "5."] if streams else []) == [piece for piece in outcome.pieces if piece]


def test_events_without_a_path_are_the_answer_as_they_are(ask: Any) -> None:
    assert "It is 5." == ask(events("It is ", "5."), events="sse").transcript.output


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (events("{"), "bad_reply"),
        (JSONResponse({"delta": "5"}), "bad_reply"),
        (events('{"delta": 5}'), "bad_answer"),
        (events('{"type": "start"}'), "no_answer"),
    ],
)
def test_events_that_are_no_answer_fail_the_trial(ask: Any, reply: Response, kind: str) -> None:
    assert kind == ask(reply, events="sse", answer="delta").error.kind


def test_a_piece_is_told_while_the_endpoint_still_writes(runner: asyncio.Runner) -> None:
    async def scenario() -> str:
        read = asyncio.Event()

        async def pieces() -> AsyncIterator[str]:
            yield "data: It is \n\n"
            await read.wait()
            yield "data: 5.\n\n"

        async def answer(request: Request) -> Response:
            return StreamingResponse(pieces(), media_type="text/event-stream")

        builder = TranscriptBuilder(emit=lambda kind, data: read.set() if kind == "text_streamed" else None)
        async with serve(Starlette(routes=[Route("/ask", answer, methods=["POST"])])) as base:
            agent = Http(url=f"{base}/ask", events="sse")
            transcript = await agent.run(QUESTION, Context(builder=builder, streams=True))
            await agent.aclose()
        return transcript.output

    assert "It is 5." == runner.run(asyncio.wait_for(scenario(), 20))


def test_cookies_of_one_trial_are_not_those_of_another(runner: asyncio.Runner) -> None:
    async def scenario() -> list[str | None]:
        seen: list[str | None] = []

        async def answer(request: Request) -> Response:
            seen.append(request.headers.get("cookie"))
            return PlainTextResponse("5", headers={"set-cookie": "session=ada"})

        async with serve(Starlette(routes=[Route("/ask", answer, methods=["POST"])])) as base:
            agent = Http(url=base.replace("127.0.0.1", "localhost") + "/ask")
            for _ in range(2):
                await agent.run(QUESTION, Context())
            await agent.aclose()
        return seen

    assert [None, None] == runner.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.parametrize(
    ("reply", "path", "told"),
    [
        (HTMLResponse("<h1>It works!</h1>"), "/ask", "a web page (status 200): <h1>It works!</h1>; correct `url`"),
        (HTMLResponse("<h1>Nothing</h1>", 404), "/ask", "a web page (status 404): <h1>Nothing</h1>; correct `url`"),
        (HTMLResponse("<h1>Not allowed</h1>", 405), "/ask", None),
        (JSONResponse({"detail": "Not Found"}, 404), "/ask", None),
        (HTMLResponse("<h1>It works!</h1>"), "/ask?q={{ question | urlencode }}", None),
    ],
)
def test_the_endpoint_is_looked_for_before_the_run(
    runner: asyncio.Runner, reply: Response, path: str, told: str | None
) -> None:
    async def scenario() -> tuple[str | None, list[str]]:
        methods: list[str] = []

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            methods.append(scope["method"])
            await reply(scope, receive, send)

        async with serve(answer) as base:
            agent = Http(url=base + path)
            try:
                await agent.prepare()
            except PreflightError as error:
                return str(error).partition("answers GET with ")[2], methods
            finally:
                await agent.aclose()
        return None, methods

    said, methods = runner.run(asyncio.wait_for(scenario(), 20))
    assert (told is None, ["GET"]) == (said is None, methods)
    assert (said or "").startswith(told or "")

"""What a remote agent is sent over A2A, and what becomes of its messages and tasks: with the SDK's own server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import attrs
import pytest
from a2a.helpers import get_message_text, new_data_part, new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, TaskState
from google.protobuf.json_format import MessageToDict
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from keval import Message, Sample, Transcript, Usage
from keval.plugin import Context, McpServer, PreflightError, TranscriptBuilder, TrialError
from keval_a2a import A2A
from keval_loopback.serving import serve
from tests.conftest import Project

QUESTION = Sample("q1", "What is 2 + 3?")
TURNS = Sample("q1", "What is 2 + 3?", turns=("And twice that?",))
SERVERS = (McpServer("docs", "http", "http://127.0.0.1:1/mcp", tools=("search",)),)

Act: TypeAlias = Callable[[RequestContext, TaskUpdater, EventQueue], Awaitable[None]]


@attrs.frozen
class Scripted(AgentExecutor):
    """An agent that does what `act` says; `sent` are the messages that it got, and `canceled` the tasks."""

    act: Act
    sent: list[RequestContext] = attrs.field(factory=list)
    canceled: list[str] = attrs.field(factory=list)

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        self.sent.append(context)
        await self.act(context, TaskUpdater(event_queue, context.task_id or "", context.context_id or ""), event_queue)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.canceled.append(context.task_id or "")
        await TaskUpdater(event_queue, context.task_id or "", context.context_id or "").cancel()


@attrs.frozen
class Outcome:
    """What came of a trial, and the pieces of text that were streamed."""

    transcript: Transcript
    error: TrialError | None
    agent: Scripted
    pieces: list[str]


@asynccontextmanager
async def served(agent: Scripted, *, streaming: bool = True, binding: str = "JSONRPC") -> AsyncIterator[str]:
    """The agent behind the SDK's server, which ends its tasks at the end."""
    app = Starlette()
    async with serve(app) as base:
        card = card_of(base, streaming=streaming, binding=binding)
        handler = DefaultRequestHandler(agent, InMemoryTaskStore(), card)
        jsonrpc = binding == "JSONRPC"
        app.router.routes += create_agent_card_routes(card)
        app.router.routes += (
            create_jsonrpc_routes(handler, "/a2a") if jsonrpc else create_rest_routes(handler, path_prefix="/a2a")
        )
        yield base
        await handler.aclose()


def card_of(base: str, *, streaming: bool, binding: str = "JSONRPC") -> AgentCard:
    return AgentCard(
        name="Scripted",
        description="Does what a test says.",
        version="1",
        supported_interfaces=[AgentInterface(url=f"{base}/a2a", protocol_binding=binding, protocol_version="1.0")],
        capabilities=AgentCapabilities(streaming=streaming),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="all", name="All", description="All that a test says.", tags=["test"])],
    )


async def trial(act: Act, sample: Sample = QUESTION, *, streaming: bool = True, **rest: Any) -> Outcome:
    binding, given = rest.pop("binding", "JSONRPC"), rest.pop("context", {})
    agent, pieces = Scripted(act), list[str]()
    builder = TranscriptBuilder(emit=lambda kind, data: pieces.append(data["text"]) if "stream" in kind else None)
    context = Context(builder=builder, history=sample.history, streams=True, **given)
    async with served(agent, streaming=streaming, binding=binding) as base:
        client = A2A(url=base, **rest)
        try:
            await client.prepare()
            told = await client.run(sample, context)
        except TrialError as error:
            return Outcome(builder.transcript(), error, agent, pieces)
        finally:
            await client.aclose()
    return Outcome(told, None, agent, pieces)


@pytest.fixture
def ask(runner: asyncio.Runner) -> Callable[..., Outcome]:
    """Run a trial with an agent that does this: `ask(act, sample, streaming=…)`."""
    return lambda *args, **rest: runner.run(asyncio.wait_for(trial(*args, **rest), 20))


async def says(context: RequestContext, task: TaskUpdater, queue: EventQueue) -> None:
    assert context.message is not None
    text = get_message_text(context.message).upper()
    await queue.enqueue_event(new_text_message(text, context_id=context.context_id))


async def begins(context: RequestContext, task: TaskUpdater, queue: EventQueue) -> None:
    if context.current_task is None:
        assert context.message is not None
        await queue.enqueue_event(new_task_from_user_message(context.message))
    await task.start_work()


async def adds(context: RequestContext, task: TaskUpdater, queue: EventQueue) -> None:
    await begins(context, task, queue)
    await task.add_artifact([new_text_part("It is ")], artifact_id="a", append=False)
    await task.add_artifact([new_text_part("5.")], artifact_id="a", append=True, last_chunk=True)
    await task.add_artifact([new_data_part({"sum": 5}), Part(raw=b"%PDF", media_type="application/pdf")])
    await task.complete(task.new_agent_message([new_text_part("Done.")]))


def ends(state: TaskState, text: str = "") -> Act:
    async def act(context: RequestContext, task: TaskUpdater, queue: EventQueue) -> None:
        await begins(context, task, queue)
        await task.update_status(state, task.new_agent_message([new_text_part(text)]) if text else None)

    return act


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
def test_a_message_is_the_answer(ask: Any, streaming: bool, binding: str) -> None:
    outcome = ask(says, streaming=streaming, binding=binding)

    assert ("WHAT IS 2 + 3?", None) == (outcome.transcript.output, outcome.error)
    assert (None, None, Usage()) == (
        outcome.transcript.model_calls,
        outcome.transcript.tools,
        outcome.transcript.usage,
    )


def test_artifacts_are_joined_and_streamed_and_the_last_message_is_not_one(ask: Any) -> None:
    streamed, whole = (ask(adds, streaming=streaming) for streaming in (True, False))

    assert [('It is 5.\n\n{"sum": 5.0}'), ('It is 5.\n\n{"sum": 5.0}')] == [
        outcome.transcript.output for outcome in (streamed, whole)
    ]
    assert ["It is ", "5.", '{"sum": 5.0}'] == streamed.pieces


def test_without_artifacts_the_message_of_the_last_status_is_the_answer(ask: Any) -> None:
    assert "It is 5." == ask(ends(TaskState.TASK_STATE_COMPLETED, "It is 5.")).transcript.output


def test_turns_have_one_context_and_a_task_that_asks_back_goes_on(ask: Any) -> None:
    async def asks_back(context: RequestContext, task: TaskUpdater, queue: EventQueue) -> None:
        await begins(context, task, queue)
        assert context.message is not None
        text = f"{get_message_text(context.message)}?"
        await task.requires_input(task.new_agent_message([new_text_part(text)]))

    again, new = ask(asks_back, TURNS), ask(says, TURNS)

    for outcome in (again, new):
        first, second = outcome.agent.sent
        assert first.context_id == second.context_id
    assert [True, False] == [len({each.task_id for each in outcome.agent.sent}) == 1 for outcome in (again, new)]
    assert ["What is 2 + 3??", "And twice that??"] == [
        message.text for message in again.transcript.messages if message.role == "assistant"
    ]


def test_the_system_prompt_stands_before_the_first_message(ask: Any) -> None:
    outcome = ask(says, TURNS, context={"instructions": "Be brief."})

    texts = [get_message_text(each.message) for each in outcome.agent.sent]
    assert ["Be brief.\n\nWhat is 2 + 3?", "And twice that?"] == texts


def test_servers_are_in_the_metadata_that_is_named(ask: Any) -> None:
    outcome = ask(says, servers_metadata="tools/mcp", context={"servers": SERVERS})

    (sent,) = outcome.agent.sent
    servers = [{"name": "docs", "url": "http://127.0.0.1:1/mcp"}]
    assert {"tools/mcp": servers} == MessageToDict(sent.message.metadata)


@pytest.mark.parametrize(
    ("act", "kind", "told"),
    [
        (ends(TaskState.TASK_STATE_FAILED, "no such city"), "task_failed", "the agent's task failed: no such city"),
        (ends(TaskState.TASK_STATE_FAILED), "task_failed", "the agent's task failed"),
        (ends(TaskState.TASK_STATE_REJECTED, "not mine"), "task_rejected", "the agent rejected the task: not mine"),
        (ends(TaskState.TASK_STATE_CANCELED), "task_canceled", "the agent's task was canceled"),
        (
            ends(TaskState.TASK_STATE_AUTH_REQUIRED, "log in"),
            "auth_required",
            "the agent asks for a login; give it as `headers`: log in",
        ),
        (ends(TaskState.TASK_STATE_COMPLETED), "no_answer", None),
    ],
)
@pytest.mark.parametrize("streaming", [True, False])
def test_a_task_that_does_not_complete_fails_the_trial(
    ask: Any, act: Act, kind: str, told: str | None, streaming: bool
) -> None:
    error = ask(act, streaming=streaming).error

    assert (kind, False, told or str(error)) == (error.kind, error.retryable, str(error))


@pytest.mark.parametrize(
    ("sample", "given", "kind"),
    [
        (Sample("q", "One?", history=(Message("user", "I am Ada."),)), {}, "history_unsupported"),
        (QUESTION, {"context": {"servers": SERVERS}}, "servers_unsupported"),
        (
            QUESTION,
            {"context": {"servers": (McpServer("docs", "stdio"),)}, "servers_metadata": "x"},
            "servers_unsupported",
        ),
    ],
)
def test_what_cannot_be_handed_over_fails_the_trial_and_is_not_sent(
    ask: Any, sample: Sample, given: dict[str, Any], kind: str
) -> None:
    outcome = ask(says, sample, **given)

    assert (kind, False, []) == (outcome.error.kind, outcome.error.retryable, outcome.agent.sent)


def test_a_defect_of_the_agent_is_a_failure_with_what_it_said(ask: Any) -> None:
    async def breaks(context: RequestContext, task: TaskUpdater, queue: EventQueue) -> None:
        raise ValueError("no such city")

    error = ask(breaks).error

    assert ("a2a_error", False, True) == (error.kind, error.retryable, "no such city" in str(error)), str(error)


def test_a_task_that_goes_on_after_the_response_is_followed(runner: asyncio.Runner) -> None:
    async def scenario() -> Outcome:
        async def slow(context: RequestContext, task: TaskUpdater, queue: EventQueue) -> None:
            await begins(context, task, queue)
            await asyncio.sleep(0.15)
            await task.complete(task.new_agent_message([new_text_part("It is 5.")]))

        return await trial(slow, streaming=False)

    assert "It is 5." == runner.run(asyncio.wait_for(scenario(), 20)).transcript.output


def test_the_task_of_a_trial_that_is_cancelled_is_cancelled(runner: asyncio.Runner) -> None:
    async def scenario() -> tuple[list[str], list[str]]:
        begun = asyncio.Event()

        async def hangs(context: RequestContext, task: TaskUpdater, queue: EventQueue) -> None:
            await begins(context, task, queue)
            await task.add_artifact([new_text_part("It is ")])
            begun.set()
            await asyncio.Event().wait()

        agent = Scripted(hangs)
        async with served(agent) as base:
            client, pieces = A2A(url=base), asyncio.Event()
            builder = TranscriptBuilder(emit=lambda kind, data: pieces.set() if kind == "text_streamed" else None)
            running = asyncio.create_task(client.run(QUESTION, Context(builder=builder, streams=True)))
            await begun.wait()
            await pieces.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            await client.aclose()
        return agent.canceled, [context.task_id or "" for context in agent.sent]

    canceled, tasks = runner.run(asyncio.wait_for(scenario(), 20))
    assert ([*tasks], 1) == (canceled, len(tasks))


@pytest.mark.parametrize(
    ("status", "kind", "retryable"), [(429, "rate_limit", True), (503, "http_503", True), (401, "http_401", False)]
)
@pytest.mark.parametrize("streaming", [True, False])
def test_a_refusal_says_whether_to_ask_again(
    runner: asyncio.Runner, status: int, kind: str, retryable: bool, streaming: bool
) -> None:
    async def scenario() -> TrialError:
        app = Starlette()
        async with serve(app) as base:
            app.router.routes += create_agent_card_routes(card_of(base, streaming=streaming))
            app.mount("/", PlainTextResponse("no", status, {"retry-after": "7"}))
            client = A2A(url=base)
            with pytest.raises(TrialError) as caught:
                await client.run(QUESTION, Context())
            await client.aclose()
        return caught.value

    error = runner.run(asyncio.wait_for(scenario(), 20))
    assert (kind, retryable, 7.0) == (error.kind, error.retryable, error.retry_after)


@pytest.mark.parametrize(
    ("response", "told"),
    [
        (
            HTMLResponse("<h1>It works!</h1>"),
            "is no agent card: Expecting value: line 1 column 1 (char 0); it is",
        ),
        (HTMLResponse(f"<h1>{'x' * 300}", 404), f"cannot be fetched: status 404, '<h1>{'x' * 196}'; correct `url`"),
        (PlainTextResponse("[1]"), "is no agent card: Agent card must be a JSON object; it is status 200, '[1]'"),
        (PlainTextResponse('{"name": 5}'), "is no agent card: "),
        (PlainTextResponse("{}"), "has no interface that keval speaks (JSONRPC, HTTP+JSON); it has none"),
        (
            PlainTextResponse(json.dumps({"supportedInterfaces": [{"url": "x", "protocolBinding": "GRPC"}]})),
            "has no interface that keval speaks (JSONRPC, HTTP+JSON); it has GRPC",
        ),
    ],
)
def test_a_card_that_cannot_be_read_is_an_error_before_the_run(
    runner: asyncio.Runner, response: Response, told: str
) -> None:
    async def scenario() -> str:
        async with serve(response) as base:
            client = A2A(url=base)
            with pytest.raises(PreflightError) as caught:
                await client.prepare()
        return str(caught.value)

    said = runner.run(asyncio.wait_for(scenario(), 20))
    assert told in said, said


def test_bad_options_and_an_agent_that_is_not_there_are_errors_at_their_place(project: Project) -> None:
    project.write(
        questions_jsonl='{"id": "q1", "question": "What is 2 + 3?", "answer": "5"}\n',
        eval_yaml="""
            dataset: {path: questions.jsonl}
            agents:
              mine: {type: a2a, url: URL}
            metrics: [basic/contains]
        """,
    )
    config = (project.root / "eval.yaml").read_text(encoding="utf-8")

    def run(url: str) -> tuple[int, str]:
        (project.root / "eval.yaml").write_text(config.replace("URL", url), encoding="utf-8")
        outcome = project.keval("run", "eval.yaml")
        return outcome.code, outcome.stderr

    code, wrong = run("example.org")
    assert (2, True) == (code, wrong.startswith("error: eval.yaml:3:26: 'url' must begin with http:// or https://"))
    code, gone = run("http://127.0.0.1:9")
    card = "http://127.0.0.1:9/.well-known/agent-card.json"
    assert (2, True) == (code, gone.startswith(f"error: eval.yaml:3:3: the agent card {card} cannot be fetched: "))
    assert gone.endswith("start the agent, or correct `url`\n")

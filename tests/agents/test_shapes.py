"""Replies and refusals as vendors really write them: one table of what is right, over all adapters and judges."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import pytest

from keval import open_run
from keval.execute.models.exchange import ModelExchange
from keval.plugin import Endpoint, Model, PluginWarning
from keval.records.models import Asker, Wire
from keval_gateway.proxy import LoopbackProxy
from keval_replay.replay import PlayedGate
from keval_testing import agent_stage as staged
from keval_testing.agent_stage import AgentStage
from tests.agents.shapes import ANSWER, Asked, Respond, Said, Vendor, calling, reply, serving, verdict
from tests.agents.stage import OTHER_WIRES, Adapter
from tests.conftest import Project
from tests.stdio_server import look_up

COLUMNS: Mapping[str, tuple[Wire, str]] = {
    "openai-chat": ("openai-chat", "type: openai, model: openai/{}"),
    "openai-responses": ("openai-responses", "type: openai, model: openai/{}, api: responses"),
    "anthropic": ("anthropic", "type: anthropic, model: anthropic/{}"),
    "gadk-gemini": ("gemini", "type: gadk, model: google/{}"),
    "gadk-chat": ("openai-chat", "type: gadk, model: openai/{}, api: chat"),
    "gadk-responses": ("openai-responses", "type: gadk, model: openai/{}, api: responses"),
    "gadk-anthropic": ("anthropic", "type: gadk, model: anthropic/{}"),
    "ms-chat": ("openai-chat", "type: ms, model: openai/{}"),
    "ms-responses": ("openai-responses", "type: ms, model: openai/{}, api: responses"),
    "judge-openai": ("openai-chat", "type: openai, model: openai/{}"),
    "judge-anthropic": ("anthropic", "type: anthropic, model: anthropic/{}"),
}
"""Who asks, over which wire: agents, and judges."""
JUDGES = [name for name in COLUMNS if name.startswith("judge")]


@attrs.frozen
class Row:
    """A shape, and what is right for it: an answer (of a judge, a score), or a `failure` with these `words`.

    `refused` is the field that the endpoint does not take: a request that has it is sent once more, and that is told,
    unless it is `silent`. `wires` are those of which the shape is one. With `calls`, agents have a tool, and the model
    calls it so first; `dropped_by` are those that leave out what the endpoint wants back then.
    """

    respond: Respond
    failure: str | None = None
    words: str = ""
    refused: str | None = None
    silent: bool = False
    wires: Sequence[Wire] = ("openai-chat", "openai-responses", "anthropic", "gemini")
    answer: str = ANSWER
    judged: bool = True
    calls: Sequence[Mapping[str, Any]] = ()
    dropped_by: Sequence[str] = ()
    cost: float | None = None

    def is_of(self, column: str) -> bool:
        return COLUMNS[column][0] in self.wires and (self.judged or column not in JUDGES)


def fine(asked: Asked) -> Said:
    return Said(verdict(asked) if "--judge" in asked.model else reply(asked.wire))


def refusing(field: str, told: object, status: int = 400, **rest: Any) -> Row:
    """A shape of an endpoint that does not take a field."""

    def respond(asked: Asked) -> Said:
        return Said(told, status) if _holds(asked.body, field) else fine(asked)

    return Row(respond, refused=field, **rest)


def failing(told: object, words: str, status: int = 400, **rest: Any) -> Row:
    """A shape of an endpoint that refuses whatever it is asked."""
    said = Said(told, status, headers={"x-request-id": "r7"}, **rest)
    return Row(lambda asked: said, f"http_{status}", f"the model's endpoint answered with status {status}: {words}")


def saying(change: Callable[[dict[str, Any], str], object], **rest: Any) -> Row:
    """A shape of a reply over Chat Completions: `change` is given its choice, and its text."""

    def respond(asked: Asked) -> Said:
        body: Any = fine(asked).body
        change(body["choices"][0], body["choices"][0]["message"]["content"])
        return Said(body)

    return Row(respond, **{"wires": CHAT, **rest})


def first_calling(*calls: Mapping[str, Any], finish: str = "tool_calls", wants: str = "", **rest: Any) -> Row:
    """A shape of a reply that calls a tool; `wants` is the field that has to come back with it."""
    message = {"role": "assistant", "content": None, "tool_calls": [*calls], **rest.pop("message", {})}

    def respond(asked: Asked) -> Said:
        for earlier in asked.body["messages"]:
            if earlier.get("tool_calls") and wants not in json.dumps(earlier):
                return Said(_error(f"The `{wants}` in the thinking mode must be passed back to the API."), 400)
        body: Any = fine(asked).body
        if not any(each["role"] == "tool" for each in asked.body["messages"]):
            body["choices"][0] |= {"message": message, "finish_reason": finish}
        return Said(body)

    given = rest.pop("given", [{"question": "x"}])
    return Row(respond, wires=CHAT, judged=False, calls=given, **rest)


def reasoning(asked: Asked) -> Said:
    """A call over the Responses API that wants back the reasoning before it."""
    before = [item["type"] for item in asked.body["input"] if "type" in item]
    if "function_call_output" not in before:
        thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
        called = {"type": "function_call", "id": "fc_1", "call_id": "c1", "status": "completed", **call()["function"]}
        return Said({**reply(asked.wire), "output": [thought, called]})
    if before[before.index("function_call") - 1] == "reasoning":
        return fine(asked)
    return Said(_error("Item 'fc_1' was provided without its required 'reasoning' item: 'rs_1'."), 400)


def call(arguments: object = '{"question": "x"}', **rest: Any) -> dict[str, Any]:
    function = {"name": "look_up", "arguments": arguments}
    return {"id": "c1", "type": "function", "function": function, **rest}


def empty(asked: Asked) -> Said:
    """A reply without a text, as a filter of the endpoint's ends it."""
    body: Any = reply(asked.wire)
    match asked.wire:
        case "openai-chat":
            body["choices"][0] = {"index": 0, "message": {"content": ""}, "finish_reason": "content_filter"}
        case "openai-responses":
            body |= {"output": [], "status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
        case "anthropic":
            body |= {"content": [], "stop_reason": "refusal"}
        case "gemini":
            body["candidates"][0] |= {"content": {"role": "model", "parts": []}, "finishReason": "SAFETY"}
    return Said(body)


def refusal(asked: Asked) -> Said:
    """A reply in which the model says that it does not answer."""
    body: Any = reply(asked.wire)
    if asked.wire == "openai-chat":
        body["choices"][0]["message"] |= {"content": None, "refusal": NO}
    else:
        body["output"][0]["content"] = [{"type": "refusal", "refusal": NO}]
    return Said(body)


def _holds(body: Mapping[str, Any], field: str) -> bool:
    if field == "response_format":
        return body.get(field, "") is None
    return field in body or field in body.get("generationConfig", ())


def _error(message: str, param: str | None = None) -> object:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": None}}


FORBIDDEN = {"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted", "input": 1}
UNKNOWN = 'Invalid JSON payload received. Unknown name "seed": Cannot find field.'
USE = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
CHAT: Sequence[Wire] = ("openai-chat",)
NO = "I cannot help with that."
LONG = "This model's maximum context length is 8192 tokens. However, your messages resulted in 90210 tokens."
FILTERED = {
    "error": {
        "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
        "code": "content_filter",
        "innererror": {"code": "ResponsibleAIPolicyViolation"},
    }
}
ROWS = {
    "plain": Row(fine),
    # Fields that keval and frameworks add, and endpoints refuse.
    "seed-google": refusing("seed", [{"error": {"code": 400, "message": UNKNOWN}}]),
    "seed-fastapi": refusing("seed", {"detail": [FORBIDDEN]}, 422),
    "seed-mistral": refusing("seed", {"object": "error", "message": {"detail": [FORBIDDEN]}}, 422),
    "max-tokens": refusing("max_tokens", _error(USE, "max_tokens"), wires=CHAT),
    "max-completion-tokens": refusing(
        "max_completion_tokens", _error("Extra inputs are not permitted: max_completion_tokens"), 422, wires=CHAT
    ),
    "null-format": refusing("response_format", _error("response_format must be an object"), silent=True, wires=CHAT),
    "store": refusing("store", _error("Unrecognized request argument supplied: store"), wires=["openai-responses"]),
    "include": refusing(
        "include", _error("Encrypted content is not supported.", "include"), silent=True, wires=["openai-responses"]
    ),
    # Refusals that stay, in the vendor's own words.
    "openai-words": failing(_error("We are closed."), "We are closed. (invalid_request_error) (request r7)"),
    "text-words": failing({"error": "We are closed."}, "We are closed. (request r7)"),
    "message-words": failing({"message": "We are closed."}, "We are closed. (request r7)", 422),
    "fastapi-words": failing(
        {"detail": [{"loc": ["body", "day"], "msg": "We are closed."}]}, "body.day: We are closed. (request r7)", 422
    ),
    "page-words": failing(b"<html><h1>Closed</h1></html>", "Closed", type="text/html"),
    # Refusals of what a request says, and of what the model is asked.
    "filter": attrs.evolve(failing(FILTERED, "The response was filtered"), failure="refused"),
    "moderation": attrs.evolve(failing(_error("Your input was flagged."), "Your input", 403), failure="refused"),
    "context": attrs.evolve(failing(_error(LONG), LONG), failure="cut_off"),
    "no-text": Row(empty, "refused", "a refusal by the model or by a filter at its endpoint", judged=False),
    "blocked": Row(
        lambda asked: Said({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}), "refused", wires=["gemini"]
    ),
    "refusal": Row(refusal, answer=NO, wires=["openai-chat", "openai-responses"], judged=False),
    # Replies of other vendors than the one that documents the protocol.
    "parts": saying(lambda choice, text: choice["message"].update(content=[{"type": "text", "text": text}])),
    "parts-of-parts": saying(
        lambda choice, text: choice["message"].update(
            content=[{"type": "text", "text": [{"type": "text", "text": text[:3]}, {"type": "text", "text": text[3:]}]}]
        )
    ),
    "thinking": saying(
        lambda choice, text: choice["message"].update(
            content=[
                {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
                {"type": "text", "text": text},
            ]
        )
    ),
    "cost": Row(
        lambda asked: Said({**reply(asked.wire), "usage": {**reply(asked.wire)["usage"], "cost": 0.5}}),
        wires=["openai-chat", "openai-responses"],
        judged=False,
        cost=0.5,
    ),
    "upstream": saying(
        lambda choice, text: choice.update(finish_reason="error", error={"code": 502, "message": "It fell."}),
        failure="http_502",
        words="the model failed: 502: It fell.",
    ),
    "no-choices": Row(lambda asked: Said({**reply(asked.wire), "choices": []}), "bad_reply", wires=CHAT),
    "null-choices": Row(lambda asked: Said({**reply(asked.wire), "choices": None}), "bad_reply", wires=CHAT),
    "call": first_calling(call()),
    "call-no-id": first_calling(call(id="")),
    "call-null-id": first_calling(call(id=None)),
    "call-same-ids": first_calling(call(), call(), given=[{"question": "x"}] * 2),
    "call-object": first_calling(call({"question": "x"})),
    "call-null": first_calling(call(None), given=[{}]),
    "call-empty": first_calling(call(""), given=[{}]),
    "call-no-type": first_calling(call(type=None)),
    "call-chunks": first_calling(call(), message={"content": [{"type": "thinking", "thinking": []}]}),
    "call-older": first_calling(message={"function_call": call()["function"]}, finish="function_call"),
    "wants-content": first_calling(
        call(), message={"reasoning_content": "Hm."}, wants="reasoning_content", dropped_by=["gadk-chat", "ms-chat"]
    ),
    "wants-details": first_calling(
        call(),
        message={"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]},
        wants="reasoning_details",
        dropped_by=["gadk-chat"],
    ),
    "wants-reasoning": Row(
        reasoning,
        wires=["openai-responses"],
        judged=False,
        calls=[{"question": "x"}],
        dropped_by=["gadk-responses"],
    ),
    "wants-signature": first_calling(
        call(id="", extra_content={"google": {"thought_signature": "x"}}),
        wants="thought_signature",
        dropped_by=["gadk-chat", "ms-chat"],
    ),
}
TABLE = [(shape, column) for shape, row in ROWS.items() for column in COLUMNS if row.is_of(column)]
CONFIG = """
dataset: {{path: questions.jsonl}}
agents: {agents}
metrics: [basic/contains]
execution: {{max_concurrent: 16, retry: {{max_attempts: 1}}}}
"""
TOOL = """
contexts: {tools: {type: stdio, command: python, args: [SERVER], isolation: condition}}
conditions: {tools: {contexts: [tools]}}
"""
JUDGING = "judges: {judges}\nrubrics: [{{right: {{instructions: Is it right?, levels: {{1: 'No.', 5: 'Yes.'}}}}}}]\n"
QUESTION = {"id": "q", "question": "Which city?", "answer": "Paris"}


@attrs.frozen
class Outcome:
    """What came of a request: the answer or score, or the kind of failure with its message; and what was told."""

    answer: object
    kind: str | None
    message: str
    asked: list[dict[str, Any]]
    told: list[str]
    calls: list[Mapping[str, Any]]
    cost: float | None


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Mapping[tuple[str, str], Outcome]:
    """One run of all agents, and one of all judges."""
    found: dict[str, tuple[object, str | None, str]] = {}
    calls: dict[str, list[Mapping[str, Any]]] = {}
    costs: dict[str, float | None] = {}
    vendor = Vendor({shape: row.respond for shape, row in ROWS.items()})
    models = {f"{shape}--{column}": COLUMNS[column][1] for shape, column in TABLE}
    options = {name: f"{name}: {{{asks.format(name)}, max_tokens: 50}}" for name, asks in models.items()}
    judges = [text for name, text in options.items() if "--judge" in name]
    agents, callers = (
        [
            text
            for name, text in options.items()
            if "--judge" not in name and bool(ROWS[name.partition("--")[0]].calls) is has
        ]
        for has in (False, True)
    )
    told: list[str] = []
    for name, config in {
        "agents": CONFIG.format(agents=f"{{{', '.join(agents)}}}"),
        "callers": CONFIG.format(agents=f"{{{', '.join(callers)}}}") + TOOL,
        "judges": CONFIG.format(agents="{plain: {type: openai, model: openai/plain--openai}}")
        + JUDGING.format(judges=f"{{{', '.join(judges)}}}"),
    }.items():
        project = Project(tmp_path_factory.mktemp(name))
        placed = config.replace("SERVER", str(project.root / "server.py"))
        project.write(eval_yaml=placed, server_py=look_up("It is Paris."), questions_jsonl=json.dumps(QUESTION) + "\n")
        with serving(vendor) as environ, warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", PluginWarning)
            outcome = project.run("eval.yaml", env=environ)
        assert outcome.code in (0, 3), outcome.stderr  # 3, as of some agents all trials fail
        told += [str(each.message) for each in warned]
        run = open_run(project.run_directory())
        for trial in run.trials():
            failure = trial.failure
            said = failure and (failure.kind, failure.message)
            costs[trial.agent] = trial.transcript.usage.cost if trial.transcript else None
            calls[trial.agent] = [each.arguments for each in trial.transcript.tool_calls] if trial.transcript else []
            found[trial.agent] = (trial.transcript and trial.transcript.output, *(said or (None, "")))
        for score in run.scores():
            if score.judge is not None:
                failure = score.failure
                found[score.judge] = (score.score.value, *((failure.kind, failure.message) if failure else (None, "")))
    return {
        (shape, column): Outcome(
            *found[name],
            vendor.asked[name],
            [text for text in told if name in text],
            calls.get(name, []),
            costs.get(name),
        )
        for shape, column in TABLE
        for name in [f"{shape}--{column}"]
    }


@pytest.mark.parametrize(("shape", "column"), TABLE)
def test_one_thing_is_the_same_for_all(outcomes: Mapping[tuple[str, str], Outcome], shape: str, column: str) -> None:
    row, outcome = ROWS[shape], outcomes[shape, column]
    is_refused = row.refused is not None and _holds(outcome.asked[0], row.refused)

    assert row.failure == outcome.kind, outcome.message
    assert row.words in outcome.message
    if row.failure is None:
        assert (5.0 if column in JUDGES else row.answer) == outcome.answer
    assert ([*row.calls], row.cost) == (outcome.calls, outcome.cost)
    again = column in row.dropped_by or is_refused
    assert 1 + bool(row.calls) + again == len(outcome.asked)
    assert (again and not row.silent) is bool(outcome.told)


def test_a_run_whose_requests_were_sent_again_is_replayed_as_it_was(project: Project) -> None:
    shapes = {"seed-mistral": "openai-chat", "max-tokens": "gadk-chat", "include": "openai-responses"}
    asks = [f"{shape}: {{{COLUMNS[column][1].format(shape)}}}" for shape, column in shapes.items()]
    project.write(eval_yaml=CONFIG.format(agents=f"{{{', '.join(asks)}}}"), questions_jsonl=json.dumps(QUESTION) + "\n")
    vendor = Vendor({shape: ROWS[shape].respond for shape in shapes})
    with serving(vendor) as environ, pytest.warns(PluginWarning, match="takes"):
        recorded = project.run("eval.yaml", "--record", env=environ)
    first = project.run_directory()
    again = project.root / "again"

    replayed = project.keval("run", "--replay", str(first), "-o", str(again))

    (second,) = (path.parent for path in again.glob("*/*/manifest.json"))
    assert [0, 0, 0] == [
        recorded.code,
        replayed.code,
        project.keval("compare", "--exact", str(first), str(second)).code,
    ]
    assert {ANSWER} == {trial.transcript and trial.transcript.output for trial in open_run(second).trials()}


PROGRAM = """
    import json, urllib.request

    def answer(sample, context):
        model = context.model
        headers = {"content-type": "application/json", "authorization": f"Bearer {model.api_key}", **model.headers}
        messages = [{"role": "user", "content": sample.question}]
        body = {"model": model.name, "messages": messages, "seed": 1, "max_tokens": 50, "temperature": 0.5}
        request = urllib.request.Request(f"{model.base_url}/chat/completions", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request) as response:
            return json.load(response)["choices"][0]["message"]["content"]
"""


@pytest.mark.parametrize("shape", ["seed-mistral", "max-tokens"])
def test_of_a_program_too_a_request_is_sent_again_without_a_refused_field(project: Project, shape: str) -> None:
    agent = f"{{mine: {{type: python, target: agent.py:answer, model: openai/{shape}}}}}"
    project.write(eval_yaml=CONFIG.format(agents=agent), agent_py=PROGRAM, questions_jsonl=json.dumps(QUESTION) + "\n")
    vendor = Vendor({shape: ROWS[shape].respond})
    with serving(vendor) as environ, pytest.warns(PluginWarning, match="takes"):
        outcome = project.run("eval.yaml", env=environ)

    (trial,) = project.lines("trials.jsonl")
    assert (0, None, 2) == (outcome.code, trial["failure"], len(vendor.asked[shape])), outcome.stderr
    assert {"temperature": 0.5}.items() <= vendor.asked[shape][-1].items()


@pytest.mark.parametrize("kind", ["openai", "gadk", "ms"])
def test_a_vendor_with_names_of_its_own_is_asked_by_them_at_once(project: Project, kind: str) -> None:
    project.write(
        eval_yaml=CONFIG.format(agents=f"{{a: {{type: {kind}, model: mistral/seed-mistral, max_tokens: 50}}}}"),
        questions_jsonl=json.dumps(QUESTION) + "\n",
    )
    vendor = Vendor({"seed-mistral": ROWS["seed-mistral"].respond})
    with serving(vendor) as environ:
        mistral = {"MISTRAL_API_BASE": environ["OPENAI_BASE_URL"], "MISTRAL_API_KEY": "key-of-nobody"}
        outcome = project.run("eval.yaml", env=mistral)

    (asked,) = vendor.asked["seed-mistral"]
    assert (0, 50, True) == (outcome.code, asked["max_tokens"], "random_seed" in asked), outcome.stderr
    assert not {"seed", "max_completion_tokens"} & asked.keys()


WHOLE = {
    "openai": Adapter("keval_openai", "OpenAI"),
    "openai responses": Adapter("keval_openai", "OpenAI", {"api": "responses"}),
    "anthropic": Adapter("keval_anthropic", "Anthropic"),
    "gadk": Adapter("keval_gadk", "Gadk"),
    "ms": Adapter("keval_ms", "Ms"),
    **OTHER_WIRES,
}


@pytest.mark.parametrize("adapter", WHOLE.values(), ids=[*WHOLE])
def test_a_reply_that_is_not_streamed_is_read_where_a_stream_was_asked_for(
    runner: asyncio.Runner, stage: AgentStage, adapter: Adapter
) -> None:
    def respond(asked: Asked) -> Said:
        tools = asked.body.get("tools")
        return Said(calling(asked, {"a": 2, "b": 3}) if tools and not asked.has_result else reply(asked.wire))

    vendor = Vendor({"whole": respond})
    with serving(vendor) as environ:
        base = environ["ANTHROPIC_BASE_URL"]
        urls: dict[Wire, str] = {"anthropic": base, "gemini": base}
        urls |= dict.fromkeys(("openai-chat", "openai-responses"), f"{base}/v1")

        async def scenario() -> staged.Outcome:
            there = Endpoint("whole", urls, "key")
            route = ModelExchange(make_gate=PlayedGate).route(Asker("agent", "a"), there)
            async with LoopbackProxy().open([route]) as [proxied]:
                own = adapter.module in {"keval_openai", "keval_anthropic"}  # which need no proxy
                model = Model("of", "whole", there if own else proxied)
                return await stage.play(lambda _: adapter.build(model), streams=True)

        outcome = runner.run(scenario())

    assert outcome.error is None
    assert [(ANSWER, ["add"])] == [
        (outcome.transcript.output, [call.name for call in outcome.transcript.tool_calls if call.error is None])
    ]
    assert all(body.get("stream", True) for body in vendor.asked["whole"])

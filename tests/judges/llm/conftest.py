"""A scripted model behind a real gateway, and one judgement at a time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

import attrs
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from keval import Message, Rubric, Sample, Score, Transcript, Trial
from keval.plugin import Endpoint, JudgeContext, Model, TrialError
from keval.records.scores import Judgement
from keval_gateway import ChatCall, ChatReply, ChatRequest, ModelFault, Respond, wire_urls
from keval_gateway.app import build_app
from keval_judges.anthropic_judge import Anthropic
from keval_judges.openai_judge import OpenAI
from keval_judges.pairwise import Pairwise
from keval_loopback.serving import serve

KINDS: Mapping[str, Callable[..., OpenAI | Anthropic | Pairwise]] = {
    "openai": OpenAI,
    "anthropic": Anthropic,
    "pairwise": Pairwise,
}
ACCURACY = Rubric("accuracy", "Is it right?", {1: "No.", 2: "In part.", 3: "Yes."}, needs_answer=True)
TONE = Rubric("acme/tone", "Is it friendly?", {0: "No.", 10: "Yes."})
RUBRICS = (ACCURACY, TONE)
TRIAL = Trial(
    "t1",
    Sample("s1", "How tall is the Zugspitze?", "2962 m"),
    "some-agent",
    "some-condition",
    1,
    Transcript((Message("user", "How tall is the Zugspitze?"), Message("assistant", "It is 2962 m tall."))),
)
GOOD: Mapping[str, Any] = {
    "accuracy": {"reasoning": "The height is right.", "score": 3},
    "acme_tone": {"reasoning": "It is matter-of-fact.", "score": 0},
    "unverified_claims": ["It is in Bavaria."],
}
GRADED = {"accuracy": Score(3.0, "The height is right."), "acme/tone": Score(0.0, "It is matter-of-fact.")}

Reply: TypeAlias = Mapping[str, Any] | str | ChatReply | ModelFault
"""What the model says to one request: a verdict, in the form that was asked for; a text; or an error."""


def said(request: ChatRequest, reply: Reply) -> ChatReply:
    match reply:
        case ModelFault():
            raise reply
        case ChatReply():
            return reply
        case str():
            return ChatReply(reply)
        case _ if request.forced_tool:
            return ChatReply(calls=(ChatCall(request.forced_tool, reply),))
        case _:
            return ChatReply(json.dumps(reply, ensure_ascii=False))


def _responder(script: Respond | Sequence[Reply]) -> Respond:
    if callable(script):
        return script
    left = iter(script)
    return lambda request: said(request, next(left))


@attrs.define
class Scene:
    """A judge in front of a scripted model, and every request the model saw."""

    judge: OpenAI | Anthropic | Pairwise
    requests: list[ChatRequest]


@attrs.frozen
class Outcome:
    """What came of one judgement: scores or the error, what was recorded, and what the model was asked."""

    graded: Mapping[str, Score | TrialError]
    judgement: Judgement
    error: Exception | None
    requests: list[ChatRequest]

    @property
    def scores(self) -> dict[str, Score]:
        return {name: score for name, score in self.graded.items() if isinstance(score, Score)}

    @property
    def errors(self) -> dict[str, TrialError]:
        """The rubrics without a score, and why."""
        return {name: error for name, error in self.graded.items() if isinstance(error, TrialError)}


@attrs.define
class Models:
    """One gateway for all tests; each scene has a script and a key of its own."""

    base: str
    scripts: dict[str, tuple[Respond, list[ChatRequest]]] = attrs.field(factory=dict)

    def respond(self, request: ChatRequest) -> Any:
        key = request.headers.get("x-api-key") or request.headers["authorization"].removeprefix("Bearer ")
        respond, requests = self.scripts[key]
        requests.append(request)
        return respond(request)

    @asynccontextmanager
    async def stage(
        self, script: Respond | Sequence[Reply], vendor: str = "openai", **options: Any
    ) -> AsyncIterator[Scene]:
        key, requests = f"key-{len(self.scripts)}", list[ChatRequest]()
        self.scripts[key] = (_responder(script), requests)
        endpoint = Endpoint("scripted", wire_urls(self.base), key, simulated=True, wants_trial=True)
        judge = KINDS[vendor](model=Model("acme", "scripted", endpoint), **options)
        try:
            yield Scene(judge, requests)
        finally:
            await judge.aclose()

    async def judge(self, scene: Scene, trial: Trial, rubrics: Sequence[Rubric], context: JudgeContext) -> Outcome:
        graded: Mapping[str, Score | TrialError] = {}
        failed: Exception | None = None
        try:
            graded = await scene.judge.grade(trial, rubrics, context)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            failed = error
        return Outcome(graded, context.builder.judgement(), failed, scene.requests)


Grade: TypeAlias = Callable[..., Outcome]
Staged: TypeAlias = Callable[..., AbstractAsyncContextManager[Scene]]


@pytest.fixture(scope="session")
def runner() -> Iterator[asyncio.Runner]:
    """The event loop of all tests here, in which the gateway stays up between them."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="session")
def models(runner: asyncio.Runner) -> Iterator[Models]:
    models = Models("")
    gateway = serve(build_app(models.respond))
    models.base = runner.run(gateway.__aenter__())
    yield models
    runner.run(gateway.__aexit__(None, None, None))


@pytest.fixture
def staged(models: Models) -> Staged:
    """Put a judge in front of a model: `async with staged(script, "anthropic", temperature=None) as scene`."""
    return models.stage


@pytest.fixture
def grade(runner: asyncio.Runner, models: Models) -> Grade:
    """Have one trial judged: `grade(script, "anthropic", trial=..., rubrics=..., judging=..., temperature=None)`."""

    async def run_one(script: Any, vendor: str, options: Mapping[str, Any], *judged: Any) -> Outcome:
        async with models.stage(script, vendor, **options) as scene:
            return await models.judge(scene, *judged)

    def run(
        script: Any,
        vendor: str = "openai",
        *,
        trial: Trial = TRIAL,
        rubrics: Sequence[Rubric] = RUBRICS,
        judging: JudgeContext | None = None,
        **options: Any,
    ) -> Outcome:
        return runner.run(run_one(script, vendor, options, trial, rubrics, judging or JudgeContext()))

    return run


@pytest.fixture(scope="session")
def odd_endpoint(runner: asyncio.Runner) -> Iterator[tuple[str, list[object]]]:
    """A server that answers every request with the next of these HTTP bodies or responses."""
    bodies: list[object] = []

    async def answer(request: Request) -> Response:
        body = bodies.pop(0)
        if isinstance(body, Response):
            return body
        return Response(body, media_type="text/plain") if isinstance(body, str) else JSONResponse(body)

    server = serve(Starlette(routes=[Route("/{rest:path}", answer, methods=["POST"])]))
    yield runner.run(server.__aenter__()), bodies
    runner.run(server.__aexit__(None, None, None))


@pytest.fixture
def grade_raw(runner: asyncio.Runner, models: Models, odd_endpoint: tuple[str, list[object]]) -> Grade:
    """Have one trial judged by an endpoint that answers with these HTTP bodies, whatever it is asked."""
    base, left = odd_endpoint

    async def judged(vendor: str, bodies: Sequence[object], options: Mapping[str, Any]) -> Outcome:
        left[:] = bodies
        judge = KINDS[vendor](model=Model("odd", "model", Endpoint("model", wire_urls(base), "key")), **options)
        outcome = await models.judge(Scene(judge, []), TRIAL, RUBRICS, JudgeContext())
        await judge.aclose()
        return outcome

    return lambda vendor, *bodies, **options: runner.run(judged(vendor, bodies, options))

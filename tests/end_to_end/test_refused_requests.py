"""Requests that a model refuses are repeated below the agent: in process, and by the proxy in front of a framework."""

from __future__ import annotations

import asyncio
import json
import random
import re
import socket
from collections import Counter
from collections.abc import Callable
from itertools import groupby

import pytest

from keval_gateway import ChatReply, ChatRequest, ModelFault
from tests.conftest import Project
from tests.end_to_end.servers.model import gateway

CONFIG = """
dataset: {path: questions.jsonl}
agents:
  openai: {model: openai/gpt-test}
  gadk: {model: google/gemini-test}
metrics: [basic/turns]
execution: {timeout_seconds: 2, retry: {initial_backoff_seconds: 0.01, max_attempts: 1}}
"""


def questions(count: int) -> str:
    return "".join(json.dumps({"id": f"q{n}", "question": f"{n}"}) + "\n" for n in range(count))


class Refusing:
    """Refuses each question with these faults first, once for each wire, and then answers."""

    def __init__(self, *faults: ModelFault) -> None:
        self.faults = faults
        self.asked = Counter[tuple[str, str]]()

    def __call__(self, request: ChatRequest) -> ChatReply:
        asked = (request.wire, request.messages[0].text)
        self.asked[asked] += 1
        if self.asked[asked] <= len(self.faults):
            raise self.faults[self.asked[asked] - 1]
        return ChatReply("Fine.")


@pytest.mark.slow
def test_a_refused_request_is_no_attempt_and_its_wait_is_nobodys_time(project: Project) -> None:
    # Together they wait for longer than the time limit of an attempt.
    faults = (
        ModelFault(429, "slow down", retry_after=1),
        ModelFault(503, "busy", retry_after=1),
        ModelFault(500, "oh"),
    )
    project.write(eval_yaml=CONFIG, questions_jsonl=questions(1))

    with gateway(Refusing(*faults)) as environ:
        outcome = project.keval("run", "eval.yaml", env=environ)

    assert 0 == outcome.code, outcome.stderr
    trials = project.lines("trials.jsonl")
    assert {"openai": 1, "gadk": 1} == Counter(trial["agent"] for trial in trials)
    for trial in trials:
        told = [(refusal["status"], refusal["message"]) for refusal in trial["transcript"]["refusals"]]
        assert [429, 503, 500] == [status for status, _ in told]
        assert all(word in message for (_, message), word in zip(told, ["slow down", "busy", "oh"], strict=True))
        assert [] == trial["attempts"]
        assert 2 <= sum(refusal["waited"] for refusal in trial["transcript"]["refusals"])
        assert trial["transcript"]["duration"] < 1


def test_a_request_that_is_refused_alone_waits_for_a_quarter_of_the_backoff(project: Project) -> None:
    asked = Counter[str]()

    def respond(request: ChatRequest) -> ChatReply:
        question = request.messages[0].text
        asked[question] += 1
        if asked[question] <= {"3": 1, "5": 2}.get(question, 0):
            raise ModelFault(429, "not now")
        return ChatReply("Fine.")

    config = CONFIG.replace("  gadk: {model: google/gemini-test}\n", "").replace("_seconds: 0.01", "_seconds: 0.2")
    project.write(eval_yaml=config, questions_jsonl=questions(6))

    with gateway(respond) as environ:
        outcome = project.keval("run", "eval.yaml", "-j", "1", env=environ)

    assert 0 == outcome.code, outcome.stderr
    waited = {
        trial["sample"]: [refusal["waited"] for refusal in trial["transcript"]["refusals"]]
        for trial in project.lines("trials.jsonl")
    }
    # The random numbers that full jitter takes with the seed of the run.
    draws = random.Random(0)
    assert [0.05 * draws.random(), 0.05 * draws.random(), 0.4 * draws.random()] == pytest.approx(
        [*waited["q3"], *waited["q5"]]
    )


def test_a_request_that_is_wrong_is_not_repeated(project: Project) -> None:
    model = Refusing(*[ModelFault(400, "no such thing")] * 9)
    project.write(eval_yaml=CONFIG, questions_jsonl=questions(1))

    with gateway(model) as environ:
        outcome = project.keval("run", "eval.yaml", env=environ)

    assert (3, {1}) == (outcome.code, {*model.asked.values()})


@pytest.mark.slow
def test_an_endpoint_that_bears_little_is_asked_little_at_once(
    project: Project, record_property: Callable[[str, object], None]
) -> None:
    bears, under_way, refused = 3, 0, 0

    async def respond(request: ChatRequest) -> ChatReply:
        nonlocal under_way, refused
        under_way += 1
        try:
            if under_way > bears:
                refused += 1
                raise ModelFault(429, "too many at once")
            await asyncio.sleep(0.02)
            return ChatReply("Fine.")
        finally:
            under_way -= 1

    project.write(eval_yaml=CONFIG.replace("  gadk: {model: google/gemini-test}\n", ""), questions_jsonl=questions(150))

    with gateway(respond) as environ:
        outcome = project.keval("run", "eval.yaml", "-j", "30", "-p", "double/pacing", env=environ)

    assert 0 == outcome.code, outcome.stderr
    trials = project.lines("trials.jsonl")
    assert (150, 0) == (len(trials), sum(len(trial["attempts"]) for trial in trials))
    # Unpaced, most of 30 at once would be refused again and again.
    assert refused == sum(len(trial["transcript"]["refusals"]) for trial in trials) < 150
    record_property("faults of models", refused)
    paces = [json.loads(line) for line in (project.root / "paces.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {("gpt-test", False)} == {(model, down) for model, _, down in paces}
    assert 8 >= min(at_once for _, at_once, _ in paces if at_once is not None)


@pytest.fixture
def nobody() -> str:
    """A URL at which nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{listener.getsockname()[1]}/v1"


def test_an_endpoint_that_stays_down_stops_the_run_and_burns_no_trial(project: Project, nobody: str) -> None:
    config = CONFIG.replace("max_attempts: 1", "max_outage_seconds: 0.5")
    project.write(eval_yaml=config.replace("  gadk: {model: google/gemini-test}\n", ""), questions_jsonl=questions(40))

    outcome = project.keval("run", "eval.yaml", env={"OPENAI_BASE_URL": nobody, "OPENAI_API_KEY": "key-of-nobody"})

    assert 3 == outcome.code, outcome.stderr
    assert (
        "the endpoint of gpt-test has been down for 0.5 s and has never answered: check its address;" in outcome.stderr
    )
    assert re.search(r"; the run is in \S+, which `keval resume \S+` continues then", outcome.stderr)
    assert [] == project.lines("trials.jsonl")
    with gateway(lambda request: ChatReply("Fine.")) as environ:
        assert 0 == project.keval("resume", "latest", env=environ).code
    assert 40 == len(project.lines("trials.jsonl"))


@pytest.mark.slow
def test_a_judge_whose_endpoint_stays_down_costs_no_other_score(project: Project, nobody: str) -> None:
    judge = f"""
agents: {{openai: {{model: openai/gpt-test}}}}
judges: {{openai: {{model: acme/judge, base_url: '{nobody}', api_key: '${{ACME_KEY}}'}}}}
rubrics: [helpfulness_and_clarity]
metrics: [basic/turns]
execution: {{retry: {{max_outage_seconds: 0.5, initial_backoff_seconds: 0.01}}}}
"""
    project.write(eval_yaml=f"dataset: {{path: questions.jsonl}}\n{judge}", questions_jsonl=questions(20))

    with gateway(lambda request: ChatReply("Fine.")) as environ:
        outcome = project.keval("run", "eval.yaml", env={**environ, "ACME_KEY": "key-of-nobody"})

    assert 3 == outcome.code, outcome.stderr
    scores = project.lines("scores.jsonl")
    assert {("basic/turns", None): 20, ("helpfulness_and_clarity", "outage"): 20} == Counter(
        (line["metric"], line["failure"] and line["failure"]["kind"]) for line in scores
    )


def test_an_endpoint_that_refuses_everything_as_too_much_stops_the_run(project: Project) -> None:
    model = Refusing(*[ModelFault(429, "the quota is used up")] * 999)
    config = CONFIG.replace("max_attempts: 1", "max_outage_seconds: 0.5")
    project.write(eval_yaml=config, questions_jsonl=questions(40))

    with gateway(model) as environ:
        outcome = project.keval("run", "eval.yaml", env=environ)

    assert 3 == outcome.code, outcome.stderr
    assert "has refused all requests for 0.5 s (HTTP 429: " in outcome.stderr
    assert "the quota is used up" in outcome.stderr
    assert [] == project.lines("trials.jsonl")


@pytest.mark.slow
def test_an_endpoint_that_comes_back_is_waited_for(project: Project) -> None:
    refusals = 8

    def respond(request: ChatRequest) -> ChatReply:
        nonlocal refusals
        if refusals:
            refusals -= 1
            raise ModelFault(502, "bad gateway")
        return ChatReply("Fine.")

    project.write(eval_yaml=CONFIG.replace("  gadk: {model: google/gemini-test}\n", ""), questions_jsonl=questions(10))

    with gateway(respond) as environ:
        outcome = project.keval("run", "eval.yaml", "-p", "double/pacing", env=environ)

    paces = (project.root / "paces.jsonl").read_text(encoding="utf-8").splitlines()
    assert [False, True, False] == [down for down, _ in groupby(json.loads(line)[2] for line in paces)]
    assert (0, [[]] * 10) == (outcome.code, [trial["attempts"] for trial in project.lines("trials.jsonl")])

"""Runs over an endpoint with faults of every kind end as they would have without."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml

from keval_gateway import ChatReply, ChatRequest
from keval_gateway.disturb import Draw, read_faults
from tests.conftest import Project
from tests.end_to_end.servers.model import gateway

EVERY_KIND = [
    {"status": 429, "retry_after": 0, "share": "6%"},
    {"status": 529, "retry_after": "in a while", "share": "3%"},
    {"status": 503, "retry_after": "Wed, 21 Oct 2015 07:28:00 GMT", "share": "3%"},
    {"drop": "before", "share": "3%"},
    {"drop": "midway", "share": "3%"},
    {"stall_seconds": 0.05, "share": "3%"},
    {"content_type": "text/html", "share": "3%"},
    {"truncate": True, "share": 0.03},
]
SEED = 1
"""One with which each of them hits at least one of 60 trials."""
REFUSALS = [{"status": 429, "share": "5%"}, {"status": 500, "share": "2%"}]
IN_PROCESS = {"openai": {"model": "openai/gpt-test"}}
BOTH = {**IN_PROCESS, "gadk": {"model": "openai/gpt-test", "api": "chat"}}


def respond(request: ChatRequest) -> ChatReply:
    """Answer every other question rightly."""
    number = int(request.messages[0].text)
    return ChatReply(f"It is {number - number % 2}.")


@attrs.frozen
class Found:
    """What a run has of each trial."""

    scores: dict[str, float]
    refusals: Counter[int | None]
    attempts: int


def evaluate(
    project: Project, name: str, samples: int, agents: Any, *, disturb: Draw | None = None, middleware: Any = ()
) -> Found:
    config = {
        "name": name,
        "dataset": {"path": "questions.jsonl"},
        "agents": agents,
        "metrics": ["basic/equals"],
        "middleware": [*middleware],
        "execution": {"max_concurrent": 16, "retry": {"initial_backoff_seconds": 0.02}},
    }
    asked = [{"id": f"q{n}", "question": f"{n}", "answer": f"It is {n}."} for n in range(samples)]
    project.write(eval_yaml=yaml.safe_dump(config), questions_jsonl="".join(json.dumps(each) + "\n" for each in asked))
    with gateway(respond, disturb) as environ:
        outcome = project.keval("run", "eval.yaml", env=environ)
    assert 0 == outcome.code, outcome.stderr
    trials, scores = (lines(project.root, name, file) for file in ("trials", "scores"))
    return Found(
        {score["trial"]: score["value"] for score in scores},
        Counter(refusal["status"] for trial in trials for refusal in trial["transcript"]["refusals"]),
        sum(len(trial["attempts"]) for trial in trials),
    )


def lines(root: Path, name: str, file: str) -> list[dict[str, Any]]:
    (found,) = root.glob(f"results/{name}/*/{file}.jsonl")
    return [json.loads(line) for line in found.read_text(encoding="utf-8").splitlines()]


def drawing(project: Project, faults: Any) -> Draw:
    path = project.root / "faults.yaml"
    path.write_text(yaml.safe_dump({"seed": SEED, "faults": faults}), encoding="utf-8")
    return Draw(read_faults(path))


@pytest.mark.slow
def test_every_kind_of_fault_costs_no_attempt_and_changes_no_score(project: Project) -> None:
    draw = drawing(project, EVERY_KIND)

    plain = evaluate(project, "plain", 30, BOTH)
    disturbed = evaluate(project, "disturbed", 30, BOTH, disturb=draw)
    within = evaluate(project, "within", 30, BOTH, middleware=[{"disturb": {"path": "faults.yaml"}}])

    assert (60, {0.0, 1.0}) == (len(plain.scores), {*plain.scores.values()})
    assert [(plain.scores, 0)] * 2 == [(each.scores, each.attempts) for each in (disturbed, within)]
    assert len(EVERY_KIND) == len(draw.made)
    statuses = {
        429: draw.made["status 429"],
        529: draw.made["status 529"],
        503: draw.made["status 503"],
        200: draw.made["content_type text/html"] + draw.made["truncate"],
        None: draw.made["drop before"] + draw.made["drop midway"],
    }
    assert (statuses, statuses.keys()) == (disturbed.refusals, within.refusals.keys())


@pytest.mark.slow
def test_five_hundred_trials_at_an_endpoint_that_refuses_one_request_in_fourteen(project: Project) -> None:
    draw = drawing(project, REFUSALS)

    plain = evaluate(project, "plain", 500, IN_PROCESS)
    disturbed = evaluate(project, "disturbed", 500, IN_PROCESS, disturb=draw)

    assert (500, Counter[int | None]()) == (len(plain.scores), plain.refusals)
    assert (plain.scores, 0) == (disturbed.scores, disturbed.attempts)
    assert {429: draw.made["status 429"], 500: draw.made["status 500"]} == disturbed.refusals
    assert 20 < draw.made.total() < 60

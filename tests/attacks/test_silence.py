"""Vendors that refuse: what stays refused ends a run at once, and what passes is told the first time."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

import pytest

from keval import Failure
from keval.execute.models.denials import read_refusal
from keval_viewer.play import Play
from tests.conftest import Project

Answer: TypeAlias = tuple[int, dict[str, Any] | str]

_ENV = "{U: '{model_base_url}', K: '{model_key}'}"
AGENTS = {
    "openai": "openai: {model: openai/gpt-test}",
    "responses": "openai: {model: openai/gpt-test, api: responses}",
    "anthropic": "anthropic: {model: anthropic/claude-test}",
    "gadk": "gadk: {model: google/gemini-test}",
    "ms": "ms: {model: openai/gpt-test}",
    "program": f"command: {{model: openai/gpt-test, command: [python3, program.py], env: {_ENV}}}",
}
PROGRAM = """
import os, sys, time, urllib.error, urllib.request
for attempt in range(600):  # as a coding agent does, which asks again and again
    request = urllib.request.Request(os.environ["U"] + "/chat/completions", b'{"model": "gpt-test"}',
        {"authorization": "Bearer " + os.environ["K"], "content-type": "application/json"})
    try:
        print(urllib.request.urlopen(request).read())
        break
    except urllib.error.HTTPError:
        time.sleep(0.5)
"""


def openai(message: str, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": code, "param": None, "code": code}}


def anthropic(message: str, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


def gemini(quota: str) -> dict[str, Any]:
    told = "You exceeded your current quota, please check your plan and billing details."
    details = [{"violations": [{"quotaId": quota}]}, {"retryDelay": "34s"}]
    return {"error": {"code": 429, "message": told, "status": "RESOURCE_EXHAUSTED", "details": details}}


CREDIT = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to purchase credits."
QUOTA = openai("You exceeded your current quota, please check your plan and billing details.", "insufficient_quota")


@contextmanager
def vendor(answer: Callable[[int], Answer]) -> Iterator[tuple[dict[str, str], Counter[str]]]:
    """Serve the n-th request with what `answer` returns, and yield the environment, and how often it was asked."""
    asked = Counter[str]()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            asked["requests"] += 1
            status, body = answer(asked["requests"])
            content = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Say nothing of a client that hung up, as one does whose trial ended."""

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    base = f"http://127.0.0.1:{server.server_port}"
    try:
        yield (
            {
                "OPENAI_BASE_URL": f"{base}/v1",
                "OPENAI_API_KEY": "key-of-nobody",
                "ANTHROPIC_BASE_URL": base,
                "ANTHROPIC_API_KEY": "key-of-nobody",
                "GOOGLE_GEMINI_BASE_URL": base,
                "GOOGLE_API_KEY": "key-of-nobody",
            },
            asked,
        )
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def write(project: Project, agent: str, count: int = 6, more: str = "") -> None:
    config = f"dataset: {{path: q.jsonl}}\nagents:\n  {agent}\nmetrics: [basic/turns]\n{more}\n"
    lines = [json.dumps({"id": f"q{n}", "question": f"capital {n}?", "answer": "Paris"}) for n in range(count)]
    project.write(eval_yaml=config, q_jsonl="\n".join(lines) + "\n", program_py=PROGRAM)


def reply(text: str = "Paris.") -> Answer:
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return 200, {
        "id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "status", "body", "said", "remedy"),
    [
        ("openai", 429, QUOTA, "You exceeded your current quota", "add credit"),
        ("responses", 429, QUOTA, "You exceeded your current quota", "add credit"),
        ("ms", 429, openai("Your account is not active", "billing_not_active"), "is not active", "add credit"),
        ("program", 429, QUOTA, "You exceeded your current quota", "add credit"),
        ("anthropic", 400, anthropic(CREDIT), "Your credit balance is too low", "add credit"),
        ("gadk", 429, gemini("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), "exceeded your", "until the vendor"),
        ("openai", 402, openai("Insufficient Balance"), "Insufficient Balance", "add credit"),
        ("openai", 200, {"error": {"message": "Insufficient credits", "code": 402}}, "Insufficient cr", "add credit"),
        ("openai", 401, openai("Incorrect API key", "invalid_api_key"), "Incorrect API key", "correct the key"),
        ("program", 401, openai("Incorrect API key", "invalid_api_key"), "Incorrect API key", "correct the key"),
        ("gadk", 403, {"error": {"code": 403, "message": "Denied"}}, "Denied", "get access"),
        ("anthropic", 404, anthropic("model: claude-test", "not_found_error"), "claude-test", "name of the model"),
        ("ms", 404, "<html>nginx</html>", "nginx", "name of the model"),
    ],
)
def test_what_stays_refused_ends_the_run_at_the_first_trial(
    project: Project, *, agent: str, status: int, body: dict[str, Any] | str, said: str, remedy: str
) -> None:
    write(project, AGENTS[agent], more="execution: {max_concurrent: 2}")

    with vendor(lambda number: (status, body)) as (environ, asked):
        outcome = project.keval("run", "eval.yaml", env=environ)

    assert 3 == outcome.code, outcome.stderr
    (told,) = [line for line in outcome.stderr.splitlines() if line.startswith("error: ")]
    assert f"{status if status != 200 else 402}: " in told
    assert re.search(r" at http://127\.0\.0\.1:\d+", told)
    assert said in told
    assert remedy in told
    assert "resume" not in outcome.stderr
    assert [] == project.lines("trials.jsonl")
    assert asked["requests"] <= 2 + 2 * (agent == "program")  # those at once; a program that was told may ask again


def test_what_stays_refused_later_keeps_what_was_answered(project: Project) -> None:
    write(project, AGENTS["openai"], more="execution: {max_concurrent: 1}")

    with vendor(lambda number: reply() if number <= 3 else (429, QUOTA)) as (environ, _):
        outcome = project.keval("run", "eval.yaml", env=environ)
    with vendor(lambda number: reply()) as (environ, _):
        resumed = project.keval("resume", "latest", env=environ)

    assert 3 == outcome.code
    assert re.search(r"add credit .*; finished trials are in \S+, which `keval resume \S+` continues", outcome.stderr)
    assert (0, 6) == (resumed.code, len(project.lines("trials.jsonl")))


@pytest.mark.parametrize("status", [403, 404])
def test_a_refusal_of_one_question_is_that_questions(project: Project, status: int) -> None:
    write(project, AGENTS["openai"], more="execution: {max_concurrent: 1}")

    with vendor(lambda number: (status, openai("not this one")) if number == 3 else reply()) as (environ, _):
        outcome = project.keval("run", "eval.yaml", env=environ)

    assert 3 == outcome.code
    assert {f"http_{status}": 1, None: 5} == Counter(
        trial["failure"] and trial["failure"]["kind"] for trial in project.lines("trials.jsonl")
    )


@pytest.mark.slow
def test_a_judge_without_credit_is_told_and_costs_no_answer(project: Project) -> None:
    judge = "judges: {anthropic: {model: anthropic/claude-test}}\nrubrics: [helpfulness_and_clarity]"
    write(project, AGENTS["openai"], count=40, more=f"{judge}\nexecution: {{max_concurrent: 2}}")

    with (
        vendor(lambda number: reply()) as (environ, _),
        vendor(lambda number: (400, anthropic(CREDIT))) as (poor, asked),
    ):
        environ["ANTHROPIC_BASE_URL"] = poor["ANTHROPIC_BASE_URL"]
        outcome = project.keval("run", "eval.yaml", env=environ)

    assert 3 == outcome.code, outcome.stderr
    assert outcome.stderr.count("Your credit balance is too low") == 1
    assert {("basic/turns", None): 40, ("helpfulness_and_clarity", "outage"): 40} == Counter(
        (line["metric"], line["failure"] and line["failure"]["kind"]) for line in project.lines("scores.jsonl")
    )
    assert asked["requests"] <= 6


def test_a_play_says_what_stays_refused_and_asks_again_when_that_is_mended(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = AGENTS["program"].replace("command: {", "program: {type: command, ", 1)
    write(project, f"openai: {{model: openai/gpt-test}}\n  {program}")
    answer: list[Answer] = [(402, openai("Insufficient Balance"))]

    async def talk() -> list[list[Failure | None]]:
        async with Play.open("eval.yaml") as play:
            poor = await play.ask("one")
            await play.new_conversation()
            answer[0] = reply()
            asked = (poor, await play.ask("two"))
            return [[play.run.trial(each.trial).failure for each in question.answers] for question in asked]

    with vendor(lambda number: answer[0]) as (environ, _):
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        failures, later = asyncio.run(talk())

    assert ["outage", "outage"] == [failure and failure.kind for failure in failures]
    assert all(failure and "HTTP 402: Insufficient Balance" in failure.message for failure in failures)
    assert "outage" not in [failure and failure.kind for failure in later]  # it wants a stream, and gets a reply


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "status", "body", "said"),
    [
        ("openai", 429, openai("Rate limit reached", "rate_limit_exceeded"), "HTTP 429: Rate limit reached"),
        ("gadk", 429, gemini("GenerateRequestsPerMinutePerProjectPerModel"), "HTTP 429: You exceeded your current"),
        ("ms", 503, openai("overloaded"), "HTTP 503: overloaded"),
        ("openai", 502, "<html>Bad Gateway</html>", "HTTP 502: Bad Gateway"),
        ("openai", 200, "<html>Sign in to the hotel</html>", "HTTP 200: the response"),
    ],
)
@pytest.mark.parametrize("flags", [[], ["-q"]])
def test_what_passes_is_told_once_with_status_address_and_text(
    project: Project, *, agent: str, status: int, body: dict[str, Any] | str, said: str, flags: list[str]
) -> None:
    retry = "execution: {max_concurrent: 1, retry: {initial_backoff_seconds: 0, max_backoff_seconds: 0}}"
    write(project, AGENTS[agent], more=retry)
    failing = {1, 2, 5}
    good: Answer = (
        (200, {"candidates": [{"content": {"role": "model", "parts": [{"text": "Paris."}]}, "finishReason": "STOP"}]})
        if agent == "gadk"
        else reply()
    )

    with vendor(lambda number: (status, body) if number in failing else good) as (environ, _):
        outcome = project.keval("run", "eval.yaml", *flags, env=environ)

    assert 0 == outcome.code, outcome.stderr
    (told,) = [line for line in outcome.stderr.splitlines() if line.startswith("note: ")]
    assert said in told
    assert re.search(r" at http://127\.0\.0\.1:\d+", told)


def test_an_endpoint_that_is_down_is_told_with_address_and_cause(project: Project) -> None:
    write(project, AGENTS["openai"], more="execution: {retry: {max_outage_seconds: 0.3, initial_backoff_seconds: 0}}")

    with vendor(lambda number: reply()) as (environ, _):
        pass  # nobody listens there any more
    outcome = project.keval("run", "eval.yaml", env=environ)

    address = environ["OPENAI_BASE_URL"]
    assert 3 == outcome.code
    down, error = (
        next(line for line in outcome.stderr.splitlines() if part in line) for part in ("is down", "error: ")
    )
    assert all(address in line and "Cannot connect" in line for line in (down, error))


PERMANENT: list[tuple[int, Any]] = [
    (404, openai("model 'qwen3:4b' not found", "not_found_error")),
    (404, openai('model "qwen3:4b" not found, try pulling it first', "api_error")),
    (429, openai("Your prepaid credits are gone", "credit_balance_exhausted")),
    (403, openai("The OpenAI account associated with this API key has been deactivated.", "account_deactivated")),
    (400, anthropic("You have reached your specified API usage limits. You will regain access on 2025-09-01.")),
    (
        400,
        {"error": {"code": 400, "message": "API key expired. Please renew the API key.", "status": "INVALID_ARGUMENT"}},
    ),
    (403, {"error": {"message": "Consumer 'api_key:x' has been suspended.", "status": "PERMISSION_DENIED"}}),
    (429, {"error": {"message": "Rate limit exceeded: free-models-per-day. Add 10 credits", "code": 429}}),
    (
        429,
        openai(
            "Your account is suspended due to insufficient balance, please recharge", "exceeded_current_quota_error"
        ),
    ),
    (412, openai("Account a is suspended, possibly due to reaching the monthly spending limit", "PRECONDITION_FAILED")),
    (429, openai("Rate limit reached on tokens per day (TPD): Limit 100000. Please try again in 14m24s.", "tokens")),
    (400, {"code": "Arrearage", "message": "Access denied, please make sure your account is in good standing."}),
    (429, openai("余额不足或无可用资源包,请充值。", "1113")),
    (429, {"message": "Too many tokens per day, please wait before trying again."}),
    (429, openai("litellm.RateLimitError: OpenAIException - You exceeded your current quota, please check your plan")),
    (200, {"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}),
    (429, "quota exceeded"),
    (400, openai("Access token has expired")),
    (429, {"error": {"message": "Rate limit of 50 per 86400s exceeded for UserByModelByDay."}}),
]
PASSING: list[tuple[int, Any]] = [
    (429, {"error": {"message": "Resource has been exhausted (e.g. check quota).", "status": "RESOURCE_EXHAUSTED"}}),
    (429, openai("Quota exceeded for aiplatform.googleapis.com/generate_content_requests_per_minute with base model")),
    (429, anthropic("This would exceed your rate limit of 50,000 tokens per minute.", "rate_limit")),
    (429, openai("Rate limit reached on requests per day (RPD): Limit 10000. Please try again in 8.64s.", "requests")),
    (429, openai("You have exceeded token rate limit of your S0 tier. Please retry after 6 seconds")),
    (529, anthropic("Overloaded", "overloaded_error")),
    (400, openai("This model's maximum context length is 8192 tokens", "context_length_exceeded")),
    (403, {"error": {"message": "Your input was flagged", "metadata": {"flagged_input": "insufficient_quota"}}}),
    (422, {"detail": [{"msg": "Extra inputs are not permitted", "input": "insufficient_quota, account suspended"}]}),
    (500, ""),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body"), PERMANENT + PASSING)
def test_what_vendors_say_is_told_apart(status: int, body: Any) -> None:
    refusal = read_refusal(status, (body if isinstance(body, str) else json.dumps(body)).encode())

    assert ((status, body) in PERMANENT) == refusal.certain
    assert refusal.certain == (refusal.remedy is not None)

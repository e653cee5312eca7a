"""Streams that tell no tokens, fail on the way or never end: what they cost counts, and what they say is heard."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.attacks.vendor import Vendor, serving
from tests.conftest import Outcome, Project
from tests.hostile_http import agent, hostile

CONFIG = """
dataset: {path: questions.jsonl}
agents: {mine: AGENT}
metrics: [basic/contains]
execution: {max_concurrent: 1, retry: {max_attempts: 1, initial_backoff_seconds: 0}EXECUTION}
MORE
"""
PROGRAM = """
    import json, os, sys, urllib.request
    key, url = os.environ["OPENAI_API_KEY"], os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    headers = {"content-type": "application/json", "authorization": "Bearer " + key}
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "How? " * 1_000}]}
    for _ in range(TIMES):
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request) as response:
            response.read(READ)
    print("It is 5.")
"""
COMMAND = (
    "{type: command, model: openai/m, command: [python, agent.py], env: {OPENAI_BASE_URL: '{model_base_url}',"
    " OPENAI_API_KEY: '{model_key}'}}"
)
OPENAI = "{type: openai, model: openai/m}"
QUOTA = {"message": "You exceeded your current quota, please check your plan.", "code": "insufficient_quota"}


def delta(text: str) -> str:
    choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
    return json.dumps({"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})


@contextmanager
def streaming(*events: str) -> Iterator[tuple[dict[str, str], list[bytes]]]:
    """Serve every request with these events, and yield the environment that leads there and the requests."""
    asked: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for event in events:
                self.wfile.write(f"data: {event}\n\n".encode())
                self.wfile.flush()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Say nothing of a client that hung up."""

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        base = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield {"OPENAI_BASE_URL": f"{base}/v1", "OPENAI_API_KEY": "key-of-nobody"}, asked
        finally:
            server.shutdown()
            thread.join()


def write(project: Project, agent: str, *, more: str = "", execution: str = "", times: int = 1, read: str = "") -> None:
    config = CONFIG.replace("AGENT", agent).replace("MORE", more).replace("EXECUTION", execution)
    asked = [{"id": f"q{number}", "question": "What is 2 + 3? " * 400, "answer": "5"} for number in range(6)]
    project.write(
        eval_yaml=config,
        questions_jsonl="".join(json.dumps(each) + "\n" for each in asked),
        agent_py=PROGRAM.replace("TIMES", str(times)).replace("READ", read),
    )


def run(project: Project, environ: dict[str, str]) -> Outcome:
    return project.keval("run", "eval.yaml", env=environ)


WHOLE = (delta("It is"), delta(" 5."), "[DONE]")


@pytest.mark.parametrize("read", ["", "10"])
def test_streams_that_tell_no_tokens_end_the_budget(project: Project, read: str) -> None:
    write(project, COMMAND, more="budget: {tokens: 3000}", read=read)

    with streaming(*WHOLE) as (environ, asked):
        outcome = run(project, environ)

    assert (3, 2) == (outcome.code, len(asked)), outcome.stdout
    assert "guessed for 2 trials" in outcome.stdout
    assert {None} == {trial["transcript"]["usage"]["output_tokens"] for trial in project.lines("trials.jsonl")}


def test_streams_that_tell_no_tokens_end_a_trial(project: Project) -> None:
    write(project, COMMAND, execution=", limits: {tokens: 5000}", times=50, read="10")

    with streaming(*WHOLE) as (environ, asked):
        run(project, environ)

    trials = project.lines("trials.jsonl")
    assert {"limit"} == {trial["failure"]["kind"] for trial in trials}
    assert len(asked) <= 6 * 5


@pytest.mark.parametrize("judged", [False, True])
def test_replies_that_tell_no_tokens_end_the_budget(project: Project, judged: bool) -> None:
    judge = "judges: {openai: {model: openai/m}}\nrubrics: [completeness]\n" if judged else ""
    write(project, "{type: testing/echo}" if judged else OPENAI, more=f"{judge}budget: {{tokens: 4000}}")

    vendor = Vendor(whole_usage="null", answer='{"score": 3, "reasoning": "So."}' if judged else "It is 5.")
    with serving(vendor) as environ:
        outcome = run(project, dict(environ))

    assert (3, True) == (outcome.code, len(vendor.asked) < 4), outcome.stdout
    assert "guessed for" in outcome.stdout


def test_replies_that_tell_no_tokens_cost_by_their_price(project: Project) -> None:
    price = "prices: {openai/m: {input: 1000, output: 1000}}\nbudget: {usd: 4}"
    write(project, OPENAI, more=price)

    vendor = Vendor(whole_usage="null")
    with serving(vendor) as environ:
        outcome = run(project, dict(environ))

    assert (3, True) == (outcome.code, len(vendor.asked) < 4), outcome.stdout


@pytest.mark.parametrize("first", [(), (delta("It"), delta(" is"))])
def test_an_account_without_credit_within_a_stream_ends_the_run(project: Project, first: tuple[str, ...]) -> None:
    write(project, COMMAND)

    with streaming(*first, json.dumps({"error": QUOTA})) as (environ, asked):
        outcome = run(project, environ)

    assert (3, 1) == (outcome.code, len(asked)), outcome.stdout
    assert QUOTA["message"] in outcome.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gadk", "ms", "openai", "command"])
@pytest.mark.parametrize("way", ["events", "line", "body", "gzip"])
def test_what_is_too_large_is_told_so_by_every_client(project: Project, kind: str, way: str) -> None:
    with hostile() as scene:
        asked, environ = agent(kind if kind != "command" else "openai", scene.url(way))
        write(
            project, COMMAND if kind == "command" else json.dumps(asked), execution=", max_reply_bytes: 1 MB", read=""
        )
        project.write(questions_jsonl='{"id": "a", "question": "Why?", "answer": "So."}\n')

        run(project, environ)

    (trial,) = project.lines("trials.jsonl")
    assert "reply_too_large" == trial["failure"]["kind"], trial["failure"]["message"]

"""A program with a model key: it asks the agent's model for replies as long as its attempt lasts, and nothing else."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import attrs
import pytest
import yaml
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.conftest import Outcome, Project
from tests.end_to_end.servers.model import served

KEY = "sk-of-the-user"
REPLY = {
    "id": "r",
    "object": "chat.completion",
    "created": 1,
    "model": "own",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Fine."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 40, "completion_tokens": 10, "total_tokens": 50},
}
ASKING = """
import http.client, json, os, subprocess, sys, time
from urllib.parse import urlsplit

at = urlsplit(os.environ["BASE"])
KEY = os.environ["KEY"]

def ask(method="POST", path="/chat/completions", body=b'{"model": "own", "messages": []}', key=KEY, whole=None, **more):
    headers = {"authorization": f"Bearer {key}", **{name.replace("_", "-"): value for name, value in more.items()}}
    connection = http.client.HTTPConnection(at.hostname, at.port)
    connection.request(method, whole or f"{at.path}{path}", body, headers)
    response = connection.getresponse()
    return response.status, response.read().decode()

"""


@attrs.frozen
class Vendor:
    """An endpoint with all that a user has at a vendor; what reaches it is kept."""

    asked: list[tuple[str, str, dict[str, str], bytes]] = attrs.field(factory=list)

    async def answer(self, request: Request) -> Response:
        path = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
        body = await request.body()
        self.asked.append((request.method, path, dict(request.headers), body))
        if b'"stream": true' in body:
            return StreamingResponse(self._events(), media_type="text/event-stream")
        return JSONResponse(REPLY)

    async def _events(self) -> AsyncIterator[str]:
        """A reply that does not end."""
        for _ in range(300):
            yield f"data: {json.dumps({**REPLY, 'choices': [], 'usage': None})}\n\n"
            await asyncio.sleep(0.05)

    @property
    def paths(self) -> list[str]:
        return [f"{method} {path}" for method, path, _, _ in self.asked]


@attrs.frozen
class Attack:
    """A project whose agent is a program that attacks, and the vendor behind its key."""

    project: Project
    vendor: Vendor
    env: dict[str, str]

    def run(self, program: str, *args: str, questions: int = 1, **sections: Any) -> Outcome:
        (self.project.root / "agent.py").write_text(ASKING + program, encoding="utf-8")
        env = {"BASE": "{model_base_url}", "KEY": "{model_key}"}
        agent = {"type": "command", "command": [sys.executable, "agent.py", "{question}"], "env": env}
        config = {
            "dataset": {"path": "questions.yaml"},
            "agents": {"a": {**agent, "model": "openai/own", **sections.pop("agent", {})}},
            "conditions": {"baseline": {}},
            "metrics": ["basic/turns"],
            "execution": {"max_concurrent": 1, "retry": {"initial_backoff_seconds": 0, "max_attempts": 1}},
            **sections,
        }
        asked = [{"id": f"q{number}", "question": f"{number}?"} for number in range(1, questions + 1)]
        self.project.write(eval_yaml=yaml.safe_dump(config), questions_yaml=yaml.safe_dump(asked))
        return self.project.spawn("run", "eval.yaml", *args, env=self.env)

    @property
    def trials(self) -> dict[str, dict[str, Any]]:
        return {line["sample"]: line for line in self.project.lines("trials.jsonl")}

    def answer(self) -> Any:
        """What the program wrote, as JSON."""
        (trial,) = self.trials.values()
        return json.loads(trial["output"])


@pytest.fixture
def attack(project: Project) -> Iterator[Attack]:
    vendor = Vendor()
    methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    with served(Starlette(routes=[Route("/{path:path}", vendor.answer, methods=methods)])) as base:
        urls = {"OPENAI_BASE_URL": f"{base}/v1", "ANTHROPIC_BASE_URL": base, "GOOGLE_GEMINI_BASE_URL": base}
        yield Attack(
            project, vendor, {**urls, **dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"), KEY)}
        )


@pytest.mark.slow
def test_no_key_opens_anything_but_that_of_the_attempt_as_long_as_it_lasts(attack: Attack) -> None:
    outcome = attack.run(
        """
kept = os.path.join(os.path.dirname(sys.argv[0]), "key")
if sys.argv[1] == "1?":
    open(kept, "w").write(KEY)
    print(json.dumps([ask()[0]]))
else:
    keys = [KEY[:-1], KEY + "x", KEY + ".9999", KEY.partition(".")[0] + ".1", "guess", "", open(kept).read()]
    print(json.dumps([ask(key=key)[0] for key in keys] + [ask(x_keval_asker="1")[0]]))
""",
        questions=2,
    )

    assert 0 == outcome.code, outcome.stderr
    said = {sample: json.loads(trial["output"]) for sample, trial in attack.trials.items()}
    assert {"q1": [200], "q2": [401] * 7 + [200]} == said
    assert ["POST /v1/chat/completions"] * 2 == attack.vendor.paths
    (denied,) = attack.trials["q2"]["transcript"]["denied"]
    assert (7, True) == (denied["count"], "of no attempt that is under way" in denied["reason"])
    shown = attack.project.spawn("show", str(attack.project.run_directory()), "--trial", attack.trials["q2"]["id"])
    assert "not passed on to the model, 7 times: a request" in shown.stdout, shown.stdout


@pytest.mark.slow
def test_whatever_a_program_asks_counts_to_its_trial_and_to_the_budget(attack: Attack) -> None:
    outcome = attack.run(
        """
told = [ask(key=KEY + ".9999")[0] for _ in range(90)]
print(json.dumps([*told, *(ask(x_keval_asker=str(number), x_keval_trial="q9")[0] for number in range(90))]))
""",
        questions=3,
        budget={"tokens": 1000},
    )

    (trial,) = attack.trials.values()
    assert 3 == outcome.code
    assert [401] * 90 + [200] * 90 == json.loads(trial["output"])
    assert (90, 90 * 40) == (trial["transcript"]["model_calls"], trial["transcript"]["usage"]["input_tokens"])
    assert "budget used: 4,500 of 1,000 tokens" in outcome.stdout


GIVEN = """
import os, time
while not os.path.exists("given"):
    time.sleep(0.01)
os.environ["BASE"], os.environ["KEY"] = open("given").read().split()
"""
ACCOMPLICE = """
for number in range(300):
    try:
        status, _ = ask()
    except (OSError, http.client.HTTPException):
        status = "cut"
    open("late", "a").write(f"{status}\\n")
    if status == 401:
        break
open("late", "a").write("end")
"""


@pytest.mark.slow
def test_who_outlives_an_attempt_asks_no_more_with_its_key_and_what_was_asked_counts(attack: Attack) -> None:
    root = attack.project.root
    (root / "accomplice.py").write_text(GIVEN + ASKING + ACCOMPLICE, encoding="utf-8")
    accomplice = subprocess.Popen([sys.executable, "accomplice.py"], cwd=root)

    outcome = attack.run(
        """
root = os.path.dirname(sys.argv[0])
late = lambda: open(f"{root}/late").read() if os.path.exists(f"{root}/late") else ""
first = not os.path.exists(f"{root}/given")
if first:
    open(f"{root}/giving", "w").write(f"{os.environ['BASE']} {KEY}")
    os.rename(f"{root}/giving", f"{root}/given")
while not late() or not first and "end" not in late():
    time.sleep(0.01)
print("[]")
""",
        questions=2,
    )

    accomplice.wait(60)
    answered = (root / "late").read_text("utf-8").split()
    trials = [trial["transcript"] for trial in attack.trials.values()]
    assert 0 == outcome.code, outcome.stderr
    assert ["401", "end"] == answered[-2:]
    assert len(attack.vendor.asked) == sum(trial["model_calls"] or 0 for trial in trials)
    denied = [denied["count"] for trial in trials for denied in trial.get("denied", ())]
    between = "requests to the model of the agent 'a' refused: 1" in outcome.stderr  # when no trial was under way
    assert [1] == denied or between, outcome.stderr


READER = """
connection = http.client.HTTPConnection(at.hostname, at.port)
connection.request("POST", f"{at.path}/chat/completions", b'{"model": "own", "messages": [], "stream": true}',
                   {"authorization": f"Bearer {KEY}"})
response = connection.getresponse()
open("begun", "w").write(response.readline().decode())
try:
    while response.readline():
        pass
except (OSError, http.client.HTTPException):
    pass
"""


@pytest.mark.slow
def test_a_reply_that_breaks_off_as_its_attempt_ends_counts_to_it(attack: Attack) -> None:
    root = attack.project.root
    (root / "reader.py").write_text(GIVEN + ASKING + READER, encoding="utf-8")
    reader = subprocess.Popen([sys.executable, "reader.py"], cwd=root)

    outcome = attack.run("""
root = os.path.dirname(sys.argv[0])
open(f"{root}/giving", "w").write(f"{os.environ['BASE']} {KEY}")
os.rename(f"{root}/giving", f"{root}/given")
while not os.path.exists(f"{root}/begun") or not open(f"{root}/begun").read():
    time.sleep(0.01)
print("[]")
""")

    reader.wait(60)
    (trial,) = attack.trials.values()
    assert 0 == outcome.code, outcome.stderr
    assert 1 == len(attack.vendor.asked) == trial["transcript"]["model_calls"]


OTHER = [
    ("GET", "/files"),
    ("GET", "/chat/completions"),
    ("POST", "/fine_tuning/jobs"),
    ("DELETE", "/models/own"),
    ("PUT", "/chat/completions"),
    ("POST", "/embeddings"),
    ("POST", "/batches"),
    ("POST", "/responses/resp_1/cancel"),
    ("POST", "/conversations"),
    ("POST", "//chat/completions"),
    ("POST", "/chat/completions/"),
    ("POST", "/chat/completions;x=1"),
    ("POST", "/chat%2Fcompletions"),
    ("POST", "/files/../chat/completions"),
    ("POST", "/%2e%2e/files?x=/chat/completions"),
    ("POST", "/chat/completions?key=1&model=stronger"),
    ("OPTIONS", "/chat/completions"),
]


@pytest.mark.slow
def test_only_the_path_of_a_reply_is_passed_on_and_the_trial_says_what_was_not(attack: Attack) -> None:
    program = f"print(json.dumps([ask(method, path) for method, path in {OTHER}] + [ask()]))"

    outcome = attack.run(program)

    *refused, (last, _) = attack.answer()
    assert 0 == outcome.code, outcome.stderr
    assert ([403] * len(OTHER), 200) == ([status for status, _ in refused], last)
    assert all(json.loads(body)["error"]["message"] for _, body in refused)
    assert ["POST /v1/chat/completions"] == attack.vendor.paths
    (trial,) = attack.trials.values()
    assert {f"{method} /openai/v1{path.partition('?')[0]}" for method, path in OTHER} == {
        each["request"] for each in trial["transcript"]["denied"]
    }


STRONGER = [
    b'{"model": "stronger", "messages": []}',
    b'{"model": "stronger", "model": "own", "messages": []}',
    b'{"model": "own", "model": "stronger", "messages": []}',
    b'{"mod\\u0065l": "own", "model": "stronger"}',
    b'{"model": "own", "Model": "stronger"}',
    b'{"model": "own", "models": ["stronger"]}',
    b'{"model": "own", "fallbacks": ["stronger"]}',
    b'{"model": "own", "extra_body": {"model": "stronger"}}',
    b'{"model": "own", "aws_bedrock_runtime_endpoint": "http://127.0.0.1:1"}',
    b'{"model": "own", "custom_llm_provider": "other"}',
    b'{"model": "own", "api_base": "http://127.0.0.1:1"}',
    b'{"model": "own", "tools": [{"type": "advisor", "model": "stronger"}]}',
    b'{"model": ["own"]}',
    b'{"model": "own/../stronger"}',
    b'{"messages": []}',
    b'[{"model": "own"}]',
    b'\xef\xbb\xbf{"model": "own"}',
    b'{"model": "own"} {"model": "stronger"}',
    b"",
]


@pytest.mark.slow
def test_no_other_model_is_asked_however_it_is_named(attack: Attack) -> None:
    program = f"print(json.dumps([ask(body=body)[0] for body in {STRONGER}] + [ask(content_encoding='gzip')[0]]))"

    outcome = attack.run(program)

    *refused, last = attack.answer()
    assert 0 == outcome.code, outcome.stderr
    assert ({400, 403}, 200) == ({*refused}, last)
    ((*_, headers, body),) = attack.vendor.asked
    assert (True, "application/json", b'{"model": "own", "messages": []}') == (
        "content-encoding" not in headers,
        headers["content-type"],
        body,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("api", "kind", "path", "elsewhere"),
    [
        (
            "gemini",
            "PERMISSION_DENIED",
            "/v1beta/models/own:generateContent?key={KEY}",
            [
                "/v1beta/models/stronger:generateContent",
                "/v1beta/models/own%2F..%2Fstronger:generateContent",
                "/v1beta/models/own/../stronger:generateContent",
                "/v1beta/models/stronger:generateContent?x=models/own:generateContent",
                "/v1beta/models/own:batchGenerateContent",
                "/v1beta/cachedContents",
                "/upload/v1beta/files",
                "/v1beta/models/own:generateContent?alt=media",
                "/v1beta/models/own:generateContent?%24httpMethod=DELETE",
            ],
        ),
        (
            "anthropic",
            "permission_error",
            "/v1/messages?beta=true",
            ["/v1/messages/batches", "/v1/files", "/v1/complete", "/v1/messages?x=1"],
        ),
        (
            "responses",
            "invalid_request_error",
            "/responses",
            ["/responses/compact", "/responses/resp_1", "/vector_stores"],
        ),
    ],
)
def test_every_wire_has_its_paths_alone(attack: Attack, api: str, kind: str, path: str, elsewhere: list[str]) -> None:
    model = {"gemini": "google/own", "anthropic": "anthropic/own", "responses": "openai/own"}[api]
    program = f"print(json.dumps([ask(path=path) for path in {elsewhere}] + [ask(path={path!r}.format(KEY=KEY))]))"

    outcome = attack.run(program, agent={"model": model, "api": api})

    *refused, (last, _) = attack.answer()
    assert 0 == outcome.code, outcome.stderr
    assert ([403] * len(elsewhere), 200) == ([status for status, _ in refused], last)
    whole = f"/v1{path}" if api == "responses" else path
    assert [f"POST {whole.partition('?key')[0]}"] == attack.vendor.paths
    assert kind in refused[0][1]


@pytest.mark.slow
def test_a_program_chooses_neither_the_account_nor_who_asks(attack: Attack) -> None:
    outcome = attack.run(
        """
print(json.dumps([ask(
    OpenAI_Organization="org-other", OpenAI_Project="p", x_api_key="other", api_key="other", x_goog_user_project="p",
    x_http_method_override="DELETE", x_original_url="/v1/files", x_forwarded_host="evil", forwarded="host=evil",
    x_portkey_config="{}", x_litellm_api_key="other", cookie="a=b", x_keval_trial="another", x_keval_asker="1",
    anthropic_beta="b", connection="close, authorization",
)[0]]))
"""
    )

    assert 0 == outcome.code, outcome.stderr
    ((*_, headers, _),) = attack.vendor.asked
    assert f"Bearer {KEY}" == headers["authorization"]
    known = {"accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "host"}
    assert {"anthropic-beta"} == headers.keys() - known - {"user-agent"}


def test_listing_models_and_counting_tokens_need_no_vendor(attack: Attack) -> None:
    outcome = attack.run(
        """
print(json.dumps([
    ask("GET", "/models"), ask("GET", "/models/own"), ask("GET", "/models/stronger"),
    ask(path="/responses/input_tokens"), ask("HEAD", "/models"),
]))
"""
    )

    listed, own, stronger, counted, headed = attack.answer()
    assert 0 == outcome.code, outcome.stderr
    assert [] == attack.vendor.asked
    assert ["own"] == [each["id"] for each in json.loads(listed[1])["data"]]
    assert ("own", 404) == (json.loads(own[1])["id"], stronger[0])
    assert (8, 200) == (json.loads(counted[1])["input_tokens"], headed[0])


@pytest.mark.slow
def test_a_model_that_is_listed_is_asked_counted_and_priced(attack: Attack) -> None:
    price = {"openai/own": {"input": 1, "output": 1}, "openai/small": {"input": 10, "output": 10}}
    program = (
        """print(json.dumps([ask(body=b'{"model": "%s"}' % name)[0] for name in (b"own", b"small", b"stronger")]))"""
    )

    outcome = attack.run(program, "--json", agent={"models": ["openai/small"]}, prices=price)

    assert [200, 200, 403] == attack.answer()
    (trial,) = attack.trials.values()
    used = {each["model"]: each["usage"]["input_tokens"] for each in trial["transcript"]["usage_by_model"]}
    assert {"openai/own": 40, "openai/small": 40} == used
    assert 50e-6 + 500e-6 == pytest.approx(json.loads(outcome.stdout)["trials"][0]["cost"]["usd"])

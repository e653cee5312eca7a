"""What ADK logs of odd replies does not reach the terminal: the failures of the trials tell of them."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tests.conftest import Project

pytestmark = pytest.mark.slow

BODIES = [b"{}", b"[]", b"null", b"7", b'""', b"<html></html>"]


@pytest.fixture
def endpoint() -> Iterator[str]:
    """An endpoint that answers 200 with each of the bodies in turn, and so in all protocols with none."""
    bodies = itertools.cycle(BODIES)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            body = next(bodies)
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("provider", ["google", "openai", "anthropic"])
def test_replies_that_are_none_leave_the_terminal_alone(project: Project, endpoint: str, provider: str) -> None:
    project.write(
        eval_yaml=f"""
            dataset: {{path: questions.jsonl}}
            agents: {{gadk: {{model: {provider}/any}}}}
            metrics: [basic/latency]
            execution: {{max_concurrent: 1, retry: {{max_attempts: 1, max_request_attempts: 1}}}}
        """,
        questions_jsonl="".join(json.dumps({"id": f"q{n}", "question": "Why?"}) + "\n" for n in range(2 * len(BODIES))),
    )
    keys = {f"{vendor}_API_KEY": "k" for vendor in ("GOOGLE", "OPENAI", "ANTHROPIC")}
    urls = dict.fromkeys(("GOOGLE_GEMINI_BASE_URL", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"), endpoint)

    outcome = project.spawn("run", "eval.yaml", "-q", env={**keys, **urls})

    failures = [trial["failure"] for trial in project.lines("trials.jsonl")]
    assert (3, {"bad_reply"}) == (outcome.code, {failure["kind"] for failure in failures}), outcome.stderr
    assert "Traceback" not in outcome.stderr
    # The first refusal of the endpoint, where the log of ADK's warnings is, and how the run ended in three lines.
    assert len(outcome.stderr.splitlines()) == 5, outcome.stderr
    assert re.search(r"^\d+ warnings of google\.adk(, google\.genai)?: see .*/warnings\.log$", outcome.stderr, re.M)

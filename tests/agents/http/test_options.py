"""What is said before the run of an endpoint that cannot be used, or options that are wrong: through the command."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Outcome, Project


@pytest.fixture
def run(project: Project) -> Callable[..., Outcome]:
    """Run a config whose agent has these options, each of them a line."""

    def run(*options: str, rest: str = "") -> Outcome:
        lines = "".join(f"    {option}\n" for option in ("type: http", *options))
        project.write(questions_jsonl='{"id": "q1", "question": "What is 2 + 3?", "answer": "5"}\n')
        config = f"dataset: {{path: questions.jsonl}}\nagents:\n  mine:\n{lines}metrics: [basic/contains]\n{rest}"
        (project.root / "eval.yaml").write_text(config, encoding="utf-8")
        return project.keval("run", "eval.yaml")

    return run


@pytest.mark.parametrize(
    ("options", "place", "told"),
    [
        ([], "4:5", "the key 'url' is missing; add `url:` with a text"),
        (["url: 127.0.0.1:8000"], "5:10", "'url' must begin with http:// or https:// and a host; got '127.0.0.1:8000'"),
        (
            ["url: http://127.0.0.1/", "answer: 'data.['"],
            "6:13",
            "'answer' must be a JMESPath, such as data.answer: Invalid jmespath expression: Incomplete expression",
        ),
        (["url: http://127.0.0.1/", "usage: {input_tokens: 'a..b'}"], "6:27", "'input_tokens' must be a JMESPath"),
        (["url: http://127.0.0.1/", "usage: {tokens: a}"], "6:13", "unknown key 'tokens'"),
        (
            ["url: http://127.0.0.1/", "body: {q: '{{ qestion }}'}"],
            "6:11",
            "'body' must be made of valid templates: templates have no 'qestion'; did you mean 'question'?",
        ),
        (["url: http://127.0.0.1/", "body: {q: '{{ question'}"], "6:11", "the template is not valid: unexpected end"),
        (
            ["url: http://127.0.0.1/", "body: '{{ facts }}'"],
            "6:11",
            "templates have no 'facts'; they have: question, instructions, history, messages, session, servers, id, m",
        ),
        (
            ["url: http://127.0.0.1/", """body: '{"q": "{{ question }}"}'"""],
            "6:11",
            "'body' must render to JSON, and does not for a question with quotes and line ends",
        ),
        (["url: http://127.0.0.1/", "session: thread"], "6:14", "'session' must be used by a template"),
        (["url: http://127.0.0.1/", "method: GET"], "5:10", "'url' must have the question for GET"),
        (["url: http://127.0.0.1/", "method: DELETE"], "6:13", "expected POST or PUT or PATCH or GET, got 'DELETE'"),
    ],
)
def test_wrong_options_are_errors_at_their_place(run: Any, options: list[str], place: str, told: str) -> None:
    outcome = run(*options)

    assert (2, True) == (outcome.code, outcome.stderr.startswith(f"error: eval.yaml:{place}: ")), outcome.stderr
    assert told in outcome.stderr, outcome.stderr


def test_an_endpoint_that_is_not_there_is_an_error_before_the_run(run: Any, project: Project) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/ask"
        outcome = run(f"url: {url}")
        unprobed = run(f"url: {url}", "probe: false", rest="execution: {retry: {max_attempts: 1}}\n")

    assert (2, True) == (outcome.code, outcome.stderr.startswith(f"error: eval.yaml:3:3: nothing answers at {url}: "))
    assert outcome.stderr.endswith("start the agent, or correct `url`\n")
    failure = project.lines("trials.jsonl")[0]["failure"]
    assert (3, "connection") == (unprobed.code, failure["kind"])


@pytest.mark.slow
def test_servers_that_no_template_hands_over_are_an_error_before_the_run(run: Any) -> None:
    conditions = "contexts: {weather: {}}\nconditions: {with: {contexts: [weather]}}\n"

    outcome = run("url: http://127.0.0.1:9/ask", "probe: false", rest=conditions)

    told = "condition 'with' has MCP servers, and 'mine' can have none: no template hands them over; add"
    assert (2, True) == (outcome.code, outcome.stderr.startswith(f"error: eval.yaml:3:3: {told}")), outcome.stderr

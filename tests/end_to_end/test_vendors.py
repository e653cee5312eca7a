"""Models by their vendors' names: the same adapters reach them where the vendors' own variables say."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.conftest import Project

KEY = "sk-canary-0123456789"


@pytest.fixture(scope="module")
def vendors() -> Iterator[dict[str, str]]:
    """A gateway of its own, started by the command, as the environment of a vendor's customer."""
    command = [sys.executable, "-u", "-m", "keval", "gateway", "--simulate", "--port", "0"]
    environ = {**os.environ, "KEVAL_GATEWAY_KEY": KEY}
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = ""
        while not (urls := dict(re.findall(r"(\w+_(?:BASE_)?URL)=(http://\S+)", said))).keys() >= {
            "OPENAI_BASE_URL",
            "ANTHROPIC_BASE_URL",
            "GOOGLE_GEMINI_BASE_URL",
        }:
            line = process.stdout.readline()
            assert line, said
            said += line
        yield {**urls, "OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY, "GOOGLE_API_KEY": KEY}
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


def test_vendors_models_are_reached_by_name(weather: Callable[..., Project], vendors: dict[str, str]) -> None:
    models = {
        "ms-gpt": "{type: ms, model: openai/gpt-test}",
        "ms-gpt-responses": "{type: ms, model: openai/gpt-test, api: responses}",
        "adk-gemini": "{type: gadk, model: google/gemini-test}",
        "adk-gpt": "{type: gadk, model: openai/gpt-test}",
        "adk-claude": "{type: gadk, model: anthropic/claude-test}",
    }
    agents = "".join(f"\n  {label}: {options}" for label, options in models.items())
    project = weather(("\n  gadk: {model: simulated/weather}", agents))
    flags = ["--condition", "with_weather", "--sample-id", "helsinki-now"]

    outcome = project.run("eval.yaml", *flags, env=vendors)

    assert 0 == outcome.code, outcome.stderr
    trials = {trial["agent"]: trial for trial in project.lines("trials.jsonl")}
    assert models.keys() == trials.keys()
    assert ["get_current_weather"] * 5 == [trial["transcript"]["tool_calls"][0]["name"] for trial in trials.values()]
    # What stands behind a vendor's URL is the user's business: nothing is called simulated here.
    assert [] == project.read("manifest.json")["simulated"]
    files = [path for path in project.run_directory().rglob("*") if path.is_file()]
    kept = [path for path in files if KEY in path.read_text(encoding="utf-8")]
    assert [] == kept


def test_a_refused_key_fails_the_trials_with_the_vendors_reason(
    weather: Callable[..., Project], vendors: dict[str, str]
) -> None:
    project = weather(("{model: simulated/weather}", "{model: google/gemini-test}\n  ms: {model: openai/gpt-test}"))
    wrong = {"GOOGLE_API_KEY": "wrong", "OPENAI_API_KEY": "wrong"}

    flags = ["--condition", "baseline", "--sample-id", "helsinki-now"]
    outcome = project.run("eval.yaml", *flags, env={**vendors, **wrong})

    failures = {(trial["failure"]["stage"], trial["failure"]["kind"]) for trial in project.lines("trials.jsonl")}
    assert (3, {("model", "http_401")}) == (outcome.code, failures)
    assert [] == project.lines("scores.jsonl")

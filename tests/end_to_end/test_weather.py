"""The main job, on real parts: the real ADK and Agent Framework, a real MCP server, our gateway as the model."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest

from tests.conftest import Outcome, Project
from tests.end_to_end.conftest import EXAMPLE

Make = Callable[..., Project]


def calls(project: Project) -> dict[str, list[dict[str, Any]]]:
    return {trial["id"]: trial["transcript"]["tool_calls"] for trial in project.lines("trials.jsonl")}


def outputs(project: Project, agent: str) -> dict[str, str]:
    return {trial["id"]: trial["output"] for trial in project.lines("trials.jsonl") if trial["agent"] == agent}


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Outcome]:
    """The example, with fewer questions, where the environment names a proxy at which nobody answers."""
    project = Project(tmp_path_factory.mktemp("example"))
    nowhere = dict.fromkeys(["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"], "http://127.0.0.1:9")
    outcome = project.run(EXAMPLE / "weather.yaml", "--limit", "3", "--repetitions", "2", env=nowhere)
    return project, outcome


def test_the_example_says_what_the_context_does_for_both_frameworks(example: tuple[Project, Outcome]) -> None:
    project, outcome = example

    assert 0 == outcome.code, outcome.stderr
    assert [
        "weather   3 questions × 2   gadk, ms   baseline → with_weather",
        "SIMULATED MODEL: the figures test keval, not a model",
    ] == outcome.stdout.splitlines()[:2]
    summary = project.read("summary.json")
    planning = {
        effect["agent"]: effect["difference"]
        for effect in summary["effects"]
        if (effect["kind"], effect["metric"]) == ("condition", "weather/action_planning")
    }
    assert {"gadk", "ms"} == planning.keys()
    assert min(planning.values()) > 0
    assert ["simulated/weather"] == summary["simulated"] == project.read("manifest.json")["simulated"]
    assert 14 == len({arm["metric"] for arm in summary["arms"]})
    served = [call for made in calls(project).values() for call in made]
    assert served
    assert {1} == {call["executions"] for call in served}


def test_a_proxy_in_the_environment_sees_nothing_of_loopback(example: tuple[Project, Outcome]) -> None:
    project, outcome = example

    assert (0, [None] * 24) == (outcome.code, [trial["failure"] for trial in project.lines("trials.jsonl")])


def test_another_framework_is_one_word_of_the_config(example: tuple[Project, Outcome]) -> None:
    config = (EXAMPLE / "weather.yaml").read_text(encoding="utf-8")
    asked: dict[str, dict[str, Any]] = {"gadk": {}, "ms": {}}
    for name, made in calls(example[0]).items():
        agent, _, rest = name.partition("/")
        asked[agent][rest] = [(call["name"], call["arguments"]) for call in made]

    options = "    model: ${KEVAL_EXAMPLE_MODEL:-simulated/weather}\n"
    assert f"agents:\n  gadk:\n{options}  ms:\n{options}" in config
    assert asked["gadk"] == asked["ms"]
    assert [("get_current_weather", {"city": "Helsinki"})] == asked["ms"]["with_weather/helsinki-now/1"]


@pytest.mark.slow
def test_a_run_can_be_repeated_and_its_repetitions_differ(example: tuple[Project, Outcome], project: Project) -> None:
    first = outputs(example[0], "ms")

    flags = ["--agent", "ms", "--limit", "3", "--repetitions", "2", "-q", "-j", "2"]
    project.run(EXAMPLE / "weather.yaml", *flags)

    assert first == outputs(project, "ms")
    answers = {name.rpartition("/")[0]: set[str]() for name in first}
    for name, output in first.items():
        answers[name.rpartition("/")[0]].add(output)
    assert max(map(len, answers.values())) > 1


@pytest.mark.slow
def test_the_whole_example_runs(project: Project) -> None:
    outcome = project.run(EXAMPLE / "weather.yaml")

    summary = project.read("summary.json")
    assert 0 == outcome.code, outcome.stderr
    assert 408 == sum(arm["trials"] for arm in summary["trials"])


def test_the_example_of_recorded_answers_calls_nothing_and_tells_the_assistants_apart(project: Project) -> None:
    outcome = project.run(EXAMPLE.parent / "recorded" / "recorded.yaml")

    assert 0 == outcome.code, outcome.stderr
    summary = project.read("summary.json")
    found = {(arm["agent"], arm["metric"].removeprefix("weather/")): arm for arm in summary["arms"]}
    # The ratings of the methodology's own examples.
    assert (0.0, 1.0, 0.8, 0.7, 1.0, 0.35) == tuple(
        found[agent, metric]["mean"]
        for metric in ("implementation_effort", "integration_simplicity", "debuggability")
        for agent in ("gadk", "ms")
    )
    assert found["gadk", "accuracy"]["mean"] > found["ms", "accuracy"]["mean"]
    assert ("excellent", "poor") == (found["gadk", "debuggability"]["band"], found["ms", "debuggability"]["band"])
    assert ([], 17) == (summary["simulated"], sum(arm["trials"] for arm in summary["trials"]))


def test_the_schema_beside_the_examples_is_the_current_one(project: Project) -> None:
    if find_spec("keval_claude_code"):
        pytest.skip("the schema in examples/ is that of the default installation, without keval-claude-code")
    shipped = EXAMPLE.parent / "keval.schema.json"

    outcome = project.spawn("schema", env={"PYTHONPATH": ""})

    assert shipped.read_text(encoding="utf-8") == outcome.stdout, (
        "make it anew: keval schema > examples/keval.schema.json"
    )


def test_every_example_names_its_schema() -> None:
    examples = [path.read_text(encoding="utf-8") for path in sorted(EXAMPLE.parent.glob("*/*.yaml"))]

    first_lines = {text.splitlines()[0] for text in examples if "\nagents:" in text}  # others are for Kubernetes
    assert {"# yaml-language-server: $schema=../keval.schema.json"} == first_lines

"""Stored preferences, as a user has them: learned in one run, exported, and what the next run begins with."""

from __future__ import annotations

import json
from typing import Any

import pytest

from keval import open_run
from tests.conftest import Project
from tests.kits.exporter_kit import check_exporter

CONFIG = """
name: remember
dataset: {path: questions.jsonl}
agents: {AGENTS}
contexts: {weather: {preferences: {store: preferences.json}}}
conditions:
  with_weather: {system_prompt: "You help with the weather. The user's id is user-1.", contexts: [weather]}
metrics: [weather/adaptation_quality]
"""
ONE = "{one: {type: openai, model: simulated/weather}}"
BOTH = "{one: {type: openai, model: simulated/weather}, two: {type: openai, model: simulated/weather}}"
QUESTIONS = [
    {"id": "cold", "question": "I hate cold weather. What's the weather in Helsinki?"},
    {"id": "wear", "question": "What should I wear in Oslo today?"},
]
LEARNED = {"dislikes_cold": True, "insights": ["I hate cold weather."], "learned_from_conversations": 1}

pytestmark = pytest.mark.usefixtures("simulated_here")


def write(project: Project, *, agents: str = ONE, stored: Any = None) -> None:
    project.write(
        eval_yaml=CONFIG.replace("{AGENTS}", agents), questions_jsonl="".join(json.dumps(q) + "\n" for q in QUESTIONS)
    )
    if stored is not None:
        project.write(preferences_json=json.dumps(stored))


def trials_of(project: Project) -> dict[str, Any]:
    return {trial["id"]: trial["transcript"] for trial in project.lines("trials.jsonl")}


def looked_up(transcript: Any) -> Any:
    """What the server told of the user."""
    (call,) = [call for call in transcript["tool_calls"] if call["name"] == "get_user_preferences"]
    return json.loads(call["result"])


@pytest.mark.slow
def test_what_one_run_learned_is_what_the_next_begins_with(project: Project) -> None:
    write(project)

    first = project.keval("run", "eval.yaml", "-o", "first", "--json")
    exported = project.keval("export", "latest", "-o", "first", "--format", "weather/preferences", "--to", ".")
    stored = json.loads((project.root / "preferences.json").read_text(encoding="utf-8"))
    second = project.keval("run", "eval.yaml", "--json")

    assert [0, 0, 0] == [first.code, exported.code, second.code]
    assert {"arms": {"one/with_weather": LEARNED}} == stored
    of_first, of_second = (data["arms"][0] for data in (first.data, second.data))
    assert [(1, 1), (2, 0)] == [(arm["scored"], arm["neutral"]) for arm in (of_first, of_second)]
    asked = trials_of(project)["one/with_weather/wear/1"]
    assert {"preferences": LEARNED} == asked["facts"]
    told = looked_up(asked)
    assert (True, ["I hate cold weather."]) == (told["preferences"]["dislikes_cold"], told["insights"])
    assert [stored] == [
        context["preferences"]["content"] for context in project.read("manifest.json")["config"]["contexts"].values()
    ]


@pytest.mark.slow
def test_its_exporter_keeps_the_rules(project: Project) -> None:
    write(project)
    assert 0 == project.keval("run", "eval.yaml").code

    check_exporter("weather/preferences", run=open_run(project.run_directory()))


@pytest.mark.slow
def test_each_trial_begins_with_what_its_arm_has_stored_and_the_sample_says(project: Project) -> None:
    stored = {"dislikes_rain": True, "arms": {"two/with_weather": {"dislikes_cold": True, "prefers_sunny": True}}}
    write(project, agents=BOTH, stored=stored)
    own = {**QUESTIONS[1], "facts": {"preferences": {"prefers_sunny": False}}}
    project.write(questions_jsonl=json.dumps(own) + "\n" + json.dumps({**QUESTIONS[1], "id": "again"}) + "\n")

    outcome = project.keval("run", "eval.yaml", "--json")

    begun = {name: looked_up(transcript)["preferences"] for name, transcript in trials_of(project).items()}
    assert {
        "one/with_weather/wear/1": {"dislikes_rain": True, "prefers_sunny": False},
        "one/with_weather/again/1": {"dislikes_rain": True},
        "two/with_weather/wear/1": {"dislikes_cold": True, "prefers_sunny": False},
        "two/with_weather/again/1": {"dislikes_cold": True, "prefers_sunny": True},
    } == begun
    assert begun == {name: transcript["facts"]["preferences"] for name, transcript in trials_of(project).items()}
    assert 2 == outcome.data["unlike_facts"]


@pytest.mark.slow
def test_a_run_that_goes_on_or_is_replayed_has_what_it_began_with(project: Project) -> None:
    begun = {"dislikes_cold": True, "insights": ["Pays ${HOME} in $${cash}."]}
    write(project, stored=begun)

    ran = project.keval("run", "eval.yaml", "--record", "-o", "results")
    project.write(preferences_json=json.dumps({"dislikes_heat": True}))
    resumed = project.keval("resume", "latest", "--add-repetitions", "1")
    facts = [transcript["facts"] for transcript in trials_of(project).values()]
    replayed = project.keval("run", "--replay", str(project.run_directory()), "-o", "replayed")
    exported = project.keval("export", "latest", "--format", "weather/preferences", "--to", "exported")

    assert [0, 0, 0, 0] == [ran.code, resumed.code, replayed.code, exported.code], resumed.stderr + replayed.stderr
    assert [{"preferences": begun}] * 4 == facts
    (trials,) = (project.root / "replayed").glob("*/*/trials.jsonl")
    again = [json.loads(line)["transcript"]["facts"] for line in trials.read_text(encoding="utf-8").splitlines()]
    assert facts == again
    kept = json.loads((project.root / "exported/preferences.json").read_text(encoding="utf-8"))
    assert {
        **begun,
        "arms": {
            "one/with_weather": {
                "dislikes_cold": True,
                "insights": ["Pays ${HOME} in $${cash}.", "I hate cold weather."],
                "learned_from_conversations": 2,
            }
        },
    } == kept


@pytest.mark.slow
def test_a_run_that_learned_nothing_has_nothing_to_store(project: Project) -> None:
    write(project)
    project.keval("run", "eval.yaml", "--sample-id", "wear")

    outcome = project.keval("export", "latest", "--format", "weather/preferences", "--to", ".")

    assert 2 == outcome.code
    assert "began with preferences or learned any; there is nothing to store" in outcome.stderr
    assert not (project.root / "preferences.json").exists()


@pytest.mark.slow
def test_a_trial_that_failed_has_taught_nothing(project: Project) -> None:
    write(project)
    project.keval("run", "eval.yaml", "--sample-id", "cold")
    (trial,) = project.lines("trials.jsonl")
    failed = {**trial, "failure": {"stage": "agent", "kind": "late", "message": "too late", "traceback": None}}
    (project.run_directory() / "trials.jsonl").write_text(json.dumps(failed) + "\n", encoding="utf-8")

    outcome = project.keval("export", "latest", "--format", "weather/preferences", "--to", ".")

    assert (2, True) == (outcome.code, "there is nothing to store" in outcome.stderr)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "'store' must be JSON; {file}:1:2: Expecting property name enclosed in double quotes"),
        ("[]", "'store' must hold preferences; in {file}, there is [] in place of an object of names and values"),
        ('{"dislike_cold": true}', "in {file}, the key 'dislike_cold' is unknown; did you mean 'dislikes_cold'?"),
        ('{"dislikes_cold": "yes"}', "in {file}, 'dislikes_cold' is true or false, got 'yes'"),
        ('{"learned_from_conversations": -1}', "'learned_from_conversations' is a whole number from 0, got -1"),
        ('{"insights": "cold"}', "'insights' is a list of texts, got 'cold'"),
        ('{"arms": {"a/b": {"arms": {}}}}', "of the arm 'a/b', the key 'arms' is unknown"),
    ],
)
def test_a_store_that_cannot_be_used_is_told_at_its_place(project: Project, content: str, problem: str) -> None:
    write(project)
    project.write(preferences_json=content)

    outcome = project.keval("validate", "eval.yaml")

    assert 2 == outcome.code
    assert outcome.stderr.startswith("error: eval.yaml:4:43: 'store' must")
    assert problem.replace("{file}", str(project.root / "preferences.json")) in outcome.stderr


def test_a_store_in_a_folder_that_is_not_there_is_an_error(project: Project) -> None:
    write(project)
    text = (project.root / "eval.yaml").read_text(encoding="utf-8")
    project.write(eval_yaml=text.replace("preferences.json", "stores/preferences.json"))

    outcome = project.keval("validate", "eval.yaml")

    assert 2 == outcome.code
    assert f"'store' must be in a folder that exists; make {project.root / 'stores'}" in outcome.stderr

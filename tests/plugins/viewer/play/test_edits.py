"""Editing what a play compares, and keeping what came of it: questions and conditions."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from keval.plugin import ConfigError
from keval_viewer.play import Edit, Play, PlayError, QuestionInput
from tests.conftest import Project
from tests.plugins.viewer.play.test_play import TALKERS, played

pytestmark = pytest.mark.usefixtures("simulated_here")

CONTEXTS = """
agents:
  openai: {model: simulated/weather}
contexts: {weather: {}}
conditions:
  baseline: {}
  with_weather: {system_prompt: You help., contexts: [weather]}
metrics: [double/length]
"""
DERIVED = CONTEXTS.replace("weather: {}}", "weather: {}, worded: {from: weather, describe: {get_current_weather: A.}}}")
WORDS = "Tells the weather.\nNow."


@pytest.mark.slow  # three servers are started, one after the other
def test_an_edit_begins_another_run_with_other_descriptions_and_prompts(project: Project) -> None:
    async def talk(play: Play) -> list[str]:
        await play.ask("What's the weather in Oslo?")
        play.switch("openai/baseline", on=False)
        await play.edit(Edit(condition="with_weather", name="terse", descriptions={"get_current_weather": WORDS}))
        await play.edit(Edit(condition="terse", system_prompt="Be brief.", descriptions={"get_weather_forecast": "F."}))
        question = await play.ask("What's the weather in Oslo?")
        assert ["openai/with_weather", "openai/terse"] == [answer.column for answer in question.answers]
        (terse,) = (each for each in play.conditions if each.label == "terse")
        told = {tool.name: (tool.description, tool.original) for tool in terse.tools}
        assert "Be brief." == terse.system_prompt
        assert (WORDS, "F.") == (told["get_current_weather"][0], told["get_weather_forecast"][0])
        assert str(told["get_current_weather"][1]).startswith("Get the current weather")
        record = question.answers[1].record
        assert record is not None
        assert record.transcript is not None
        assert str(record.transcript.instructions).startswith("Be brief.")
        assert ["get_current_weather"] == [call.name for call in record.transcript.tool_calls]
        return [play.condition_yaml("terse"), *(run.id for run in play.runs)]

    text, *runs = played(CONTEXTS, talk)

    expected = """\
contexts:
  weather_edited:
    from: weather
    describe:
      get_current_weather: |-
        Tells the weather.
        Now.
      get_weather_forecast: F.
conditions:
  terse:
    system_prompt: Be brief.
    contexts:
      - weather_edited
"""
    assert expected == text
    # The run between the edits has gone, as nothing was asked in it.
    assert 2 == len(runs)
    assert {*runs} == {path.parent.name for path in Path("results").rglob("manifest.json")}


@pytest.mark.slow  # starts servers
def test_a_context_that_was_changed_in_its_place_is_pasted_too(project: Project) -> None:
    async def talk(play: Play) -> str:
        await play.edit(Edit(condition="with_weather", descriptions={"get_weather_forecast": "B."}))
        return play.condition_yaml("with_weather")

    text = played(DERIVED.replace("[weather]", "[worded]"), talk)

    told = yaml.safe_load(text)
    describe = {"get_current_weather": "A.", "get_weather_forecast": "B."}
    assert {"worded": {"from": "weather", "describe": describe}} == told["contexts"]


def test_a_condition_that_is_pasted_runs(project: Project) -> None:
    async def talk(play: Play) -> str:
        await play.edit(Edit(condition="only", system_prompt="Hello\n  {{ id }}:\n"))
        return play.condition_yaml("only")

    text = played(TALKERS, talk)

    assert "conditions:\n  only:\n    system_prompt: |\n      Hello\n        {{ id }}:\n" == text
    config = TALKERS.replace("conditions: {only: {}}\n", text)
    assert "Hello\n  q1: one" == played(config, _first_answer)


async def _first_answer(play: Play) -> str:
    return (await play.ask("one")).answers[0].text


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (Edit(condition="onyl", system_prompt="x"), "no condition named 'onyl'; did you mean 'only'"),
        (Edit(condition="only", descriptions={"look": "x"}), "the condition 'only' has no tool 'look'"),
        (Edit(condition="only", name="only", system_prompt="x"), "there is a condition named 'only' already"),
        (Edit(condition="only", system_prompt="{{ broken"), "the template is not valid"),
        (Edit(models={"steady": "simulated/any"}), "steady"),
        (Edit(system_prompt="x"), "names no condition"),
        (Edit(), "the edit changes nothing"),
    ],
)
def test_a_wrong_edit_leaves_the_play_as_it_is(project: Project, edit: Edit, told: str) -> None:
    async def talk(play: Play) -> tuple[str, int]:
        await play.ask("one")
        with pytest.raises(ConfigError, match=told):
            await play.edit(edit)
        return (await play.ask("two")).answers[0].text, len(play.runs)

    assert ("one two", 1) == played(TALKERS, talk)


def test_a_model_can_be_changed(project: Project) -> None:
    async def talk(play: Play) -> list[str | None]:
        before = play.columns[0].model
        await play.edit(Edit(models={"openai": "simulated/any"}))
        await play.ask("What's the weather in Oslo?")
        return [before, play.columns[0].model, play.run.manifest.agents["openai"].model]

    config = "agents: {openai: {model: simulated/weather}}\nconditions: {only: {}}\n"
    assert ["simulated/weather", "simulated/any", "simulated/any"] == played(config, talk)


def test_an_edit_does_not_renew_the_budget(project: Project) -> None:
    async def talk(play: Play) -> list[str]:
        await play.ask("one")
        await play.edit(Edit(condition="only", system_prompt="Hello"))
        return [answer.state for answer in (await play.ask("two")).answers]

    assert ["done", "left_out"] == played(f"{TALKERS}budget: {{trials: 3}}\n", talk)


def test_a_question_is_kept_with_what_was_asked_before_it(project: Project) -> None:
    name, before = "questions.jsonl", '{"id": "first", "question": "Is it so?"}'  # without a newline
    Path(name).write_text(before, encoding="utf-8")
    config = f"{TALKERS}dataset: {{path: {name}}}\nplugins: [double/facts]\n"

    async def talk(play: Play) -> list[str]:
        await play.ask(QuestionInput("yes", answer="ja: so", facts={"user": {"id": 7}}, metadata={"kind": "010"}))
        await play.ask("yes")
        kept = [play.keep_sample("q1"), play.keep_sample("q1"), play.keep_sample("q1.2", answer="# 2\n\n y")]
        with pytest.raises(PlayError, match="no question 'q7' was asked"):
            play.keep_sample("q7")
        return [each.id for each in kept]

    assert ["q1", "q1-2", "q1.2"] == played(config, talk)

    assert Path(name).read_text(encoding="utf-8").startswith(before)

    async def look(play: Play) -> list[tuple[object, ...]]:
        found = (play.samples.named(kept) for kept in ("q1", "q1-2", "q1.2"))
        return [(each.question, each.turns, each.answer, each.facts, each.metadata) for each in found]

    asked = {"user": {"id": 7}}, {"kind": "010"}
    first = ("yes", (), "ja: so", *asked)
    assert [first, first, ("yes", ("yes",), "# 2\n\n y", *asked)] == played(config, look)


def test_what_was_looked_up_is_kept_if_it_is_asked_for_and_a_new_file_is_made(project: Project) -> None:
    async def talk(play: Play) -> str:
        await play.ask("one")
        with pytest.raises(PlayError, match="the config has no dataset; name a file"):
            play.keep_sample("q1")
        with pytest.raises(PlayError, match="in JSON lines"):
            play.keep_sample("q1", "kept.csv")
        return play.keep_sample("q1", "new/kept.jsonl", looked_up=True).written

    assert '{"id":"q1","question":"one","facts":{"truth":"sun"}}' == played(f"{TALKERS}plugins: [double/facts]\n", talk)

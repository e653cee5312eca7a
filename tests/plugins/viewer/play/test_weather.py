"""Plays of the weather example: real frameworks, the real weather server, and a simulated model."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from keval import open_run
from keval_viewer.play import Answer, Asked, Play, Question, Standings
from tests.conftest import Project
from tests.plugins.viewer.play.test_play import played

pytestmark = pytest.mark.usefixtures("simulated_here")

EXAMPLE = Path(__file__).parents[4] / "examples" / "weather"
ONE = """
agents: {openai: {model: simulated/weather}}
contexts: {weather: {}}
conditions: {with_weather: {system_prompt: The user's id is user-1., contexts: [weather]}}
metrics: [weather/accuracy, weather/adaptation_quality]
plugins: [weather/ground-truth]
"""


def preferences(answer: Answer) -> list[str]:
    """What the server said about the user in the turn that was answered."""
    assert answer.record is not None
    assert answer.record.transcript is not None
    return [str(call.result) for call in answer.record.transcript.own_calls if "user_preferences" in call.name]


def test_a_conversation_learns_what_the_user_likes_and_another_one_does_not_know(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # where nothing is: loopback is reached without it
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("no_proxy", "")

    async def talk(play: Play) -> list[Answer]:
        learned = await play.ask("I hate the cold. What's the weather in Helsinki?")
        used = await play.ask("What should I wear in Tokyo today?")
        await play.new_conversation()
        seeded = await play.ask(Asked("What should I wear in Tokyo today?", facts={"preferences": {"likes": "rain"}}))
        return [question.answers[0] for question in (learned, used, seeded)]

    learned, used, seeded = played(ONE, talk)

    told = [each for answer in (learned, used, seeded) for each in preferences(answer)]
    assert [True, True, False] == ["dislikes_cold" in each for each in told]
    assert "likes" in told[2]
    assert 1.0 == used.scores[0].score.value
    transcripts = [answer.record.transcript for answer in (learned, used, seeded) if answer.record is not None]
    calls = sum(len(each.own_calls) for each in transcripts if each is not None)
    assert calls == open_run("latest").summary().trials[0].tool_calls


@pytest.mark.slow
def test_two_frameworks_answer_side_by_side(project: Project) -> None:
    for name in ("weather.yaml", "questions.jsonl"):
        shutil.copy(EXAMPLE / name, name)

    async def talk(play: Play) -> tuple[list[Question], Standings]:
        await play.ask("What's the weather in Helsinki?")
        await play.ask("And in Tokyo?")
        await play.ask(Asked(sample="helsinki-now"))
        return [*play.questions], play.standings()

    config = Path("weather.yaml").read_text(encoding="utf-8")
    questions, standings = played(config, talk, conditions=["with_weather"])

    for question in questions:
        for answer in question.answers:
            assert answer.record is not None
            assert answer.record.transcript is not None
            (call,) = answer.record.transcript.own_calls
            assert ("get_current_weather", 1) == (call.name, call.executions)
            accuracy = next(line.score for line in answer.scores if line.metric == "weather/accuracy")
            assert answer.record.sample.facts["weather"]["city"] == accuracy.details["city"]
            assert (14, "done", 0.0) == (len(answer.scores), answer.state, answer.cost)
    assert ["q1", "q1.2", "helsinki-now"] == [question.id for question in questions]
    assert ["Helsinki", "Tokyo"] == [question.sample.facts["weather"]["city"] for question in questions[:2]]
    found = {effect.metric: effect for effect in standings.differences}
    assert {("ms", "with_weather", 3, "agent")} == {
        (effect.agent, effect.condition, effect.n, effect.kind)
        for name, effect in found.items()
        if name == "weather/debuggability"
    }
    assert (3, "gadk/with_weather") == (standings.questions, standings.against)
    assert {(each.metric, each.mean) for each in standings.arms} == {
        (each.metric, each.mean) for each in open_run("latest").summary().arms
    }

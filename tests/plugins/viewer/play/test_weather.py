"""Plays of the weather example: real frameworks, the real weather server, and a simulated model."""

from __future__ import annotations

from pathlib import Path

import pytest

from keval import open_run
from keval_viewer.play import Play, PlayedAnswer, QuestionInput
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


def preferences(answer: PlayedAnswer) -> list[str]:
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

    async def talk(play: Play) -> list[PlayedAnswer]:
        learned = await play.ask("I hate the cold. What's the weather in Helsinki?")
        used = await play.ask("What should I wear in Tokyo today?")
        await play.new_conversation()
        seeded = await play.ask(
            QuestionInput("What should I wear in Tokyo today?", facts={"preferences": {"likes": "rain"}})
        )
        return [question.answers[0] for question in (learned, used, seeded)]

    learned, used, seeded = played(ONE, talk)

    told = [each for answer in (learned, used, seeded) for each in preferences(answer)]
    assert [True, True, False] == ["dislikes_cold" in each for each in told]
    assert "likes" in told[2]
    assert 1.0 == used.scores[0].score.value
    transcripts = [answer.record.transcript for answer in (learned, used, seeded) if answer.record is not None]
    calls = sum(len(each.own_calls) for each in transcripts if each is not None)
    assert calls == open_run("latest").summary().trials[0].tool_calls

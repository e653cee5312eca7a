"""A trial for people."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from keval import Message, Sample, Score, ScoreLine, Transcript, Trial, Usage
from keval.plugin import Citation
from keval.records.transcript import ServerExchange
from keval_report.transcripts import print_trial

ANSWER = "It is 3 °C, and feels like −2 °C."


def shown(marks: Any) -> str:
    messages = (Message("user", "How warm is it?"), Message("assistant", ANSWER))
    trial = Trial("t", Sample("s", "How warm is it?"), "a", "c", 1, Transcript(messages))
    score = Score(1.0, "it is right", details={"marks": marks})
    line = ScoreLine("t", "s", "a", "c", 1, "acme/warmth", None, score)
    screen = io.StringIO()
    print_trial(trial, [line], {}, Console(file=screen, force_terminal=True, width=120, highlight=False))
    return screen.getvalue()


def test_the_system_prompt_comes_first_and_plays_no_tricks() -> None:
    transcript = Transcript((Message("user", "How warm?"),), instructions="Be brief.\x1b[2J")
    trial = Trial("t", Sample("s", "How warm?", history=(Message("user", "Hello"),)), "a", "c", 1, transcript)
    screen = io.StringIO()

    print_trial(trial, [], {}, Console(file=screen, width=120))

    lines = screen.getvalue().splitlines()
    assert "system: Be brief." == lines[1][:17]
    assert "\x1b" not in screen.getvalue()
    assert ["user (earlier): Hello", "user: How warm?"] == lines[2:4]


def test_reasoning_sources_and_the_tier_are_told_with_an_answer() -> None:
    sources = (Citation("A [page]", "https://a.example", "Rain ends.\x1b[2J"), Citation("b.pdf"))
    said = Message("assistant", "It ends.", reasoning="Is it wet?", citations=sources)
    silent = Message("assistant", "", reasoning="I look.")
    transcript = Transcript(
        (Message("user", "Rain?"), silent, said), usage=Usage(9, 1, service_tier="flex"), model_calls=1
    )
    screen = io.StringIO()

    print_trial(Trial("t", Sample("s", "Rain?"), "a", "c", 1, transcript), [], {}, Console(file=screen, width=120))

    assert [
        "reasoning: I look.",
        "reasoning: Is it wet?",
        "assistant: It ends.",
        "  cites A [page]: https://a.example: Rain ends.�[2J",
        "  cites b.pdf",
        "unknown time, 1 model calls, 9 tokens in, 1 out, service tier flex",
    ] == [line.rstrip() for line in screen.getvalue().splitlines()[2:]]


def test_what_else_passed_is_told_with_who_answered() -> None:
    exchanges = (
        ServerExchange("docs", "resources/read", "agent", {"uri": "a"}, error="no such page", answered_by="server"),
        ServerExchange("docs", "elicitation/create", "server", result={"action": "decline"}, answered_by="policy"),
        ServerExchange("docs", "notifications/message", "server", {"data": "żółć"}),
    )
    trial = Trial("t", Sample("s", "Well?"), "a", "c", 1, Transcript((Message("user", "Well?"),), exchanges=exchanges))
    screen = io.StringIO()

    print_trial(trial, [], {}, Console(file=screen, width=120))

    expected = [
        "  ⇄ request from the agent, answered by docs: resources/read error: no such page",
        '  ⇄ request from docs, answered by the policy: elicitation/create {"action": "decline"}',
        '  ⇄ notification from docs: notifications/message {"data": "żółć"}',
    ]
    assert expected == [line for line in screen.getvalue().splitlines() if "⇄" in line]


def test_what_a_metric_read_is_underlined_and_listed() -> None:
    screen = shown([{"start": 6, "end": 10, "label": "temperature"}])

    assert "It is \x1b[4m3 °C\x1b[0m, and feels like −2 °C." in screen
    assert "read '3 °C': temperature" in screen


def test_what_was_read_right_or_wrong_is_told_together() -> None:
    words = [{"start": start, "end": start + 5, "label": "word"} for start in (16, 22)]
    screen = shown([{"start": 6, "end": 10, "label": "temperature, actual 9 °C", "kind": "bad"}, *words])

    assert "It is \x1b[4m3 °C\x1b[0m, and \x1b[4mfeels\x1b[0m \x1b[4mlike \x1b[0m−2 °C." in screen
    assert "read '3 °C': temperature, actual 9 °C, bad" in screen
    assert "read 'feels', 'like ': word" in screen


@pytest.mark.parametrize("marks", [None, 7, "all of it", [7], [{"start": 0}]])
def test_other_details_of_that_name_are_left_alone(marks: Any) -> None:
    assert ANSWER in shown(marks)

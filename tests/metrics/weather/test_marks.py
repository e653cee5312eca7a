"""What the metrics mark in an answer: what they read, as what, and whether it was right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from keval import Score, ToolCall, Trial
from keval_report.marks import marks_of
from tests.metrics.weather.conftest import WEATHER, make_trial
from tests.metrics.weather.test_agreement import METRICS, trial_of

ANSWERS = Path(__file__).parent / "answers"
ASKED = (("How is Helsinki tomorrow?", "It is 20 °C. Take an umbrella."),)
HISTORY = (("I hate cold weather. How is Helsinki tomorrow?", "It is 20 °C. Take an umbrella."),)


def read(metric: str, trial: Trial) -> list[tuple[str, str, str]]:
    """What a metric marks in the answer: the text, as what, and of what kind."""
    score: Score = METRICS[metric].score(trial)
    found = marks_of(score, trial.output)
    assert len(score.details.get("marks", ())) == len(found)
    return [(trial.output[mark.start : mark.end], mark.label, mark.kind) for mark in found]


def test_accuracy_marks_what_is_true_what_is_not_and_what_it_did_not_compare() -> None:
    trial = make_trial(
        "It is 20 °C and sunny in Helsinki, up to 30 °C. In Oslo it is 7 °C. The water temperature is 12 °C.",
        weather=WEATHER,
    )

    expected = [
        ("20 °C", "temperature, actual 20 °C", "good"),
        ("sunny", "sunny, actual rain", "bad"),
        ("30 °C", "high for 2026-06-18, actual high 21 °C", "bad"),
        ("7 °C", "temperature, not compared", "neutral"),
        ("12 °C", "water, not compared", "neutral"),
    ]
    assert expected == read("accuracy", trial)


def test_letters_with_combining_accents_do_not_shift_the_marks() -> None:
    trial = make_trial("In Cafe\u0301 Zu\u0308rich’s words, it is 20 °C in Helsinki.", weather=WEATHER)

    assert ["20 °C"] == [text for text, _, _ in read("accuracy", trial)]
    assert ["20 °C"] == [text for text, label, _ in read("task_completion", trial) if label == "figures"]


@pytest.mark.parametrize(
    ("metric", "trial", "expected"),
    [
        (
            "recommendation_quality",
            make_trial("I recommend a warm jacket, because it may rain.", "What should I wear in Oslo?"),
            [
                ("jacket", "specific items", "good"),
                ("because", "reasons", "good"),
            ],
        ),
        (
            "task_completion",
            make_trial("Sorry, I couldn't retrieve the weather.", "How is Oslo?"),
            [
                ("Sorry", "error or missing information", "bad"),
                ("couldn't retrieve", "error or missing information", "bad"),
            ],
        ),
        (
            "context_retention",
            make_trial(
                "Tomorrow Helsinki has 4 °C. As you hate the cold, dress warmly.",
                "So what should I pack?",
                history=HISTORY,
            ),
            [
                ("Tomorrow", "time remembered", "good"),
                ("Helsinki", "city remembered", "good"),
                ("you hate", "preference acknowledged", "good"),
                ("cold", "preference acknowledged", "good"),
            ],
        ),
        (
            "repeatability",
            make_trial("It is 9 °C, perhaps. Take an umbrella.", "How is Helsinki tomorrow?", history=ASKED),
            [
                ("9 °C", "temperatures both times", "good"),
                ("perhaps", "random language", "bad"),
                ("umbrella", "same items", "good"),
            ],
        ),
        (
            "ambiguity_handling",
            make_trial("Which city do you mean? You can try Oslo, for example.", "Will it rain?"),
            [
                ("you mean", "clarification asked for", "good"),
            ],
        ),
        (
            "error_recovery",
            make_trial(
                "The service is unavailable. Please check the radar app.",
                "How is Oslo?",
                calls=[ToolCall("get_current_weather", error="down", executions=1)],
            ),
            [("unavailable", "missing data acknowledged", "good")],
        ),
        (
            "adaptation_quality",
            make_trial(
                "Take a warm coat.",
                weather={"city": "Oslo", "current": {"temperature": -3, "main_condition": "Snow"}},
                preferences={"dislikes_cold": True},
            ),
            [("coat", "adapted to the cold", "good")],
        ),
        (
            "action_planning",
            make_trial("Take an umbrella first. Then it rains, 4 °C.", "Do I need an umbrella in Oslo?"),
            [
                ("umbrella", "advice before weather", "bad"),
                ("Then", "logical flow", "good"),
            ],
        ),
        (
            "debuggability",
            make_trial(
                "An error occurred: the weather service cannot be reached.", characteristics={"errors": "framework"}
            ),
            [("error", "descriptive error message", "good")],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_metric_marks_what_counted(metric: str, trial: Trial, expected: list[tuple[str, str, str]]) -> None:
    found = read(metric, trial)

    assert expected == [mark for mark in found if mark in expected], found


def test_what_an_earlier_answer_said_is_not_marked_in_this_one() -> None:
    trial = make_trial("Bring gloves: it is 21 °C there now.", "How is Helsinki tomorrow?", history=ASKED)

    expected = [("gloves", "different items", "bad"), ("21 °C", "temperatures both times", "good")]
    assert expected == read("repeatability", trial)


def test_answers_of_the_same_words_have_marks_of_their_own() -> None:
    known = {"errors": "framework"}
    trials = [
        make_trial(f"{opening}An error occurred in the service of the weather.", characteristics=known)
        for opening in ("", "I am sorry. ")
    ]

    assert ["error", "sorry, error"] == [
        ", ".join(text for text, _, _ in read("debuggability", trial)) for trial in trials
    ]


def test_marks_stand_at_whole_words_of_every_labelled_answer() -> None:
    cut = []
    for case in json.loads((ANSWERS / "shared.json").read_text(encoding="utf-8")):
        trial = trial_of(case)
        for name, metric in METRICS.items():
            score = metric.score(trial)
            marks = marks_of(score, trial.output)
            assert len(score.details.get("marks", ())) == len(marks)
            for mark in marks:
                text, before, after = trial.output[mark.start : mark.end], *around(trial.output, mark.start, mark.end)
                if text != text.strip() or (before + text[0]).isalpha() or (text[-1] + after).isalpha():
                    cut.append((case["id"], name, before, text, after))

    assert [] == cut


def around(text: str, start: int, end: int) -> tuple[str, str]:
    """The characters before and after a piece of a text; a space beyond its ends."""
    return text[start - 1 : start] or " ", text[end : end + 1] or " "

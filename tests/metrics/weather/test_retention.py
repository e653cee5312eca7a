"""What an answer remembers of the conversation: what it told, what is due and what was taken back."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from keval import Message, Sample, Transcript, Trial
from keval_metrics_weather.preferences import preferences_stated
from keval_metrics_weather.reading.words import read
from keval_metrics_weather.retention import ContextRetention
from tests.metrics.weather.conftest import make_trial as trial

History = Sequence[tuple[str, str]]

REMEMBERING = "It's 5°C in Helsinki. Since you mentioned disliking cold weather, I'd recommend staying indoors."
ASKING_BACK = (
    "Which city do you mean? I can then give you the conditions and a recommendation, for example for Helsinki or"
    " Paris."
)
HATES_COLD = [("I hate cold weather", "Noted.")]
PARIS = [("What's the weather in Paris tomorrow?", "Paris gets 15°C tomorrow.")]
IN_SAN_FRANCISCO = [("I'm in San Francisco.", ASKING_BACK)]
IN_DUBLIN = [("I'm in Dublin today.", "Enjoy it!")]
JACKET_TWICE = [("I'm in Oslo. Do I need a coat?", "Yes."), ("And tomorrow?", "Yes.")]


@pytest.mark.parametrize(
    ("history", "question", "answer", "expected"),
    [
        (HATES_COLD, "What's the weather in Helsinki?", REMEMBERING, 0.65),  # the document's example
        (HATES_COLD, "What's the weather in Helsinki?", "It's 5°C in Helsinki.", 0.5),
        (HATES_COLD, "What should I wear in Helsinki?", "Take a coat.", 0.35),
        (PARIS, "Should I take a coat?", "Paris will be mild tomorrow, no coat needed.", 0.85),
        (PARIS, "Should I take a coat?", "It's cold, so yes.", 0.15),
        (PARIS, "Should I take a coat?", "Which city are you in?", 0.15),  # the city was told
        (PARIS, "And on Sunday?", "On Sunday it's 16°C in Paris.", 0.7),
        (PARIS, "And on Sunday?", "On Sunday it's 16°C.", 0.3),
        (PARIS, "And in London?", "London gets 17°C tomorrow.", 0.65),
        ([("Weather in São Paulo?", "25°C")], "And later?", "Sao Paulo stays warm.", 0.7),
        (PARIS, "Tomorrow?", "Which city?", 0.3),
        ([("Is Oslo cold in the morning?", "Yes.")], "And at noon?", "Oslo gets 9 °C at noon.", 0.7),
        ([("Is Oslo cold in the morning?", "Yes.")], "Is Rome wet?", "Good morning! Rome is dry.", 0.5),
        (PARIS, "What's it like?", "Which city?", 0.15),
        (PARIS, "What could we do?", "Take a walk.", 0.15),
        (PARIS, "Do you remember where I am?", "No.", 0.15),
        (PARIS, "Thank you, that's all.", "Enjoy Paris!", 0.7),
    ],
)
def test_context_retention(history: History, question: str, answer: str, expected: float) -> None:
    assert expected == ContextRetention().score(trial(answer, question, history=history)).value


@pytest.mark.parametrize("question", ["Thank you, that's all.", "Write a poem about love", "Bye!"])
def test_a_message_that_wants_nothing_of_the_history_is_neutral(question: str) -> None:
    history = [("I hate rain. Weather in Oslo tomorrow?", "It rains in Oslo tomorrow.")]

    assert ContextRetention().score(trial("You're welcome!", question, history=history)).neutral


@pytest.mark.parametrize(
    ("history", "question", "answer", "expected"),
    [
        (IN_SAN_FRANCISCO, "And now?", ASKING_BACK, "-0.2 city ignored (San Francisco)"),
        (IN_SAN_FRANCISCO, "And now?", "It's 12 °C in San Francisco.", "+0.2 city remembered (San Francisco)"),
        ([("Hi!", "Ask about the weather in Oslo.")], "Yes?", "It rains in Oslo.", "+0.2 city remembered (Oslo)"),
        ([("Sorry, I meant Rome.", "Sure.")], "And now?", "I'm sorry, which city?", "-0.2 city ignored (Rome)"),
        ([("Rome?", "It's 9 °C.")], "Dry?", "It's fine in Rome, dry.", "+0.2 city remembered (Rome)"),
    ],
)
def test_cities_are_remembered_but_for_examples_and_interjections(
    history: History, question: str, answer: str, expected: str
) -> None:
    assert f"0.5 to begin with, {expected}" == ContextRetention().score(trial(answer, question, history=history)).reason


@pytest.mark.parametrize("said", [ASKING_BACK, "Do you mean Oslo? Or Rome?", "Name a city, such as Oslo.", "In Oslo?"])
def test_a_city_that_is_only_an_example_is_not_mentioned(said: str) -> None:
    score = ContextRetention().score(trial("It's fine in Oslo.", "And now?", history=[("Hello!", said)]))

    assert (True, "the history mentions no city, preference or time") == (score.neutral, score.reason)


@pytest.mark.parametrize(
    ("history", "question", "answer", "expected"),
    [
        (IN_DUBLIN, "What should I wear?", "Right now it's 8.4°C in Dublin.", []),
        (IN_DUBLIN, "What should I wear?", "It's 8.4°C in Dublin.", []),
        (IN_DUBLIN, "What should I wear?", "It will be 8.4°C in Dublin tomorrow.", ["ignored (today)"]),
        (IN_DUBLIN, "What should I wear?", "It's 8.4°C in Dublin today.", ["remembered (today)"]),
        (IN_DUBLIN, "What should I wear?", "It's 8.4°C in Dublin this evening.", []),
        ([("How is Rome this evening?", "8 °C")], "Do I need a coat?", "Yes, in Rome.", ["ignored (evening)"]),
        ([("Rome on Saturday?", "9 °C")], "Do I need a coat?", "Yes, in Rome.", ["ignored (Saturday)"]),
        ([("Rome on Saturday?", "9 °C")], "A coat then?", "Saturday in Rome: yes.", ["remembered (Saturday)"]),
        ([("Rome on Saturday?", "9 °C"), ("And now?", "8 °C")], "Do I need a coat?", "Yes, in Rome.", []),
        (JACKET_TWICE, "Once more: do I need a coat?", "Yes, in Oslo.", []),
        (JACKET_TWICE, "Will I need gloves?", "Yes, in Oslo.", ["ignored (tomorrow)"]),
        ([("Rain tomorrow?", ASKING_BACK)], "In Oslo.", "It's 4 °C in Oslo.", ["ignored (tomorrow)"]),
    ],
)
def test_times_are_ignored_only_where_they_are_due(
    history: History, question: str, answer: str, expected: list[str]
) -> None:
    points = ContextRetention().score(trial(answer, question, history=history)).details["points"]

    found = [f"{point['what'].removeprefix('time ')} ({', '.join(point['found'])})" for point in points]
    assert expected == [text for text in found if not text.startswith("city")]


@pytest.mark.parametrize(
    ("stated", "answer", "expected"),
    [
        (["I love museums."], "As you love art, visit a museum.", "+0.15 preference acknowledged (you love, museums)"),
        (["I hate hikes."], "You hate hiking, so take the bus.", "+0.15 preference acknowledged (you hate, hikes)"),
        (["I hate rain.", "I love museums."], "Take a coat.", "-0.15 preference ignored (rain, museums)"),
        (["I love hiking.", "I no longer enjoy hikes.", "I hate rain."], "Hm.", "-0.15 preference ignored (rain)"),
        (["I hate the rain. Sorry, I don't mind the rain any more."], "Hm.", ""),
        (["I like heat and I like cold snow.", "I don't like snow anymore."], "Hm.", "heat, cold)"),
        (["I no longer like hiking.", "I love hiking again."], "Hm.", "-0.15 preference ignored (hiking again)"),
    ],
)
def test_a_preference_holds_until_it_is_taken_back(stated: list[str], answer: str, expected: str) -> None:
    history = [*((said, "Noted.") for said in stated), ("I'm in Oslo.", "Fine.")]

    score = ContextRetention().score(trial(answer, "What should I do in Oslo?", history=history))

    assert score.reason.endswith(expected)
    assert ("preference" in score.reason) == bool(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I'm no longer a big fan of hiking", True),
        ("I don't mind the rain any more", True),
        ("I do not like hiking anymore", True),
        ("I used to love hiking", True),
        ("I don't like hiking", False),
        ("I mind the cold", False),
        ("I can't stand the cold any more", False),
    ],
)
def test_what_is_liked_no_more_is_told_from_what_is_disliked(text: str, expected: bool) -> None:
    assert [expected] == [stated.taken_back for stated in preferences_stated(read(text))]


def test_later_turns_of_a_conversation_remember_its_earlier_ones() -> None:
    sample = Sample("s", "I hate the rain. Weather in Oslo?", turns=("What should I wear?",))
    before = (
        Message("user", sample.question, 0),
        Message("assistant", "It rains in Oslo.", 0),
        Message("user", sample.turns[0], 1),
    )

    remembers, forgets = (
        ContextRetention().score(
            Trial("t", sample, "a", "c", 1, Transcript(messages=(*before, Message("assistant", said, 1))))
        )
        for said in ("Oslo is wet and you hate the rain, so take an umbrella.", "Take a hat.")
    )

    assert (0.85, 0.15) == (remembers.value, forgets.value)

"""The measurement of the simulated model on real servers: what is an answer, and that its questions are whole."""

from __future__ import annotations

from collections import Counter

import pytest
import simulated_hands as hands
from held_back_servers import HELD_BACK, SECOND_HELD_BACK, THIRD_HELD_BACK
from real_servers import SERVERS, Server


@pytest.mark.parametrize(
    ("golden", "text", "expected"),
    [
        (["412"], "It carries 412.0 passengers.", True),
        (["2023"], "The sum is 2,023.", True),
        (["187"], "2026-03-02,187", True),
        (["4.1"], "It is 14.1 m, or 4.15 m.", False),
        (["11:15"], "datetime: 2026-11-30T11:15:00+05:45", True),
        (["Thursdays|Thursday"], "They meet each thursday.", True),
        (["crew.md", "log.csv"], "There is crew.md.", False),
    ],
)
def test_an_answer_must_hold_every_golden_value(golden: list[str], text: str, expected: bool) -> None:
    assert expected == hands.Question("s", "q", golden, ()).is_answered_by(text)


@pytest.mark.parametrize(
    ("half", "servers", "others"),
    [
        ("held-back", HELD_BACK, hands.HANDS),
        ("unseen", SECOND_HELD_BACK, (*hands.HANDS, *HELD_BACK, *SERVERS)),
        ("unseen-again", THIRD_HELD_BACK, (*hands.HANDS, *HELD_BACK, *SECOND_HELD_BACK, *SERVERS)),
    ],
)
def test_ten_servers_that_are_in_no_other_half_are_held_back_with_five_questions_each(
    half: str, servers: tuple[Server, ...], others: tuple[Server, ...]
) -> None:
    asked = hands.questions(half)

    assert {server.name: 5 for server in servers} == Counter(each.server for each in asked)
    assert 10 == len({server.name for server in servers} - {server.name for server in others})
    assert not {server.package for server in servers} & {server.package for server in others}
    assert all(each.golden and each.calls for each in asked)
    assert not [each.question for each in asked if each.is_answered_by(each.question)]


def test_each_of_twenty_servers_has_five_questions_with_the_calls_that_prove_their_answers() -> None:
    halves = [hands.questions(half) for half in ("first", "second")]

    assert [50, 50] == [len(half) for half in halves]
    assert {server.name: 5 for server in hands.HANDS} == Counter(each.server for half in halves for each in half)
    assert all(each.golden and each.calls for half in halves for each in half)

"""When the simulated judge takes two numbers for the same: their scale, unit and rate, and the word they belong to."""

from __future__ import annotations

from random import Random

import pytest

from keval_simulator.judge.prompt import Sections
from keval_simulator.judge.verdict import Verdict, judge

RATE = "The limit is 1,000 requests per minute."
PRICE = "It costs $20 per month."
KEPT = "It keeps 7 daily, 4 weekly and 12 monthly snapshots."

SAME = [
    ("The limit is 1.5 million rows.", "The limit is 1,500,000 rows."),
    ("The limit is 1,523,000 rows.", "The limit is about 1.5 million rows."),
    ("There is room for 200 people.", "There is room for two hundred people."),
    ("It has 1,000,000 users.", "It has one million users."),
    ("It has between 1 and 2 million users.", "It has from 1 million to 2 million users."),
    (RATE, "The limit is 1000 requests/minute."),
    (RATE, "The limit is 60,000 requests per hour."),
    (RATE, "The limit is 1000 requests."),
    (PRICE, "It costs $20 a month."),
    (PRICE, "It costs $240 per year."),
    ("It reads 200 MB/s.", "It reads 200 MB per second."),
    ("Logs are kept for 2 years.", "Logs are kept for 24 months."),
    ("It weighs 12.4 kg.", "It weighs 12 kg."),
    (KEPT, "- daily: 7\n- weekly: 4\n- monthly: 12"),
    ("It listens on port 7411.", "It listens on 7411."),
    ("It opens 2 ports.", "It opens two ports: port 80 and port 443."),
]

OTHER = [
    ("The limit is 1.5 million rows.", "The limit is 1.5 billion rows."),
    ("The limit is 5 million rows.", "The limit is 5 rows."),
    ("The limit is 2 GB.", "The limit is 1.5 GB."),
    (RATE, "The limit is 1000 requests per second."),
    (RATE, "The limit is 1000 requests per user."),
    (PRICE, "It costs $20 per year."),
    ("Logs are kept for 2 years.", "Logs are kept for 2 months."),
    (KEPT, "- daily: 12\n- weekly: 7\n- monthly: 4"),
]


def judged(golden: str, response: str) -> Verdict:
    return judge(Sections("What does the manual say?", golden, response), Random(0))


@pytest.mark.parametrize(("golden", "response"), SAME)
def test_the_same_amount_is_found_in_another_form(golden: str, response: str) -> None:
    verdict = judged(golden, response)

    assert "contradicts the golden answer: " not in verdict.reasons["factual"]
    assert [5, 5] == [1 + round(4 * value) for value in (verdict.factual, verdict.complete)]


@pytest.mark.parametrize(("golden", "response"), OTHER)
def test_another_amount_is_a_contradiction(golden: str, response: str) -> None:
    verdict = judged(golden, response)

    assert "contradicts the golden answer: " in verdict.reasons["factual"]
    assert 1 + round(4 * verdict.factual) <= 2

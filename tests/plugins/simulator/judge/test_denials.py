"""What the simulated judge takes for a denial of the golden answer: clause by clause, not by counting negations."""

from __future__ import annotations

from random import Random

import pytest

from keval_simulator.judge.prompt import Sections
from keval_simulator.judge.verdict import Verdict, judge

FORCE = "Existing files are not overwritten. With `--force` they are replaced."
PORT = "The server listens on port 7411."

AGREEING = [
    # The negation is about something else, in a clause of its own.
    ("You can cancel the order within 14 days.", "You can cancel the order within 14 days, no questions asked."),
    ("Only hashes are stored on the server.", "Only hashes are stored on the server, never the passwords."),
    ("Hashes are stored on the server.", "Passwords are not stored on the server. Hashes are."),
    ("Start the service with `svc start`.", "Start the service with `svc start` (no root needed)."),
    ("Start the service with `svc start`.", "Start the service with `svc start`. Do not use `--no-cache`."),
    ("The tool is free for students.", "The tool is free for students without limits, and not only in the EU."),
    ("Files are encrypted at rest.", "Files are encrypted at rest and cannot be read without the key."),
    ("Use the safe mode.", "Use the safe mode that never writes."),
    # Several negations deny no less than one.
    ("No, the class GLACIER is not supported.", "The GLACIER class is not supported, so it can't be used."),
    ("No, there is no way to recover it.", "No, it cannot be recovered: there is no way to do so."),
    ("Telemetry is disabled by default.", "By default telemetry is not enabled."),
    ("The command fails and nothing is written.", "The command fails without writing anything."),
    (
        "The documentation does not say whether tape drives are supported.",
        "The documentation doesn't mention tape drives, so I can't say whether they're supported.",
    ),
    # A condition or a limit.
    (FORCE, "A restore does not overwrite existing files without `--force`, which replaces them."),
    (FORCE, "Use `--force` to replace existing files. By default they are not overwritten."),
    ("A label has up to 40 characters.", "A label cannot have more than 40 characters."),
    # What is denied is another value.
    (PORT, "The server listens on port 7411, not on port 8080."),
    ("Canberra is the capital of Australia.", "The capital of Australia isn't Sydney, it's Canberra."),
]

DENYING = [
    ("Paris is in France.", "Paris isn't in France."),
    (PORT, "Port 7411 is wrong; the server listens on port 8080."),
    (PORT, "It listens on port 8080, not 7411."),
    ("port 7411", "Port 7411 is wrong; the server listens on port 8080."),
    ("It is valid for 15 minutes.", "It is not valid for 15 minutes but for an hour."),
    ("Canberra", "It is not Canberra."),
    ("Penguins cannot fly.", "Penguins can fly."),
    ("Telemetry is disabled by default.", "Telemetry is not disabled by default."),
    ("Existing files are not overwritten.", "Existing files are overwritten."),
    ("No, every burrow is encrypted and encryption cannot be switched off.", "Encryption can be switched off."),
    ("Run `vault fetch --only PATH`.", "Never run `vault fetch --only PATH`, as it destroys data."),
    ("It keeps 7 daily and 4 weekly snapshots.", "It does not keep 7 daily and 4 weekly snapshots."),
]


def judged(golden: str, response: str) -> Verdict:
    return judge(Sections("What does the manual say?", golden, response), Random(0))


@pytest.mark.parametrize(("golden", "response"), AGREEING)
def test_a_negation_that_denies_nothing_golden_is_no_contradiction(golden: str, response: str) -> None:
    verdict = judged(golden, response)

    assert "contradicts the golden answer: " not in verdict.reasons["factual"]
    assert 1 + round(4 * verdict.factual) >= 4


@pytest.mark.parametrize(("golden", "response"), DENYING)
def test_a_denial_of_what_is_golden_is_a_contradiction(golden: str, response: str) -> None:
    verdict = judged(golden, response)

    assert "contradicts the golden answer: " in verdict.reasons["factual"]
    assert 1 + round(4 * verdict.factual) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("text", [" ", "a, ", "5 million ", " million", "that never "])
def test_a_response_of_any_length_is_judged(text: str) -> None:
    verdict = judge(Sections("Which port?", "It is 8443, not 80.", f"x 5{text * 20_000}y"), Random(0))

    assert 0.1 > verdict.complete

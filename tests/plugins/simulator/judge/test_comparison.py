"""What the simulated judge takes for the golden answer in other words, and what for a contradiction of it."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from keval_simulator.judge.prompt import Sections
from keval_simulator.judge.verdict import Verdict, judge

EXAMPLE = Path(__file__).parents[4] / "examples" / "context-ab"
QUESTIONS = {
    sample["id"]: sample
    for sample in map(json.loads, (EXAMPLE / "questions.jsonl").read_text(encoding="utf-8").splitlines())
}
RATE = "The limit is 1,000 requests per minute."
KEPT = "It keeps 7 daily, 4 weekly and 12 monthly snapshots."
FORCE = "Existing files are not overwritten. With `--force` they are replaced."
PORT = "The server listens on port 7411."

SAME = [
    ("It has between 1 and 2 million users.", "It has from 1 million to 2 million users."),
    (RATE, "The limit is 1000 requests/minute."),
    (RATE, "The limit is 1000 requests."),
    ("Logs are kept for 2 years.", "Logs are kept for 24 months."),
    ("It weighs 12.4 kg.", "It weighs 12 kg."),
    (KEPT, "- daily: 7\n- weekly: 4\n- monthly: 12"),
    ("It opens 2 ports.", "It opens two ports: port 80 and port 443."),
]

OTHER = [
    ("The limit is 2 GB.", "The limit is 1.5 GB."),
    ("The shortest interval is 15 minutes.", "The shortest interval is 1 day."),
    (RATE, "The limit is 2,000 requests per minute."),
    (KEPT, "- daily: 9\n- weekly: 5\n- monthly: 24"),
    ("The current release is 4.2.0.", "The current release is 4.2.2."),
]

AGREEING = [
    # The negation is about something else, in a clause of its own.
    ("You can cancel the order within 14 days.", "You can cancel the order within 14 days, no questions asked."),
    ("Hashes are stored on the server.", "Passwords are not stored on the server. Hashes are."),
    ("Start the service with `svc start`.", "Start the service with `svc start`. Do not use `--no-cache`."),
    ("The tool is free for students.", "The tool is free for students without limits, and not only in the EU."),
    ("Use the safe mode.", "Use the safe mode that never writes."),
    # Several negations deny no less than one.
    ("No, the class GLACIER is not supported.", "The GLACIER class is not supported, so it can't be used."),
    ("Telemetry is disabled by default.", "By default telemetry is not enabled."),
    ("The command fails and nothing is written.", "The command fails without writing anything."),
    (
        "The documentation does not say whether tape drives are supported.",
        "The documentation doesn't mention tape drives, so I can't say whether they're supported.",
    ),
    # A condition or a limit.
    (FORCE, "A restore does not overwrite existing files without `--force`, which replaces them."),
    ("A label has up to 40 characters.", "A label cannot have more than 40 characters."),
    # What is denied is another value.
    (PORT, "The server listens on port 7411, not on port 8080."),
    ("Canberra is the capital of Australia.", "The capital of Australia isn't Sydney, it's Canberra."),
]

DENYING = [
    (PORT, "Port 7411 is wrong; the server listens on port 8080."),
    ("port 7411", "Port 7411 is wrong; the server listens on port 8080."),
    ("It is valid for 15 minutes.", "It is not valid for 15 minutes but for an hour."),
    ("Telemetry is disabled by default.", "Telemetry is not disabled by default."),
    ("No, every burrow is encrypted and encryption cannot be switched off.", "Encryption can be switched off."),
    ("Run `vault fetch --only PATH`.", "Never run `vault fetch --only PATH`, as it destroys data."),
]

ANSWERS = {
    "prune-default": (
        "By default, pruning keeps these snapshots:\n\n- daily: 7\n- weekly: 4\n- monthly: 12\n\nEverything else "
        "is removed, but nothing is lost for good until the grace period is over."
    ),
    "lost-passphrase": "Unfortunately not. A lost passphrase can't be recovered, because Molehill never stores it.",
    "cipher": (
        "The chunks are encrypted with XChaCha20-Poly1305, and the key is derived from your passphrase using "
        "Argon2id, so no plain text ever leaves the machine."
    ),
    "change-passphrase": (
        "Run `molehill rekey`. It only takes seconds, not hours, because just the master key is encrypted "
        "again and the chunks aren't touched."
    ),
    "passphrases-most": "A burrow can have up to 8 passphrases, but never fewer than one.",
    "config-file": (
        "The configuration lives in `~/.config/molehill/molehill.toml`. If you don't want to use that file, "
        "name another one with `--config` or the `MOLEHILL_CONFIG` variable."
    ),
    "compression-default": "Level 6 is the default and 12 is the strongest (0 means no compression at all).",
    "unknown-key": "Molehill does not ignore it: it names the line of the unknown key and exits with code 2.",
    "interrupted": (
        "They aren't lost: the chunks are kept for 48 hours, and a second attempt continues where the first one ended."
    ),
    "restore-file": (
        "Use `--only` so that not everything is restored:\n\n```\nmolehill fetch latest --to FOLDER --only PATH\n```"
    ),
    "overwrite": (
        "No, a restore never overwrites existing files unless you pass `--force`. Then they are replaced, "
        "and the old ones are moved to `.molehill-replaced`, not deleted."
    ),
    "undo-prune": "You have 72 hours to undo it with `molehill undo`. After that it can't be undone.",
    "glacier": "No. S3 works, but the GLACIER storage class isn't supported, so it can't be used.",
    "battery": (
        "They're put off while the computer is running on battery and the charge is below 30%. If you don't "
        "want that, `--on-battery` makes them run nevertheless."
    ),
    "locked": (
        "It means the burrow is locked by another process. If the lock is older than 30 minutes and its "
        "process no longer exists, remove it with `molehill unlock`; never do so while a backup is running."
    ),
    "check-data": (
        "Run `molehill check --read-data`. It reads every chunk and compares its BLAKE3 hash, which a plain "
        "`molehill check` does not."
    ),
    "old-release": "The current release is 4.2.0. Releases older than 3.8.0 can't read burrows of format 2.",
    "two-limits": (
        "A snapshot's label can't be longer than 40 characters. A tunnel is closed after it has been idle "
        "for 10 minutes."
    ),
    "tape": "The documentation says nothing about tape drives, so I don't know whether they're supported.",
}
"""Right answers to questions of the example of a documentation's effect, as a model would word them."""


def judged(golden: str, response: str, question: str = "What does the manual say?") -> Verdict:
    return judge(Sections(question, golden, response), Random(0))


def level(value: float) -> int:
    return 1 + round(4 * value)


@pytest.mark.parametrize(("golden", "response"), SAME)
def test_the_same_amount_is_found_in_another_form(golden: str, response: str) -> None:
    verdict = judged(golden, response)

    assert "contradicts the golden answer: " not in verdict.reasons["factual"]
    assert (5, 5) == (level(verdict.factual), level(verdict.complete))


@pytest.mark.parametrize(("golden", "response"), AGREEING)
def test_a_negation_that_denies_nothing_golden_is_no_contradiction(golden: str, response: str) -> None:
    verdict = judged(golden, response)

    assert "contradicts the golden answer: " not in verdict.reasons["factual"]
    assert level(verdict.factual) >= 4


@pytest.mark.parametrize(("golden", "response"), [*OTHER, *DENYING])
def test_another_amount_or_a_denial_is_a_contradiction(golden: str, response: str) -> None:
    verdict = judged(golden, response)

    assert "contradicts the golden answer: " in verdict.reasons["factual"]
    assert level(verdict.factual) <= 2


@pytest.mark.parametrize("name", ANSWERS)
def test_a_right_answer_in_a_models_words_is_no_contradiction(name: str) -> None:
    verdict = judged(QUESTIONS[name]["answer"], ANSWERS[name], QUESTIONS[name]["question"])

    assert "contradicts the golden answer: " not in verdict.reasons["factual"]
    assert level(verdict.factual) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("text", [" ", "a, ", "5 million ", "port 5, ", "that never ", "not "])
def test_a_response_of_any_length_is_judged(text: str) -> None:
    assert 0.1 > judged("It is port 8443, not 80.", f"x 5{text * 20_000}y", "Which port?").complete

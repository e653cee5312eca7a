"""Natural right answers to the questions of the example of a documentation's effect: none is a contradiction."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from keval_simulator.judge.prompt import Sections
from keval_simulator.judge.verdict import judge

EXAMPLE = Path(__file__).parents[4] / "examples" / "context-ab"
QUESTIONS = {
    sample["id"]: sample
    for sample in map(json.loads, (EXAMPLE / "questions.jsonl").read_text(encoding="utf-8").splitlines())
}
ANSWERS = {
    "prune-default": (
        "By default, pruning keeps these snapshots:\n\n- daily: 7\n- weekly: 4\n- monthly: 12\n\nEverything else "
        "is removed, but nothing is lost for good until the grace period is over."
    ),
    "create-burrow": (
        "Run `molehill dig` with the path you want, for example:\n\n```\nmolehill dig /mnt/usb/burrow\n```\n\nThe "
        "directory must not exist yet."
    ),
    "passphrase-length": "The passphrase needs at least 12 characters; shorter ones are not accepted.",
    "lost-passphrase": "Unfortunately not. A lost passphrase can't be recovered, because Molehill never stores it.",
    "serve-port": "`molehill serve` listens on port 7411 unless you tell it otherwise.",
    "cipher": (
        "The chunks are encrypted with XChaCha20-Poly1305, and the key is derived from your passphrase using "
        "Argon2id, so no plain text ever leaves the machine."
    ),
    "switch-encryption-off": "No. Encryption can't be switched off: every burrow is encrypted, without exception.",
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
    "parallel-uploads": (
        "4 chunks are sent at a time by default, and no more than 32 are possible. The setting is `parallel_uploads`."
    ),
    "unknown-key": "Molehill does not ignore it: it names the line of the unknown key and exits with code 2.",
    "dry-run": "Add `--dry-run`: `molehill stash FOLDER --dry-run` shows what would be stored, but doesn't write it.",
    "exclude": (
        "Either list the patterns in a `.molehillignore` file or pass `--exclude PATTERN` on the command "
        "line, so nothing that matches is stored."
    ),
    "interrupted": (
        "They aren't lost: the chunks are kept for 48 hours, and a second attempt continues where the first one ended."
    ),
    "largest-file": "A file can't be larger than 2 TiB; anything above that is refused.",
    "restore-file": (
        "Use `--only` so that not everything is restored:\n\n```\nmolehill fetch latest --to FOLDER --only PATH\n```"
    ),
    "overwrite": (
        "No, a restore never overwrites existing files unless you pass `--force`. Then they are replaced, "
        "and the old ones are moved to `.molehill-replaced`, not deleted."
    ),
    "mount": "On Linux you need FUSE 3, on macOS macFUSE. Mounting doesn't work without them.",
    "undo-prune": "You have 72 hours to undo it with `molehill undo`. After that it can't be undone.",
    "pin": "No more than 50 snapshots can be pinned in a burrow. Pin each of them with `molehill pin ID`.",
    "retry": (
        "A failed request is tried again 5 times. The pauses begin at 2 seconds and double each time, so the "
        "server isn't flooded."
    ),
    "invite-code": "The code is valid for 15 minutes and can't be used after that.",
    "glacier": "No. S3 works, but the GLACIER storage class isn't supported, so it can't be used.",
    "schedule-shortest": "15 minutes; a shorter interval is not possible.",
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
    "prune-and-check": (
        "Old snapshots are removed with `molehill prune`, and you should run a full check at least every 90 "
        "days, not just when something fails."
    ),
    "stash-and-fetch": (
        "To make a snapshot of a folder, use `molehill stash FOLDER`. To restore the newest one, use "
        "`molehill fetch latest --to FOLDER`; you don't need to know its ID."
    ),
    "two-limits": (
        "A snapshot's label can't be longer than 40 characters. A tunnel is closed after it has been idle "
        "for 10 minutes."
    ),
    "tape": "The documentation says nothing about tape drives, so I don't know whether they're supported.",
    "price": (
        "I couldn't find anything about support contracts in the documentation, and it doesn't mention any prices."
    ),
}


def test_every_question_has_an_answer() -> None:
    assert QUESTIONS.keys() == ANSWERS.keys()


@pytest.mark.parametrize("name", ANSWERS)
def test_a_right_answer_is_no_contradiction(name: str) -> None:
    sample = QUESTIONS[name]

    verdict = judge(Sections(sample["question"], sample["answer"], ANSWERS[name]), Random(0))

    assert "contradicts the golden answer: " not in verdict.reasons["factual"]
    assert 1 + round(4 * verdict.factual) >= 4

"""A recorded run whose trials are odd: one calls 60 tools, one was repeated, one has no transcript, one is read."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parents[3] / "examples" / "context-ab" / "recording"
RUN = "20261123-000000-odd1"
PLACE = f"/runs/context-ab/{RUN}"
READ = "openai/with_docs/prune-default/1"
LONG = "openai/with_docs/change-passphrase/1"
REPEATED = "openai/baseline/change-passphrase/1"
FAILED = "openai/baseline/tape/1"
ARABIC = "غيّر عبارة المرور بالأمر molehill rekey خلال 3 ثوانٍ."


def make(results: Path) -> None:
    """Write the run into a results folder."""
    folder = results / "context-ab" / RUN
    shutil.copytree(RECORDED, folder)
    _edit(folder / "trials.jsonl", "id", {LONG: _calls_sixty_tools, REPEATED: _was_repeated, FAILED: _failed})
    _edit(folder / "scores.jsonl", "trial", {READ: _is_read})


def url(trial: str) -> str:
    """The path of a trial's page."""
    return f"{PLACE}/trials/{trial.replace('/', '%2F')}"


def _edit(path: Path, key: str, edits: dict[str, Callable[[dict[str, Any]], None]]) -> None:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        if edit := edits.get(line[key]):
            edit(line)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def _calls_sixty_tools(line: dict[str, Any]) -> None:
    rng, transcript = random.Random(1), line["transcript"]
    asked, *_, answer = transcript["messages"]
    calls: list[dict[str, Any]] = []
    replies: list[float] = []
    now = 0.3
    while len(calls) < 60:
        replies.append(now)
        latest = now
        for _ in range(min(rng.choice((1, 2, 4)), 60 - len(calls))):
            took = rng.uniform(0.02, 0.9)
            calls.append(
                {
                    "name": "read_page",
                    "arguments": {"page": f"page {len(calls)}"},
                    "result": None if len(calls) % 9 == 4 else "one\ntwo",
                    "error": "there is no such page" if len(calls) % 9 == 4 else None,
                    "duration": took,
                    "server": ("docs", "archive")[len(calls) % 2],
                    "model_call": len(replies),
                    "at": now,
                }
            )
            latest = max(latest, now + took)
        now = latest + rng.uniform(0.2, 1)
    replies.append(now)
    returned = [{"role": "tool", "text": "", "turn": 0} for _ in calls]
    refusal = {"status": 429, "message": "too many requests", "waited": 2.0}
    transcript |= {"messages": [asked, *returned, answer], "tool_calls": calls, "replies": replies}
    transcript |= {"model_calls": len(replies), "turn_durations": [now], "duration": now, "refusals": [refusal]}


def _was_repeated(line: dict[str, Any]) -> None:
    transcript = line["transcript"]
    silent = json.loads(json.dumps(transcript)) | {"messages": transcript["messages"][:1], "instructions": None}
    failures = [
        {"stage": "agent", "kind": "timeout", "message": "no answer within 60 s", "traceback": None},
        {"stage": "mcp", "kind": "server_lost", "message": "the server 'docs' was lost", "traceback": None},
    ]
    line["attempts"] = [
        {"failure": failures[0], "transcript": silent, "counted": True},
        {"failure": failures[1], "transcript": None, "counted": False},
    ]
    line["output"] = transcript["messages"][-1]["text"] = ARABIC
    sources = [{"title": "<b>", "url": "https://a.example", "quoted": "3 s"}, {"title": "", "url": "https://b.example"}]
    transcript["messages"][-1] |= {"reasoning": "Is it quick?", "citations": sources}


def _failed(line: dict[str, Any]) -> None:
    told = {"stage": "model", "kind": "unreachable", "message": "connection refused", "traceback": "Traceback: boom"}
    line |= {"failure": told, "transcript": None, "output": ""}


def _is_read(line: dict[str, Any]) -> None:
    if line["metric"] == "completeness":
        # "The default rules keep 7 daily, 4 weekly and 12 monthly snapshots."
        line["details"] = {
            "marks": [
                {"start": 110, "end": 127, "label": "the default", "kind": "neutral"},
                {"start": 114, "end": 121, "label": "a word of it", "kind": "bad"},
                {"start": 0, "end": 16, "label": "command", "kind": "good"},
                {"start": 0, "end": 10**6, "label": "beyond the end"},
            ],
            "of": "three facts",
        }

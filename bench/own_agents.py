"""What a trial of somebody's own agent costs in keval, beside the agent without keval.

    uv run python bench/own_agents.py [--json] [SUBJECT…]

Every agent of `bench/own_agents/` makes one request to a model for each question. `command` is held against starting
the program as often in the same environment, `acp` against the conversation by the SDK's client, `python` against
calling the function, and `http` and `openai` against the request by aiohttp.

CPU is that of all processes of either side. The model, which counts its answers so that work that was not done is
noticed, is a process of its own that counts on neither. What a trial costs is the difference of runs with few and with
many questions, so that no start-up is in it. Both sides run in turns, and figures are medians.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import attrs
from fixed_model import counts, fixed_model
from measure import Cost, keval, measure, part

AT_ONCE, ROUNDS = 8, part(3)
_CODE = Path(__file__).with_name("own_agents")
_TOLD = {"OPENAI_BASE_URL": "{model_base_url}", "OPENAI_API_KEY": "{model_key}"}


@attrs.frozen
class Subject:
    """An agent of a type, with options, and how `bare.py` is told of it; `few` and `many` are numbers of questions."""

    type: str
    options: Mapping[str, Any]
    bare: Sequence[str]
    few: int
    many: int


@attrs.frozen
class Result:
    """CPU of a trial in ms; `ratio` is `None` where the runs were too short to tell one of both."""

    subject: str
    cpu_ms: float
    bare_cpu_ms: float
    ratio: float | None
    peak_mib: float


def _program(type: str, file: str) -> Subject:
    command = [sys.executable, str(_CODE / file)]
    options = {"command": command, "model": "openai/m", "env": _TOLD, "max_processes": AT_ONCE}
    return Subject(type, options, command, part(8), part(108, least=2))


def _function(name: str, **options: str) -> Subject:
    return _quick("python", {"target": f"{_CODE / 'functions.py'}:{name}", **options}, name)


def _quick(type: str, options: Mapping[str, Any], *bare: str) -> Subject:
    return Subject(type, options, bare, part(50), part(2_050, least=2))


def subjects(model: str) -> dict[str, Subject]:
    """Return what is measured, with the URL of the model."""
    asked = {"model": "m", "messages": "{{ messages }}"}
    endpoint = {"url": f"{model}/chat/completions", "body": asked, "answer": "choices[0].message.content"}
    return {
        "command": _program("command", "program.py"),
        "acp": _program("acp", "acp_program.py"),
        "python": _function("plain", model="openai/m"),
        "python-async": _function("asynchronous", model="openai/m"),
        "python-own-model": _function("own_model"),
        "http": _quick("http", {**endpoint, "probe": False}, model),
        "openai": _quick("openai", {"model": "openai/m"}, model),
    }


NAMES = tuple(subjects(""))


def in_keval(folder: Path, subject: Subject, trials: int) -> Cost:
    """Run that many trials, and write their questions for the bare agent."""
    config = {
        "dataset": {"path": "q.jsonl"},
        "agents": {"subject": {"type": subject.type, **subject.options}},
        "conditions": {"only": {}},
        "metrics": ["bench/one"],
        "execution": {"max_concurrent": AT_ONCE},
    }
    return keval(folder, config, trials)


def bare(folder: Path, subject: Subject) -> Cost:
    """Have the bare agent answer the questions that were written last."""
    return measure([sys.executable, str(_CODE / "bare.py"), subject.type, str(AT_ONCE), *subject.bare], folder)


def compared(folder: Path, name: str, subject: Subject, model: str) -> Result:
    """Measure a subject on both sides. Raises SystemExit if one made fewer model calls than it should, or more."""
    own: list[Cost] = []
    others: list[Cost] = []
    for _ in range(ROUNDS):
        for trials in (subject.few, subject.many):
            before = counts(model)["answers"]
            own.append(in_keval(folder, subject, trials))
            between = counts(model)["answers"]
            others.append(bare(folder, subject))
            done = between - before, counts(model)["answers"] - between
            if done != (trials, trials):
                raise SystemExit(f"{name} made {done[0]} model calls in keval, and {done[1]} without, of {trials}")
    cpu, bare_cpu = (_further(costs) / (subject.many - subject.few) * 1000 for costs in (own, others))
    peak = median(cost.peak for cost in own[1::2])
    return Result(name, cpu, bare_cpu, cpu / bare_cpu if min(cpu, bare_cpu) > 0 else None, peak)


def _further(costs: Sequence[Cost]) -> float:
    """Return by how much CPU a run with many questions takes more than the one with few before it, in seconds."""
    return median(many.cpu - few.cpu for few, many in zip(costs[::2], costs[1::2], strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what a trial of an agent costs.")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("subject", nargs="*", default=NAMES, help=f"what to measure: {', '.join(NAMES)}")
    options = parser.parse_args()
    if unknown := {*options.subject} - {*NAMES}:
        parser.error(f"there is no {min(unknown)}; choose of {', '.join(NAMES)}")
    with fixed_model() as model, tempfile.TemporaryDirectory() as folder:
        os.environ |= {"OPENAI_BASE_URL": model, "OPENAI_API_KEY": "key-of-nobody"}
        known = subjects(model)
        results = [compared(Path(folder), name, known[name], model) for name in options.subject]
    if options.json:
        print(json.dumps([attrs.asdict(result) for result in results]))
        return
    print(f"CPU of a trial, {AT_ONCE} at once, medians of {ROUNDS} rounds, without start-up:")
    print(f"{'':<20}{'keval':>12}{'bare':>12}{'ratio':>8}{'peak':>11}")
    for each in results:
        ratio = "?" if each.ratio is None else f"{each.ratio:.2f}"
        print(f"{each.subject:<20}{each.cpu_ms:>9.2f} ms{each.bare_cpu_ms:>9.2f} ms{ratio:>8}{each.peak_mib:>7.0f} MiB")


if __name__ == "__main__":
    main()

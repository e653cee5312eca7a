"""How fast recorded answers are scored by the 14 weather metrics: one `keval run` from its start to its summary.

Two assistants answer the same questions, each question with a history, preferences and a forecast of its own.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from measure import Cost, measure, part

SMALL, LARGE = part(1_000), part(10_000)
CITIES = ("Helsinki", "New York", "São Paulo", "Łódź", "Oslo", "Rome", "Kyoto", "Cape Town")
SKIES = ("rain", "clear", "clouds", "snow", "mist")
CONFIG = {
    "dataset": {"path": "questions.jsonl"},
    "agents": {name: {"type": "recorded", "path": f"{name}.jsonl", "characteristics": name} for name in ("gadk", "ms")},
    "metrics": ["weather"],
}


def prepare(folder: Path, answers: int) -> None:
    """Write an evaluation of that many recorded answers, half of them by each assistant."""
    (folder / "eval.yaml").write_text(json.dumps(CONFIG), encoding="utf-8")
    rng = random.Random(7)
    with (
        (folder / "questions.jsonl").open("w", encoding="utf-8") as questions,
        (folder / "gadk.jsonl").open("w", encoding="utf-8") as gadk,
        (folder / "ms.jsonl").open("w", encoding="utf-8") as ms,
    ):
        for number in range(answers // 2):
            question, *answers_to_it = _made_up(rng, str(number))
            questions.write(json.dumps(question) + "\n")
            for file, answer in zip((gadk, ms), answers_to_it, strict=True):
                file.write(json.dumps(answer) + "\n")


def run(answers: int) -> Cost:
    """Score that many answers."""
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), answers)
        return measure([sys.executable, "-m", "keval", "run", "eval.yaml", "-q"], Path(folder))


def _made_up(rng: random.Random, name: str) -> Iterator[dict[str, object]]:
    """Yield a question and two answers to it."""
    city, degrees, sky = rng.choice(CITIES), rng.randint(-10, 35), rng.choice(SKIES)
    days = [
        {"date": f"2026-06-{18 + day}", "min_temp": degrees - 4, "max_temp": degrees + 4, "main_condition": sky}
        for day in range(5)
    ]
    yield {
        "id": name,
        "question": rng.choice(
            [f"What's the weather in {city}?", f"Will it rain in {city} tomorrow?", "Should I take an umbrella?"]
        ),
        "history": [
            {"user": f"I hate cold weather. How is {city}?", "assistant": f"It is {degrees} °C with {sky} in {city}."}
        ],
        "facts": {
            "weather": {
                "city": city,
                "current": {"temperature": degrees, "main_condition": sky},
                "daily_summaries": days,
            },
            "preferences": {"dislikes_cold": True, "learned_from_conversations": 3},
        },
    }
    for _ in range(2):
        said = degrees + rng.randint(-3, 3)
        call = {"name": "get_current_weather", "arguments": {"city": city}, "result": f"{degrees} °C, {sky}"}
        yield {
            "id": name,
            "response": (
                f"The temperature in {city} is {said} °C with {rng.choice(SKIES)}. Tomorrow will"
                f" reach a high of {degrees + 5} °C. Since you dislike the cold, I recommend a warm jacket, and an"
                " umbrella because it may rain later."
            )[: rng.randint(60, 240)],
            "response_time": rng.uniform(0.5, 12),
            "tool_calls": [call],
            "usage": {"input_tokens": 420, "output_tokens": 60},
        }


def _adding_ten_million_numbers() -> float:
    began, total = time.process_time(), 0
    for number in range(10_000_000):
        total += number
    return time.process_time() - began


def main() -> None:
    small, large, adding = run(SMALL), run(LARGE), _adding_ten_million_numbers()
    print(f"{LARGE} recorded answers, 14 metrics: {LARGE / large.wall:.0f} answers a second from start to summary,")
    print(f"  {LARGE / large.cpu:.0f} a second of CPU time; wanted: at least 2000 on one core")
    marginal = (large.cpu - small.cpu) / (LARGE - SMALL)
    print(f"  each further answer: {marginal * 1000:.2f} ms of CPU time, in which this core adds up")
    print(f"  {marginal / adding * 10_000:.1f} thousand numbers (ten million in {adding:.2f} s)")
    print(f"peak memory: {small.peak:.0f} MiB at {SMALL} answers, {large.peak:.0f} MiB at {LARGE}:", end=" ")
    print(f"{large.peak / small.peak:.2f} times; wanted: at most 1.15")


if __name__ == "__main__":
    main()

"""The examples with a real model: their recordings replay, and say what the documents tell of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Project

EXAMPLE = Path(__file__).parents[2] / "examples" / "real-model"
TOLD = {
    "recording": [
        "REPLAY: answers recorded 2026-11-28",
        "openai with_docs called no tool in 70 of 70 trials",
        "32 answers were cut off at a limit of length, and scored all the same: 14 of 70 of openai baseline,",
        "with_docs against baseline cannot tell differences of less than: key facts 0.09",
        "key facts 0.06 → 0.65 +0.58 [+0.42, +0.72] n=35",
    ],
    "descriptions": [
        "answers that write calls of tools as texts are lost: 1 of 6 of openai long, 1 of 6 of openai terse; switch on",
        *(f"openai {condition} called no tool in 5 of 6 trials" for condition in ("long", "terse")),
        "openai told called no tool in 6 of 6 trials",
        "terse against long equal on all 4 questions: tool called, key facts",
    ],
    "weather": [
        "1 of 12 trials of ms with_weather failed; effects are of the others",
        "gadk with_weather called no tool in 9 of 12 trials",
        "ms with_weather called no tool in 11 of 12 trials",
        "2 answers were cut off at a limit of length",
        "the model itself ended the reply before it said anything",
    ],
}

LIMITS = {"weather": ("--limit", "12")}


@pytest.mark.parametrize(
    ("name", "config"), [("recording", "real-model"), ("descriptions", "descriptions"), ("weather", "weather")]
)
def test_the_recording_of_a_real_model_replays_to_what_it_was(name: str, config: str, project: Project) -> None:
    recording = EXAMPLE / name

    outcome = project.run(EXAMPLE / f"{config}.yaml", "--replay", str(recording), "-j", "16", *LIMITS.get(name, ()))

    said = " ".join(outcome.stdout.split())
    again = project.keval("compare", "--exact", str(recording), str(project.run_directory()))
    assert (0 if name == "recording" else 3, 0) == (outcome.code, again.code), again.stdout
    assert sorted(places := [said.find(each) for each in TOLD[name]]) == places
    assert -1 not in places
    assert not any(each in said for each in ("SIMULATED", "Changed since"))
    assert 3_000_000 > sum(each.stat().st_size for each in recording.rglob("*") if each.is_file())

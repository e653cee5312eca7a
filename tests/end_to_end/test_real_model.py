"""The examples with a real model: their recordings replay, and say what the documents tell of them."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import Project

EXAMPLE = Path(__file__).parents[2] / "examples" / "real-model"


def test_the_recording_of_a_real_model_replays_to_what_it_was(project: Project) -> None:
    recording = EXAMPLE / "recording"

    outcome = project.run(EXAMPLE / "real-model.yaml", "--replay", str(recording), "-j", "16")

    told = " ".join(outcome.stdout.split())
    again = project.keval("compare", "--exact", str(recording), str(project.run_directory()))
    assert (0, 0) == (outcome.code, again.code), again.stdout
    assert "REPLAY: answers recorded 2026-11-28" in told
    assert "SIMULATED" not in told
    assert "Changed since" not in told
    cut = "32 answers were cut off at a limit of length, and scored all the same: 14 of 70 of openai baseline,"
    assert -1 < told.find("called no tool in 70 of 70 trials") < told.find(cut) < told.find("against baseline")
    assert "key facts 0.06 → 0.65 +0.58 [+0.42, +0.72] n=35" in told
    assert {"basic/key_facts"} == {line["metric"] for line in project.lines("scores.jsonl")}


def test_recordings_are_small_enough_to_be_committed() -> None:
    sizes = [
        sum(each.stat().st_size for each in path.parent.rglob("*") if each.is_file())
        for path in EXAMPLE.glob("*/manifest.json")
    ]

    assert sizes
    assert max(sizes) < 3_000_000

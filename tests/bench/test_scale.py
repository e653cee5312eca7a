"""What a run takes of memory does not grow with its trials."""

from __future__ import annotations

from pathlib import Path

import pytest
import scale


@pytest.mark.slow
@pytest.mark.parametrize("repeated", [False, True], ids=["many questions", "repeated"])
def test_ten_times_the_trials_take_hardly_more_memory(
    repeated: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    (few, _), (many, _) = (scale.measured(trials, repeated=repeated) for trials in (1_000, 10_000))

    # A page has every question in it.
    grown = {name: cost.peak / few[name].peak for name, cost in many.items() if name != "report --html"}
    assert {name: growth for name, growth in grown.items() if growth > 1.25} == {}

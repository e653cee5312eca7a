"""What the report of an example prints first fits on a screen, with nothing left out that was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Project

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "most"), [pytest.param("weather/weather", 40, marks=pytest.mark.slow), ("context-ab/context-ab", 28)]
)
def test_the_first_report_of_an_example_fits_on_a_screen(
    project: Project, example: str, most: int, simulated_here: None
) -> None:
    outcome = project.keval("run", str(EXAMPLES / f"{example}.yaml"), "--repetitions", "1")
    explained = project.keval("report", "latest", "--explain").stdout

    lines = outcome.stdout.splitlines()
    assert (0, True) == (outcome.code, 10 < len(lines) <= most), outcome.stdout
    assert "SIMULATED MODEL" in lines[1]
    assert 100 >= max(map(len, lines))
    decided = {
        effect["metric"].rpartition("/")[2].replace("_", " ")
        for effect in project.read("summary.json")["effects"]
        if effect["verdict"] in ("better", "worse")
    }
    assert decided
    assert [] == [name for name in decided if not any(line.startswith(f"  {name}") for line in lines)]
    assert lines[-2].startswith("next     ")
    assert len(explained.splitlines()) > len(lines)

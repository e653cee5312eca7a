"""What keval does for a sample and for a start is counted, and does not rise unseen."""

from __future__ import annotations

from pathlib import Path

import attrs
import ledger
import pytest
from ledger import Ledger

SAMPLE = {
    "all": {"calls": 1000.0, "peak KiB": 500.0},
    "keval.store": {"calls": 300.0},
    "keval_openai": {"calls": 100.0},
    "aiohttp": {"calls": 600.0},
}
START = {
    "all": {"calls": 5000.0, "modules": 90.0},
    "keval.cli": {"calls": 1000.0, "modules": 10.0},
    "stdlib": {"calls": 4000.0, "modules": 80.0},
}
COMMITTED = Ledger({"judged sample": SAMPLE, ledger.START: START}, ["aiohttp==3.14.5", "yarl==1.25.1"], 150)
OWN_ONLY = "keval's own packages only, as there are"
RENEW = "If the change is worth its cost, renew the ledger: uv run python bench/ledger.py --write"


def changed(subject: str, change: dict[str, dict[str, float]]) -> Ledger:
    """Return the committed ledger with other numbers for some packages of a subject."""
    costs = {package: {**numbers, **change.get(package, {})} for package, numbers in COMMITTED.costs[subject].items()}
    return attrs.evolve(COMMITTED, costs={**COMMITTED.costs, subject: {**change, **costs}})


@pytest.mark.slow
def test_no_figure_is_above_that_of_the_ledger() -> None:
    committed = ledger.read()
    if committed is None:
        pytest.skip(f"bench/ledger.json has no figures of {ledger.INTERPRETER}; `bench/ledger.py --write` adds them")

    today = ledger.measure(["calls", "instructions", "memory"])

    if said := ledger.rises(committed, today):
        pytest.fail("\n".join(said), pytrace=False)  # an assertion would shorten it
    if others := {other for subject in today.costs for other in today.others(committed, subject)}:
        pytest.skip(f"only keval's own packages are held against the ledger, as there are {', '.join(sorted(others))}")


def test_figures_that_are_as_they_were_or_fell_are_no_rises() -> None:
    fallen = changed("judged sample", {"all": {"calls": 500.0}, "aiohttp": {"calls": 100.0}})

    assert ([], []) == (ledger.rises(COMMITTED, COMMITTED), ledger.rises(COMMITTED, fallen))


@pytest.mark.parametrize(("calls", "rises"), [(1029.0, 0), (1031.0, 2)])
def test_a_figure_may_rise_by_three_per_cent(calls: float, rises: int) -> None:
    today = changed("judged sample", {"all": {"calls": calls}, "keval.store": {"calls": calls - 700}})

    assert rises == len(ledger.rises(COMMITTED, today))


@pytest.mark.parametrize(("peak", "rises"), [(540.0, 0), (560.0, 2)])
def test_a_peak_may_rise_by_ten_per_cent(peak: float, rises: int) -> None:
    assert rises == len(ledger.rises(COMMITTED, changed("judged sample", {"all": {"peak KiB": peak}})))


def test_a_rise_is_told_with_the_packages_that_made_it_and_how_to_renew_the_ledger() -> None:
    change = {
        "all": {"calls": 1250.0},
        "keval.store": {"calls": 500.0},
        "aiohttp": {"calls": 590.0},
        "yarl": {"calls": 60.0},
    }

    assert ledger.rises(COMMITTED, changed("judged sample", change)) == [
        "judged sample: calls 1,000.0 -> 1,250.0, +25.0%: keval.store +200.0, yarl +60.0",
        RENEW,
    ]


def test_a_package_that_a_start_did_not_import_is_told() -> None:
    today = changed(ledger.START, {"numpy": {"calls": 1.0, "modules": 1.0}, "all": {"calls": 5001.0, "modules": 91.0}})

    assert ledger.rises(COMMITTED, today) == ["start of a run: imports numpy, which it did not", RENEW]


def test_with_other_versions_of_packages_only_those_of_keval_are_held() -> None:
    theirs = changed("judged sample", {"all": {"calls": 2000.0}, "aiohttp": {"calls": 1600.0}})
    ours = changed("judged sample", {"all": {"calls": 1050.0}, "keval_openai": {"calls": 150.0}})
    newer = ["aiohttp==3.15.0", "yarl==1.25.1"]

    assert ledger.rises(COMMITTED, attrs.evolve(theirs, versions=newer)) == []
    assert ledger.rises(COMMITTED, attrs.evolve(ours, versions=newer)) == [
        f"judged sample: calls 400.0 -> 450.0, +12.5%: keval_openai +50.0 ({OWN_ONLY} aiohttp==3.15.0)",
        RENEW,
    ]


def test_a_package_that_was_not_used_before_counts() -> None:
    today = changed("judged sample", {"all": {"calls": 1500.0}, "numpy": {"calls": 500.0}})

    said = ledger.rises(COMMITTED, attrs.evolve(today, versions=[*COMMITTED.versions, "numpy==2.4.6"]))

    assert ["judged sample: calls 1,000.0 -> 1,500.0, +50.0%: numpy +500.0", RENEW] == said


def test_with_other_distributions_only_a_start_is_held_by_the_packages_of_keval() -> None:
    more = {"calls": 6000.0}
    start = attrs.evolve(changed(ledger.START, {"all": more, "stdlib": {"calls": 5000.0}}), distributions=151)
    sample = attrs.evolve(changed("judged sample", {"all": more, "aiohttp": {"calls": 5600.0}}), distributions=151)

    assert (0, 2) == (len(ledger.rises(COMMITTED, start)), len(ledger.rises(COMMITTED, sample)))


def test_a_ledger_is_read_as_it_was_written_beside_those_of_other_interpreters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "FILE", tmp_path / "ledger.json")
    (tmp_path / "ledger.json").write_text('{"other 1.0, moon": {"costs": {}, "distributions": 1, "versions": []}}')

    ledger.write(COMMITTED)

    assert COMMITTED == ledger.read()
    assert Ledger({}, [], 1) == ledger.read("other 1.0, moon")
    assert '    "keval.store": {"calls": 300.0},' in (tmp_path / "ledger.json").read_text(encoding="utf-8").splitlines()


def test_the_table_has_committed_and_present_figures_by_package() -> None:
    lines = list(ledger.table(COMMITTED, changed("judged sample", {"all": {"calls": 1100.0}})))

    assert [line.split() for line in lines[:3]] == [
        ["committed", "today", "change"],
        ["judged", "sample:", "calls", "1,000.0", "1,100.0", "+10.0%"],
        ["aiohttp", "600.0", "600.0", "+0.0%"],
    ]

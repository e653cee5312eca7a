"""Which parts of a growing file count, whatever moment a listing is of."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from keval_remote.copies import Part, Parts, RunCopy, whole_name
from keval_remote.objects import Entry, Objects, UnreachableError

FIRST, SECOND, THIRD = Part(1, 0, 0, 10), Part(1, 0, 10, 25), Part(1, 0, 25, 30)
AGAIN, AND_ON = Part(2, 0, 0, 7), Part(2, 0, 7, 9)
FURTHER = Part(3, 30, 30, 41)


@pytest.mark.parametrize(
    ("parts", "base", "count"),
    [
        ([], 30, []),
        ([FIRST, SECOND, THIRD], 0, [FIRST, SECOND, THIRD]),
        ([FIRST, THIRD], 0, [FIRST]),
        ([SECOND, THIRD], 0, []),
        ([FIRST, SECOND, AGAIN], 0, [AGAIN]),
        ([FIRST, SECOND, AGAIN, AND_ON], 30, [AGAIN, AND_ON]),
        ([FIRST, SECOND, AND_ON], 0, [FIRST, SECOND]),
        ([FURTHER], 30, [FURTHER]),
        ([FURTHER], 41, [FURTHER]),
        ([FURTHER], 0, []),
        ([FIRST, SECOND, THIRD, FURTHER], 30, [FURTHER]),
    ],
    ids=[
        "none, as after the end",
        "all",
        "a gap",
        "the first is missing",
        "another file in its place",
        "that grew, over a plain object of before",
        "another file, of which the first part is not there yet",
        "going on after a plain object",
        "which is settled just now",
        "without its plain object",
        "parts that a killed process left beside the plain object",
    ],
)
def test_the_newest_generation_counts_up_to_its_first_gap(parts: list[Part], base: int, count: list[Part]) -> None:
    found = Parts.of([part.name for part in reversed(parts)], base)

    assert count == [*found.parts]


def test_the_plain_object_counts_as_soon_as_it_is_whole() -> None:
    names = [FIRST.name, THIRD.name, whole_name(2)]

    assert Parts((), 2) == Parts.of(names, 30)


def test_names_sort_as_their_bytes() -> None:
    names = [part.name for part in (FIRST, SECOND, THIRD, AGAIN, AND_ON, FURTHER)]

    assert "0001-000000000000-000000000010-000000000025" == SECOND.name
    assert names == sorted(names)


def test_a_file_that_is_settled_between_two_listings_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects, listing = Objects.at(f"file://{tmp_path}/run"), Objects.list
    objects.write(f"trials.jsonl.parts/{FIRST.name}", b"0123456789")

    def settling(self: Objects, path: str = "") -> dict[str, Entry]:
        if path.endswith(".parts"):
            self.write("trials.jsonl", b"0123456789")
            self.remove([f"{path}/{FIRST.name}"])
        return listing(self, path)

    monkeypatch.setattr(Objects, "list", settling)
    layouts = RunCopy(tmp_path / "here", objects).layouts()

    assert {"trials.jsonl": 10} == {name: layout.size for name, layout in layouts.items()}


@pytest.mark.parametrize("is_there", [True, False], ids=["there", "removed"])
def test_a_file_that_is_there_and_cannot_be_brought_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    objects = Objects.at(f"file://{tmp_path}/run")
    objects.write("trials.jsonl", b"0123456789")

    def fail(self: Objects, path: str, to: Path) -> None:
        if not is_there:
            self.remove([path])
        raise FileNotFoundError(path)

    monkeypatch.setattr(Objects, "download", fail)
    monkeypatch.setattr("keval_remote.copies.time.sleep", lambda seconds: None)
    (tmp_path / "here").mkdir()
    told: Any = pytest.raises(UnreachableError, match=r"/run/trials\.jsonl changes .* while it is read; try it again")

    with told if is_there else nullcontext():
        RunCopy(tmp_path / "here", objects).fetch()

    assert not (tmp_path / "here" / "trials.jsonl").exists()


def test_scores_are_not_brought_before_their_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While they are brought, another machine writes on: each time a trial, and then its score."""
    objects, listing = Objects.at(f"file://{tmp_path}/run"), Objects.list
    trials, scores, count = "trials.jsonl", ".scores.x.jsonl", 0

    def write_on() -> None:
        nonlocal count
        for name in (trials, scores):
            objects.write(f"{name}.parts/{Part(1, 0, 2 * count, 2 * count + 2).name}", b"1\n")
        count += 1

    def meanwhile(self: Objects, path: str = "") -> dict[str, Entry]:
        found = listing(self, path)
        if path.endswith(".parts"):
            write_on()
        return found

    write_on()
    monkeypatch.setattr(Objects, "list", meanwhile)
    here = tmp_path / "here"
    here.mkdir()
    RunCopy(here, objects).fetch()

    assert (here / scores).stat().st_size <= (here / trials).stat().st_size
    assert 2 == (here / scores).stat().st_size

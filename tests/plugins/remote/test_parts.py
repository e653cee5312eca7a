"""Which bytes of a growing file count, whatever moment a listing is of."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from keval_remote.copies import RunCopy, part_name
from keval_remote.objects import Entry, Objects, UnreachableError

FIRST, SECOND = "000000000000-one", "000000000010-two"
NAME = "trials.jsonl"
CURRENT = f"{NAME}.parts/current"


def put(objects: Objects, generation: str, *parts: tuple[int, bytes]) -> None:
    for begin, content in parts:
        objects.write(f"{NAME}.parts/{generation}/{part_name(begin, begin + len(content))}", content)


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    (tmp_path / "here").mkdir()
    return Objects.at(f"file://{tmp_path}/run")


def brought(objects: Objects, here: Path) -> str | None:
    RunCopy(here, objects).fetch()
    return (here / NAME).read_text(encoding="utf-8") if (here / NAME).exists() else None


@pytest.mark.parametrize(
    ("there", "parts", "expected"),
    [
        ({NAME: b"0123456789"}, [(0, b"ab")], "0123456789"),
        ({CURRENT: FIRST.encode()}, [(0, b"abc"), (3, b"de"), (5, b"f")], "abcdef"),
        ({CURRENT: FIRST.encode()}, [(0, b"abc"), (5, b"f")], "abc"),
        ({CURRENT: FIRST.encode()}, [], ""),
        ({}, [(0, b"abc")], None),
        ({NAME: b"0123456789", CURRENT: SECOND.encode()}, [(10, b"ab")], "0123456789ab"),
        ({NAME: b"0123456789abc", CURRENT: SECOND.encode()}, [(10, b"ab")], "0123456789ab"),
        ({NAME: b"0123456789", CURRENT: b"torn"}, [(0, b"ab")], "0123456789"),
    ],
    ids=[
        "parts that a killed process left beside the plain object",
        "all",
        "a gap",
        "another file, which is empty",
        "a file of which not all is there yet",
        "going on after a plain object",
        "which is settled just now",
        "no generation",
    ],
)
def test_the_current_generation_counts_up_to_its_first_gap(
    objects: Objects, tmp_path: Path, there: dict[str, bytes], parts: Sequence[tuple[int, bytes]], expected: str | None
) -> None:
    put(objects, "000000000000-left", (0, b"of before"))
    put(objects, there.get(CURRENT, FIRST.encode()).decode(), *parts)
    for name, content in there.items():
        objects.write(name, content)

    assert expected == brought(objects, tmp_path / "here")


def test_only_what_is_new_is_brought_when_parts_are_added_and_become_a_plain_object(
    objects: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, read = Objects.read, list[str]()

    def noted(self: Objects, path: str, start: int | None = None, end: int | None = None) -> bytes:
        content = reading(self, path, start, end)
        read.append(content.decode())
        return content

    monkeypatch.setattr(Objects, "read", noted)
    monkeypatch.setattr(Objects, "download", None)
    seen = []

    def add(generation: str, begin: int, content: bytes) -> None:
        put(objects, generation, (begin, content))
        objects.write(CURRENT, generation.encode())
        seen.append(brought(objects, tmp_path / "here"))

    add(FIRST, 0, b"abc")
    add(FIRST, 3, b"de")
    objects.write(NAME, b"abcdefgh")
    objects.under(f"{NAME}.parts").remove_all()
    seen.append(brought(objects, tmp_path / "here"))
    add("000000000008-on", 8, b"ij")

    assert ["abc", "abcde", "abcdefgh", "abcdefghij"] == seen
    assert [FIRST, "abc", FIRST, "de", "abcde", "fgh", "000000000008-on", "abcdefgh", "ij"] == read


def test_a_file_that_is_settled_between_two_listings_is_there(
    objects: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = Objects.list
    put(objects, FIRST, (0, b"0123456789"))
    objects.write(CURRENT, FIRST.encode())

    def settling(self: Objects, path: str = "") -> dict[str, Entry]:
        found = listing(self, path)
        if ".parts/" in path:
            self.write(NAME, b"0123456789")
            self.under(f"{NAME}.parts").remove_all()
        return found

    monkeypatch.setattr(Objects, "list", settling)

    assert "0123456789" == brought(objects, tmp_path / "here")


@pytest.mark.parametrize("is_there", [True, False], ids=["there", "removed"])
def test_a_file_that_is_there_and_cannot_be_brought_is_an_error(
    objects: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    objects.write(NAME, b"0123456789")

    def fail(self: Objects, path: str, to: Path) -> None:
        if not is_there:
            self.remove([path])
        raise FileNotFoundError(path)

    monkeypatch.setattr(Objects, "download", fail)
    monkeypatch.setattr("keval_remote.copies.time.sleep", lambda seconds: None)
    told: Any = pytest.raises(UnreachableError, match=r"/run/trials\.jsonl changes .* while it is read; try it again")

    with told if is_there else nullcontext():
        RunCopy(tmp_path / "here", objects).fetch()

    assert not (tmp_path / "here" / NAME).exists()


def test_scores_are_not_brought_before_their_trials(
    objects: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While they are brought, another machine writes on: each time a trial, and then its score."""
    listing, scores, count = Objects.list, ".scores.x.jsonl", 0

    def write_on() -> None:
        nonlocal count
        for name in (NAME, scores):
            objects.write(f"{name}.parts/{FIRST}/{part_name(2 * count, 2 * count + 2)}", b"1\n")
            objects.write(f"{name}.parts/current", FIRST.encode())
        count += 1

    def meanwhile(self: Objects, path: str = "") -> dict[str, Entry]:
        found = listing(self, path)
        if ".parts" in path:
            write_on()
        return found

    write_on()
    monkeypatch.setattr(Objects, "list", meanwhile)
    here = tmp_path / "here"
    RunCopy(here, objects).fetch()

    assert (here / scores).stat().st_size <= (here / NAME).stat().st_size
    assert 2 == (here / scores).stat().st_size

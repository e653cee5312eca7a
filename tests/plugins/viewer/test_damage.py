"""Runs that are damaged: each page says which file is, how, and what to do, and the other runs are listed as before."""

from __future__ import annotations

import html
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from keval_viewer.report_page import FRAGMENTS
from tests import viewing
from tests.plugins.viewer import odd_run
from tests.viewing import client_of

GOOD = "20261124-000000-good"
FILES = ("manifest.json", "summary.json", "trials.jsonl", "scores.jsonl", "samples.jsonl", "reviews.jsonl", "blobs")
LINE = "this line is damaged"
NO_FILE = "not a regular file; a directory, a pipe or a device is not read; restore the file"
REMADE = "remove it, as it is made anew from trials and scores"
TRIAL = odd_run.url(odd_run.READ).removeprefix(odd_run.PLACE)
PLACES = (
    *("", "/trials", "/trials.json", "/compare", "/review", TRIAL, "/samples/prune-default?against=0"),
    *("/answers/prune-default", "/raw/trials/x", *(f"/parts/{part}" for part in FRAGMENTS)),
)


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def a_loop(path: Path) -> None:
    path.symlink_to(path.name)


def deep(path: Path) -> None:
    path.write_bytes(b"[" * 100_000 + b"\n")


def with_text(text: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_text(text, encoding="utf-8")

    return write


def changed(edit: Callable[[Any], None]) -> Callable[[Path], None]:
    """Change the JSON of a file, or of its first line."""

    def write(path: Path) -> None:
        whole = (odd_run.RECORDED / path.name).read_text(encoding="utf-8")
        first, rest = (whole, "") if path.suffix == ".json" else whole.split("\n", 1)
        data = json.loads(first)
        edit(data)
        path.write_text(f"{json.dumps(data)}\n{rest}", encoding="utf-8")

    return write


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with a run, in which nothing is damaged."""
    folder = tmp_path_factory.mktemp("damage")
    odd_run.make(folder)
    (folder / "context-ab" / odd_run.RUN).rename(folder / "context-ab" / GOOD)
    return folder


@pytest.fixture
def run(results: Path) -> Iterator[Path]:
    """A copy of the run, to damage."""
    folder = results / "context-ab" / odd_run.RUN
    shutil.copytree(results / "context-ab" / GOOD, folder)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def client(results: Path) -> Iterator[httpx2.Client]:
    with viewing.served(results) as running, client_of(running) as client:
        yield client


def replace(path: Path, damage: Callable[[Path], Any]) -> None:
    """Put something else in the place of a file or folder of a run."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    damage(path)


@pytest.mark.parametrize(
    ("name", "damage", "place", "told"),
    [
        ("trials.jsonl", a_pipe, "", f"trials.jsonl cannot be read: {NO_FILE}"),
        ("trials.jsonl", Path.mkdir, "", f"trials.jsonl cannot be read: {NO_FILE}"),
        ("trials.jsonl", Path.mkdir, "/trials.json", f"trials.jsonl cannot be read: {NO_FILE}"),
        ("trials.jsonl", with_text('{"a": 1}\n'), "/parts/questions", f"trials.jsonl:1: {LINE}: KeyError("),
        ("trials.jsonl", with_text("5\n"), "/review", f"trials.jsonl:1: {LINE}: TypeError("),
        ("trials.jsonl", with_text('{"id": NaN}\n'), TRIAL, f"trials.jsonl:1: {LINE}: JSONDecodeError("),
        ("scores.jsonl", a_pipe, "/parts/questions", f"scores.jsonl cannot be read: {NO_FILE}"),
        (
            "scores.jsonl",
            changed(lambda data: data.update(value=1e308)),
            "/parts/distributions",
            f"scores.jsonl:1: {LINE}: ValueError('no scorer gives a score of 1e+308'); remove it to go on",
        ),
        ("scores.jsonl", deep, TRIAL, f"scores.jsonl:1: {LINE}: JSONDecodeError("),
        ("samples.jsonl", Path.mkdir, TRIAL, f"samples.jsonl cannot be read: {NO_FILE}"),
        ("reviews.jsonl", a_pipe, "/review", f"reviews.jsonl cannot be read: {NO_FILE}"),
        ("manifest.json", a_pipe, "", f"manifest.json cannot be read: {NO_FILE}"),
        ("manifest.json", with_text(""), "/trials", "manifest.json is damaged: Input is a zero-length, empty document"),
        ("summary.json", with_text("[]"), "", f"summary.json is damaged: expected a mapping, got a list; {REMADE}"),
        (
            "summary.json",
            changed(lambda data: data["arms"][0].update(metric=5)),
            "",
            f"summary.json is damaged: arms.0.metric: expected a text, got 5; {REMADE}",
        ),
        (
            "summary.json",
            changed(lambda data: data["scorers"][1].update(metric="other")),
            "",
            f"summary.json is damaged: it does not list the metric 'completeness'; {REMADE}",
        ),
        ("trials.jsonl", a_device, "", "no run"),
        ("trials.jsonl", a_loop, "", "no run"),
    ],
)
def test_damage_is_told_with_its_place_and_remedy(
    client: httpx2.Client, run: Path, *, name: str, damage: Callable[[Path], None], place: str, told: str
) -> None:
    replace(run / name, damage)

    page = client.get(f"{odd_run.PLACE}{place}")
    listed = client.get("/")

    assert 404 == page.status_code if told == "no run" else 500 == page.status_code
    assert told in html.unescape(page.text)
    assert (200, True) == (listed.status_code, GOOD in listed.text)


def test_a_summary_that_is_no_file_is_made_anew(client: httpx2.Client, run: Path) -> None:
    replace(run / "summary.json", a_pipe)
    replace(run / ".lock", a_pipe)

    page = client.get(odd_run.PLACE)

    assert (200, True) == (page.status_code, 'class="forest"' in page.text)


def test_what_an_adapter_left_in_place_of_a_text_is_shown(client: httpx2.Client, run: Path) -> None:
    lines = [json.loads(line) for line in (run / "trials.jsonl").read_text(encoding="utf-8").splitlines()]
    for line in lines:
        for call in (line["transcript"] or {}).get("tool_calls", ()):
            call["result"] = {"found": [1.5, True]}
        if line["failure"]:
            line["failure"]["message"] = ["refused", 7]
    (run / "trials.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")

    places = (TRIAL, "/parts/questions", "/answers/prune-default", "/answers/tape")
    pages = [client.get(f"{odd_run.PLACE}{place}") for place in places]

    assert [200] * 4 == [page.status_code for page in pages]
    assert '{"found":[1.5,true]}' in "".join(html.unescape(pages[2].text).split())
    assert '["refused",7]' in html.unescape(pages[3].text)


JUNK: tuple[Any, ...] = (
    *(None, 5, -1, 1.5, "x", "", True, [], {}, [1], {"a": 1}, 1e308, 2**63, 10**400, float("nan")),
    *([None], {"": None}, "\ud800", "a\x00b", [[[]]], "9" * 5_000),
)


def vandalised(rng: random.Random, run: Path) -> str:
    """Damage a run in any way, and return how."""
    name = rng.choice(FILES)
    if name in ("blobs", "reviews.jsonl") or rng.random() < 0.3:
        content = rng.choice([b"", b"\0" * 99, rng.randbytes(999), b"{" * 9_999, b'{"id": "x', b"null\n", b"[1]\n{}\n"])
        kinds: list[Callable[[Path], Any]] = [a_pipe, Path.mkdir, lambda path: path.write_bytes(content)]
        replace(run / name, rng.choice(kinds))
        return f"{name} {content[:20]!r}"
    lines = [(run / name).read_text(encoding="utf-8")]
    if name.endswith("l"):
        lines = lines[0].splitlines()
    at = rng.randrange(len(lines))
    data = json.loads(lines[at])
    *steps, last = rng.choice([place for place in places(data) if place])
    node = data
    for step in steps:
        node = node[step]
    node[last] = rng.choice(JUNK)
    lines[at] = json.dumps(data)
    (run / name).write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass"))
    return f"{name}:{at + 1} {steps} {last} {lines[at][:40]}"


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for step, child in children:
        yield from places(child, (*path, step))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(n, marks=pytest.mark.slow) for n in range(12, 300))])
def test_no_damage_is_a_defect_of_keval(client: httpx2.Client, run: Path, seed: int) -> None:
    how = vandalised(random.Random(seed), run)

    pages = {place: client.get(f"{odd_run.PLACE}{place}", timeout=10) for place in PLACES}

    defects = [place for place, page in pages.items() if "defect of keval" in page.text]
    assert ([], True) == (defects, GOOD in client.get("/").text), how

"""Reviewing in the browser: what is kept, and what a blind reviewer is not shown."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import httpx2
import pytest
from playwright.sync_api import Page, expect

from keval import Run
from keval_analysis.findings.draws import draws_file
from keval_analysis.labels.drawing import draw_answers
from keval_viewer.app import Serving
from keval_viewer.page import run_url
from keval_viewer.reviews import Choice, queue_of
from tests import viewing
from tests.conftest import Project
from tests.reviewing import review
from tests.viewing import client_of, needs_chromium

CONFIG = """
name: judged
dataset: {path: questions.jsonl}
agents: {scripted: {}, other: {type: scripted, suffix: "!"}}
conditions: {baseline: {}, secret: {system_prompt: "Mind: "}}
rubrics: [{tone: {instructions: Is it polite?, levels: {1: rude, 2: cool, 3: fair, 4: kind, 5: warm}}}]
judges: {reader: {}, strict: {level: 3}}
metrics: [double/characters]
"""
LEVELS = [1, 5, 3, 3, 2]
TELLING = ("scripted", "other", "baseline", "secret", "reader", "strict", "characters")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with a run of four arms and two judges, who agree on two of five questions."""
    project = Project(tmp_path_factory.mktemp("reviewed"))
    samples = [{"id": f"q{place}", "question": f"{'Well' * 5**place}?", "level": of} for place, of in enumerate(LEVELS)]
    project.write(eval_yaml=CONFIG, questions_jsonl="".join(json.dumps(sample) + "\n" for sample in samples))
    assert 0 == project.fork("run", "eval.yaml", "-q").code  # there may be a browser in this process
    return project.root / "results"


@pytest.fixture(scope="module")
def serving(results: Path) -> Iterator[Serving]:
    with viewing.served(results) as running:
        yield running


@pytest.fixture
def run(results: Path) -> Iterator[Run]:
    """The run, without a review before and after."""
    (path,) = results.glob("*/*")
    run = Run(path)
    run.reviews_file.path.unlink(missing_ok=True)
    yield run
    run.reviews_file.path.unlink(missing_ok=True)


@attrs.frozen
class Reviewer:
    """A person at the keyboard, by HTTP."""

    run: Run
    client: httpx2.Client

    def named(self, name: str) -> httpx2.Response:
        return self.post("/review/name", {"name": name})

    def get(self, place: str) -> httpx2.Response:
        return self.client.get(run_url(self.run, place))

    def post(self, place: str, data: dict[str, Any]) -> httpx2.Response:
        return self.client.post(
            run_url(self.run, place), data=data, headers={"origin": str(self.client.base_url).rstrip("/")}
        )


@pytest.fixture
def person(serving: Serving, run: Run) -> Iterator[Reviewer]:
    with client_of(serving) as client:
        found = Reviewer(run, client)
        found.named("Ann Żółć")
        yield found


def shown(page: httpx2.Response) -> dict[str, str]:
    """The digests of the answers that a page shows, as its form sends them."""
    return dict(re.findall(r'<input type="hidden" name="([\d.]*answer)" value="(\w+)">', page.text))


def test_a_verdict_is_kept_as_it_was_made_and_the_next_answer_follows(person: Reviewer, run: Run) -> None:
    page = person.get("/review/answers?chosen=random&count=7&seed=4&blind=1")
    (digest,) = run.manifest.rubrics
    said = {f"0.level.{digest}": "4", "0.note": " Kind.\r\nToo long. "}

    after = person.post(f"/review/answers?{page.url.query.decode()}", {**shown(page), **said})

    assert ("1 of 7", "2 of 7") == tuple(re.search(r"<h1>(.*)</h1>", each.text)[1] for each in (page, after))  # type: ignore[index]
    ((trial,), _) = queue_of(run, Choice(count=7, seed=4))[:2]
    rated, note = run.reviews()
    assert ("Ann Żółć", trial, True, "random") == (rated.reviewer, rated.trial, rated.blind, rated.chosen)
    assert (4, "tone", "Kind.\nToo long.") == (rated.level, rated.metric, note.note)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", rated.at)


def test_only_what_changed_is_added_and_an_empty_field_withdraws(person: Reviewer, run: Run) -> None:
    (digest,) = run.manifest.rubrics
    place = "/review/answers?chosen=all&seed=1&blind=1&at=0"
    answer = shown(person.get(place))
    person.post(place, {**answer, f"0.level.{digest}": "2", "0.note": "so"})

    person.post(place, {**answer, f"0.level.{digest}": "", "0.note": "so", "0.level.other": "5"})
    person.post(place, {**answer, f"0.level.{digest}": "6"})

    assert 3 == len([*run.reviews_file.read()])
    assert ["so"] == [each.said for each in run.reviews()]


@pytest.mark.parametrize("side", [0, 1])
def test_a_blind_reviewer_is_given_nothing_that_tells_arms_apart(person: Reviewer, run: Run, side: int) -> None:
    for trial in run.trial_ids():
        run.reviews_file.append([review(run, trial, "Ben", note="a giveaway", blind=True)])
    queue = f"/review/answers?chosen=random&count=9&seed=2&blind=1&side={side}"

    pages = [person.get(queue), *(person.get(f"{queue}&at={at}") for at in range(3))]

    assert {200} == {page.status_code for page in pages}
    assert [] == [word for page in pages for word in (*TELLING, "giveaway", "Ben") if word in page.text]
    assert [] == [word for page in pages for word in TELLING if word in str(page.url)]


def test_what_is_said_after_the_arm_is_shown_is_not_blind(person: Reviewer, run: Run) -> None:
    place = "/review/answers?chosen=all&seed=1&blind=1&at=1"
    ((trial,),) = queue_of(run, Choice(chosen="all"))[1:2]
    run.reviews_file.append([review(run, trial, "Ben", note="a giveaway")])
    too_soon = person.get(f"{place}&reveal=1")
    answer = shown(too_soon)
    person.post(place, {**answer, "0.note": "good"})
    person.post(place, {**answer, "0.note": "bad"})

    revealed = person.get(f"{place}&reveal=1")
    person.post(place, {**answer, "0.note": "good"})

    assert "giveaway" not in too_soon.text
    assert [] == [word for word in ("giveaway", *trial.split("/")[:2], "reader") if word not in revealed.text]
    mine = [(each.note, each.blind) for each in run.reviews_file.read() if each.reviewer != "Ben"]
    assert [("good", True), ("bad", True), ("good", False)] == mine


def test_an_answer_that_changed_since_the_page_was_made_is_not_reviewed(person: Reviewer, run: Run) -> None:
    place = "/review/answers?chosen=all&seed=1&blind=1&at=0"

    changed = person.post(place, {"0.answer": "0" * 64, "0.note": "good"})
    beyond = person.post("/review/answers?chosen=all&seed=1&at=99", {"0.answer": "0" * 64, "0.note": "good"})
    person.named(" ")
    nameless = person.post(place, {**shown(person.get(place)), "0.note": "good"})

    assert (409, 409, 403) == (changed.status_code, beyond.status_code, nameless.status_code)
    assert "nothing was saved" in changed.text
    assert [] == run.reviews()


def test_a_name_leads_to_the_answers_and_nowhere_else(person: Reviewer, run: Run) -> None:
    answers = [
        person.client.post(
            run_url(run, "/review/name"),
            data={"name": "Zoë\n<b>", "back": back},
            headers={"sec-fetch-site": "same-origin"},
            follow_redirects=False,
        )
        for back in ("//evil.example/", "https://evil.example/", run_url(run, "/trials/a"))
    ]

    assert [run_url(run, "/review")] * 3 == [each.headers["location"] for each in answers]
    assert 'value="Zoë &lt;b&gt;"' in person.get("/review").text


def test_a_seed_gives_the_same_answers_in_the_same_order(run: Run) -> None:
    one, again, other = (queue_of(run, Choice(count=10, seed=seed)) for seed in (1, 1, 2))
    every = queue_of(run, Choice(chosen="all", seed=1))

    assert one == again == every[:10]
    assert {*other} != {*one}
    assert (20, run.trial_ids()) == (len(every), {trial for item in every for trial in item})


def test_side_by_side_are_all_answers_to_a_question(run: Run) -> None:
    side = queue_of(run, Choice(chosen="all", side=True))

    assert [4] * 5 == [*map(len, side)]
    assert 5 == len({run.trial(item[0]).sample.id for item in side})


@pytest.mark.parametrize("query", ["chosen=none&count=x&seed=-1", "count=99999999999999999999&seed=0", "chosen=one"])
def test_a_query_that_makes_no_sense_is_read_as_usual(query: str) -> None:
    found = Choice.read(dict(part.split("=") for part in query.split("&")))

    assert ("random", False) == (found.chosen, found.blind)
    assert 1 <= found.seed
    assert 1 <= found.count <= 10_000


@pytest.mark.slow
@needs_chromium
def test_answers_are_reviewed_by_keyboard(serving: Serving, run: Run, visit: Callable[..., Page]) -> None:
    page = visit(serving, run_url(run, "/review"))
    page.get_by_label("Your name").fill("Ann")
    page.get_by_role("button", name="go on").click()
    page.get_by_label("at most").fill("2")
    page.get_by_role("button", name="Begin").click()
    expect(page.get_by_role("heading", name="1 of 2")).to_be_visible()
    page.wait_for_load_state()  # with its script, which hears the keys

    page.keyboard.press("4")
    page.keyboard.press("m")
    page.keyboard.type("u, 1 and n are text here")
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    expect(page.get_by_role("heading", name="2 of 2")).to_be_visible()
    page.wait_for_load_state()
    page.keyboard.press("2")
    page.keyboard.press("n")
    expect(page.get_by_role("heading", name="All 2 reviewed")).to_be_visible()
    page.go_back()
    page.wait_for_load_state()
    page.keyboard.press("p")
    expect(page.get_by_role("heading", name="1 of 2")).to_be_visible()
    expect(page.get_by_label("Note")).to_have_value("u, 1 and n are text here")
    page.get_by_role("link", name="Show whose answer this is").click()
    expect(page.get_by_text("What you change now is not blind.")).to_be_visible()

    said = [(each.kind, each.said, each.blind) for each in run.reviews()]
    assert [("level", 4, True), ("note", "u, 1 and n are text here", True)] == said[:2]
    assert [("level", 2, True)] == said[2:]


@pytest.mark.slow
@needs_chromium
def test_the_answers_to_a_question_are_reviewed_side_by_side(
    serving: Serving, run: Run, visit: Callable[..., Page]
) -> None:
    page = visit(serving, run_url(run, "/review"))
    page.get_by_label("Your name").fill("Ann")
    page.get_by_role("button", name="go on").click()
    page.goto(f"{serving.base}{run_url(run, '/review/answers?chosen=all&seed=3&side=1&blind=1')}")
    expect(page.get_by_role("article")).to_have_count(4)

    for digit in "5432":
        page.keyboard.press(digit)
    page.get_by_role("article", name="answer C").get_by_label("Note").fill("so")
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    expect(page.get_by_role("heading", name="2 of 5")).to_be_visible()

    (item, *_) = queue_of(run, Choice(chosen="all", seed=3, side=True))
    said = {(each.trial, each.kind): each.said for each in run.reviews()}
    expected = {(trial, "level"): 5 - place for place, trial in enumerate(item)}
    assert {**expected, (item[2], "note"): "so"} == said


def test_a_draw_is_offered_first_and_what_is_skipped_of_it_is_kept(person: Reviewer, run: Run) -> None:
    draw = draw_answers(run, run.manifest.scorers[0], 8, 1, "2026-11-26T09:00:00Z")
    draws_file(run.path).append([draw])
    try:
        start = person.get("/review")
        place = "/review/answers?chosen=draw.1&seed=1&blind=1"
        (digest,) = run.manifest.rubrics
        for at in range(2):
            person.post(f"{place}&at={at}", {**shown(person.get(f"{place}&at={at}")), "0.note": "", "skip": "1"})
        told = person.get(f"{place}&at=1").text
        person.post(f"{place}&at=1", {**shown(person.get(f"{place}&at=1")), f"0.level.{digest}": "4"})
        person.post("/review/answers?chosen=draw.9&seed=1&at=0", {"skip": "1"})
        queue = [trial for item in queue_of(run, Choice("draw", "1")) for trial in item]
        found = [(each.trial, each.said, each.blind, each.chosen) for each in run.reviews()]
        left = person.get("/review").text
    finally:
        draws_file(run.path).path.unlink()

    assert re.search(r'value="draw.1" checked> the draw of 2026-11-26 \(8 answers, 8 left\)', start.text)
    assert {each.trial for each in draw.answers} == {*queue}
    # The answers to a question follow each other.
    asked = [trial.split("/")[2] for trial in queue]
    assert [1, 1] == [len({*asked[:4]}), len({*asked[4:]})]
    assert "You skipped this answer." in told
    assert [(queue[0], True, True, "draw"), (queue[1], 4, True, "draw")] == found
    assert "(8 answers, 6 left)" in left

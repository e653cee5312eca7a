"""The page of a trial: what was answered, how it was scored, and all that happened."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Page, expect

from keval import open_run
from keval_viewer.app import Serving
from tests import hostile
from tests.plugins.viewer import odd_run
from tests.viewing import client_of, needs_chromium


@pytest.fixture(scope="module")
def client(odd: Serving) -> Iterator[httpx2.Client]:
    with client_of(odd) as client:
        yield client


def texts(page: str, pattern: str) -> list[str]:
    """What a pattern finds in a page, as a reader sees it."""
    found = re.findall(pattern, page, re.DOTALL)
    return [" ".join(html.unescape(re.sub(r"<[^>]*>", " ", each)).split()) for each in found]


def test_a_recorded_trial_is_told_step_by_step_with_times_and_tokens(client: httpx2.Client) -> None:
    page = client.get(odd_run.url(odd_run.READ)).text

    expected = [
        "1 question , user → agent, after 0 s",
        "2 model call 1 , agent → model, after 14 ms",
        "3 search_docs , agent → docs, after 47 ms",
        "4 model call 2 , agent → model, after 119 ms",
        "5 read_page , agent → docs, after 140 ms, one of 2 calls at once ∥",
        "6 read_page , agent → docs, after 140 ms, one of 2 calls at once ∥",
        "7 model call 3 , agent → model, after 152 ms",
        "8 answer , agent → user, after 192 ms",
    ]
    assert expected == texts(page, r'<th scope="row" class="step">(.*?)</th>')
    assert ["242 → 18", "689 → 19", "1,027 → 87"] == [
        told for told in texts(page, r'<td class="num">(.*?)</td>') if "→" in told
    ]
    assert "Times as the recording measured them." in page
    assert 8 == len(re.findall(r'<li id="step-\d+"', page))


def test_judges_tell_what_they_could_not_verify(client: httpx2.Client) -> None:
    page = client.get(odd_run.url(odd_run.READ)).text

    assert "not verified by judge" in " ".join(texts(page, r'<p class="claim">(.*?)</p>'))
    assert "Simulated judge: 3 of 3 facts of the golden answer" in page


def test_an_answer_is_told_with_its_reasoning_and_its_sources(client: httpx2.Client) -> None:
    page = client.get(odd_run.url(odd_run.REPEATED)).text

    assert "reasoning Is it quick?" in texts(page, r'<details class="prompt">(.*?)</details>')
    cited = [told for told in texts(page, r'<p class="dim">(.*?)</p>') if told.startswith("cites")]
    assert ["cites <b> , https://a.example : 3 s", "cites https://b.example"] == cited


def test_what_a_scorer_read_is_marked_in_the_answer(client: httpx2.Client) -> None:
    page = client.get(f"{odd_run.url(odd_run.READ)}?read=completeness+judge").text
    (answer,) = re.findall(r'<div class="foreign text answer" dir="auto">(.*?)</div>', page, re.DOTALL)

    marks = re.findall(r'<mark class="(\w+)" title="([^"]*)">(.*?)</mark>', answer)
    output = open_run(odd_run.RECORDED).trial(odd_run.READ).output
    expected = [
        ("good", "command", output[0:16]),
        ("neutral", "the default", output[110:114]),
        ("bad", "the default; a word of it", output[114:121]),
        ("neutral", "the default", output[121:127]),
    ]
    assert expected == [(kind, label, html.unescape(text)) for kind, label, text in marks]
    assert output == html.unescape(re.sub("<[^>]*>", "", answer))
    assert ["the default", "a word of it bad"] == texts(page, r'<li class="(?:neutral|bad)"><q.*?</q>(.*?)</li>')


def test_a_trial_leads_to_its_neighbours_and_to_its_record(client: httpx2.Client) -> None:
    page = client.get(odd_run.url(odd_run.READ)).text
    record = client.get(f"{odd_run.PLACE}/raw/trials/{odd_run.READ.replace('/', '%2F')}")
    request = client.get(f"{odd_run.PLACE}/raw/requests/{odd_run.READ.replace('/', '%2F')}")

    links = re.findall(r'href="([^"]*)"', page)
    assert [odd_run.url(odd_run.LONG)] == re.findall(r'rel="next" href="([^"]*)"', page)
    assert {odd_run.url("openai/baseline/prune-default/1"), f"{odd_run.PLACE}/samples/prune-default"} <= {*links}
    assert "application/json" == record.headers["content-type"]
    assert (odd_run.READ, odd_run.READ) == (record.json()["id"], json.loads(record.text)["id"])
    assert "messages" in request.json()
    assert [404, 404, 404] == [
        client.get(f"{odd_run.PLACE}{place}").status_code
        for place in ("/trials/nothing", "/raw/trials/nothing", f"/raw/requests/{odd_run.FAILED.replace('/', '%2F')}")
    ]


def test_discarded_attempts_have_conversations_of_their_own(client: httpx2.Client) -> None:
    page = client.get(odd_run.url(odd_run.REPEATED)).text

    attempts = texts(page, r'<details class="attempt"><summary>(.*?)</summary>')
    expected = [
        "Attempt 1 ( timeout ) no answer within 60 s",
        "Attempt 2 ( server_lost ) the server 'docs' was lost not counted, as another trial's call may be why",
    ]
    assert expected == attempts
    assert ["attempt-1-step-1"] == re.findall(r'id="(attempt-1-step-1)"', page)
    assert "There is no transcript of this attempt." in page
    assert odd_run.ARABIC in page


def test_a_failed_trial_without_a_transcript_says_so(client: httpx2.Client) -> None:
    page = client.get(odd_run.url(odd_run.FAILED)).text

    assert ["Failed (model, unreachable ): connection refused"] == texts(page, r'<div class="failed-box">(.*?)</p>')
    assert "There is no transcript of this trial." in page


def test_unknown_times_and_waits_are_told(client: httpx2.Client) -> None:
    page = client.get(odd_run.url(odd_run.LONG)).text

    (told,) = texts(page, r'<p class="legend-line dim">(.*?)</p>')
    assert told.startswith("A pale bar ends when the model had answered")
    assert told.endswith("The axis leaves out 2.0 s of waiting after refusals. The time of one step is not known.")


def test_hostile_text_is_text_everywhere(served: Serving, hostile_results: Path) -> None:
    (folder,) = hostile_results.glob("*/*")
    with client_of(served) as client:
        place = f"/runs/{folder.parent.name}/{folder.name}"
        urls = [f"{place}/trials/{key.id.replace('/', '%2F')}" for key in open_run(folder).known_trials]
        pages = [client.get(url) for url in urls]

    assert {200} == {page.status_code for page in pages}
    assert [] == [tag for page in pages for tag in re.findall(r"<(?:img|script(?! type=\"module\"))[^>]*>", page.text)]
    assert all(html.escape(hostile.LABEL) in page.text for page in pages)


@pytest.mark.slow
@needs_chromium
def test_stepping_highlights_conversation_and_timeline_alike(odd: Serving, visit: Callable[..., Page]) -> None:
    page = visit(odd, odd_run.url(odd_run.LONG), viewport={"width": 1440, "height": 900})
    current = page.locator("[data-step].current")

    for key in ("j", "ArrowRight", "j", "k"):
        page.keyboard.press(key)
    names = current.evaluate_all("all => all.map(each => [each.tagName, each.dataset.step, each.ariaCurrent])")
    hash_ = page.evaluate("location.hash")
    page.reload()
    again = current.evaluate_all("all => all.map(each => [each.tagName, each.dataset.step, each.ariaCurrent])")

    assert sorted([["LI", "2", "step"], ["TR", "2", "step"]]) == sorted(names)
    assert ("#step-2", sorted(names)) == (hash_, sorted(again))


@pytest.mark.slow
@needs_chromium
def test_a_step_far_down_comes_into_sight_on_both_sides(odd: Serving, visit: Callable[..., Page]) -> None:
    page = visit(odd, odd_run.url(odd_run.LONG), viewport={"width": 1440, "height": 900})

    page.locator(".track tbody tr").nth(70).locator("a").click()

    for part in page.locator("[data-step].current").all():
        expect(part).to_be_in_viewport()
    page.keyboard.press("]")
    expect(page).to_have_url(re.compile("tape"))


@pytest.mark.slow
@needs_chromium
def test_a_step_of_a_discarded_attempt_opens_it(odd: Serving, visit: Callable[..., Page]) -> None:
    page = visit(odd, f"{odd_run.url(odd_run.REPEATED)}#attempt-1-step-1")

    expect(page.locator("#attempt-1-step-1")).to_be_visible()

"""The page of a sample: all answers to a question side by side."""

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
from tests.conftest import Project
from tests.plugins.viewer import odd_run
from tests.viewing import client_of, needs_chromium, served

SAMPLES = f"{odd_run.PLACE}/samples"


@pytest.fixture(scope="module")
def client(odd: Serving) -> Iterator[httpx2.Client]:
    with client_of(odd) as client:
        yield client


def plain(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def test_all_arms_answer_side_by_side_with_their_scores(client: httpx2.Client) -> None:
    page = client.get(f"{SAMPLES}/prune-default").text

    heads = [plain(each) for each in re.findall(r'<th scope="col">(.*?)</th>', page)]
    rows = [plain(each) for each in re.findall(r'<tr class="score-row">(.*?)</tr>', page, re.DOTALL)]
    run = open_run(odd_run.RECORDED)
    said = [run.trial(f"openai/{arm}/prune-default/1").output for arm in ("baseline", "with_docs")]
    answers = re.findall(r'<div class="foreign text answer" dir="auto">(.*?)</div>', page, re.DOTALL)
    assert ["openai baseline", "openai with_docs"] == heads
    assert said == [html.unescape(answer) for answer in answers]
    assert 3 == len(rows)
    assert rows[1].startswith("completeness 1.00 Simulated judge: 0 of 3 facts")
    assert "5.00 Simulated judge: 3 of 3 facts" in rows[1]
    assert [odd_run.url(f"openai/{arm}/prune-default/1") for arm in ("baseline", "with_docs")] == re.findall(
        r'<a data-row href="([^"]*)"', page
    )


def test_an_answer_has_the_history_and_facts_of_its_agent_beside_it(project: Project) -> None:
    own = {"history": [{"user": "How is Rome?", "assistant": "Mild."}], "facts": {"city": "Rome"}}
    asked = {"id": "there", "question": "And there?", "history": [{"user": "How is Oslo?", "assistant": "Cold."}]}
    project.write(
        eval_yaml="agents: {a: {type: recorded, path: a.jsonl}, b: {type: recorded, path: b.jsonl}}\n"
        "dataset: {path: questions.jsonl}\nmetrics: [basic/latency]\n",
        questions_jsonl=json.dumps(asked) + "\n",
        a_jsonl=json.dumps({"id": "there", "response": "Sunny.", **own}) + "\n",
        b_jsonl=json.dumps({"id": "there", "response": "Snow."}) + "\n",
    )
    project.keval("run", "eval.yaml")
    run = project.run_directory()

    with served(project.root / "results") as running, client_of(running) as client:
        place = f"/runs/{run.parent.name}/{run.name}"
        pages = [plain(client.get(f"{place}/{of}").text) for of in ("samples/there", "answers/there")]

    beside = 'Earlier, with this agent user How is Rome? assistant Mild. Facts of this agent { "city": "Rome" }'
    assert [(1, 1)] * 2 == [(page.count("user How is Oslo? assistant Cold."), page.count(beside)) for page in pages]


def test_words_are_compared_with_a_chosen_arm_on_demand(client: httpx2.Client) -> None:
    alone = client.get(f"{SAMPLES}/prune-default").text
    page = client.get(f"{SAMPLES}/prune-default?against=0").text

    (compared,) = [
        each
        for each in re.findall(r'<div class="foreign text answer" dir="auto">(.*?)</div>', page, re.DOTALL)
        if "<ins>" in each
    ]
    run = open_run(odd_run.RECORDED)
    base, other = (run.trial(f"openai/{arm}/prune-default/1").output for arm in ("baseline", "with_docs"))
    assert "<ins>" not in alone
    assert other.split() == html.unescape(re.sub(r"<del>.*?</del>|</?ins>", "", compared)).split()
    assert base.split() == html.unescape(re.sub(r"<ins>.*?</ins>|</?del>", "", compared)).split()


def test_questions_follow_each_other_as_in_the_dataset(client: httpx2.Client) -> None:
    page = client.get(f"{SAMPLES}/change-passphrase?against=1").text

    beside = [(way, name) for way in ("prev", "next") for name in re.findall(rf'rel="{way}" href="[^"]*/(.*?)"', page)]
    assert "2 of 3" in page
    assert [("prev", "prune-default?against=1"), ("next", "tape?against=1")] == beside


def test_a_sample_that_is_not_there_is_no_page(client: httpx2.Client) -> None:
    assert [404, 200, 200] == [
        client.get(f"{SAMPLES}/{place}").status_code for place in ("nothing", "tape?against=7", "tape?against=x")
    ]


def test_hostile_text_is_text(served: Serving, hostile_results: Path) -> None:
    (folder,) = hostile_results.glob("*/*")
    with client_of(served) as client:
        page = client.get(
            f"/runs/{folder.parent.name}/{folder.name}/samples/0%20%3Cimg%20src%3Dx%20onerror%3Dwindow.injected%3Dtrue%3E?against=0"
        )

    assert 200 == page.status_code
    assert [] == re.findall(r"<(?:img|script(?! type=\"module\"))[^>]*>", page.text)
    assert html.escape(hostile.LABEL) in page.text


@pytest.mark.slow
@needs_chromium
def test_a_choice_takes_effect_at_once_and_is_kept_from_question_to_question(
    odd: Serving, visit: Callable[..., Page]
) -> None:
    page = visit(odd, f"{SAMPLES}/prune-default")

    page.get_by_label("words compared with").select_option("openai · baseline")
    expect(page.locator("ins").first).to_be_visible()
    page.wait_for_load_state()  # with its script, which hears the keys
    page.keyboard.press("]")

    expect(page.locator("h1")).to_have_text("change-passphrase")
    expect(page.locator("ins").first).to_be_visible()

"""Deciding on generated questions in the browser: what is written, and what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Page, expect
from starlette.applications import Starlette

from keval.config.evaluation import DatasetFile
from keval_analysis.question_review import QuestionFile
from keval_viewer.app import Serving, build_app
from keval_viewer.pages import VIEW_PAGES
from tests import viewing
from tests.conftest import Project
from tests.viewing import client_of, needs_chromium, serious, too_wide

HOSTILE = "<script>alert(1)</script>"
PROOF = {"tool": "look_up", "arguments": {"of": HOSTILE}, "result": f"{HOSTILE} It is 9 m.", "evidence": "It is 9 m."}
RECORDS = [
    {"id": "asked", "question": "Who?", "answer": "I."},
    {"id": "height", "question": f"How high? {HOSTILE}", "answer": "9 m", "accepted": False, "proof": [PROOF]},
    {"id": "age", "question": "How old?", "answer": "Nobody knows.", "accepted": False, "unanswerable": True},
]


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS), encoding="utf-8")
    return path


def app_of(dataset: Path) -> Callable[[], AbstractAsyncContextManager[Starlette]]:
    @asynccontextmanager
    async def build() -> AsyncIterator[Starlette]:
        app = build_app(dataset.parent / "results", VIEW_PAGES)
        app.state.questions = QuestionFile(DatasetFile(dataset))
        yield app

    return build


@pytest.fixture
def deciding(dataset: Path) -> Iterator[Serving]:
    with viewing.served(app_of(dataset)) as running:
        yield running


@pytest.fixture
def client(deciding: Serving) -> Iterator[httpx2.Client]:
    with client_of(deciding) as client:
        yield client


def form_of(page: str) -> dict[str, str]:
    """The hidden fields of the form, and its texts."""
    hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))
    return {**hidden, "question": "How high is it?", "answer": "9 m"}


def post(client: httpx2.Client, data: dict[str, str], at: int = 0) -> httpx2.Response:
    return client.post(f"/questions?at={at}", data=data, headers={"origin": str(client.base_url).rstrip("/")})


def record(dataset: Path, name: str) -> dict[str, Any]:
    found = map(json.loads, dataset.read_text(encoding="utf-8").splitlines())
    return next(each for each in found if each["id"] == name)


def test_a_question_is_accepted_with_the_texts_of_the_form(client: httpx2.Client, dataset: Path) -> None:
    page = client.get("/questions").text

    after = post(client, {**form_of(page), "decision": "accept"})

    assert HOSTILE not in page
    assert "It is 9 m." in page
    assert ("How high is it?", "9 m", True) == tuple(
        record(dataset, "height")[key] for key in ("question", "answer", "accepted")
    )
    assert "2 accepted, 0 rejected in" in after.text
    assert "the tools cannot tell" in after.text


def test_a_question_is_rejected_and_the_rest_can_be_skipped(client: httpx2.Client, dataset: Path) -> None:
    after = post(client, {**form_of(client.get("/questions?at=1").text), "decision": "reject"}, at=1)

    assert (False, True) == (record(dataset, "age")["accepted"], record(dataset, "age")["rejected"])
    assert "1 left out" in after.text
    assert "How high?" in client.get("/questions").text


def test_texts_are_saved_without_a_decision(client: httpx2.Client, dataset: Path) -> None:
    post(client, {**form_of(client.get("/questions").text), "decision": "save"})

    assert ("How high is it?", False) == (record(dataset, "height")["question"], record(dataset, "height")["accepted"])


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"version": "0"}, 409),
        ({"id": "asked"}, 409),
        ({"decision": "praise"}, 400),
        ({"answer": "  "}, 409),
    ],
)
def test_what_was_decided_on_or_makes_no_sense_writes_nothing(
    client: httpx2.Client, dataset: Path, changed: dict[str, str], status: int
) -> None:
    before = dataset.read_bytes()

    refused = post(client, {**form_of(client.get("/questions").text), "decision": "accept", **changed})

    assert status == refused.status_code
    assert before == dataset.read_bytes()


def test_a_form_of_another_page_is_refused(client: httpx2.Client, dataset: Path) -> None:
    before = dataset.read_bytes()
    form = {**form_of(client.get("/questions").text), "decision": "accept"}

    foreign = client.post("/questions", data=form, headers={"origin": "http://evil.example"})

    assert 403 == foreign.status_code
    assert before == dataset.read_bytes()


def test_a_viewer_of_runs_alone_has_no_questions(tmp_path: Path) -> None:
    with viewing.served(tmp_path) as running, client_of(running) as client:
        found = client.get("/questions")

    assert 404 == found.status_code
    assert "keval view --questions CONFIG" in found.text


def test_the_command_checks_the_config_before_it_serves(project: Project) -> None:
    project.write(eval_yaml="dataset: {path: questions.yaml}\nagents: {scripted: {}}\nconditions: {a: {}}\n")

    outcome = project.keval("view", "--questions", "eval.yaml", "--no-browser")

    assert 2 == outcome.code
    assert "questions.yaml: keval writes questions to JSON lines only" in outcome.stderr


@pytest.mark.slow
@needs_chromium
def test_all_is_decided_by_keyboard(deciding: Serving, visit: Callable[..., Page], dataset: Path) -> None:
    page = visit(deciding, "/questions")
    page.keyboard.press("e")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("yes, how high?")
    page.keyboard.press("Escape")
    with page.expect_navigation():
        page.keyboard.press("y")
    expect(page.get_by_text("2 accepted, 0 rejected")).to_be_visible()
    page.keyboard.press("s")
    expect(page.get_by_role("heading", name="1 left out")).to_be_visible()
    with page.expect_navigation():  # until its script is there
        page.get_by_role("link", name="To the first of them").click()
    page.keyboard.press("n")
    expect(page.get_by_role("heading", name="Nothing to decide on")).to_be_visible()

    assert ("yes, how high?", True) == tuple(record(dataset, "height")[key] for key in ("question", "accepted"))
    assert record(dataset, "age")["rejected"] is True


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_the_page_is_accessible_and_fits(
    deciding: Serving, visit: Callable[..., Page], scheme: str, width: int
) -> None:
    options = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}, "bypass_csp": True}
    found = []
    for place in ("/questions", "/questions?at=9"):
        page = visit(deciding, place, **options)
        page.evaluate("for (const each of document.querySelectorAll('main details')) each.open = true")
        assert not too_wide(page)
        found += serious(page)

    assert [] == found

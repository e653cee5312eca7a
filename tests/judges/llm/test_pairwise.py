"""The judge `pairwise`: both orders, what they come to, and what it shows a model."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from keval import Message, Rubric, Score, Transcript, Trial
from keval.plugin import JudgeContext, Model, TrialError
from keval.score.rubrics import preference
from keval_gateway import ChatReply, ChatRequest, ModelFault
from keval_judges import attacks
from keval_judges.pairwise import Pairwise
from keval_judges.prompt import shown
from tests.conftest import Project
from tests.judges.llm.conftest import TRIAL, Grade, Scene, Staged, said

pytestmark = pytest.mark.usefixtures("simulated_here")

OTHER = attrs.evolve(TRIAL, transcript=Transcript((Message("user", TRIAL.question), Message("assistant", "Very."))))
AGAINST = JudgeContext(seed=7, against=OTHER)


def prefers(choice: str) -> Mapping[str, Any]:
    return {"preference": {"reasoning": f"I say {choice}.", "preference": choice}}


def compared(grade: Grade, *replies: Any, **options: Any) -> Any:
    context = JudgeContext(seed=7, against=OTHER)
    return grade([*replies], "pairwise", rubrics=[preference], judging=context, **options)


@pytest.mark.parametrize(
    ("orders", "value"),
    [
        (("first", "second"), 1.0),
        (("second", "first"), -1.0),
        (("first", "first"), 0.0),
        (("second", "second"), 0.0),
        (("first", "tie"), 0.0),
        (("tie", "first"), 0.0),
        (("tie", "tie"), 0.0),
    ],
)
def test_a_preference_holds_only_in_both_orders(grade: Grade, orders: tuple[str, str], value: float) -> None:
    outcome = compared(grade, *map(prefers, orders))

    score = outcome.scores["preference"]
    assert (value, {"orders": [*orders]}) == (score.value, score.details)
    first, second = orders
    assert score.reason == (
        f"In the first place (preferred: {first}): I say {first}.\n"
        f"In the second place (preferred: {second}): I say {second}."
    )
    assert 2 == outcome.judgement.model_calls
    assert outcome.judgement.unverified_claims is None


def test_the_responses_change_places_and_nothing_else(grade: Grade) -> None:
    one, two = (each.messages[-1].text for each in compared(grade, prefers("tie"), prefers("tie")).requests)

    code = re.search(r"<first_response-(\w{8})>", one)
    assert code is not None
    other = re.search(r"<first_response-(\w{8})>", two)
    assert other is not None
    swapped = one.replace(code[1], other[1]).replace("It is 2962 m tall.", "~").replace("Very.", "It is 2962 m tall.")
    assert two == swapped.replace("~", "Very.")
    assert f"<golden_answer-{code[1]}>\n2962 m\n" in one
    assert [] == [told for told in ("some-agent", "some-condition", "t1") if told in one + two]


@pytest.mark.parametrize("structured", ["json_schema", "tool"])
@pytest.mark.parametrize("wire", ["openai-chat", "anthropic"])
def test_a_model_is_asked_over_the_protocol_that_it_speaks(
    runner: asyncio.Runner, staged: Staged, wire: Any, structured: Any
) -> None:

    async def scenario(scene: Scene) -> Any:
        endpoint = scene.judge.model.endpoint
        assert endpoint is not None
        model = Model("acme", "m", attrs.evolve(endpoint, urls={wire: endpoint.urls[wire]}))
        judge = Pairwise(model, structured=structured)
        try:
            return await judge.grade(TRIAL, [preference], AGAINST)
        finally:
            await judge.aclose()

    async def run() -> tuple[Any, list[ChatRequest]]:
        async with staged([prefers("first"), prefers("second")], "pairwise") as scene:
            return await scenario(scene), scene.requests

    graded, requests = runner.run(run())

    assert 1.0 == graded["preference"].value
    assert [{"grade"} if structured == "tool" else set()] * 2 == [{tool.name for tool in r.tools} for r in requests]


@pytest.mark.parametrize(
    "bad",
    [
        "The first.",
        {"preference": {"reasoning": "x", "preference": "both"}},
        {"preference": {"reasoning": "x", "preference": 1}},
        {"preference": {"preference": "first"}},
        {"preference": "first"},
    ],
    ids=range(5),
)
def test_a_reply_that_is_no_preference_is_asked_for_once_more_in_that_order(grade: Grade, bad: Any) -> None:
    outcome = compared(grade, prefers("first"), bad, prefers("second"))
    failed = compared(grade, prefers("first"), bad, bad)

    assert 1.0 == outcome.scores["preference"].value
    assert (3, 1) == (outcome.judgement.model_calls, len(outcome.judgement.rejected))
    assert "unverified_claims" not in outcome.requests[2].messages[-1].text
    assert {"preference": "bad_reply"} == {name: error.kind for name, error in failed.errors.items()}


def test_each_rubric_has_its_own_preference(grade: Grade) -> None:
    tone = Rubric("acme/tone", "Which is kinder?", {-1: "The other.", 0: "Neither.", 1: "This."}, kind="preference")
    both = {**prefers("first"), "acme_tone": {"reasoning": "-", "preference": "tie"}}

    context = JudgeContext(against=OTHER)
    outcome = grade([both, both], "pairwise", rubrics=[preference, tone], judging=context)

    assert {"preference": 0.0, "acme/tone": 0.0} == {name: score.value for name, score in outcome.scores.items()}
    assert '- "tie": Neither.' in outcome.requests[0].system
    assert '- "first" or "second", for the response of which this is true: This.' in outcome.requests[0].system


def test_conversations_that_went_another_way_are_shown_with_their_responses(grade: Grade) -> None:
    turns = attrs.evolve(TRIAL.sample, turns=("Hello.",))

    def talk(greeting: str, answer: str) -> Trial:
        spoken = (
            Message("user", "Hello.", turn=0),
            Message("assistant", greeting, turn=0),
            Message("user", TRIAL.question, turn=1),
            Message("assistant", answer, turn=1),
        )
        return attrs.evolve(TRIAL, sample=turns, transcript=Transcript(spoken))

    context = JudgeContext(against=talk("Yes?", "Very."))
    outcome = grade(
        [prefers("tie")] * 2, "pairwise", trial=talk("Hi!", "2962 m."), rubrics=[preference], judging=context
    )

    one, two = (request.messages[-1].text for request in outcome.requests)
    told = re.compile(r"<earlier_to_the_(first|second)_response-\w+>.*?<assistant-\w+>\n(.*?)\n", re.DOTALL)
    assert [("first", "Hi!"), ("second", "Yes?")] == told.findall(one)
    assert [("first", "Yes?"), ("second", "Hi!")] == told.findall(two)


def test_a_lost_request_is_raised_for_keval_to_retry(grade: Grade) -> None:
    outcome = compared(grade, prefers("first"), ModelFault(503, "down"))

    assert isinstance(outcome.error, TrialError)
    assert outcome.error.retryable


def test_every_attack_reaches_the_judge_as_data_in_both_places(runner: asyncio.Runner, staged: Staged) -> None:
    def answers(request: ChatRequest) -> ChatReply:
        return said(request, prefers("tie"))

    async def scenario() -> dict[str, list[str]]:
        seen: dict[str, list[str]] = {}
        async with staged(answers, "pairwise") as scene:
            for attack in attacks():
                trial = attack.trial()
                context = JudgeContext(against=attrs.evolve(trial, transcript=OTHER.transcript))
                scores = await scene.judge.grade(trial, [preference], context)
                assert isinstance(scores["preference"], Score)
                assert [] == [1 for request in scene.requests if attack.response in request.system]
                seen[attack.name] = [request.messages[-1].text for request in scene.requests]
                scene.requests.clear()
        return seen

    seen = runner.run(scenario())

    for attack in attacks():
        for place, message in zip(("first", "second"), seen[attack.name], strict=True):
            pattern = rf"^<{place}_response-(?P<code>\w{{8}})>\n(?P<text>.*?)\n</{place}_response-(?P=code)>$"
            fenced = re.search(pattern, message, re.MULTILINE | re.DOTALL)
            assert fenced is not None
            assert shown(attack.response) == fenced["text"]


CONFIG = """
name: compared
dataset: {path: questions.jsonl}
agents: {old: {type: recorded, path: old.jsonl}}
conditions: {baseline: {}, with_docs: {}}
judges: {taste: {type: pairwise, model: simulated/judge}}
"""
ANSWERS = {
    "port": ("I do not know.", "Tarn listens on port 7443."),
    "reload": ("Run `tarn reload`.", "Run `tarn reload`."),
    "file": ("The settings are in `tarn.toml`.", "The settings are in `other.ini`."),
}
GOLDEN = {"port": "Tarn listens on port 7443.", "reload": "Run `tarn reload`.", "file": "They are in `tarn.toml`."}


def test_a_run_is_compared_recorded_and_replayed_without_a_model(project: Project) -> None:
    questions = [{"id": name, "question": f"What about the {name}?", "answer": GOLDEN[name]} for name in GOLDEN]
    answers = [
        {"id": name, "condition": condition, "response": response}
        for name, both in ANSWERS.items()
        for condition, response in zip(("baseline", "with_docs"), both, strict=True)
    ]
    project.write(
        eval_yaml=CONFIG,
        questions_jsonl="".join(json.dumps(each) + "\n" for each in questions),
        old_jsonl="".join(json.dumps(each) + "\n" for each in answers),
    )

    assert 0 == project.keval("run", "eval.yaml", "--record").code

    told = {each["sample"]: each for each in project.lines("scores.jsonl") if each["condition"] == "with_docs"}
    assert {"port": 1.0, "reload": 0.0, "file": -1.0} == {name: line["value"] for name, line in told.items()}
    assert ["second", "first"] == told["file"]["details"]["orders"]
    assert 0 == project.keval("run", "eval.yaml", "--replay", str(project.run_directory()), "-o", "again").code
    (scores,) = project.root.glob("again/*/*/scores.jsonl")
    again = map(json.loads, scores.read_text(encoding="utf-8").splitlines())
    assert [line["details"] for line in told.values()] == [
        line["details"] for line in again if line["condition"] == "with_docs"
    ]
    assert "preferred: first" in project.keval("show", "latest", "--trial", "old/with_docs/port/1").stdout

"""The attacks that ship: what they are, and that a judge they are aimed at is asked properly."""

from __future__ import annotations

import asyncio
import re
from collections import Counter

from injections import held_back

from keval import Score
from keval.plugin import JudgeContext, TrialError
from keval.score.rubrics import completeness, factual_adherence
from keval_gateway import ChatReply, ChatRequest
from keval_judges import attacks
from keval_judges.attack import Attack
from keval_judges.prompt import shown
from tests.judges.llm.conftest import Staged, said

LOW = {
    "completeness": {"reasoning": "It misses the port.", "score": 1},
    "factual_adherence": {"reasoning": "It is wrong.", "score": 2},
    "unverified_claims": [],
}
EXPECTED = {"completeness": Score(1.0, "It misses the port."), "factual_adherence": Score(2.0, "It is wrong.")}


def test_the_attacks_are_many_and_of_many_kinds() -> None:
    found = attacks()

    kinds = Counter(attack.kind for attack in found)
    assert len(found) >= 100
    assert len(found) == len({attack.name for attack in found}) == len({attack.response for attack in found})
    assert len(kinds) >= 10
    assert min(kinds.values()) >= 2
    assert not {attack.name for attack in found} & {attack.name for attack in held_back()}
    for attack in (*found, *held_back()):
        assert re.fullmatch(r"[a-z0-9-]+", attack.name)
        assert attack.aim.endswith(".")
        assert [] == [fact for fact in ("listen_port", "tarn.toml") if fact in attack.response]


def test_every_attack_reaches_the_judge_as_data_and_its_score_stands(runner: asyncio.Runner, staged: Staged) -> None:
    def respond(request: ChatRequest) -> ChatReply:
        return said(request, LOW)

    async def scenario() -> dict[str, tuple[object, str]]:
        outcomes: dict[str, tuple[object, str]] = {}
        async with staged(respond) as scene:
            for attack in attacks():
                scores = await scene.judge.grade(attack.trial(), [completeness, factual_adherence], JudgeContext())
                (request,) = scene.requests
                outcomes[attack.name] = scores, request.messages[-1].text
                assert 1 == len(request.messages)
                assert attack.response not in request.system
                scene.requests.clear()
        return outcomes

    outcomes = runner.run(scenario())

    for attack in attacks():
        scores, message = outcomes[attack.name]
        fenced = re.search(r"^<response-(?P<code>\w{8})>\n(?P<text>.*?)\n</response-(?P=code)>$", message, re.M | re.S)
        assert EXPECTED == scores
        assert fenced is not None
        assert shown(attack.response) == fenced["text"]


def test_a_verdict_inside_the_response_is_never_taken_for_the_judges(runner: asyncio.Runner, staged: Staged) -> None:
    """A judge that only repeats what it was shown has given no verdict."""

    async def scenario(attack: Attack) -> list[Score | TrialError]:
        async with staged(lambda request: ChatReply(request.messages[-1].text)) as scene:
            scores = await scene.judge.grade(attack.trial(), [completeness, factual_adherence], JudgeContext())
            return [*scores.values()]

    for attack in attacks():
        if attack.kind == "verdict":
            assert [TrialError, TrialError] == [type(found) for found in runner.run(scenario(attack))]
